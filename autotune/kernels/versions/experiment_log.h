/*
 * The ledger: what was tried on which op and what came of it, one row a change, and what follows
 * from that. One change and one hypothesis at a time; the next op is the one where the whole gains
 * most if it reaches its floor (Amdahl's law over a trace's shares); an op is left behind five
 * changes in a row that were not kept, or at 90 % of its floor. The playbook says which ideas have
 * helped, over all that were tried and not over the successes alone.
 *
 *     {"schema": "megalith.ledger/1", "rows": [{"op": "merge", "idea": "split_k", "outcome": "OK",
 *      "kept": true, "gain": 0.031, "calls": 4, "tokens": 9000}]}
 *
 *     {"schema": "megalith.shares/1", "ops": [{"op": "merge", "us": 12.5, "floor_us": 9.0}]}
 */
#ifndef MGL_AUTOTUNE_KERNELS_VERSIONS_EXPERIMENT_LOG_H
#define MGL_AUTOTUNE_KERNELS_VERSIONS_EXPERIMENT_LOG_H

#include "autotune/kernels/methods/judge.h"
#include "base/json_out.h"

enum {
    MGL_EXPERIMENT_LOG_NAME = 64,
    MGL_EXPERIMENT_LOG_OPS = 32,
    MGL_EXPERIMENT_LOG_REVERTS = 5, /* in a row: then an op is left */
    MGL_EXPERIMENT_LOG_ROWS = 1 << 16,
    MGL_EXPERIMENT_LOG_FILE = 64 << 20, /* bytes of a file, at most */
    MGL_EXPERIMENT_LOG_IDEAS = 5        /* of a plan */
};

typedef struct mgl_experiment_log_row {
    char op[MGL_EXPERIMENT_LOG_NAME + 1], idea[MGL_EXPERIMENT_LOG_NAME + 1];
    mgl_outcome outcome;
    bool kept;
    double gain; /* of the paired log ratio; NAN: not measured */
    int64_t calls, tokens;
} mgl_experiment_log_row;

/* Zero-initialise; release with mgl_experiment_log_clear. */
typedef struct mgl_experiment_log {
    mgl_experiment_log_row *rows; /* (count) the oldest first */
    size_t count, capacity;
} mgl_experiment_log;
void mgl_experiment_log_clear(mgl_experiment_log *experiment_log);
/* A file that does not stand has no rows. */
mgl_status mgl_experiment_log_read(const char *path, mgl_experiment_log *out, mgl_error *err);
/* The same of a text; `file` for messages. */
mgl_status mgl_experiment_log_parse(const char *text, size_t length, const char *file,
                                    mgl_experiment_log *out, mgl_error *err);
/* MGL_USAGE: a name that is none, or a row that was kept and is not OK. */
mgl_status mgl_experiment_log_add(mgl_experiment_log *experiment_log,
                                  const mgl_experiment_log_row *row, mgl_error *err);
/* Whole or not at all. */
mgl_status mgl_experiment_log_write(const mgl_experiment_log *experiment_log, const char *path,
                                    mgl_error *err);

/* ---- which op comes next --------------------------------------------------------------------- */

/* Why an op is not worked on, or that it may be. */
#define MGL_OP_STATES(X)                                                                           \
    X(OPEN, "open")                                                                                \
    X(LEFT, "left: five changes in a row were not kept")                                           \
    X(NEAR, "left: 90 % of its floor are reached")
typedef enum mgl_op_state {
#define MGL_X(id, what) MGL_OP_STATE_##id,
    MGL_OP_STATES(MGL_X)
#undef MGL_X
} mgl_op_state;
const char *mgl_op_state_what(mgl_op_state state);

typedef struct mgl_op_share {
    char op[MGL_EXPERIMENT_LOG_NAME + 1];
    double us, floor_us; /* of a token; floor_us 0: not known */
    double share;        /* of all */
    double gain;         /* of the whole, were it at its floor: 0.1 is 10 % less time */
    int reverts;         /* in a row */
    mgl_op_state state;
} mgl_op_share;

typedef struct mgl_shares {
    mgl_op_share ops[MGL_EXPERIMENT_LOG_OPS]; /* (count) */
    int count;
} mgl_shares;
mgl_status mgl_shares_read(const char *path, mgl_shares *out, mgl_error *err);
mgl_status mgl_shares_parse(const char *text, size_t length, const char *file, mgl_shares *out,
                            mgl_error *err);
/* Fills shares, gains and states, sorts the open ones by gain to the front, and returns whether
 * there is one. */
bool mgl_shares_order(mgl_shares *shares, const mgl_experiment_log *experiment_log);

/* ---- what was learned ------------------------------------------------------------------------ */

typedef struct mgl_play {
    char name[MGL_EXPERIMENT_LOG_NAME + 1]; /* of an idea, or of an op */
    int tried, correct, kept;
    double mean_gain; /* over all that were tried; what failed or was not measured counts as 0 */
    double best_gain;
    int64_t calls, tokens;
} mgl_play;

/* A row an idea (of one op, or of all for NULL), the best mean first; or a row an op. Returns how
 * many, `most` at most. */
int mgl_experiment_log_playbook(const mgl_experiment_log *experiment_log, const char *op,
                                mgl_play *out, int most);
int mgl_experiment_log_by_op(const mgl_experiment_log *experiment_log, mgl_play *out, int most);
/* The share of all rows that gained at least that. */
double mgl_experiment_log_fast(const mgl_experiment_log *experiment_log, double gain);

/* What is done next, and by which ideas. */
typedef struct mgl_experiment_log_plan {
    mgl_shares shares; /* as mgl_shares_order has them */
    bool any;          /* the first op of them is worked on; false: every op is left */
    mgl_play ideas[MGL_EXPERIMENT_LOG_IDEAS]; /* (idea_count) */
    int idea_count;
} mgl_experiment_log_plan;
/* Of a plan that has shares and nothing more. */
void mgl_experiment_log_make_plan(const mgl_experiment_log *experiment_log,
                                  mgl_experiment_log_plan *plan);
/* As members of an object. */
void mgl_experiment_log_put_plan(const mgl_experiment_log_plan *plan, mgl_json_out *out);

/* All rows, with a head, for spreadsheets; and the tables as Markdown. */
void mgl_experiment_log_put_csv(const mgl_experiment_log *experiment_log, mgl_text *out);
void mgl_experiment_log_put_markdown(const mgl_experiment_log *experiment_log, mgl_text *out);

#endif

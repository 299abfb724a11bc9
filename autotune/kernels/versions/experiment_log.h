/*
 * Experiment log: one row per change that was tried on an op, with its outcome. One change tests
 * one hypothesis. The log and the shares of a trace determine which op to work on next: the op
 * whose reduction to its floor reduces the total time most (Amdahl's law). An op is left after
 * five changes in a row that were not kept, or at 90 % of its floor. The playbook ranks ideas by
 * their mean gain over all attempts, not only over the successes. The command line and the agents'
 * tools use it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_VERSIONS_EXPERIMENT_LOG_H
#define MGL_AUTOTUNE_KERNELS_VERSIONS_EXPERIMENT_LOG_H

#include "autotune/kernels/gates/kernel.h"
#include "base/json_out.h"

enum {
    MGL_EXPERIMENT_LOG_NAME = 64,
    MGL_EXPERIMENT_LOG_OPS = 32,
    MGL_EXPERIMENT_LOG_REVERTS = 5, /* limit of consecutive changes that were not kept; then work on
                                     * the op ends */
    MGL_EXPERIMENT_LOG_ROWS = 1 << 16,
    MGL_EXPERIMENT_LOG_FILE = 64 << 20, /* largest file in bytes */
    MGL_EXPERIMENT_LOG_IDEAS = 5        /* per choice */
};

typedef struct mgl_experiment_log_row {
    char op[MGL_EXPERIMENT_LOG_NAME + 1], idea[MGL_EXPERIMENT_LOG_NAME + 1];
    mgl_outcome outcome;
    bool kept;
    double gain; /* paired log ratio; NAN: not measured */
    int64_t calls, tokens;
} mgl_experiment_log_row;

/* Zero-initialize; release with mgl_experiment_log_clear. */
typedef struct mgl_experiment_log {
    mgl_experiment_log_row *rows; /* (count) oldest first */
    size_t count, capacity;
} mgl_experiment_log;
void mgl_experiment_log_clear(mgl_experiment_log *experiment_log);
/* A missing file is an empty log. The old name of the file is read too (mgl_keeper_locate). */
mgl_status mgl_experiment_log_read(const char *path, mgl_experiment_log *out, mgl_error *err);
/* Parses a log from a text; `file` is the name in messages. */
mgl_status mgl_experiment_log_parse(const char *text, size_t length, const char *file,
                                    mgl_experiment_log *out, mgl_error *err);
/* MGL_USAGE: an invalid name, or a kept row whose outcome is not OK. */
mgl_status mgl_experiment_log_add(mgl_experiment_log *experiment_log,
                                  const mgl_experiment_log_row *row, mgl_error *err);
/* Writes the file atomically. */
mgl_status mgl_experiment_log_write(const mgl_experiment_log *experiment_log, const char *path,
                                    mgl_error *err);
/* Adds a row to the file while other processes may do the same; a file with the old name gets its
 * new name. *number: the row's number, from 1. */
mgl_status mgl_experiment_log_record(const char *path, const mgl_experiment_log_row *row,
                                     size_t *number, mgl_error *err);

/* ---- choice of the next op ------------------------------------------------------------------- */

/* Whether an op may be worked on, and the reason if not. */
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
    double us, floor_us; /* per token; floor_us 0: unknown */
    double share;        /* share of the op in the time of all ops */
    double gain;         /* share of the total time that is saved if the op runs at its floor: 0.1
                          * is 10 % */
    int reverts;         /* changes in a row that were not kept */
    mgl_op_state state;
} mgl_op_share;

typedef struct mgl_shares {
    mgl_op_share ops[MGL_EXPERIMENT_LOG_OPS]; /* (count) */
    int count;
} mgl_shares;
mgl_status mgl_shares_read(const char *path, mgl_shares *out, mgl_error *err);
mgl_status mgl_shares_parse(const char *text, size_t length, const char *file, mgl_shares *out,
                            mgl_error *err);
/* Fills shares, gains and states, and sorts the open ops by gain to the front. Returns whether
 * an op is open. */
bool mgl_shares_order(mgl_shares *shares, const mgl_experiment_log *experiment_log);

/* ---- playbook -------------------------------------------------------------------------------- */

typedef struct mgl_play {
    char name[MGL_EXPERIMENT_LOG_NAME + 1]; /* name of an idea or an op */
    int tried, correct, kept;
    double mean_gain; /* mean over all attempts; failed and unmeasured attempts count as 0 */
    double best_gain;
    int64_t calls, tokens;
} mgl_play;

/* Fills one row per idea (of one op, or of all ops if NULL), best mean gain first; or one row
 * per op. Returns the number of rows, at most `most`. */
int mgl_experiment_log_playbook(const mgl_experiment_log *experiment_log, const char *op,
                                mgl_play *out, int most);
int mgl_experiment_log_by_op(const mgl_experiment_log *experiment_log, mgl_play *out, int most);
/* The fraction of all rows that gained at least `gain`. */
double mgl_experiment_log_fast(const mgl_experiment_log *experiment_log, double gain);

/* The next op and the ideas for it. */
typedef struct mgl_experiment_log_choice {
    mgl_shares shares; /* sorted by mgl_shares_order */
    bool any;          /* true: work on the first op; false: all ops are left */
    mgl_play ideas[MGL_EXPERIMENT_LOG_IDEAS]; /* (idea_count) */
    int idea_count;
} mgl_experiment_log_choice;
/* Completes a choice that contains only shares. */
void mgl_experiment_log_choose(const mgl_experiment_log *experiment_log,
                               mgl_experiment_log_choice *choice);
/* Writes the choice as members of an object. */
void mgl_experiment_log_put_choice(const mgl_experiment_log_choice *choice, mgl_json_out *out);

/* All rows with a header row, for spreadsheets; and the tables as Markdown. */
void mgl_experiment_log_put_csv(const mgl_experiment_log *experiment_log, mgl_text *out);
void mgl_experiment_log_put_markdown(const mgl_experiment_log *experiment_log, mgl_text *out);

#endif

/*
 * State and functions that the files of the meaning pass share: the values that buffers hold, the
 * current task, and reading operands and storing results. meaning.c describes the pass,
 * gamma_scaled.c handles values that are not nodes, splits.c attention. Private to these three
 * files.
 */
#ifndef MGL_VALIDATOR_MEANING_H
#define MGL_VALIDATOR_MEANING_H

#include "validator/check.h"

enum { MGL_MEANING_CACHE = 4096, MGL_TENSOR_ABSENT = -2 };

/* Columns [lo, hi) of a node, or of a tensor of the graph: the embedding's columns, or the rows of
 * a weight, which become columns. */
typedef struct mgl_node_value {
    bool is_tensor;
    int index; /* MGL_TENSOR_ABSENT: an optional tensor that the task omits */
    int64_t lo, hi;
} mgl_node_value;

/* The content of split i for one head. */
typedef struct mgl_partial {
    bool set, tail;
    mgl_node_value q;         /* the head's columns */
    int k_cache, v_cache;     /* buffers */
    int64_t kv_head;          /* the head in these buffers */
    mgl_node_value attention; /* of the tail split: the result */
} mgl_partial;

/* The rows of one kind (unsplit or split) of one head of a cache buffer. */
typedef struct mgl_owner {
    int task; /* the task that appends these rows, plus 1; 0: none */
    mgl_node_value value;
    bool is_wanted;        /* a task that does not append relies on its content */
    mgl_node_value wanted; /* being this value */
} mgl_owner;

/* The values in a buffer. Space and rank decide which of the fields is used. */
typedef struct mgl_holding {
    mgl_columns *columns; /* (shares) act and io of rank 2 */
    int shares; /* number of shares into which the rows are divided. Share i of n of a task is a
                   run of shares / n of them. 1 if all tasks write whole rows */
    mgl_range_kind kind;   /* how the rows are divided: MGL_RANGE_SHARE, MGL_RANGE_ROW_KIND, or
                              MGL_RANGE_ROWS if all tasks write whole rows */
    mgl_columns numbers;   /* the number of row shares by which each column was written; stored
                              as `node` */
    mgl_partial *partials; /* (MGL_ROWS_KINDS, splits, heads) act of rank 4 */
    mgl_owner *owners;     /* (kv_heads, MGL_ROWS_KINDS) kv; a task that appends all
                              rows owns both kinds */
    int64_t *ends;         /* (columns of the buffer) of a part of squares: the end of the part's
                              columns of the node; NULL if none was stored */
} mgl_holding;

typedef struct mgl_meaning {
    mgl_check *check;
    const mgl_program *program;
    const mgl_graph *graph;
    mgl_holding *holdings;       /* (buffers) */
    struct mgl_best *value, *id; /* (parts) of sample's best_value and best_id */
    int64_t parts;
    int drawn;                         /* the value that tokens are drawn from; -1: no draws */
    int find_cache[MGL_MEANING_CACHE]; /* cache of mgl_meaning_find_node */

    /* the current task */
    int task;
    const mgl_segment *segment; /* W and W2, or NULL */
    int bias;                   /* operand number of B; B2 follows it */
    const char *at;             /* the rest of its formula */
} mgl_meaning;

/* ---- the pass (meaning.c) ---- */

/* Reports a fault of the current task. Always returns false. */
bool mgl_meaning_fail(mgl_meaning *m, int code, const char *what);
/* "node 12, norm of layer 0". Returns `to`. */
const char *mgl_meaning_describe(const mgl_meaning *m, const mgl_node_value *v,
                                 char to[MGL_NAME_TEXT]);

/* The task's region of an operand, which must exist. */
const mgl_region *mgl_meaning_region(const mgl_meaning *m, int operand);
/* The operand with that name, whether the task has it or not; -1 if the op has none. */
int mgl_meaning_operand(const mgl_meaning *m, const char *name, size_t length);
/* Reads the value of the operand. False: a fault was reported, as in all functions below. */
bool mgl_meaning_read(mgl_meaning *m, int operand, mgl_node_value *out);
/* Finds the one value that fills columns [lo, hi) of the region's rows. False if there is none. */
bool mgl_meaning_find(const mgl_meaning *m, const mgl_region *region, int64_t lo, int64_t hi,
                      int *node, int64_t *node_lo);
/* Sets columns [lo, hi) of the region's rows to the columns of `node` from node_lo on. */
bool mgl_meaning_put(mgl_meaning *m, const mgl_region *region, int64_t lo, int64_t hi, int node,
                     int64_t node_lo);
/* Stores the value in columns [at, at + its length) of the operand's buffer. */
bool mgl_meaning_store(mgl_meaning *m, int operand, int64_t at, const mgl_node_value *v);
/* mgl_graph_find with a cache, because many tasks look up the same nodes. */
int mgl_meaning_find_node(mgl_meaning *m, mgl_node_kind kind, const int in[3], int tensor);

/* The formulas of the task's op. */
const char *mgl_meaning_formula(const mgl_meaning *m);
/* Starts the formula at `formula`: *output is the operand that it names, m->at its expression. */
bool mgl_meaning_open(mgl_meaning *m, const char *formula, int *output);
/* Reads the next name at m->at. */
const char *mgl_meaning_take_name(mgl_meaning *m, size_t *length);
/* Evaluates the expression at m->at. */
bool mgl_meaning_evaluate(mgl_meaning *m, mgl_node_value *out);
/* Evaluates all formulas of the task, which suffices for most ops. */
bool mgl_meaning_run(mgl_meaning *m);

/* Limit of the shares into which the rows of a buffer are divided. */
enum { MGL_MOST_SHARES = 1024 };

/* The least common multiple of two share counts; the second count if that exceeds MGL_MOST_SHARES.
 */
static inline int mgl_common_shares(int a, int b)
{
    int x = a, y = b;
    while (y > 0) {
        const int rest = x % y;
        x = y;
        y = rest;
    }
    return a / x <= MGL_MOST_SHARES / b ? a / x * b : b;
}

/* ---- gamma-scaled values (gamma_scaled.c) ---- */

/* gamma_scaled(y, g): columns of a node, multiplied by the weight g of the norm whose input is that
 * node. */
bool mgl_gamma_make(mgl_meaning *m, const mgl_node_value *y, const mgl_node_value *g,
                    mgl_node_value *out);
/* rms_normalized(n, s): the norm whose gamma-scaled input is n; operand s has the squares of its
 * input. */
bool mgl_gamma_scale(mgl_meaning *m, const mgl_node_value *n, int s, mgl_node_value *out);
/* squares(y): stores the task's part of the sum of squares of y in the operand. */
bool mgl_gamma_squares(mgl_meaning *m, int operand, const mgl_node_value *y);
/* Whether a number above those of the nodes is squares; otherwise it is a gamma-scaled value. */
bool mgl_gamma_is_squares(const mgl_graph *graph, int index);

/* ---- attention (splits.c) ---- */

/* merge(part): reads the attention of all heads of the operand, as columns of one node. */
bool mgl_splits_read(mgl_meaning *m, int operand, mgl_node_value *out);
bool mgl_splits_run_attend(mgl_meaning *m);
bool mgl_splits_run_attend_tail(mgl_meaning *m);
bool mgl_splits_run_attend_past(mgl_meaning *m);
bool mgl_splits_run_attend_rows(mgl_meaning *m);
bool mgl_splits_run_merge(mgl_meaning *m);

#endif

/*
 * What the files of the pass over meaning share: the values that buffers hold, the task at hand,
 * and how an operand is read and a result stored. meaning.c has the idea, gamma_scaled.c what is no
 * node, splits.c attention. Private to these three.
 */
#ifndef MGL_VALIDATOR_MEANING_H
#define MGL_VALIDATOR_MEANING_H

#include "validator/check.h"

enum { MGL_MEANING_CACHE = 4096, MGL_TENSOR_ABSENT = -2 };

/* Columns [lo, hi) of a node, or of a tensor of the graph: the embedding's columns, or the rows of
 * a weight, which become columns. */
typedef struct mgl_node_value {
    bool is_tensor;
    int index; /* MGL_TENSOR_ABSENT: a tensor that the task leaves out */
    int64_t lo, hi;
} mgl_node_value;

/* What split i holds of one head. */
typedef struct mgl_partial {
    bool set, tail;
    mgl_node_value q;         /* the head's columns */
    int k_cache, v_cache;     /* buffers */
    int64_t kv_head;          /* in them */
    mgl_node_value attention; /* of the tail: the result */
} mgl_partial;

/* One head of a cache buffer. */
typedef struct mgl_owner {
    int task; /* that appends to it, plus 1; 0 for none */
    mgl_node_value value;
    bool is_wanted;        /* a task that does not append takes what it holds */
    mgl_node_value wanted; /* for this */
} mgl_owner;

/* The value state of a buffer: of its space and rank one of these is in use. */
typedef struct mgl_holding {
    mgl_columns *columns; /* (shares) act and io of rank 2 */
    int shares; /* of the rows, of which each share that a task writes is a run: share i of n has
                   shares / n of them; 1 where all tasks write whole rows */
    mgl_columns numbers;   /* of shares of the rows by which columns are written; `node` has them */
    mgl_partial *partials; /* (splits, heads) act of rank 4 */
    mgl_owner *owners;     /* (kv_heads) kv */
    int64_t *ends;         /* (columns of the buffer) of a part of squares: the column of the
                              node behind its last; NULL where none was stored */
} mgl_holding;

typedef struct mgl_meaning {
    mgl_check *check;
    const mgl_program *program;
    const mgl_graph *graph;
    mgl_holding *holdings;       /* (buffers) */
    struct mgl_best *value, *id; /* (parts) of sample's best_value and best_id */
    int64_t parts;
    int drawn;                         /* the value that tokens are drawn from; -1: none are */
    int find_cache[MGL_MEANING_CACHE]; /* nodes found before */

    /* the task at hand */
    int task;
    const mgl_segment *segment; /* W and W2, or NULL */
    int bias;                   /* operand of B, that of B2 behind it */
    const char *at;             /* what is left of its formula */
} mgl_meaning;

/* ---- the pass (meaning.c) ---- */

/* Reports a fault of the task at hand. Always false. */
bool mgl_meaning_fail(mgl_meaning *m, int code, const char *what);
/* "node 12, norm of layer 0". Returns `to`. */
const char *mgl_meaning_describe(const mgl_meaning *m, const mgl_node_value *v,
                                 char to[MGL_NAME_TEXT]);

/* The task's region of an operand, which it has. */
const mgl_region *mgl_meaning_region(const mgl_meaning *m, int operand);
/* The operand of that name, whether the task has it or not; -1 when the op has none. */
int mgl_meaning_operand(const mgl_meaning *m, const char *name, size_t length);
/* The value that the operand holds. False: reported, as are all faults below. */
bool mgl_meaning_read(mgl_meaning *m, int operand, mgl_node_value *out);
/* Columns [lo, hi) of the region's rows: the one value that fills them, or false. */
bool mgl_meaning_find(const mgl_meaning *m, const mgl_region *region, int64_t lo, int64_t hi,
                      int *node, int64_t *node_lo);
/* Columns [lo, hi) of the region's rows become those of `node` from node_lo on. */
bool mgl_meaning_put(mgl_meaning *m, const mgl_region *region, int64_t lo, int64_t hi, int node,
                     int64_t node_lo);
/* Puts the value into columns [at, at + its length) of the operand's buffer. */
bool mgl_meaning_store(mgl_meaning *m, int operand, int64_t at, const mgl_node_value *v);
/* mgl_graph_find, with a memory: many tasks ask for the same nodes. */
int mgl_meaning_find_node(mgl_meaning *m, mgl_node_kind kind, const int in[3], int tensor);

/* The formulas of the task's op. */
const char *mgl_meaning_formula(const mgl_meaning *m);
/* Goes to the formula at `formula`: *output is the operand it names, m->at its expression. */
bool mgl_meaning_open(mgl_meaning *m, const char *formula, int *output);
/* The next name at m->at. */
const char *mgl_meaning_take_name(mgl_meaning *m, size_t *length);
/* The value of the expression at m->at. */
bool mgl_meaning_evaluate(mgl_meaning *m, mgl_node_value *out);
/* All formulas, which is what most ops do. */
bool mgl_meaning_run(mgl_meaning *m);

/* ---- weighed values (gamma_scaled.c) ---- */

/* weighed(y, g): columns of a node, times the weight g of the norm that has it as its input. */
bool mgl_gamma_make(mgl_meaning *m, const mgl_node_value *y, const mgl_node_value *g,
                    mgl_node_value *out);
/* scaled(n, s): the norm whose weighed input is n; operand s has the squares of its input. */
bool mgl_gamma_scale(mgl_meaning *m, const mgl_node_value *n, int s, mgl_node_value *out);
/* squares(y): the task's part of the sum of squares of y, into the operand. */
bool mgl_gamma_squares(mgl_meaning *m, int operand, const mgl_node_value *y);
/* Of a number behind those of the nodes: squares, or a weighed value. */
bool mgl_gamma_is_squares(const mgl_graph *graph, int index);

/* ---- attention (splits.c) ---- */

/* merge(part): the value of all heads of the operand, columns of one attention. */
bool mgl_splits_read(mgl_meaning *m, int operand, mgl_node_value *out);
bool mgl_splits_run_attend(mgl_meaning *m);
bool mgl_splits_run_attend_tail(mgl_meaning *m);
bool mgl_splits_run_attend_past(mgl_meaning *m);
bool mgl_splits_run_attend_rows(mgl_meaning *m);
bool mgl_splits_run_merge(mgl_meaning *m);

#endif

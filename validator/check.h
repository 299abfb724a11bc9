/*
 * State that the passes of the validator share: the program under check, results of earlier passes,
 * and the functions that report faults. Private to validator/; validator.c runs the passes.
 *
 * Each pass is a function over mgl_check in its own file, one claim per file, in this order:
 *
 *     form.c      MG1xx  structure and declarations     (afterwards every index is valid)
 *     operands.c  MG1xx  tasks against the list of ops, each operand alone
 *     bounds.c    MG4xx  regions, segments, tapes, sizes, limits
 *     relations.c MG1xx  operands of one task against each other and the model
 *     boxes.c            the distinct rectangles that tasks touch
 *     flags.c            flag words have one writer and one clear: MG304, MG305, MG503, MG604
 *     deadlock.c  MG2xx  one epoch runs to its end, epochs are totally ordered
 *     order.c            happens-before, as vector clocks
 *     race.c      MG3xx  conflicting accesses are ordered
 *     init.c      MG5xx  every read sees a write (for logits and best: MG601)
 *     complete.c  MG6xx  tapes and weights exactly once
 *     model.c     MG7xx  the program is for this model
 *     formats.c   MG708  number formats, if the caller accepts no lossy format; MG711 quantized
 *                        tensors in another format
 *     columns.c          the value in each column of a buffer
 *     meaning.c   MG7xx  the tasks compute the graph: with splits.c and gamma_scaled.c
 *     lists.c            the second list fits the first: MG130, MG208, MG504, MG605, MG709
 *     pair.c             two programs agree on the memory that they share: MG140, MG606, MG712
 *
 * All passes check each list of a program; the check of the second list can read the check of the
 * first.
 *
 * (cover.c computes the part of a region that some boxes do not cover, for flags.c and init.c.)
 *
 * A pass may rely on everything that earlier passes check, because it runs only if they found no
 * fault. One epoch represents all epochs because of deadlock.c: every task happens before its
 * epoch's sample, and every task of the next epoch after it, whichever lists the two epochs are of.
 */
#ifndef MGL_VALIDATOR_CHECK_H
#define MGL_VALIDATOR_CHECK_H

#include "validator/validator.h"

enum {
    MGL_MAX_TASKS = 1 << 20,    /* also counters */
    MGL_MAX_DECLARED = 1 << 16, /* buffers, and tensors */
    MGL_MAX_PIECES = 1 << 24,   /* regions, segments, waits and signals */
    MGL_MAX_NUMBER = 1 << 30,   /* a number of the geometry */
    MGL_MAX_EXTENT = 1 << 30,   /* an extent of a buffer; rows and columns of a tensor */
    MGL_NAME_TEXT = 160,        /* bytes for a task or a region in a message */

    /* Words of the io buffers. The constants repeat schedule/step.h, and a test compares them,
     * because the validator does not depend on the machines. */
    MGL_CHECK_CONTROL_WORDS = 8,
    MGL_CHECK_TABLE_WORDS = 4,
    MGL_CHECK_SEQUENCE_WORDS = 32
};
#define MGL_MAX_BYTES ((int64_t)1 << 44)
/* Limit of the steps of a check. A step takes about 10 ns: a visit of a box, or of a part of a
 * region, or some faster comparisons. A program of 50,000 tasks needs about 10 million. */
#define MGL_MAX_STEPS ((int64_t)1 << 26)
/* Limit of the numbers in the clocks of order.c, per round: 128 MiB. A program of 50,000 tasks on
 * 132 queues with a counter at every edge needs a fifth. */
#define MGL_MAX_CLOCKS ((size_t)1 << 25)

/* A distinct rectangle of a buffer that at least one operand names. */
typedef struct mgl_box {
    int region;        /* a region with this rectangle */
    mgl_region bounds; /* bounds of the boxes of its subtree: see boxes.c */
} mgl_box;

/* The distinct boxes of act, kv and io buffers. */
typedef struct mgl_boxes {
    int *of_region;   /* (regions) box; -1 for const buffers */
    mgl_box *boxes;   /* (count) boxes of one buffer are consecutive */
    int *first;       /* (buffers + 1) first box of a buffer in `boxes` */
    int *overlapping; /* the last result of mgl_boxes_overlapping */
    int count;
} mgl_boxes;

/* The writers of flag words, and what a reader waits for. Both NULL without flag regions. */
typedef struct mgl_flags {
    int *writer; /* (boxes) the task whose flag output the box is, or -1 */
    int *parts;  /* (boxes) of a flag input: the number of written boxes that overlap it; else 0 */
} mgl_flags;

/* The content of one head of a cache buffer: columns of a node's value from `lo` on. */
typedef struct mgl_cached {
    int node; /* -1: no task appends to it */
    int64_t lo;
} mgl_cached;

typedef struct mgl_check {
    const mgl_program *program; /* the list under check */
    struct mgl_check *first;    /* in a check of the second list: the check of the first; else
                                   NULL */
    const mgl_graph *graph;     /* NULL: meaning is not checked */
    bool strict_formats;        /* lossy formats are faults */
    bool in_pair;               /* a program of a check of two (pair.c) */
    mgl_verdict *verdict;
    mgl_diagnostic *newest; /* receives the witnesses; NULL if the list was full */
    int found;              /* faults, including those that exceeded the list */
    bool no_memory;
    int64_t steps; /* steps so far, see MGL_MAX_STEPS */

    int *queue_of;       /* (tasks) */
    int *position;       /* (tasks) index in its queue, from 0 */
    int sample;          /* the sample task */
    int *producer_first; /* (counters + 1) first entry of a counter in `producers` */
    int *producers;      /* tasks that signal a counter; P is their number */
    int *order;          /* (tasks) an order in which one epoch can run */

    int *clock_of; /* (tasks) row of `clocks` */
    int *clocks;   /* (clock_rows, queues) number of tasks of each queue that happen before */
    size_t clock_rows, clock_capacity;

    mgl_boxes boxes;
    mgl_flags flags;
    int *graph_tensor; /* (tensors) index in the graph, -1 for none */

    mgl_cached *cached; /* (kv buffers, kv_heads) only with a graph, for a program with
                           two lists, or in a pair */
} mgl_check;

/* ---- reports (report.c) ---- */

/* Adds a diagnostic. task -1: no task; line 0: the task's line. */
void mgl_check_report(mgl_check *check, int code, int task, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Adds a line of witness to the newest diagnostic. */
void mgl_check_witness(mgl_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns zeroed memory; NULL sets no_memory. */
void *mgl_check_alloc(mgl_check *check, size_t count, size_t size);
/* Whether no pass has found a fault so far, so the next pass may run. */
bool mgl_check_clean(const mgl_check *check);
/* Whether a pass that found faults may look for more: the list has room for them. */
bool mgl_check_goes_on(const mgl_check *check);
/* Counts steps. Reports the first step above the limit (MG121) and returns false from then on. */
bool mgl_check_spend(mgl_check *check, size_t steps);
/* Reports MG121 with the reason, once, and uses up all steps, which ends the check. */
void mgl_check_exhaust(mgl_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Write "task 12 (queue 0, line 33: linear_add)" and "x[:rows,0:128]". Both return `to`. */
const char *mgl_check_task(const mgl_check *check, int task, char to[MGL_NAME_TEXT]);
const char *mgl_check_region(const mgl_check *check, int region, char to[MGL_NAME_TEXT]);

/* ---- passes ---- */

void mgl_check_form(mgl_check *check);
void mgl_check_operands(mgl_check *check);  /* each operand alone */
void mgl_check_relations(mgl_check *check); /* operands of a task, and the io roles; after bounds */
void mgl_check_limits(mgl_check *check);    /* MG405 to MG408: before any pass counts rows */
void mgl_check_bounds(mgl_check *check);
void mgl_check_variants(mgl_check *check); /* MG124 to MG129; after operands */
void mgl_check_flags(mgl_check *check);    /* after boxes */
void mgl_check_deadlock(mgl_check *check);
void mgl_check_epochs(mgl_check *check); /* the epoch edge; after order */
void mgl_check_race(mgl_check *check);
void mgl_check_init(mgl_check *check);
/* Whether tasks append all rows of an epoch, or both the unsplit and the split rows, to one head of
 * a cache. `boxes` (count): the boxes that overlap [pos] of that head. */
bool mgl_check_is_appended(const mgl_check *check, const int *boxes, int count);
void mgl_check_complete(mgl_check *check);
void mgl_check_model(mgl_check *check);   /* MG701, MG702 */
void mgl_check_formats(mgl_check *check); /* after model */
void mgl_check_weights(mgl_check *check); /* MG603; after model */
void mgl_check_meaning(mgl_check *check);

/* For the second list; without effect in a check of a first list. */
void mgl_check_rows(mgl_check *check);   /* MG130: buffers with rows; after operands */
void mgl_check_shared(mgl_check *check); /* MG130: declarations; after form */
void mgl_check_joined(mgl_check *check); /* MG130, MG208, MG504, MG605: after relations */
void mgl_check_cached(mgl_check *check); /* MG709; after meaning */

/* For a program that uses the memory of another one: MG140, MG606, MG712. Both are without faults.
 */
void mgl_check_pair(mgl_check *check, const mgl_check *owner);

/* Whether sample, and no other task, signals the counter (deadlock.c). */
bool mgl_check_is_edge(const mgl_check *check, int counter);

/* ---- rectangles (boxes.c) ---- */

/* Fills `boxes`. */
void mgl_boxes_make(mgl_check *check);
/* Returns the boxes that overlap a region, in order; valid until the next call. Spends steps, and
 * returns no boxes when the steps are used up. */
const int *mgl_boxes_overlapping(mgl_check *check, const mgl_region *region, int *count);

/* ---- coverage (cover.c) ---- */

/* Zero-initialize all fields except `check`; release `parts`. */
typedef struct mgl_cover {
    mgl_check *check;
    mgl_region *parts; /* (part_count) the uncovered parts of the last region */
    size_t part_count, part_capacity;
} mgl_cover;

/* Whether the boxes with `marked` set together cover the region. Spends steps. */
bool mgl_cover_all(mgl_cover *cover, const bool *marked, const mgl_region *region);
/* Adds witnesses of the uncovered parts, like "not written: x[:rows,8:16]". */
void mgl_cover_witness(const mgl_cover *cover, const char *what);

/* ---- values in columns (columns.c) ---- */

/* Buffer columns [lo, hi) hold columns [lo + shift, hi + shift) of a node's value. */
typedef struct mgl_interval {
    int64_t lo, hi;
    int node;
    int64_t shift;
} mgl_interval;

/* Zero-initialize; release `items`. */
typedef struct mgl_columns {
    mgl_interval *items; /* sorted, disjoint */
    size_t count, capacity;
} mgl_columns;

/* Sets columns [lo, hi) to the columns of `node` from node_lo on. False: out of memory. */
bool mgl_columns_set(mgl_columns *columns, int64_t lo, int64_t hi, int node, int64_t node_lo);
/* Finds the one value that fills [lo, hi). False if there is no such value. */
bool mgl_columns_get(const mgl_columns *columns, int64_t lo, int64_t hi, int *node,
                     int64_t *node_lo);

/* ---- happens-before (order.c) ---- */

/* Fills clock_of and clocks from queue order and waits; needs `order`. */
void mgl_order_compute(mgl_check *check);
/* Whether task a happens before task b, in every execution of an epoch. */
bool mgl_order_before(const mgl_check *check, int a, int b);

/* ---- accessors of the program ---- */

/* Region `operand` (in before out) of a task. */
static inline int mgl_task_region(const mgl_task *task, int operand)
{
    return task->in.first + operand;
}

static inline bool mgl_dtype_is_float(mgl_dtype dtype)
{
    return dtype == MGL_F32 || dtype == MGL_BF16 || dtype == MGL_F16;
}

/* The number of signals of a counter in an epoch. */
static inline int mgl_counter_signals(const mgl_check *check, int counter)
{
    return check->producer_first[counter + 1] - check->producer_first[counter];
}

/* The number of elements of a granule. */
static inline int64_t mgl_granule_elements(mgl_dtype dtype)
{
    return MGL_GRANULE_BYTES / (int64_t)mgl_dtype_size(dtype);
}

/* Whether the words of a buffer are flag words, which encode whether they were written. */
static inline bool mgl_buffer_is_flagged(const mgl_buffer *buffer)
{
    return buffer->sets > 1;
}

/* Length of a fixed range. */
static inline int64_t mgl_range_length(const mgl_range *range)
{
    return range->hi - range->lo;
}

/* Whether two regions of one buffer have an element in common in some epoch. Two different shares
 * of the rows are disjoint if their share counts are equal; other shares may overlap. Split rows
 * and unsplit rows are disjoint, because every queue has the same row table in an epoch. A check
 * spends most of its time in this function. */
static inline bool mgl_region_overlaps(const mgl_region *a, const mgl_region *b, int rank)
{
    for (int d = 0; d < rank; d++) {
        const mgl_range *x = &a->ranges[d], *y = &b->ranges[d];
        if (x->kind == MGL_RANGE_FIXED && y->kind == MGL_RANGE_FIXED) {
            if (x->hi <= y->lo || y->hi <= x->lo)
                return false;
        } else if ((x->kind == MGL_RANGE_PAST && y->kind == MGL_RANGE_NOW) ||
                   (x->kind == MGL_RANGE_NOW && y->kind == MGL_RANGE_PAST)) {
            return false;
        } else if (mgl_ranges_are_disjoint_parts(x, y)) {
            return false;
        }
    }
    return true;
}

#endif

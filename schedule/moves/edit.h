/*
 * What the moves share: the part that each task of a program plays, and a program that can be
 * edited. Private to schedule/moves*.c.
 *
 * An edited program is a copy of the one that moves were asked of, with a list of tasks for each
 * queue. A task is changed by a new one in its place: tasks, regions, segments and edges are only
 * ever appended to the copy, and what no queue lists any more is left behind. mgl_edit_build then
 * makes the program anew from the lists, as lowering would: tape offsets and paddings, thresholds,
 * indices.
 *
 * Every function that returns mgl_status fills e->err.
 */
#ifndef MGL_SCHEDULE_MOVES_EDIT_H
#define MGL_SCHEDULE_MOVES_EDIT_H

#include "schedule/moves/moves.h"

/* ---- parts (moves/roles.c) ------------------------------------------------------------------ */

/* The step of a task: mgl_step, merge, or one of these. */
enum {
    MGL_EDIT_MERGE = MGL_MOVE_STEP_MERGE,
    MGL_EDIT_EMBED,
    MGL_EDIT_CLEAR,
    MGL_EDIT_ENTER,
    MGL_EDIT_SAMPLE,
    MGL_EDIT_DRAW,
    MGL_EDIT_OTHER /* a task that is not as lowering makes it: moves leave it alone */
};

typedef struct mgl_role {
    int layer; /* of the model; 0 of enter and embed, `layers` of head and sample */
    int step;
} mgl_role;

/* The role of every task (task_count). Names in the text do not count: a product is known by its
 * tensor's name in the checkpoint, the others by whom they hear of, and a clear by who writes its
 * words. */
mgl_status mgl_roles_find(const mgl_program *program, mgl_role *out, mgl_error *err);

/* Whether a task streams weights, or copies columns of the embedding: its work is columns. */
bool mgl_role_has_columns(int step);
/* What tasks of a step are ordered by: their first column; heads, then splits. */
int64_t mgl_task_first(const mgl_program *program, int task, int step);
/* Columns of a task that has columns. */
mgl_range mgl_task_columns(const mgl_program *program, const mgl_task *task);
/* Row groups of such a task. */
int64_t mgl_task_groups(const mgl_program *program, const mgl_task *task);

/* ---- the edited program (moves/edit.c) ------------------------------------------------------ */

typedef struct mgl_edit_list {
    int *items; /* (count) */
    size_t count, capacity;
} mgl_edit_list;

enum {
    MGL_EDIT_ALL = -1 /* a threshold: all signals of an epoch, however many that will be */
};

typedef struct mgl_edit {
    mgl_program *p;        /* the copy; the runs of its queues mean nothing */
    mgl_edit_list *queues; /* (queue_count) tasks of each queue, in order */
    mgl_role *roles;       /* (tasks of p) */
    size_t role_count, role_capacity;
    mgl_edit_list buffers;  /* in the order in which they will be declared */
    mgl_edit_list counters; /* likewise */
    bool *was_used;         /* (declared counters, then buffers, at the start) somebody names it */
    int old_counters, old_buffers;
    const char *move; /* the move at hand, for messages */
    mgl_error *err;
} mgl_edit;

/* Release with mgl_edit_close, after a failure too. */
mgl_status mgl_edit_open(mgl_edit *e, const mgl_program *program, mgl_error *err);
void mgl_edit_close(mgl_edit *e);
mgl_status mgl_edit_build(mgl_edit *e, mgl_program **out);

/* MGL_BAD_INPUT: the move does not fit, and why. */
mgl_status mgl_edit_refuse(mgl_edit *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
mgl_status mgl_edit_no_memory(mgl_edit *e);

/* Tasks of a queue: at a place, taken away, put at a place. */
static inline int mgl_edit_at(const mgl_edit *e, int queue, size_t place)
{
    return e->queues[queue].items[place];
}
mgl_status mgl_edit_insert(mgl_edit *e, int queue, size_t place, int task);
void mgl_edit_remove(mgl_edit *e, int queue, size_t place);
/* Where a task of that role and first column would stand on the queue as lowering orders them. */
size_t mgl_edit_place(const mgl_edit *e, int queue, mgl_role role, int64_t first);
/* Puts the task there. */
mgl_status mgl_edit_put(mgl_edit *e, int queue, int task);

/* The places of the queue's tasks of a step, in order; at most `most` of them. How many there are.
 */
size_t mgl_edit_find(const mgl_edit *e, int queue, int layer, int step, size_t *places,
                     size_t most);

/* A new task with a role of its own; then regions, segments and edges are added to e->p. -1: no
 * memory. */
int mgl_edit_new(mgl_edit *e, mgl_op op, mgl_role role);
/* A new task like another one. */
int mgl_edit_copy(mgl_edit *e, int task);

/* What a task waits for and signals. */
enum { MGL_EDIT_EDGES = 256 };
typedef struct mgl_edges {
    mgl_wait waits[MGL_EDIT_EDGES]; /* (wait_count) */
    int signals[MGL_EDIT_EDGES];    /* (signal_count) */
    int wait_count, signal_count;
} mgl_edges;
/* False: there are more than have room, one less than MGL_EDIT_EDGES. */
bool mgl_edit_get_edges(const mgl_edit *e, int task, mgl_edges *out);
/* The task at that place is one with these edges. */
mgl_status mgl_edit_set_edges(mgl_edit *e, int queue, size_t place, const mgl_edges *edges);

/* Tasks of a step in a layer, in the order of what comes first. */
typedef struct mgl_edit_task {
    int task, queue;
} mgl_edit_task;
typedef struct mgl_edit_tasks {
    mgl_edit_task *items; /* (count) release with mgl_free */
    size_t count, capacity;
} mgl_edit_tasks;
mgl_status mgl_edit_collect(mgl_edit *e, int layer, int step, mgl_edit_tasks *out);

/* The name that the format gives, with a number behind it where it is taken. */
int mgl_edit_add_counter(mgl_edit *e, size_t place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int mgl_edit_add_buffer(mgl_edit *e, size_t place, const mgl_buffer *like, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The place of a counter or a buffer in its list. */
size_t mgl_edit_index(const mgl_edit_list *list, int item);

static inline mgl_region *mgl_edit_in(const mgl_edit *e, int task, int i)
{
    return &e->p->regions[e->p->tasks[task].in.first + i];
}
static inline mgl_region *mgl_edit_out(const mgl_edit *e, int task, int i)
{
    return &e->p->regions[e->p->tasks[task].out.first + i];
}

/* Whether the step is of a layer and known to the program; the first and last layer that a move
 * means. */
mgl_status mgl_edit_layers(mgl_edit *e, const mgl_move *move, int *first, int *end);
mgl_status mgl_edit_check_queue(mgl_edit *e, int queue);

/* ---- what moves leave behind them (moves/mend.c) --------------------------------------------- */

/* The queue's clears of a buffer are those of the words that its tasks write. */
mgl_status mgl_edit_mend_clears(mgl_edit *e, int queue, int layer, int buffer);
/* Clears of one layer that stand side by side with the one at that place become one, with the
 * regions in the order in which the queue writes them. */
mgl_status mgl_edit_join_clears(mgl_edit *e, int queue, size_t place);
/* All of those that have to do with what a task like this one writes. */
mgl_status mgl_edit_mend_like(mgl_edit *e, int queue, int layer, int task);
/* On every queue. */
mgl_status mgl_edit_mend_buffer(mgl_edit *e, int layer, int buffer);
/* The parts of the running argmax are the head's tasks in the order of the vocabulary. */
mgl_status mgl_edit_mend_heads(mgl_edit *e);
/* Sample hears of the end of every queue. */
mgl_status mgl_edit_mend_ends(mgl_edit *e);

/* ---- what a program has before a move -------------------------------------------------------- */

/* The queues [*from, *to) to which lowering would have dealt the step's tasks of a layer so.
 * False: to none. */
bool mgl_edit_find_deal(mgl_edit *e, int layer, int step, int *from, int *to);
/* Splits of a layer's attention; 0: it has none that all heads have. */
int mgl_edit_splits(mgl_edit *e, int layer);
/* The flagged buffer that others read of the step; -1: there is none. */
int mgl_edit_flagged(const mgl_edit *e, int layer, int step);
/* Counters that the step's tasks signal for others than sample, or of the head for sample; in
 * order. */
mgl_status mgl_edit_step_counters(mgl_edit *e, int layer, int step, mgl_edit_list *out);
/* Where sample is, the last task of its queue; the queue is -1 where there is none. */
size_t mgl_edit_find_sample(const mgl_edit *e, int *queue);

/* ---- the moves ------------------------------------------------------------------------------- */

mgl_status mgl_move_rows(mgl_edit *e, const mgl_move *move);
mgl_status mgl_move_queues(mgl_edit *e, const mgl_move *move);
mgl_status mgl_move_shift(mgl_edit *e, const mgl_move *move);
mgl_status mgl_move_place(mgl_edit *e, const mgl_move *move);
mgl_status mgl_move_clear(mgl_edit *e, const mgl_move *move);
mgl_status mgl_move_sample(mgl_edit *e, const mgl_move *move);
mgl_status mgl_move_splits(mgl_edit *e, const mgl_move *move);
mgl_status mgl_move_sets(mgl_edit *e, const mgl_move *move);
mgl_status mgl_move_coarser(mgl_edit *e, const mgl_move *move);
mgl_status mgl_move_finer(mgl_edit *e, const mgl_move *move);
mgl_status mgl_move_counted(mgl_edit *e, const mgl_move *move);
mgl_status mgl_move_flagged(mgl_edit *e, const mgl_move *move);

#endif

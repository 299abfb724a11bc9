/*
 * An editable copy of a program, and the role (layer and step) of each of its tasks. Shared by the
 * files of schedule/moves.
 *
 * mgl_edit_open copies a program and makes a list of tasks for each queue. To change a task, a move
 * appends a new task and puts it into the list in place of the old one. Tasks, regions, segments
 * and edges are only appended; those that no list uses are dropped at the end. mgl_edit_build then
 * builds a new program from the lists as lowering would, with new tape offsets, padding, thresholds
 * and indices.
 *
 * Every function that returns mgl_status fills e->err.
 */
#ifndef MGL_SCHEDULE_MOVES_EDIT_H
#define MGL_SCHEDULE_MOVES_EDIT_H

#include "schedule/moves/moves.h"

/* ---- roles (moves/roles.c) ------------------------------------------------------------------ */

/* The step of a task: mgl_step, merge, or one of these. */
enum {
    MGL_EDIT_MERGE = MGL_MOVE_STEP_MERGE,
    MGL_EDIT_EMBED,
    MGL_EDIT_CLEAR,
    MGL_EDIT_ENTER,
    MGL_EDIT_SAMPLE,
    MGL_EDIT_DRAW,
    MGL_EDIT_OTHER /* a task that differs from what lowering emits; moves do not change it */
};

typedef struct mgl_role {
    int layer; /* layer of the model; 0 for enter and embed, `layers` for head and sample */
    int step;
} mgl_role;

/* Finds the role of every task (task_count). Names of the text form are ignored: a product is
 * identified by its tensor's name in the checkpoint, attention and merges by their producers,
 * and a clear by the writer of its words. */
mgl_status mgl_roles_find(const mgl_program *program, mgl_role *out, mgl_error *err);

/* Whether tasks of the step stream weights or copy embedding columns: their work is columns. */
bool mgl_role_has_columns(int step);
/* Sort key of tasks of a step: their first column, or head and split. */
int64_t mgl_task_first(const mgl_program *program, int task, int step);
/* Columns of a task that has columns. */
mgl_range mgl_task_columns(const mgl_program *program, const mgl_task *task);
/* Row groups of a task that has columns. */
int64_t mgl_task_groups(const mgl_program *program, const mgl_task *task);

/* ---- the edited program (moves/edit.c) ------------------------------------------------------ */

typedef struct mgl_edit_list {
    int *items; /* (count) */
    size_t count, capacity;
} mgl_edit_list;

enum {
    MGL_EDIT_ALL = -1 /* as a threshold: all signals of an epoch, counted by mgl_edit_build */
};

typedef struct mgl_edit {
    mgl_program *p;        /* the copy; its queues' ranges are not used */
    mgl_edit_list *queues; /* (queue_count) tasks of each queue, in order */
    mgl_role *roles;       /* (tasks of p) */
    size_t role_count, role_capacity;
    mgl_edit_list buffers;  /* in the order of their declarations */
    mgl_edit_list counters; /* in the order of their declarations */
    bool *was_used;         /* (original counters, then buffers) some task used it */
    int old_counters, old_buffers;
    const char *move; /* the current move, for messages */
    mgl_error *err;
} mgl_edit;

/* Release with mgl_edit_close, also after a failure. */
mgl_status mgl_edit_open(mgl_edit *e, const mgl_program *program, mgl_error *err);
void mgl_edit_close(mgl_edit *e);
mgl_status mgl_edit_build(mgl_edit *e, mgl_program **out);

/* Fails with MGL_BAD_INPUT and the reason why the move does not fit. */
mgl_status mgl_edit_refuse(mgl_edit *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
mgl_status mgl_edit_no_memory(mgl_edit *e);

/* Access to the tasks of a queue by place: get, insert, remove. */
static inline int mgl_edit_at(const mgl_edit *e, int queue, size_t place)
{
    return e->queues[queue].items[place];
}
mgl_status mgl_edit_insert(mgl_edit *e, int queue, size_t place, int task);
void mgl_edit_remove(mgl_edit *e, int queue, size_t place);
/* The place on the queue where lowering would put a task of that role and first column. */
size_t mgl_edit_place(const mgl_edit *e, int queue, mgl_role role, int64_t first);
/* Inserts the task at that place. */
mgl_status mgl_edit_put(mgl_edit *e, int queue, int task);

/* Collects the places of the queue's tasks of a step, in order, at most `most`. Returns their
 * number. */
size_t mgl_edit_find(const mgl_edit *e, int queue, int layer, int step, size_t *places,
                     size_t most);

/* Appends a new task with a role; the caller then adds regions, segments and edges to e->p. -1:
 * no memory. */
int mgl_edit_new(mgl_edit *e, mgl_op op, mgl_role role);
/* Appends a copy of a task. -1: no memory. */
int mgl_edit_copy(mgl_edit *e, int task);

/* The waits and signals of a task. */
enum { MGL_EDIT_EDGES = 256 };
typedef struct mgl_edges {
    mgl_wait waits[MGL_EDIT_EDGES]; /* (wait_count) */
    int signals[MGL_EDIT_EDGES];    /* (signal_count) */
    int wait_count, signal_count;
} mgl_edges;
/* Reads a task's edges. False: the task has more than MGL_EDIT_EDGES - 1 waits or signals. */
bool mgl_edit_get_edges(const mgl_edit *e, int task, mgl_edges *out);
/* Replaces the task at a place by a copy with these edges. */
mgl_status mgl_edit_set_edges(mgl_edit *e, int queue, size_t place, const mgl_edges *edges);

/* Collects the tasks of a step in a layer, sorted by mgl_task_first. */
typedef struct mgl_edit_task {
    int task, queue;
} mgl_edit_task;
typedef struct mgl_edit_tasks {
    mgl_edit_task *items; /* (count) release with mgl_free */
    size_t count, capacity;
} mgl_edit_tasks;
mgl_status mgl_edit_collect(mgl_edit *e, int layer, int step, mgl_edit_tasks *out);

/* Declares a counter or buffer with the formatted name, with a number appended if the name is
 * taken. */
int mgl_edit_add_counter(mgl_edit *e, size_t place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int mgl_edit_add_buffer(mgl_edit *e, size_t place, const mgl_buffer *like, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The index of a counter or buffer in its list. */
size_t mgl_edit_index(const mgl_edit_list *list, int item);

static inline mgl_region *mgl_edit_in(const mgl_edit *e, int task, int i)
{
    return &e->p->regions[e->p->tasks[task].in.first + i];
}
static inline mgl_region *mgl_edit_out(const mgl_edit *e, int task, int i)
{
    return &e->p->regions[e->p->tasks[task].out.first + i];
}

/* The layers [*first, *end) of a move. Fails if the program has no such layer. */
mgl_status mgl_edit_layers(mgl_edit *e, const mgl_move *move, int *first, int *end);
mgl_status mgl_edit_check_queue(mgl_edit *e, int queue);

/* ---- repairs after a move (moves/mend.c) ----------------------------------------------------- */

/* Merges adjacent clears of one layer next to the clear at `place` into one, with the regions in
 * the order in which the queue writes them. */
mgl_status mgl_edit_join_clears(mgl_edit *e, int queue, size_t place);
/* Repairs all clears of flagged buffers that a task like this one writes. */
mgl_status mgl_edit_mend_like(mgl_edit *e, int queue, int layer, int task);
/* Repairs the clears of a buffer on every queue. */
mgl_status mgl_edit_mend_buffer(mgl_edit *e, int layer, int buffer);
/* Renumbers the parts of the argmax, so that they follow the head tasks in vocabulary order. */
mgl_status mgl_edit_mend_heads(mgl_edit *e);
/* Makes sample wait for the end of every queue. */
mgl_status mgl_edit_mend_ends(mgl_edit *e);

/* ---- queries about the program before a move ------------------------------------------------- */

/* The place of sample, the last task of its queue. *queue is -1 if there is no sample. */
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

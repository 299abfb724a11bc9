/*
 * The start conditions of a program's tasks, for the cost model (cost.c): one constraint for each
 * threshold of a counter, and one for each flagged region that tasks read. A task starts when all
 * its constraints are met. A constraint is met when enough of the tasks that feed it have ended.
 */
#ifndef MGL_SCHEDULE_COST_CONSTRAINTS_H
#define MGL_SCHEDULE_COST_CONSTRAINTS_H

#include "schedule/program.h"

typedef struct mgl_constraint {
    int counter;       /* -1: a flagged region */
    int64_t threshold; /* of the counter */
    int64_t needs;     /* number of ends of feeding tasks that meet it */
    int readers;       /* first link to a waiting task; -1: none */
} mgl_constraint;

/* An element of a linked list of tasks or constraints. */
typedef struct mgl_constraint_link {
    int to, next; /* next: index of a link; -1 at the end */
} mgl_constraint_link;

typedef struct mgl_constraints {
    mgl_constraint *constraints; /* (count) */
    mgl_constraint_link *links;  /* (link_count) */
    int *feeds; /* (task_count) first link to a constraint that the task feeds; -1: none */
    int *waits; /* (task_count) number of constraints that the task waits for */
    size_t count, link_count, capacity, link_capacity;
} mgl_constraints;

/* Makes the constraints of a program in an epoch whose rows are all of the kind `rows`
 * (MGL_ROWS_UNSPLIT or MGL_ROWS_SPLIT). Waits with threshold 0 concern the previous epoch and make
 * none. Release with mgl_constraints_clear, also after a failure (MGL_NO_MEMORY). */
mgl_status mgl_constraints_make(const mgl_program *program, int rows, mgl_constraints *out,
                                mgl_error *err);
void mgl_constraints_clear(mgl_constraints *constraints);

#endif

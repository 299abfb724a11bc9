/*
 * What the tasks of a program wait for, as gates: one for each threshold of a counter and for each
 * region whose flagged words somebody reads. A task starts when all of its gates are open, a gate
 * opens when enough of the tasks that feed it have ended.
 */
#ifndef MGL_SCHEDULE_COST_CONSTRAINTS_H
#define MGL_SCHEDULE_COST_CONSTRAINTS_H

#include "schedule/program.h"

typedef struct mgl_constraint {
    int counter;       /* -1: flags */
    int64_t threshold; /* of the counter */
    int64_t needs;     /* ends of feeding tasks that open it */
    int readers;       /* first link to a task that waits, -1: none */
} mgl_constraint;

/* An element of a list of tasks or gates. */
typedef struct mgl_constraint_link {
    int to, next; /* next: a link, -1 at the end */
} mgl_constraint_link;

typedef struct mgl_constraints {
    mgl_constraint *constraints; /* (count) */
    mgl_constraint_link *links;  /* (link_count) */
    int *feeds; /* (task_count) first link to a gate that the task feeds, -1: none */
    int *waits; /* (task_count) gates that the task waits for */
    size_t count, link_count, capacity, link_capacity;
} mgl_constraints;

/* Waits with threshold 0 are for the epoch before: no gates. Release with mgl_constraints_clear,
 * after a failure too. */
mgl_status mgl_constraints_make(const mgl_program *program, mgl_constraints *out, mgl_error *err);
void mgl_constraints_clear(mgl_constraints *constraints);

#endif

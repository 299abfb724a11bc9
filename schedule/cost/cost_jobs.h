/*
 * What the tasks of an epoch have to do, as the cost model plays it (cost.c): of a list, of the
 * rows of the epoch, and of what steps cost.
 */
#ifndef MGL_SCHEDULE_COST_COST_JOBS_H
#define MGL_SCHEDULE_COST_COST_JOBS_H

#include "schedule/cost/cost.h"

/* The rows of an epoch. */
typedef struct mgl_cost_epoch {
    int rows;
    bool prompt;    /* they are of one sequence; else each is of another one */
    int wanted;     /* rows that want logits */
    double context; /* earlier positions of each sequence */
    int epochs;     /* of a launch */
} mgl_cost_epoch;

/* What a task is to do, and what became of it. */
typedef struct mgl_cost_job {
    int step;                          /* MGL_STEP_COUNT: none */
    double fixed[MGL_COST_PART_COUNT]; /* us before it comes to its pages */
    int64_t from, to;                  /* bytes of the tape */
    double byte_us;                    /* of products */
    double cache_bytes;
    bool on_tape;                      /* they are [from, to) of it */
    int waits;                         /* gates that are not open */
    double ready;                      /* when the last of them opened */
    int last;                          /* the task behind that, -1: none */
    double start, end;                 /* us */
    double parts[MGL_COST_PART_COUNT]; /* their sum is end - start */
} mgl_cost_job;

/* What a queue's loader copies in an epoch. */
typedef struct mgl_cost_tape {
    int64_t bytes;  /* of the tape */
    int64_t stream; /* and of keys and values between its pages */
} mgl_cost_tape;

/* Whether the products of a list are panels: their weights come on pages of their own, of which a
 * task begins a new one. */
bool mgl_cost_has_panels(const mgl_program *list);

/* Fills what there is to do of the jobs (list->task_count, zeros before), and tapes (queue_count).
 * MGL_NO_MEMORY. */
mgl_status mgl_cost_plan_jobs(const mgl_program *list, const mgl_costs *costs,
                              const mgl_cost_epoch *epoch, mgl_cost_job *jobs, mgl_cost_tape *tapes,
                              mgl_error *err);

#endif

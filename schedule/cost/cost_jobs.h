/*
 * The work of an epoch's tasks for the cost model (cost.c): bytes and times of each task, from the
 * list, the rows of the epoch, and the costs of the device.
 */
#ifndef MGL_SCHEDULE_COST_COST_JOBS_H
#define MGL_SCHEDULE_COST_COST_JOBS_H

#include "schedule/cost/cost.h"

/* The rows of an epoch. */
typedef struct mgl_cost_epoch {
    int rows;
    bool prompt;    /* the rows belong to one sequence; otherwise each row has its own sequence */
    int wanted;     /* rows that need logits */
    double context; /* earlier positions of each sequence */
    int epochs;     /* epochs of a launch */
} mgl_cost_epoch;

/* The work of a task, and the result of its simulation. */
typedef struct mgl_cost_job {
    int step;                          /* MGL_STEP_COUNT: no step */
    double fixed[MGL_COST_PART_COUNT]; /* us before the first page */
    int64_t from, to;                  /* bytes of the tape */
    double byte_us;                    /* us of products for a byte */
    double cache_bytes;
    bool on_tape;                      /* the cache bytes are the tape's [from, to) */
    int waits;                         /* constraints that are not met */
    double ready;                      /* time when the last of them was met */
    int last;                          /* the task that met it; -1: none */
    double start, end;                 /* us */
    double parts[MGL_COST_PART_COUNT]; /* the sum is end - start */
} mgl_cost_job;

/* The copies of a queue's loader in an epoch. */
typedef struct mgl_cost_tape {
    int64_t bytes;  /* bytes of the tape */
    int64_t stream; /* the same plus keys and values between its pages */
} mgl_cost_tape;

/* Whether the products of a list use panels. Their weights use a part of the ring's pages, and
 * each task starts a new page. */
bool mgl_cost_has_panels(const mgl_program *list);

/* The kind of the epoch's rows: MGL_ROWS_UNSPLIT or MGL_ROWS_SPLIT. All sequences of the epoch have
 * equally many positions, so all rows are of one kind. */
int mgl_cost_rows(const mgl_program *list, const mgl_cost_epoch *epoch);

/* Fills the work of the jobs (list->task_count, zeroed), and tapes (queue_count). MGL_NO_MEMORY. */
mgl_status mgl_cost_make_jobs(const mgl_program *list, const mgl_costs *costs,
                              const mgl_cost_epoch *epoch, mgl_cost_job *jobs, mgl_cost_tape *tapes,
                              mgl_error *err);

#endif

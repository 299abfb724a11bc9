/*
 * The cost model: what a token takes, from the program and the costs of a device alone.
 *
 * One epoch is played through (cost.c): each queue streams its tape through its ring, shares the
 * memory with the others, and runs its tasks in order, each when its input is there. No clock, no
 * device, no chance: the same program, costs and load give the same numbers, bit for bit.
 */
#ifndef MGL_SCHEDULE_COST_COST_H
#define MGL_SCHEDULE_COST_COST_H

#include "schedule/schedule.h"

/* What steps cost on a device. schedule/cost/costs.def has fields, units, devices and values. */
typedef struct mgl_costs {
#define MGL_COST(field, unit, what) double field;
#include "schedule/cost/costs.def"
} mgl_costs;

/* The costs of a device by its name, "NVIDIA H200". MGL_BAD_INPUT, with the devices that there are,
 * when they have not been measured. */
mgl_status mgl_costs_find(const char *device, mgl_costs *out, mgl_error *err);

/* The same of a device that a target means: the one with that name, which must have the target's
 * architecture, or, where name is NULL, the first of the architecture. Its name to *device (static
 * storage): whoever shows a number says whose it is. */
mgl_status mgl_costs_find_for(const mgl_target *target, const char *name, const char **device,
                              mgl_costs *out, mgl_error *err);

/* What is decoded. */
typedef struct mgl_cost_load {
    int batch;      /* sequences, a row each */
    double context; /* positions in the cache of each, the mean over the launch's tokens */
    int tokens;     /* of a sequence, in a launch */
} mgl_cost_load;

/* What the time of a token goes into, along the chain of what had to wait for each other.
 *  enum, name */
#define MGL_COST_PARTS(X)                                                                          \
    X(STREAM, "stream")     /* waiting for the tape */                                             \
    X(PRODUCTS, "products") /* with weights that have landed */                                    \
    X(EDGE, "edge")         /* from a task's end to the start of one that waits for it */          \
    X(TASK, "task")         /* starting tasks, reading their inputs, writing their outputs */      \
    X(ATTEND, "attend")     /* attention and merge, but for the cache */                           \
    X(CACHE, "cache")       /* attention's, going through the KV cache */                          \
    X(TOKEN, "token")       /* choosing tokens and opening the next epoch */                       \
    X(LAUNCH, "launch")     /* a token's share of its launch */

typedef enum mgl_cost_part {
#define MGL_X(id, name) MGL_COST_##id,
    MGL_COST_PARTS(MGL_X)
#undef MGL_X
        MGL_COST_PART_COUNT
} mgl_cost_part;
const char *mgl_cost_part_name(mgl_cost_part part);

/* A step; the last of a cost's steps, number MGL_STEP_COUNT, is what belongs to none. */
typedef struct mgl_cost_step {
    double us;    /* on the chain */
    double bytes; /* of all tapes; attention: of the cache */
    double most;  /* of one queue's, the one that has most */
} mgl_cost_step;

/* The tasks of an op that name one variant. */
typedef struct mgl_cost_variant {
    int tasks;    /* of an epoch, on all queues */
    double us;    /* on the chain */
    double bytes; /* that they read, of tapes and cache */
} mgl_cost_variant;

typedef struct mgl_cost {
    double us;                         /* an epoch: a token of all sequences together */
    double parts[MGL_COST_PART_COUNT]; /* us; their sum is `us` */
    mgl_cost_step steps[MGL_STEP_COUNT + 1];
    double tape_bytes, cache_bytes; /* that are read for a token */
    double floor_us;                /* that reading them takes, if there were nothing else */
    mgl_cost_variant variants[MGL_OP_COUNT][MGL_VARIANT_COUNT];
} mgl_cost;

/* The list that an epoch of so many rows is of: the program itself, or its second list. */
const mgl_program *mgl_cost_list(const mgl_program *program, int rows);

/* Predicts an epoch that decodes, of the list that the batch is for. The program should be one that
 * the validator accepts. MGL_USAGE: a load that the program has no room for; MGL_BAD_INPUT: a
 * program whose tasks wait for each other. */
mgl_status mgl_schedule_cost(const mgl_program *program, const mgl_costs *costs,
                             const mgl_cost_load *load, mgl_cost *out, mgl_error *err);

/* An epoch that reads a part of one sequence's prompt. */
typedef struct mgl_cost_prompt {
    int rows;       /* tokens of it */
    double context; /* positions in the cache before */
    bool ends;      /* it has the prompt's last token, and the next one is chosen */
    int epochs;     /* of a launch */
} mgl_cost_prompt;

/* Predicts such an epoch, of the list that so many rows are for; `us` is the whole epoch. Fails as
 * mgl_schedule_cost. */
mgl_status mgl_schedule_cost_prompt(const mgl_program *program, const mgl_costs *costs,
                                    const mgl_cost_prompt *prompt, mgl_cost *out, mgl_error *err);

/* A task of the epoch as it was played: it is at work from `start` to `end`. */
typedef struct mgl_cost_span {
    int queue;         /* that runs it */
    int step;          /* mgl_step; MGL_STEP_COUNT: what belongs to none */
    double start, end; /* us since the epoch began */
} mgl_cost_span;

/* The play of mgl_schedule_cost, with each task's span too: spans (task_count of mgl_cost_list) in
 * the order of that list's tasks, so those of one queue stand together and follow each other. */
mgl_status mgl_schedule_cost_timeline(const mgl_program *program, const mgl_costs *costs,
                                      const mgl_cost_load *load, mgl_cost *out,
                                      mgl_cost_span *spans, mgl_error *err);

#endif

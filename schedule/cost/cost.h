/*
 * The cost model: predicts the time of a token from the program and the measured costs of a device.
 *
 * cost.c runs a discrete-event simulation of one epoch. Each queue streams its tape through its
 * ring, shares the memory bandwidth with the other queues, and runs its tasks in order, each when
 * its input is available. The result is deterministic: the same program, costs and load give the
 * same numbers, bit for bit. Called by campaigns (autotune), `explain` and the tests.
 */
#ifndef MGL_SCHEDULE_COST_COST_H
#define MGL_SCHEDULE_COST_COST_H

#include "schedule/schedule.h"

/* Measured costs of a device. schedule/cost/costs.def lists the fields, units, devices and
 * values. */
typedef struct mgl_costs {
#define MGL_COST(field, unit, what) double field;
#include "schedule/cost/costs.def"
} mgl_costs;

/* The costs of a device by its name, "NVIDIA H200". MGL_BAD_INPUT with the list of known devices
 * if the device has not been measured. */
mgl_status mgl_costs_find(const char *device, mgl_costs *out, mgl_error *err);

/* The costs of a target's device: the device of that name, whose architecture must be the
 * target's; or, if name is NULL, the first device of the architecture. Sets *device to its name
 * (static storage), so that output can name the device. */
mgl_status mgl_costs_find_for(const mgl_target *target, const char *name, const char **device,
                              mgl_costs *out, mgl_error *err);

/* The decoding load. */
typedef struct mgl_cost_load {
    int batch;      /* sequences, with one row each */
    double context; /* positions in the cache of each sequence, averaged over the tokens of the
                       launch */
    int tokens;     /* tokens of a sequence in a launch */
} mgl_cost_load;

/* Parts of a token's time, summed along the critical path of the epoch. MGL_X(enum, name) */
#define MGL_COST_PARTS(X)                                                                          \
    X(STREAM, "stream")     /* waiting for the tape */                                             \
    X(PRODUCTS, "products") /* multiplying weights that have arrived */                            \
    X(EDGE, "edge")         /* from a task's end to the start of a waiting task */                 \
    X(TASK, "task")         /* task starts, reading inputs, writing outputs */                     \
    X(ATTEND, "attend")     /* attention and merge, without the cache */                           \
    X(CACHE, "cache")       /* attention reading the KV cache */                                   \
    X(TOKEN, "token")       /* sampling and starting the next epoch */                             \
    X(LAUNCH, "launch")     /* a token's share of the launch */

typedef enum mgl_cost_part {
#define MGL_X(id, name) MGL_COST_##id,
    MGL_COST_PARTS(MGL_X)
#undef MGL_X
        MGL_COST_PART_COUNT
} mgl_cost_part;
const char *mgl_cost_part_name(mgl_cost_part part);

/* Cost of a step. The last step of a cost, MGL_STEP_COUNT, covers tasks without a step. */
typedef struct mgl_cost_step {
    double us;    /* on the critical path */
    double bytes; /* read from all tapes; attention: from the cache */
    double most;  /* the largest amount of a queue */
} mgl_cost_step;

/* Cost of the tasks with one op and variant. */
typedef struct mgl_cost_variant {
    int tasks;    /* number in an epoch, on all queues */
    double us;    /* on the critical path */
    double bytes; /* read from tapes and cache */
} mgl_cost_variant;

typedef struct mgl_cost {
    double us;                         /* an epoch: one token of every sequence */
    double parts[MGL_COST_PART_COUNT]; /* us; the sum is `us` */
    mgl_cost_step steps[MGL_STEP_COUNT + 1];
    double tape_bytes, cache_bytes; /* bytes read for a token */
    double floor_us;                /* memory-bound minimum: time to read these bytes */
    mgl_cost_variant variants[MGL_OP_COUNT][MGL_VARIANT_COUNT];
} mgl_cost;

/* The list that runs an epoch of `rows` rows: the program itself, or its second list. */
const mgl_program *mgl_cost_list(const mgl_program *program, int rows);

/* Predicts a decoding epoch of the list for the batch. The validator should have accepted the
 * program. MGL_USAGE: the load exceeds the program's limits. MGL_BAD_INPUT: the program has a
 * deadlock. */
mgl_status mgl_schedule_cost(const mgl_program *program, const mgl_costs *costs,
                             const mgl_cost_load *load, mgl_cost *out, mgl_error *err);

/* An epoch that reads a part of one sequence's prompt. */
typedef struct mgl_cost_prompt {
    int rows;       /* prompt tokens in the epoch */
    double context; /* positions already in the cache */
    bool ends;      /* the epoch includes the prompt's last token and samples the next token */
    int epochs;     /* epochs of the launch */
} mgl_cost_prompt;

/* Predicts a prompt epoch of the list for that many rows; `us` is the whole epoch. Fails like
 * mgl_schedule_cost. */
mgl_status mgl_schedule_cost_prompt(const mgl_program *program, const mgl_costs *costs,
                                    const mgl_cost_prompt *prompt, mgl_cost *out, mgl_error *err);

/* The execution of a task in the simulation. */
typedef struct mgl_cost_span {
    int queue;         /* that runs it */
    int step;          /* mgl_step; MGL_STEP_COUNT: no step */
    double start, end; /* us since the epoch began */
} mgl_cost_span;

/* The same as mgl_schedule_cost, and fills spans (task_count of mgl_cost_list) in the order of
 * the list's tasks, so that spans of one queue are adjacent and in order. */
mgl_status mgl_schedule_cost_timeline(const mgl_program *program, const mgl_costs *costs,
                                      const mgl_cost_load *load, mgl_cost *out,
                                      mgl_cost_span *spans, mgl_error *err);

/* Returns the bytes of the weights and scales of all segments, in their formats. *padding: the
 * other bytes of the segments on the tapes and of the row factors in f32. */
double mgl_cost_weight_bytes(const mgl_program *program, double *padding);

#endif

/*
 * Harness programs: small models whose complete programs run a unit's code. The correctness check
 * of a micro-kernel runs them. The validator accepts each program with its meaning. Together they
 * cover the limits of an op's scalars, odd sizes, one row and many, splits, each variant, and the
 * kernel's switches: biases, norms of q and k, f16, two task lists, and penalties.
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_HARNESS_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_HARNESS_H

#include "autotune/candidates/gate.h"
#include "autotune/kernels/gates/unit.h"

/* One harness program; the model is synthetic, as in eval/synthetic.h. */
typedef struct mgl_harness {
    const char *name;
    mgl_geometry geometry;
    int sequences, capacity;
    const char *config;    /* knobs of a ScheduleConfig; NULL: the default */
    const char *workloads; /* mgl_workloads_parse */
    bool general;          /* all tasks use the variant `general`, which supports every shape */
    int left;              /* number of queues without products of a layer; 0: the default of
                            * lowering */
    bool kind;       /* a special program: runs for every candidate whose code it may execute */
    bool mixed;      /* every second task of each op uses the variant `general` */
    unsigned extras; /* bits of mgl_extras */
    bool half;       /* weights, cache and exchanged values of 16 bits are f16; false: bf16 */
    bool penalties;
    unsigned without; /* bits of mgl_synthetic_kind: kinds of values to leave out */
} mgl_harness;

int mgl_harness_count(void);
const mgl_harness *mgl_harness_get(int index);

/* A harness program as a runner needs it: the subject, and the program as a candidate. Release
 * with mgl_harness_clear. */
typedef struct mgl_harness_set {
    const mgl_harness *of;
    mgl_subject subject;
    mgl_candidate program; /* one program, with the built-in kernel */
} mgl_harness_set;
mgl_status mgl_harness_open(const mgl_harness *harness, const mgl_target *target,
                            mgl_harness_set *out, mgl_error *err);
/* Opens a model of a shape of eval/synthetic.h with `layers` layers (0: all), and one program
 * for each batch size among the workloads. */
mgl_status mgl_harness_open_shape(const char *shape, int layers, const mgl_workloads *workloads,
                                  int capacity, const mgl_target *target, mgl_harness_set *out,
                                  mgl_error *err);
/* Opens harness programs for any config, with all layers of the config. */
mgl_status mgl_harness_open_config(const mgl_config *config, const mgl_workloads *workloads,
                                   int capacity, const mgl_target *target, mgl_harness_set *out,
                                   mgl_error *err);
void mgl_harness_clear(mgl_harness_set *set);

/* Changes all tasks to the variant `general`. */
void mgl_harness_make_general(mgl_harness_set *set);

/* Whether a program of the set has tasks that run the unit's code. */
bool mgl_harness_runs(const mgl_harness_set *set, const mgl_kernel_unit *unit);

/* Whether a program of the set has tasks that may run the unit's code, including tasks that run it
 * for some row counts only (mgl_correctness_may_run). */
bool mgl_harness_may_run(const mgl_harness_set *set, const mgl_kernel_unit *unit);

#endif

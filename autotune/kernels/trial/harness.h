/*
 * Harness programs: small models whose complete programs run a unit's code. The correctness check
 * of a micro-kernel runs them. The validator accepts each program with its meaning. Together they
 * cover the corners of an op's scalars, odd sizes, one row and many, splits, each variant, and the
 * kernel's switches: biases, norms of q and k, f16, two task lists, and penalties.
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_HARNESS_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_HARNESS_H

#include "autotune/kernels/gates/unit.h"
#include "autotune/search/gate.h"

/* One of them: models are made of numbers, as those of eval/synthetic.h. */
typedef struct mgl_harness {
    const char *name;
    mgl_geometry geometry;
    int sequences, capacity;
    const char *config;    /* of a ScheduleConfig, its knobs; NULL: the default one */
    const char *workloads; /* mgl_workloads_parse */
    bool general;          /* all tasks by the variant that takes every shape */
    int left;              /* queues that have none of a layer's products; 0: as lowering has it */
    bool kind;  /* another kind of program: each candidate whose code it may run is checked in it */
    bool mixed; /* the tasks of every second queue by the variant that takes every shape */
    unsigned extras; /* bits of mgl_extras */
    bool half;       /* weights, cache and exchanged values of 16 bits are f16; false: bf16 */
    bool penalties;
    unsigned without; /* bits of mgl_synthetic_kind: kinds of values that it is not run with */
} mgl_harness;

int mgl_harness_count(void);
const mgl_harness *mgl_harness_get(int index);

/* What a lab needs of one: its subject, and the program as a candidate. Release with
 * mgl_harness_clear. */
typedef struct mgl_harness_set {
    const mgl_harness *of;
    mgl_subject subject;
    mgl_candidate program; /* one program, whose kernel is as it was built */
} mgl_harness_set;
mgl_status mgl_harness_open(const mgl_harness *harness, const mgl_target *target,
                            mgl_harness_set *out, mgl_error *err);
/* A model of a shape of eval/synthetic.h, of so many layers (0: all), with a program for each
 * number of sequences among the workloads. */
mgl_status mgl_harness_open_shape(const char *shape, int layers, const mgl_workloads *workloads,
                                  int capacity, const mgl_target *target, mgl_harness_set *out,
                                  mgl_error *err);
/* The same of any config, with all its layers. */
mgl_status mgl_harness_open_config(const mgl_config *config, const mgl_workloads *workloads,
                                   int capacity, const mgl_target *target, mgl_harness_set *out,
                                   mgl_error *err);
void mgl_harness_clear(mgl_harness_set *set);

/* Has all tasks done by the variant that takes every shape. */
void mgl_harness_make_general(mgl_harness_set *set);

/* Whether a program of the set has tasks that run the unit's code. */
bool mgl_harness_runs(const mgl_harness_set *set, const mgl_kernel_unit *unit);

/* Or such that run it for some rows, as a ladder does (mgl_correctness_may_run). */
bool mgl_harness_may_run(const mgl_harness_set *set, const mgl_kernel_unit *unit);

#endif

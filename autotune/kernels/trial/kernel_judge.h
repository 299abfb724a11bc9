/*
 * All gates of a micro-kernel, those before a device (kernel/kernel.h) and those on it
 * (kernel/trial.h), as the command line and agents pass a text through them, and what is told of
 * the verdict.
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_KERNEL_JUDGE_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_KERNEL_JUDGE_H

#include "autotune/kernels/gates/overlay.h"
#include "autotune/kernels/trial/trial.h"
#include "base/json_out.h"

/* ---- the device ------------------------------------------------------------------------------ */

typedef struct mgl_kernel_device_options {
    const char *device;            /* "none", "cuda", "cuda:1"; NULL: "none" */
    const char *shape, *workloads; /* of the models, as the command line has them; NULL: the op's */
    const char *checkpoint;        /* whose replies have to stay the same; NULL: none */
    const char *turns;             /* of mgl_trial_options; NULL: nobody else judges there */
    bool no_sandbox;
    mgl_trial_depth depth;
    const atomic_int *abort; /* may be NULL */
} mgl_kernel_device_options;

/* The device that judges. Zero-initialise; release with mgl_kernel_device_clear. */
typedef struct mgl_kernel_device {
    bool given; /* false: none */
    char arch[16];
    mgl_overlay overlay;
    mgl_workloads workloads;
    mgl_trial_options options;
} mgl_kernel_device;
/* What was promoted is the incumbent. MGL_USAGE: the device runs no micro-kernel. */
mgl_status mgl_kernel_device_open(const mgl_kernel_device_options *options, mgl_kernel_device *out,
                                  mgl_error *err);
void mgl_kernel_device_clear(mgl_kernel_device *device);

/* ---- the gates ------------------------------------------------------------------------------- */

/* What all gates say. Zero-initialise; release with mgl_kernel_verdict_clear. */
typedef struct mgl_kernel_verdict {
    mgl_outcome outcome;
    const char *diagnostic; /* of one of the two */
    mgl_kernel_result before;
    bool tried;
    mgl_kernel_trial trial;
} mgl_kernel_verdict;
/* The gates before a device: mgl_kernel_verify, which also says that a text was not compiled where
 * the options end before the compiler. */
mgl_status mgl_kernel_judge_before(const mgl_kernel_candidate *candidate,
                                   const mgl_kernel_options *options, mgl_kernel_result *out,
                                   mgl_error *err);
/* The same, and behind them those on a device. */
mgl_status mgl_kernel_judge(const mgl_kernel_candidate *candidate,
                            const mgl_kernel_options *before_device,
                            const mgl_kernel_device *device, mgl_kernel_verdict *out,
                            mgl_error *err);
/* Times a candidate that is right against what runs today; without a text that against itself.
 * Fails without a device. */
mgl_status mgl_kernel_bench(const mgl_kernel_candidate *candidate, const mgl_kernel_device *device,
                            mgl_kernel_verdict *out, mgl_error *err);
void mgl_kernel_verdict_clear(mgl_kernel_verdict *verdict);
/* What the gates found, as members of an object: line, hash, resources, trial. */
void mgl_kernel_put_gates(mgl_json_out *out, const mgl_kernel_verdict *verdict);
/* These and the outcome. `promoted`: it was. */
void mgl_kernel_put_verdict(mgl_json_out *out, const mgl_kernel_unit *unit,
                            const mgl_kernel_verdict *verdict, bool promoted);

/* Puts the candidate into the user's overlay with its evidence, if all gates said OK. */
mgl_status mgl_kernel_promote(const mgl_kernel_candidate *candidate,
                              const mgl_kernel_verdict *verdict, bool *promoted, mgl_error *err);

#endif

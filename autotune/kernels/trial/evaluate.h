/*
 * Evaluation of a micro-kernel: runs all gates, first those without a device (gates/kernel.h), then
 * those on a device (trial.h). Input: a candidate text and options. Output: a verdict, its JSON
 * form, and the promotion into the user's overlay. The command line and the agents' tools call it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_EVALUATE_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_EVALUATE_H

#include "autotune/kernels/gates/overlay.h"
#include "autotune/kernels/trial/trial.h"
#include "base/json_out.h"

/* ---- the device ------------------------------------------------------------------------------ */

typedef struct mgl_kernel_device_options {
    const char *device;            /* "none", "cuda", "cuda:1"; NULL: "none" */
    const char *shape, *workloads; /* shape and workloads of the models, in command-line syntax;
                                    * NULL: those of the op's context */
    const char *checkpoint;        /* model weights whose replies must stay the same; NULL: none */
    const char *device_lock;       /* lock file as in mgl_trial_options; NULL: no other process
                                    * measures on the device */
    bool no_sandbox;
    mgl_trial_depth depth;
    const atomic_int *abort; /* may be NULL */
} mgl_kernel_device_options;

/* The device of the gates. Zero-initialize; release with mgl_kernel_device_clear. */
typedef struct mgl_kernel_device {
    bool given; /* false: no device */
    char arch[16];
    mgl_overlay overlay;
    mgl_workloads workloads;
    mgl_trial_options options;
} mgl_kernel_device;
/* The incumbent includes the promoted texts. MGL_USAGE: the device cannot run micro-kernels. */
mgl_status mgl_kernel_device_open(const mgl_kernel_device_options *options, mgl_kernel_device *out,
                                  mgl_error *err);
void mgl_kernel_device_clear(mgl_kernel_device *device);

/* ---- the gates ------------------------------------------------------------------------------- */

/* The result of all gates. Zero-initialize; release with mgl_kernel_findings_clear. */
typedef struct mgl_kernel_findings {
    mgl_trial_verdict verdict; /* verdict of the last gate that ran */
    mgl_kernel_result before;
    bool tried;
    mgl_kernel_trial trial;
} mgl_kernel_findings;
/* The gates without a device, then the gates on the device. */
mgl_status mgl_kernel_evaluate(const mgl_kernel_candidate *candidate,
                               const mgl_kernel_options *before_device,
                               const mgl_kernel_device *device, mgl_kernel_findings *out,
                               mgl_error *err);
/* Times a correct candidate against the incumbent; without a text, times the incumbent against
 * itself. Fails without a device. */
mgl_status mgl_kernel_bench(const mgl_kernel_candidate *candidate, const mgl_kernel_device *device,
                            mgl_kernel_findings *out, mgl_error *err);
void mgl_kernel_findings_clear(mgl_kernel_findings *findings);
/* Writes the members "outcome", "diagnostic" (or null) and "hint" of an answer. */
void mgl_kernel_put_outcome(mgl_json_out *out, const mgl_trial_verdict *verdict);
/* Writes the findings of the gates as members of an object: line, hash, resources, trial. */
void mgl_kernel_put_gates(mgl_json_out *out, const mgl_kernel_findings *findings);
/* Writes the findings and the outcome. `promoted`: the candidate was promoted. */
void mgl_kernel_put_verdict(mgl_json_out *out, const mgl_kernel_unit *unit,
                            const mgl_kernel_findings *findings, bool promoted);

/* Puts the candidate and its evidence into the user's overlay if the verdict is OK. */
mgl_status mgl_kernel_promote(const mgl_kernel_candidate *candidate,
                              const mgl_kernel_findings *findings, bool *promoted, mgl_error *err);

#endif

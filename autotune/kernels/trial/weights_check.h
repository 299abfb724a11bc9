/*
 * Weights check, the last gate on a device: compares the candidate with the incumbent on a real
 * checkpoint. Both continue the same prompts and score the same texts. The comparison is the same
 * as in a campaign between the default and the winner (real.h). trial.c calls it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_WEIGHTS_CHECK_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_WEIGHTS_CHECK_H

#include "autotune/kernels/trial/trial.h"

/* An opened checkpoint. Zero-initialize; release with mgl_trial_checkpoint_clear. */
typedef struct mgl_trial_checkpoint {
    mgl_harness_set set;   /* programs of the checkpoint's shape: one for one sequence, one for
                            * several */
    mgl_real_texts *texts; /* owned */
} mgl_trial_checkpoint;

/* `path` must outlive the result. MGL_BAD_INPUT and other errors: the checkpoint cannot be used,
 * with the reason. */
mgl_status mgl_trial_checkpoint_open(const char *path, const mgl_target *target,
                                     mgl_trial_checkpoint *out, mgl_error *err);
void mgl_trial_checkpoint_clear(mgl_trial_checkpoint *checkpoint);

/* Runs the set's programs with the sources of the incumbent and of the candidate. Sets outcome,
 * diagnostic and `real` of *out: OK, MODEL_MISMATCH, or the outcome of a runner's check. Fails
 * if the runner cannot be opened or the incumbent fails. */
mgl_status mgl_trial_checkpoint_run(const mgl_trial_options *options,
                                    const mgl_trial_checkpoint *checkpoint,
                                    const mgl_candidate *incumbent, const mgl_candidate *candidate,
                                    const unsigned char nonce[MGL_SHA256_BYTES],
                                    mgl_kernel_trial *out, mgl_error *err);

#endif

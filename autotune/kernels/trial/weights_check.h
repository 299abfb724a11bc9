/*
 * The last of the gates on a device: the user's own weights. The incumbent and the candidate
 * continue the same prompts and score the same texts on a real checkpoint, and are compared as the
 * default and the winner of a campaign are (real.h).
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_WEIGHTS_CHECK_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_WEIGHTS_CHECK_H

#include "autotune/kernels/trial/trial.h"

/* A checkpoint that was looked at. Zero-initialise; release with mgl_trial_checkpoint_clear. */
typedef struct mgl_trial_checkpoint {
    mgl_harness_set set;       /* its shape, with a program for one sequence and one for several */
    mgl_real_texts *texts;     /* owned */
    mgl_real_numbers *numbers; /* owned */
} mgl_trial_checkpoint;

/* `path` must outlive it. MGL_BAD_INPUT and the like: it can not be looked at, and why. */
mgl_status mgl_trial_checkpoint_open(const char *path, const mgl_target *target,
                                     mgl_trial_checkpoint *out, mgl_error *err);
void mgl_trial_checkpoint_clear(mgl_trial_checkpoint *checkpoint);

/* Runs both: the set's programs, with the sources of the incumbent and of the candidate. Sets
 * outcome, diagnostic and `real` of *out: OK, MODEL_MISMATCH, or what a check of the lab says.
 * Fails where the lab can not be opened or the incumbent comes to grief. */
mgl_status mgl_trial_checkpoint_run(const mgl_trial_options *options,
                                    const mgl_trial_checkpoint *checkpoint,
                                    const mgl_candidate *incumbent, const mgl_candidate *candidate,
                                    const unsigned char nonce[MGL_SHA256_BYTES],
                                    mgl_kernel_trial *out, mgl_error *err);

#endif

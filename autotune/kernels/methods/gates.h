/* The gates of micro-kernels as the judge of a loop: what passes those before a device is
 * UNMEASURED, unless there is one. */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_GATES_H
#define MGL_AUTOTUNE_KERNELS_METHODS_GATES_H

#include "autotune/kernels/methods/judge.h"
#include "autotune/kernels/trial/kernel_judge.h"

typedef struct mgl_gates {
    const mgl_kernel_unit *unit;
    mgl_kernel_options options;
    const mgl_trial_options *device; /* lent; NULL: none */
    int64_t decisions;               /* so far, of those that the device made */
    mgl_kernel_verdict last;         /* what they found in the last text, without PTX; the outcome
                                      * and its diagnostic are the loop's */
} mgl_gates;

/* `gates` is lent. */
mgl_loop_judge mgl_gates_judge(mgl_gates *gates);

#endif

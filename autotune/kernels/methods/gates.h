/* Judge of a feedback loop that runs the gates of micro-kernels. Without a device, a text that
 * passes all gates is UNMEASURED. With a device, such a text is run, checked and timed. */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_GATES_H
#define MGL_AUTOTUNE_KERNELS_METHODS_GATES_H

#include "autotune/kernels/methods/judge.h"
#include "autotune/kernels/trial/kernel_judge.h"

typedef struct mgl_gates {
    const mgl_kernel_unit *unit;
    mgl_kernel_options options;
    const mgl_trial_options *device; /* borrowed; NULL: no device */
    int64_t decisions;               /* decisions of the device so far */
    mgl_kernel_verdict last;         /* the result for the last text, without PTX; the loop's
                                      * verdict has the outcome and the diagnostic */
} mgl_gates;

/* `gates` is borrowed. */
mgl_loop_judge mgl_gates_judge(mgl_gates *gates);

#endif

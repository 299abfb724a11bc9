/* Evaluator of the loops that runs the gates of micro-kernels. Without a device, a text that
 * passes all gates is UNMEASURED. With a device, such a text is run, checked and timed. */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_GATE_EVALUATOR_H
#define MGL_AUTOTUNE_KERNELS_METHODS_GATE_EVALUATOR_H

#include "autotune/kernels/methods/evaluator.h"
#include "autotune/kernels/trial/evaluate.h"

typedef struct mgl_gates {
    const mgl_kernel_unit *unit;
    mgl_kernel_options options;
    const mgl_trial_options *device; /* borrowed; NULL: no device */
    int64_t decisions;               /* decisions of the device so far */
    mgl_kernel_findings last;        /* findings for the last text, without PTX */
} mgl_gates;

/* `gates` is borrowed. */
mgl_evaluator mgl_gates_evaluator(mgl_gates *gates);

#endif

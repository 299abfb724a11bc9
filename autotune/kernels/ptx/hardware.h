/* Features of a target that PTX can use, from hardware.def. The prompts of kernel sessions
 * (sessions/background.c) and of combine.c contain them. */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_HARDWARE_H
#define MGL_AUTOTUNE_KERNELS_PTX_HARDWARE_H

#include "base/text.h"

#include <stdbool.h>

/* For example 90 for "sm_90a"; 0: no number. */
int mgl_ptx_target_number(const char *target);
/* Writes one line per feature of the target. `unit`: only features whose instruction a micro-kernel
 * may contain (asm.def). */
void mgl_ptx_hardware_put(const char *target, bool unit, mgl_text *out);

#endif

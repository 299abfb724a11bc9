/* Features of a target that PTX can use, from the built-in file hardware.json. The prompt of
 * combine.c contains them. */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_HARDWARE_H
#define MGL_AUTOTUNE_KERNELS_PTX_HARDWARE_H

#include "base/error.h"
#include "base/text.h"
#include "vm/cuda/sources.h"

extern const mgl_cuda_source mgl_ptx_data_sources[]; /* generated from hardware.json */
extern const int mgl_ptx_data_source_count;

/* For example 90 for "sm_90a"; 0: no number. */
int mgl_ptx_target_number(const char *target);
/* Writes one line per feature that the target has. */
mgl_status mgl_ptx_hardware_write(const char *target, mgl_text *out, mgl_error *err);

#endif

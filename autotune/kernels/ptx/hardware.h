/* What the hardware offers to PTX, from hardware.json, which is built in. */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_HARDWARE_H
#define MGL_AUTOTUNE_KERNELS_PTX_HARDWARE_H

#include "base/error.h"
#include "base/text.h"
#include "vm/cuda/sources.h"

extern const mgl_cuda_source mgl_ptx_data_sources[]; /* made of hardware.json */
extern const int mgl_ptx_data_source_count;

/* 90 of "sm_90a"; 0: no number. */
int mgl_ptx_target_number(const char *target);
/* A line for each feature that the target has. */
mgl_status mgl_ptx_hardware_write(const char *target, mgl_text *out, mgl_error *err);

#endif

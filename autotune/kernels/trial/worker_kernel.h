/* What a worker does with a micro-kernel's text: compiles the machine's kernel with it. */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_WORKER_KERNEL_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_WORKER_KERNEL_H

#include "base/error.h"
#include "base/text.h"

/* A request (length) of MGL_REQUEST_KERNEL; the reply is appended. */
mgl_status mgl_worker_kernel(const char *bytes, size_t length, mgl_text *reply, mgl_error *err);

#endif

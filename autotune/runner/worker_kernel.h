/* The worker's side of compile.h: compiles the machine's kernel with a micro-kernel's text. */
#ifndef MGL_AUTOTUNE_RUNNER_WORKER_KERNEL_H
#define MGL_AUTOTUNE_RUNNER_WORKER_KERNEL_H

#include "base/error.h"
#include "base/text.h"

/* Handles a request (length) of MGL_REQUEST_KERNEL and appends the reply. */
mgl_status mgl_worker_kernel(const char *bytes, size_t length, mgl_text *reply, mgl_error *err);

#endif

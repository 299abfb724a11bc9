/*
 * The digest of a kernel identifies the kernel of a measurement. It covers the program and the text
 * that is compiled for it. Comments are left out, and the names that the text declares are replaced
 * by numbers. Rewording and renaming do not change the digest.
 */
#ifndef MGL_VM_CUDA_KERNEL_DIGEST_H
#define MGL_VM_CUDA_KERNEL_DIGEST_H

#include "base/text.h"
#include "schedule/program.h"
#include "vm/cuda/sources.h"

enum { MGL_KERNEL_DIGEST = 65 }; /* 64 hexadecimal digits and a 0 */

/* The digest of the kernel that runs `program` on a device of architecture `arch`, "sm_90a". */
mgl_status mgl_cuda_kernel_digest(const mgl_program *program, const char *arch,
                                  char out[MGL_KERNEL_DIGEST], mgl_error *err);

/* Appends the normal form of sources (count), the first of which includes the others by name:
 * tokens with a space or a line end behind each, comments left out, includes replaced by what they
 * include (once each), declared names as `n<number>` in the order in which they appear. */
mgl_status mgl_cuda_normalize(const mgl_cuda_source *sources, int count, mgl_text *out,
                              mgl_error *err);

#endif

/*
 * Digest that identifies the kernel of a measurement. It covers the program and the compiled source
 * text. Comments are removed, and names that the text declares are replaced by numbers. Rewording
 * and renaming do not change the digest. eval/bench.c stores it with measurements.
 */
#ifndef MGL_VM_CUDA_KERNEL_DIGEST_H
#define MGL_VM_CUDA_KERNEL_DIGEST_H

#include "base/text.h"
#include "schedule/program.h"
#include "vm/cuda/sources.h"

enum { MGL_KERNEL_DIGEST = 65 }; /* 64 hexadecimal digits and a final 0 */

/* The digest of the kernel that runs `program` on a device of architecture `arch`, for example
 * "sm_90a". */
mgl_status mgl_cuda_kernel_digest(const mgl_program *program, const char *arch,
                                  char out[MGL_KERNEL_DIGEST], mgl_error *err);

/* Appends the normal form of sources (count); the first includes the others by name. Each token is
 * followed by a space or a line end. Comments are removed, includes are replaced by the included
 * text (once each), and declared names become `n<number>` in order of appearance. */
mgl_status mgl_cuda_normalize(const mgl_cuda_source *sources, int count, mgl_text *out,
                              mgl_error *err);

#endif

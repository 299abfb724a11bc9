/*
 * Compiles a unit's original text in a program's kernel. The gates compare a candidate's resources
 * and PTX with it. The result depends only on built-in texts, so it is stored in the cache of
 * compiled kernels. verify.c calls it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_ORIGINAL_H
#define MGL_AUTOTUNE_KERNELS_GATES_ORIGINAL_H

#include "autotune/kernels/gates/compile.h"
#include "schedule/program.h"

/* `job` is the candidate's job; its text and values are ignored. Fails as mgl_kernel_compile
 * does, and with MGL_SYSTEM if the text does not compile. Release with
 * mgl_kernel_compiled_clear. */
mgl_status mgl_kernel_compile_original(const mgl_kernel_unit *unit, const mgl_program *program,
                                       const mgl_kernel_job *job, const mgl_kernel_options *options,
                                       mgl_kernel_compiled *out, mgl_error *err);

#endif

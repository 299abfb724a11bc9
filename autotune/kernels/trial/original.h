/*
 * A unit's own text, compiled into a program's kernel: what a candidate's resources and PTX are
 * compared with. It is the kernel as it was built in, so it is kept in the cache of compiled
 * kernels and found there the next time.
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_ORIGINAL_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_ORIGINAL_H

#include "autotune/kernels/trial/compile.h"
#include "schedule/program.h"

/* `job` as for a candidate of the unit in this program, whose text and values are not looked at.
 * Fails as mgl_kernel_compile does; MGL_SYSTEM too where the text does not compile. Release with
 * mgl_kernel_compiled_clear. */
mgl_status mgl_kernel_compile_original(const mgl_kernel_unit *unit, const mgl_program *program,
                                       const mgl_kernel_job *job, const mgl_kernel_options *options,
                                       mgl_kernel_compiled *out, mgl_error *err);

#endif

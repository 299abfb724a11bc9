/*
 * Compiles the machine's whole kernel with the proposed text of a unit, in a sandboxed worker
 * process. Output: the PTX, the resource counts of ptxas, or the first error of the log as one
 * diagnostic line. All other content of the log is dropped, because NVRTC prints source lines of
 * files that it reads. The gates (verify.c) and original.c call it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_COMPILE_H
#define MGL_AUTOTUNE_KERNELS_GATES_COMPILE_H

#include "autotune/kernels/gates/kernel.h"

/* Input of one compilation. */
typedef struct mgl_kernel_job {
    const char *arch, *file;
    const char *text; /* (text_length) of the file */
    size_t text_length;
    const char *schedule; /* (schedule_length) text form of the program */
    size_t schedule_length;
    mgl_kernel_value values[MGL_KERNEL_VALUES]; /* (value_count) names without TUNE_ */
    int value_count;
} mgl_kernel_job;

/* Release with mgl_kernel_compiled_clear. */
typedef struct mgl_kernel_compiled {
    bool done;                 /* false: did not compile */
    mgl_trial_verdict verdict; /* MGL_OUTCOME_COMPILE_..., or HANG of the compiler. The diagnostic
                                * is "message", or "file:line: message" if the error is in
                                * another file */
    double compile_s;
    mgl_kernel_resources resources;
    char *ptx;
    size_t ptx_length;
} mgl_kernel_compiled;

/* MGL_SYSTEM: the worker cannot be started or has no sandbox. MGL_DEVICE: NVRTC is missing. */
mgl_status mgl_kernel_compile(const mgl_kernel_job *job, const mgl_kernel_options *options,
                              mgl_kernel_compiled *out, mgl_error *err);
void mgl_kernel_compiled_clear(mgl_kernel_compiled *compiled);

/* The first error of a log (0-terminated). An error in `file`, the proposed text, sets the line of
 * the verdict. An error in another source of the kernel sets the line to 0 and names its position.
 * An error in any other file is reported without its message. */
void mgl_kernel_log_error(const char *log, const char *file, mgl_trial_verdict *verdict);

/* Resource counts of ptxas in a log: the maximum of registers over all functions, and the sums
 * of all other counts. False: the log contains no counts. */
bool mgl_kernel_log_resources(const char *log, mgl_kernel_resources *out);

#endif

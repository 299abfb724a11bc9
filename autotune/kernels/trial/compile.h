/*
 * Compiling the machine's whole kernel with a unit's text, in a worker that may reach nothing, and
 * what the compiler's log says of it: which error came first, in whose words of at most a line, and
 * what ptxas counted. What the log holds beyond that leaves this file for nobody: NVRTC prints the
 * lines of files that it reads.
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_COMPILE_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_COMPILE_H

#include "autotune/kernels/gates/kernel.h"

/* What is compiled. */
typedef struct mgl_kernel_job {
    const char *arch, *file;
    const char *text; /* (text_length) of the file */
    size_t text_length;
    const char *schedule; /* (schedule_length) of the program */
    size_t schedule_length;
    mgl_kernel_value values[MGL_KERNEL_VALUES]; /* (value_count) names without TUNE_ */
    int value_count;
} mgl_kernel_job;

/* Release with mgl_kernel_compiled_clear. */
typedef struct mgl_kernel_compiled {
    bool done;                               /* else it did not compile: */
    mgl_outcome outcome;                     /* MGL_OUTCOME_COMPILE_..., or HANG of the compiler */
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1]; /* what; of another file "file:line: what" */
    int line;                                /* of the file; 0: none */
    double compile_s;
    mgl_kernel_resources resources;
    char *ptx;
    size_t ptx_length;
} mgl_kernel_compiled;

/* MGL_SYSTEM: no worker can be started, or it has no sandbox. MGL_DEVICE: there is no NVRTC. */
mgl_status mgl_kernel_compile(const mgl_kernel_job *job, const mgl_kernel_options *options,
                              mgl_kernel_compiled *out, mgl_error *err);
void mgl_kernel_compiled_clear(mgl_kernel_compiled *compiled);

/* The first error of a log (0-terminated). `file`: whose text was proposed, an error in which has
 * its *line; one elsewhere in the kernel's sources is said with its place and *line 0, one in any
 * other file without its words. */
mgl_outcome mgl_kernel_log_error(const char *log, const char *file, int *line,
                                 char diagnostic[MGL_MAX_DIAGNOSTIC + 1]);

/* What ptxas says in a log: most registers of a function, the sum of all else. False: the log has
 * no such words. */
bool mgl_kernel_log_resources(const char *log, mgl_kernel_resources *out);

#endif

/*
 * The gates of a micro-kernel that need no device. Input: a proposed text of a unit. Output: an
 * outcome with a diagnostic, resource counts and PTX. mgl_kernel_verify is implemented in
 * verify.c. Each gate runs only if the text passed the gate before it:
 *
 *   regions     only the editable region changed                        REGION_VIOLATION
 *   duplicate   the text differs from the unit's original text          DUPLICATE
 *   scan        static scan for forbidden content, before any compiler  STATIC_FORBIDDEN
 *   compile     the machine's whole kernel with the text, by NVRTC in
 *               a sandboxed process                                     COMPILE_...
 *   PTX         scan of the compiled code for forbidden content         STATIC_FORBIDDEN
 *   resources   registers, spills, shared and global memory             RESOURCE_...
 *
 * A text that passes all gates is UNMEASURED: only a device can check its results and its speed. If
 * NVRTC is missing, a text that passes the scan is UNMEASURED too, and `compiled` is false.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_KERNEL_H
#define MGL_AUTOTUNE_KERNELS_GATES_KERNEL_H

#include "autotune/kernels/gates/unit.h"
#include "autotune/store/record.h"
#include "base/sha256.h"

/* The value of a tunable: tunable "tile" is TUNE_TILE in the text. */
typedef struct mgl_kernel_value {
    const char *name;
    int64_t value;
} mgl_kernel_value;

enum { MGL_KERNEL_VALUES = 16, MGL_KERNEL_TEXT = 256 << 10 /* largest text of a unit in bytes */ };

/* A proposal: the whole text of the unit. All pointers are borrowed. */
typedef struct mgl_kernel_candidate {
    const mgl_kernel_unit *unit;
    const char *text; /* (length) */
    size_t length;
    const char *before; /* (before_length) the text that was edited; NULL: the unit's original
                         * text */
    size_t before_length;
    mgl_kernel_region region;       /* the region that may differ, or MGL_KERNEL_REGION_ANY */
    const mgl_kernel_value *values; /* (value_count) tunables without a value use their first one */
    int value_count;
} mgl_kernel_candidate;

/* Counts of ptxas for the kernel. Registers are the maximum over all functions; all other counts
 * are sums. */
typedef struct mgl_kernel_resources {
    int64_t registers; /* per thread */
    int64_t spill_stores, spill_loads, frame;
    int64_t shared; /* static bytes, without dynamic shared memory */
    int64_t global, constant;
} mgl_kernel_resources;

/* Options of the gates. A zeroed struct selects all gates, for sm_90a. */
typedef struct mgl_kernel_options {
    const char *arch;        /* NULL: "sm_90a" */
    bool no_compile;         /* ends after the scan */
    double limit_s;          /* per compilation; 0: 300 */
    const char *program;     /* the executable of the worker; NULL: "/proc/self/exe" */
    const atomic_int *abort; /* may be NULL */
} mgl_kernel_options;

/* Release with mgl_kernel_result_clear. */
typedef struct mgl_kernel_result {
    mgl_trial_verdict verdict; /* MGL_OUTCOME_UNMEASURED: passed all gates; the diagnostic is
                                * "<CODE> at <file>:<line>: <what>" */
    char hash[MGL_SHA256_HEX]; /* hash of the text without comments and layout */
    bool compiled;
    char not_compiled[400]; /* why a text that passed the scan was not compiled; "": compiled */
    double compile_s;
    mgl_kernel_resources resources; /* set if compiled */
    char *ptx;                      /* (ptx_length) owned; NULL: none */
    size_t ptx_length;
    char *own_ptx; /* (own_ptx_length) PTX of the unit's original text; owned; NULL: not compiled */
    size_t own_ptx_length;
} mgl_kernel_result;

/* A fault of the candidate is an outcome. The function fails only if memory runs out, `abort`
 * was set (MGL_INTERRUPTED), or no worker can be started (MGL_SYSTEM). */
mgl_status mgl_kernel_verify(const mgl_kernel_candidate *candidate,
                             const mgl_kernel_options *options, mgl_kernel_result *out,
                             mgl_error *err);
void mgl_kernel_result_clear(mgl_kernel_result *result);

/* Hash of a text by its tokens: comments and whitespace do not count, except in the launch
 * region. The hash must never change, because stores contain it. */
mgl_status mgl_kernel_hash(const char *text, size_t length, char hash[MGL_SHA256_HEX],
                           mgl_error *err);

#endif

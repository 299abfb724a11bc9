/*
 * The gates of a micro-kernel before any device: what becomes of a text that somebody proposes for
 * a unit. One behind the other, and each only if the one before let the text through:
 *
 *   regions     nothing but the region that may be edited has changed      REGION_VIOLATION
 *   duplicate   the text is not the unit's own                             DUPLICATE
 *   scan        nothing forbidden stands in it, before a compiler sees it  STATIC_FORBIDDEN
 *   compile     the machine's whole kernel with it, by NVRTC, in a
 *               sandboxed process                                          COMPILE_...
 *   PTX         what was compiled holds nothing forbidden either           STATIC_FORBIDDEN
 *   resources   registers, spills, shared and global memory                RESOURCE_...
 *
 * A text that passes is UNMEASURED: whether it computes what the op means, and how fast, only a
 * device tells. Where NVRTC is missing, a text that passes the scan is UNMEASURED too, and
 * `compiled` is false.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_KERNEL_H
#define MGL_AUTOTUNE_KERNELS_GATES_KERNEL_H

#include "autotune/kernels/gates/unit.h"
#include "autotune/store/record.h"
#include "base/sha256.h"

/* A tunable's value: of "tile" it is TUNE_TILE in the text. */
typedef struct mgl_kernel_value {
    const char *name;
    int64_t value;
} mgl_kernel_value;

enum { MGL_KERNEL_VALUES = 16, MGL_KERNEL_TEXT = 256 << 10 /* bytes of a unit, at most */ };

/* What is proposed: the whole text of the unit. Nothing of it is owned. */
typedef struct mgl_kernel_candidate {
    const mgl_kernel_unit *unit;
    const char *text; /* (length) */
    size_t length;
    const char *before; /* (before_length) what it was made of; NULL: the unit's own text */
    size_t before_length;
    mgl_kernel_region region;       /* that may differ from it, or MGL_KERNEL_REGION_ANY */
    const mgl_kernel_value *values; /* (value_count) those that are not given are the first ones */
    int value_count;
} mgl_kernel_candidate;

/* What ptxas says of the kernel with it: the largest function's registers, the sum of the rest. */
typedef struct mgl_kernel_resources {
    int64_t registers; /* a thread */
    int64_t spill_stores, spill_loads, frame;
    int64_t shared; /* bytes, but for those that a launch gives */
    int64_t global, constant;
} mgl_kernel_resources;

/* Of zeros: all gates, for sm_90a. */
typedef struct mgl_kernel_options {
    const char *arch;        /* "sm_90a"; NULL: that */
    bool no_compile;         /* ends behind the scan */
    double limit_s;          /* of a compilation; 0: 300 */
    const char *program;     /* whose worker compiles; NULL: "/proc/self/exe" */
    const atomic_int *abort; /* may be NULL */
} mgl_kernel_options;

/* Release with mgl_kernel_result_clear. */
typedef struct mgl_kernel_result {
    mgl_outcome outcome;                     /* MGL_OUTCOME_UNMEASURED: through all gates */
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1]; /* "<CODE> at <file>:<line>: <what>"; "": none */
    int line;                                /* of the text, from 1; 0: none */
    char hash[MGL_SHA256_HEX];               /* of the text without comments and layout */
    bool compiled;
    char not_compiled[400]; /* why not, where it passed the scan; "": it was */
    double compile_s;
    mgl_kernel_resources resources; /* once it is compiled */
    char *ptx;                      /* (ptx_length) owned; NULL: none */
    size_t ptx_length;
} mgl_kernel_result;

/* Fails only where memory ran out, `abort` was set (MGL_INTERRUPTED), or no worker could be started
 * (MGL_SYSTEM): whatever is wrong with the candidate is an outcome. */
mgl_status mgl_kernel_verify(const mgl_kernel_candidate *candidate,
                             const mgl_kernel_options *options, mgl_kernel_result *out,
                             mgl_error *err);
void mgl_kernel_result_clear(mgl_kernel_result *result);

/* Names a text by what it says: comments, blanks and line ends do not count, but for those of the
 * launch region. Fixed for ever, since stores keep it. */
mgl_status mgl_kernel_hash(const char *text, size_t length, char hash[MGL_SHA256_HEX],
                           mgl_error *err);

#endif

/*
 * Scan of a candidate's compiled PTX for forbidden content: state across launches, clocks,
 * registers that reveal where a kernel runs, exits and traps, calls, and atomics and stores that
 * the incumbent does not have. The rules are in scan.c. Input: the modules of candidate and
 * incumbent. Output: the first finding. The kernel around the micro-kernel is compiled with the
 * candidate, so content of the incumbent is allowed. By default the candidate may have it as often
 * as the incumbent. With `kinds` it may occur any number of times, because the compiler repeats
 * inlined and unrolled code. The gates (verify.c) call it.
 *
 * The scan is one guard of several: it checks instructions, not the addresses that they compute.
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_SCAN_H
#define MGL_AUTOTUNE_KERNELS_PTX_SCAN_H

#include "autotune/kernels/ptx/ptx.h"
#include "autotune/store/verdict.h"
#include "base/json_out.h"

typedef struct mgl_ptx_finding {
    mgl_outcome outcome; /* OK, or STATIC_FORBIDDEN */
    int line;            /* line in the candidate's PTX */
    char what[96];       /* "%globaltimer", "st.global.u32" */
    char why[96];        /* "a clock" */
} mgl_ptx_finding;

/* `incumbent` may be NULL: then everything that a rule names is forbidden, and stores are not
 * compared. `kinds`: content that the incumbent has once is allowed any number of times, and so
 * are calls of the functions that it calls. Else content is allowed as often as in the
 * incumbent. */
mgl_status mgl_ptx_scan(const mgl_ptx *candidate, const mgl_ptx *incumbent, bool kinds,
                        mgl_ptx_finding *out, mgl_error *err);

/* Writes members of an object: the verdict; if rejected also line, what and why. */
void mgl_ptx_finding_put(const mgl_ptx_finding *finding, mgl_json_out *out);

/* A rule for instructions, by the first words of the mnemonic, or for special registers, by the
 * first characters of the name. */
typedef struct mgl_ptx_forbidden {
    const char *what, *why; /* "cp.reduce", "%clock"; "a clock" */
} mgl_ptx_forbidden;
/* The rule with this number; NULL: past the end. */
const mgl_ptx_forbidden *mgl_ptx_forbidden_get(int index);

#endif

/*
 * What a candidate's compiled PTX must not have: state across launches, clocks, what tells where a
 * kernel runs, ends and traps, atomics and stores outside what the incumbent has, calls. The rules
 * in scan.c are the list. What the incumbent does as often is allowed, since the kernel
 * around a micro-kernel is compiled with it; or however often, since the compiler repeats what it
 * puts in line or unrolls.
 *
 * This is one guard of several: it sees instructions, not where their addresses lead.
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_SCAN_H
#define MGL_AUTOTUNE_KERNELS_PTX_SCAN_H

#include "autotune/kernels/ptx/ptx.h"
#include "autotune/search/verdict.h"
#include "base/json_out.h"

typedef struct mgl_ptx_finding {
    mgl_outcome outcome; /* OK, or STATIC_FORBIDDEN */
    int line;            /* of the candidate */
    char what[96];       /* "%globaltimer", "st.global.u32" */
    char why[96];        /* "a clock" */
} mgl_ptx_finding;

/* `incumbent` may be NULL: then nothing that a rule names is allowed, and stores are not compared.
 * `kinds`: what the incumbent has once is allowed however often, and so are calls of what it calls;
 * else as often as it has it. */
mgl_status mgl_ptx_scan(const mgl_ptx *candidate, const mgl_ptx *incumbent, bool kinds,
                        mgl_ptx_finding *out, mgl_error *err);

/* As members of an object: verdict, and where it is refused line, what and why. */
void mgl_ptx_finding_put(const mgl_ptx_finding *finding, mgl_json_out *out);

/* A rule of instructions, by the first words of a mnemonic, or of special registers, by the first
 * characters of one. */
typedef struct mgl_ptx_forbidden {
    const char *what, *why; /* "cp.reduce", "%clock"; "a clock" */
} mgl_ptx_forbidden;
/* By number; NULL: there are no more. */
const mgl_ptx_forbidden *mgl_ptx_forbidden_get(int index);

#endif

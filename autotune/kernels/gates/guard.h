/*
 * Guard of micro-kernels: reports all findings in a text, and tests itself. The gates (kernel.h)
 * stop at the first fault; the guard reports all of them to the author. The self-test plants known
 * tricks into texts of units and into PTX modules and checks that the gates reject them. The
 * command line and the agents' tools call it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_GUARD_H
#define MGL_AUTOTUNE_KERNELS_GATES_GUARD_H

#include "autotune/kernels/gates/kernel.h"
#include "base/json_out.h"

/* ---- a text ---------------------------------------------------------------------------------- */

enum { MGL_GUARD_FINDINGS = 64 };
typedef struct mgl_guard_findings {
    /* (count) at most one per line of the text: REGION_VIOLATION, PARSE, STATIC_FORBIDDEN, ... */
    mgl_trial_verdict list[MGL_GUARD_FINDINGS];
    int count;
    bool whole; /* false: the text after the last finding was not checked */
} mgl_guard_findings;

/* The unit whose frame the text contains; NULL: none. */
const mgl_kernel_unit *mgl_guard_find_unit(const char *text, size_t length);

/* Appends the text in a proposer's answer to `out`: the content of a code fence, with the
 * fix-ups of the loops. An answer without a fence is taken unchanged. With a region, the answer
 * is the body of that region, and the rest is the unit's original text. Without a region, `unit`
 * may be NULL. */
mgl_status mgl_guard_take_text(const mgl_kernel_unit *unit, mgl_kernel_region region,
                               const char *answer, size_t length, mgl_text *out, mgl_error *err);
/* Runs the gates before the compiler, then repeats the static scan after each rejected line. A
 * unit's original text has no findings. Fails as mgl_kernel_verify does. */
mgl_status mgl_guard_scan(const mgl_kernel_unit *unit, const char *text, size_t length,
                          mgl_guard_findings *out, mgl_error *err);
/* Writes members of an object: clean, whole, findings. */
void mgl_guard_put_findings(mgl_json_out *out, const mgl_guard_findings *findings);

/* ---- the self-test --------------------------------------------------------------------------- */

/* A text to plant into a unit's text, and the expected outcome. */
typedef struct mgl_guard_plant {
    const char *name, *unit;
    mgl_kernel_region region; /* planted before this region; MGL_KERNEL_REGION_ANY: before the
                               * whole text */
    mgl_outcome outcome;
    const char *because, *text;
} mgl_guard_plant;

/* A PTX module with planted texts, and the expected finding. */
typedef struct mgl_guard_ptx {
    const char *name;
    const char *what, *why;    /* as in mgl_ptx_finding; NULL: must pass */
    const char *module, *body; /* text planted before the entry, and text planted inside the entry;
                                * one line each */
} mgl_guard_ptx;

/* A trick that passed or was rejected for another reason, or clean content that was rejected. */
typedef struct mgl_guard_miss {
    char name[64];
    char got[MGL_MAX_DIAGNOSTIC + 1];
} mgl_guard_miss;

enum { MGL_GUARD_MISSES = 32 };
typedef struct mgl_guard_test {
    int tricks, units;           /* number of tests run */
    int ptx_tricks, ptx_modules; /* number of PTX tricks tested, and of clean PTX modules */
    int missed;                  /* number of all misses; `misses` contains the first ones */
    mgl_guard_miss misses[MGL_GUARD_MISSES];
} mgl_guard_test;

/* Plants tricks, and adds to *out. */
mgl_status mgl_guard_try(const mgl_guard_plant *plants, int count, mgl_guard_test *out,
                         mgl_error *err);
/* Scans PTX modules, and adds to *out. A trick is scanned twice. Compared with the same module
 * without the trick, it must be rejected. Compared with itself, it must pass, because the incumbent
 * contains it equally often. */
mgl_status mgl_guard_try_ptx(const mgl_guard_ptx *modules, int count, mgl_guard_test *out,
                             mgl_error *err);
/* Tests the rows of guard.def, the words of words.def, each built-in unit, and the rows of
 * guard_ptx.def, which contain a trick for each rule of the PTX scan. */
mgl_status mgl_guard_selftest(mgl_guard_test *out, mgl_error *err);

#endif

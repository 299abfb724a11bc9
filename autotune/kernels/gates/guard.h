/*
 * The guard of micro-kernels as others ask of it. The gates (kernel/kernel.h) end with the first
 * thing that they refuse; whoever writes a text wants to read of all of them. And whether the guard
 * still refuses what it has to can be tried at any time: known tricks are planted into texts of
 * units, and into modules of PTX as compilers write them.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_GUARD_H
#define MGL_AUTOTUNE_KERNELS_GATES_GUARD_H

#include "autotune/kernels/gates/kernel.h"
#include "base/json_out.h"

/* ---- a text ---------------------------------------------------------------------------------- */

typedef struct mgl_guard_finding {
    mgl_outcome outcome; /* REGION_VIOLATION, PARSE, STATIC_FORBIDDEN, ... */
    int line;            /* of the text, from 1; 0: none */
    char what[MGL_MAX_DIAGNOSTIC + 1];
    const char *hint; /* one sentence */
} mgl_guard_finding;

enum { MGL_GUARD_FINDINGS = 64 };
typedef struct mgl_guard_findings {
    mgl_guard_finding list[MGL_GUARD_FINDINGS]; /* (count) one a line of the text at most */
    int count;
    bool whole; /* false: behind the last one the text was not looked at */
} mgl_guard_findings;

/* The unit whose frame the text has; NULL: there is none. */
const mgl_kernel_unit *mgl_guard_find_unit(const char *text, size_t length);

/* The text that an answer of a proposer holds, appended to `out`: it stands in a fence, mended as
 * the loops mend it. A text without one is taken as it stands. With a region, what stands there is
 * that region's body, and the rest is the unit's own (`unit` may be NULL without one). */
mgl_status mgl_guard_take_text(const mgl_kernel_unit *unit, mgl_kernel_region region,
                               const char *answer, size_t length, mgl_text *out, mgl_error *err);
/* The gates before the compiler, and the static scan again behind each line that it refuses. A
 * unit's own text has no findings. Fails as mgl_kernel_verify does. */
mgl_status mgl_guard_scan(const mgl_kernel_unit *unit, const char *text, size_t length,
                          mgl_guard_findings *out, mgl_error *err);
/* As members of an object: clean, whole, findings. */
void mgl_guard_put_findings(mgl_json_out *out, const mgl_guard_findings *findings);

/* ---- the self-test --------------------------------------------------------------------------- */

/* A text that is put into a unit's, and what the gates have to say then. */
typedef struct mgl_guard_plant {
    const char *name, *unit;
    mgl_kernel_region region; /* in front of which; MGL_KERNEL_REGION_ANY: of the whole text */
    mgl_outcome outcome;
    const char *because, *text;
} mgl_guard_plant;

/* A module of PTX that has these texts in it, and what its scan has to say then. */
typedef struct mgl_guard_ptx {
    const char *name;
    const char *what, *why;    /* as in mgl_ptx_finding; NULL: it is to pass */
    const char *module, *body; /* in front of the entry, and within; one line each */
} mgl_guard_ptx;

/* A trick that was let through or refused for something else, or what is clean and was refused. */
typedef struct mgl_guard_miss {
    char name[64];
    char got[MGL_MAX_DIAGNOSTIC + 1];
} mgl_guard_miss;

enum { MGL_GUARD_MISSES = 32 };
typedef struct mgl_guard_test {
    int tricks, units;           /* that were tried */
    int ptx_tricks, ptx_modules; /* likewise; modules that are clean */
    int missed;                  /* of all; the first of them are: */
    mgl_guard_miss misses[MGL_GUARD_MISSES];
} mgl_guard_test;

/* Plants tricks, and adds to *out. */
mgl_status mgl_guard_try(const mgl_guard_plant *plants, int count, mgl_guard_test *out,
                         mgl_error *err);
/* Scans modules of PTX, and adds to *out. A trick is scanned against the same module without its
 * texts, and against itself: what the incumbent does as often is no trick. */
mgl_status mgl_guard_try_ptx(const mgl_guard_ptx *modules, int count, mgl_guard_test *out,
                             mgl_error *err);
/* The rows of guard.def, the words of words.def, each unit as it was built, and the rows of
 * guard_ptx.def, which have a trick for each rule of the PTX scan. */
mgl_status mgl_guard_selftest(mgl_guard_test *out, mgl_error *err);

#endif

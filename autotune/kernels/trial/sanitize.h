/*
 * Sanitizers: a candidate's launches once more, in a worker that NVIDIA's compute-sanitizer runs.
 * memcheck finds accesses outside of every allocation, which an exam does not see where they do not
 * fault; synccheck barriers that not all threads come to. Left out are racecheck, which does not
 * follow bulk copies and the mbarriers that they complete, so that every page of the ring would be
 * a hazard, and initcheck, which has nothing to find in memory that the machine clears: what a task
 * leaves unwritten the exam's poison shows.
 *
 * The tool counts where it works: what it says of the candidate is a verdict only where it says
 * nothing of the incumbent in the same program. Where it does not work, its check is skipped, and
 * the result says so and why. It is $MEGALITH_SANITIZER ("none": no tool), or is looked for on the
 * PATH, in $CUDA_HOME/bin, in /usr/local/cuda/bin and in /usr/local/cuda-NN/bin.
 *
 * The worker enters its sandbox as others do, behind the opening of its device, when the tool's
 * part in it has opened what it needs. Where the tool does not work so, the worker is tried without
 * the sandbox: its text has passed the scans and the exam. The result says that too.
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_SANITIZE_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_SANITIZE_H

#include "autotune/runner/runner.h"

/* X(ID, name) */
#define MGL_SANITIZERS(X)                                                                          \
    X(MEMCHECK, "memcheck")                                                                        \
    X(SYNCCHECK, "synccheck")
enum {
#define MGL_X(id, name) MGL_SANITIZER_##id,
    MGL_SANITIZERS(MGL_X)
#undef MGL_X
        MGL_SANITIZER_COUNT
};
const char *mgl_sanitizer_name(int sanitizer);

/* What came of one. */
typedef struct mgl_sanitizer_end {
    bool ran;          /* the tool worked */
    bool found;        /* and found something in the candidate */
    bool no_sandbox;   /* its worker was not in the sandbox */
    char skipped[160]; /* why, where it did not run; "": nobody came to it */
} mgl_sanitizer_end;

typedef struct mgl_sanitizer_ends {
    mgl_sanitizer_end of[MGL_SANITIZER_COUNT];
    double seconds;
} mgl_sanitizer_ends;

/* Where the tool is; false, with the reason: nowhere. */
bool mgl_sanitizer_find(char *path, size_t size, char why[160]);

/* The candidate under all of them, in a lab of the programs' subject. *outcome stays, or is
 * SANITIZER_..., with `diagnostic`. `no_sandbox` as in mgl_runner_options. */
mgl_status mgl_sanitize(mgl_runner *runner, const mgl_candidate *incumbent,
                        const mgl_candidate *candidate, uint64_t seed, bool no_sandbox,
                        mgl_sanitizer_ends *out, mgl_outcome *outcome,
                        char diagnostic[MGL_MAX_DIAGNOSTIC + 1], mgl_error *err);

/* What a log of the tool says. The first finding is an outcome with a line of what and where; MGL_
 * OUTCOME_OK: it found nothing, and came to its end; MGL_OUTCOME_UNMEASURED: it did not, and why.
 */
mgl_outcome mgl_sanitizer_read(const char *log, char line[MGL_MAX_DIAGNOSTIC + 1]);

/* As "memcheck ok, synccheck skipped: why". */
void mgl_sanitizer_tell(const mgl_sanitizer_ends *ends, char *out, size_t size);

#endif

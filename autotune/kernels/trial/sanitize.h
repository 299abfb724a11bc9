/*
 * Sanitizer gate: runs a candidate's launches in a worker under NVIDIA's compute-sanitizer.
 * memcheck finds accesses outside all allocations, which the correctness check misses unless they
 * fault. synccheck finds barriers that not all threads reach. racecheck is not used: it does not
 * track bulk copies and the mbarriers that they complete, so it would report each page of the ring.
 * initcheck is not used: the machine clears its memory, and the poison of the correctness check
 * already finds unwritten results.
 *
 * A finding in the candidate counts only if the incumbent has no finding in the same program. If
 * the tool does not work, its check is skipped and the result contains the reason. The tool is
 * $MEGALITH_SANITIZER ("none": no tool). Otherwise it is searched on the PATH, in $CUDA_HOME/bin,
 * in /usr/local/cuda/bin and in /usr/local/cuda-NN/bin.
 *
 * The worker enters its sandbox after it has opened its device and the tool has opened its files.
 * If the tool does not work in the sandbox, the worker runs without it, because the text has passed
 * the scans and the correctness check. The result reports this as well.
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

/* The result of one sanitizer. */
typedef struct mgl_sanitizer_end {
    bool ran;          /* the tool worked */
    bool found;        /* the tool found something in the candidate */
    bool no_sandbox;   /* the worker ran without the sandbox */
    char skipped[160]; /* the reason if it did not run; "": the gate was not reached */
} mgl_sanitizer_end;

typedef struct mgl_sanitizer_ends {
    mgl_sanitizer_end of[MGL_SANITIZER_COUNT];
    double seconds;
} mgl_sanitizer_ends;

/* Finds the tool; false: not found, with the reason. */
bool mgl_sanitizer_find(char *path, size_t size, char why[160]);

/* Runs the candidate under all sanitizers, in a runner of the programs' subject. The
 * verdict is unchanged, or SANITIZER_.... `no_sandbox` is as in mgl_runner_options. */
mgl_status mgl_sanitize(mgl_runner *runner, const mgl_candidate *incumbent,
                        const mgl_candidate *candidate, uint64_t seed, bool no_sandbox,
                        mgl_sanitizer_ends *out, mgl_trial_verdict *verdict, mgl_error *err);

/* Parses a log of the tool. The verdict is the first finding, with a diagnostic that describes it.
 * MGL_OUTCOME_OK: no finding and a complete log. MGL_OUTCOME_UNMEASURED: an incomplete log, with
 * the reason. */
void mgl_sanitizer_read(const char *log, mgl_trial_verdict *verdict);

/* Prints for example "memcheck ok, synccheck skipped: why". */
void mgl_sanitizer_tell(const mgl_sanitizer_ends *ends, char *out, size_t size);

#endif

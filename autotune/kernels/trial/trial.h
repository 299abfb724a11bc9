/*
 * Trial: the gates of a micro-kernel that need a device, for a text that passed the gates without a
 * device (gates/kernel.h). evaluate.c calls mgl_kernel_try with the text and gets the outcome and
 * the measurements. Each gate can end the trial with these outcomes:
 *
 *   correctness   the op in harness programs (harness.h): values of six kinds, several shapes;
 *                 three bit-identical launches, near the CPU machine's results (correctness.h)
 *                 UNWRITTEN, MISMATCH, NONDETERMINISTIC, ...
 *   sanitizers    launches under memcheck and synccheck, if the tool works (sanitize.h)
 *                 SANITIZER_MEMORY, SANITIZER_SYNC
 *   model         launches of 32 tokens; tokens and logits are compared with the f32 reference
 *                 MISMATCH, SEMANTIC, HANG, ...
 *   paired bench  pairs of launches against the incumbent, in a two-layer model of the op's shape
 *                 NO_GAIN, REGRESSION, SUBFLOOR, SUSPICIOUS
 *   models        the same in whole models, on the requested workloads
 *                 MODEL_MISMATCH, MODEL_REGRESSION
 *   weights       replies and likelihoods on a real checkpoint, if given (weights_check.h)
 *                 MODEL_MISMATCH
 *
 * The incumbent is the built-in kernel with the promoted texts. Inputs are made from a nonce, which
 * is drawn after the text is known. Launches run in a worker (runner.h). Kernels are compiled in
 * parallel, ahead of the gates that use them. Processes that measure on one device share it through
 * device_lock.h.
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_TRIAL_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_TRIAL_H

#include "autotune/kernels/gates/context.h"
#include "autotune/kernels/gates/kernel.h"
#include "autotune/kernels/trial/correctness.h"
#include "autotune/kernels/trial/harness.h"
#include "autotune/kernels/trial/sanitize.h"
#include "autotune/runner/runner.h"

/* Opens a runner for a subject; `user` is `runner_user` of the options. Tests use a simulated
 * runner. */
typedef mgl_status mgl_trial_runner_fn(void *user, const mgl_subject *subject, mgl_runner **out,
                                       mgl_error *err);

typedef enum mgl_trial_depth {
    MGL_TRIAL_CORRECTNESS,  /* ends after the sanitizers: a text that passes is UNMEASURED */
    MGL_TRIAL_PAIRED_BENCH, /* ends after the paired benchmark */
    MGL_TRIAL_MODELS,       /* all gates */
    MGL_TRIAL_PROMOTE       /* all gates, and the hidden harness programs in the correctness
                             * check */
} mgl_trial_depth;

typedef struct mgl_trial_options {
    const char *device;      /* "cuda", "cuda:1" */
    const char *program;     /* the executable of the worker; NULL: "/proc/self/exe" */
    const char *kernels;     /* cache folder of compiled kernels; NULL: the user's */
    const char *device_lock; /* the lock file (device_lock.h); NULL: no other process measures */
    bool no_sandbox;         /* as in mgl_runner_options */
    double limit_s;          /* per request of a worker; 0: the default of the runner */
    mgl_trial_depth depth;
    const char *shape;              /* shape of the models; NULL: the shape in the op's context */
    const mgl_workloads *models;    /* NULL: one sequence at contexts 0 and 2,048 */
    const char *checkpoint;         /* folder or file; NULL: none; used with the models */
    int64_t decision;               /* number of this decision in one search; 0: 1 */
    const mgl_cuda_source *sources; /* (source_count) the promoted texts; the candidate's text
                                     * replaces the text of its unit */
    int source_count;
    int most_harnesses;      /* 0: 3 */
    int most_cases;          /* per harness program; 0: all */
    const char *only;        /* name of the only harness program to run; NULL: all that apply */
    const atomic_int *abort; /* may be NULL */
    mgl_trial_runner_fn *open_runner; /* NULL: the runner of the device */
    void *runner_user;
} mgl_trial_options;

/* The result of a paired benchmark; gains are log(incumbent / candidate). */
typedef struct mgl_kernel_paired_bench {
    bool timed;
    char shape[48];
    mgl_trial_verdict verdict;
    double gain, gain_lo, gain_hi, level;
    int workload_count, pairs;
    mgl_workloads workloads;
    mgl_workload_result results[MGL_MAX_WORKLOADS];
} mgl_kernel_paired_bench;

/* Seconds spent in the parts of a trial. */
typedef struct mgl_trial_spent {
    double compiling; /* compiling ahead */
    double waiting;   /* waiting for device locks */
    double correctness, sanitizers, paired_bench, models, checkpoint;
} mgl_trial_spent;

typedef struct mgl_kernel_trial {
    mgl_trial_verdict verdict;
    char nonce[MGL_SHA256_HEX];
    char device[128], driver[32], uuid[48];
    int harnesses, cases; /* used in the correctness check */
    mgl_correctness_result correctness;
    mgl_sanitizer_ends sanitizers;
    mgl_kernel_paired_bench paired_bench, models;
    mgl_real_facts real; /* result of the weights check */
    double seconds;
    mgl_trial_spent spent;
} mgl_kernel_trial;

/* `text` (0-terminated) is the unit's whole text with the tunable values (mgl_trial_text). A
 * fault of the text is an outcome: MGL_OUTCOME_OK means that it may be kept. Fails without a
 * device (MGL_DEVICE), without memory, or if `abort` was set. */
mgl_status mgl_kernel_try(const mgl_kernel_unit *unit, const char *text,
                          const mgl_trial_options *options, mgl_kernel_trial *out, mgl_error *err);

/* A candidate's whole text, with #define lines for its tunables before it and #undef lines after
 * it, since other files may define the same names. The kernel cache needs no -D options for such
 * a text. Release with mgl_free. */
mgl_status mgl_trial_text(const mgl_kernel_candidate *candidate, char **out, mgl_error *err);

/* Opens the runner of the options. */
mgl_status mgl_trial_open_runner(const mgl_trial_options *options, const mgl_subject *subject,
                                 mgl_runner **out, mgl_error *err);

/* ---- parts, for tests ------------------------------------------------------------------------ */

/* The correctness check in one harness program; adds to *out. */
mgl_status mgl_trial_check_correctness(const mgl_trial_options *options,
                                       const mgl_kernel_unit *unit, const mgl_harness_set *set,
                                       const mgl_candidate *candidate,
                                       const unsigned char nonce[MGL_SHA256_BYTES],
                                       mgl_kernel_trial *out, mgl_error *err);
/* The paired benchmark of a candidate and the incumbent in the set's programs. */
mgl_status mgl_trial_paired_bench(const mgl_trial_options *options, const mgl_harness_set *set,
                                  const mgl_candidate *incumbent, const mgl_candidate *candidate,
                                  const unsigned char nonce[MGL_SHA256_BYTES],
                                  mgl_kernel_paired_bench *out, mgl_error *err);

#endif

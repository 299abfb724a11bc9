/*
 * The gates of a micro-kernel that need a device, for a text that has passed those before
 * (kernel.h):
 *
 *   exam      the op in harness programs (harness.h), whose launches run in a worker (runner.h):
 *             values of six kinds, several shapes, three launches bit-identical, near the CPU
 *             machine's results (correctness.h)            UNWRITTEN, MISMATCH, NONDETERMINISTIC,
 * ... sanitizers  launches under memcheck and synccheck, where the tool works (sanitize.h)
 *                                                   SANITIZER_MEMORY, SANITIZER_SYNC
 *   model     whole launches of 32 tokens, whose tokens and logits are compared with the f32
 *             reference's                           MISMATCH, SEMANTIC, HANG, ...
 *   duel      pairs of launches against the incumbent, in a model of the op's own shape with two
 *             layers                                NO_GAIN, REGRESSION, SUBFLOOR, SUSPICIOUS
 *   models    the same in whole models, on the workloads that somebody wants
 *                                                   MODEL_MISMATCH, MODEL_REGRESSION
 *   weights   replies and likelihoods on a real checkpoint, where one is given (weights_check.h)
 *                                                   MODEL_MISMATCH
 *
 * The incumbent is the kernel as it runs today: as it was built, with what was promoted. Inputs are
 * made of a nonce that is drawn when the text is there. Kernels are compiled before the gates that
 * want them, side by side. Several processes may judge on one device: they take turns
 * (device_lock.h).
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_TRIAL_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_TRIAL_H

#include "autotune/kernels/gates/kernel.h"
#include "autotune/kernels/trial/context.h"
#include "autotune/kernels/trial/correctness.h"
#include "autotune/kernels/trial/harness.h"
#include "autotune/kernels/trial/sanitize.h"
#include "autotune/runner/runner.h"

/* Opens a lab for a subject; `user` of the options. Tests play one. */
typedef mgl_status mgl_trial_runner_fn(void *user, const mgl_subject *subject, mgl_runner **out,
                                       mgl_error *err);

typedef enum mgl_trial_depth {
    MGL_TRIAL_CORRECTNESS,  /* ends behind the exam: correct ones are UNMEASURED */
    MGL_TRIAL_PAIRED_BENCH, /* ends behind the duel */
    MGL_TRIAL_MODELS,       /* all of it */
    MGL_TRIAL_PROMOTE       /* and hidden harness programs in the exam */
} mgl_trial_depth;

typedef struct mgl_trial_options {
    const char *device;  /* "cuda", "cuda:1" */
    const char *program; /* whose worker executes; NULL: "/proc/self/exe" */
    const char *kernels; /* folder of compiled kernels; NULL: the user's */
    const char
        *turns;      /* the file that turns on the device are taken by; NULL: nobody else judges */
    bool no_sandbox; /* as in mgl_runner_options */
    double limit_s;  /* of a request of a worker; 0: the lab's */
    mgl_trial_depth depth;
    const char *shape;           /* of the models; NULL: that of the op's context */
    const mgl_workloads *models; /* NULL: one sequence at contexts 0 and 2,048 */
    const char *checkpoint;      /* its folder or file; NULL: none. With the models */
    int64_t decision;            /* the number of this decision among those of one search; 0: 1 */
    const mgl_cuda_source *sources; /* (source_count) what was promoted: the incumbent's, and of
                                       the candidate all but its own */
    int source_count;
    int most_harnesses;      /* 0: three */
    int most_cases;          /* of each; 0: all */
    const char *only;        /* the name of the one harness program; NULL: those that fit */
    const atomic_int *abort; /* may be NULL */
    mgl_trial_runner_fn *open_runner; /* NULL: the device's */
    void *runner_user;
} mgl_trial_options;

/* What came of an A/B; gains are of log(incumbent / candidate). */
typedef struct mgl_kernel_paired_bench {
    bool timed;
    char shape[48];
    mgl_outcome outcome;
    double gain, gain_lo, gain_hi, level;
    int workload_count, pairs;
    mgl_workloads workloads;
    mgl_workload_result results[MGL_MAX_WORKLOADS];
} mgl_kernel_paired_bench;

/* Where the seconds of a trial went. */
typedef struct mgl_trial_spent {
    double compiling; /* kernels that are wanted, ahead */
    double waiting;   /* for turns on the device */
    double correctness, sanitizers, paired_bench, models, checkpoint;
} mgl_trial_spent;

typedef struct mgl_kernel_trial {
    mgl_outcome outcome;
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1];
    char nonce[MGL_SHA256_HEX];
    char device[128], driver[32], uuid[48];
    int harnesses, cases; /* that it was examined in */
    mgl_correctness_result correctness;
    mgl_sanitizer_ends sanitizers;
    mgl_kernel_paired_bench paired_bench, models;
    mgl_real_facts real; /* of the checkpoint */
    double seconds;
    mgl_trial_spent spent;
} mgl_kernel_trial;

/* `text` (0-terminated) is the unit's whole text, with tunables in their places (mgl_trial_text).
 * Whatever is wrong with it is an outcome: MGL_OUTCOME_OK is what may be kept. Fails where there is
 * no device (MGL_DEVICE), memory ran out, or `abort` was set. */
mgl_status mgl_kernel_try(const mgl_kernel_unit *unit, const char *text,
                          const mgl_trial_options *options, mgl_kernel_trial *out, mgl_error *err);

/* A candidate's whole text with the values of all its tunables in front, as a kernel without -D
 * wants it, and behind it #undef of each, since other files may have one of the name. Owned by the
 * caller: mgl_free. */
mgl_status mgl_trial_text(const mgl_kernel_candidate *candidate, char **out, mgl_error *err);

/* The lab of the options. */
mgl_status mgl_trial_open_runner(const mgl_trial_options *options, const mgl_subject *subject,
                                 mgl_runner **out, mgl_error *err);

/* ---- parts, for tests ------------------------------------------------------------------------ */

/* The exam of one harness program; *out is added to. */
mgl_status mgl_trial_check_correctness(const mgl_trial_options *options,
                                       const mgl_kernel_unit *unit, const mgl_harness_set *set,
                                       const mgl_candidate *candidate,
                                       const unsigned char nonce[MGL_SHA256_BYTES],
                                       mgl_kernel_trial *out, mgl_error *err);
/* The duel of a candidate and the incumbent in the set's programs. */
mgl_status mgl_trial_paired_bench(const mgl_trial_options *options, const mgl_harness_set *set,
                                  const mgl_candidate *incumbent, const mgl_candidate *candidate,
                                  const unsigned char nonce[MGL_SHA256_BYTES],
                                  mgl_kernel_paired_bench *out,
                                  char diagnostic[MGL_MAX_DIAGNOSTIC + 1], mgl_error *err);

#endif

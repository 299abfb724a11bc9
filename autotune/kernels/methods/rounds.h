/*
 * Profile-guided search in rounds (greedy hill climbing). In a round, the profile of the current
 * text gives a class and a hint. A model answers with a proposal, and further calls repair it until
 * it is good. The new text is profiled, and the arbiter decides where the next round starts or that
 * the search ends. From round 2 on, the request also names what the last change made worse.
 * `megalith kernel rounds` (cli/kernel/rounds.c) calls it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_ROUNDS_H
#define MGL_AUTOTUNE_KERNELS_METHODS_ROUNDS_H

#include "autotune/kernels/methods/arbiter.h"
#include "autotune/kernels/methods/edit_span.h"
#include "autotune/kernels/methods/profile.h"
#include "autotune/kernels/versions/version.h"

enum { MGL_ROUNDS_CALLS = 5 /* per round: a proposal and its repairs */ };

/* Fills the known metrics of a text; unknown numbers are unchanged. */
typedef mgl_status mgl_profile_fn(void *user, const char *text, size_t length, mgl_profile *out,
                                  mgl_error *err);

/* One round, reported when it has ended. All pointers are borrowed. */
typedef struct mgl_round_report {
    int number, calls;
    const char *instruction;
    const mgl_trial_verdict *verdict;
    mgl_class class;
    mgl_ruling ruling;
} mgl_round_report;

typedef struct mgl_rounds_options {
    const mgl_work *work;
    const char *text; /* (length) */
    size_t length;
    mgl_kernel_region region;
    mgl_profile_fn *profile; /* NULL: only the verdict's facts are known */
    void *profile_user;
    int rounds, calls;         /* 0: MGL_ARBITER_ROUNDS, MGL_ROUNDS_CALLS */
    bool no_profile, one_shot; /* ablations: no hint; a single round with a single call */
    mgl_versions *versions;    /* stores accepted texts; NULL: nothing is stored */
    void (*on_round)(void *user, const mgl_round_report *round);
    void *user;
} mgl_rounds_options;

/* Release with mgl_rounds_result_clear. */
typedef struct mgl_rounds_result {
    mgl_text text; /* the last accepted text; the initial text if none was accepted */
    int rounds, calls, accepted;
    mgl_finish finish;
    mgl_outcome stopped; /* MGL_OUTCOME_OK, or the PROPOSER_ outcome that stopped the run early */
} mgl_rounds_result;
void mgl_rounds_result_clear(mgl_rounds_result *result);

mgl_status mgl_rounds_run(const mgl_rounds_options *options, mgl_model_client *model_client,
                          const mgl_waiter *waiter, mgl_rounds_result *out, mgl_error *err);

#endif

/*
 * Rounds by profile: what is known of the text becomes a class and a hint; a model answers with a
 * proposal, which is mended by further calls until it is good; it is profiled again, and the
 * arbiter decides what the next round stands on, and whether there is one. From the second round on
 * the request says what got worse behind the last change.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_ROUNDS_H
#define MGL_AUTOTUNE_KERNELS_METHODS_ROUNDS_H

#include "autotune/kernels/methods/arbiter.h"
#include "autotune/kernels/methods/edit_span.h"
#include "autotune/kernels/methods/profile.h"
#include "autotune/kernels/versions/version.h"

enum { MGL_ROUNDS_CALLS = 5 /* of a round: a proposal, and what mends it */ };

/* Fills what is known of a text; unknown numbers stay. */
typedef mgl_status mgl_profile_fn(void *user, const char *text, size_t length, mgl_profile *out,
                                  mgl_error *err);

/* One round, as it is told when it ended. Everything is lent. */
typedef struct mgl_round_report {
    int number, calls;
    const char *instruction;
    const mgl_loop_verdict *verdict;
    mgl_class class;
    mgl_ruling ruling;
} mgl_round_report;

typedef struct mgl_rounds_options {
    const mgl_work *work;
    const char *text; /* (length) */
    size_t length;
    mgl_kernel_region region;
    mgl_profile_fn *profile; /* NULL: the verdict's facts are all that is known */
    void *profile_user;
    int rounds, calls;         /* 0: MGL_ARBITER_ROUNDS, MGL_ROUNDS_CALLS */
    bool no_profile, one_shot; /* ablations: no hint; one round of one call */
    mgl_versions *versions;    /* for what is accepted; NULL: none are made */
    void (*on_round)(void *user, const mgl_round_report *round);
    void *user;
} mgl_rounds_options;

/* Release with mgl_rounds_result_clear. */
typedef struct mgl_rounds_result {
    mgl_text text; /* that was accepted last; that it began with, where none was */
    int rounds, calls, accepted;
    mgl_finish finish;
    mgl_outcome stopped; /* MGL_OUTCOME_OK, or the PROPOSER_ outcome for which it ended early */
} mgl_rounds_result;
void mgl_rounds_result_clear(mgl_rounds_result *result);

mgl_status mgl_rounds_run(const mgl_rounds_options *options, mgl_model_client *model_client,
                          const mgl_waiter *waiter, mgl_rounds_result *out, mgl_error *err);

#endif

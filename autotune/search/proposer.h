/*
 * The interface of proposers, which suggest the next trial. A proposer uses only the trials that
 * it has learned: no clock, no device, no file. The campaign asks for proposals, and passes every
 * trial to every proposer: its own trials, those of others, and those of earlier runs when the
 * campaign resumes. Implemented by propose_*.c, tune_run.c (external) and the chat proposer.
 */
#ifndef MGL_AUTOTUNE_SEARCH_PROPOSER_H
#define MGL_AUTOTUNE_SEARCH_PROPOSER_H

#include "autotune/candidates/gate.h"
#include "base/draw.h"

typedef enum mgl_proposer_answer {
    MGL_PROPOSED,
    MGL_NOT_YET, /* an answer is pending: ask again later */
    MGL_NO_MORE  /* everything was proposed */
} mgl_proposer_answer;

typedef struct mgl_proposer mgl_proposer;
struct mgl_proposer {
    const char *name;
    /* Suggests one trial. `seed` belongs to the trial's number: the same learned trials and the
     * same seed give the same proposal. *out is empty on entry. */
    mgl_status (*propose)(mgl_proposer *self, uint64_t seed, mgl_proposal *out,
                          mgl_proposer_answer *answer, mgl_error *err);
    /* Learns a trial. `trial` is valid only during the call. */
    mgl_status (*learn)(mgl_proposer *self, const mgl_trial *trial, mgl_error *err);
    void (*close)(mgl_proposer *self);
    /* propose uses no store and no network, so a thread may call it while the campaign uses the
     * store and the runner */
    bool apart;
};

typedef struct mgl_proposer_options {
    const mgl_subject *subject;       /* must outlive the proposer */
    const mgl_schedule_config *start; /* initial config of the search; NULL: the default */
    /* set: nothing more is priced, and the proposal is meaningless; may be NULL */
    const atomic_int *abort;
} mgl_proposer_options;

mgl_status mgl_grid_open(const mgl_proposer_options *options, mgl_proposer **out, mgl_error *err);
mgl_status mgl_random_open(const mgl_proposer_options *options, mgl_proposer **out, mgl_error *err);
mgl_status mgl_evolve_open(const mgl_proposer_options *options, mgl_proposer **out, mgl_error *err);
mgl_status mgl_surrogate_open(const mgl_proposer_options *options, mgl_proposer **out,
                              mgl_error *err);

/* Adds the trials of one earlier campaign (count, in the order of their numbers, borrowed) of a
 * similar shape as a prior. They count less than this campaign's trials, and their absolute level
 * is ignored. Must be called before the first trial is learned. MGL_USAGE: the proposer is no
 * surrogate, or it has learned. */
mgl_status mgl_surrogate_add_prior(mgl_proposer *surrogate, const mgl_trial *trials, int count,
                                   mgl_error *err);

#endif

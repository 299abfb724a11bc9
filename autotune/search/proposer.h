/*
 * Proposers: who suggests what to try next. Each stands behind this one interface and owns
 * nothing but its own knowledge: no clock, no device, no verdict. The campaign asks for
 * proposals and tells every proposer of every trial, its own and others', also those of earlier
 * runs when it resumes: a proposer has no memory on disk.
 */
#ifndef MGL_AUTOTUNE_SEARCH_PROPOSER_H
#define MGL_AUTOTUNE_SEARCH_PROPOSER_H

#include "autotune/search/gate.h"
#include "base/draw.h"

typedef enum mgl_proposer_answer {
    MGL_PROPOSED,
    MGL_NOT_YET, /* an answer is on its way, or somebody is waited for: ask again */
    MGL_NO_MORE  /* everything was proposed */
} mgl_proposer_answer;

typedef struct mgl_proposer mgl_proposer;
struct mgl_proposer {
    const char *name;
    /* Suggests one trial. `seed` is that of the trial's number: with the same trials told, the
     * same seed gives the same proposal. *out was cleared before. */
    mgl_status (*propose)(mgl_proposer *self, uint64_t seed, mgl_proposal *out,
                          mgl_proposer_answer *answer, mgl_error *err);
    /* Hears of a trial. `trial` is only lent. */
    mgl_status (*learn)(mgl_proposer *self, const mgl_trial *trial, mgl_error *err);
    void (*close)(mgl_proposer *self);
    bool apart; /* propose uses its own knowledge alone, so a thread may run it while the campaign
                 * uses store and lab */
};

typedef struct mgl_proposer_options {
    const mgl_subject *subject;       /* must outlive the proposer */
    const mgl_schedule_config *start; /* that the search begins with; NULL: the default */
    const atomic_int *abort;          /* then nothing more is priced, and what is proposed says
                                       * nothing; NULL: none */
} mgl_proposer_options;

mgl_status mgl_grid_open(const mgl_proposer_options *options, mgl_proposer **out, mgl_error *err);
mgl_status mgl_random_open(const mgl_proposer_options *options, mgl_proposer **out, mgl_error *err);
mgl_status mgl_evolve_open(const mgl_proposer_options *options, mgl_proposer **out, mgl_error *err);
mgl_status mgl_surrogate_open(const mgl_proposer_options *options, mgl_proposer **out,
                              mgl_error *err);

/* Tells a surrogate of an earlier campaign, one call each, of a near shape: its trials in the
 * order of their numbers (count), lent. What they say counts less than this campaign's own, and
 * its level not at all. Before the first trial is learned. MGL_USAGE: the proposer is no
 * surrogate, or it has learned. */
mgl_status mgl_surrogate_add_prior(mgl_proposer *surrogate, const mgl_trial *trials, int count,
                                   mgl_error *err);

/* What a trial is worth by itself, in us: where it was measured, the objective of its
 * incumbent's medians times exp(-gain), which pairs make comparable with its incumbent; else
 * predicted_us, of a program that is correct or UNMEASURED. 0: refused, incorrect, or of no
 * known speed. Over a campaign the incumbent and the device change: proposers chain trials,
 * each to the value that its incumbent had when it was kept. */
double mgl_trial_value(const mgl_trial *trial);

#endif

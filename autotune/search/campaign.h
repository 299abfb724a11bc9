/*
 * A campaign: proposals, gates, the lab, the judge and the store, trial after trial, until its
 * hours or trials are used up. See campaign.c for the loop.
 */
#ifndef MGL_AUTOTUNE_SEARCH_CAMPAIGN_H
#define MGL_AUTOTUNE_SEARCH_CAMPAIGN_H

#include "autotune/runner/runner.h"
#include "autotune/search/proposer.h"
#include "autotune/store/store.h"

enum { MGL_MAX_PROPOSERS = 6, MGL_CONTROL_EVERY = 10 };
#define MGL_ERROR_SHARE 1.25 /* of the default's error: what another number format may have */
#define MGL_LEAST_DISK  (UINT64_C(1) << 30) /* bytes free */

typedef struct mgl_campaign_event {
    const char *kind; /* "prior", "sandbox", "costs", "start", "trial", "again", "keep", "control",
                         "pause", "error", "waits" (MGL_SPENT_EVENT), "end", "condemned", "chat": an
                         endpoint begins to fail, or answers again */
    const char *text; /* one sentence */
    const mgl_trial *trial; /* of "trial", "keep" and "control"; else NULL */
} mgl_campaign_event;

/* Where the time of a run went, told at its end: campaign_spent.c says in which words. */
#define MGL_SPENT_EVENT "waits"

typedef struct mgl_campaign_options {
    const mgl_subject *subject;
    mgl_campaign_record *record; /* added to the store, or found in it */
    mgl_store *store;
    mgl_runner *runner;
    struct {
        mgl_proposer *proposer;
        double share; /* of the trials, relative to the others' */
    } proposers[MGL_MAX_PROPOSERS];
    int proposer_count;
    bool submissions;   /* those of the store go first: `external`, and `campaign submit` */
    double max_seconds; /* of the campaign's life; 0: no limit */
    int64_t max_trials; /* likewise; controls are trials */
    double until_gain;  /* likewise: 0.03 ends it when it is 3 % faster than it began; 0: goes on */
    uint64_t least_disk; /* bytes free beside the store, below which it ends; 0: MGL_LEAST_DISK */
    const atomic_int *abort; /* ends within 0.2 s: the trial at hand is lost, nothing else */
    void (*on_event)(void *user, const mgl_campaign_event *event);
    void *user;
    const char
        *checkpoint;    /* path of the real weights, for mgl_campaign_measure_final; NULL: none */
    const char *commit; /* of the program, that trials name; NULL: not known */
    double (*clock)(void *user); /* seconds; NULL: the monotonic clock (tests have a virtual one) */
} mgl_campaign_options;

/* Runs until the end (MGL_OK, with the reason in the record; the state "running" there: what the
 * proposers learned holds no more, and with fresh ones the campaign goes on), or until it can not
 * go on: `abort` (MGL_INTERRUPTED), a lab that keeps failing or a machine that is unfit
 * (MGL_DEVICE), too little disk (MGL_SYSTEM). The store always has everything that was decided, and
 * the same call goes on from it. MGL_GATE: the manifest differs from the campaign's
 * (MGL_OUTCOME_FROZEN_TAMPERED). */
mgl_status mgl_campaign_run(const mgl_campaign_options *options, mgl_error *err);

/* Measures the incumbent against the default with a lab that nobody used before, and stores what
 * came of it as an event: mgl_answer_final. Before the clock both run on the checkpoint, where
 * there is one: MGL_OUTCOME_MODEL_MISMATCH where they differ. Where there is no clock nothing is
 * timed. Does nothing where there is no incumbent, or a lab that executes nothing. Of the options
 * subject, record, store, lab, checkpoint, abort and on_event count. */
mgl_status mgl_campaign_measure_final(const mgl_campaign_options *options, mgl_error *err);

/* Where that found the incumbent wrong, the store and the record have the last one that was kept
 * before it and is not condemned, or the default; it was not looked at yet. Of the options record,
 * store and on_event count. */
mgl_status mgl_campaign_quarantine(const mgl_campaign_options *options, mgl_error *err);

#define MGL_INTERRUPTED_REASON "it was interrupted" /* of a campaign that is "paused" */

/* Whoever runs a campaign has this lock, and that of the device where it is one. */
mgl_status mgl_campaign_lock(mgl_store *store, int64_t id, mgl_store_lock **out, mgl_error *err);

/* Whether somebody runs it now; true where other machines may, which can not be seen from here. */
mgl_status mgl_campaign_is_run(mgl_store *store, int64_t id, bool *out, mgl_error *err);
/* The path of that lock, which whoever is ended by a signal marks (mgl_store_lock_mark); "" where
 * several workers run a campaign. And whether the one who ran it last did. */
mgl_status mgl_campaign_lock_path(mgl_store *store, int64_t id, mgl_text *out, mgl_error *err);
bool mgl_campaign_was_interrupted(mgl_store *store, int64_t id);

/* The seed of trial `number`: a hash of the campaign's seed and the number. */
uint64_t mgl_campaign_seed(uint64_t seed, int64_t number);

#endif

/*
 * The autotuning campaign: proposals pass the gates, run on the runner, are decided on by the
 * judge, and become stored trials, until a limit of time or trials is reached. Input: a subject, a
 * campaign record, a store, a runner and proposers. Output: trials and events in the store, and the
 * state of the record. Called by tune_run.c. campaign.c describes the loop.
 */
#ifndef MGL_AUTOTUNE_SEARCH_CAMPAIGN_H
#define MGL_AUTOTUNE_SEARCH_CAMPAIGN_H

#include "autotune/runner/runner.h"
#include "autotune/search/proposer.h"
#include "autotune/store/store.h"

enum { MGL_MAX_PROPOSERS = 6, MGL_CONTROL_EVERY = 10 };
#define MGL_LEAST_DISK (UINT64_C(1) << 30) /* bytes that must be free on the disk */

typedef struct mgl_campaign_event {
    /* "prior", "sandbox", "costs", "start", "trial", "again", "keep", "control", "pause",
     * "error", "waits" (MGL_SPENT_EVENT), "end", "quarantined" (MGL_QUARANTINED_EVENT), "chat" (an
     * endpoint begins to fail, or answers again) */
    const char *kind;
    const char *text;       /* one sentence */
    const mgl_trial *trial; /* the trial of an event "trial", "keep" or "control"; else NULL */
} mgl_campaign_event;

/* Kind of the event at the end of a run that reports where the time went (format:
 * campaign_spent.c). */
#define MGL_SPENT_EVENT "waits"

typedef struct mgl_campaign_options {
    const mgl_subject *subject;
    mgl_campaign_record *record; /* record of the campaign, already in the store */
    mgl_store *store;
    mgl_runner *runner;
    struct {
        mgl_proposer *proposer;
        double share; /* share of the trials, relative to the other proposers */
    } proposers[MGL_MAX_PROPOSERS];
    int proposer_count;
    bool submissions;   /* take submissions from the store before asking proposers */
    double max_seconds; /* limit over the campaign's life; 0: no limit */
    int64_t max_trials; /* limit over the campaign's life, including controls; 0: no limit */
    double until_gain;  /* end at this gain: 0.03 means 3 % faster than at the start; 0: no limit */
    uint64_t least_disk;     /* end if fewer bytes are free beside the store; 0: MGL_LEAST_DISK */
    const atomic_int *abort; /* set: the run ends within 0.2 s and loses only the current trial */
    void (*on_event)(void *user, const mgl_campaign_event *event);
    void *user;
    /* path of the real model weights, for mgl_campaign_measure_final; NULL: none */
    const char *checkpoint;
    const char *commit; /* git commit of the program, stored with each trial; NULL: unknown */
    /* returns seconds; NULL: the monotonic clock (tests use a virtual clock) */
    double (*clock)(void *user);
} mgl_campaign_options;

/* Runs the campaign. MGL_OK: it ended, and the record contains the reason. If the record's state is
 * then "running", the knowledge of the proposers is invalid: call again with new proposers.
 *
 * Other results: MGL_INTERRUPTED (`abort` was set), MGL_DEVICE (the runner keeps failing, or the
 * machine is unfit to measure), MGL_SYSTEM (the disk is full), MGL_GATE (the manifest differs from
 * the campaign's, MGL_OUTCOME_FROZEN_TAMPERED). The store always contains every decision, and the
 * same call resumes the campaign. */
mgl_status mgl_campaign_run(const mgl_campaign_options *options, mgl_error *err);

/* Measures the incumbent against the default with a new runner, and stores the result as an event
 * (mgl_answer_final). If a checkpoint is known, both first run on it. MGL_OUTCOME_MODEL_MISMATCH:
 * they differ there. A runner without a clock times nothing. Does nothing if there is no incumbent,
 * or if the runner executes nothing. Uses the options subject, record, store, runner, checkpoint,
 * abort and on_event. */
mgl_status mgl_campaign_measure_final(const mgl_campaign_options *options, mgl_error *err);

/* If the final measurement found the incumbent wrong, quarantines it. The incumbent in the store
 * and the record becomes the last kept trial before it that is not quarantined, or the default. The
 * new incumbent has no final measurement yet. Uses the options record, store and on_event. */
mgl_status mgl_campaign_quarantine(const mgl_campaign_options *options, mgl_error *err);

#define MGL_INTERRUPTED_REASON "it was interrupted" /* reason of a campaign in state "paused" */

/* MGL_USAGE: the device is of another kind than the campaign's. Times of different devices cannot
 * be compared. */
mgl_status mgl_campaign_check_kind(const mgl_campaign_record *record,
                                   const mgl_runner_device *device, mgl_error *err);

/* Takes the lock that the process running the campaign holds (a run also locks its device, if
 * any). */
mgl_status mgl_campaign_lock(mgl_store *store, int64_t id, mgl_store_lock **out, mgl_error *err);

/* Whether a process runs the campaign now. In a shared store, workers on all machines count. */
mgl_status mgl_campaign_is_run(mgl_store *store, int64_t id, bool *out, mgl_error *err);
/* The path of that lock. A process that a signal ends marks this file (mgl_store_lock_mark). "" if
 * the store is shared and several workers may run the campaign. mgl_campaign_was_interrupted
 * returns whether the last run was marked. */
mgl_status mgl_campaign_lock_path(mgl_store *store, int64_t id, mgl_text *out, mgl_error *err);
bool mgl_campaign_was_interrupted(mgl_store *store, int64_t id);

/* The seed of trial `number`: the first 8 bytes of SHA-256 over the campaign's seed and the
 * number. */
uint64_t mgl_campaign_seed(uint64_t seed, int64_t number);

#endif

/*
 * Internal declarations of the campaign loop, shared only by the campaign_*.c files: campaign.c
 * begins, resumes and ends a run; campaign_spent.c accounts for time; campaign_share.c coordinates
 * workers; campaign_source.c gets the next proposal; campaign_early.c searches for a proposal
 * during a measurement; campaign_ahead.c orders attempts by kernel readiness; campaign_trial.c runs
 * the stages of a trial; campaign_measure.c runs the stages of measure.h; campaign_control.c tests
 * the machine.
 */
#ifndef MGL_AUTOTUNE_SEARCH_CAMPAIGN_PARTS_H
#define MGL_AUTOTUNE_SEARCH_CAMPAIGN_PARTS_H

#include "autotune/search/campaign.h"
#include "autotune/search/measure.h"
#include "autotune/store/store_share.h"

/* Limit of proposals that wait for kernels: the number of parallel compilations, plus one. */
enum { MOST_AHEAD = MGL_MOST_COMPILERS + 1 };

/* A trial in progress. */
typedef struct attempt {
    mgl_trial trial;
    mgl_candidate candidate;
    uint64_t seed; /* state of the random generator */
    double began;  /* campaign clock, seconds */
    size_t stage;  /* index of the next stage */
    bool decided;  /* the outcome is decided */
    bool gated; /* the candidate passed through the gates on another thread, during a measurement */
} attempt;

typedef struct campaign_early campaign_early;

/* enum, name: intervals of a run that do not overlap */
#define CAMPAIGN_STRETCHES(X)                                                                      \
    X(START, "start")         /* reading the store, replaying trials, incumbent's gates */         \
    X(RUNNER, "runner")       /* start of the runner: workers, and the incumbent's kernel */       \
    X(SELF_TEST, "self-test") /* self-test of the machine */                                       \
    X(PROPOSAL, "proposal")   /* asking proposers, or waiting for a proposal in progress */        \
    X(GATES, "gates")                                                                              \
    X(CHECK, "check") /* correctness check, including the wait for the kernel */                   \
    X(PAIRS, "pairs")                                                                              \
    X(FLOOR, "floor")                                                                              \
    X(CONTROL, "control")                                                                          \
    X(STORE, "store")                                                                              \
    X(LEARN, "learn") /* passing trials to the proposers, after a search in progress has ended */  \
    X(PAUSE, "pause") /* deliberate waiting */

typedef enum campaign_stretch {
#define MGL_X(id, name) CAMPAIGN_##id,
    CAMPAIGN_STRETCHES(MGL_X)
#undef MGL_X
        CAMPAIGN_STRETCH_COUNT
} campaign_stretch;

/* Seconds of the monotonic clock, independent of the campaign's clock. */
typedef struct campaign_spent_time {
    double began;
    mgl_runner_time stretches[CAMPAIGN_STRETCH_COUNT];
    mgl_runner_time requests[MGL_RUNNER_WAITS],
        works[MGL_RUNNER_WORKS]; /* counters of the runner at the start of the run */
} campaign_spent_time;

/* A running campaign. */
typedef struct campaign {
    const mgl_campaign_options *o;
    const mgl_subject *subject;
    mgl_campaign_record *record;
    mgl_runner_device device;
    mgl_candidate incumbent;    /* the program that the runner compares against */
    char first[MGL_SHA256_HEX]; /* digest of the default */
    double first_predicted;     /* predicted objective of the default in us; 0: none */
    double began;               /* campaign clock at the start of this run */
    double before;              /* seconds of earlier runs */
    double saved;               /* campaign clock at the last update of the time in the store */
    campaign_spent_time spent;
    int64_t decisions; /* decisions made so far, counted in the store */
    double gained;     /* sum of the log ratios of all kept trials */
    double lost;       /* log ratio: sum of the possible losses by simpler programs that were kept
                        * (judge.h) */
    bool exhausted[MGL_MAX_PROPOSERS];
    attempt ahead[MOST_AHEAD]; /* (ahead_count) oldest first */
    int ahead_count;
    campaign_early *early; /* the search in progress during a measurement; NULL: none */
    int bad_controls;      /* bad controls in a row */
    int suspects;          /* candidates in a row that hung or crashed */
    bool disturbed;        /* too many pairs of the last candidate had an event */
    int broken;            /* failures in a row of the runner or of the incumbent */
    /* this worker, in a shared store; NULL: one process runs the campaign alone */
    mgl_store_worker *worker;
    int64_t seen;        /* id of the last trial that this worker has read */
    int64_t newest;      /* number of the last kept trial; 0: none */
    int64_t taken;       /* number reserved for the current trial; 0: none */
    int64_t quarantined; /* number of quarantined trials when this worker began */
    int64_t draws;       /* number of seeds that this worker has drawn */
    const char *over;    /* final state of the campaign; NULL: it continues */
    char reason[300];    /* why: one sentence */
} campaign;

enum {
    MOST_BROKEN = 3,      /* failures in a row after which the run ends */
    MOST_SUSPECTS = 3,    /* suspects in a row that trigger a control */
    MOST_BAD_CONTROLS = 2 /* bad controls in a row that stop all other trials */
};

/* ---- campaign.c ------------------------------------------------------------------------------ */

double campaign_clock(const campaign *c);
double campaign_spent(const campaign *c); /* seconds over the campaign's life */
/* Sleeps until the time is over or `abort` is set. With a virtual clock, returns at once. */
mgl_status campaign_wait(campaign *c, double seconds, mgl_error *err);
/* Reports an event to the caller and, if `kept`, adds it to the store. */
mgl_status campaign_tell(campaign *c, bool kept, const char *kind, const mgl_trial *trial,
                         mgl_error *err, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* Ends the run after the current trial. */
void campaign_end(campaign *c, const char *state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The locks of the campaign and of the device. */
typedef struct campaign_locks {
    mgl_store_lock *whole, *device;
    /* all required locks are held; the campaign in a shared store has no lock of its own */
    bool taken;
} campaign_locks;
mgl_status campaign_take_locks(const campaign *c, campaign_locks *out, mgl_error *err);
void campaign_release_locks(campaign_locks *held);
/* Adds a stored trial to the gains and losses, if it was kept. */
void campaign_count_keep(campaign *c, const mgl_trial *trial);
/* Stores a trial and passes it to every proposer. */
mgl_status campaign_store_trial(campaign *c, mgl_trial *trial, mgl_error *err);
/* Restarts the runner with the incumbent. */
mgl_status campaign_restart_runner(campaign *c, mgl_error *err);

/* Loads the store's incumbent, which must pass all gates, into c->incumbent. The runner is not
 * restarted. */
mgl_status campaign_load_incumbent(campaign *c, mgl_error *err);
/* Passes a trial to every proposer. */
mgl_status campaign_teach(campaign *c, const mgl_trial *trial, mgl_error *err);

/* ---- campaign_spent.c ------------------------------------------------------------------------ */

void campaign_start_spending(campaign *c);
/* Adds the time since `since` (mgl_clock_s) to an interval. Returns the current time. */
double campaign_note(campaign *c, campaign_stretch stretch, double since);
/* Reports the time account as an event and stores it. */
mgl_status campaign_tell_spent(campaign *c, mgl_error *err);

/* ---- campaign_share.c ------------------------------------------------------------------------ */

/* Registers as a worker, if the store is shared. */
mgl_status campaign_join(campaign *c, mgl_error *err);
/* Whether a worker runs the campaign; MGL_DEVICE if one does. */
mgl_status campaign_has_workers(mgl_store *store, int64_t id, bool *out, mgl_error *err);
mgl_status campaign_check_workers(mgl_store *store, int64_t id, mgl_error *err);
/* *last: no other worker runs the campaign. */
mgl_status campaign_leave(campaign *c, bool *last, mgl_error *err);
/* Reads trials that other workers stored since the last call, and passes them to the proposers. */
mgl_status campaign_hear(campaign *c, mgl_error *err);
/* campaign_number: the number of the current trial. campaign_draw_seed: the seed of a proposal that
 * may become trial `number`. */
int64_t campaign_number(const campaign *c);
uint64_t campaign_draw_seed(campaign *c, int64_t number);
/* Reserves the number of the next trial. 0: all numbers are used or reserved, and another worker
 * may still release one. */
mgl_status campaign_take_number(campaign *c, int64_t *number, mgl_error *err);

/* ---- campaign_source.c ----------------------------------------------------------------------- */

/* Gets the next proposal from the submissions of the store, or from a proposer. A submission that
 * cannot be parsed sets the outcome PARSE in the attempt. */
mgl_status campaign_find_proposal(campaign *c, attempt *a, mgl_proposer_answer *answer,
                                  mgl_error *err);

/* Gets the next proposal from the proposers only. */
mgl_status campaign_ask_proposers(campaign *c, attempt *a, mgl_proposer_answer *answer,
                                  mgl_error *err);

/* ---- campaign_early.c ------------------------------------------------------------------------ */

/* Whether proposals can be searched for on another thread: the runner compiles kernels (is_ready is
 * set), the store is not shared, and no proposer needs the store or a network. */
bool campaign_can_look_early(const campaign *c);
/* Starts the search for the proposal after the current trial, if possible. */
void campaign_look_early(campaign *c);
/* Returns the candidate of the finished search, if it succeeded and passed the gates; else NULL. */
const mgl_candidate *campaign_found_early(const campaign *c);
/* Waits for the search to end. Afterwards no other thread uses a proposer. */
void campaign_await_early(const campaign *c);
/* Moves the result of the search to the caller: seed, proposal and candidate of the attempt, the
 * answer, and the status of campaign_ask_proposers or the gates. False: no search was started. */
bool campaign_take_early(campaign *c, attempt *a, mgl_proposer_answer *answer, mgl_status *status,
                         mgl_error *err);
void campaign_forget_early(campaign *c);

/* ---- campaign_ahead.c ------------------------------------------------------------------------ */

/* Gets the first proposals before the runner starts, so that their kernels compile in parallel with
 * the incumbent's. */
mgl_status campaign_begin_ahead(campaign *c, mgl_error *err);
/* Called between two stages of a trial. If the finished search found a candidate that needs a
 * kernel, starts its compilation and begins another search. */
mgl_status campaign_tend_ahead(campaign *c, mgl_error *err);

/* Returns the next attempt. The caller releases it with attempt_clear, for every answer. */
mgl_status campaign_find_attempt(campaign *c, attempt *a, mgl_proposer_answer *answer,
                                 mgl_error *err);
/* Discards the attempts that wait for kernels. */
void campaign_forget_ahead(campaign *c);

/* ---- campaign_trial.c ------------------------------------------------------------------------ */

void attempt_begin(const campaign *c, attempt *a, int64_t number);
void attempt_clear(attempt *a);
void attempt_decide(attempt *a, mgl_outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Makes the verdict of a gate the trial's. */
void attempt_take(attempt *a, const mgl_trial_verdict *verdict);
/* Runs the gates that need no store (lowering, validator, cost model) on any thread. campaign_gate
 * uses their result. */
mgl_status campaign_gate_apart(const campaign *c, attempt *a, mgl_error *err);
/* Runs the attempt through the stages before the runner. Each stage may decide the attempt. */
mgl_status campaign_gate(campaign *c, attempt *a, mgl_error *err);
/* Decides an attempt as DUPLICATE if its program was tried before. */
mgl_status campaign_recognise(campaign *c, attempt *a, mgl_error *err);
/* Runs the attempt through all remaining stages, and stores the trial. */
mgl_status campaign_try(campaign *c, attempt *a, mgl_error *err);
/* Draws the trial's nonce from fresh random bytes, so that no candidate can know the nonce in
 * advance. */
mgl_status attempt_draw_nonce(attempt *a, unsigned char nonce[MGL_SHA256_BYTES], mgl_error *err);
/* Handles a status of the runner. MGL_OK, MGL_NO_MEMORY and MGL_INTERRUPTED are returned unchanged.
 * For a failure of the runner, sets the attempt to UNMEASURED, reports and counts the failure, and
 * restarts the runner. Returns MGL_OK, or MGL_DEVICE after too many failures in a row. */
mgl_status campaign_forgive(campaign *c, attempt *a, mgl_status status, mgl_error *err);

/* ---- campaign_measure.c ---------------------------------------------------------------------- */

/* The measurement of an attempt against the incumbent, with the state of the campaign. */
mgl_measurement measure_begin(campaign *c, attempt *a);
/* Stages of a measurement. Each one lets the attempt continue, or decides it. The last one always
 * decides. */
mgl_status measure_screen(campaign *c, attempt *a, mgl_error *err);
mgl_status measure_survivors(campaign *c, attempt *a, mgl_error *err);
mgl_status measure_decision(campaign *c, attempt *a, mgl_error *err);

/* ---- campaign_control.c ---------------------------------------------------------------------- */

/* Self-test: whether the validator rejects a planted error, and whether A/A pairs on this machine
 * show no difference. Fails with MGL_DEVICE or MGL_GATE and a message. */
mgl_status campaign_test_machine(campaign *c, mgl_error *err);
bool campaign_wants_control(const campaign *c, int64_t number);
/* Runs a control: a trial of the incumbent against itself (A/A). */
mgl_status campaign_run_control(campaign *c, int64_t number, mgl_error *err);

#endif

/*
 * What the files of the loop share, and nobody else: campaign.c begins, goes on and ends;
 * campaign_spent.c says where the time went;
 * campaign_source.c finds the next proposal, campaign_early.c while another one is measured;
 * campaign_ahead.c says which attempt is next; campaign_trial.c makes a trial of it;
 * campaign_measure.c takes pairs; campaign_control.c looks whether the machine can be trusted.
 */
#ifndef MGL_AUTOTUNE_SEARCH_CAMPAIGN_PARTS_H
#define MGL_AUTOTUNE_SEARCH_CAMPAIGN_PARTS_H

#include "autotune/search/campaign.h"
#include "autotune/search/judge.h"
#include "autotune/store/store_share.h"

/* Proposals that wait for their kernels: as many as are compiled at the same time, and one more. */
enum { MOST_AHEAD = MGL_MOST_COMPILERS + 1 };

/* A trial in the making. */
typedef struct attempt {
    mgl_trial trial;
    mgl_candidate candidate;
    uint64_t seed; /* draws: moves on */
    double began;  /* clock */
    size_t stage;  /* that is next */
    bool decided;  /* its outcome is */
    bool gated;    /* the candidate went through the gates beside a measurement */
} attempt;

typedef struct campaign_early campaign_early;

/*  enum, name: stretches of a run, that do not overlap */
#define CAMPAIGN_STRETCHES(X)                                                                      \
    X(START, "start")         /* of the campaign: the store, what was tried, the gates */          \
    X(RUNNER, "lab")          /* that starts: workers, and the incumbent's kernel */               \
    X(SELF_TEST, "self-test") /* of the machine */                                                 \
    X(PROPOSAL, "proposal")   /* to ask for one, or to wait for one that is being looked for */    \
    X(GATES, "gates")                                                                              \
    X(CHECK, "check") /* whether it is correct, and its kernel is waited for */                    \
    X(PAIRS, "pairs")                                                                              \
    X(FLOOR, "floor")                                                                              \
    X(CONTROL, "control")                                                                          \
    X(STORE, "store")                                                                              \
    X(LEARN, "learn") /* proposers do, behind one that is looked for */                            \
    X(PAUSE, "pause") /* of its own will */

typedef enum campaign_stretch {
#define MGL_X(id, name) CAMPAIGN_##id,
    CAMPAIGN_STRETCHES(MGL_X)
#undef MGL_X
        CAMPAIGN_STRETCH_COUNT
} campaign_stretch;

/* Seconds of the wall's clock, whatever clock the campaign goes by. */
typedef struct campaign_spent_time {
    double began;
    mgl_runner_time stretches[CAMPAIGN_STRETCH_COUNT];
    mgl_runner_time requests[MGL_RUNNER_WAITS],
        works[MGL_RUNNER_WORKS]; /* of the lab, when it began */
} campaign_spent_time;

/* A campaign in progress. */
typedef struct campaign {
    const mgl_campaign_options *o;
    const mgl_subject *subject;
    mgl_campaign_record *record;
    mgl_runner_device device;
    mgl_candidate incumbent;    /* as the lab has it */
    char first[MGL_SHA256_HEX]; /* digest of the default */
    double first_predicted;     /* its objective; 0: none */
    double began;               /* clock when this run began */
    double before;              /* seconds of earlier runs */
    double saved;               /* clock when the store was told of the time */
    campaign_spent_time spent;
    int64_t decisions; /* so far, in the store */
    double gained;     /* log ratio: of all that was kept, one upon the other */
    double lost;       /* log ratio: by simpler programs that were kept (judge.h) */
    bool exhausted[MGL_MAX_PROPOSERS];
    attempt ahead[MOST_AHEAD]; /* (ahead_count) oldest first */
    int ahead_count;
    campaign_early *early;    /* what is looked for meanwhile; NULL: nothing */
    int bad_controls;         /* in a row */
    int suspects;             /* candidates in a row that did not come to an end */
    bool disturbed;           /* a candidate's pairs had too many events to say anything */
    int broken;               /* failures of the lab or of the incumbent itself, in a row */
    mgl_store_worker *worker; /* of a shared store; NULL: the campaign is this process's alone */
    int64_t seen;             /* id of the last trial that this worker has heard of */
    int64_t newest;           /* number of the last one that was kept; 0: none */
    int64_t taken;            /* number of the trial at hand; 0: none is taken */
    int64_t quarantined;      /* trials, when this worker began */
    int64_t draws;            /* seeds that this worker drew */
    const char *over;         /* the state that it ended with; NULL: it goes on */
    char reason[300];         /* why: one sentence */
} campaign;

enum {
    MOST_BROKEN = 3,      /* failures in a row, behind which it ends */
    MOST_SUSPECTS = 3,    /* behind which the incumbent has to show that it is not the machine */
    MOST_BAD_CONTROLS = 2 /* behind which nothing is tried until a good one */
};

/* ---- campaign.c ------------------------------------------------------------------------------ */

double campaign_clock(const campaign *c);
double campaign_spent(const campaign *c); /* seconds of the campaign's life */
/* Sleeps, or until `abort`; not with a clock that is no clock. */
mgl_status campaign_wait(campaign *c, double seconds, mgl_error *err);
/* Tells the caller, and the store where `kept`. */
mgl_status campaign_tell(campaign *c, bool kept, const char *kind, const mgl_trial *trial,
                         mgl_error *err, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* Ends the run after the trial at hand. */
void campaign_end(campaign *c, const char *state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Of the campaign, and of the device. */
typedef struct campaign_locks {
    mgl_store_lock *whole, *device;
    bool taken; /* both, or what there is of them: a shared store's campaign has workers */
} campaign_locks;
mgl_status campaign_take_locks(const campaign *c, campaign_locks *out, mgl_error *err);
void campaign_release_locks(campaign_locks *held);
/* What a trial that the store has adds to gains and losses: nothing unless it was kept. */
void campaign_count_keep(campaign *c, const mgl_trial *trial);
/* A trial is stored, and every proposer hears of it. */
mgl_status campaign_store_trial(campaign *c, mgl_trial *trial, mgl_error *err);
/* The lab begins anew with the incumbent. */
mgl_status campaign_restart_runner(campaign *c, mgl_error *err);

/* The store's incumbent, which has to pass all gates; the lab does not have it yet. */
mgl_status campaign_load_incumbent(campaign *c, mgl_error *err);
/* Every proposer hears of a trial. */
mgl_status campaign_teach(campaign *c, const mgl_trial *trial, mgl_error *err);

/* ---- campaign_spent.c ------------------------------------------------------------------------ */

void campaign_start_spending(campaign *c);
/* The time since `since` (mgl_clock_s) went to a stretch; returns now. */
double campaign_note(campaign *c, campaign_stretch stretch, double since);
/* Tells of all of it, and the store. */
mgl_status campaign_tell_spent(campaign *c, mgl_error *err);

/* ---- campaign_share.c ------------------------------------------------------------------------ */

/* MGL_USAGE: the device is of another kind than the campaign. */
mgl_status campaign_check_kind(const campaign *c, mgl_error *err);
/* Becomes a worker, where the store is shared. */
mgl_status campaign_join(campaign *c, mgl_error *err);
/* Whether anybody does; MGL_DEVICE where somebody does. */
mgl_status campaign_has_workers(mgl_store *store, int64_t id, bool *out, mgl_error *err);
mgl_status campaign_check_workers(mgl_store *store, int64_t id, mgl_error *err);
/* *last: nobody else runs the campaign. */
mgl_status campaign_leave(campaign *c, bool *last, mgl_error *err);
/* Proposers hear of what was stored since. */
mgl_status campaign_hear(campaign *c, mgl_error *err);
/* The number of the trial at hand, and the seed of a proposal that may become trial `number`. */
int64_t campaign_number(const campaign *c);
uint64_t campaign_draw_seed(campaign *c, int64_t number);
/* Takes the number of the next trial; 0: all are made or taken, and somebody may still give one
 * back. */
mgl_status campaign_take_number(campaign *c, int64_t *number, mgl_error *err);

/* ---- campaign_source.c ----------------------------------------------------------------------- */

/* The next proposal: of the store's submissions, or of a proposer. A submission that can not be
 * read has the outcome PARSE in the attempt. */
mgl_status campaign_find_proposal(campaign *c, attempt *a, mgl_proposer_answer *answer,
                                  mgl_error *err);

/* The same of proposers alone. */
mgl_status campaign_ask_proposers(campaign *c, attempt *a, mgl_proposer_answer *answer,
                                  mgl_error *err);

/* ---- campaign_early.c ------------------------------------------------------------------------ */

/* Whether proposals can be looked for apart: the lab measures on a device, and no proposer needs
 * the store or a network. */
bool campaign_can_look_early(const campaign *c);
/* Begins to look for the proposal behind the trial at hand, where that is possible. */
void campaign_look_early(campaign *c);
/* Whether one was found that may be waited for: no failure, and not refused by the gates. Its
 * candidate; NULL: none. */
const mgl_candidate *campaign_found_early(const campaign *c);
/* Until it was found: nobody uses a proposer meanwhile. */
void campaign_await_early(const campaign *c);
/* What was found, if anything was looked for: the attempt's seed, proposal and candidate, the
 * answer, and what campaign_ask_proposers or the gates returned. */
bool campaign_take_early(campaign *c, attempt *a, mgl_proposer_answer *answer, mgl_status *status,
                         mgl_error *err);
void campaign_forget_early(campaign *c);

/* ---- campaign_ahead.c ------------------------------------------------------------------------ */

/* Before the lab starts, which takes as long as its kernel is compiled: the first proposals, whose
 * kernels are compiled meanwhile. */
mgl_status campaign_begin_ahead(campaign *c, mgl_error *err);
/* Between two stages of a trial: where what was found early needs a kernel, that is compiled from
 * now on, and another proposal is looked for. */
mgl_status campaign_tend_ahead(campaign *c, mgl_error *err);

/* The attempt that is next; release with attempt_clear, whatever the answer is. */
mgl_status campaign_find_attempt(campaign *c, attempt *a, mgl_proposer_answer *answer,
                                 mgl_error *err);
/* Those that wait are lost. */
void campaign_forget_ahead(campaign *c);

/* ---- campaign_trial.c ------------------------------------------------------------------------ */

void attempt_begin(const campaign *c, attempt *a, int64_t number);
void attempt_clear(attempt *a);
void attempt_decide(attempt *a, mgl_outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Those of the gates that need no store, on any thread: lowering, the validator, the cost model.
 * What they say is taken by campaign_gate. */
mgl_status campaign_gate_apart(const campaign *c, attempt *a, mgl_error *err);
/* Takes the attempt's proposal through the stages before the lab; one of them may decide it. */
mgl_status campaign_gate(campaign *c, attempt *a, mgl_error *err);
/* Decides an attempt whose program was tried before. */
mgl_status campaign_recognise(campaign *c, attempt *a, mgl_error *err);
/* Whether the attempt's candidate is correct, by the lab. */
mgl_status campaign_check(campaign *c, attempt *a, const unsigned char nonce[MGL_SHA256_BYTES],
                          mgl_runner_check *out, mgl_error *err);
/* Takes the attempt's proposal through all stages that are left, and stores what came of it. */
mgl_status campaign_try(campaign *c, attempt *a, mgl_error *err);
/* Fresh random bytes, which nobody could know before, as the trial's nonce. */
mgl_status attempt_draw_nonce(attempt *a, unsigned char nonce[MGL_SHA256_BYTES], mgl_error *err);
/* What a status of the lab comes to. MGL_OK, MGL_NO_MEMORY and MGL_INTERRUPTED stay; a failure of
 * the lab's own leaves the attempt UNMEASURED, is told and counted, and starts the lab again:
 * MGL_OK, or MGL_DEVICE when it was one too many. */
mgl_status campaign_forgive(campaign *c, attempt *a, mgl_status status, mgl_error *err);

/* ---- campaign_measure.c ---------------------------------------------------------------------- */

/* Pairs of a stage, of all workloads; decides the attempt where one did not come to an end. */
mgl_status measure_stage(campaign *c, attempt *a, mgl_pair_stage stage, mgl_error *err);
/* Medians and gains, from the pairs of a stage. */
mgl_status measure_summarise(mgl_trial *trial, mgl_pair_stage stage, mgl_error *err);
/* Stages: each leaves hope, or decides the attempt. The last one always does. */
mgl_status measure_screen(campaign *c, attempt *a, mgl_error *err);
mgl_status measure_survivors(campaign *c, attempt *a, mgl_error *err);
mgl_status measure_decision(campaign *c, attempt *a, mgl_error *err);
/* Whether a time is less than the bytes of the lab's candidate take; the stream is measured again
 * before it is said. */
mgl_status measure_floor(campaign *c, int workload, double us, double *floor_us, bool *below,
                         mgl_error *err);

/* ---- campaign_control.c ---------------------------------------------------------------------- */

/* Whether the validator still refuses what it must, and the machine measures nothing where there is
 * nothing: MGL_DEVICE or MGL_GATE, with a sentence. */
mgl_status campaign_test_machine(campaign *c, mgl_error *err);
bool campaign_wants_control(const campaign *c, int64_t number);
/* A trial of the incumbent against itself. */
mgl_status campaign_run_control(campaign *c, int64_t number, mgl_error *err);

#endif

/*
 * Campaigns as somebody asks for them: what to tune, on what, by whom; and a campaign of a store
 * made ready to go on. A campaign is made of its record alone, whether it begins or goes on, so
 * that the same record always means the same search.
 *
 *     mgl_tune tune;
 *     mgl_tune_request request = {.shape = "llama-1b", .device = "cuda"};
 *     mgl_tune_prepare(store, &request, true, &tune, &err);
 *     mgl_tune_run(&tune, &(mgl_tune_run_options){.max_trials = 100}, &err);
 *     mgl_tune_clear(&tune);
 */
#ifndef MGL_AUTOTUNE_TUNE_H
#define MGL_AUTOTUNE_TUNE_H

#include "autotune/search/campaign.h"
#include "autotune/store/archive.h"
#include "schedule/tuned.h"

#define MGL_TUNE_PROPOSERS "evolve:2,surrogate:2,random:1"
#define MGL_TUNE_TARGET    "sm_90a:132" /* where there is no device */
enum { MGL_TUNE_CAPACITY = 4096 };      /* positions, within the model's */

/* What was asked for; NULL and 0 mean the default of each field. Strings are not kept. */
typedef struct mgl_tune_request {
    const char *model;  /* a MODEL or a config.json; or NULL */
    const char *shape;  /* the name of a shape, in its place */
    const char *device; /* "cuda", "cuda:1", "cpu", "none"; NULL: "cuda" */
    const char *target; /* of "cpu" and "none" */
    const char *dtype;  /* "bf16", or "f16" and "f32" where no GPU executes them; NULL: "bf16" */
    const char
        *workloads; /* "ctx=0,8192;batch=1,8"; NULL: one sequence, at 0 and at half its capacity */
    int capacity;   /* positions of a sequence */
    const char *space;     /* path of a space's JSON */
    const char *config;    /* path of the ScheduleConfig that is begun with */
    const char *proposers; /* "evolve:2,random": names, and shares (1) */
    bool allow_narrow;     /* knobs that change number formats */
    bool has_seed;
    uint64_t seed;                     /* else one is drawn */
    const char *chat_url, *chat_model; /* of the proposer chat */
    const char *name;                  /* the whole of it; NULL: made of what is tuned */
    bool fresh;                        /* a new campaign, where one of that name stands: NAME-2 */
    /* Where the one that stands began under another manifest: its successor, NAME-2, which begins
     * with the incumbent as a submission: gated and measured anew. Else it goes on. */
    bool rebase;
} mgl_tune_request;

/* A campaign that can be run. */
typedef struct mgl_tune {
    mgl_store *store; /* lent */
    mgl_campaign_record record;
    mgl_subject subject;
    char *device;                /* "cuda:1" */
    char *proposers;             /* as requested */
    char *chat_url, *chat_model; /* of the proposer chat; NULL: there is none */
    char *checkpoint; /* absolute path of the model's weights; NULL: it is a shape. In no answer */
    bool found;       /* it stood in the store before */
    struct {
        int64_t campaign, trial;
    } successor_of; /* id of the campaign and number of its incumbent; of a new record that
                       `rebase` made */
} mgl_tune;

/* The campaign that is asked for: found by its name, else made and, with `add`, put into the store.
 * MGL_USAGE: one of that name stands and is another one. `store` may be NULL without `add`. */
mgl_status mgl_tune_prepare(mgl_store *store, const mgl_tune_request *request, bool add,
                            mgl_tune *out, mgl_error *err);
/* MGL_USAGE: no list of proposers, such as "evolve:2,random". */
mgl_status mgl_tune_check_proposers(const char *text, mgl_error *err);
/* A campaign of the store, by name; NULL: the newest. */
mgl_status mgl_tune_find(mgl_store *store, const char *name, mgl_tune *out, mgl_error *err);
/* The same; where that campaign began under another manifest, the newest of its successors, or one
 * that is made and put into the store, as with mgl_tune_request's `rebase`. */
mgl_status mgl_tune_rebase(mgl_store *store, const char *name, mgl_tune *out, mgl_error *err);
void mgl_tune_clear(mgl_tune *tune);

/* Begins a campaign of an archive's model, target and workloads, in which the archive's winner
 * waits as a submission: it is replayed, validated and measured like any other. Of the request
 * name, device, proposers and allow_narrow count. */
mgl_status mgl_tune_import(mgl_store *store, const mgl_archive *archive,
                           const mgl_tune_request *request, mgl_campaign_record *out,
                           mgl_error *err);

/* The tuned entries that a campaign's winner makes, one for each number of sequences among its
 * workloads, in turn. MGL_BAD_INPUT: there is no winner. MGL_USAGE: it is a schedule text, or it
 * was measured in the lower half of its capacity alone. */
typedef mgl_status mgl_tuned_fn(void *user, const mgl_tuned *entry, mgl_error *err);
mgl_status mgl_tune_entries(mgl_store *store, const char *name, mgl_tuned_fn *each, void *user,
                            mgl_error *err);

#define MGL_TUNE_DISK (UINT64_C(4) << 30)
typedef struct mgl_tune_run_options {
    const char *device; /* in place of the campaign's: another ordinal of the same kind */
    const char *commit; /* of the program, that trials name; NULL: not known */
    double max_seconds; /* as in mgl_campaign_options */
    int64_t max_trials;
    uint64_t disk_bytes;                    /* of the campaign's kernels; 0: MGL_TUNE_DISK */
    const char *chat_key;                   /* of the proposer chat; copied, and in no store */
    int64_t budget_tokens, budget_requests; /* of the campaign's life; 0: no limit */
    double until_gain;
    bool no_sandbox;             /* as in mgl_runner_options */
    mgl_runner *runner;          /* lent, in place of the campaign's own; NULL: its own is opened */
    double (*clock)(void *user); /* of such a lab; NULL: the monotonic clock */
    const atomic_int *abort;
    void (*on_event)(void *user, const mgl_campaign_event *event);
    void *user;
} mgl_tune_run_options;
/* Opens lab and proposers, and runs the campaign (mgl_campaign_run). */
mgl_status mgl_tune_run(mgl_tune *tune, const mgl_tune_run_options *options, mgl_error *err);

/* The body of the request that the proposer chat would send next. */
mgl_status mgl_tune_show_prompt(const mgl_tune *tune, mgl_text *out, mgl_error *err);

/* What a campaign that has not begun is up to. */
typedef struct mgl_tune_outlook {
    int programs;     /* one for each number of sequences; two machines of one stand at a time */
    double configs;   /* combinations of the space's knobs */
    double gate_s;    /* the gates of one trial, before any device */
    double predicted; /* of the default: the objective in us; 0: the device's costs are not known */
    /* Of a device that is there; all 0 without one. */
    uint64_t memory_needed, memory_free; /* bytes */
    double device_s; /* of a trial that is measured, roughly, without compiling; 0: not known */
} mgl_tune_outlook;
mgl_status mgl_tune_look(const mgl_tune *tune, const atomic_int *abort, mgl_tune_outlook *out,
                         mgl_error *err);

/* Asks whoever runs it to end after the trial at hand (*running), or notes that it is stopped; one
 * that has ended stays so. */
mgl_status mgl_tune_stop(mgl_store *store, const mgl_campaign_record *campaign, bool *running,
                         mgl_error *err);
/* What the store says of a campaign is its last word: one that is "running" there, and that nobody
 * runs, is "paused" where a signal ended who ran it before the store was told, else "killed", or
 * "waiting" where it never began. Changes the record's state and reason
 * alone. */
mgl_status mgl_tune_look_state(mgl_store *store, mgl_campaign_record *campaign, mgl_error *err);
/* Removes a campaign that nobody runs. MGL_DEVICE: somebody does. */
mgl_status mgl_tune_delete(mgl_store *store, const mgl_campaign_record *campaign, mgl_error *err);

/* ---- submissions ----------------------------------------------------------------------------- */

/* Queues a proposal (its JSON or a schedule text) for a campaign; its id to *id. What no queue
 * could hold is MGL_BAD_INPUT. MGL_GATE: the campaign began under another manifest. */
mgl_status mgl_tune_submit(mgl_store *store, const mgl_campaign_record *campaign, const char *text,
                           size_t length, const char *origin, int64_t *id, mgl_error *err);
/* Whether a process runs the campaign of that name, or begins it. */
mgl_status mgl_tune_is_running(mgl_store *store, const char *name, bool *running, mgl_error *err);
/* Waits until a submission is a trial: *out is that, without pairs. Number 0: nobody runs the
 * campaign, so that it goes on waiting. Release with mgl_trial_clear. */
mgl_status mgl_tune_await(mgl_store *store, const mgl_campaign_record *campaign, int64_t submission,
                          const atomic_int *abort, mgl_trial *out, mgl_error *err);

#endif

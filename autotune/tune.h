/*
 * Tuning campaigns at the level of a command: a request (what to tune, on which device, with which
 * proposers) becomes a campaign record, and a record becomes a campaign that can run. Used by the
 * commands `tune` and `campaign`. A campaign is built from its record alone, both when it begins
 * and when it resumes, so the same record always means the same search.
 *
 *     mgl_tune tune;
 *     mgl_tune_request request = {.shape = "llama-1b", .device = "cuda"};
 *     mgl_tune_prepare(store, &request, true, &tune, &err);
 *     mgl_tune_run(&tune, &(mgl_tune_run_options){.max_trials = 100}, &err);
 *     mgl_tune_clear(&tune);
 */
#ifndef MGL_AUTOTUNE_TUNE_H
#define MGL_AUTOTUNE_TUNE_H

#include "autotune/archive/archive.h"
#include "autotune/search/campaign.h"
#include "schedule/tuned/tuned.h"

/* The proposers: name, and the function of tune_run.c or proposer.h that opens it (NULL:
 * mgl_tune_open_chat). */
#define MGL_PROPOSERS(X)                                                                           \
    X("grid", mgl_grid_open)                                                                       \
    X("random", mgl_random_open)                                                                   \
    X("evolve", mgl_evolve_open)                                                                   \
    X("surrogate", mgl_surrogate_open)                                                             \
    X("chat", NULL)                                                                                \
    X("external", open_external)
/* "grid|random|...[:SHARE][,...]": value syntax of the flag --proposer. */
#define MGL_PROPOSER_OR(name, open) "|" name
#define MGL_PROPOSER_SYNTAX         (&(MGL_PROPOSERS(MGL_PROPOSER_OR) "[:SHARE][,...]")[1])

#define MGL_TUNE_PROPOSERS "evolve:2,surrogate:2,random:1" /* default */
#define MGL_TUNE_TARGET    "sm_90a:132"                    /* default target for --device none */
/* default capacity in positions, at most the limit of the model */
enum { MGL_TUNE_CAPACITY = 4096 };

/* The user's request. NULL and 0 select the default of each field. Strings are borrowed for the
 * call. */
typedef struct mgl_tune_request {
    const char *model;  /* a MODEL or a config.json; NULL if `shape` is given */
    const char *shape;  /* name of a built-in shape, instead of `model` */
    const char *device; /* "cuda", "cuda:1", "cpu", "none"; NULL: "cuda" */
    const char *target; /* only for the devices "cpu" and "none" */
    /* "bf16", or "f16" and "f32" where no GPU executes them; NULL: "bf16". "int8", "int4" or "fp8":
     * the format of the layers' weights, with bf16 numbers elsewhere. */
    const char *dtype;
    const char *head_dtype; /* format of the head's weights (eval/weight_flags.h); NULL: unscaled */
    int group;              /* columns that share a scale; 0: the default of the format */
    /* "ctx=0,8192;batch=1,8"; NULL: one sequence, at contexts 0 and half of the capacity */
    const char *workloads;
    int capacity;          /* positions of a sequence */
    const char *space;     /* path of a search space in JSON */
    const char *config;    /* path of the initial ScheduleConfig */
    const char *proposers; /* "evolve:2,random": names, each with an optional share (default 1) */
    bool allow_formats;    /* allow knobs that change number formats */
    bool has_seed;
    uint64_t seed;                     /* if not `has_seed`, a seed is drawn at random */
    const char *chat_url, *chat_model; /* endpoint and model of the proposer "chat" */
    const char *name; /* the complete campaign name; NULL: derived from what is tuned */
    bool fresh;       /* if the name exists, create a new campaign NAME-2 */
    /* If the existing campaign began under another manifest, create its successor NAME-2. The
     * successor receives the incumbent as a submission, which is gated and measured again.
     * Otherwise the existing campaign resumes. */
    bool rebase;
} mgl_tune_request;

/* A campaign that is ready to run. */
typedef struct mgl_tune {
    mgl_store *store; /* borrowed */
    mgl_campaign_record record;
    mgl_subject subject;
    char *device;                /* "cuda:1" */
    char *proposers;             /* as in the request */
    char *chat_url, *chat_model; /* endpoint and model of the proposer "chat"; NULL: not used */
    /* absolute path of the model weights; NULL: only a shape is known. No answer prints this
     * path. */
    char *checkpoint;
    bool found; /* the campaign was already in the store */
    struct {
        int64_t campaign, trial;
    } successor_of; /* with `rebase`: id of the preceding campaign, number of its incumbent */
} mgl_tune;

/* Finds the requested campaign by its name. If there is none, makes it and, with `add`, adds it to
 * the store. MGL_USAGE: a different campaign has this name. `store` may be NULL without `add`. */
mgl_status mgl_tune_prepare(mgl_store *store, const mgl_tune_request *request, bool add,
                            mgl_tune *out, mgl_error *err);
/* MGL_USAGE: the text is not a list of proposers, such as "evolve:2,random". */
mgl_status mgl_tune_check_proposers(const char *text, mgl_error *err);
/* Finds a campaign in the store by name; NULL: the newest. */
mgl_status mgl_tune_find(mgl_store *store, const char *name, mgl_tune *out, mgl_error *err);
/* Finds a campaign by name. If it began under another manifest, returns its newest successor. If
 * there is no successor, makes one and adds it to the store, as `rebase` of mgl_tune_request
 * does. */
mgl_status mgl_tune_rebase(mgl_store *store, const char *name, mgl_tune *out, mgl_error *err);
void mgl_tune_clear(mgl_tune *tune);

/* Creates a campaign for the model, target and workloads of an archive. The winner of the archive
 * becomes a submission, which is replayed, validated and measured like any other. Only the fields
 * name, device, proposers and allow_formats of the request are used. */
mgl_status mgl_tune_import(mgl_store *store, const mgl_archive *archive,
                           const mgl_tune_request *request, mgl_campaign_record *out,
                           mgl_error *err);

/* Converts a campaign's winner into tuned entries, one for each number of sequences among its
 * workloads, and passes each to the callback. MGL_BAD_INPUT: there is no winner. MGL_USAGE: the
 * winner is a schedule text, or it was measured only in the lower half of the capacity. */
typedef mgl_status mgl_tuned_fn(void *user, const mgl_tuned *entry, mgl_error *err);
mgl_status mgl_tune_entries(mgl_store *store, const char *name, mgl_tuned_fn *each, void *user,
                            mgl_error *err);

#define MGL_TUNE_DISK (UINT64_C(4) << 30)
typedef struct mgl_tune_run_options {
    const char *device; /* replaces the campaign's device: another ordinal of the same kind */
    const char *commit; /* git commit of the program, stored with each trial; NULL: unknown */
    double max_seconds; /* as in mgl_campaign_options */
    int64_t max_trials;
    uint64_t disk_bytes;  /* limit of the campaign's kernel store; 0: MGL_TUNE_DISK */
    const char *chat_key; /* API key of the proposer "chat"; copied, and never stored */
    int64_t budget_tokens, budget_requests; /* limits over the life of the campaign; 0: no limit */
    double until_gain;
    bool no_sandbox; /* as in mgl_runner_options */
    /* borrowed, used instead of opening a runner; NULL: the campaign opens its own runner */
    mgl_runner *runner;
    double (*clock)(void *user); /* clock of such a runner; NULL: the monotonic clock */
    const atomic_int *abort;
    void (*on_event)(void *user, const mgl_campaign_event *event);
    void *user;
} mgl_tune_run_options;
/* Opens the runner and the proposers, then runs the campaign (mgl_campaign_run). */
mgl_status mgl_tune_run(mgl_tune *tune, const mgl_tune_run_options *options, mgl_error *err);

/* The body of the next request that the proposer "chat" would send. */
mgl_status mgl_tune_show_prompt(const mgl_tune *tune, mgl_text *out, mgl_error *err);

/* An estimate of what a campaign will need, before it begins. */
typedef struct mgl_tune_outlook {
    int programs;   /* one program for each number of sequences; at most two machines exist at a
                     * time */
    double configs; /* combinations of knob values in the search space */
    double gate_s;  /* seconds that the gates of one trial take on the host */
    /* predicted objective of the default in us; 0: the device has no known costs */
    double predicted;
    /* Facts of an available device; all 0 without one. */
    uint64_t memory_needed, memory_free; /* bytes */
    /* estimated device seconds of one measured trial without compilation; 0: unknown */
    double device_s;
} mgl_tune_outlook;
mgl_status mgl_tune_look(const mgl_tune *tune, const atomic_int *abort, mgl_tune_outlook *out,
                         mgl_error *err);

/* If a process runs the campaign (*running), asks it to end after the current trial. Otherwise
 * marks the campaign as stopped. A campaign that has ended stays ended. */
mgl_status mgl_tune_stop(mgl_store *store, const mgl_campaign_record *campaign, bool *running,
                         mgl_error *err);
/* Corrects the state of a record that the store reports as "running" although no process runs the
 * campaign. The state becomes "paused" if a signal ended the process before it updated the store,
 * "killed" if the process died, and "waiting" if the campaign never began. Changes only `state` and
 * `reason` of the record. */
mgl_status mgl_tune_look_state(mgl_store *store, mgl_campaign_record *campaign, mgl_error *err);
/* Removes a campaign. MGL_DEVICE: a process runs it. */
mgl_status mgl_tune_delete(mgl_store *store, const mgl_campaign_record *campaign, mgl_error *err);

/* ---- submissions ----------------------------------------------------------------------------- */

/* Queues a proposal (its JSON or a schedule text) for a campaign, and stores its id in *id.
 * MGL_BAD_INPUT: the text cannot be stored. MGL_GATE: the campaign began under another manifest. */
mgl_status mgl_tune_submit(mgl_store *store, const mgl_campaign_record *campaign, const char *text,
                           size_t length, const char *origin, int64_t *id, mgl_error *err);
/* Whether a process runs the campaign of this name, or is about to start it. */
mgl_status mgl_tune_is_running(mgl_store *store, const char *name, bool *running, mgl_error *err);
/* Waits until a submission has become a trial, and returns the trial without its pairs. If no
 * process runs the campaign, returns number 0 and the submission stays queued. Release with
 * mgl_trial_clear. */
mgl_status mgl_tune_await(mgl_store *store, const mgl_campaign_record *campaign, int64_t submission,
                          const atomic_int *abort, mgl_trial *out, mgl_error *err);

#endif

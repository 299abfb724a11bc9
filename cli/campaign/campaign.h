/*
 * Declares what `tune` and the subcommands of `campaign` share: options, opening a store and a
 * campaign, running a campaign, and detached runs.
 */
#ifndef MGL_CLI_CAMPAIGN_CAMPAIGN_H
#define MGL_CLI_CAMPAIGN_CAMPAIGN_H

#include "autotune/answers/answer.h"
#include "autotune/tune.h"
#include "cli/cli.h"

#define MGL_CLI_STORE_OPTION(X)                                                                    \
    X(text, store, "--store", "F", 0, 0,                                                           \
      "the store of campaigns (campaigns.db in XDG_STATE_HOME/megalith), or postgresql://...")

/* Options of a run. */
#define MGL_CLI_RUN_OPTIONS(X)                                                                     \
    X(real, hours, "--hours", "H", 0, 100000,                                                      \
      "total hours of the campaign, including earlier runs (no limit)")                            \
    X(int, trials, "--trials", "N", 1, 1000000000,                                                 \
      "total trials, including earlier runs (no limit)")                                           \
    X(text, disk, "--disk", "SIZE", 0, 0,                                                          \
      "largest size of the campaign's compiled kernels, such as 500M (4G)")                        \
    X(real, until_gain, "--until-gain", "PERCENT", 0, 1000000,                                     \
      "end the campaign when the gain reaches this percentage (no limit)")                         \
    X(text, on_event, "--on-event", "CMD", 0, 0,                                                   \
      "a program that runs at keep, pause, error, quarantined and end, with JSON on its input")    \
    X(text, report, "--report", "F.html", 0, 0,                                                    \
      "write the report to this file every minute and at the end")                                 \
    X(flag, no_sandbox, "--no-sandbox", NULL, 0, 0,                                                \
      "run workers without a sandbox, for a driver that fails in it")                              \
    X(flag, verbose, "--verbose", NULL, 0, 0,                                                      \
      "print a line for each trial instead of the progress line, and how the time was spent")      \
    X(flag, detach, "--detach", NULL, 0, 0, "run in the background, with a log next to the store")

/* Options of the proposer chat that belong to a run, not to the campaign. */
#define MGL_CLI_CHAT_OPTIONS(X)                                                                    \
    X(file, chat_key, "--chat-key-file", "FILE", 0, 0,                                             \
      "file with the endpoint's key, readable by its owner only (MEGALITH_CHAT_KEY)")              \
    X(int, budget_tokens, "--budget-tokens", "N", 1, INT64_C(1) << 50,                             \
      "total tokens that chat may use, including earlier runs (no limit)")                         \
    X(int, budget_requests, "--budget-requests", "N", 1, 1000000000,                               \
      "total requests that chat may send, including earlier runs (no limit)")

#define MGL_CLI_CAMPAIGN_WORDS(X)                                                                  \
    X(list)                                                                                        \
    X(status)                                                                                      \
    X(next)                                                                                        \
    X(submit)                                                                                      \
    X(history)                                                                                     \
    X(best)                                                                                        \
    X(report)                                                                                      \
    X(export)                                                                                      \
    X(import)                                                                                      \
    X(stop)                                                                                        \
    X(resume)                                                                                      \
    X(delete)
#define MGL_CLI_DECLARE(name) extern const mgl_cli_verb mgl_cli_campaign_##name##_verb;
MGL_CLI_CAMPAIGN_WORDS(MGL_CLI_DECLARE)
#undef MGL_CLI_DECLARE

/* An open store and one of its campaigns: the newest if `name` is NULL. Zero-initialize; release
 * with mgl_cli_campaign_close. */
typedef struct mgl_cli_campaign {
    mgl_store *store;
    mgl_campaign_record record;
} mgl_cli_campaign;
mgl_status mgl_cli_campaign_open(const char *path, const char *name, bool write,
                                 mgl_cli_campaign *out, mgl_error *err);
void mgl_cli_campaign_close(mgl_cli_campaign *campaign);

/* Writes a campaign's report as one HTML file. `running`: the page reloads itself. */
mgl_status mgl_cli_campaign_report(mgl_store *store, const char *name, bool running,
                                   const char *path, mgl_error *err);

/* Parses the size of --disk, such as "4G" or "500M", with powers of 1,024; NULL: 0. MGL_USAGE if
 * malformed. */
mgl_status mgl_cli_read_disk(const char *text, uint64_t *out, mgl_error *err);

/* Parameters of a run. mgl_cli_tune runs the campaign to its end with progress on standard error,
 * and prints the result. */
typedef struct mgl_cli_tuning {
    const char *verb;     /* "tune", "campaign resume" */
    const char *device;   /* see mgl_tune_run_options */
    const char *on_event; /* a program to start on events, or NULL */
    const char *report;   /* path of the HTML report, or NULL */
    double hours;         /* 0: no limit */
    int64_t trials;       /* 0: no limit */
    const char *disk;     /* a size for mgl_cli_read_disk; NULL: the default */
    const char *chat_key; /* path of the key file, or NULL */
    int64_t budget_tokens, budget_requests;
    double until_gain; /* percent; 0: no limit */
    bool gain_given;   /* --until-gain was given, possibly as 0 */
    bool json, quiet, verbose, detach, no_sandbox;
} mgl_cli_tuning;
/* Initializer of mgl_cli_tuning for a verb. `o` has MGL_CLI_RUN_OPTIONS, MGL_CLI_CHAT_OPTIONS and
 * the flags --device, --quiet and --json. */
#define MGL_CLI_TUNING(name, o)                                                                    \
    {                                                                                              \
        .verb = (name), .device = (o)->device.value, .on_event = (o)->on_event.value,              \
        .report = (o)->report.value, .hours = mgl_cli_limit(&(o)->hours),                          \
        .trials = (o)->trials.value, .disk = (o)->disk.value, .chat_key = (o)->chat_key.value,     \
        .budget_tokens = (o)->budget_tokens.value, .budget_requests = (o)->budget_requests.value,  \
        .until_gain = (o)->until_gain.value, .gain_given = (o)->until_gain.given,                  \
        .json = (o)->json.given, .quiet = (o)->quiet.given, .verbose = (o)->verbose.given,         \
        .detach = (o)->detach.given, .no_sandbox = (o)->no_sandbox.given                           \
    }

/* Checks the parameters before anything is written. Otherwise a campaign that cannot run would
 * already be in the store when the user corrects the command. `store` as for mgl_store_open. */
mgl_status mgl_cli_check_tuning(const mgl_cli_tuning *how, const char *store, mgl_error *err);
/* MGL_USAGE for an ended campaign without a limit that extends it. */
mgl_status mgl_cli_check_ended(const mgl_tune *tune, const mgl_cli_tuning *how, mgl_error *err);
mgl_status mgl_cli_tune(mgl_tune *tune, const mgl_cli_tuning *how, mgl_error *err);
/* The value of --hours. An explicit 0 is a limit too; 0: no limit. */
double mgl_cli_limit(const mgl_cli_real *hours);

/* Starts `megalith campaign resume` of this campaign in a new session, with the files
 * STORE.NAME.log and STORE.NAME.pid, and prints the process id. */
mgl_status mgl_cli_detach(const mgl_tune *tune, const mgl_cli_tuning *how, mgl_error *err);

/* Prints what the campaign tunes: model, weight formats, device, workloads. */
void mgl_cli_campaign_print_subject(const mgl_campaign_record *campaign);
/* Prints the campaign and the counts of its trials' outcomes as text; mgl_cli_campaign_put writes
 * the same as members of a JSON object. */
mgl_status mgl_cli_campaign_print(mgl_store *store, const mgl_campaign_record *campaign,
                                  mgl_error *err);
mgl_status mgl_cli_campaign_put(mgl_json_out *out, mgl_store *store,
                                const mgl_campaign_record *campaign, mgl_error *err);

#endif

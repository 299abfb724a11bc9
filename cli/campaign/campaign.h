/* What `tune` and the words of `campaign` share: the store, the campaign, and running one. */
#ifndef MGL_CLI_CAMPAIGN_CAMPAIGN_H
#define MGL_CLI_CAMPAIGN_CAMPAIGN_H

#include "autotune/report/answer.h"
#include "autotune/tune.h"
#include "cli/cli.h"

#define MGL_CLI_STORE_OPTION(X)                                                                    \
    X(text, store, "--store", "F", 0, 0,                                                           \
      "the store of campaigns (campaigns.db in XDG_STATE_HOME/megalith), or postgresql://...")

/* How a campaign is run. */
#define MGL_CLI_RUN_OPTIONS(X)                                                                     \
    X(real, hours, "--hours", "H", 0, 100000,                                                      \
      "of the campaign's life, earlier runs included (no limit)")                                  \
    X(int, trials, "--trials", "N", 1, 1000000000, "likewise (no limit)")                          \
    X(text, disk, "--disk", "SIZE", 0, 0, "of the campaign's compiled kernels at most: 500M (4G)") \
    X(real, until_gain, "--until-gain", "PERCENT", 0, 1000000,                                     \
      "ends when it is so much faster than it began (no limit)")                                   \
    X(text, on_event, "--on-event", "CMD", 0, 0,                                                   \
      "a program that is started at keep, pause, error, condemned and end, with JSON on its "      \
      "input")                                                                                     \
    X(text, report, "--report", "F.html", 0, 0, "its report, written every minute and at the end") \
    X(flag, no_sandbox, "--no-sandbox", NULL, 0, 0,                                                \
      "workers may use files and network as megalith may: for a driver that the sandbox hinders")  \
    X(flag, verbose, "--verbose", NULL, 0, 0,                                                      \
      "one line per trial instead of the progress line, and the uses of time")                     \
    X(flag, detach, "--detach", NULL, 0, 0, "goes on beside the terminal, with a log by the store")

/* What whoever runs it decides of the proposer chat. */
#define MGL_CLI_CHAT_OPTIONS(X)                                                                    \
    X(file, chat_key, "--chat-key-file", "FILE", 0, 0,                                             \
      "with the endpoint's key, its owner's alone (MEGALITH_CHAT_KEY)")                            \
    X(int, budget_tokens, "--budget-tokens", "N", 1, INT64_C(1) << 50,                             \
      "that chat may take in the campaign's life (no limit)")                                      \
    X(int, budget_requests, "--budget-requests", "N", 1, 1000000000, "likewise (no limit)")

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

/* A store, and a campaign of it: the newest for `name` NULL. Zero-initialise; release with
 * mgl_cli_campaign_close. */
typedef struct mgl_cli_campaign {
    mgl_store *store;
    mgl_campaign_record record;
} mgl_cli_campaign;
mgl_status mgl_cli_campaign_open(const char *path, const char *name, bool write,
                                 mgl_cli_campaign *out, mgl_error *err);
void mgl_cli_campaign_close(mgl_cli_campaign *campaign);

/* A text to a file, or to standard output for NULL. */
mgl_status mgl_cli_campaign_write(const char *path, const mgl_text *text, mgl_error *err);

/* A campaign's report as one HTML file; `running`: the page asks for itself again. */
mgl_status mgl_cli_campaign_report(mgl_store *store, const char *name, bool running,
                                   const char *path, mgl_error *err);

/* "4G", "500M": bytes, by 1,024s; NULL: 0. MGL_USAGE: it is none. */
mgl_status mgl_cli_read_bytes(const char *flag, const char *text, uint64_t *out, mgl_error *err);

/* Runs a campaign to its end with its progress on standard error, and prints what came of it. */
typedef struct mgl_cli_tuning {
    const char *verb;     /* "tune", "campaign resume" */
    const char *device;   /* as in mgl_tune_run_options */
    const char *on_event; /* a program, or NULL */
    const char *report;   /* path of a page, or NULL */
    double hours;         /* 0: no limit */
    int64_t trials;       /* likewise */
    const char *disk;     /* as mgl_cli_read_bytes takes it; NULL: the default */
    const char *chat_key; /* path of its file, or NULL */
    int64_t budget_tokens, budget_requests;
    double until_gain; /* percent; likewise */
    bool gain_given;   /* ... was asked for, be it 0 */
    bool json, quiet, verbose, detach, no_sandbox;
} mgl_cli_tuning;
/* How a verb named so is asked to run one: `o` has MGL_CLI_RUN_OPTIONS, MGL_CLI_CHAT_OPTIONS and
 * the flags
 * --device, --quiet and --json. */
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

/* What can be said of it before anything is written: a campaign that was added and can not run
 * would be in the way of the mended command. `store` as mgl_store_open takes it. */
mgl_status mgl_cli_check_tuning(const mgl_cli_tuning *how, const char *store, mgl_error *err);
/* MGL_USAGE for an ended campaign without a limit that extends it. */
mgl_status mgl_cli_check_ended(const mgl_tune *tune, const mgl_cli_tuning *how, mgl_error *err);
mgl_status mgl_cli_tune(mgl_tune *tune, const mgl_cli_tuning *how, mgl_error *err);
/* The limit that was given, of 0 hours too; 0: none. */
double mgl_cli_limit(const mgl_cli_real *hours);

/* For main: the key of a chat endpoint goes from the environment to this program's memory. */
void mgl_cli_take_key(void);
/* That key, or a file's; NULL: there is none. Standard input is read once, and its key stands for
 * that of the environment from then on. Release with mgl_chat_forget_key. */
mgl_status mgl_cli_find_key(const char *path, char **out, mgl_error *err);
/* This process's environment, with the key in it again where it had one. */
typedef struct mgl_cli_environment {
    char **entries; /* NULL behind the last one */
    char *key;
} mgl_cli_environment;
mgl_status mgl_cli_make_environment(bool with_key, mgl_cli_environment *out, mgl_error *err);
void mgl_cli_clear_environment(mgl_cli_environment *environment);

/* Starts `megalith campaign resume` of this campaign in a session of its own, with files
 * STORE.NAME.log and STORE.NAME.pid, and says so. */
mgl_status mgl_cli_detach(const mgl_tune *tune, const mgl_cli_tuning *how, mgl_error *err);

/* The campaign and how its trials ended, as text; its members as JSON with `out`. */
mgl_status mgl_cli_campaign_print(mgl_store *store, const mgl_campaign_record *campaign,
                                  mgl_error *err);
mgl_status mgl_cli_campaign_put(mgl_json_out *out, mgl_store *store,
                                const mgl_campaign_record *campaign, mgl_error *err);

#endif

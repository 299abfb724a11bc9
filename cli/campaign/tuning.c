/*
 * Runs a campaign for `tune` and `campaign resume`: checks its parameters, prints progress on
 * standard error, starts the program of --on-event, writes the page of --report, and prints the
 * answer at the end.
 */
#include "cli/campaign/campaign.h"
#include "cli/campaign/tune_progress.h"
#include "cli/commit.h"
#include "cli/progress.h"
#include "cli/signals.h"

#include "autotune/agents/chat.h"
#include "autotune/hook.h"

#include "api/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "cli/chat_key.h"

#include <string.h>

static const double REPORT_S = 60; /* between two reports of a running campaign */

typedef struct tuning {
    mgl_tune *tune;
    const mgl_cli_tuning *how;
    mgl_hook *hook; /* NULL: no program was given */
    bool deaf;      /* the hook's failure was printed */
    bool blind;     /* the report's failure was printed */
    double written; /* clock of the last report, in seconds */
    mgl_cli_tune_progress progress;
} tuning;

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_told(const char *kind)
{
    static const char *const told[] = {"keep", "pause", "error", "end", MGL_QUARANTINED_EVENT};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (!strcmp(kind, told[i]))
            return true;
    return false;
}

static void tell_hook(tuning *t, const mgl_campaign_event *event)
{
    mgl_error err = {0};
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.event/1");
    mgl_json_out_string(&out, "event", event->kind);
    mgl_json_out_string(&out, "campaign", t->tune->record.name);
    mgl_json_out_string(&out, "text", event->text);
    if (event->trial) {
        mgl_json_out_object(&out, "trial");
        mgl_answer_trial(&out, event->trial);
        mgl_json_out_close_object(&out);
    }
    mgl_json_out_close(&out);
    mgl_text_put(&out.text, "\n");
    bool failed =
        out.text.failed || mgl_hook_tell(t->hook, out.text.bytes, out.text.length, &err) != MGL_OK;
    if (failed && !t->deaf)
        mgl_cli_say(t->how->verb, "--on-event: %s: %s", err.where, err.message);
    t->deaf |= failed;
    mgl_text_clear(&out.text);
}

/* Writes the report if it is due. A failure does not end the campaign. */
static void renew_report(tuning *t)
{
    mgl_error err = {0};
    if (!t->how->report || mgl_clock_s() - t->written < REPORT_S)
        return;
    bool failed = mgl_cli_campaign_report(t->tune->store, t->tune->record.name, true,
                                          t->how->report, &err) != MGL_OK;
    t->written = mgl_clock_s();
    if (failed && !t->blind)
        mgl_cli_say(t->how->verb, "--report: %s: %s", err.where, err.message);
    t->blind = failed;
}

static void on_event(void *user, const mgl_campaign_event *event)
{
    tuning *t = user;
    mgl_cli_tune_progress_event(&t->progress, event);
    if (t->hook && is_told(event->kind))
        tell_hook(t, event);
    renew_report(t);
}

/* ---- run and answer -------------------------------------------------------------------------- */

static mgl_status print_answer(const tuning *t, mgl_error *err)
{
    mgl_json_out out = {0};
    if (!t->how->json)
        return mgl_cli_campaign_print(t->tune->store, &t->tune->record, err);
    mgl_json_out_begin(&out, "megalith.tune/1");
    mgl_json_out_string(&out, "store", mgl_store_path(t->tune->store));
    mgl_status status = mgl_cli_campaign_put(&out, t->tune->store, &t->tune->record, err);
    return mgl_cli_finish_json(&out, status);
}

double mgl_cli_limit(const mgl_cli_real *hours)
{
    const double least = 1e-9; /* an explicit 0 becomes this limit; 0 means no limit */
    return hours->given && hours->value < least ? least : hours->value;
}

/* Checks that the key can be read. It is read again when it is used. */
static mgl_status check_key(const char *path, mgl_error *err)
{
    char *key = NULL;
    mgl_status status = path ? mgl_cli_find_key(path, &key, err) : MGL_OK;
    mgl_chat_forget_key(key);
    return status;
}

mgl_status mgl_cli_check_tuning(const mgl_cli_tuning *how, const char *store, mgl_error *err)
{
    uint64_t disk;
    mgl_status status = mgl_cli_read_disk(how->disk, &disk, err);
    if (!status && how->gain_given && !(how->until_gain > 0))
        status = mgl_fail(err, MGL_USAGE, "--until-gain",
                          "must be a percentage above 0; leave it out for no limit");
    if (!status)
        status = check_key(how->chat_key, err);
    if (!status && how->report && store && mgl_store_is_path(store))
        status = mgl_file_check_output(how->report, store, err);
    if (!status && how->report)
        status = mgl_cli_check_file(how->report, err);
    return status;
}

mgl_status mgl_cli_check_ended(const mgl_tune *tune, const mgl_cli_tuning *how, mgl_error *err)
{
    const mgl_campaign_record *record = &tune->record;
    const bool ended = record->state && !strcmp(record->state, "ended");
    if (!ended || how->hours > 0 || how->trials > 0 || how->gain_given)
        return MGL_OK;
    return mgl_fail(
        err, MGL_USAGE, NULL,
        "the campaign \"%.80s\" ended: %.200s; to extend it, pass --trials N or --hours "
        "H, which count from its beginning (so far %lld trial%s and %.2f hours)",
        record->name, record->reason ? record->reason : "no reason is stored",
        (long long)record->trials, mgl_plural((size_t)record->trials), record->seconds / 3600);
}

static mgl_status run(tuning *t, uint64_t disk, const char *key, mgl_error *err)
{
    const mgl_cli_tuning *how = t->how;
    mgl_text lock = {0};
    const atomic_int *abort = mgl_cancel_flag(mgl_cli_cancel());
    const mgl_tune_run_options options = {.device = how->device,
                                          .commit = mgl_commit,
                                          .max_seconds = how->hours * 3600,
                                          .max_trials = how->trials,
                                          .disk_bytes = disk,
                                          .chat_key = key,
                                          .budget_tokens = how->budget_tokens,
                                          .budget_requests = how->budget_requests,
                                          .until_gain = how->until_gain / 100,
                                          .no_sandbox = how->no_sandbox,
                                          .abort = abort,
                                          .on_event = on_event,
                                          .user = t};
    mgl_status status = how->on_event ? mgl_hook_open(how->on_event, 0, &t->hook, err) : MGL_OK;
    if (!status && how->report) /* report an error before the campaign starts */
        status =
            mgl_cli_campaign_report(t->tune->store, t->tune->record.name, true, how->report, err);
    t->written = mgl_clock_s();
    if (!status)
        status = mgl_campaign_lock_path(t->tune->store, t->tune->record.id, &lock, err);
    if (!status)
        mgl_cli_signals_leave(mgl_store_lock_mark, lock.bytes);
    if (!status)
        status = mgl_cli_tune_progress_begin(&t->progress, t->tune, how, err);
    if (!status)
        status = mgl_tune_run(t->tune, &options, err);
    mgl_cli_erase_bar();
    mgl_cli_signals_leave(NULL, NULL);
    mgl_text_clear(&lock);
    mgl_hook_close(t->hook, abort);
    return status;
}

/* Writes the last report. The status of the campaign takes precedence over the report's. */
static mgl_status end_report(const tuning *t, mgl_status status, mgl_error *err)
{
    mgl_error late = {0};
    if (!t->how->report)
        return status;
    mgl_status written = mgl_cli_campaign_report(t->tune->store, t->tune->record.name, false,
                                                 t->how->report, status ? &late : err);
    return status ? status : written;
}

mgl_status mgl_cli_tune(mgl_tune *tune, const mgl_cli_tuning *how, mgl_error *err)
{
    char *key = NULL;
    tuning t = {.tune = tune, .how = how};
    uint64_t disk;
    mgl_status status = mgl_cli_read_disk(how->disk, &disk, err);
    if (!status && how->detach) {
        status = mgl_cli_check_ended(tune, how, err); /* the child runs `campaign resume` */
        return status ? status : mgl_cli_detach(tune, how, err);
    }
    if (!status)
        status = mgl_cli_find_key(how->chat_key, &key, err);
    if (!status)
        status = end_report(&t, run(&t, disk, key, err), err);
    mgl_chat_forget_key(key);
    return status ? status : print_answer(&t, err);
}

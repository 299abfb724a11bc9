/*
 * Implements mgl_autotune, the search function of the public header. It finds or creates a campaign
 * in a store, runs the campaign, passes its events to the caller's callback and fills a report.
 * Also implements mgl_autotune_is_worker and mgl_explain_code. The search itself is in autotune/.
 */
#include "api/cancel.h"
#include "autotune/agents/chat.h"
#include "autotune/answers/answer.h"
#include "autotune/tune.h"
#include "base/memory.h"
#include "base/sized.h"
#include "vm/cuda/cuda.h"
#include "vm/pipeline/machine_check.h"

#include <math.h>
#include <string.h>

/* ---- workers --------------------------------------------------------------------------------- */

/* Whether this executable becomes a worker when it is started again. If its main does not call
 * mgl_autotune_is_worker, it must not be started as a worker: it would run its normal work, and
 * might start itself again. */
static atomic_bool can_work;

bool mgl_autotune_is_worker(int argc, char **argv, int *code)
{
    atomic_store(&can_work, true);
    if (argc != 3 || !argv || !code)
        return false;
    if (!strcmp(argv[1], MGL_WORKER_FLAG))
        *code = mgl_worker_main(argv[2]);
    else if (!strcmp(argv[1], MGL_CUDA_WORKER_FLAG)) /* compiles for a worker */
        *code = mgl_cuda_compile_worker(argv[2]);
    else
        return false;
    return true;
}

/* ---- options --------------------------------------------------------------------------------- */

static mgl_status check_options(const mgl_autotune_options *o, mgl_error *err)
{
    if (!(o->hours >= 0) || isinf(o->hours))
        return mgl_fail(err, MGL_USAGE, "hours", "must be a finite number of at least 0");
    if (o->trials < 0)
        return mgl_fail(err, MGL_USAGE, "trials", "is negative");
    if (o->trials == 0 && o->hours == 0)
        return mgl_fail(err, MGL_USAGE, "trials", "is missing; give a limit of trials or of hours");
    if (o->capacity < 0)
        return mgl_fail(err, MGL_USAGE, "capacity", "is negative");
    if (o->budget_tokens < 0 || o->budget_requests < 0)
        return mgl_fail(err, MGL_USAGE, o->budget_tokens < 0 ? "budget_tokens" : "budget_requests",
                        "is negative");
    if (!atomic_load(&can_work) && (!o->device || strcmp(o->device, "none") != 0))
        return mgl_fail(err, MGL_USAGE, "device",
                        "needs worker processes of this program; call mgl_autotune_is_worker first "
                        "in main, or set device to \"none\"");
    return mgl_check_abort(mgl_cancel_flag(o->cancel), err);
}

static mgl_tune_request make_request(const mgl_autotune_options *o)
{
    return (mgl_tune_request){.model = o->model,
                              .shape = o->shape,
                              .device = o->device,
                              .target = o->target,
                              .dtype = o->dtype,
                              .workloads = o->workloads,
                              .capacity = o->capacity,
                              .space = o->space,
                              .config = o->config,
                              .proposers = o->proposers,
                              .allow_formats = o->allow_formats || o->allow_narrow,
                              .has_seed = o->seed != 0,
                              .seed = o->seed,
                              .chat_url = o->chat_url,
                              .chat_model = o->chat_model,
                              .name = o->name,
                              .fresh = o->fresh,
                              .rebase = o->rebase != 0};
}

/* ---- events and report ----------------------------------------------------------------------- */

typedef struct listener {
    mgl_autotune_event_fn *on_event;
    void *user;
} listener;

static void pass_event(void *user, const mgl_campaign_event *event)
{
    const listener *to = user;
    const mgl_trial *trial = event->trial;
    mgl_autotune_event told = {.kind = event->kind, .text = event->text};
    if (trial) {
        told.trial = trial->number;
        told.outcome = mgl_outcome_name(trial->verdict.outcome);
        told.gain = expm1(trial->gain);
    }
    if (to->on_event)
        to->on_event(to->user, &told);
}

static mgl_status copy_text(const char *from, char **to, mgl_error *err)
{
    *to = from ? mgl_strdup(from) : NULL;
    return *to || !from ? MGL_OK : mgl_fail_memory(err, strlen(from) + 1);
}

/* Moves the bytes of a text to the caller. An empty text becomes "". */
static mgl_status take_text(mgl_text *text, char **to, mgl_error *err)
{
    mgl_text_put(text, "");
    if (text->failed) {
        mgl_status status = mgl_fail_memory(err, text->capacity);
        mgl_text_clear(text);
        return status;
    }
    *to = text->bytes;
    return MGL_OK;
}

/* Prints the best proposal: its schedule, or its config and moves. */
static mgl_status tell_proposal(const mgl_proposal *best, mgl_autotune_report *out, mgl_error *err)
{
    mgl_text config = {0}, moves = {0};
    if (best->schedule)
        return copy_text(best->schedule, &out->schedule, err);
    mgl_schedule_config_print(&best->config, &config);
    mgl_moves_print(&best->moves, &moves);
    mgl_status status = take_text(&config, &out->config, err);
    if (status)
        mgl_text_clear(&moves);
    return status ? status : take_text(&moves, &out->moves, err);
}

static mgl_status tell_best(const mgl_tune *tune, const mgl_campaign_record *record,
                            mgl_autotune_report *out, mgl_error *err)
{
    mgl_answer_best_facts facts;
    mgl_trial best = {.proposal = {.config = tune->subject.start}};
    mgl_status status = mgl_answer_find_best(tune->store, record, &facts, err);
    if (!status && facts.number)
        status = mgl_store_get_trial(tune->store, record->id, facts.number, false, &best, err);
    if (!status)
        status = tell_proposal(&best.proposal, out, err);
    out->best = facts.number;
    out->gain = facts.gain;
    out->kept = facts.keeps;
    mgl_trial_clear(&best);
    return status;
}

/* Reads the report of the campaign from the store. */
static mgl_status make_report(const mgl_tune *tune, mgl_autotune_report *out, mgl_error *err)
{
    mgl_campaign_record record;
    mgl_status status = mgl_store_find_campaign(tune->store, tune->record.name, &record, err);
    if (status)
        return status;
    out->trials = record.trials;
    out->seconds = record.seconds;
    status = copy_text(record.name, &out->name, err);
    if (!status)
        status = copy_text(record.reason, &out->reason, err);
    if (!status)
        status = tell_best(tune, &record, out, err);
    mgl_campaign_record_clear(&record);
    return status;
}

void mgl_autotune_report_clear(mgl_autotune_report *report)
{
    static const mgl_autotune_report cleared;
    if (!report)
        return;
    if (report->size >= offsetof(mgl_autotune_report, trials)) {
        mgl_free(report->name);
        mgl_free(report->reason);
        mgl_free(report->config);
        mgl_free(report->moves);
        mgl_free(report->schedule);
    }
    if (report->size)
        mgl_sized_write(report, &cleared, sizeof cleared);
}

/* ---- search ---------------------------------------------------------------------------------- */

static mgl_status run(const mgl_autotune_options *o, const char *key, mgl_tune *tune, listener *to,
                      mgl_error *err)
{
    const mgl_tune_run_options options = {.device = o->device,
                                          .max_seconds = o->hours * 3600,
                                          .max_trials = o->trials,
                                          .disk_bytes = o->disk_bytes,
                                          .chat_key = key,
                                          .budget_tokens = o->budget_tokens,
                                          .budget_requests = o->budget_requests,
                                          .abort = mgl_cancel_flag(o->cancel),
                                          .on_event = pass_event,
                                          .user = to};
    return mgl_tune_run(tune, &options, err);
}

static mgl_status search(const mgl_autotune_options *o, listener *to, mgl_autotune_report *out,
                         mgl_error *err)
{
    mgl_store *store = NULL;
    mgl_tune tune = {0};
    mgl_autotune_report report = {.size = sizeof report};
    const mgl_tune_request request = make_request(o);
    char *key = NULL;
    mgl_status status = check_options(o, err);
    if (!status && o->chat_key_file) /* reads the key before the campaign is written to the store */
        status = mgl_chat_read_key(o->chat_key_file, &key, err);
    if (!status)
        status = mgl_store_open(o->store, true, &store, err);
    if (!status)
        status = mgl_tune_prepare(store, &request, true, &tune, err);
    if (!status) {
        status = run(o, key, &tune, to, err);
        mgl_status told = out ? make_report(&tune, &report, status ? NULL : err) : MGL_OK;
        status = status ? status : told;
    }
    if (out)
        mgl_sized_write(out, &report, sizeof report);
    mgl_chat_forget_key(key);
    mgl_tune_clear(&tune);
    mgl_store_close(store);
    return status;
}

mgl_status mgl_autotune(const mgl_autotune_options *options, mgl_autotune_event_fn *on_event,
                        void *user, mgl_autotune_report *out, mgl_error *err)
{
    mgl_autotune_options known = {0};
    listener to = {on_event, user};
    if (!options)
        return mgl_fail_null(err, __func__, "options");
    mgl_status status = mgl_sized_read(&known, sizeof known, options, "mgl_autotune_options", err);
    if (!status && out)
        status =
            mgl_sized_check(out, offsetof(mgl_autotune_report, trials), "mgl_autotune_report", err);
    if (status)
        return status;
    mgl_autotune_report_clear(out);
    return search(&known, &to, out, err);
}

/* ---- codes ----------------------------------------------------------------------------------- */

const char *mgl_autotune_outcome(size_t index)
{
    return index < MGL_OUTCOME_COUNT ? mgl_outcome_name((mgl_outcome)index) : NULL;
}

/* The diagnostic of a code in its exact form, "MG203"; NULL: unknown. */
static const mgl_code_info *find_diagnostic(const char *code)
{
    int number = 0;
    if (strncmp(code, "MG", 2) != 0 || strlen(code) != 5)
        return NULL;
    for (int i = 2; i < 5; i++) {
        if (code[i] < '0' || code[i] > '9')
            return NULL;
        number = number * 10 + (code[i] - '0');
    }
    return mgl_find_code(number);
}

mgl_status mgl_explain_code(const char *code, mgl_explanation *out, mgl_error *err)
{
    mgl_outcome outcome;
    mgl_explanation made = {.size = sizeof made};
    if (!code || !out)
        return mgl_fail_null(err, __func__, code ? "out" : "code");
    mgl_status status = mgl_sized_check(out, sizeof out->size, "mgl_explanation", err);
    if (status)
        return status;
    const mgl_code_info *info = find_diagnostic(code);
    if (info) {
        made.exit_code = mgl_is_warning_code(info->code) ? MGL_OK : MGL_REJECTED;
        made.remedy = info->remedy;
        made.title = info->title;
        made.meaning = info->meaning;
        made.example = info->example;
    } else if (mgl_outcome_parse(code, &outcome)) {
        made.exit_code = mgl_outcome_exit(outcome);
        made.remedy = mgl_outcome_hint(outcome);
    } else {
        return mgl_fail(
            err, MGL_BAD_INPUT, code,
            "unknown code; give the code of a diagnostic (MGnnn) or the outcome of a trial");
    }
    mgl_sized_write(out, &made, sizeof made);
    return MGL_OK;
}

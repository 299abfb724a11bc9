/*
 * megalith campaign submit F: adds a proposal to the queue of a campaign, and prints its id. With
 * --wait, it waits for the verdict instead, and prints the trial. The exit code is then the code of
 * the outcome.
 */
#include "cli/campaign/campaign.h"
#include "cli/signals.h"

#include "api/cancel.h"
#include "base/file.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SUBMIT_OPTIONS(X)                                                                          \
    X(text, name, "--name", "NAME", 0, 0, "the campaign (the newest)")                             \
    X(flag, wait, "--wait", NULL, 0, 0,                                                            \
      "ends with the verdict: 0 kept" MGL_CLI_VERDICT_EXITS(                                       \
          MGL_CLI_EXIT) "; with 1 if no process runs the campaign, and the proposal stays in its " \
                        "queue")                                                                   \
    MGL_CLI_STORE_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(SUBMIT_OPTIONS)

static void begin_json(mgl_json_out *out, const mgl_cli_campaign *c, int64_t id)
{
    mgl_json_out_begin(out, "megalith.campaign/1");
    mgl_json_out_string(out, "name", c->record.name);
    if (id)
        mgl_json_out_int(out, "submission", id);
}

/* Prints the outcome of a proposal that did not become a trial. */
static void tell_outcome(const struct options *o, const mgl_cli_campaign *c, mgl_outcome outcome,
                         const char *why)
{
    mgl_json_out out = {0};
    mgl_cli_end_with(mgl_outcome_exit(outcome));
    if (!o->json.given) {
        mgl_cli_printf("%s: %s\n", mgl_outcome_name(outcome), why);
        return;
    }
    begin_json(&out, c, 0);
    mgl_json_out_string(&out, "outcome", mgl_outcome_name(outcome));
    mgl_json_out_string(&out, "diagnostic", why);
    mgl_json_out_string(&out, "hint", mgl_outcome_hint(outcome));
    mgl_cli_end_json(&out);
}

static void tell_queued(const struct options *o, const mgl_cli_campaign *c, int64_t id)
{
    mgl_json_out out = {0};
    if (!o->json.given) {
        mgl_cli_printf("%lld\n", (long long)id);
        return;
    }
    begin_json(&out, c, id);
    mgl_cli_end_json(&out);
}

static void tell_trial(const struct options *o, const mgl_cli_campaign *c, int64_t id,
                       const mgl_trial *trial)
{
    mgl_json_out out = {0};
    mgl_text line = {0};
    mgl_cli_end_with(mgl_outcome_exit(trial->verdict.outcome));
    if (o->json.given) {
        begin_json(&out, c, id);
        mgl_json_out_object(&out, "trial");
        mgl_answer_trial(&out, trial);
        mgl_json_out_close_object(&out);
        mgl_cli_end_json(&out);
        return;
    }
    mgl_answer_line(trial, &line);
    if (line.failed)
        mgl_cli_lose_output();
    else
        mgl_cli_printf("%s\n%s\n", line.bytes, mgl_outcome_hint(trial->verdict.outcome));
    mgl_text_clear(&line);
}

/* Fails because no process runs the campaign, with the command that continues it: an ended campaign
 * needs a new limit. */
static mgl_status fail_unattended(const mgl_cli_campaign *c, int64_t id, mgl_error *err)
{
    mgl_campaign_record now = {0};
    char limit[40] = "";
    mgl_status status = mgl_store_find_campaign(c->store, c->record.name, &now, err);
    if (status)
        return status;
    if (now.state && !strcmp(now.state, "ended"))
        snprintf(limit, sizeof limit, " --trials %lld", (long long)now.trials + 1);
    mgl_campaign_record_clear(&now);
    return mgl_fail(err, MGL_USAGE, c->record.name,
                    "no process runs the campaign: proposal %lld is queued and has no verdict yet; "
                    "run `megalith campaign resume %.80s%s` in another terminal",
                    (long long)id, c->record.name, limit);
}

static mgl_status await(const struct options *o, const mgl_cli_campaign *c, int64_t id,
                        mgl_error *err)
{
    mgl_trial trial;
    mgl_status status =
        mgl_tune_await(c->store, &c->record, id, mgl_cancel_flag(mgl_cli_cancel()), &trial, err);
    if (!status && trial.number)
        tell_trial(o, c, id, &trial);
    else if (!status)
        status = fail_unattended(c, id, err);
    mgl_trial_clear(&trial);
    return status;
}

/* Adds the text to the queue. A text too large for the queue is rejected like a syntax error. */
static mgl_status hand_in(const struct options *o, const mgl_cli_campaign *c, const char *text,
                          size_t length, mgl_error *err)
{
    int64_t id = 0;
    mgl_status status = mgl_tune_submit(c->store, &c->record, text, length, "submit", &id, err);
    if (status == MGL_GATE || status == MGL_BAD_INPUT) {
        bool frozen = status == MGL_GATE;
        tell_outcome(o, c, frozen ? MGL_OUTCOME_FROZEN_TAMPERED : MGL_OUTCOME_PARSE,
                     frozen ? mgl_outcome_hint(MGL_OUTCOME_FROZEN_TAMPERED) : err->message);
        return MGL_OK;
    }
    if (status)
        return status;
    if (o->wait.given)
        return await(o, c, id, err);
    tell_queued(o, c, id);
    return MGL_OK;
}

static void tell_size(const struct options *o, const mgl_cli_campaign *c)
{
    char why[120];
    snprintf(why, sizeof why, "the proposal is too large; at most %d bytes are allowed",
             MGL_SCHEDULE_MAX_TEXT);
    tell_outcome(o, c, MGL_OUTCOME_PARSE, why);
}

/* Rejects a named pipe, because opening one without a writer would block. The pipe of a shell's
 * `<(...)`, below /dev, has a writer and is accepted. */
static mgl_status check_pipe(const char *path, mgl_error *err)
{
    struct stat facts;
    if (!strncmp(path, "/dev/", 5) || stat(path, &facts) || !S_ISFIFO(facts.st_mode))
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, path,
                    "a named pipe cannot be a proposal; give a file, or `-` for standard input");
}

static mgl_status submit(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_cli_campaign c = {0};
    char *text = NULL;
    size_t length = 0;
    bool fits = true;
    mgl_status status = check_pipe(operand, err);
    if (!status)
        status = mgl_file_read_fitting(operand, MGL_SCHEDULE_MAX_TEXT, &text, &length, &fits, err);
    if (!status || !fits)
        status = mgl_cli_campaign_open(o->store.value, o->name.value, true, &c, err);
    if (!status && !fits)
        tell_size(o, &c);
    else if (!status)
        status = hand_in(o, &c, text, length, err);
    mgl_free(text);
    mgl_cli_campaign_close(&c);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_submit_verb = {
    .name = "campaign submit",
    .operand = "F",
    .operand_is_file = true,
    .summary = "queues a proposal (JSON, or a schedule text), and prints its id",
    .example = "  megalith campaign submit proposal.json --wait --json",
    MGL_CLI_VERB_OPTIONS,
    .run = submit,
};

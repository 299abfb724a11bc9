/*
 * megalith campaign best: prints the best proposal so far, in the form that `campaign submit`
 * reads. If the campaign has no measured trials, prints the best predicted proposal and marks it as
 * predicted. With --install, writes its tuned entries.
 */
#include "cli/campaign/campaign.h"

#include "base/format.h"

#define BEST_OPTIONS(X)                                                                            \
    X(text, output, "-o", "F", 0, 0, "write the proposal to this file (default: standard output)") \
    X(flag, install, "--install", NULL, 0, 0,                                                      \
      "install the best schedule as a tuned entry of this user; `run` uses it from now on")        \
    MGL_CLI_STORE_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(BEST_OPTIONS)

static mgl_status install_entry(void *user, const mgl_tuned *entry, mgl_error *err)
{
    mgl_text path = {0};
    (void)user;
    mgl_status status = mgl_tuned_install(entry, &path, err);
    if (!status)
        mgl_cli_say("campaign best", "%s: for %d sequence%s of %d positions on %s", path.bytes,
                    entry->sequences, mgl_plural((size_t)entry->sequences), entry->capacity_hi,
                    entry->device);
    mgl_text_clear(&path);
    return status;
}

static mgl_status print_json(const mgl_cli_campaign *c, mgl_error *err)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.campaign/1");
    mgl_json_out_string(&out, "name", c->record.name);
    mgl_status status = mgl_answer_best(&out, c->store, &c->record, err);
    if (!status)
        status = mgl_answer_put_predicted(&out, c->store, &c->record, err);
    if (!status)
        status = mgl_answer_final(&out, c->store, c->record.id, err);
    if (!status)
        status = mgl_answer_quarantined(&out, c->store, c->record.id, err);
    return mgl_cli_finish_json(&out, status);
}

/* The proposal of trial `number`, or of the default if `number` is 0. */
static mgl_status find_proposal(const mgl_cli_campaign *c, int64_t number, mgl_text *out,
                                mgl_error *err)
{
    mgl_trial trial = {0};
    mgl_tune tune;
    mgl_proposal start = {0};
    mgl_status status = mgl_tune_find(c->store, c->record.name, &tune, err);
    if (status)
        return status;
    start.config = tune.subject.start;
    mgl_tune_clear(&tune);
    if (number)
        status = mgl_store_get_trial(c->store, c->record.id, number, false, &trial, err);
    if (!status)
        mgl_proposal_print(number ? &trial.proposal : &start, out);
    mgl_trial_clear(&trial);
    return !status && out->failed ? mgl_fail_memory(err, out->capacity) : status;
}

/* Prints the gain on standard error: standard output contains only the proposal. */
static mgl_status say_gain(const mgl_cli_campaign *c, const mgl_answer_predicted *predicted,
                           mgl_error *err)
{
    mgl_text line = {0};
    mgl_answer_best_facts best;
    mgl_answer_final_facts facts;
    if (!c->record.incumbent && !predicted->number)
        return MGL_OK;
    mgl_status status = mgl_answer_find_final(c->store, c->record.id, &facts, err);
    if (!status)
        status = mgl_answer_find_best(c->store, &c->record, &best, err);
    if (status)
        return status;
    if (predicted->number)
        mgl_answer_predicted_line(predicted, &line);
    else if (facts.number == c->record.incumbent)
        mgl_answer_final_line(&facts, &line);
    else
        mgl_answer_best_line(&best, &facts, &line);
    if (line.failed)
        status = mgl_fail_memory(err, line.capacity);
    else
        mgl_cli_say("campaign best", "%s", line.bytes);
    mgl_text_clear(&line);
    return status;
}

static mgl_status say_quarantined(void *user, const mgl_trial *trial, mgl_error *err)
{
    mgl_text line = {0};
    (void)user;
    mgl_answer_quarantined_line(trial, &line);
    mgl_status status = line.failed ? mgl_fail_memory(err, line.capacity) : MGL_OK;
    if (!status)
        mgl_cli_say("campaign best", "%s", line.bytes);
    mgl_text_clear(&line);
    return status;
}

static mgl_status best(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_cli_campaign c = {0};
    mgl_text text = {0};
    mgl_answer_predicted predicted = {0};
    mgl_status status = mgl_cli_campaign_open(o->store.value, operand, false, &c, err);
    if (!status)
        status = mgl_answer_find_predicted(c.store, &c.record, &predicted, err);
    if (!status)
        status = say_gain(&c, &predicted, err);
    if (!status)
        status = mgl_store_each_quarantined(c.store, c.record.id, say_quarantined, NULL, err);
    if (!status && o->install.given)
        status = mgl_tune_entries(c.store, c.record.name, install_entry, NULL, err);
    if (!status && (!o->json.given || o->output.given))
        status =
            find_proposal(&c, predicted.number ? predicted.number : c.record.incumbent, &text, err);
    if (!status && o->output.given)
        status = mgl_cli_write_file(o->output.value, text.bytes, text.length, err);
    if (!status && o->json.given)
        status = print_json(&c, err);
    else if (!status && !o->output.given)
        mgl_cli_print(text.bytes, text.length);
    mgl_text_clear(&text);
    mgl_cli_campaign_close(&c);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_best_verb = {
    .name = "campaign best",
    .operand = "NAME",
    .operand_optional = true,
    .summary = "prints config and moves of the best candidate so far, in the form that `campaign "
               "submit` reads",
    .example = "  megalith campaign best -o best.json\n"
               "  megalith campaign best --install",
    MGL_CLI_VERB_OPTIONS,
    .run = best,
};

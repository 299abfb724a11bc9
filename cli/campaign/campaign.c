/*
 * megalith campaign WORD: lists the subcommands of `campaign`, and implements their shared
 * functions: opening a campaign, parsing sizes, printing a campaign's state.
 */
#include "cli/campaign/campaign.h"

#include "autotune/store/shape.h"
#include "base/memory.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

mgl_status mgl_cli_campaign_open(const char *path, const char *name, bool write,
                                 mgl_cli_campaign *out, mgl_error *err)
{
    mgl_status status = mgl_store_open(path, write, &out->store, err);
    if (!status)
        status = mgl_store_find_campaign(out->store, name, &out->record, err);
    return status ? status : mgl_tune_look_state(out->store, &out->record, err);
}

void mgl_cli_campaign_close(mgl_cli_campaign *campaign)
{
    mgl_campaign_record_clear(&campaign->record);
    mgl_store_close(campaign->store);
    *campaign = (mgl_cli_campaign){0};
}

mgl_status mgl_cli_read_disk(const char *text, uint64_t *out, mgl_error *err)
{
    static const char units[] = "KMGT";
    char *end = NULL;
    *out = 0;
    if (!text)
        return MGL_OK;
    double number = isdigit((unsigned char)text[0]) ? strtod(text, &end) : 0;
    const char *unit = end && *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit)
        end++;
    number *= unit ? ldexp(1, 10 * (int)(unit - units + 1)) : 1;
    if (!end || *end || !(number >= 1 && number < 0x1p60))
        return mgl_fail(err, MGL_USAGE, "--disk",
                        "not a size: \"%.40s\"; give a size such as 4G or 500M", text);
    *out = (uint64_t)number;
    return MGL_OK;
}

/* ---- printing a campaign --------------------------------------------------------------------- */

/* Prints a line of a report and releases it. */
static mgl_status print_line(const char *label, mgl_text *line, mgl_error *err)
{
    mgl_status status = line->failed ? mgl_fail_memory(err, line->capacity) : MGL_OK;
    if (!status)
        mgl_cli_printf("%-9s %s\n", label, line->bytes);
    mgl_text_clear(line);
    return status;
}

static mgl_status print_best(mgl_store *store, const mgl_campaign_record *c, mgl_error *err)
{
    mgl_answer_best_facts best;
    mgl_answer_predicted predicted;
    mgl_answer_final_facts final;
    mgl_text line = {0};
    mgl_status status = mgl_answer_find_best(store, c, &best, err);
    if (!status)
        status = mgl_answer_find_predicted(store, c, &predicted, err);
    if (!status)
        status = mgl_answer_find_final(store, c->id, &final, err);
    if (status)
        return status;
    if (best.number)
        mgl_answer_best_line(&best, &final, &line);
    else
        mgl_answer_predicted_line(&predicted, &line);
    return print_line("best", &line, err);
}

static mgl_status print_final(mgl_store *store, const mgl_campaign_record *c, mgl_error *err)
{
    mgl_text line = {0};
    mgl_answer_final_facts facts;
    mgl_status status = mgl_answer_find_final(store, c->id, &facts, err);
    if (status || !facts.number)
        return status;
    mgl_answer_final_line(&facts, &line);
    return print_line("final", &line, err);
}

static mgl_status print_quarantined(void *user, const mgl_trial *trial, mgl_error *err)
{
    mgl_text line = {0};
    (void)user;
    mgl_answer_quarantined_line(trial, &line);
    return print_line("quarantined", &line, err);
}

static mgl_status print_chat(mgl_store *store, const mgl_campaign_record *c, mgl_error *err)
{
    mgl_text line = {0};
    mgl_answer_chat_facts facts;
    mgl_status status = mgl_answer_count_chat(store, c->id, &facts, err);
    if (status || !facts.requests)
        return status;
    mgl_text_put(&line, "a language model, ");
    mgl_answer_chat_line(&facts, &line);
    status = print_line("asked", &line, err);
    if (!status && facts.failed)
        mgl_cli_printf("endpoint  %lld of %lld requests failed, most with %s: %s\n",
                       (long long)facts.failed, (long long)facts.requests,
                       mgl_outcome_name(facts.most), mgl_outcome_hint(facts.most));
    return status;
}

void mgl_cli_campaign_print_subject(const mgl_campaign_record *c)
{
    char weights[MGL_SYNTHETIC_TEXT];
    mgl_shape_weights(c->shape, weights);
    mgl_cli_printf("tunes     %s %s on %s (%s), %s, %lld positions\n", c->model, c->dtype,
                   c->device, c->target, c->workloads, (long long)c->capacity);
    if (weights[0])
        mgl_cli_printf("weights   %s\n", weights);
}

mgl_status mgl_cli_campaign_print(mgl_store *store, const mgl_campaign_record *c, mgl_error *err)
{
    mgl_answer_counts counts;
    mgl_status status = mgl_answer_count(store, c->id, &counts, err);
    if (status)
        return status;
    mgl_cli_printf("campaign  %s\n", c->name);
    mgl_cli_printf("state     %s%s%s\n", c->state, c->reason ? ": " : "",
                   c->reason ? c->reason : "");
    mgl_cli_campaign_print_subject(c);
    mgl_cli_printf("trials    %lld in %.2f hours, seed %llu\n", (long long)c->trials,
                   c->seconds / 3600, (unsigned long long)c->seed);
    mgl_cli_printf("of these  %lld kept, %lld correct but not kept, %lld rejected, %lld incorrect, "
                   "%lld unmeasured, %lld duplicates, %lld unreadable\n",
                   (long long)counts.kept, (long long)counts.not_kept, (long long)counts.refused,
                   (long long)counts.incorrect, (long long)counts.unmeasured,
                   (long long)counts.duplicates, (long long)counts.unreadable);
    status = print_chat(store, c, err);
    if (!status)
        status = print_best(store, c, err);
    if (!status)
        status = print_final(store, c, err);
    return status ? status : mgl_store_each_quarantined(store, c->id, print_quarantined, NULL, err);
}

mgl_status mgl_cli_campaign_put(mgl_json_out *out, mgl_store *store, const mgl_campaign_record *c,
                                mgl_error *err)
{
    mgl_answer_counts counts;
    mgl_status status = mgl_answer_count(store, c->id, &counts, err);
    if (status)
        return status;
    mgl_answer_campaign(out, c);
    mgl_answer_outcomes(out, &counts);
    status = mgl_answer_chat(out, store, c->id, err);
    if (!status)
        status = mgl_answer_final(out, store, c->id, err);
    if (!status)
        status = mgl_answer_quarantined(out, store, c->id, err);
    if (!status)
        status = mgl_answer_best(out, store, c, err);
    return status ? status : mgl_answer_put_predicted(out, store, c, err);
}

/* ---- subcommands ----------------------------------------------------------------------------- */

static const mgl_cli_verb *const words[] = {
#define MGL_X(name) &mgl_cli_campaign_##name##_verb,
    MGL_CLI_CAMPAIGN_WORDS(MGL_X)
#undef MGL_X
};

const mgl_cli_verb mgl_cli_campaign_verb = {
    .name = "campaign",
    .summary = "inspects campaigns of `tune`, submits proposals, and steers campaigns",
    .example = "  megalith campaign status\n"
               "  megalith campaign submit proposal.json --wait",
    .words = words,
    .word_count = sizeof words / sizeof *words,
};

/* The report for a terminal and for a repository: Markdown, with what the HTML has but its drawings. */
#include "autotune/report_facts.h"

#include "base/format.h"

#include <string.h>

/* Text of others within a table: nothing in it can end the cell or begin markup. */
static void put_data(const char *text, mgl_text *out)
{
    char shown[1024];
    mgl_format_into(shown, sizeof shown, "%s", text ? text : "");
    for (const char *at = shown; *at; at++) {
        if (strchr("|\\`*_<>[]#", *at))
            mgl_text_put(out, "\\");
        mgl_text_append(out, at, 1);
    }
}

static void put_row(const char *key, const char *value, mgl_text *out)
{
    mgl_text_format(out, "| %s | ", key);
    put_data(value, out);
    mgl_text_put(out, " |\n");
}

static void put_head(const report_facts *f, mgl_text *out)
{
    const mgl_campaign_record *c = f->campaign;
    mgl_text_put(out, "# Campaign ");
    put_data(c->name, out);
    mgl_text_put(out, "\n\n| | |\n|---|---|\n");
    put_row("model", c->model, out);
    put_row("device", c->device, out);
    put_row("target", c->target, out);
    put_row("dtype", c->dtype, out);
    put_row("workloads", c->workloads, out);
    mgl_text_format(out, "| capacity | %lld positions |\n", (long long)c->capacity);
    put_row("state", c->state, out);
    if (c->reason && c->reason[0])
        put_row("reason", c->reason, out);
    mgl_text_format(out, "| trials | %lld, %lld measured, %lld kept |\n| time | ",
                    (long long)f->trials, (long long)f->measured, (long long)f->kept);
    report_put_seconds(c->seconds, out);
    mgl_text_put(out, " |\n");
}

static void put_final(const report_facts *f, mgl_text *out)
{
    mgl_text line = {0};
    mgl_answer_final_line(&f->final, &line);
    mgl_text_put(out, "\nAt the end, ");
    put_data(line.bytes, out);
    mgl_text_put(out, ".\n");
    out->failed |= line.failed;
    mgl_text_clear(&line);
}

static void put_result(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out, "\n## Result\n\n");
    if (f->best.number)
        mgl_text_format(out,
                        "Trial %lld is %.2f %% faster than the default (%.2f to %.2f, by its own "
                        "decision's interval; kept programs chained).\n",
                        (long long)f->best.number, report_percent(f->best_value),
                        report_percent(f->best_lo), report_percent(f->best_hi));
    else if (f->measured)
        mgl_text_put(out, "Nothing was faster than the default beyond doubt.\n");
    else
        mgl_text_put(out, "Nothing was measured: there was no clock to go by.\n");
    if (f->final.number)
        put_final(f, out);
    if (f->best_predicted > 0)
        mgl_text_format(out, "\nThe best prediction, %.1f us a token, is that of trial %lld.\n",
                        f->best_predicted, (long long)f->best_predicted_number);
}

static void put_effects(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out, f->measures ? "\n## Effects\n" : "\n## Effects, predicted\n");
    mgl_text_put(out, "\n| change of | tried | correct | refused | mean | best | most "
                      "often |\n|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < f->effect_count; i++) {
        const report_effect *e = &f->effects[i];
        if (!e->tried)
            continue;
        mgl_text_format(out, "| %s | %lld | %lld | %lld | ", e->name, (long long)e->tried,
                        (long long)e->correct, (long long)e->refused);
        if (e->valued)
            mgl_text_format(out, "%+.2f %% | %+.2f %%", report_percent(e->sum / (double)e->valued),
                            report_percent(e->best));
        else
            mgl_text_put(out, "- | -");
        mgl_text_format(out, " | %s |\n", e->tried > e->correct ? mgl_outcome_name(e->most) : "-");
    }
}

static void put_refusals(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out,
                 "\n## Outcomes\n\n| outcome | trials | the first, and why |\n|---|---|---|\n");
    for (int i = 0; i < MGL_OUTCOME_COUNT; i++) {
        const report_refusal *r = &f->refusals[i];
        if (!r->count)
            continue;
        mgl_text_format(out, "| %s | %lld | %lld: ", mgl_outcome_name((mgl_outcome)i),
                        (long long)r->count, (long long)r->example);
        put_data(r->diagnostic, out);
        mgl_text_put(out, " |\n");
    }
}

static void put_trust(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out, "\n## Can it be believed\n\n");
    if (f->controls)
        mgl_text_format(
            out, "- A/A controls: %lld, of which %lld bad; the largest difference %.2f %%.\n",
            (long long)f->controls, (long long)f->bad_controls, report_percent(f->control_largest));
    if (f->pairs)
        mgl_text_format(out, "- Pairs: %lld, %lld dropped for an event.\n", (long long)f->pairs,
                        (long long)f->dropped_pairs);
    for (int w = 0; w < f->best.workload_count; w++) {
        const mgl_workload_result *r = &f->best.workloads[w];
        if (r->error < 0)
            continue;
        mgl_text_put(out, "- Error of ");
        report_put_workload(f, w, out);
        mgl_text_put(out, ": ");
        report_put_error(r->error, out);
        mgl_text_put(out, ", the default's ");
        report_put_error(r->error_default, out);
        mgl_text_put(out, ".\n");
    }
    mgl_text_format(out, "- Frozen files: %.16s.\n", f->campaign->manifest);
}

static void put_costs(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out, "\n## Costs\n\n| proposer | trials | kept | time |\n|---|---|---|---|\n");
    for (int i = 0; i < f->proposer_count; i++) {
        const report_proposer *p = &f->proposers[i];
        mgl_text_put(out, "| ");
        put_data(p->name, out);
        mgl_text_format(out, " | %lld | %lld | ", (long long)p->trials, (long long)p->kept);
        report_put_seconds(p->seconds, out);
        mgl_text_put(out, " |\n");
    }
    if (f->requests) {
        mgl_text_put(out, "\nA language model was asked ");
        mgl_answer_chat_line(&f->chat, out);
        mgl_text_put(out, ".\n");
    }
}

static void put_reproduction(const report_facts *f, mgl_text *out)
{
    mgl_text proposal = {0};
    if (f->best.number)
        mgl_text_format(out,
                        "\n## Reproduce\n\n    megalith campaign export '%s' -o campaign.json\n"
                        "    megalith campaign import campaign.json\n",
                        f->campaign->name ? f->campaign->name : "");
    if (f->best.number && !f->best.proposal.schedule) {
        mgl_proposal_print(&f->best.proposal, &proposal);
        mgl_text_format(out, "\n```json\n%s```\n", proposal.bytes ? proposal.bytes : "");
        out->failed |= proposal.failed;
        mgl_text_clear(&proposal);
    }
}

mgl_status mgl_report_markdown(mgl_store *store, const mgl_campaign_record *campaign, mgl_text *out,
                               mgl_error *err)
{
    report_facts facts;
    mgl_status status = report_facts_gather(store, campaign, &facts, err);
    if (!status) {
        put_head(&facts, out);
        put_result(&facts, out);
        put_effects(&facts, out);
        put_refusals(&facts, out);
        put_trust(&facts, out);
        put_costs(&facts, out);
        put_reproduction(&facts, out);
        if (out->failed)
            status = mgl_fail_memory(err, out->capacity);
    }
    report_facts_clear(&facts);
    return status;
}

/* The Markdown report, for terminals and repositories: the contents of the HTML report without
 * drawings. Implements mgl_report_markdown. */
#include "autotune/report/report_facts.h"

#include "autotune/store/shape.h"
#include "base/format.h"

#include <ctype.h>
#include <string.h>

/* Whether the character would begin markup or a link. `_` inside a word does not. */
static bool is_markup(const char *text, const char *at)
{
    const unsigned char before = at > text ? (unsigned char)at[-1] : ' ';
    if (*at == '_')
        return !isalnum(before) || !isalnum((unsigned char)at[1]);
    if (*at == ':')
        return at[1] == '/';
    if (*at == '.')
        return before == 'w' || before == 'W';
    return strchr("|\\`*<>[]#~&@$", *at) != NULL;
}

/* Appends untrusted text to a table cell, so that it cannot end the cell or begin markup. */
static void put_data(const char *text, mgl_text *out)
{
    char shown[1024];
    mgl_format_into(shown, sizeof shown, "%s", text ? text : "");
    for (const char *at = shown; *at; at++) {
        if (is_markup(shown, at))
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
    char weights[MGL_SYNTHETIC_TEXT];
    mgl_text_put(out, "# Campaign ");
    put_data(c->name, out);
    mgl_text_put(out, "\n\n| | |\n|---|---|\n");
    put_row("model", c->model, out);
    put_row("device", c->device, out);
    put_row("target", c->target, out);
    put_row("dtype", c->dtype, out);
    if (mgl_shape_weights(c->shape, weights)[0])
        put_row("weights", weights, out);
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

static void put_best(const report_facts *f, mgl_text *out)
{
    report_put_best(f, out);
    if (f->steps.keeps > 1)
        mgl_text_format(out, " %s", report_of_steps);
    mgl_text_put(out, "\n");
}

static void put_quarantined(const report_facts *f, mgl_text *out)
{
    for (int i = 0; i < f->quarantined_count; i++) {
        mgl_text_put(out, "\nFound at an end: ");
        put_data(f->quarantined[i].line, out);
        mgl_text_put(out, ".\n");
    }
}

/* Writes the best prediction and the default's, for each workload. */
static void put_predictions(const report_facts *f, mgl_text *out)
{
    mgl_text_format(out, "\nThe best prediction, %.1f us a token, is that of trial %lld",
                    f->predicted.us, (long long)f->predicted.number);
    if (f->plays.start_us > 0)
        mgl_text_format(out, "; that of the default is %.1f us", f->plays.start_us);
    mgl_text_put(out,
                 f->workloads.count > 1 ? ". Both are geometric means of the workloads.\n" : ".\n");
    for (int w = 0; w < f->workloads.count && f->workloads.count > 1 && f->plays.start_us > 0;
         w++) {
        mgl_text_put(out, w ? "" : "\n| predicted | default, us | best, us |\n|---|---|---|\n");
        mgl_text_put(out, "| ");
        report_put_workload(f, w, out);
        mgl_text_format(out, " | %.1f | %.1f |\n", f->plays.start_each[w], f->predicted.each[w]);
    }
}

static void put_result(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out, "\n## Result\n\n");
    if (f->best.number)
        put_best(f, out);
    else if (f->measured)
        mgl_text_put(out, "Nothing was faster than the default beyond doubt.\n");
    else
        mgl_text_put(out, f->measures ? "Nothing has been measured yet.\n"
                                      : "Nothing was measured: there was no clock to go by.\n");
    if (f->final.number)
        put_final(f, out);
    put_quarantined(f, out);
    if (f->predicted.us > 0)
        put_predictions(f, out);
}

static void put_effects(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out, f->measures ? "\n## Effects\n" : "\n## Effects, predicted\n");
    mgl_text_put(out, "\n| change of | tried | correct | rejected | mean | best | most "
                      "often |\n|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < f->effect_count; i++) {
        const report_effect *e = &f->effects[i];
        if (!e->tried)
            continue;
        mgl_text_format(out, "| %s%s | %lld | %lld | %lld | ", i < f->first_move ? "" : "move ",
                        e->name, (long long)e->tried, (long long)e->correct, (long long)e->refused);
        if (e->valued)
            mgl_text_format(out, "%+.2f %% | %+.2f %%", report_percent(e->sum / (double)e->valued),
                            report_percent(e->best));
        else
            mgl_text_put(out, "- | -");
        mgl_text_format(out, " | %s |\n", e->most[0] ? e->most : "-");
    }
}

static void put_refusals(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out,
                 "\n## Outcomes\n\n| outcome | trials | the first, and why |\n|---|---|---|\n");
    for (int i = 0; i < f->refusal_count; i++) {
        const report_refusal *r = &f->refusals[i];
        mgl_text_format(out, "| %s | %lld | %lld: ", r->name, (long long)r->count,
                        (long long)r->example);
        put_data(r->verdict.diagnostic, out);
        mgl_text_put(out, " |\n");
    }
}

static void put_trust(const report_facts *f, mgl_text *out)
{
    mgl_text_format(out, "\n## Can it be believed\n\n- %s\n", report_weights(f));
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
    char manifest[17];
    mgl_format_into(manifest, sizeof manifest, "%.*s", (int)sizeof manifest - 1,
                    f->campaign->manifest);
    mgl_text_put(out, "- Frozen files: ");
    put_data(manifest, out);
    mgl_text_put(out, ".\n");
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
    if (f->gpu_s > 0 || f->compile_s > 0) {
        mgl_text_put(out, "\n");
        report_put_device_time(f, out);
        mgl_text_put(out, "\n");
    }
    if (f->requests) {
        mgl_text_put(out, "\nA language model was asked ");
        mgl_answer_chat_line(&f->chat, out);
        mgl_text_put(out, ".\n");
    }
}

static void put_parts(const report_facts *f, mgl_text *out)
{
    const report_plays *plays = &f->plays;
    if (!plays->best.span_count)
        return;
    mgl_text_format(
        out,
        "\n## Where a token's time goes, predicted\n\nBy the cost model, for batch %d, "
        "context %d; the best is trial %lld.\n\n| us | default | best |\n|---|---|---|\n",
        plays->workload.batch, plays->workload.context, (long long)f->played_best);
    for (int i = 0; i < MGL_COST_PART_COUNT; i++)
        if (plays->first.cost.parts[i] > 0 || plays->best.cost.parts[i] > 0)
            mgl_text_format(out, "| %s | %.1f | %.1f |\n", mgl_cost_part_name((mgl_cost_part)i),
                            plays->first.cost.parts[i], plays->best.cost.parts[i]);
    mgl_text_format(out, "| all | %.1f | %.1f |\n", plays->first.cost.us, plays->best.cost.us);
}

static void put_log(const report_facts *f, mgl_text *out)
{
    const int64_t from = f->event_count > REPORT_EVENTS ? f->event_count - REPORT_EVENTS : 0;
    if (f->event_count)
        mgl_text_put(out, "\n## Log\n\n| UTC | event | |\n|---|---|---|\n");
    for (int64_t i = from; i < f->event_count; i++) {
        const report_event *event = &f->events[i % REPORT_EVENTS];
        mgl_text_put(out, "| ");
        report_put_time(event->unix_s, out);
        mgl_text_put(out, " | ");
        put_data(event->kind, out);
        mgl_text_put(out, " | ");
        put_data(event->text, out);
        mgl_text_put(out, " |\n");
    }
}

static void put_reproduction(const report_facts *f, mgl_text *out)
{
    mgl_text text = {0};
    mgl_text_put(out, "\n## Reproduce\n\n");
    if (!f->best.number && !report_has_prediction(f)) {
        report_put_seed(f, out);
        mgl_text_put(out, "\n");
        return;
    }
    if (!f->best.number)
        mgl_text_format(out, "%s\n\n", report_of_prediction);
    mgl_text_put(out, "    megalith campaign export ");
    report_put_quoted(f->campaign->name, out);
    mgl_text_put(out, " -o campaign.json\n    megalith campaign import campaign.json\n");
    report_print_best(f, &text);
    if (text.length) /* needs no escaping: no line of JSON begins with a fence */
        mgl_text_format(out, "\n```json\n%s```\n", text.bytes);
    out->failed |= text.failed;
    mgl_text_clear(&text);
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
        put_parts(&facts, out);
        put_refusals(&facts, out);
        put_trust(&facts, out);
        put_costs(&facts, out);
        put_log(&facts, out);
        put_reproduction(&facts, out);
        if (out->failed)
            status = mgl_fail_memory(err, out->capacity);
    }
    report_facts_clear(&facts);
    return status;
}

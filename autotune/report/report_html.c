/*
 * The HTML report: one file with inline style and SVG, no script, no external resources, in a dark
 * or light scheme by the reader's setting. While the campaign runs, the page reloads itself.
 * Implements mgl_report_html.
 *
 * Text from models, agents and files is escaped by put_data. The size of the page is bounded for
 * every campaign: texts are cut, and only some of many points are drawn (report_draw.c).
 */
#include "autotune/report/report_draw.h"

#include "autotune/store/shape.h"
#include "base/format.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

enum { MOST_DATA = 1000 }; /* largest untrusted text, in bytes */

/* Appends untrusted text in printable form, escaped for HTML. */
static void put_piece(const char *text, size_t length, mgl_text *out)
{
    for (size_t i = 0, used; i < length; i += used) {
        char shown[4];
        size_t n = mgl_utf8_show(text + i, length - i, shown, &used);
        const char *escaped = n > 1              ? NULL
                              : shown[0] == '&'  ? "&amp;"
                              : shown[0] == '<'  ? "&lt;"
                              : shown[0] == '>'  ? "&gt;"
                              : shown[0] == '"'  ? "&quot;"
                              : shown[0] == '\'' ? "&#39;"
                                                 : NULL;
        if (escaped)
            mgl_text_put(out, escaped);
        else
            mgl_text_append(out, shown, n);
    }
}

static void put_data(const char *text, mgl_text *out)
{
    const size_t length = text ? strnlen(text, MOST_DATA + 1) : 0;
    put_piece(text, length < MOST_DATA ? length : MOST_DATA, out);
    if (length > MOST_DATA)
        mgl_text_put(out, "...");
}

/* Appends a text completely and with its lines, for copying. */
static void put_lines(const mgl_text *text, mgl_text *out)
{
    const char *at = text->bytes ? text->bytes : "";
    out->failed |= text->failed;
    while (*at) {
        const size_t length = strcspn(at, "\n");
        put_piece(at, length, out);
        mgl_text_put(out, "\n");
        at += length + (at[length] == '\n');
    }
}

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1c1e21;--soft:#5c636b;--line:#e0e3e7;"
    "--card:#f6f7f9;--good:#157f3b;--bad:#b3261e;--mark:#1f5fbf;--faint:#8b949e;--dot:#8b949e;"
    "--s0:#3b7fc4;--s1:#dd8420;--s2:#2a9d63;--s3:#8b5fc7;--s4:#cc4b6c;--s5:#a08a1a;--s6:#727a83}"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e8ea;--soft:#a3abb4;"
    "--line:#2c3238;--card:#1c2126;--good:#5fd38a;--bad:#ff8a80;--mark:#7fb2ff;--faint:#7d8791;"
    "--dot:#7d8791;--s0:#5b9ade;--s1:#eb9a3f;--s2:#45b97d;--s3:#a583dc;--s4:#e0708d;--s5:#c4ac3a;"
    "--s6:#9098a1}}"
    "*{box-sizing:border-box}body{margin:0 auto;padding:24px 16px 64px;max-width:1040px;"
    "background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}"
    "h1{font-size:1.5rem;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}"
    "h2{font-size:1.1rem;margin:32px 0 8px}p{margin:8px 0;overflow-wrap:anywhere}"
    ".soft{color:var(--soft)}"
    ".facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:8px;"
    "margin:16px 0}.facts div{background:var(--card);border:1px solid var(--line);"
    "border-radius:6px;padding:8px 12px;overflow-wrap:anywhere}.facts .two{grid-column:span "
    "2}.facts b{display:block;"
    "font-size:.75rem;font-weight:600;color:var(--soft)}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    "th,td{text-align:left;padding:4px 14px 4px 0;border-bottom:1px solid var(--line);"
    "vertical-align:top;white-space:nowrap}th{font-size:.75rem;color:var(--soft);"
    "vertical-align:bottom}td.n,th.n{text-align:right}"
    "td.why{overflow-wrap:anywhere;min-width:min(18em,40vw);white-space:normal}"
    "th.group{padding-top:14px;color:var(--fg)}"
    "svg{display:block;height:auto}svg.chart{width:100%;max-width:760px}"
    ".sides+.wide{margin-top:16px}svg.play{width:100%;max-width:560px}svg.bar{width:160px;height:"
    "14px;margin-top:4px}"
    "pre{background:var(--card);border:1px solid var(--line);border-radius:6px;"
    "padding:12px;overflow-x:auto;font-size:.85rem}.good{color:var(--good)}.bad{color:var(--bad)}"
    ".sides{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,320px),1fr));"
    "gap:16px}.legend{display:flex;flex-wrap:wrap;gap:4px 16px;color:var(--soft);"
    "font-size:.85rem}.legend i{display:inline-block;width:12px;height:12px;margin-right:6px;"
    "border-radius:2px;border:1px solid var(--line);vertical-align:-1px}"
    /* Narrow screens: cells wrap, two columns are hidden, and text in drawings stays large. */
    "@media(max-width:700px){body{padding:16px 10px 48px}th,td{white-space:normal;padding:4px 6px "
    "4px 0;font-size:.8rem}th{font-size:.7rem}td.n{white-space:nowrap}"
    "td.why{min-width:10em}td.key{overflow-wrap:anywhere}svg.chart{font-size:19px}"
    "svg.play{font-size:14px}.extra{display:none}}";

static void put_fact(const char *key, const char *value, mgl_text *out)
{
    mgl_text_format(out, "<div><b>%s</b>", key);
    put_data(value, out);
    mgl_text_put(out, "</div>");
}

static void put_count(const char *key, int64_t value, mgl_text *out)
{
    mgl_text_format(out, "<div><b>%s</b>%lld</div>", key, (long long)value);
}

static void put_head(const report_facts *f, bool running, mgl_text *out)
{
    const mgl_campaign_record *c = f->campaign;
    char weights[MGL_SYNTHETIC_TEXT];
    mgl_text_put(out, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
                      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
    if (running)
        mgl_text_put(out, "<meta http-equiv=\"refresh\" content=\"30\">");
    mgl_text_put(out, "<title>");
    put_data(c->name, out);
    mgl_text_format(out, " - megalith</title><style>%s</style></head><body><h1>", style);
    put_data(c->name, out);
    mgl_text_put(out, "</h1><p class=\"soft\">");
    put_data(c->state, out);
    if (c->reason && c->reason[0]) {
        mgl_text_put(out, ": ");
        put_data(c->reason, out);
    }
    mgl_text_put(out, "</p><div class=\"facts\">");
    put_fact("model", c->model, out);
    put_fact("device", c->device, out);
    put_fact("target", c->target, out);
    put_fact("dtype", c->dtype, out);
    if (mgl_shape_weights(c->shape, weights)[0])
        put_fact("weights", weights, out);
    mgl_text_put(out, "<div class=\"two\"><b>workloads</b>");
    put_data(c->workloads, out);
    mgl_text_put(out, "</div>");
    put_count("capacity", c->capacity, out);
    put_count("trials", f->trials, out);
    put_count("measured", f->measured, out);
    put_count("kept", f->kept, out);
    mgl_text_put(out, "<div><b>time</b>");
    report_put_seconds(c->seconds, out);
    mgl_text_put(out, "</div></div>");
}

static void put_final(const report_facts *f, mgl_text *out)
{
    mgl_text line = {0};
    mgl_answer_final_line(&f->final, &line);
    mgl_text_put(out, "<p>At the end, ");
    put_data(line.bytes, out);
    mgl_text_put(out, ".</p>");
    out->failed |= line.failed;
    mgl_text_clear(&line);
}

static void put_best(const report_facts *f, mgl_text *out)
{
    mgl_text line = {0};
    bool good = mgl_answer_is_final_of(&f->final, f->best.number) && f->final.all.lo > 0;
    report_put_best(f, &line);
    mgl_text_put(out, good ? "<b class=\"good\">" : "<b>");
    put_data(line.bytes, out);
    mgl_text_format(out, "</b> %s", f->steps.keeps > 1 ? report_of_steps : "");
    out->failed |= line.failed;
    mgl_text_clear(&line);
}

static void put_quarantined(const report_facts *f, mgl_text *out)
{
    for (int i = 0; i < f->quarantined_count; i++) {
        mgl_text_put(out, "<p class=\"bad\">Found at an end: ");
        put_data(f->quarantined[i].line, out);
        mgl_text_put(out, ".</p>");
    }
}

static void put_predicted_row(const report_facts *f, int w, mgl_text *out)
{
    const bool all = w == f->workloads.count;
    const double was = all ? f->plays.start_us : f->plays.start_each[w];
    const double is = all ? f->predicted.us : f->predicted.each[w];
    mgl_text_put(out, "<tr><td>");
    if (all)
        mgl_text_put(out, "geometric mean");
    else
        report_put_workload(f, w, out);
    mgl_text_format(out, "</td><td class=\"n\">%.1f</td><td class=\"n\">%.1f</td><td class=\"n\">",
                    was, is);
    if (was > 0 && is > 0)
        mgl_text_format(out, "%+.2f&nbsp;%%", 100 * (was / is - 1));
    mgl_text_put(out, "</td></tr>");
}

/* Writes the best prediction and the default's, for each workload. */
static void put_predictions(const report_facts *f, mgl_text *out)
{
    const long long number = (long long)f->predicted.number;
    mgl_text_format(out, "<p class=\"soft\">The best prediction is that of trial %lld", number);
    if (!(f->plays.start_us > 0)) {
        mgl_text_format(out,
                        ": %.1f us a token, the geometric mean of the workloads. A "
                        "prediction is no result.</p>",
                        f->predicted.us);
        return;
    }
    mgl_text_format(out,
                    ". A prediction is no result.</p><div class=\"wide\"><table><tr>"
                    "<th>predicted</th><th class=\"n\">default, us</th>"
                    "<th class=\"n\">trial %lld, us</th><th class=\"n\">gain</th></tr>",
                    number);
    for (int w = 0; w < f->workloads.count; w++)
        put_predicted_row(f, w, out);
    if (f->workloads.count > 1)
        put_predicted_row(f, f->workloads.count, out);
    mgl_text_put(out, "</table></div>");
}

static void put_result(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out, "<h2>Result</h2><p>");
    if (f->best.number)
        put_best(f, out);
    else if (f->measured)
        mgl_text_put(out, "Nothing was faster than the default beyond doubt.");
    else
        mgl_text_put(out, f->measures ? "Nothing has been measured yet."
                                      : "Nothing was measured: there was no clock to go by.");
    mgl_text_put(out, "</p>");
    if (f->final.number)
        put_final(f, out);
    put_quarantined(f, out);
    if (f->best.number && f->best.proposal.hypothesis) {
        mgl_text_put(out, "<p class=\"soft\">Its proposer said: &ldquo;");
        put_data(f->best.proposal.hypothesis, out);
        mgl_text_put(out, "&rdquo;</p>");
    }
    if (f->predicted.us > 0)
        put_predictions(f, out);
}

/* ---- drawings -------------------------------------------------------------------------------- */

static void put_trajectory(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out, "<h2>Trajectory</h2>");
    if (!f->point_count) {
        mgl_text_put(out, "<p class=\"soft\">No trial came as far as a time or a prediction.</p>");
        return;
    }
    mgl_text_put(
        out, "<p class=\"soft\">Faster than the default by the steps added up, trial by trial. ");
    mgl_text_put(
        out, f->measured
                 ? "Line and green: what was kept, with its interval. Gray: measured and not "
                   "kept; hollow: predicted, not measured. Blue, small: A/A controls."
                 : "Nothing was measured: hollow dots are predicted, and the dashed line is the "
                   "best prediction so far.");
    mgl_text_put(out, " At the lower edge: slower than the axis goes.");
    if (f->point_count > REPORT_DRAWN)
        mgl_text_put(out, " Of the many dots only some are drawn.");
    mgl_text_put(out, "</p>");
    report_draw_trajectory(f, out);
}

/* Returns the end of the last task; with `layers`, without the head and the steps after it. */
static double end_of(const report_play *play, bool layers)
{
    double last = 0;
    for (int i = 0; i < play->span_count; i++)
        if (!layers || play->spans[i].step < MGL_STEP_HEAD)
            last = fmax(last, play->spans[i].end);
    return last;
}

/* Draws both timelines side by side for the given duration, from the start or from the middle of
 * the layers. */
static void put_plays(const report_facts *f, bool middle, double us, mgl_text *out)
{
    const report_plays *plays = &f->plays;
    double from = middle ? end_of(&plays->first, true) / 2 : 0;
    mgl_text_format(
        out,
        "<div class=\"sides\"><div><p class=\"soft\">the default, batch %d, context %d, "
        "%.1f us a token</p>",
        plays->workload.batch, plays->workload.context, plays->first.cost.us);
    report_draw_play(&plays->first, from, from + us, out);
    if (plays->best.span_count) {
        from = middle ? end_of(&plays->best, true) / 2 : 0;
        mgl_text_format(out,
                        "</div><div><p class=\"soft\">the best, trial %lld, batch %d, context %d, "
                        "%.1f us a token</p>",
                        (long long)f->played_best, plays->workload.batch, plays->workload.context,
                        plays->best.cost.us);
        report_draw_play(&plays->best, from, from + us, out);
    }
    mgl_text_put(out, "</div></div>");
}

static void put_change(double change, mgl_text *out)
{
    if (fabs(change) < .05)
        mgl_text_put(out, "<td class=\"n\">0</td>");
    else
        mgl_text_format(out, "<td class=\"n\">%+.1f</td>", change);
}

/* Writes the parts of the critical path: what a token waits for, in us. */
static void put_parts(const report_plays *plays, mgl_text *out)
{
    const bool both = plays->best.span_count > 0;
    mgl_text_format(out,
                    "<div class=\"wide\"><table><tr><th>what a token waits for, us; batch %d, "
                    "context %d</th><th class=\"n\">default</th>",
                    plays->workload.batch, plays->workload.context);
    mgl_text_put(out,
                 both ? "<th class=\"n\">best</th><th class=\"n\">difference</th></tr>" : "</tr>");
    for (int i = 0; i < MGL_COST_PART_COUNT; i++) {
        const double was = plays->first.cost.parts[i], is = plays->best.cost.parts[i];
        if (was <= 0 && is <= 0)
            continue;
        mgl_text_format(out, "<tr><td>%s</td><td class=\"n\">%.1f</td>",
                        mgl_cost_part_name((mgl_cost_part)i), was);
        if (both) {
            mgl_text_format(out, "<td class=\"n\">%.1f</td>", is);
            put_change(is - was, out);
        }
        mgl_text_put(out, "</tr>");
    }
    mgl_text_put(out, "</table></div>");
}

static void put_timelines(const report_facts *f, mgl_text *out)
{
    const report_plays *plays = &f->plays;
    const double until = fmax(end_of(&plays->first, false), end_of(&plays->best, false));
    const double layers = fmax(end_of(&plays->first, true), end_of(&plays->best, true));
    mgl_text_put(out, "<h2>A token's timeline, predicted</h2><p class=\"soft\">");
    if (until > 0)
        mgl_text_format(out,
                        "By the cost model, not by a clock; what is measured may differ. Batch %d, "
                        "context %d; queues from top to bottom. ",
                        plays->workload.batch, plays->workload.context);
    if (until > 0 && !f->played_best)
        mgl_text_put(out, "Nothing is better than the default so far. ");
    mgl_text_format(out, "%s</p>", plays->why);
    if (until <= 0)
        return;
    report_draw_legend(out);
    put_plays(f, false, until, out);
    if (plays->layers > 3 && layers > 0) {
        mgl_text_put(out, "<p class=\"soft\">From the middle of each, about two layers:</p>");
        put_plays(f, true, 2 * layers / plays->layers, out);
    }
    put_parts(plays, out);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Draws a bar from the middle, up to `most` percent to either side. */
static void put_bar(double mean, double best, double most, mgl_text *out)
{
    double scale = 78 / most, at = report_percent(mean) * scale, dot = report_percent(best) * scale;
    mgl_text_format(out,
                    "<svg class=\"bar\" viewBox=\"0 0 160 14\">"
                    "<line x1=\"80\" x2=\"80\" y1=\"0\" y2=\"14\" stroke=\"var(--faint)\"/>"
                    "<rect x=\"%.1f\" y=\"3\" width=\"%.1f\" height=\"8\" fill=\"%s\"/>"
                    "<circle cx=\"%.1f\" cy=\"7\" r=\"2.5\" fill=\"var(--fg)\"/></svg>",
                    at < 0 ? fmax(2, 80 + at) : 80, fmin(78, fabs(at)),
                    at < 0 ? "var(--bad)" : "var(--good)", fmax(2, fmin(158, 80 + dot)));
}

/* The largest effect in percent, which scales the bars. */
static double largest_effect(const report_facts *f)
{
    double most = 1;
    for (int i = 0; i < f->effect_count; i++) {
        const report_effect *e = &f->effects[i];
        if (e->valued)
            most = fmax(most, fmax(fabs(report_percent(e->best)),
                                   fabs(report_percent(e->sum / (double)e->valued))));
    }
    return fmin(most, 50);
}

static void put_effect(const report_effect *e, double most, mgl_text *out)
{
    mgl_text_format(out, "<tr><td class=\"key\">%s</td>", e->name);
    if (e->valued) {
        mgl_text_format(out,
                        "<td class=\"n\">%+.2f&nbsp;%%</td><td class=\"n\">%+.2f&nbsp;%%</td>"
                        "<td class=\"extra\">",
                        report_percent(e->sum / (double)e->valued), report_percent(e->best));
        put_bar(e->sum / (double)e->valued, e->best, most, out);
    } else {
        mgl_text_put(out, "<td class=\"n\">-</td><td class=\"n\">-</td><td class=\"extra\">");
    }
    mgl_text_format(out,
                    "</td><td class=\"n\">%lld</td><td class=\"n\">%lld</td>"
                    "<td class=\"n\">%lld</td><td class=\"extra\">%s</td></tr>",
                    (long long)e->tried, (long long)e->correct, (long long)e->refused, e->most);
}

static void put_group(const report_facts *f, int from, int to, const char *name, double most,
                      mgl_text *out)
{
    int64_t tried = 0;
    for (int i = from; i < to; i++)
        tried += f->effects[i].tried;
    if (!tried)
        return;
    mgl_text_format(out, "<tr><th class=\"group\" colspan=\"8\">%s</th></tr>", name);
    for (int i = from; i < to; i++)
        if (f->effects[i].tried)
            put_effect(&f->effects[i], most, out);
}

static void put_effects(const report_facts *f, mgl_text *out)
{
    const double most = largest_effect(f);
    mgl_text_put(out,
                 "<h2>What changing each knob and making each move did</h2><p class=\"soft\">");
    mgl_text_put(out, f->measures ? "" : "Predicted, not measured. ");
    mgl_text_format(out,
                    "Against the trial that it stood on, other changes of the same trial included. "
                    "Bar: the mean, to %.0f&nbsp;%% on either side; dot: the best.</p>"
                    "<div class=\"wide\"><table><tr><th>change of</th><th class=\"n\">mean</th>"
                    "<th class=\"n\">best</th><th class=\"extra\"></th><th class=\"n\">tried</th>"
                    "<th class=\"n\">correct</th><th class=\"n\">rejected</th>"
                    "<th class=\"extra\">else, most often</th></tr>",
                    most);
    put_group(f, 0, f->first_move, "knobs", most, out);
    put_group(f, f->first_move, f->effect_count, "moves", most, out);
    mgl_text_put(out, "</table></div>");
}

static void put_outcomes(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out,
                 "<h2>Outcomes, each with its first example</h2><div class=\"wide\"><table><tr>"
                 "<th>outcome</th><th class=\"n\">trials</th><th class=\"n\">first</th>"
                 "<th>why</th></tr>");
    for (int i = 0; i < f->refusal_count; i++) {
        const report_refusal *r = &f->refusals[i];
        mgl_text_format(out,
                        "<tr><td>%s</td><td class=\"n\">%lld</td><td class=\"n\">%lld</td>"
                        "<td class=\"why\">",
                        r->name, (long long)r->count, (long long)r->example);
        put_data(r->verdict.diagnostic, out);
        mgl_text_put(out, "</td></tr>");
    }
    mgl_text_put(out, "</table></div>");
}

static void put_workloads(const report_facts *f, mgl_text *out)
{
    if (!f->best.workload_count)
        return;
    mgl_text_put(out, "<h2>The incumbent, workload by workload</h2><div class=\"wide\"><table><tr>"
                      "<th>workload</th><th class=\"n\">before, us</th><th class=\"n\">"
                      "it, us</th><th class=\"n\">gain</th><th class=\"n\">stream, us</th>"
                      "<th class=\"n\">error</th><th class=\"n\">default's error</th></tr>");
    for (int w = 0; w < f->best.workload_count; w++) {
        const mgl_workload_result *r = &f->best.workloads[w];
        mgl_text_put(out, "<tr><td>");
        report_put_workload(f, w, out);
        mgl_text_format(out,
                        "</td><td class=\"n\">%.1f</td><td class=\"n\">%.1f</td><td class=\"n\">"
                        "%+.2f&nbsp;%% (%+.2f to %+.2f)</td><td class=\"n\">%.1f</td>"
                        "<td class=\"n\">",
                        r->incumbent_us, r->candidate_us, report_percent(r->gain),
                        report_percent(r->gain_lo), report_percent(r->gain_hi), r->stream_us);
        report_put_error(r->error, out);
        mgl_text_put(out, "</td><td class=\"n\">");
        report_put_error(r->error_default, out);
        mgl_text_put(out, "</td></tr>");
    }
    mgl_text_put(out, "</table></div>");
}

static void put_trust(const report_facts *f, mgl_text *out)
{
    char manifest[17];
    mgl_format_into(manifest, sizeof manifest, "%.*s", (int)sizeof manifest - 1,
                    f->campaign->manifest);
    mgl_text_put(out, "<h2>Can it be believed</h2><div class=\"facts\">");
    put_count("A/A controls", f->controls, out);
    put_count("of these bad", f->bad_controls, out);
    if (f->controls)
        mgl_text_format(out, "<div><b>largest A/A difference</b>%.2f&nbsp;%%</div>",
                        report_percent(f->control_largest));
    put_count("pairs", f->pairs, out);
    put_count("dropped for an event", f->dropped_pairs, out);
    put_fact("frozen files", manifest, out);
    mgl_text_format(out, "</div><p class=\"soft\">%s</p>", report_weights(f));
    if (!f->controls)
        return;
    mgl_text_put(out,
                 "<p class=\"soft\">A/A controls: the incumbent against itself, with 99&nbsp;% "
                 "intervals. Dashed: what it may differ by. Red: bad ones.</p>");
    report_draw_controls(f, out);
}

static void put_log(const report_facts *f, mgl_text *out)
{
    const int64_t from = f->event_count > REPORT_EVENTS ? f->event_count - REPORT_EVENTS : 0;
    if (!f->event_count)
        return;
    mgl_text_put(out, "<h2>Log</h2>");
    if (from)
        mgl_text_format(out, "<p class=\"soft\">The last %d of %lld events.</p>", REPORT_EVENTS,
                        (long long)f->event_count);
    mgl_text_put(out, "<div class=\"wide\"><table><tr><th>UTC</th><th>event</th><th></th></tr>");
    for (int64_t i = from; i < f->event_count; i++) {
        const report_event *event = &f->events[i % REPORT_EVENTS];
        mgl_text_put(out, "<tr><td>");
        report_put_time(event->unix_s, out);
        mgl_text_put(out, "</td><td>");
        put_data(event->kind, out);
        mgl_text_put(out, "</td><td class=\"why\">");
        put_data(event->text, out);
        mgl_text_put(out, "</td></tr>");
    }
    mgl_text_put(out, "</table></div>");
}

static void put_costs(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out,
                 "<h2>Costs</h2><div class=\"wide\"><table><tr><th>proposer</th><th class=\"n\">"
                 "trials</th><th class=\"n\">kept</th><th class=\"n\">time</th></tr>");
    for (int i = 0; i < f->proposer_count; i++) {
        const report_proposer *p = &f->proposers[i];
        mgl_text_put(out, "<tr><td>");
        put_data(p->name, out);
        mgl_text_format(out,
                        "</td><td class=\"n\">%lld</td><td class=\"n\">%lld</td><td class=\"n\">",
                        (long long)p->trials, (long long)p->kept);
        report_put_seconds(p->seconds, out);
        mgl_text_put(out, "</td></tr>");
    }
    mgl_text_put(out, "</table></div><p>");
    report_put_device_time(f, out);
    mgl_text_put(out, "</p>");
    if (f->requests) {
        mgl_text_put(out, "<p>A language model was asked ");
        mgl_answer_chat_line(&f->chat, out); /* needs no escaping: contains only numbers and outcome
                                              * names */
        mgl_text_put(out, ".</p>");
    }
}

static void put_reproduction(const report_facts *f, mgl_text *out)
{
    mgl_text text = {0};
    mgl_text_put(out, "<h2>Reproduce</h2>");
    if (!f->best.number && !report_has_prediction(f)) {
        mgl_text_put(out, "<p>");
        report_put_seed(f, out);
        mgl_text_put(out, "</p>");
        return;
    }
    if (!f->best.number)
        mgl_text_format(out, "<p>%s</p>", report_of_prediction);
    report_put_quoted(f->campaign->name, &text);
    mgl_text_put(out, "<pre>megalith campaign export ");
    put_data(text.bytes, out);
    mgl_text_put(out, " -o campaign.json\nmegalith campaign import campaign.json</pre>");
    out->failed |= text.failed;
    mgl_text_clear(&text);
    report_print_best(f, &text);
    if (text.length) {
        mgl_text_put(out, "<p>The incumbent, as <code>megalith campaign submit</code> takes it:"
                          "</p><pre>");
        put_lines(&text, out);
        mgl_text_put(out, "</pre>");
    }
    mgl_text_clear(&text);
}

mgl_status mgl_report_html(mgl_store *store, const mgl_campaign_record *campaign,
                           const mgl_report_options *options, mgl_text *out, mgl_error *err)
{
    report_facts facts;
    mgl_status status = report_facts_gather(store, campaign, &facts, err);
    if (!status) {
        put_head(&facts, options->running, out);
        put_result(&facts, out);
        put_trajectory(&facts, out);
        put_workloads(&facts, out);
        put_timelines(&facts, out);
        put_effects(&facts, out);
        put_outcomes(&facts, out);
        put_trust(&facts, out);
        put_costs(&facts, out);
        put_log(&facts, out);
        put_reproduction(&facts, out);
        mgl_text_put(out, "</body></html>\n");
        if (out->failed)
            status = mgl_fail_memory(err, out->capacity);
    }
    report_facts_clear(&facts);
    return status;
}

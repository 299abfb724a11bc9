/*
 * The report as one HTML file: inline style and SVG, no script, no outside resource, dark and light by
 * the reader's own setting. While the campaign runs, the page asks for itself again.
 *
 * Whatever came from a model, an agent or a file passes through put_data: it can show itself, and do
 * nothing else. The page stays small for any campaign: of many points only some are drawn, the kept
 * ones always.
 */
#include "autotune/report_facts.h"

#include "base/format.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

enum { DRAWN = 1500, WIDTH = 960, HEIGHT = 320, LEFT = 64, RIGHT = 16, TOP = 16, BOTTOM = 36 };

/* Text of others: shown as a terminal may have it, and escaped for HTML. */
static void put_data(const char *text, mgl_text *out)
{
    size_t length = text ? strlen(text) : 0;
    for (size_t i = 0, used; i < length; i += used) {
        char shown[4];
        size_t n = mgl_utf8_show(text + i, length - i, shown, &used);
        if (n == 1 && shown[0] == '&')
            mgl_text_put(out, "&amp;");
        else if (n == 1 && shown[0] == '<')
            mgl_text_put(out, "&lt;");
        else if (n == 1 && shown[0] == '>')
            mgl_text_put(out, "&gt;");
        else if (n == 1 && shown[0] == '"')
            mgl_text_put(out, "&quot;");
        else if (n == 1 && shown[0] == '\'')
            mgl_text_put(out, "&#39;");
        else
            mgl_text_append(out, shown, n);
    }
}

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1c1e21;--soft:#6a7078;--line:#d9dde2;"
    "--card:#f6f7f9;--good:#157f3b;--bad:#b3261e;--mark:#1f5fbf;--faint:#9aa3ad}"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e8ea;--soft:#9aa3ad;"
    "--line:#32383f;--card:#1c2126;--good:#5fd38a;--bad:#ff8a80;--mark:#7fb2ff;--faint:#66707a}}"
    "*{box-sizing:border-box}body{margin:0 auto;padding:24px 16px 64px;max-width:1040px;"
    "background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}"
    "h1{font-size:1.5rem;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:32px 0 "
    "8px}"
    "p{margin:8px 0}.soft{color:var(--soft)}"
    ".facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:8px;"
    "margin:16px 0}.facts div{background:var(--card);border:1px solid var(--line);"
    "border-radius:6px;padding:8px 12px;overflow-wrap:anywhere}.facts b{display:block;"
    "font-size:.75rem;font-weight:600;color:var(--soft)}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    "th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--line);"
    "vertical-align:top}th{font-size:.75rem;color:var(--soft)}td.n,th.n{text-align:right}"
    "td.why{overflow-wrap:anywhere;min-width:16em}svg{display:block;width:100%;height:auto;"
    "min-width:560px}pre{background:var(--card);border:1px solid var(--line);border-radius:6px;"
    "padding:12px;overflow-x:auto;font-size:.85rem}.good{color:var(--good)}.bad{color:var(--bad)}"
    ".sides{display:grid;grid-template-columns:repeat(auto-fit,minmax(320px,1fr));gap:16px}";

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
    put_fact("workloads", c->workloads, out);
    put_count("capacity", c->capacity, out);
    put_count("trials", f->trials, out);
    put_count("measured", f->measured, out);
    put_count("kept", f->kept, out);
    mgl_text_put(out, "<div><b>time</b>");
    report_put_seconds(c->seconds, out);
    mgl_text_put(out, "</div></div>");
}

static void put_result(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out, "<h2>Result</h2><p>");
    if (f->best.number)
        mgl_text_format(out,
                        "Trial %lld is <b class=\"good\">%.2f&nbsp;%% faster</b> than the default "
                        "(%.2f to %.2f, by the interval of its own decision; kept programs are "
                        "chained).",
                        (long long)f->best.number, report_percent(f->best_value),
                        report_percent(f->best_lo), report_percent(f->best_hi));
    else if (f->measured)
        mgl_text_put(out, "Nothing was faster than the default beyond doubt.");
    else
        mgl_text_put(out, "Nothing was measured: there was no clock to go by.");
    mgl_text_put(out, "</p>");
    if (f->best.number && f->best.proposal.hypothesis) {
        mgl_text_put(out, "<p class=\"soft\">Its proposer said: &ldquo;");
        put_data(f->best.proposal.hypothesis, out);
        mgl_text_put(out, "&rdquo;</p>");
    }
    if (f->best_predicted > 0)
        mgl_text_format(out,
                        "<p class=\"soft\">The best prediction, %.1f us a token, is that of trial "
                        "%lld. A prediction is no result.</p>",
                        f->best_predicted, (long long)f->best_predicted_number);
}

/* ---- the trajectory ------------------------------------------------------------------------------- */

/* From trials and percent to the drawing. */
typedef struct axes {
    double first, last; /* trials */
    double low, high;   /* percent */
} axes;

static double x_of(const axes *a, double trial)
{
    double span = a->last > a->first ? a->last - a->first : 1;
    return LEFT + (trial - a->first) / span * (WIDTH - LEFT - RIGHT);
}

static double y_of(const axes *a, double percent)
{
    double clipped = percent < a->low ? a->low : percent > a->high ? a->high : percent;
    return TOP + (a->high - clipped) / (a->high - a->low) * (HEIGHT - TOP - BOTTOM);
}

/* What is far slower than the default says nothing: it lies at the lower edge. */
static axes find_axes(const report_facts *f)
{
    axes a = {.first = 0, .last = 1, .low = -1, .high = 1};
    for (size_t i = 0; i < f->point_count; i++) {
        const report_point *p = &f->points[i];
        double low = report_percent(p->value), high = report_percent(p->hi);
        a.last = (double)p->number > a.last ? (double)p->number : a.last;
        a.low = low < a.low ? low : a.low;
        a.high = high > a.high ? high : a.high;
    }
    a.low = a.low < -10 ? -10 : floor(a.low);
    a.high = a.high > 1000 ? 1000 : ceil(a.high);
    return a;
}

/* 1, 2 or 5 times a power of ten, so that there are about five of them. */
static double tick_of(double span)
{
    double raw = span / 5, base = pow(10, floor(log10(raw)));
    return raw / base < 1.5   ? base
           : raw / base < 3.5 ? 2 * base
           : raw / base < 7.5 ? 5 * base
                              : 10 * base;
}

static void put_grid(const axes *a, mgl_text *out)
{
    double tick = tick_of(a->high - a->low);
    for (double at = ceil(a->low / tick) * tick; at <= a->high + tick / 100; at += tick)
        mgl_text_format(out,
                        "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"var(--line)\"/>"
                        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%+.3g %%</text>",
                        LEFT, WIDTH - RIGHT, y_of(a, at), y_of(a, at), LEFT - 6, y_of(a, at) + 4,
                        at);
    tick = tick_of(a->last - a->first);
    tick = tick < 1 ? 1 : tick;
    for (double at = 0; at <= a->last; at += tick)
        mgl_text_format(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>",
                        x_of(a, at), HEIGHT - 16, at);
    mgl_text_format(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">trial</text>", WIDTH - RIGHT,
                    HEIGHT - 2);
}

static void put_point(const axes *a, const report_point *p, mgl_text *out)
{
    double x = x_of(a, (double)p->number), y = y_of(a, report_percent(p->value));
    const char *colour = p->kept && !p->control ? "var(--good)"
                         : p->control           ? "var(--mark)"
                                                : "var(--faint)";
    if (p->measured)
        mgl_text_format(out,
                        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                        "stroke-opacity=\".45\"/>",
                        x, x, y_of(a, report_percent(p->lo)), y_of(a, report_percent(p->hi)),
                        colour);
    mgl_text_format(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" %s=\"%s\"/>", x, y,
                    p->kept && !p->control ? "4" : "2.2",
                    p->measured ? "fill" : "fill=\"none\" stroke", colour);
}

/* The incumbent's value, which rises in steps. */
static void put_steps(const report_facts *f, const axes *a, mgl_text *out)
{
    double value = 0;
    mgl_text_format(
        out, "<path fill=\"none\" stroke=\"var(--good)\" stroke-width=\"1.5\" d=\"M%.1f %.1f",
        x_of(a, a->first), y_of(a, 0));
    for (size_t i = 0; i < f->point_count; i++) {
        const report_point *p = &f->points[i];
        if (!p->kept || p->control || !p->measured)
            continue;
        value = p->value;
        mgl_text_format(out, "H%.1fV%.1f", x_of(a, (double)p->number),
                        y_of(a, report_percent(value)));
    }
    mgl_text_format(out, "H%.1f\"/>", x_of(a, a->last));
}

static void put_trajectory(const report_facts *f, mgl_text *out)
{
    axes a = find_axes(f);
    size_t every = f->point_count / DRAWN + 1;
    mgl_text_put(out, "<h2>Trajectory</h2>");
    if (!f->point_count) {
        mgl_text_put(out, "<p class=\"soft\">No trial came as far as a time or a prediction.</p>");
        return;
    }
    mgl_text_format(out,
                    "<p class=\"soft\">Faster than the default, trial by trial, with the interval "
                    "of each measurement. Filled: measured. Green: kept. Blue: A/A controls. "
                    "Hollow: predicted, not measured.%s</p><div class=\"wide\">"
                    "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"trajectory\" "
                    "fill=\"var(--soft)\" font-size=\"11\">",
                    every > 1 ? " Only some of those that were not kept are drawn." : "", WIDTH,
                    HEIGHT);
    put_grid(&a, out);
    for (size_t i = 0; i < f->point_count; i++)
        if (i % every == 0 || (f->points[i].kept && !f->points[i].control))
            put_point(&a, &f->points[i], out);
    put_steps(f, &a, out);
    mgl_text_put(out, "</svg></div>");
}

/* ---- tables ---------------------------------------------------------------------------------------- */

/* A bar from the middle, of at most `most` percent to either side. */
static void put_bar(double mean, double best, double most, mgl_text *out)
{
    double scale = 78 / most, at = report_percent(mean) * scale, dot = report_percent(best) * scale;
    mgl_text_format(out,
                    "<svg viewBox=\"0 0 160 14\" style=\"width:160px;min-width:160px\">"
                    "<line x1=\"80\" x2=\"80\" y1=\"0\" y2=\"14\" stroke=\"var(--line)\"/>"
                    "<rect x=\"%.1f\" y=\"3\" width=\"%.1f\" height=\"8\" fill=\"%s\"/>"
                    "<circle cx=\"%.1f\" cy=\"7\" r=\"2.5\" fill=\"var(--mark)\"/></svg>",
                    at < 0 ? fmax(2, 80 + at) : 80, fmin(78, fabs(at)),
                    at < 0 ? "var(--bad)" : "var(--good)", fmax(2, fmin(158, 80 + dot)));
}

/* The largest effect, in percent: where bars end. */
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
    mgl_text_format(out,
                    "<tr><td>%s</td><td class=\"n\">%lld</td><td class=\"n\">%lld</td>"
                    "<td class=\"n\">%lld</td>",
                    e->name, (long long)e->tried, (long long)e->correct, (long long)e->refused);
    if (e->valued) {
        mgl_text_format(out,
                        "<td class=\"n\">%+.2f&nbsp;%%</td><td class=\"n\">%+.2f&nbsp;%%</td><td>",
                        report_percent(e->sum / (double)e->valued), report_percent(e->best));
        put_bar(e->sum / (double)e->valued, e->best, most, out);
    } else {
        mgl_text_put(out, "<td class=\"n\">-</td><td class=\"n\">-</td><td>");
    }
    mgl_text_format(out, "</td><td>%s</td></tr>",
                    e->tried > e->correct ? mgl_outcome_name(e->most) : "");
}

static void put_effects(const report_facts *f, mgl_text *out)
{
    double most = largest_effect(f);
    mgl_text_put(out,
                 "<h2>What changing each knob and making each move did</h2><p class=\"soft\">");
    mgl_text_put(out, f->measures ? "" : "Predicted, not measured. ");
    mgl_text_put(out, "Against the trial that it stood on, other changes of the "
                      "same trial included. Bar: the mean; dot: the best.</p>"
                      "<div class=\"wide\"><table><tr><th>change of</th><th class=\"n\">tried</th>"
                      "<th class=\"n\">correct</th><th class=\"n\">refused</th><th class=\"n\">mean"
                      "</th><th class=\"n\">best</th><th></th><th>most often</th></tr>");
    for (int i = 0; i < f->effect_count; i++)
        if (f->effects[i].tried)
            put_effect(&f->effects[i], most, out);
    mgl_text_put(out, "</table></div>");
}

static void put_outcomes(const report_facts *f, mgl_text *out)
{
    mgl_text_put(out,
                 "<h2>Outcomes, each with its first example</h2><div class=\"wide\"><table><tr>"
                 "<th>outcome</th><th class=\"n\">trials</th><th class=\"n\">first</th>"
                 "<th>why</th></tr>");
    for (int i = 0; i < MGL_OUTCOME_COUNT; i++) {
        const report_refusal *r = &f->refusals[i];
        if (!r->count)
            continue;
        mgl_text_format(out,
                        "<tr><td>%s</td><td class=\"n\">%lld</td><td class=\"n\">%lld</td>"
                        "<td class=\"why\">",
                        mgl_outcome_name((mgl_outcome)i), (long long)r->count,
                        (long long)r->example);
        put_data(r->diagnostic, out);
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
    mgl_text_put(out, "<h2>Can it be believed</h2><div class=\"facts\">");
    put_count("A/A controls", f->controls, out);
    put_count("of these bad", f->bad_controls, out);
    mgl_text_format(out, "<div><b>largest A/A difference</b>%.2f&nbsp;%%</div>",
                    report_percent(f->control_largest));
    put_count("pairs", f->pairs, out);
    put_count("dropped for an event", f->dropped_pairs, out);
    mgl_text_format(out, "<div><b>frozen files</b>%.16s</div></div>", f->campaign->manifest);
}

static void put_timelines(const mgl_report_options *o, mgl_text *out)
{
    if (!o->trace_default && !o->trace_best)
        return;
    mgl_text_put(out, "<h2>A token's timeline</h2><div class=\"sides\"><div class=\"wide\"><p "
                      "class=\"soft\">the default</p>");
    mgl_text_put(out, o->trace_default ? o->trace_default : "");
    mgl_text_put(out, "</div><div class=\"wide\"><p class=\"soft\">the best</p>");
    mgl_text_put(out, o->trace_best ? o->trace_best : "");
    mgl_text_put(out, "</div></div>");
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
    mgl_text_put(out, "</table></div>");
    if (f->requests)
        mgl_text_format(out, "<p>A language model was asked %lld times, for %lld tokens.</p>",
                        (long long)f->requests, (long long)f->tokens);
}

static void put_reproduction(const report_facts *f, mgl_text *out)
{
    mgl_text proposal = {0};
    if (f->best.number) {
        mgl_text_put(out, "<h2>Reproduce</h2><pre>megalith campaign export '");
        put_data(f->campaign->name, out);
        mgl_text_put(out, "' -o campaign.json\nmegalith campaign import campaign.json</pre>");
    }
    if (f->best.number && !f->best.proposal.schedule) {
        mgl_proposal_print(&f->best.proposal, &proposal);
        mgl_text_put(
            out, "<p>The incumbent, as <code>megalith campaign submit</code> takes it:</p><pre>");
        /* line by line: put_data shows a line end as what it is not */
        for (const char *at = proposal.bytes ? proposal.bytes : "", *end; *at; at = end) {
            char line[512];
            end = strchr(at, '\n') ? strchr(at, '\n') + 1 : at + strlen(at);
            mgl_format_into(line, sizeof line, "%.*s", (int)(end - at - (end[-1] == '\n')), at);
            put_data(line, out);
            mgl_text_put(out, "\n");
        }
        mgl_text_put(out, "</pre>");
        out->failed |= proposal.failed;
        mgl_text_clear(&proposal);
    }
    mgl_text_put(out, "</body></html>\n");
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
        put_timelines(options, out);
        put_effects(&facts, out);
        put_outcomes(&facts, out);
        put_trust(&facts, out);
        put_costs(&facts, out);
        put_reproduction(&facts, out);
        if (out->failed)
            status = mgl_fail_memory(err, out->capacity);
    }
    report_facts_clear(&facts);
    return status;
}

/* Formats and prints the progress of a campaign from its events. See tune_progress.h. */
#include "cli/campaign/tune_progress.h"

#include "cli/progress.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

static const double pause_s = 30; /* between two lines if the best trial does not change */

/* ---- the line -------------------------------------------------------------------------------- */

static void put_time(double seconds, const char *after, mgl_text *out)
{
    const long long minutes = (long long)ceil(seconds / 60);
    if (seconds < 100)
        mgl_text_format(out, ", %.0f s %s", ceil(seconds), after);
    else if (minutes < 100)
        mgl_text_format(out, ", %lld min %s", minutes, after);
    else
        mgl_text_format(out, ", %lld h %02lld min %s", minutes / 60, minutes % 60, after);
}

/* Seconds until the limit of hours or trials, whichever is first; HUGE_VAL: unknown. */
static double find_left(const mgl_cli_tune_progress *p, double now)
{
    const int64_t made = p->trials - p->begun;
    double left = HUGE_VAL;
    if (p->how->hours > 0)
        left = fmax(0, p->how->hours * 3600 - p->spent - (now - p->began));
    if (p->how->trials > 0 && made > 0)
        left = fmin(left, fmax(0, (double)(p->how->trials - p->trials)) * (now - p->began) /
                              (double)made);
    return left;
}

static void put_best(const mgl_cli_tune_progress *p, mgl_text *out)
{
    if (p->clock && p->best)
        mgl_text_format(out, ", best %+.2f %% (%+.2f to %+.2f) in trial %lld", 100 * expm1(p->gain),
                        100 * expm1(p->lo), 100 * expm1(p->hi), (long long)p->best);
    else if (p->best && p->default_us > 0)
        mgl_text_format(out, ", best predicted %.1f us (trial %lld; default %.1f)", p->best_us,
                        (long long)p->best, p->default_us);
    else if (p->best)
        mgl_text_format(out, ", best predicted %.1f us (trial %lld)", p->best_us,
                        (long long)p->best);
    else
        mgl_text_put(out, ", best: the default");
}

void mgl_cli_tune_progress_format(const mgl_cli_tune_progress *p, double now, mgl_text *out)
{
    const double left = find_left(p, now);
    mgl_text_format(out, "%lld", (long long)p->trials);
    if (p->how->trials > 0)
        mgl_text_format(out, " of %lld", (long long)p->how->trials);
    mgl_text_put(out, p->trials == 1 && p->how->trials <= 0 ? " trial" : " trials");
    put_best(p, out);
    if (left > 0 && left < HUGE_VAL)
        put_time(left, "left", out);
    else
        put_time(now - p->began, "so far", out);
}

static void print_line(mgl_cli_tune_progress *p)
{
    mgl_text line = {0};
    const double now = mgl_clock_s();
    mgl_cli_tune_progress_format(p, now, &line);
    if (!line.failed)
        mgl_cli_say(p->how->verb, "%s", line.bytes);
    mgl_text_clear(&line);
    p->printed = now;
    p->printed_trials = p->trials;
}

/* Updates the display after a trial; `news`: the best trial changed. */
static void show(mgl_cli_tune_progress *p, bool news)
{
    mgl_text line = {0};
    if (p->how->quiet)
        return;
    if (!mgl_cli_has_bar()) {
        if (news || mgl_clock_s() - p->printed >= pause_s)
            print_line(p);
        return;
    }
    mgl_cli_tune_progress_format(p, mgl_clock_s(), &line);
    if (!line.failed)
        mgl_cli_show_text(p->how->verb, line.bytes);
    mgl_text_clear(&line);
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_kind(const mgl_campaign_event *event, const char *kind)
{
    return !strcmp(event->kind, kind);
}

/* Updates the counts. Returns whether the best trial changed. */
static bool take_trial(mgl_cli_tune_progress *p, const mgl_trial *trial)
{
    p->trials = trial->number > p->trials ? trial->number : p->trials;
    if (p->clock || !mgl_answer_may_win(trial))
        return false;
    const double least = p->best ? p->best_us : p->default_us > 0 ? p->default_us : HUGE_VAL;
    if (!(trial->predicted_us < least))
        return false;
    p->best = trial->number;
    p->best_us = trial->predicted_us;
    return true;
}

static void take_keep(mgl_cli_tune_progress *p, const mgl_trial *trial)
{
    p->trials = trial->number > p->trials ? trial->number : p->trials;
    p->best = trial->number;
    p->gain += trial->gain;
    p->lo += trial->gain_lo;
    p->hi += trial->gain_hi;
}

/* Whether the event is printed without --verbose: every kind except trials and times. */
static bool is_news(mgl_cli_tune_progress *p, const mgl_campaign_event *event)
{
    const bool paused = p->paused;
    p->paused = is_kind(event, "pause") || (paused && !is_kind(event, "control"));
    if (is_kind(event, "control"))
        return paused && !event->trial; /* measurements are reliable again */
    return !event->trial && !is_kind(event, MGL_SPENT_EVENT);
}

static void print_verbose(const mgl_cli_tune_progress *p, const mgl_campaign_event *event)
{
    mgl_text line = {0};
    const bool trial = is_kind(event, "trial");
    if (!trial && event->trial && !is_kind(event, "control"))
        return; /* already printed as a trial */
    if (trial)
        mgl_answer_line(event->trial, &line);
    mgl_cli_say(p->how->verb, "%s%s%s", trial ? "" : event->kind, trial ? "" : ": ",
                trial && line.bytes ? line.bytes : event->text);
    mgl_text_clear(&line);
}

void mgl_cli_tune_progress_event(mgl_cli_tune_progress *p, const mgl_campaign_event *event)
{
    const bool counted = event->trial && (is_kind(event, "trial") || is_kind(event, "control"));
    const bool keep = event->trial && is_kind(event, "keep");
    const bool over = is_kind(event, "end") || is_kind(event, "pause");
    bool changed = keep;
    if (counted)
        changed = take_trial(p, event->trial);
    else if (keep)
        take_keep(p, event->trial);
    if (p->how->quiet)
        return;
    if (p->how->verbose) {
        print_verbose(p, event);
        return;
    }
    if (over && p->trials > p->printed_trials)
        print_line(p);
    if (is_news(p, event))
        mgl_cli_say(p->how->verb, "%s: %s", event->kind, event->text);
    if (counted || keep || is_kind(event, "start"))
        show(p, changed);
}

/* ---- initial state --------------------------------------------------------------------------- */

static void print_note(const mgl_cli_tune_progress *p, const char *device)
{
    if (p->clock || p->how->quiet)
        return;
    mgl_cli_say(p->how->verb, "%s",
                !strcmp(device, "cpu") ? "the device is cpu: candidates are executed and checked, "
                                         "but not measured; trials are compared by predicted times"
                                       : "the device is none: candidates are not executed or "
                                         "measured; trials are compared by predicted times");
}

mgl_status mgl_cli_tune_progress_begin(mgl_cli_tune_progress *p, const mgl_tune *tune,
                                       const mgl_cli_tuning *how, mgl_error *err)
{
    const mgl_campaign_record *c = &tune->record;
    mgl_answer_best_facts best;
    mgl_answer_predicted predicted = {0};
    const double now = mgl_clock_s();
    *p = (mgl_cli_tune_progress){.how = how,
                                 .clock = mgl_answer_has_clock(c),
                                 .trials = c->trials,
                                 .begun = c->trials,
                                 .printed_trials = c->trials,
                                 .spent = c->seconds,
                                 .began = now,
                                 .printed = now};
    print_note(p, c->device);
    mgl_status status = MGL_OK;
    if (p->clock) {
        status = mgl_answer_find_best(tune->store, c, &best, err);
        p->best = best.number;
        p->gain = best.log_gain;
        p->lo = best.log_lo;
        p->hi = best.log_hi;
        return status;
    }
    if (how->quiet || how->verbose)
        return MGL_OK;
    status = mgl_answer_find_predicted(tune->store, c, &predicted, err);
    if (!status && !predicted.default_us) /* no trial yet */
        status = mgl_answer_predict_default(&tune->subject, &predicted, err);
    p->best = predicted.number;
    p->best_us = predicted.us;
    p->default_us = predicted.default_us;
    return status;
}

/*
 * The two charts over trials: the trajectory of gains, and the A/A controls. Both have the same
 * trial axis.
 *
 * The exact value of a very slow trial is not useful, so the axis ends slightly below zero, and
 * slower trials are marks at its edge. Controls differ by hundredths of a percent, so they are
 * small dots in the trajectory, and have a chart with their own axis. Implements part of
 * report_draw.h.
 */
#include "autotune/report/report_draw.h"

#include "autotune/candidates/judge.h"

#include <math.h>

enum { WIDTH = 640, LEFT = 84, RIGHT = 96, TOP = 16, BOTTOM = 48, FONT = 13 };
enum { TALL = 320, FLAT = 190 };

/* Mapping from trial numbers and percent to coordinates. */
typedef struct axes {
    double last;      /* last trial number; the first is 0 */
    double low, high; /* percent */
    double tick;      /* percent */
    int height;
} axes;

double report_tick(double span)
{
    double raw = span / 5, base = pow(10, floor(log10(raw)));
    return raw / base < 1.5   ? base
           : raw / base < 3.5 ? 2 * base
           : raw / base < 7.5 ? 5 * base
                              : 10 * base;
}

static double x_of(const axes *a, double trial)
{
    return LEFT + trial / a->last * (WIDTH - LEFT - RIGHT);
}

static double y_of(const axes *a, double percent)
{
    double clipped = percent < a->low ? a->low : percent > a->high ? a->high : percent;
    return TOP + (a->high - clipped) / (a->high - a->low) * (a->height - TOP - BOTTOM);
}

/* Rounds both ends of the axis to ticks. A flat chart has fewer ticks. */
static void round_axes(axes *a)
{
    a->tick = report_tick((a->high - a->low) * TALL / a->height);
    a->low = floor(a->low / a->tick) * a->tick;
    a->high = ceil(a->high / a->tick) * a->tick;
}

static void begin(const axes *a, const char *name, mgl_text *out)
{
    mgl_text_format(out,
                    "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" "
                    "aria-label=\"%s\" fill=\"var(--soft)\" font-size=\"%d\">",
                    WIDTH, a->height, name, FONT);
}

static void end(mgl_text *out)
{
    mgl_text_put(out, "</svg></div>");
}

static void put_level(const axes *a, double percent, const char *stroke, mgl_text *out)
{
    mgl_text_format(out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>", LEFT,
                    WIDTH - RIGHT, y_of(a, percent), y_of(a, percent), stroke);
}

static void put_grid(const axes *a, mgl_text *out)
{
    const int digits = a->tick < .1 ? 2 : a->tick < 1 ? 1 : 0;
    for (double at = a->low; at <= a->high + a->tick / 2; at += a->tick) {
        const bool zero = fabs(at) < a->tick / 2;
        put_level(a, at, zero ? "var(--faint)" : "var(--line)", out);
        mgl_text_format(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8,
                        y_of(a, at) + 5);
        if (zero)
            mgl_text_put(out, "0 %</text>");
        else
            mgl_text_format(out, "%+.*f %%</text>", digits, at);
    }
    const double tick = fmax(1, report_tick(a->last));
    for (double at = 0; at <= a->last; at += tick)
        mgl_text_format(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>",
                        x_of(a, at), a->height - BOTTOM + 20, at);
    mgl_text_format(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">trial</text>", WIDTH - RIGHT,
                    a->height - 6);
}

static double find_last(const report_facts *f)
{
    double last = 1;
    for (size_t i = 0; i < f->point_count; i++)
        last = fmax(last, (double)f->points[i].number);
    return last;
}

/* Writes the tooltip of a point. */
static void put_title(const report_point *p, mgl_text *out)
{
    mgl_text_format(out, "<title>trial %lld, %s: ", (long long)p->number,
                    p->control ? "A/A control" : mgl_outcome_name(p->outcome));
    if (!p->measured)
        mgl_text_format(out, "predicted %+.2f %%", report_percent(p->value));
    else
        mgl_text_format(out, "%+.2f %% (%+.2f to %+.2f), %+.2f %% over the default",
                        report_percent(p->gain), report_percent(p->lo - p->value + p->gain),
                        report_percent(p->hi - p->value + p->gain), report_percent(p->value));
    mgl_text_put(out, "</title>");
}

static void put_interval(const axes *a, double x, double lo, double hi, const char *colour,
                         mgl_text *out)
{
    mgl_text_format(out, "<path stroke=\"%s\" stroke-opacity=\".5\" d=\"M%.1f %.1fV%.1f\"/>",
                    colour, x, y_of(a, lo), y_of(a, hi));
}

/* ---- trajectory ------------------------------------------------------------------------------ */

/* Chooses the range of the gain axis. The part below zero is at most a quarter of the height, or 2
 * percent if that is more. */
static axes find_axes(const report_facts *f)
{
    axes a = {.last = find_last(f), .low = -.5, .high = .5, .height = TALL};
    double lowest = 0;
    for (size_t i = 0; i < f->point_count; i++) {
        const report_point *p = &f->points[i];
        lowest = fmin(lowest, report_percent(p->value));
        a.high = fmax(a.high, report_percent(p->kept ? p->hi : p->value));
    }
    a.high = fmin(a.high, 10000);
    a.low = fmin(a.low, fmax(lowest, -fmax(2, a.high / 3)));
    round_axes(&a);
    return a;
}

static void put_point(const axes *a, const report_point *p, mgl_text *out)
{
    const double x = x_of(a, (double)p->number), percent = report_percent(p->value);
    const bool kept = p->kept && !p->control;
    const char *colour = kept ? "var(--good)" : p->control ? "var(--mark)" : "var(--dot)";
    if (percent < a->low) {
        mgl_text_format(out, "<path fill=\"%s\" d=\"M%.1f %.1fl-3-6h6z\">", colour, x,
                        y_of(a, a->low) + 3);
        put_title(p, out);
        mgl_text_put(out, "</path>");
        return;
    }
    if (p->measured && !p->control)
        put_interval(a, x, report_percent(p->lo), report_percent(p->hi), colour, out);
    mgl_text_format(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" %s=\"%s\">", x, y_of(a, percent),
                    kept         ? "4.5"
                    : p->control ? "1.8"
                                 : "2.5",
                    p->measured ? "fill" : "fill=\"none\" stroke", colour);
    put_title(p, out);
    mgl_text_put(out, "</circle>");
}

/* Draws the best value so far as a step line: kept trials, or predictions if nothing was
 * measured. */
static void put_steps(const report_facts *f, const axes *a, mgl_text *out)
{
    const bool predicted = f->measured == 0;
    double best = 0, drawn = -1;
    const char *colour = predicted ? "var(--mark)" : "var(--good)";
    mgl_text_format(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"%s d=\"M%.1f %.1f",
                    colour, predicted ? " stroke-dasharray=\"6 4\"" : "", x_of(a, 0), y_of(a, 0));
    for (size_t i = 0; i < f->point_count; i++) {
        const report_point *p = &f->points[i];
        const bool step = predicted ? p->value > best : p->kept && p->measured;
        if (p->control || !step)
            continue;
        best = p->value;
        const double x = x_of(a, (double)p->number);
        if (x - drawn >= .5) { /* steps within half a pixel are merged */
            mgl_text_format(out, "H%.1f", x);
            drawn = x;
        }
        mgl_text_format(out, "V%.1f", y_of(a, report_percent(best)));
    }
    mgl_text_format(out, "H%.1f\"/>", x_of(a, a->last));
    if (best > 0)
        mgl_text_format(out, "<text x=\"%d\" y=\"%.1f\" fill=\"%s\">%+.*f %%</text>",
                        WIDTH - RIGHT + 8, y_of(a, report_percent(best)) + 5, colour,
                        report_percent(best) < 10 ? 2 : 1, report_percent(best));
}

/* Draws every n-th of the kept trials, or of the others, within the limit. */
static void put_points(const report_facts *f, const axes *a, bool kept, mgl_text *out)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < f->point_count; i++)
        count += (f->points[i].kept && !f->points[i].control) == kept;
    const size_t every = count / REPORT_DRAWN + 1;
    for (size_t i = 0; i < f->point_count; i++)
        if ((f->points[i].kept && !f->points[i].control) == kept && at++ % every == 0)
            put_point(a, &f->points[i], out);
}

void report_draw_trajectory(const report_facts *f, mgl_text *out)
{
    const axes a = find_axes(f);
    begin(&a, "trajectory", out);
    put_grid(&a, out);
    put_points(f, &a, false, out);
    put_steps(f, &a, out);
    put_points(f, &a, true, out);
    end(out);
}

/* ---- controls -------------------------------------------------------------------------------- */

static void put_control(const axes *a, const report_point *p, mgl_text *out)
{
    const double x = x_of(a, (double)p->number), off = (double)p->gain - (double)p->value;
    const char *colour = p->outcome == MGL_OUTCOME_SUSPICIOUS ? "var(--bad)" : "var(--mark)";
    put_interval(a, x, report_percent(p->lo + off), report_percent(p->hi + off), colour, out);
    mgl_text_format(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\">", x,
                    y_of(a, report_percent(p->gain)), colour);
    put_title(p, out);
    mgl_text_put(out, "</circle>");
}

void report_draw_controls(const report_facts *f, mgl_text *out)
{
    const double limit = report_percent(MGL_CONTROL_GAIN);
    const size_t every = (size_t)f->controls / REPORT_DRAWN + 1;
    size_t at = 0;
    axes a = {.last = find_last(f), .height = FLAT};
    a.high = fmin(10, fmax(1.2 * limit, report_percent(f->control_largest)));
    a.low = -a.high;
    round_axes(&a);
    begin(&a, "A/A controls", out);
    put_grid(&a, out);
    put_level(&a, limit, "var(--bad)\" stroke-dasharray=\"6 4", out);
    put_level(&a, -limit, "var(--bad)\" stroke-dasharray=\"6 4", out);
    for (size_t i = 0; i < f->point_count; i++)
        if (f->points[i].control && at++ % every == 0)
            put_control(&a, &f->points[i], out);
    end(out);
}

/*
 * Drawing of a simulated timeline: a row for each queue, time from left to right, a color for each
 * step. A pixel has the color of the step that takes most of its time, and is blank if the queue is
 * mostly idle. Adjacent equal pixels are one stroke, and all strokes of a color are one path. So
 * the size of a drawing is bounded by its pixels, for any number of tasks. Implements part of
 * report_draw.h.
 */
#include "autotune/report/report_draw.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = 440, ROWS = 132, LEFT = 34, TOP = 6, BOTTOM = 34, PLOT = 264, TALLEST = 12 };

static const double LEAST_BUSY = .2; /* smallest busy share of a pixel that gets a color */

typedef struct canvas {
    double from;   /* us */
    double per_us; /* columns */
    double row;    /* height of a row */
    int rows;
    mgl_text strokes[REPORT_COLOURS];
} canvas;

/* The share of each step in each column of a queue. */
typedef double shares[COLUMNS][REPORT_COLOURS];

static void add_span(const canvas *c, const mgl_cost_span *span, shares of)
{
    const double from = fmax((span->start - c->from) * c->per_us, 0),
                 to = fmin((span->end - c->from) * c->per_us, COLUMNS);
    for (int at = (int)from; at < to; at++)
        of[at][span->step] += fmin(to, at + 1) - fmax(from, at);
}

/* The step with the largest share in a column; -1: blank. */
static int colour_of(const double column[REPORT_COLOURS])
{
    double busy = 0;
    int most = 0;
    for (int s = 0; s < REPORT_COLOURS; s++) {
        busy += column[s];
        most = column[s] > column[most] ? s : most;
    }
    return busy < LEAST_BUSY ? -1 : most;
}

static void put_row(canvas *c, int row, shares of)
{
    for (int from = 0, to; from < COLUMNS; from = to) {
        const int colour = colour_of(of[from]);
        to = from + 1;
        while (to < COLUMNS && colour_of(of[to]) == colour)
            to++;
        if (colour >= 0)
            mgl_text_format(&c->strokes[colour], "M%d %gh%d", LEFT + from,
                            TOP + (row + .5) * c->row, to - from);
    }
}

/* Draws the queues. If there are more queues than rows, draws some of them. */
static void put_queues(const report_play *play, canvas *c)
{
    int span = 0;
    for (int row = 0; row < c->rows; row++) {
        const int queue = (int)((int64_t)row * play->queue_count / c->rows);
        shares of;
        memset(of, 0, sizeof of);
        while (span < play->span_count && play->spans[span].queue < queue)
            span++;
        for (; span < play->span_count && play->spans[span].queue == queue; span++)
            add_span(c, &play->spans[span], of);
        put_row(c, row, of);
    }
}

static void put_axes(const report_play *play, const canvas *c, double until, mgl_text *out)
{
    const double bottom = TOP + c->rows * c->row, tick = report_tick(until - c->from);
    for (double at = ceil(c->from / tick) * tick; at <= until; at += tick) {
        const double x = LEFT + (at - c->from) * c->per_us;
        mgl_text_format(
            out,
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%.1f\" stroke=\"var(--line)\"/>"
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>",
            x, x, TOP, bottom + 3, x, bottom + 16, at);
    }
    mgl_text_format(out,
                    "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">us</text>"
                    "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>",
                    LEFT + COLUMNS, bottom + 30, LEFT - 5, TOP + 10);
    if (play->queue_count > 1)
        mgl_text_format(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>", LEFT - 5,
                        bottom, play->queue_count - 1);
}

void report_draw_play(const report_play *play, double from, double until, mgl_text *out)
{
    canvas c = {.from = from,
                .per_us = COLUMNS / (until - from),
                .rows = play->queue_count < ROWS ? play->queue_count : ROWS};
    c.row = fmin(TALLEST, (double)PLOT / c.rows);
    put_queues(play, &c);
    mgl_text_format(out,
                    "<svg class=\"play\" viewBox=\"0 0 %d %.0f\" role=\"img\" "
                    "aria-label=\"timeline of %d queues\" fill=\"var(--soft)\" font-size=\"12\">",
                    LEFT + COLUMNS + 12, TOP + c.rows * c.row + BOTTOM, play->queue_count);
    put_axes(play, &c, until, out);
    for (int s = 0; s < REPORT_COLOURS; s++) {
        if (c.strokes[s].length)
            mgl_text_format(out, "<path stroke=\"var(--s%d)\" stroke-width=\"%.2f\" d=\"%s\"/>", s,
                            c.row * .9, c.strokes[s].bytes);
        out->failed |= c.strokes[s].failed;
        mgl_text_clear(&c.strokes[s]);
    }
    mgl_text_put(out, "</svg>");
}

void report_draw_legend(mgl_text *out)
{
    mgl_text_put(out, "<p class=\"legend\">");
    for (int s = 0; s < REPORT_COLOURS; s++)
        mgl_text_format(out, "<span><i style=\"background:var(--s%d)\"></i>%s</span>", s,
                        s < MGL_STEP_COUNT ? mgl_step_name((mgl_step)s) : "tokens and the rest");
    mgl_text_put(out, "<span><i></i>waiting</span></p>");
}

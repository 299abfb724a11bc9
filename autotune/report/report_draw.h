/* What the page of a report draws: SVG that stands within HTML, in the colours of its style. */
#ifndef MGL_AUTOTUNE_REPORT_REPORT_DRAW_H
#define MGL_AUTOTUNE_REPORT_REPORT_DRAW_H

#include "autotune/report/report_facts.h"

/* Trial by trial, where each stands against the default. Needs a point at least. */
void report_draw_trajectory(const report_facts *facts, mgl_text *out);
/* The A/A controls with their intervals and what they may differ by. Needs a control at least. */
void report_draw_controls(const report_facts *facts, mgl_text *out);
/* One play's queues between two times, us. */
void report_draw_play(const report_play *play, double from, double until, mgl_text *out);
/* What the colours of a play stand for. */
void report_draw_legend(mgl_text *out);

/* 1, 2 or 5 times a power of ten, so that a span has about five of them. */
double report_tick(double span);

/* Points that are drawn at most, of whatever number there are: every n-th. */
enum { REPORT_DRAWN = 1500 };
/* The colours of a play: --s0, --s1, ... of the page's style. */
enum { REPORT_COLOURS = MGL_STEP_COUNT + 1 };

#endif

/* Drawings of the HTML report: SVG fragments in the colors of the page's style. Called by
 * report_html.c. */
#ifndef MGL_AUTOTUNE_REPORT_REPORT_DRAW_H
#define MGL_AUTOTUNE_REPORT_REPORT_DRAW_H

#include "autotune/report/report_facts.h"

/* Draws the gain of each trial over the default. Requires at least one point. */
void report_draw_trajectory(const report_facts *facts, mgl_text *out);
/* Draws the A/A controls with their intervals and limits. Requires at least one control. */
void report_draw_controls(const report_facts *facts, mgl_text *out);
/* Draws the queues of a simulated epoch between two times in us. */
void report_draw_play(const report_play *play, double from, double until, mgl_text *out);
/* Draws the legend of the colors of a timeline. */
void report_draw_legend(mgl_text *out);

/* Distance of axis ticks: 1, 2 or 5 times a power of ten, about five in a span. */
double report_tick(double span);

/* Limit of drawn points; of more points every n-th is drawn. */
enum { REPORT_DRAWN = 1500 };
/* Colors of a timeline: --s0, --s1, ... of the page's style. */
enum { REPORT_COLOURS = MGL_STEP_COUNT + 1 };

#endif

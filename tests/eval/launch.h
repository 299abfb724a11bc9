/* Fixture of the trace tests: a program with artificial events, and its trace and summary. */
#ifndef MGL_TESTS_EVAL_LAUNCH_H
#define MGL_TESTS_EVAL_LAUNCH_H

#include "eval/trace.h"
#include "fixture.h"

struct launch {
    mgl_graph *graph;
    mgl_program *program;
    mgl_device_event *events; /* (epochs, tasks) */
    int epochs, tasks;        /* tasks of all lists */
};

/* Makes the program of a small random model, with memory for the events of this number of
 * epochs. */
struct launch launch_open(const fixture_options *options, int epochs);
void launch_close(struct launch *l);

/* Release with mgl_trace_free. */
mgl_trace *launch_trace(const struct launch *l);
/* The summary of a list; release with mgl_trace_summary_clear. */
mgl_trace_summary launch_sum_up(const mgl_trace *trace, int list);

#define near(a, b) ck_assert_double_eq_tol(a, b, 1e-6)

#endif

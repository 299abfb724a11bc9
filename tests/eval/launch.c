/* Makes programs with artificial events. See launch.h. */
#include "launch.h"

#include "base/memory.h"

struct launch launch_open(const fixture_options *options, int epochs)
{
    struct launch l = {.epochs = epochs};
    l.graph = random_graph(&small_model, 64, false, MGL_BF16, 1);
    l.program = fixture_program(l.graph, options);
    l.tasks = l.program->task_count + (l.program->second ? l.program->second->task_count : 0);
    l.events = mgl_alloc_zero((size_t)(epochs * l.tasks), sizeof *l.events);
    return l;
}

void launch_close(struct launch *l)
{
    mgl_free(l->events);
    mgl_program_free(l->program);
    mgl_graph_free(l->graph);
}

mgl_trace *launch_trace(const struct launch *l)
{
    mgl_error err = {0};
    mgl_trace *trace = NULL;
    ok(mgl_trace_new(l->program, l->events, l->epochs, &trace, &err), err);
    return trace;
}

mgl_trace_summary launch_sum_up(const mgl_trace *trace, int list)
{
    mgl_error err = {0};
    mgl_trace_summary summary;
    ok(mgl_trace_sum_up(trace, list, &summary, &err), err);
    return summary;
}

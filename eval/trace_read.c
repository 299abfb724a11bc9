/*
 * Reads facts of a task from a trace (trace.h): the last writer of its inputs, the previous task of
 * its queue, and the split of its time by kind. trace.c, trace_chain.c and trace_summary.c use
 * these functions.
 */
#include "eval/trace.h"

/* Whether two regions of a flagged buffer overlap. Symbolic ranges cover whole dimensions. */
static bool overlap(const mgl_program *p, const mgl_region *a, const mgl_region *b)
{
    for (int i = 0; i < p->buffers[a->buffer].rank; i++) {
        const mgl_range *x = &a->ranges[i], *y = &b->ranges[i];
        if (x->kind == MGL_RANGE_FIXED && y->kind == MGL_RANGE_FIXED &&
            (x->lo >= y->hi || y->lo >= x->hi))
            return false;
    }
    return true;
}

int mgl_trace_last_writer(const mgl_trace *trace, int row, int task)
{
    const mgl_program *p = trace->program;
    const mgl_run in = p->tasks[task].in;
    int last = -1;
    for (int i = in.first; i < in.first + in.count; i++) {
        const mgl_region *read = &p->regions[i];
        mgl_run run = read->flag ? trace->writers[read->buffer] : (mgl_run){0};
        for (int k = run.first; k < run.first + run.count; k++) {
            int writer = trace->task_of_region[trace->edges[k]];
            const mgl_trace_time *time = mgl_trace_at(trace, row, writer);
            if (time->known && (last < 0 || time->end > mgl_trace_at(trace, row, last)->end) &&
                overlap(p, read, &p->regions[trace->edges[k]]))
                last = writer;
        }
    }
    return last;
}

int mgl_trace_before(const mgl_trace *trace, int row, int task)
{
    int first = mgl_trace_tasks(trace, mgl_trace_list_of(trace, task), trace->queue_of[task]).first;
    while (--task >= first)
        if (mgl_trace_at(trace, row, task)->known)
            return task;
    return -1;
}

void mgl_trace_split(const mgl_trace_time *time, int64_t before, int64_t ns[MGL_TRACE_KIND_COUNT])
{
    int64_t begin = time->begin < time->end ? time->begin : time->end;
    int64_t from = before < begin ? begin : before;
    ns[MGL_TRACE_BETWEEN] = from - before;
    const int64_t ends[MGL_TRACE_KIND_COUNT] = {[MGL_TRACE_EDGE] = time->ready,
                                                [MGL_TRACE_INPUT] = time->input,
                                                [MGL_TRACE_STARVED] = time->input + time->starved,
                                                [MGL_TRACE_ACT_TILES] =
                                                    time->input + time->starved + time->act_tiles,
                                                [MGL_TRACE_COMPUTING] = time->products,
                                                [MGL_TRACE_WRITING] = time->end};
    for (int k = MGL_TRACE_EDGE; k < MGL_TRACE_KIND_COUNT; k++) {
        int64_t to = ends[k] < time->end ? ends[k] : time->end;
        to = to > from ? to : from;
        ns[k] = to - from;
        from = to;
    }
}

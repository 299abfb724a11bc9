/*
 * Critical path of an epoch (trace.h). A task could not start before
 *
 *     the previous task of its queue had ended,
 *     as many signaling tasks of each counter that it waits for had ended as its threshold,
 *     and all writers of the flag words that it reads had ended.
 *
 * The task of these that ended last precedes it on the critical path. The parts of the path are
 * contiguous in time, so they sum to the time from sample to sample.
 */
#include "eval/trace.h"

#include "base/memory.h"

/* The task that another task had to wait for. */
struct cause {
    int row, task; /* -1: no task with an event */
};

/* Replaces *best by the task if it ended later. Of two with the same end, the first offered
 * stays. */
static void offer(const mgl_trace *trace, int row, int task, struct cause *best)
{
    if (row < 0 || task < 0 || !mgl_trace_at(trace, row, task)->known)
        return;
    if (best->task < 0 ||
        mgl_trace_at(trace, row, task)->end > mgl_trace_at(trace, best->row, best->task)->end)
        *best = (struct cause){row, task};
}

/* The row of the previous epoch; -1: it has no events. */
static int row_before(const mgl_trace *trace, int row)
{
    return row > 0 && trace->epochs[row - 1] == trace->epochs[row] - 1 ? row - 1 : -1;
}

static void offer_queue(const mgl_trace *trace, int row, int task, struct cause *best)
{
    int before = mgl_trace_before(trace, row, task), earlier = row_before(trace, row);
    offer(trace, row, before, best);
    if (before >= 0 || earlier < 0)
        return;
    const mgl_run tasks = mgl_trace_tasks(trace, trace->list[earlier], trace->queue_of[task]);
    for (int t = tasks.first; t < tasks.first + tasks.count; t++)
        offer(trace, earlier, t, best);
}

/* Number of the counter's signaling tasks before this one, ordered by end, then by number. */
static int count_earlier(const mgl_trace *trace, int row, mgl_run run, int task)
{
    int64_t end = mgl_trace_at(trace, row, task)->end;
    int count = 0;
    for (int i = run.first; i < run.first + run.count; i++) {
        int other = trace->edges[i];
        int64_t other_end = mgl_trace_at(trace, row, other)->end;
        count += other_end < end || (other_end == end && other < task);
    }
    return count;
}

/* Offers the signaling task that brought the counter to the threshold. Threshold 0: the last one of
 * the previous epoch. */
static void offer_counter(const mgl_trace *trace, int row, const mgl_wait *wait, struct cause *best)
{
    int from = wait->threshold > 0 ? row : row_before(trace, row);
    if (from < 0)
        return;
    const mgl_run run =
        trace->signallers[trace->list[from] * trace->program->counter_count + wait->counter];
    int64_t wanted = wait->threshold > 0 ? wait->threshold : run.count;
    for (int i = run.first; i < run.first + run.count; i++)
        if (count_earlier(trace, from, run, trace->edges[i]) == wanted - 1)
            offer(trace, from, trace->edges[i], best);
}

static struct cause find_cause(const mgl_trace *trace, int row, int task)
{
    const mgl_program *p = trace->program;
    const mgl_task *t = &p->tasks[task];
    struct cause best = {-1, -1};
    offer_queue(trace, row, task, &best);
    for (int i = 0; i < t->waits.count; i++)
        offer_counter(trace, row, &p->waits[t->waits.first + i], &best);
    offer(trace, row, mgl_trace_last_writer(trace, row, task), &best);
    return best;
}

/* The row's sample task that ended last; -1: none. */
static int find_sample(const mgl_trace *trace, int row)
{
    struct cause last = {-1, -1};
    for (int t = 0; t < trace->program->task_count; t++)
        if (trace->program->tasks[t].op == MGL_OP_SAMPLE)
            offer(trace, row, t, &last);
    return last.task;
}

/* Adds one link that ends at `end`. Returns the preceding task. */
static struct cause add_link(const mgl_trace *trace, mgl_trace_chain *chain, int row, int task,
                             int64_t end)
{
    struct cause cause = find_cause(trace, row, task);
    mgl_trace_time time = *mgl_trace_at(trace, row, task);
    mgl_trace_link *link = &chain->links[chain->count++];
    int64_t from = cause.task < 0 ? time.begin : mgl_trace_at(trace, cause.row, cause.task)->end;
    if (time.end > end)
        time.end = end;
    *link = (mgl_trace_link){.task = task, .from = from < end ? from : end, .end = end};
    mgl_trace_split(&time, link->from, link->ns);
    return cause;
}

mgl_status mgl_trace_find_chain(mgl_trace *trace, int list, mgl_error *err)
{
    mgl_trace_chain *chain = &trace->chains[list];
    int tasks = trace->program->task_count;
    chain->row = mgl_trace_last_row(trace, list);
    chain->links = mgl_alloc_zero((size_t)tasks + 1, sizeof *chain->links);
    if (!chain->links)
        return mgl_fail_memory(err, (size_t)tasks * sizeof *chain->links);
    struct cause at = {chain->row, chain->row < 0 ? -1 : find_sample(trace, chain->row)};
    int64_t end = at.task < 0 ? 0 : mgl_trace_at(trace, at.row, at.task)->end;
    /* a task is at most once on the path: edges of an accepted program have no cycle */
    while (at.task >= 0 && at.row == chain->row && chain->count < tasks) {
        at = add_link(trace, chain, at.row, at.task, end);
        end = chain->links[chain->count - 1].from;
    }
    return MGL_OK;
}

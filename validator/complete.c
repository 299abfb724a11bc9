/*
 * MG6xx: completeness. Every tape byte is consumed exactly once, in order (mgl_check_complete; the
 * second list has no tape of its own, and lists.c finds its segments on the first list's tapes).
 * Every row of every linear weight of the model is streamed exactly once (mgl_check_weights, with a
 * graph). init.c checks that all logits and all parts of the running argmax are produced (MG601).
 */
#include "validator/check.h"

#include "base/assert.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>

static void check_tape(mgl_check *check, int q)
{
    const mgl_program *p = check->program;
    const mgl_queue *queue = &p->queues[q];
    int64_t at = 0;
    char name[MGL_NAME_TEXT];
    for (int t = queue->tasks.first; t < queue->tasks.first + queue->tasks.count; t++)
        for (int i = 0; i < p->tasks[t].segments.count; i++) {
            const mgl_segment *s = &p->segments[p->tasks[t].segments.first + i];
            if (s->offset != at) {
                mgl_check_report(check, 602, t, 0,
                                 "%s: the segment of %.64s is at +%" PRId64
                                 ", but the tape is consumed up to +%" PRId64,
                                 mgl_check_task(check, t, name), p->tensors[s->tensor].name,
                                 s->offset, at);
                return;
            }
            at += mgl_segment_bytes(p, s);
        }
    if (at + queue->tape_pad != queue->tape_bytes)
        mgl_check_report(check, 602, -1, queue->line,
                         "queue %d: %" PRId64 " bytes of segments and %" PRId64
                         " of padding are not the tape's %" PRId64,
                         q, at, queue->tape_pad, queue->tape_bytes);
}

void mgl_check_complete(mgl_check *check)
{
    for (int q = 0; q < check->program->queue_count && !check->first; q++)
        check_tape(check, q);
}

/* ---- weights ---- */

/* Rows of one tensor of the graph that a task streams. */
struct share {
    int tensor, task;
    int64_t lo, hi;
};

static int compare_shares(const void *a, const void *b)
{
    const struct share *x = a, *y = b;
    if (x->tensor != y->tensor)
        return x->tensor < y->tensor ? -1 : 1;
    if (x->lo != y->lo)
        return x->lo < y->lo ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

/* All shares, sorted; *count is their number. NULL if memory ran out. */
static struct share *collect(mgl_check *check, size_t *count)
{
    const mgl_program *p = check->program;
    struct share *shares = mgl_check_alloc(check, 2 * (size_t)p->segment_count, sizeof *shares);
    *count = 0;
    for (int t = 0; t < p->task_count && shares; t++)
        for (int i = 0; i < p->tasks[t].segments.count; i++) {
            const mgl_segment *s = &p->segments[p->tasks[t].segments.first + i];
            const int tensors[2] = {s->tensor, s->tensor2};
            for (int j = 0; j < 2; j++)
                if (tensors[j] >= 0)
                    shares[(*count)++] =
                        (struct share){check->graph_tensor[tensors[j]], t, s->row_lo, s->row_hi};
        }
    MGL_ASSERT(*count <= 2 * (size_t)p->segment_count);
    if (shares)
        qsort(shares, *count, sizeof *shares, compare_shares);
    return shares;
}

/* The shares of one tensor must tile its rows. */
static void check_tiling(mgl_check *check, const struct share *shares, size_t count, int tensor)
{
    const mgl_tensor *weight = &check->graph->tensors[tensor];
    int64_t at = 0;
    size_t fit = 0;
    while (fit < count && shares[fit].lo == at)
        at = shares[fit++].hi;
    if (at == weight->rows && fit == count)
        return;
    mgl_check_report(check, 603, -1, 0,
                     "%.160s: its %" PRId64 " rows are not streamed exactly once, from row %" PRId64
                     " on",
                     weight->name, weight->rows, at);
    char name[MGL_NAME_TEXT];
    for (size_t i = 0; i < count; i++)
        if (shares[i].hi >= at && check->newest && check->newest->witness_count < 8)
            mgl_check_witness(check, "rows %" PRId64 ":%" PRId64 " by %s", shares[i].lo,
                              shares[i].hi, mgl_check_task(check, shares[i].task, name));
}

void mgl_check_weights(mgl_check *check)
{
    const mgl_graph *graph = check->graph;
    if (!graph)
        return;
    size_t count;
    struct share *shares = collect(check, &count);
    bool *wanted = mgl_check_alloc(check, (size_t)graph->tensor_count, sizeof *wanted);
    for (int i = 0; i < graph->node_count && wanted; i++)
        if (graph->nodes[i].kind == MGL_NODE_LINEAR)
            wanted[graph->nodes[i].tensor] = true;
    size_t at = 0;
    for (int tensor = 0; tensor < graph->tensor_count && !check->no_memory; tensor++) {
        size_t first = at;
        while (at < count && shares[at].tensor == tensor)
            at++;
        if (wanted[tensor])
            check_tiling(check, &shares[first], at - first, tensor);
    }
    mgl_free(wanted);
    mgl_free(shares);
}

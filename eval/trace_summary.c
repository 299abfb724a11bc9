/*
 * Computes and prints the summary of a trace (trace.h): sums over its complete epochs, by step, by
 * layer, and along the critical path. Values "per task" are means over tasks. Values "per layer"
 * are the time of all queues in a layer, divided by the number of queues. The parts of a layer thus
 * sum to its length.
 */
#include "eval/trace.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Working state of the sums. */
struct summing {
    const mgl_trace *trace;
    mgl_trace_summary *out;
    double *values;        /* (rows * task_count) of one metric of one step */
    int64_t *first, *last; /* (layers + 1, step_count + 1) per row; the last step is all steps */
    int64_t queue_ns, starved_ns; /* over all queues and complete epochs */
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static double measure(const mgl_trace_time *time, mgl_trace_metric metric)
{
    switch (metric) {
    case MGL_TRACE_OF_WAIT:
        return 1e-3 * (double)(time->go - time->begin);
    case MGL_TRACE_OF_INPUT:
        return 1e-3 * (double)(time->input - time->go);
    case MGL_TRACE_OF_PRODUCTS:
        return 1e-3 * (double)(time->products - time->input);
    case MGL_TRACE_OF_OUTPUT:
        return 1e-3 * (double)(time->end - time->products);
    case MGL_TRACE_OF_STARVED:
        return 1e-3 * (double)time->starved;
    case MGL_TRACE_OF_ACT_TILES:
        return 1e-3 * (double)time->act_tiles;
    default:
        return time->ahead;
    }
}

static mgl_trace_spread spread_of(double *values, size_t count)
{
    mgl_trace_spread spread = {0};
    if (count == 0)
        return spread;
    for (size_t i = 0; i < count; i++)
        spread.mean += values[i] / (double)count;
    qsort(values, count, sizeof *values, ascending);
    spread.p90 = values[count * 9 / 10];
    return spread;
}

/* Collects one metric of a step's tasks; returns their number. */
static size_t collect(const struct summing *s, int step, mgl_trace_metric metric)
{
    const mgl_trace *trace = s->trace;
    size_t count = 0;
    for (int row = 0; row < trace->rows; row++)
        for (int t = 0; mgl_trace_is_of(trace, row, s->out->list) && t < trace->program->task_count;
             t++) {
            const mgl_trace_time *time = mgl_trace_at(trace, row, t);
            bool counts = metric == MGL_TRACE_OF_AHEAD ? time->tape : time->known;
            if (counts && trace->step_of[t] == step)
                s->values[count++] = measure(time, metric);
        }
    return count;
}

static void sum_steps(const struct summing *s)
{
    for (int i = 0; i < s->trace->step_count; i++)
        for (int m = 0; m < MGL_TRACE_METRIC_COUNT; m++)
            s->out->parts[i].metrics[m] = spread_of(s->values, collect(s, i, (mgl_trace_metric)m));
}

/* ---- layers ---------------------------------------------------------------------------------- */

static void widen(struct summing *s, int layer, int step, const mgl_trace_time *time)
{
    size_t at = (size_t)layer * (size_t)(s->trace->step_count + 1) + (size_t)step;
    if (s->last[at] < 0 || time->begin < s->first[at])
        s->first[at] = time->begin;
    if (time->end > s->last[at])
        s->last[at] = time->end;
}

/* Adds the layer spans of a row to `spans` (step_count + 1) and counts them. */
static void add_spans(struct summing *s, double *spans, int *counts)
{
    int width = s->trace->step_count + 1;
    for (int i = 0; i < s->trace->layers * width; i++)
        if (s->last[i] >= 0) {
            spans[i % width] += 1e-3 * (double)(s->last[i] - s->first[i]);
            counts[i % width]++;
        }
}

/* Adds one row: time by kind of tasks in layers, and layer spans. */
static void add_row(struct summing *s, int row)
{
    const mgl_trace *trace = s->trace;
    for (int i = 0; i < trace->layers * (trace->step_count + 1); i++)
        s->last[i] = -1;
    for (int t = 0; t < trace->program->task_count; t++) {
        const mgl_trace_time *time = mgl_trace_at(trace, row, t);
        int before = mgl_trace_before(trace, row, t);
        int64_t ns[MGL_TRACE_KIND_COUNT];
        int layer = trace->layer_of[t], step = trace->step_of[t];
        if (!time->known)
            continue;
        mgl_trace_split(time, before < 0 ? time->begin : mgl_trace_at(trace, row, before)->end, ns);
        for (int k = 0; k < MGL_TRACE_KIND_COUNT; k++) {
            s->queue_ns += ns[k];
            s->out->parts[step].layer_us[k] += layer < 0 ? 0 : 1e-3 * (double)ns[k];
        }
        s->starved_ns += ns[MGL_TRACE_STARVED];
        if (layer < 0)
            continue;
        widen(s, layer, step, time);
        widen(s, layer, trace->step_count, time);
    }
}

static mgl_status sum_layers(struct summing *s, mgl_error *err)
{
    const mgl_trace *trace = s->trace;
    size_t width = (size_t)trace->step_count + 1;
    double *spans = mgl_alloc_zero(width, sizeof *spans);
    int *counts = mgl_alloc_zero(width, sizeof *counts);
    mgl_status status = spans && counts ? MGL_OK : mgl_fail_memory(err, width * sizeof *spans);
    for (int row = 0; row < trace->rows && !status; row++)
        if (mgl_trace_is_of(trace, row, s->out->list)) {
            add_row(s, row);
            add_spans(s, spans, counts);
        }
    double shares = (double)s->out->epochs * trace->layers * trace->program->queue_count;
    for (int i = 0; i < trace->step_count && !status; i++) {
        mgl_trace_part *part = &s->out->parts[i];
        part->span_us = counts[i] ? spans[i] / counts[i] : 0;
        for (int k = 0; k < MGL_TRACE_KIND_COUNT; k++) {
            part->layer_us[k] /= shares > 0 ? shares : 1;
            s->out->layer_kinds[k] += part->layer_us[k];
        }
    }
    if (!status && counts[width - 1])
        s->out->layer_us = spans[width - 1] / counts[width - 1];
    mgl_free(spans);
    mgl_free(counts);
    return status;
}

/* ---- whole trace ---------------------------------------------------------------------------- */

static void sum_chain(const mgl_trace *trace, mgl_trace_summary *out)
{
    const mgl_trace_chain *chain = &trace->chains[out->list];
    for (int i = 0; i < chain->count; i++) {
        const mgl_trace_link *link = &chain->links[i];
        mgl_trace_part *part = &out->parts[trace->step_of[link->task]];
        double us = 1e-3 * (double)(link->end - link->from);
        part->links++;
        part->chain_us += us;
        out->chain_us += us;
        for (int k = 0; k < MGL_TRACE_KIND_COUNT; k++)
            out->chain_kinds[k] += 1e-3 * (double)link->ns[k];
    }
}

/* End of the row's last sample task. */
static int64_t end_of(const mgl_trace *trace, int row)
{
    int64_t end = 0;
    for (int t = 0; t < trace->program->task_count; t++)
        if (trace->program->tasks[t].op == MGL_OP_SAMPLE && mgl_trace_at(trace, row, t)->end > end)
            end = mgl_trace_at(trace, row, t)->end;
    return end;
}

/* Mean time from sample to sample, over pairs of consecutive complete epochs; the second epoch
 * belongs to the list. */
static void sum_epochs(const mgl_trace *trace, mgl_trace_summary *out)
{
    int64_t ns = 0;
    int pairs = 0;
    for (int row = 0; row < trace->rows; row++) {
        const bool is_of = mgl_trace_is_of(trace, row, out->list);
        out->epochs += is_of;
        if (row == 0 || !is_of || !trace->whole[row - 1] ||
            trace->epochs[row] != trace->epochs[row - 1] + 1)
            continue;
        ns += end_of(trace, row) - end_of(trace, row - 1);
        pairs++;
    }
    out->epoch_us = pairs ? 1e-3 * (double)ns / pairs : 0;
}

static void sum_tape(const struct summing *s)
{
    const mgl_program *p = s->trace->program;
    mgl_trace_summary *out = s->out;
    double pages = 0;
    int64_t tasks = 0;
    for (int q = 0; q < p->queue_count; q++)
        out->tape_bytes += p->queues[q].tape_bytes;
    for (int row = 0; row < s->trace->rows; row++)
        for (int t = 0; mgl_trace_is_of(s->trace, row, out->list) && t < p->task_count; t++) {
            pages += mgl_trace_at(s->trace, row, t)->ahead;
            tasks += mgl_trace_at(s->trace, row, t)->tape;
        }
    out->ahead_bytes = tasks ? pages / (double)tasks * p->exec.page_bytes : 0;
    out->gbps = out->epoch_us > 0 ? 1e-3 * (double)out->tape_bytes / out->epoch_us : 0;
    out->starved_percent =
        s->queue_ns > 0 ? 100.0 * (double)s->starved_ns / (double)s->queue_ns : 0;
}

mgl_status mgl_trace_sum_up(const mgl_trace *trace, int list, mgl_trace_summary *out,
                            mgl_error *err)
{
    size_t values = (size_t)trace->rows * (size_t)trace->program->task_count + 1;
    size_t cells = (size_t)(trace->layers + 1) * (size_t)(trace->step_count + 1);
    *out = (mgl_trace_summary){.list = list};
    struct summing s = {.trace = trace, .out = out};
    out->parts = mgl_alloc_zero((size_t)trace->step_count + 1, sizeof *out->parts);
    s.values = mgl_alloc_zero(values, sizeof *s.values);
    s.first = mgl_alloc_zero(cells, sizeof *s.first);
    s.last = mgl_alloc_zero(cells, sizeof *s.last);
    mgl_status status = out->parts && s.values && s.first && s.last
                            ? MGL_OK
                            : mgl_fail_memory(err, values * sizeof *s.values);
    if (!status) {
        sum_epochs(trace, out);
        sum_steps(&s);
        status = sum_layers(&s, err);
    }
    if (!status) {
        sum_chain(trace, out);
        sum_tape(&s);
    }
    mgl_free(s.values);
    mgl_free(s.first);
    mgl_free(s.last);
    if (status)
        mgl_trace_summary_clear(out);
    return status;
}

void mgl_trace_summary_clear(mgl_trace_summary *summary)
{
    mgl_free(summary->parts);
    *summary = (mgl_trace_summary){0};
}

/* ---- text output ---------------------------------------------------------------------------- */

static void print_steps(const mgl_trace *trace, const mgl_trace_summary *s, mgl_text *out)
{
    mgl_text_format(out, "\na task, us (mean, p90)\n%-20s %6s", "", "tasks");
    for (int m = 0; m < MGL_TRACE_METRIC_COUNT; m++)
        mgl_text_format(out, " %15s", mgl_trace_metric_name((mgl_trace_metric)m));
    mgl_text_put(out, "\n");
    for (int i = 0; i < trace->step_count; i++) {
        if (trace->steps[i].list != s->list || trace->steps[i].tasks == 0)
            continue;
        mgl_text_format(out, "%-20s %6d", trace->steps[i].name, trace->steps[i].tasks);
        for (int m = 0; m < MGL_TRACE_METRIC_COUNT; m++)
            mgl_text_format(out, " %7.2f %7.2f", s->parts[i].metrics[m].mean,
                            s->parts[i].metrics[m].p90);
        mgl_text_put(out, "\n");
    }
}

/* Prints a table row: a name, one value, and the values by kind. */
static void print_kinds(const char *name, double value, const double *kinds, mgl_text *out)
{
    mgl_text_format(out, "%-20s %9.2f", name, value);
    for (int k = 0; k < MGL_TRACE_KIND_COUNT; k++)
        mgl_text_format(out, " %9.2f", kinds[k]);
    mgl_text_put(out, "\n");
}

static void print_kind_names(const char *value, mgl_text *out)
{
    mgl_text_format(out, "%-20s %9s", "", value);
    for (int k = 0; k < MGL_TRACE_KIND_COUNT; k++)
        mgl_text_format(out, " %9s", mgl_trace_kind_name((mgl_trace_kind)k));
    mgl_text_put(out, "\n");
}

static void print_layers(const mgl_trace *trace, const mgl_trace_summary *s, mgl_text *out)
{
    if (trace->layers == 0)
        return;
    mgl_text_format(out,
                    "\na layer, us (mean of %d): from first begin to last end, and an average "
                    "queue's time\n",
                    trace->layers);
    print_kind_names("span", out);
    for (int i = 0; i < trace->step_count; i++)
        if (trace->steps[i].list == s->list && trace->steps[i].layered)
            print_kinds(trace->steps[i].name, s->parts[i].span_us, s->parts[i].layer_us, out);
    print_kinds("all", s->layer_us, s->layer_kinds, out);
}

static void print_chain(const mgl_trace *trace, const mgl_trace_summary *s, mgl_text *out)
{
    const mgl_trace_chain *chain = &trace->chains[s->list];
    if (chain->row < 0)
        return;
    mgl_text_format(out, "\nlongest chain of epoch %lld, us: %d tasks\n",
                    (long long)trace->epochs[chain->row], chain->count);
    print_kind_names("all", out);
    print_kinds("", s->chain_us, s->chain_kinds, out);
    for (int i = 0; i < trace->step_count; i++)
        if (s->parts[i].links)
            mgl_text_format(out, "%-20s %9.2f in %d\n", trace->steps[i].name, s->parts[i].chain_us,
                            s->parts[i].links);
}

static void print_tape(const mgl_trace *trace, const mgl_trace_summary *s, mgl_text *out)
{
    const mgl_exec *exec = &trace->program->exec;
    mgl_text_format(out, "\ntape: %lld bytes an epoch", (long long)s->tape_bytes);
    if (s->gbps > 0)
        mgl_text_format(out, ", %.1f GB/s", s->gbps);
    mgl_text_format(out,
                    "; queues starve %.1f %% of their time\n"
                    "in flight a queue: at most %d bytes, %d while it waits, of a ring of %d; "
                    "landed ahead: %.0f (mean)\n",
                    s->starved_percent, exec->flight_bytes, exec->pending_bytes,
                    exec->page_bytes * exec->ring_pages, s->ahead_bytes);
}

void mgl_trace_print_summary(const mgl_trace *trace, const mgl_trace_summary *summary,
                             mgl_text *out)
{
    if (trace->lists > 1)
        mgl_text_format(out, "%s: ", mgl_trace_list_name(summary->list));
    mgl_text_format(out, "%d epochs of %d queues", summary->epochs, trace->program->queue_count);
    if (summary->epoch_us > 0)
        mgl_text_format(out, ": %.1f us from sample to sample", summary->epoch_us);
    mgl_text_put(out, "\n");
    print_steps(trace, summary, out);
    print_layers(trace, summary, out);
    print_chain(trace, summary, out);
    print_tape(trace, summary, out);
}

static mgl_status print_list(const mgl_trace *trace, int list, mgl_text *out, mgl_error *err)
{
    mgl_trace_summary summary = {0};
    if (mgl_trace_last_row(trace, list) < 0)
        return MGL_OK;
    mgl_status status = mgl_trace_sum_up(trace, list, &summary, err);
    if (!status && out->length)
        mgl_text_put(out, "\n");
    if (!status)
        mgl_trace_print_summary(trace, &summary, out);
    mgl_trace_summary_clear(&summary);
    return status;
}

mgl_status mgl_trace_print_lists(const mgl_trace *trace, mgl_text *out, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int list = 0; list < trace->lists && !status; list++)
        status = print_list(trace, list, out, err);
    if (!status && out->failed)
        status = mgl_fail_memory(err, out->length);
    return status;
}

mgl_status mgl_trace_describe(mgl_vm *vm, int epochs, mgl_text *out, mgl_error *err)
{
    mgl_trace *trace = NULL;
    mgl_status status = mgl_trace_take(vm, epochs, &trace, err);
    if (!status)
        status = mgl_trace_print_lists(trace, out, err);
    mgl_trace_free(trace);
    return status;
}

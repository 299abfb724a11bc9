/*
 * Builds a trace from events (trace.h): assigns rows to epochs, extends 32-bit times to 64 bits,
 * names tasks, and indexes signaling and writing tasks.
 *
 * Event times wrap after 4.3 s. Within an epoch, a time is the signed distance from the epoch's
 * first event; epochs are related to each other the same way. This is correct if an epoch takes
 * less than 2.1 s.
 */
#include "eval/trace.h"

#include "base/memory.h"
#include "schedule/schedule.h"
#include "vm/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEVER = -1 }; /* a time that the event does not contain */

const char *mgl_trace_kind_name(mgl_trace_kind kind)
{
    static const char *const names[] = {
#define MGL_X(id, name) name,
        MGL_TRACE_KINDS(MGL_X)
#undef MGL_X
    };
    return names[kind];
}

const char *mgl_trace_metric_name(mgl_trace_metric metric)
{
    static const char *const names[] = {
#define MGL_X(id, name) name,
        MGL_TRACE_METRICS(MGL_X)
#undef MGL_X
    };
    return names[metric];
}

const char *mgl_trace_list_name(int list)
{
    static const char *const names[MGL_TRACE_LISTS] = {"first", "second"};
    return names[list];
}

const char *mgl_trace_list_value(int list)
{
    static const char *const values[MGL_TRACE_LISTS] = {"few", "many"};
    return values[list];
}

int mgl_trace_last_row(const mgl_trace *trace, int list)
{
    int row = trace->rows - 1;
    while (row >= 0 && !mgl_trace_is_of(trace, row, list))
        row--;
    return row;
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_layered(mgl_op op)
{
    return mgl_op_get(op)->step < MGL_STEP_HEAD;
}

/* The 3 of "l3.down" and "second.l3.down"; -1 for names of another form. */
static int layer_in(const char *name)
{
    static const char second[] = "second.";
    int layer = -1, length = 0;
    if (!strncmp(name, second, sizeof second - 1))
        name += sizeof second - 1;
    if (name[0] != 'l' || name[1] < '0' || name[1] > '9' ||
        sscanf(name, "l%6d%n", &layer, &length) != 1 || name[length] != '.')
        return -1;
    return layer;
}

/* The layer of a task, from the first name that contains one: its tensors, signaled counters,
 * outputs, inputs. */
static int find_layer(const mgl_program *p, const mgl_task *task)
{
    int layer = -1;
    if (!is_layered(task->op))
        return -1;
    for (int i = 0; i < task->segments.count && layer < 0; i++)
        layer = layer_in(p->tensors[p->segments[task->segments.first + i].tensor].name);
    for (int i = 0; i < task->signals.count && layer < 0; i++)
        layer = layer_in(p->counters[p->signals[task->signals.first + i]].name);
    for (int i = 0; i < task->out.count && layer < 0; i++)
        layer = layer_in(p->buffers[p->regions[task->out.first + i].buffer].name);
    for (int i = 0; i < task->in.count && layer < 0; i++)
        layer = layer_in(p->buffers[p->regions[task->in.first + i].buffer].name);
    return layer;
}

/* Distinguishes steps with the same op: "down" of "l3.down"; "" for an op with a single step. */
static const char *name_part(const mgl_program *p, const mgl_task *task)
{
    if (mgl_op_get(task->op)->step != MGL_STEP_O || task->segments.count == 0)
        return "";
    const char *name = p->tensors[p->segments[task->segments.first].tensor].name;
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

void mgl_trace_task_name(const mgl_trace *trace, int task, char *name)
{
    const mgl_task *t = &trace->program->tasks[task];
    const mgl_op_info *info = mgl_op_get(t->op);
    const char *op = info->name, *part = name_part(trace->program, t);
    if ((info->family == MGL_FAMILY_PRODUCT || info->family == MGL_FAMILY_PANEL) &&
        is_layered(t->op) && info->step != MGL_STEP_O)
        part = mgl_step_name(info->step);
    int layer = trace->layer_of[task];
    if (layer < 0)
        snprintf(name, MGL_TRACE_NAME, "%s%s%s", op, part[0] ? " " : "", part);
    else
        snprintf(name, MGL_TRACE_NAME, "%s l%d%s%s", op, layer, part[0] ? "." : "", part);
}

/* The step of a task; adds a new step if necessary. */
static int find_step(mgl_trace *trace, int list, const mgl_task *task)
{
    char name[MGL_TRACE_NAME];
    const char *part = name_part(trace->program, task);
    snprintf(name, sizeof name, "%s%s%s", mgl_op_get(task->op)->name, part[0] ? " " : "", part);
    for (int i = 0; i < trace->step_count; i++)
        if (trace->steps[i].list == list && !strcmp(trace->steps[i].name, name))
            return i;
    mgl_trace_step *step = &trace->steps[trace->step_count];
    memcpy(step->name, name, sizeof name);
    step->list = list;
    step->layered = is_layered(task->op);
    step->number = trace->step_count;
    return trace->step_count++;
}

static void name_task(mgl_trace *trace, int list, int queue, int task)
{
    const mgl_program *p = trace->program;
    trace->queue_of[task] = queue;
    trace->step_of[task] = find_step(trace, list, &p->tasks[task]);
    trace->layer_of[task] = find_layer(p, &p->tasks[task]);
    if (trace->layer_of[task] >= trace->layers)
        trace->layers = trace->layer_of[task] + 1;
}

static void name_tasks(mgl_trace *trace)
{
    for (int list = 0; list < trace->lists; list++)
        for (int q = 0; q < trace->program->queue_count; q++) {
            const mgl_run run = mgl_trace_tasks(trace, list, q);
            for (int t = run.first; t < run.first + run.count; t++)
                name_task(trace, list, q, t);
        }
}

/* ---- edges ----------------------------------------------------------------------------------- */

/* Turns counts into consecutive runs from `first` on; returns their end. */
static int lay_out(mgl_run *runs, int count, int first)
{
    for (int i = 0; i < count; i++) {
        runs[i].first = first;
        first += runs[i].count;
        runs[i].count = 0;
    }
    return first;
}

/* Counts edges (`fill` false), or writes them into the runs. */
static void add_edges(mgl_trace *trace, bool fill)
{
    const mgl_program *p = trace->program;
    for (int t = 0; t < p->task_count; t++) {
        const mgl_task *task = &p->tasks[t];
        mgl_run *signallers = trace->signallers + mgl_trace_list_of(trace, t) * p->counter_count;
        for (int i = task->signals.first; i < task->signals.first + task->signals.count; i++) {
            mgl_run *run = &signallers[p->signals[i]];
            if (fill)
                trace->edges[run->first + run->count] = t;
            run->count++;
        }
        for (int i = task->out.first; i < task->out.first + task->out.count; i++) {
            mgl_run *run = &trace->writers[p->regions[i].buffer];
            trace->task_of_region[i] = t;
            if (!p->regions[i].flag)
                continue;
            if (fill)
                trace->edges[run->first + run->count] = i;
            run->count++;
        }
    }
}

static mgl_status index_edges(mgl_trace *trace, mgl_error *err)
{
    const mgl_program *p = trace->program;
    add_edges(trace, false);
    int count = lay_out(trace->signallers, trace->lists * p->counter_count, 0);
    count = lay_out(trace->writers, p->buffer_count, count);
    trace->edges = mgl_alloc_zero((size_t)count + 1, sizeof *trace->edges);
    if (!trace->edges)
        return mgl_fail_memory(err, (size_t)count * sizeof *trace->edges);
    add_edges(trace, true);
    return MGL_OK;
}

/* ---- times ----------------------------------------------------------------------------------- */

static int64_t clamp(int64_t value, int64_t lo, int64_t hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

/* A `clear` may be stored in the record of the preceding task and then writes no event. */
static bool writes_event(const mgl_task *task)
{
    return task->op != MGL_OP_CLEAR;
}

/* The epoch of a row of events: the newest epoch in it; -1: none. *list: list of its tasks; *whole:
 * all tasks of that list have events. */
static int64_t find_epoch(const mgl_trace *trace, const mgl_device_event *events, int *list,
                          bool *whole)
{
    const mgl_program *p = trace->program;
    uint32_t newest = 0;
    *list = 0;
    for (int t = 0; t < p->task_count; t++)
        if (events[t].epoch > newest) {
            newest = events[t].epoch;
            *list = mgl_trace_list_of(trace, t);
        }
    *whole = newest > 0;
    for (int t = 0; t < p->task_count; t++)
        if (events[t].epoch != newest && mgl_trace_list_of(trace, t) == *list &&
            writes_event(&p->tasks[t]))
            *whole = false;
    return (int64_t)newest - 1;
}

/* Begin time of the epoch's first event, the reference of its other times. */
static uint32_t find_anchor(const mgl_trace *trace, const mgl_device_event *events, int row)
{
    for (int t = 0; t < trace->program->task_count; t++)
        if ((int64_t)events[t].epoch - 1 == trace->epochs[row])
            return events[t].begin;
    return 0;
}

/* Mapping of an epoch's 32-bit times to 64-bit times. */
struct epoch_clock {
    uint32_t anchor; /* 32-bit time of the epoch's first event */
    int64_t base;    /* its 64-bit time */
};

static int64_t long_time(struct epoch_clock clock, uint32_t time)
{
    return clock.base + (int32_t)(time - clock.anchor);
}

/* Panels do not report pages ahead. */
static bool tells_pages(const mgl_task *task)
{
    return mgl_op_get(task->op)->family != MGL_FAMILY_PANEL;
}

/* Reads one event by itself; `input` and `products` may be NEVER. */
static mgl_trace_time read_event(const mgl_device_event *event, const mgl_task *task,
                                 struct epoch_clock clock)
{
    mgl_trace_time time = {.known = true, .tape = event->input != 0 && tells_pages(task)};
    int64_t end = long_time(clock, event->end);
    time.begin = long_time(clock, event->begin);
    time.end = end > time.begin ? end : time.begin;
    time.go = clamp(long_time(clock, event->go), time.begin, time.end);
    time.products =
        event->products ? clamp(long_time(clock, event->products), time.go, time.end) : NEVER;
    time.input = event->input ? clamp(long_time(clock, event->input), time.go, time.end) : NEVER;
    if (time.products != NEVER && time.products < time.input)
        time.products = time.input;
    time.starved = event->starved;
    time.act_tiles = event->act_tiles;
    time.ahead = time.tape ? (int)event->ahead : 0;
    return time;
}

/* Completes an event with data of other events: when its flagged inputs were written, and defaults
 * for times that its task does not have. */
static void complete(const mgl_trace *trace, int row, int task)
{
    mgl_trace_time *time = mgl_trace_at(trace, row, task);
    if (!time->known)
        return;
    int writer = mgl_trace_last_writer(trace, row, task);
    int64_t most = time->input != NEVER      ? time->input
                   : time->products != NEVER ? time->products
                                             : time->end;
    time->ready =
        writer < 0 ? time->go : clamp(mgl_trace_at(trace, row, writer)->end, time->go, most);
    if (time->input == NEVER)
        time->input = time->ready;
    if (time->products == NEVER)
        time->products = time->input;
    time->starved = clamp(time->starved, 0, time->products - time->input);
    time->act_tiles = clamp(time->act_tiles, 0, time->products - time->input - time->starved);
}

/* Whether the queue left the task out: the epoch has no rows of the task's kind, and the event has
 * one time (trace_left_out of vm/cuda/device/trace.cuh). */
static bool is_left_out(const mgl_program *program, int task, const mgl_device_event *event)
{
    const mgl_task *of = &program->tasks[task];
    if (of->out.count == 0 || event->begin != event->go || event->go != event->end)
        return false;
    const mgl_range *ranges = mgl_task_result(program, of)->ranges;
    return mgl_range_has_row_kind(&ranges[0]) || mgl_range_has_row_kind(&ranges[1]);
}

static void read_row(mgl_trace *trace, int row, const mgl_device_event *events,
                     struct epoch_clock clock)
{
    const mgl_program *p = trace->program;
    for (int t = 0; t < p->task_count; t++)
        if ((int64_t)events[t].epoch - 1 == trace->epochs[row] && !is_left_out(p, t, &events[t]))
            *mgl_trace_at(trace, row, t) = read_event(&events[t], &p->tasks[t], clock);
    for (int t = 0; t < trace->program->task_count; t++)
        complete(trace, row, t);
}

/* Makes the first begin time 0. */
static void shift_times(mgl_trace *trace)
{
    int64_t count = (int64_t)trace->rows * trace->program->task_count, first = INT64_MAX;
    for (int64_t i = 0; i < count; i++)
        if (trace->times[i].known && trace->times[i].begin < first)
            first = trace->times[i].begin;
    for (int64_t i = 0; i < count; i++) {
        mgl_trace_time *time = &trace->times[i];
        int64_t *times[] = {&time->begin, &time->go,       &time->ready,
                            &time->input, &time->products, &time->end};
        for (size_t k = 0; time->known && k < sizeof times / sizeof *times; k++)
            *times[k] -= first;
    }
}

/* Reads all events. The 64-bit clock starts far from 0, so that no time equals NEVER. */
static void read_times(mgl_trace *trace, const mgl_device_event *events, int epochs)
{
    struct epoch_clock clock = {.base = INT64_C(1) << 40};
    for (int row = 0; row < trace->rows; row++) {
        const mgl_device_event *from =
            events + (size_t)(trace->epochs[row] % epochs) * (size_t)trace->program->task_count;
        uint32_t anchor = find_anchor(trace, from, row);
        if (row > 0)
            clock.base = long_time(clock, anchor);
        clock.anchor = anchor;
        read_row(trace, row, from, clock);
    }
    shift_times(trace);
}

/* ---- a trace --------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Finds the epochs that the rows of events hold, oldest first. */
static mgl_status find_epochs(mgl_trace *trace, const mgl_device_event *events, int epochs,
                              mgl_error *err)
{
    const mgl_program *p = trace->program;
    bool whole, any = false;
    int list;
    for (int e = 0; e < epochs; e++) {
        int64_t epoch =
            find_epoch(trace, events + (size_t)e * (size_t)p->task_count, &list, &whole);
        if (epoch >= 0 && epoch % epochs == e)
            trace->epochs[trace->rows++] = epoch;
    }
    qsort(trace->epochs, (size_t)trace->rows, sizeof *trace->epochs, ascending);
    for (int row = 0; row < trace->rows; row++) {
        size_t at = (size_t)(trace->epochs[row] % epochs) * (size_t)p->task_count;
        find_epoch(trace, events + at, &trace->list[row], &trace->whole[row]);
        any |= trace->whole[row];
    }
    return any ? MGL_OK
               : mgl_fail(err, MGL_DEVICE, NULL,
                          "the launch left no epoch in which every task has its event");
}

/* Counts the tasks of a list's steps in its last complete epoch, and finds the end of the first. */
static void look_at_steps(mgl_trace *trace, int list)
{
    const int row = mgl_trace_last_row(trace, list);
    for (int i = 0; i < trace->step_count; i++)
        if (trace->steps[i].list == list)
            trace->steps[i].first_end = INT64_MAX;
    for (int t = 0; row >= 0 && t < trace->program->task_count; t++) {
        const mgl_trace_time *time = mgl_trace_at(trace, row, t);
        mgl_trace_step *step = &trace->steps[trace->step_of[t]];
        if (!time->known)
            continue;
        step->tasks++;
        if (time->end < step->first_end)
            step->first_end = time->end;
    }
}

static int by_first_end(const void *a, const void *b)
{
    const mgl_trace_step *x = a, *y = b;
    if (x->list != y->list)
        return x->list - y->list;
    return x->first_end == y->first_end ? x->number - y->number
                                        : (x->first_end > y->first_end ? 1 : -1);
}

/* Sorts the steps of each list by the order in which an epoch runs them. */
static mgl_status sort_steps(mgl_trace *trace, mgl_error *err)
{
    size_t bytes = (size_t)trace->step_count * sizeof(int);
    int *place = mgl_alloc(bytes + 1);
    if (!place)
        return mgl_fail_memory(err, bytes);
    for (int list = 0; list < trace->lists; list++)
        look_at_steps(trace, list);
    qsort(trace->steps, (size_t)trace->step_count, sizeof *trace->steps, by_first_end);
    for (int i = 0; i < trace->step_count; i++)
        place[trace->steps[i].number] = i;
    for (int i = 0; i < trace->step_count; i++)
        trace->steps[i].number = i;
    for (int t = 0; t < trace->program->task_count; t++)
        trace->step_of[t] = place[trace->step_of[t]];
    mgl_free(place);
    return MGL_OK;
}

static mgl_status allocate(mgl_trace *trace, int epochs, mgl_error *err)
{
    const mgl_program *p = trace->program;
    size_t tasks = (size_t)p->task_count, times;
    const size_t lists = (size_t)trace->lists;
    trace->runs = mgl_alloc_zero(lists * (size_t)p->queue_count + 1, sizeof *trace->runs);
    trace->steps = mgl_alloc_zero(tasks + 1, sizeof *trace->steps);
    trace->step_of = mgl_alloc_zero(tasks + 1, sizeof *trace->step_of);
    trace->layer_of = mgl_alloc_zero(tasks + 1, sizeof *trace->layer_of);
    trace->queue_of = mgl_alloc_zero(tasks + 1, sizeof *trace->queue_of);
    trace->signallers =
        mgl_alloc_zero(lists * (size_t)p->counter_count + 1, sizeof *trace->signallers);
    trace->writers = mgl_alloc_zero((size_t)p->buffer_count + 1, sizeof *trace->writers);
    trace->task_of_region =
        mgl_alloc_zero((size_t)p->region_count + 1, sizeof *trace->task_of_region);
    trace->epochs = mgl_alloc_zero((size_t)epochs + 1, sizeof *trace->epochs);
    trace->list = mgl_alloc_zero((size_t)epochs + 1, sizeof *trace->list);
    trace->whole = mgl_alloc_zero((size_t)epochs + 1, sizeof *trace->whole);
    if (mgl_mul((size_t)epochs, tasks, &times))
        trace->times = mgl_alloc_zero(times + 1, sizeof *trace->times);
    bool good = trace->runs && trace->steps && trace->step_of && trace->layer_of &&
                trace->queue_of && trace->signallers && trace->writers && trace->task_of_region &&
                trace->epochs && trace->list && trace->whole && trace->times;
    return good ? MGL_OK : mgl_fail_memory(err, (size_t)epochs * tasks * sizeof *trace->times);
}

/* Joins both lists into one program, if there are two. */
static mgl_status join_lists(mgl_trace *trace, const mgl_program *program, mgl_error *err)
{
    trace->program = program;
    trace->lists = 1;
    trace->first_tasks = program->task_count;
    if (!program->second)
        return MGL_OK;
    mgl_status status = mgl_program_join(program, &trace->joined, err);
    trace->program = trace->joined.program;
    trace->lists = MGL_TRACE_LISTS;
    return status;
}

static void find_runs(mgl_trace *trace)
{
    const int queues = trace->program->queue_count;
    for (int q = 0; q < queues; q++)
        trace->runs[q] = trace->program->queues[q].tasks;
    for (int q = 0; trace->lists > 1 && q < queues; q++)
        trace->runs[queues + q] = trace->joined.second[q];
}

static mgl_status fill(mgl_trace *trace, const mgl_program *program, const mgl_device_event *events,
                       int epochs, mgl_error *err)
{
    mgl_status status = join_lists(trace, program, err);
    if (!status)
        status = allocate(trace, epochs, err);
    if (!status)
        status = find_epochs(trace, events, epochs, err);
    if (status)
        return status;
    find_runs(trace);
    name_tasks(trace);
    status = index_edges(trace, err);
    if (status)
        return status;
    read_times(trace, events, epochs);
    status = sort_steps(trace, err);
    for (int list = 0; list < trace->lists && !status; list++)
        status = mgl_trace_find_chain(trace, list, err);
    return status;
}

mgl_status mgl_trace_new(const mgl_program *program, const mgl_device_event *events, int epochs,
                         mgl_trace **out, mgl_error *err)
{
    *out = NULL;
    mgl_trace *trace = mgl_alloc_zero(1, sizeof *trace);
    if (!trace)
        return mgl_fail_memory(err, sizeof *trace);
    mgl_status status = fill(trace, program, events, epochs, err);
    if (status)
        mgl_trace_free(trace);
    else
        *out = trace;
    return status;
}

mgl_status mgl_trace_take(mgl_vm *vm, int epochs, mgl_trace **out, mgl_error *err)
{
    *out = NULL;
    mgl_device_event *events = NULL;
    mgl_status status = mgl_cuda_get_trace(vm, &events, err);
    if (!status)
        status = mgl_trace_new(vm->program, events, epochs, out, err);
    mgl_free(events);
    return status;
}

void mgl_trace_free(mgl_trace *trace)
{
    if (!trace)
        return;
    void *parts[] = {
        trace->runs,           trace->steps,           trace->step_of,        trace->layer_of,
        trace->queue_of,       trace->signallers,      trace->writers,        trace->edges,
        trace->task_of_region, trace->epochs,          trace->list,           trace->whole,
        trace->times,          trace->chains[0].links, trace->chains[1].links};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        mgl_free(parts[i]);
    mgl_joined_clear(&trace->joined);
    mgl_free(trace);
}

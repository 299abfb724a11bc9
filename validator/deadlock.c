/*
 * MG2xx: every epoch runs to its end, and epochs are totally ordered.
 *
 * Counters only grow, so a task that can run stays able to run: running whatever can run, in any
 * order, always ends in the same set (the least fixpoint). One epoch is simulated so; when it holds
 * every task, no execution of an epoch can get stuck. The order of the simulation is kept: it is
 * one legal order, and every happens-before edge points forward in it.
 *
 * Why one epoch stands for all. Suppose (mgl_check_epochs) that every task of an epoch happens
 * before its sample, that every enter waits for the counter that sample alone signals, with
 * threshold 0, and that enter opens every queue. Then every task of epoch e happens before
 * sample(e), before enter(e+1) of every queue, before every task of epoch e+1. So no signal of
 * epoch e+1 comes before a task of epoch e has done its work; in epoch e a counter can hold no
 * more than e * P plus the signals of this epoch, and a wait for e * P + t is met when, of this
 * epoch, t have come and the earlier ones have arrived, which they do: their tasks have run. Hence
 * a wait means the same in each epoch, and threshold 0 is always met in the end: on a counter
 * other than sample's such a wait orders nothing and is accepted as harmless.
 *
 * The end of a launch: in the epoch behind the last one each queue runs enter alone, reads that
 * there is nothing more to do and leaves. Nobody signals there, so enter may wait with threshold 0
 * only.
 */
#include "validator/check.h"

#include "base/memory.h"

#include <inttypes.h>

static void check_thresholds(mgl_check *check)
{
    const mgl_program *p = check->program;
    for (int t = 0; t < p->task_count; t++)
        for (int i = 0; i < p->tasks[t].waits.count; i++) {
            const mgl_wait *wait = &p->waits[p->tasks[t].waits.first + i];
            int signals = mgl_counter_signals(check, wait->counter);
            char name[MGL_NAME_TEXT];
            if (wait->threshold < 0 || wait->threshold > signals)
                mgl_check_report(check, 201, t, 0,
                                 "%s waits for %.64s >= %" PRId64
                                 ", but an epoch brings %d signals",
                                 mgl_check_task(check, t, name), p->counters[wait->counter].name,
                                 wait->threshold, signals);
        }
}

/* The most epochs of a launch: each appends at least one position to some sequence, and one more
 * decides to stop. */
static int64_t most_epochs(const mgl_limits *limits)
{
    return (int64_t)limits->sequences * (limits->capacity + 1) + 1;
}

static void check_overflow(mgl_check *check)
{
    const mgl_program *p = check->program;
    int64_t epochs = most_epochs(&p->limits);
    for (int c = 0; c < p->counter_count; c++) {
        int64_t signals = mgl_counter_signals(check, c);
        if (signals * epochs > INT32_MAX)
            mgl_check_report(check, 205, -1, p->counters[c].line,
                             "counter %.64s: %" PRId64 " signals an epoch in up to %" PRId64
                             " epochs reach 2^31; lower capacity or sequences",
                             p->counters[c].name, signals, epochs);
    }
}

/* ---- the simulation of one epoch ---- */

struct simulation {
    mgl_check *check;
    int *value;   /* (counters) signals so far */
    int *blocked; /* (counters) first queue that waits for it, or -1 */
    int *next;    /* (queues) next queue that waits for the same counter, or -1 */
    int *done;    /* (queues) tasks that have run */
    int *met;     /* (queues) waits of the front task that are met: they stay met */
    int *ready;   /* (queues) stack of queues to look at */
    int ready_count;
    int ran; /* tasks that have run */
};

static int front_task(const struct simulation *s, int queue)
{
    return s->check->program->queues[queue].tasks.first + s->done[queue];
}

/* The first wait of the queue's front task that is not met, or NULL. */
static const mgl_wait *unmet(const struct simulation *s, int queue)
{
    const mgl_program *p = s->check->program;
    const mgl_run *waits = &p->tasks[front_task(s, queue)].waits;
    for (int *i = &s->met[queue]; *i < waits->count; ++*i) {
        const mgl_wait *wait = &p->waits[waits->first + *i];
        if (s->value[wait->counter] < wait->threshold)
            return wait;
    }
    return NULL;
}

/* Counts the task's signals and makes ready whoever waited for one of them. */
static void signal_all(struct simulation *s, int task)
{
    const mgl_program *p = s->check->program;
    for (int i = 0; i < p->tasks[task].signals.count; i++) {
        int counter = p->signals[p->tasks[task].signals.first + i];
        s->value[counter]++;
        int *link = &s->blocked[counter];
        while (*link >= 0) {
            int queue = *link;
            const mgl_wait *wait = unmet(s, queue);
            if (wait && wait->counter == counter) {
                link = &s->next[queue];
                continue;
            }
            *link = s->next[queue];
            s->ready[s->ready_count++] = queue;
        }
    }
}

/* Runs a queue until it ends or must wait. */
static void run_queue(struct simulation *s, int queue)
{
    const mgl_program *p = s->check->program;
    while (s->done[queue] < p->queues[queue].tasks.count) {
        int task = front_task(s, queue);
        const mgl_wait *wait = unmet(s, queue);
        if (wait) {
            s->next[queue] = s->blocked[wait->counter];
            s->blocked[wait->counter] = queue;
            return;
        }
        s->check->order[s->ran++] = task;
        s->done[queue]++;
        s->met[queue] = 0;
        signal_all(s, task);
    }
}

/* Why the front task of a queue is stuck: a producer of its counter that has not run. */
static int blame(const struct simulation *s, int queue, const mgl_wait **wait)
{
    const mgl_check *check = s->check;
    *wait = unmet(s, queue);
    if (!*wait)
        return -1;
    int c = (*wait)->counter;
    for (int i = check->producer_first[c]; i < check->producer_first[c + 1]; i++) {
        int task = check->producers[i], q = check->queue_of[task];
        if (check->position[task] >= s->done[q])
            return task;
    }
    return -1;
}

/* The witness: from a stuck queue to whom it waits for, until the walk comes round. */
static void report_cycle(struct simulation *s, int queue)
{
    mgl_check *check = s->check;
    const mgl_program *p = check->program;
    for (int i = 0; i < p->queue_count; i++)
        s->next[i] = 0; /* from here on: whether the walk was there */
    const mgl_wait *wait;
    while (s->next[queue]++ == 0)
        queue = check->queue_of[blame(s, queue, &wait)];
    char name[MGL_NAME_TEXT], other[MGL_NAME_TEXT];
    mgl_check_report(
        check, 202, front_task(s, queue), 0, "%s can never run: %d of %d tasks wait for each other",
        mgl_check_task(check, front_task(s, queue), name), p->task_count - s->ran, p->task_count);
    int start = queue;
    do {
        int task = front_task(s, queue), to = blame(s, queue, &wait);
        mgl_check_witness(check, "%s waits for %.64s >= %" PRId64 " (it has %d), signalled by %s",
                          mgl_check_task(check, task, name), p->counters[wait->counter].name,
                          wait->threshold, s->value[wait->counter],
                          mgl_check_task(check, to, other));
        queue = check->queue_of[to];
        if (to != front_task(s, queue))
            mgl_check_witness(check, "%s runs behind %s", other,
                              mgl_check_task(check, front_task(s, queue), name));
    } while (queue != start);
}

static void simulate(struct simulation *s)
{
    const mgl_program *p = s->check->program;
    for (int c = 0; c < p->counter_count; c++)
        s->blocked[c] = -1;
    for (int q = p->queue_count - 1; q >= 0; q--)
        s->ready[s->ready_count++] = q;
    while (s->ready_count > 0)
        run_queue(s, s->ready[--s->ready_count]);
    if (s->ran == p->task_count)
        return;
    int queue = 0;
    while (s->done[queue] == p->queues[queue].tasks.count)
        queue++;
    report_cycle(s, queue);
}

void mgl_check_deadlock(mgl_check *check)
{
    const mgl_program *p = check->program;
    int before = check->found;
    check_thresholds(check);
    check_overflow(check);
    if (check->found != before)
        return;
    size_t counters = (size_t)p->counter_count, queues = (size_t)p->queue_count;
    struct simulation s = {.check = check,
                           .value = mgl_check_alloc(check, counters, sizeof(int)),
                           .blocked = mgl_check_alloc(check, counters, sizeof(int)),
                           .next = mgl_check_alloc(check, queues, sizeof(int)),
                           .done = mgl_check_alloc(check, queues, sizeof(int)),
                           .met = mgl_check_alloc(check, queues, sizeof(int)),
                           .ready = mgl_check_alloc(check, queues, sizeof(int))};
    check->order = mgl_check_alloc(check, (size_t)p->task_count, sizeof *check->order);
    if (!check->no_memory)
        simulate(&s);
    mgl_free(s.value);
    mgl_free(s.blocked);
    mgl_free(s.next);
    mgl_free(s.done);
    mgl_free(s.met);
    mgl_free(s.ready);
}

/* ---- the epoch edge ---- */

/* Whether the counter is signalled by sample and by nobody else. */
static bool is_edge(const mgl_check *check, int counter)
{
    return mgl_counter_signals(check, counter) == 1 &&
           check->producers[check->producer_first[counter]] == check->sample;
}

static void check_edge(mgl_check *check, int enter)
{
    const mgl_program *p = check->program;
    bool edge = false;
    char name[MGL_NAME_TEXT];
    for (int i = 0; i < p->tasks[enter].waits.count; i++) {
        const mgl_wait *wait = &p->waits[p->tasks[enter].waits.first + i];
        edge = edge || (wait->threshold == 0 && is_edge(check, wait->counter));
        if (wait->threshold > 0)
            mgl_check_report(check, 206, enter, 0,
                             "%s waits for %.64s >= %" PRId64
                             ", which nobody signals in the epoch in which the queues leave",
                             mgl_check_task(check, enter, name), p->counters[wait->counter].name,
                             wait->threshold);
    }
    if (edge)
        return;
    mgl_check_report(check, 204, enter, 0,
                     "%s does not wait, with threshold 0, for a counter that sample alone signals",
                     mgl_check_task(check, enter, name));
}

void mgl_check_epochs(mgl_check *check)
{
    const mgl_program *p = check->program;
    for (int q = 0; q < p->queue_count; q++) {
        const mgl_run *run = &p->queues[q].tasks;
        int last = run->first + run->count - 1;
        char name[MGL_NAME_TEXT];
        check_edge(check, run->first);
        if (last == check->sample || mgl_order_before(check, last, check->sample))
            continue;
        mgl_check_report(
            check, 203, last, 0,
            "%s is not ordered before sample: the next epoch could start while it runs",
            mgl_check_task(check, last, name));
        int first = last;
        while (first > run->first && !mgl_order_before(check, first - 1, check->sample))
            first--;
        if (first != last)
            mgl_check_witness(check, "the first such task of the queue is %s",
                              mgl_check_task(check, first, name));
    }
}

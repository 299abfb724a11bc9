/*
 * MG2xx: every epoch runs to its end, and epochs are totally ordered.
 *
 * Counters only grow, so a task that can run stays able to run. Therefore running any task that can
 * run, in any order, always ends in the same set of tasks (the least fixpoint). The pass simulates
 * one epoch in this way. If the set contains every task, no execution of an epoch can get stuck.
 * The order of the simulation is kept: it is one legal order, and every happens-before edge points
 * forward in it.
 *
 * A flag region works like a counter. The box that a task reads gets a signal, once per epoch, from
 * each writer of a box that overlaps it. The reader waits for all of these signals. So flags make
 * tasks wait in the simulation. The proof of the epoch edge (mgl_check_epochs) does not use flags.
 *
 * Why one epoch represents all. Three conditions are checked. Every task of an epoch happens before
 * its sample, and every enter waits with threshold 0 for the counter that only sample signals
 * (mgl_check_epochs). Enter is the first task of every queue (operands.c). Then every task of epoch
 * e happens before sample(e), which happens before enter(e+1) of every queue, which happens before
 * every task of epoch e+1. So no signal of epoch e+1 comes before a task of epoch e has finished.
 * In epoch e a counter holds at most e * P plus the signals of this epoch. A wait for e * P + t is
 * met when t signals of this epoch and all earlier ones have come. The earlier ones do come,
 * because their tasks have run. Hence a wait means the same in each epoch. Threshold 0 is always
 * met in the end: on a counter other than sample's such a wait orders nothing and is accepted as
 * harmless.
 *
 * With two lists, an epoch is of one of them. A wait then means all signals of the earlier epochs,
 * of either list, and t of this epoch (schedule/program.h). lists.c checks that each enter waits
 * with threshold 0 for a counter that only the samples of both lists signal. Then the chain above
 * holds for every sequence of lists, and so do its consequences.
 *
 * The end of a launch: in the epoch after the last one, each queue runs only enter, reads that the
 * launch ends, and leaves. No task signals in that epoch, so enter may wait with threshold 0 only.
 */
#include "validator/check.h"

#include "base/assert.h"
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

/* The largest number of epochs of a launch. Sequences advance together: all of them run from epoch
 * 0 on, and an ended sequence never runs again. An epoch gives each running sequence at least one
 * row (schedule/step.h), that is, one more position. So a sequence that runs in epoch e has at
 * least e positions from earlier epochs, and at most `capacity` epochs have a running sequence. The
 * queues leave in one more epoch. */
static int64_t most_epochs(const mgl_limits *limits)
{
    return (int64_t)limits->capacity + 1;
}

static void check_overflow(mgl_check *check)
{
    const mgl_program *p = check->program;
    int64_t epochs = most_epochs(&p->limits);
    for (int c = 0; c < p->counter_count; c++) {
        int64_t signals = mgl_counter_signals(check, c);
        if (check->first && c < check->first->program->counter_count)
            signals += mgl_counter_signals(check->first, c); /* an epoch is of one list */
        if (signals * epochs > INT32_MAX)
            mgl_check_report(check, 205, -1, p->counters[c].line,
                             "counter %.64s: %" PRId64 " signals an epoch in up to %" PRId64
                             " epochs reach 2^31; lower the capacity",
                             p->counters[c].name, signals, epochs);
    }
}

/* ---- the simulation of one epoch ---- */

enum { QUEUES_A_STEP = 8 }; /* queues tested per step whether they still wait */

/* Edges are numbered: first the counters, then the boxes of flag inputs. */
struct simulation {
    mgl_check *check;
    int *value;   /* (edges) signals so far */
    int *blocked; /* (edges) first queue that waits for the edge, or -1 */
    int *next;    /* (queues) next queue that waits for the same edge, or -1 */
    int *done;    /* (queues) tasks that have run */
    int *met;     /* (queues) waits, then inputs, of the front task that are met, and stay met */
    int *ready;   /* (queues) stack of queues to run */
    int ready_count;
    int ran; /* tasks that have run */
};

static int front_task(const struct simulation *s, int queue)
{
    const mgl_run *tasks = &s->check->program->queues[queue].tasks;
    MGL_ASSERT(s->done[queue] < tasks->count);
    return tasks->first + s->done[queue];
}

static int box_edge(const struct simulation *s, int box)
{
    return s->check->program->counter_count + box;
}

/* What a task waits for. */
struct want {
    int edge; /* -1: nothing */
    int64_t least;
    int region; /* region of a flag edge, else -1 */
};

/* Wait `i` of a task; indices after the last wait mean its inputs. */
static struct want want_of(const struct simulation *s, const mgl_task *task, int i)
{
    const mgl_program *p = s->check->program;
    if (i < task->waits.count) {
        const mgl_wait *wait = &p->waits[task->waits.first + i];
        return (struct want){wait->counter, wait->threshold, -1};
    }
    int region = mgl_task_region(task, i - task->waits.count);
    if (!p->regions[region].flag)
        return (struct want){-1, 0, -1};
    int box = s->check->boxes.of_region[region];
    return (struct want){box_edge(s, box), s->check->flags.parts[box], region};
}

/* The first edge of the queue's front task that is not met. */
static struct want unmet(const struct simulation *s, int queue)
{
    const mgl_task *task = &s->check->program->tasks[front_task(s, queue)];
    for (int *i = &s->met[queue]; *i < task->waits.count + task->in.count; ++*i) {
        struct want want = want_of(s, task, *i);
        if (want.edge >= 0 && s->value[want.edge] < want.least)
            return want;
    }
    return (struct want){-1, 0, -1};
}

/* Counts a signal and makes ready the queues that waited for it. */
static void signal_edge(struct simulation *s, int edge)
{
    size_t asked = 0;
    s->value[edge]++;
    int *link = &s->blocked[edge];
    for (; *link >= 0; asked++) {
        int queue = *link;
        if (unmet(s, queue).edge == edge) {
            link = &s->next[queue];
            continue;
        }
        *link = s->next[queue];
        MGL_ASSERT(s->ready_count < s->check->program->queue_count);
        s->ready[s->ready_count++] = queue;
    }
    mgl_check_spend(s->check, asked / QUEUES_A_STEP);
}

/* Signals that the task has written the words of a flag region. */
static void publish(struct simulation *s, int region)
{
    int count;
    const int *boxes = mgl_boxes_overlapping(s->check, &s->check->program->regions[region], &count);
    for (int i = 0; i < count; i++)
        if (s->check->flags.parts[boxes[i]] > 0)
            signal_edge(s, box_edge(s, boxes[i]));
}

static void signal_all(struct simulation *s, int task)
{
    const mgl_program *p = s->check->program;
    const mgl_task *t = &p->tasks[task];
    for (int i = t->signals.first; i < t->signals.first + t->signals.count; i++)
        signal_edge(s, p->signals[i]);
    for (int i = t->out.first; i < t->out.first + t->out.count; i++)
        if (p->regions[i].flag)
            publish(s, i);
}

/* Runs a queue until it ends, has to wait, or the steps are used up. */
static void run_queue(struct simulation *s, int queue)
{
    const mgl_program *p = s->check->program;
    while (s->done[queue] < p->queues[queue].tasks.count && mgl_check_goes_on(s->check)) {
        int task = front_task(s, queue);
        struct want want = unmet(s, queue);
        if (want.edge >= 0) {
            s->next[queue] = s->blocked[want.edge];
            s->blocked[want.edge] = queue;
            return;
        }
        MGL_ASSERT(s->ran < p->task_count);
        s->check->order[s->ran++] = task;
        s->done[queue]++;
        s->met[queue] = 0;
        signal_all(s, task);
    }
}

static bool has_run(const struct simulation *s, int task)
{
    return s->check->position[task] < s->done[s->check->queue_of[task]];
}

/* A task that writes words of the region and has not run. */
static int blame_writer(const struct simulation *s, int region)
{
    mgl_check *check = s->check;
    int count;
    const int *boxes = mgl_boxes_overlapping(check, &check->program->regions[region], &count);
    for (int i = 0; i < count; i++) {
        int task = check->flags.writer[boxes[i]];
        if (task >= 0 && !has_run(s, task))
            return task;
    }
    return -1;
}

/* The reason why the front task of a queue is stuck: a producer of the edge that has not run; -1
 * when the steps are used up. */
static int blame(const struct simulation *s, const struct want *want)
{
    const mgl_check *check = s->check;
    if (want->region >= 0)
        return blame_writer(s, want->region);
    for (int i = check->producer_first[want->edge]; i < check->producer_first[want->edge + 1]; i++)
        if (!has_run(s, check->producers[i]))
            return check->producers[i];
    return -1;
}

/* The task that the queue's front task waits for; *want is the edge. */
static int next_on_cycle(const struct simulation *s, int queue, struct want *want)
{
    *want = unmet(s, queue);
    return blame(s, want);
}

static void witness_wait(struct simulation *s, int task, const struct want *want, int to)
{
    mgl_check *check = s->check;
    char name[MGL_NAME_TEXT], other[MGL_NAME_TEXT], place[MGL_NAME_TEXT];
    mgl_check_task(check, task, name);
    mgl_check_task(check, to, other);
    if (want->region >= 0)
        mgl_check_witness(check, "%s waits for the flag words of %s, some of them written by %s",
                          name, mgl_check_region(check, want->region, place), other);
    else
        mgl_check_witness(check, "%s waits for %.64s >= %" PRId64 " (it has %d), signalled by %s",
                          name, check->program->counters[want->edge].name, want->least,
                          s->value[want->edge], other);
}

/* Follows the waits from a stuck queue until the walk repeats. Returns a queue of the cycle; -1
 * when the steps are used up. */
static int find_cycle(struct simulation *s, int queue, bool *flags)
{
    const mgl_check *check = s->check;
    struct want want;
    for (int i = 0; i < check->program->queue_count; i++)
        s->next[i] = 0; /* from here on: the number of visits of the walk */
    while (s->next[queue]++ < 2) {
        int task = next_on_cycle(s, queue, &want);
        if (task < 0)
            return -1;
        *flags = s->next[queue] == 2 ? *flags || want.region >= 0 : *flags;
        queue = check->queue_of[task];
    }
    return queue;
}

static void report_cycle(struct simulation *s, int stuck)
{
    mgl_check *check = s->check;
    const mgl_program *p = check->program;
    char name[MGL_NAME_TEXT], other[MGL_NAME_TEXT];
    bool flags = false;
    int found = check->found, start = find_cycle(s, stuck, &flags), queue = start;
    if (start < 0) { /* the steps are used up, which is reported; the task is stuck in any case */
        if (check->found == found)
            mgl_check_report(check, 202, front_task(s, stuck), 0, "%s can never run",
                             mgl_check_task(check, front_task(s, stuck), name));
        return;
    }
    mgl_check_report(check, flags ? 207 : 202, front_task(s, start), 0,
                     "%s can never run: %d of %d tasks wait for each other",
                     mgl_check_task(check, front_task(s, start), name), p->task_count - s->ran,
                     p->task_count);
    do {
        struct want want;
        int task = front_task(s, queue), to = next_on_cycle(s, queue, &want);
        if (to < 0)
            return;
        witness_wait(s, task, &want, to);
        queue = check->queue_of[to];
        if (to != front_task(s, queue))
            mgl_check_witness(check, "%s runs behind %s", mgl_check_task(check, to, other),
                              mgl_check_task(check, front_task(s, queue), name));
    } while (queue != start);
}

static void simulate(struct simulation *s)
{
    const mgl_program *p = s->check->program;
    for (int edge = 0; edge < p->counter_count + s->check->boxes.count; edge++)
        s->blocked[edge] = -1;
    for (int q = p->queue_count - 1; q >= 0; q--)
        s->ready[s->ready_count++] = q;
    while (s->ready_count > 0)
        run_queue(s, s->ready[--s->ready_count]);
    if (s->ran == p->task_count || !mgl_check_goes_on(s->check))
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
    size_t edges = (size_t)p->counter_count + (size_t)check->boxes.count;
    size_t queues = (size_t)p->queue_count;
    struct simulation s = {.check = check,
                           .value = mgl_check_alloc(check, edges, sizeof(int)),
                           .blocked = mgl_check_alloc(check, edges, sizeof(int)),
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

bool mgl_check_is_edge(const mgl_check *check, int counter)
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
        edge = edge || (wait->threshold == 0 && mgl_check_is_edge(check, wait->counter));
        if (wait->threshold > 0)
            mgl_check_report(check, 206, enter, 0,
                             "%s waits for %.64s >= %" PRId64
                             ", which no task signals in the epoch in which the queues leave",
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

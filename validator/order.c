/*
 * Happens-before within an epoch, as vector clocks: for each task and queue, the number of tasks of
 * that queue that happen before the task in every execution. A task inherits the clock of the
 * previous task on its queue and joins, for each wait, what the wait proves. race.c and deadlock.c
 * use the result.
 *
 * A wait c >= t with t = P proves that all P producers come before: the counter cannot reach P
 * without each of them, and no producer signals early for the next epoch (deadlock.c). With 0 < t <
 * P, producer i comes before waiter j if the counter cannot reach t without i. That holds if fewer
 * than t producers are neither i, nor ordered after i, nor j, nor ordered after j. Proof: in an
 * execution in which j has seen t signals, one of them is the signal of i or of a task after i.
 * Either way the stores of i are visible to j, because the counter's increments are one release
 * sequence. The rule uses the order known so far, which can only omit edges. Rounds repeat until no
 * new edge follows. Order that remains unproved is no edge; a race may then be reported that a
 * better proof would exclude.
 *
 * Flags are no edges here, because they order only their own words (flags.c). Ignoring that flags
 * make tasks wait only adds executions to consider.
 */
#include "validator/check.h"

#include "base/assert.h"
#include "base/memory.h"

#include <string.h>

enum {
    DIRECT_PRODUCERS = 4, /* joins of so few clocks do not justify a cached row */
    MOST_ROUNDS = 16,
    QUEUES_A_STEP = 16 /* numbers of a clock that are joined or kept in one step */
};
#define MOST_STEPS                                                                                 \
    ((int64_t)1 << 28) /* Limit of the steps of the rule for t < P, in one check.                  \
                        */

struct ordering {
    mgl_check *check;
    size_t queues;
    int *scratch;      /* (queues) */
    int **join;        /* (counters) cached clock of a full join, or NULL */
    int *old_of, *old; /* the clocks of the previous round; NULL in the first */
    int64_t steps;     /* steps of the rule for t < P so far */
    size_t joined;     /* numbers in `join` */
    bool partial;      /* there are waits with t < P */
    bool changed;      /* this round ordered more than the previous one */
};

static bool clock_before(const mgl_check *check, const int *clock_of, const int *clocks, int a,
                         int b)
{
    int qa = check->queue_of[a], qb = check->queue_of[b];
    MGL_ASSERT(clock_of && clocks);
    if (qa == qb)
        return check->position[a] < check->position[b];
    size_t row = (size_t)clock_of[b] * (size_t)check->program->queue_count;
    return check->position[a] < clocks[row + (size_t)qa];
}

bool mgl_order_before(const mgl_check *check, int a, int b)
{
    return clock_before(check, check->clock_of, check->clocks, a, b);
}

/* clock = max(clock, clock of `task` with `task` itself) */
static void join_task(const struct ordering *o, int *clock, int task)
{
    const mgl_check *check = o->check;
    const int *other = &check->clocks[(size_t)check->clock_of[task] * o->queues];
    for (size_t q = 0; q < o->queues; q++)
        if (other[q] > clock[q])
            clock[q] = other[q];
    int own = check->queue_of[task], after = check->position[task] + 1;
    if (after > clock[own])
        clock[own] = after;
}

/* Whether the clocks of a round may take `numbers` more numbers. The first request above the limit
 * is reported as MG121. */
static bool has_room(struct ordering *o, size_t numbers)
{
    mgl_check *check = o->check;
    if (check->clock_rows * o->queues + o->joined + numbers <= MGL_MAX_CLOCKS)
        return true;
    mgl_check_exhaust(check,
                      "the order of its tasks would take more than %zu MiB of memory: too many "
                      "tasks wait on too many queues",
                      MGL_MAX_CLOCKS * sizeof(int) >> 20);
    return false;
}

/* Spends the steps for joining or keeping that many clocks. */
static bool spend_clocks(struct ordering *o, size_t clocks)
{
    return mgl_check_spend(o->check, clocks * (1 + o->queues / QUEUES_A_STEP));
}

static void join_all(struct ordering *o, int *clock, int counter)
{
    mgl_check *check = o->check;
    int first = check->producer_first[counter], last = check->producer_first[counter + 1];
    bool direct = last - first <= DIRECT_PRODUCERS;
    if (!spend_clocks(o, direct || !o->join[counter] ? (size_t)(last - first) : 1))
        return;
    if (direct) {
        for (int i = first; i < last; i++)
            join_task(o, clock, check->producers[i]);
        return;
    }
    if (!o->join[counter]) {
        if (!has_room(o, o->queues))
            return;
        o->joined += o->queues;
        o->join[counter] = mgl_check_alloc(check, o->queues, sizeof(int));
        for (int i = first; i < last && !check->no_memory; i++)
            join_task(o, o->join[counter], check->producers[i]);
    }
    for (size_t q = 0; q < o->queues && !check->no_memory; q++)
        if (o->join[counter][q] > clock[q])
            clock[q] = o->join[counter][q];
}

/* Whether a == b or a happened before b in the previous round. */
static bool not_after(const struct ordering *o, int a, int b)
{
    return a == b || clock_before(o->check, o->old_of, o->old, a, b);
}

/* Joins the producers without which the counter cannot reach the threshold. */
static void join_necessary(struct ordering *o, int *clock, int waiter, const mgl_wait *wait)
{
    const mgl_check *check = o->check;
    int first = check->producer_first[wait->counter];
    int last = check->producer_first[wait->counter + 1];
    int64_t n = last - first;
    if (o->steps + n * n > MOST_STEPS)
        return;
    o->steps += n * n;
    for (int i = first; i < last; i++) {
        int producer = check->producers[i], others = 0;
        if (not_after(o, waiter, producer))
            continue;
        for (int j = first; j < last; j++)
            others += !not_after(o, producer, check->producers[j]) &&
                      !not_after(o, waiter, check->producers[j]);
        if (others < wait->threshold)
            join_task(o, clock, producer);
    }
}

/* Keeps the clock as a new row, or shares the row of the previous task on the queue if both are
 * equal. */
static void keep_clock(struct ordering *o, int task, const int *clock)
{
    mgl_check *check = o->check;
    if (check->position[task] > 0) {
        int row = check->clock_of[task - 1];
        MGL_ASSERT((size_t)row < check->clock_rows); /* the previous task of the queue was
                                                        processed before this one */
        if (!memcmp(&check->clocks[(size_t)row * o->queues], clock, o->queues * sizeof *clock)) {
            check->clock_of[task] = row;
            return;
        }
    }
    if (!has_room(o, o->queues))
        return;
    if (!mgl_grow((void **)&check->clocks, &check->clock_capacity, check->clock_rows,
                  o->queues * sizeof(int))) {
        check->no_memory = true;
        return;
    }
    check->clock_of[task] = (int)check->clock_rows;
    memcpy(&check->clocks[check->clock_rows++ * o->queues], clock, o->queues * sizeof *clock);
}

static void order_task(struct ordering *o, int task)
{
    mgl_check *check = o->check;
    const mgl_program *p = check->program;
    int *clock = o->scratch;
    if (check->position[task] == 0)
        memset(clock, 0, o->queues * sizeof *clock);
    else
        memcpy(clock, &check->clocks[(size_t)check->clock_of[task - 1] * o->queues],
               o->queues * sizeof *clock);
    for (int i = 0; i < p->tasks[task].waits.count && mgl_check_goes_on(check); i++) {
        const mgl_wait *wait = &p->waits[p->tasks[task].waits.first + i];
        if (wait->threshold == 0)
            continue;
        if (wait->threshold == mgl_counter_signals(check, wait->counter))
            join_all(o, clock, wait->counter);
        else if (o->old)
            join_necessary(o, clock, task, wait);
        else
            o->partial = true;
    }
    /* The order within the task's own queue follows from positions, not from the clock. */
    clock[check->queue_of[task]] = 0;
    if (!spend_clocks(o, 1))
        return;
    keep_clock(o, task, clock);
    if (o->old && mgl_check_goes_on(check) &&
        memcmp(&check->clocks[(size_t)check->clock_of[task] * o->queues],
               &o->old[(size_t)o->old_of[task] * o->queues], o->queues * sizeof *clock) != 0)
        o->changed = true;
}

static void forget_joins(struct ordering *o)
{
    for (int c = 0; c < o->check->program->counter_count && o->join; c++) {
        mgl_free(o->join[c]);
        o->join[c] = NULL;
    }
    o->joined = 0;
}

/* One pass over the epoch. The clocks of the previous round are in old_of and old. */
static void run_round(struct ordering *o)
{
    mgl_check *check = o->check;
    size_t tasks = (size_t)check->program->task_count;
    o->changed = false;
    check->clock_rows = check->clock_capacity = 0;
    check->clocks = NULL;
    check->clock_of = mgl_check_alloc(check, tasks, sizeof *check->clock_of);
    for (size_t i = 0; i < tasks && mgl_check_goes_on(check); i++)
        order_task(o, check->order[i]);
    forget_joins(o);
    mgl_free(o->old_of);
    mgl_free(o->old);
    o->old_of = o->old = NULL;
}

void mgl_order_compute(mgl_check *check)
{
    const mgl_program *p = check->program;
    struct ordering o = {.check = check, .queues = (size_t)p->queue_count};
    o.scratch = mgl_check_alloc(check, o.queues, sizeof *o.scratch);
    o.join = mgl_check_alloc(check, (size_t)p->counter_count, sizeof *o.join);
    if (!check->no_memory)
        run_round(&o);
    o.changed = o.partial;
    for (int round = 1; round < MOST_ROUNDS && o.changed && mgl_check_goes_on(check); round++) {
        o.old_of = check->clock_of;
        o.old = check->clocks;
        run_round(&o);
    }
    mgl_free(o.scratch);
    mgl_free(o.join);
}

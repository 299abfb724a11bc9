/*
 * Deadlock and happens-before against all executions: random small programs (three queues, counters
 * with any threshold) are explored state by state, signals one by one, and what the validator says
 * must hold in every execution. With joins alone it must also say all that holds.
 */
#include "support.h"

#include "validator/check.h"

enum { QUEUES = 3, TASKS = 3, ALL = QUEUES * TASKS, COUNTERS = 4, MOST_SIGNALS = 2 };
/* Steps of a task: start, end, one for each signal. */
enum { STEPS = 2 + MOST_SIGNALS, STATES_A_QUEUE = TASKS * STEPS + 1 };

static uint32_t state_of_random;
static int next_random(int below)
{
    state_of_random = state_of_random * 1664525u + 1013904223u;
    return (int)((state_of_random >> 16) % (uint32_t)below);
}

/* Random edges; `joins`: every threshold is the number of signals. */
static mgl_program *random_program(uint32_t seed, bool joins)
{
    mgl_program *p = NULL;
    mgl_error err = {0};
    int total[COUNTERS] = {0};
    state_of_random = seed * 2654435761u + 1;
    ck_assert_int_eq(mgl_program_new(&p, &err), MGL_OK);
    p->geometry = (mgl_geometry){16, 1, 2, 1, 8, 24, 40, 1e-5f};
    p->limits = (mgl_limits){1, 1, 16};
    p->target.queues = QUEUES;
    for (int c = 0; c < COUNTERS; c++)
        mgl_program_add_counter(p, "c");
    for (int q = 0; q < QUEUES; q++) {
        mgl_program_add_queue(p);
        for (int t = 0; t < TASKS; t++) {
            mgl_program_add_task(p, MGL_OP_ENTER);
            for (int i = next_random(8) / 5; i > 0; i--)
                mgl_program_add_wait(p, next_random(COUNTERS), next_random(4));
            int first = next_random(COUNTERS), count = next_random(MOST_SIGNALS + 1);
            for (int i = 0; i < count; i++) {
                mgl_program_add_signal(p, (first + i) % COUNTERS);
                total[(first + i) % COUNTERS]++;
            }
        }
    }
    for (int i = 0; i < p->wait_count; i++) {
        mgl_wait *wait = &p->waits[i];
        if (joins || wait->threshold > total[wait->counter])
            wait->threshold = total[wait->counter];
    }
    return p;
}

/* ---- all executions ---- */

struct exploration {
    const mgl_program *p;
    bool seen[STATES_A_QUEUE * STATES_A_QUEUE * STATES_A_QUEUE];
    bool not_before[ALL][ALL]; /* a had not ended when b started */
    bool stuck;                /* in some execution */
};

static int task_steps(const mgl_program *p, int task)
{
    return 2 + p->tasks[task].signals.count;
}

/* Steps are numbered TASK * STEPS + step; those that a task does not have are skipped. */
static int skip(const mgl_program *p, int queue, int at)
{
    int task = p->queues[queue].tasks.first + at / STEPS;
    return at < TASKS * STEPS && at % STEPS >= task_steps(p, task) ? (at / STEPS + 1) * STEPS : at;
}

static int value_of(const mgl_program *p, const int at[QUEUES], int counter)
{
    int value = 0;
    for (int q = 0; q < QUEUES; q++)
        for (int t = 0; t < TASKS; t++) {
            const mgl_task *task = &p->tasks[p->queues[q].tasks.first + t];
            for (int i = 0; i < task->signals.count; i++)
                value +=
                    p->signals[task->signals.first + i] == counter && at[q] > t * STEPS + 2 + i;
        }
    return value;
}

static bool can_start(const mgl_program *p, const int at[QUEUES], int task)
{
    for (int i = 0; i < p->tasks[task].waits.count; i++) {
        const mgl_wait *wait = &p->waits[p->tasks[task].waits.first + i];
        if (value_of(p, at, wait->counter) < wait->threshold)
            return false;
    }
    return true;
}

static void explore(struct exploration *e, const int at[QUEUES])
{
    int key = (at[0] * STATES_A_QUEUE + at[1]) * STATES_A_QUEUE + at[2];
    if (e->seen[key])
        return;
    e->seen[key] = true;
    bool moved = false, done = true;
    for (int q = 0; q < QUEUES; q++) {
        if (at[q] == TASKS * STEPS)
            continue;
        done = false;
        int task = e->p->queues[q].tasks.first + at[q] / STEPS;
        if (at[q] % STEPS == 0) {
            if (!can_start(e->p, at, task))
                continue;
            for (int other = 0; other < ALL; other++)
                if (at[other / TASKS] < other % TASKS * STEPS + 2)
                    e->not_before[other][task] = true;
        }
        int next[QUEUES] = {at[0], at[1], at[2]};
        next[q] = skip(e->p, q, at[q] + 1);
        moved = true;
        explore(e, next);
    }
    if (!moved && !done)
        e->stuck = true;
}

/* ---- the validator's answer ---- */

static void clear_check(mgl_check *check)
{
    mgl_free(check->queue_of);
    mgl_free(check->position);
    mgl_free(check->producer_first);
    mgl_free(check->producers);
    mgl_free(check->order);
    mgl_free(check->clock_of);
    mgl_free(check->clocks);
    mgl_verdict_clear(check->verdict);
}

/* Counts what holds and is not proved. */
static int compare(uint32_t seed, bool joins, int *deadlocks)
{
    static struct exploration e;
    mgl_program *p = random_program(seed, joins);
    const int start[QUEUES] = {0};
    int unproved = 0;
    memset(&e, 0, sizeof e);
    e.p = p;
    explore(&e, start);

    mgl_verdict verdict = {0};
    mgl_check check = {.program = p, .verdict = &verdict, .sample = -1};
    mgl_check_form(&check);
    ck_assert_int_eq(check.found, 0);
    mgl_check_deadlock(&check);
    ck_assert_msg(has_code(&verdict, 202) == e.stuck, "seed %u: stuck %d", seed, e.stuck);
    *deadlocks += e.stuck;
    if (!e.stuck) {
        mgl_order_compute(&check);
        for (int a = 0; a < ALL; a++)
            for (int b = 0; b < ALL; b++) {
                if (a == b)
                    continue;
                bool proved = mgl_order_before(&check, a, b);
                ck_assert_msg(!proved || !e.not_before[a][b], "seed %u: %d before %d is not so",
                              seed, a, b);
                unproved += !proved && !e.not_before[a][b];
            }
    }
    clear_check(&check);
    mgl_program_free(p);
    return unproved;
}

START_TEST(joins_are_exact)
{
    int unproved = 0, deadlocks = 0;
    for (uint32_t seed = 0; seed < 4000; seed++)
        unproved += compare(seed, true, &deadlocks);
    ck_assert_int_eq(unproved, 0);
    ck_assert_int_gt(deadlocks, 300);
    ck_assert_int_lt(deadlocks, 3700);
}
END_TEST

START_TEST(thresholds_are_sound)
{
    int deadlocks = 0;
    for (uint32_t seed = 0; seed < 4000; seed++)
        compare(seed, false, &deadlocks);
    ck_assert_int_gt(deadlocks, 300);
    ck_assert_int_lt(deadlocks, 3700);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validator order");
    TCase *cases = tcase_create("order");
    tcase_set_timeout(cases, 100);
    tcase_add_test(cases, joins_are_exact);
    tcase_add_test(cases, thresholds_are_sound);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}

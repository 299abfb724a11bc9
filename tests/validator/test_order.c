/*
 * Tests of deadlock and happens-before against all executions. Small random programs (three queues,
 * counters with any threshold) are explored state by state, with single signals, and the
 * validator's statements must hold in every execution. With joins only, the validator must also
 * find every order that holds. With flag regions, it must find what deadlocks through them, and
 * derive no order from them.
 */
#include "support.h"

#include "validator/check.h"

enum { QUEUES = 3, TASKS = 3, ALL = QUEUES * TASKS, COUNTERS = 4, MOST_SIGNALS = 2 };
/* Flag regions, each with a writer; the last task of queue 0 clears them. */
enum { GRANULES = 3, GRANULE_COLUMNS = 4, CLEAR = TASKS - 1 };
/* Steps of a task: start, end, one for each signal. */
enum { STEPS = 2 + MOST_SIGNALS, STATES_A_QUEUE = TASKS * STEPS + 1 };

static uint32_t state_of_random;
static int next_random(int below)
{
    state_of_random = state_of_random * 1664525u + 1013904223u;
    return (int)((state_of_random >> 16) % (uint32_t)below);
}

/* The kinds of edges of a program. */
enum edges { JOINS, THRESHOLDS, JOINS_AND_FLAGS, THRESHOLDS_AND_FLAGS };

static bool has_flags(enum edges edges)
{
    return edges >= JOINS_AND_FLAGS;
}

static void add_flagged_buffer(mgl_program *p)
{
    mgl_buffer buffer = {.name = "f",
                         .space = MGL_SPACE_ACT,
                         .dtype = MGL_F32,
                         .rank = 2,
                         .extents = {{MGL_ROWS, 1}, {MGL_FIXED, GRANULES * GRANULE_COLUMNS}},
                         .tensor = -1,
                         .sets = 2};
    mgl_program_add_buffer(p, &buffer);
}

static mgl_region granules(int lo, int hi, bool flag)
{
    return (mgl_region){.flag = flag,
                        .ranges = {{MGL_RANGE_ROWS, 0, 0},
                                   {MGL_RANGE_FIXED, lo * GRANULE_COLUMNS, hi * GRANULE_COLUMNS}}};
}

/* Adds random flag inputs of some granules; the outputs are the task's own flag regions. */
static void add_regions(mgl_program *p, int task, const int writer[GRANULES])
{
    mgl_region all = granules(0, GRANULES, false);
    if (task == CLEAR) {
        mgl_program_add_out(p, &all);
        return;
    }
    if (next_random(8) == 0) {
        int lo = next_random(GRANULES);
        mgl_region in = granules(lo, lo + 1 + next_random(GRANULES - lo), true);
        mgl_program_add_in(p, &in);
    }
    for (int g = 0; g < GRANULES; g++) {
        mgl_region out = granules(g, g + 1, true);
        if (writer[g] == task)
            mgl_program_add_out(p, &out);
    }
}

/* Random edges; JOINS: every threshold is the number of signals. */
static mgl_program *random_program(uint32_t seed, enum edges edges)
{
    mgl_program *p = NULL;
    mgl_error err = {0};
    int total[COUNTERS] = {0}, writer[GRANULES] = {0};
    state_of_random = seed * 2654435761u + 1;
    ck_assert_int_eq(mgl_program_new(&p, &err), MGL_OK);
    p->geometry = (mgl_geometry){16, 1, 2, 1, 8, 24, 40, 1e-5f};
    p->limits = (mgl_limits){.rows = 1, .sequences = 1, .capacity = 16};
    p->target.queues = QUEUES;
    for (int c = 0; c < COUNTERS; c++)
        mgl_program_add_counter(p, "c");
    for (int g = 0; g < GRANULES && has_flags(edges); g++)
        writer[g] = (CLEAR + 1 + next_random(ALL - 1)) % ALL;
    if (has_flags(edges))
        add_flagged_buffer(p);
    for (int q = 0; q < QUEUES; q++) {
        mgl_program_add_queue(p);
        for (int t = 0; t < TASKS; t++) {
            bool clears = has_flags(edges) && q * TASKS + t == CLEAR;
            mgl_program_add_task(p, clears ? MGL_OP_CLEAR : MGL_OP_ENTER);
            if (has_flags(edges))
                add_regions(p, q * TASKS + t, writer);
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
        bool joins = edges == JOINS || edges == JOINS_AND_FLAGS;
        if (joins || wait->threshold > total[wait->counter])
            wait->threshold = total[wait->counter];
    }
    return p;
}

/* ---- all executions -------------------------------------------------------------------------- */

struct exploration {
    const mgl_program *p;
    bool flags; /* readers wait for flag words */
    bool seen[STATES_A_QUEUE * STATES_A_QUEUE * STATES_A_QUEUE];
    bool not_before[ALL][ALL]; /* a had not ended when b started */
    bool stuck;                /* in some execution */
};

static int task_steps(const mgl_program *p, int task)
{
    return 2 + p->tasks[task].signals.count;
}

/* Steps have the numbers TASK * STEPS + step; missing steps are skipped. */
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

/* Whether a task that writes words of the region has not ended. */
static bool lacks_words(const mgl_program *p, const int at[QUEUES], const mgl_region *region)
{
    for (int task = 0; task < ALL; task++)
        for (int i = 0; i < p->tasks[task].out.count; i++) {
            const mgl_region *out = &p->regions[p->tasks[task].out.first + i];
            if (out->flag && out->ranges[1].lo < region->ranges[1].hi &&
                region->ranges[1].lo < out->ranges[1].hi &&
                at[task / TASKS] < task % TASKS * STEPS + 2)
                return true;
        }
    return false;
}

static bool can_start(const struct exploration *e, const int at[QUEUES], int task)
{
    const mgl_program *p = e->p;
    for (int i = 0; i < p->tasks[task].in.count && e->flags; i++)
        if (lacks_words(p, at, &p->regions[p->tasks[task].in.first + i]))
            return false;
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
            if (!can_start(e, at, task))
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

/* ---- the validator's answer ------------------------------------------------------------------ */

static void clear_check(mgl_check *check)
{
    mgl_free(check->queue_of);
    mgl_free(check->position);
    mgl_free(check->producer_first);
    mgl_free(check->producers);
    mgl_free(check->order);
    mgl_free(check->clock_of);
    mgl_free(check->clocks);
    mgl_free(check->boxes.of_region);
    mgl_free(check->boxes.boxes);
    mgl_free(check->boxes.first);
    mgl_free(check->boxes.overlapping);
    mgl_free(check->flags.writer);
    mgl_free(check->flags.parts);
    mgl_verdict_clear(check->verdict);
}

static void explore_all(struct exploration *e, const mgl_program *p, bool flags)
{
    const int start[QUEUES] = {0};
    memset(e, 0, sizeof *e);
    e->p = p;
    e->flags = flags;
    explore(e, start);
}

/* Counts orders that hold but are not proved. Proved orders must also hold without flags, because
 * flags order only their words. */
static int compare(uint32_t seed, enum edges edges, int *deadlocks)
{
    static struct exploration e;
    mgl_program *p = random_program(seed, edges);
    int unproved = 0;
    explore_all(&e, p, has_flags(edges));

    mgl_verdict verdict = {0};
    mgl_check check = {.program = p, .verdict = &verdict, .sample = -1};
    mgl_check_form(&check);
    ck_assert_int_eq(check.found, 0);
    mgl_boxes_make(&check);
    mgl_check_flags(&check);
    ck_assert_int_eq(check.found, 0);
    mgl_check_deadlock(&check);
    ck_assert_msg((has_code(&verdict, 202) || has_code(&verdict, 207)) == e.stuck,
                  "seed %u: stuck %d", seed, e.stuck);
    *deadlocks += e.stuck;
    if (!e.stuck) {
        mgl_order_compute(&check);
        explore_all(&e, p, false);
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
        unproved += compare(seed, JOINS, &deadlocks);
    ck_assert_int_eq(unproved, 0);
    ck_assert_int_gt(deadlocks, 300);
    ck_assert_int_lt(deadlocks, 3700);
}
END_TEST

START_TEST(thresholds_are_sound)
{
    int deadlocks = 0;
    for (uint32_t seed = 0; seed < 4000; seed++)
        compare(seed, THRESHOLDS, &deadlocks);
    ck_assert_int_gt(deadlocks, 300);
    ck_assert_int_lt(deadlocks, 3700);
}
END_TEST

START_TEST(joins_stay_exact_beside_flags)
{
    int unproved = 0, deadlocks = 0;
    for (uint32_t seed = 0; seed < 4000; seed++)
        unproved += compare(seed, JOINS_AND_FLAGS, &deadlocks);
    ck_assert_int_eq(unproved, 0);
    ck_assert_int_gt(deadlocks, 300);
    ck_assert_int_lt(deadlocks, 3700);
}
END_TEST

START_TEST(thresholds_stay_sound_beside_flags)
{
    int deadlocks = 0;
    for (uint32_t seed = 0; seed < 4000; seed++)
        compare(seed, THRESHOLDS_AND_FLAGS, &deadlocks);
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
    tcase_add_test(cases, joins_stay_exact_beside_flags);
    tcase_add_test(cases, thresholds_stay_sound_beside_flags);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}

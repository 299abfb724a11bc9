/*
 * Tests of what a campaign does during a measurement: it compiles kernels ahead and asks for
 * proposals.
 */
#include "tests/autotune/search/campaign_fixture.h"

#include <check.h>
#include <string.h>
#include <time.h>

/* ---- compiling ahead ------------------------------------------------------------------------- */

/* Checks which proposal each trial has, from trial 1 on. */
static void ck_order(fixture *f, const int *order, int count)
{
    for (int i = 0; i < count; i++) {
        const scripted_proposal *wanted = &proposals[order[i]];
        mgl_trial trial = trial_of(f, i + 1);
        ck_assert_int_eq(mgl_knob_get(&trial.proposal.config, mgl_knob_find(wanted->knob)),
                         wanted->value);
        ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_NO_GAIN);
        mgl_trial_clear(&trial);
    }
}

static void run_compiled(fixture *f, const char *name, const int *slow, int count)
{
    set_up(f, name);
    scripted_runner_compile(&f->runner, slow, count);
    f->proposer.list = proposals;
    f->proposer.count = 4;
    f->proposer.goes_on = true;
    must(run(f, 0), &f->err);
    ck_assert_int_eq(f->tune.record.trials, 4);
}

START_TEST(what_keeps_the_kernel_goes_first)
{
    fixture f;
    static const int slow[] = {2, 0, 0, 0}, order[] = {1, 2, 0, 3};
    run_compiled(&f, "ahead", slow, 4);
    ck_assert_int_ge(f.runner.prepared, 1);
    ck_order(&f, order, 4);
    tear_down(&f);
}
END_TEST

START_TEST(what_is_never_ready_is_tried_all_the_same)
{
    fixture f;
    static const int slow[] = {99, 99, 99, 99}, order[] = {0, 1, 2, 3};
    run_compiled(&f, "never_ready", slow, 4);
    ck_order(&f, order, 4);
    tear_down(&f);
}
END_TEST

/* At the end, only proposals that wait for their kernels are lost. */
START_TEST(an_end_with_some_that_wait_is_an_end)
{
    fixture f;
    static const int slow[] = {99, 99, 0};
    set_up(&f, "waiting");
    scripted_runner_compile(&f.runner, slow, 3);
    f.proposer.list = proposals;
    f.proposer.count = 8;
    f.proposer.goes_on = true;
    must(run(&f, 1), &f.err);
    mgl_trial trial = trial_of(&f, 1);
    ck_assert_int_eq(mgl_knob_get(&trial.proposal.config, mgl_knob_find(proposals[2].knob)),
                     proposals[2].value);
    mgl_trial_clear(&trial);
    must(run(&f, 2), &f.err);
    ck_assert_int_eq(f.tune.record.trials, 2);
    tear_down(&f);
}
END_TEST

/* ---- looking for proposals ------------------------------------------------------------------- */

/* Wraps the fixture's proposer and runner: counts questions, detects questions and reports that
 * overlap, and watches measurements. */
static struct {
    mgl_proposer proposer;
    mgl_proposer *real;
    atomic_int asked, asking, clashes;
    mgl_status (*propose)(mgl_proposer *, uint64_t, mgl_proposal *, mgl_proposer_answer *,
                          mgl_error *);
    __typeof__(((mgl_runner *)0)->pair) pair;
    int measured, beside; /* measured candidates; those during whose measurement the proposer was
                             asked */
    int seen;             /* number of checks at the last measurement */
    int fails_at;         /* number of the question at which the proposer fails; 0: none */
} watched;

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static mgl_status watched_propose(mgl_proposer *self, uint64_t seed, mgl_proposal *out,
                                  mgl_proposer_answer *answer, mgl_error *err)
{
    (void)self;
    watched.asking++;
    const int number = ++watched.asked;
    nap();
    mgl_status status = watched.real->propose(watched.real, seed, out, answer, err);
    watched.asking--;
    return number == watched.fails_at ? mgl_fail(err, MGL_BAD_INPUT, "here", "it fails") : status;
}

static mgl_status watched_learn(mgl_proposer *self, const mgl_trial *trial, mgl_error *err)
{
    (void)self;
    watched.clashes += watched.asking;
    return watched.real->learn(watched.real, trial, err);
}

static void watched_close(mgl_proposer *self)
{
    (void)self;
}

/* At the first measurement of a candidate, waits at most 0.5 s until the proposer is asked. */
static mgl_status watched_pair(mgl_runner *runner, int workload, int count, uint64_t seed,
                               bool control, mgl_pair *pairs, mgl_trial_verdict *verdict,
                               mgl_error *err)
{
    const scripted_runner *scripted = (const scripted_runner *)(const void *)runner;
    if (!control && scripted->checks != watched.seen) {
        /* a proposal may be rejected before it is checked: only `apart` may be one ahead */
        const int before = watched.proposer.apart ? scripted->checks : watched.asked;
        watched.seen = scripted->checks;
        watched.measured++;
        for (int i = 0; i < 250 && watched.asked <= before; i++)
            nap();
        watched.beside += watched.asked > before;
    }
    return watched.pair(runner, workload, count, seed, control, pairs, verdict, err);
}

static void watch(fixture *f, const char *name, bool apart)
{
    static const int slow[] = {0};
    set_up(f, name);
    scripted_runner_compile(&f->runner, slow, 1);
    memset(&watched, 0, sizeof watched);
    watched.proposer =
        (mgl_proposer){"watched", watched_propose, watched_learn, watched_close, apart};
    watched.real = &f->proposer.proposer;
    watched.pair = f->runner.runner.pair;
    f->runner.runner.pair = watched_pair;
    f->options.proposers[0].proposer = &watched.proposer;
    f->proposer.draws = true;
}

START_TEST(a_proposal_is_looked_for_beside_a_measurement)
{
    fixture f;
    watch(&f, "beside", true);
    must(run(&f, 8), &f.err);
    ck_assert_int_eq(f.tune.record.trials, 8);
    ck_assert_int_ge(watched.measured, 3);
    ck_assert_int_eq(watched.beside, watched.measured);
    ck_assert_int_eq(watched.clashes, 0);
    tear_down(&f);
}
END_TEST

START_TEST(who_uses_the_store_is_asked_when_it_is_time)
{
    fixture f;
    watch(&f, "not_apart", false);
    must(run(&f, 4), &f.err);
    ck_assert_int_ge(watched.measured, 1);
    ck_assert_int_eq(watched.beside, 0);
    ck_assert_int_eq(watched.asked, 4);
    tear_down(&f);
}
END_TEST

START_TEST(what_fails_beside_a_measurement_fails_behind_it)
{
    fixture f;
    watch(&f, "fails", true);
    watched.fails_at = 3;
    ck_assert_int_eq(run(&f, 8), MGL_BAD_INPUT);
    ck_assert_str_eq(f.err.message, "it fails");
    ck_assert_int_eq(f.tune.record.trials, 2);
    tear_down(&f);
}
END_TEST

START_TEST(an_interruption_forgets_what_is_looked_for)
{
    fixture f;
    watch(&f, "interrupted", true);
    f.abort_at = 3;
    ck_assert_int_eq(run(&f, 8), MGL_INTERRUPTED);
    ck_assert_int_eq(f.tune.record.trials, 3);
    ck_assert_int_eq(watched.asking, 0);
    tear_down(&f);
}
END_TEST

/* While the runner starts, a proposal is already found, and its kernel is compiled beside the
 * incumbent's. */
static struct {
    mgl_status (*start)(mgl_runner *, const mgl_candidate *, mgl_error *);
    int asked, prepared, count;
} started;

static mgl_status watched_start(mgl_runner *runner, const mgl_candidate *incumbent, mgl_error *err)
{
    if (started.count++ == 0) {
        started.asked = watched.asked;
        started.prepared = ((const scripted_runner *)(const void *)runner)->prepared;
    }
    return started.start(runner, incumbent, err);
}

START_TEST(kernels_are_compiled_while_the_runner_starts)
{
    fixture f;
    watch(&f, "starts", true);
    memset(&started, 0, sizeof started);
    started.start = f.runner.runner.start;
    f.runner.runner.start = watched_start;
    must(run(&f, 3), &f.err);
    ck_assert_int_eq(started.count, 1);
    ck_assert_int_eq(started.asked, f.runner.runner.compilers / 2);
    ck_assert_int_eq(started.prepared, 1 + f.runner.runner.compilers / 2);
    ck_assert_int_eq(f.tune.record.trials, 3);
    tear_down(&f);
}
END_TEST

/* A proposal that the gates reject before the runner is started is a trial like every other. */
START_TEST(what_is_rejected_before_the_start_is_a_trial)
{
    fixture f;
    static const scripted_proposal refused[] = {{"rows", 1}};
    watch(&f, "refused", true);
    f.proposer.draws = false;
    f.proposer.list = refused;
    f.proposer.count = 1;
    f.proposer.goes_on = true;
    must(run(&f, 0), &f.err);
    mgl_trial trial = trial_of(&f, 1);
    ck_assert_int_eq(f.tune.record.trials, 1);
    ck_assert_int_eq(mgl_outcome_exit(trial.verdict.outcome), MGL_EXIT_REFUSED);
    mgl_trial_clear(&trial);
    tear_down(&f);
}
END_TEST

/* The runner checks a candidate until the concurrent search has ended. */
static mgl_status (*real_check)(mgl_runner *, const mgl_candidate *,
                                const unsigned char nonce[MGL_SHA256_BYTES], mgl_runner_check *,
                                mgl_error *);

static mgl_status slow_check(mgl_runner *runner, const mgl_candidate *candidate,
                             const unsigned char nonce[MGL_SHA256_BYTES], mgl_runner_check *out,
                             mgl_error *err)
{
    for (int i = 0; i < 250; i++)
        nap();
    return real_check(runner, candidate, nonce, out, err);
}

/* Only one trial is ready. While it is measured, two more proposals are found, one after the
 * other. */
START_TEST(behind_one_that_waits_another_is_looked_for)
{
    fixture f;
    static const int slow[] = {0, 99, 99, 99, 99, 99, 99, 99};
    watch(&f, "behind", true);
    scripted_runner_compile(&f.runner, slow, sizeof slow / sizeof *slow);
    real_check = f.runner.runner.check;
    f.runner.runner.check = slow_check;
    must(run(&f, 1), &f.err);
    ck_assert_int_eq(f.tune.record.trials, 1);
    ck_assert_int_ge(watched.asked, 3);
    ck_assert_int_eq(watched.clashes, 0);
    tear_down(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("ahead");
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, what_keeps_the_kernel_goes_first);
    tcase_add_test(tests, what_is_never_ready_is_tried_all_the_same);
    tcase_add_test(tests, an_end_with_some_that_wait_is_an_end);
    tcase_add_test(tests, a_proposal_is_looked_for_beside_a_measurement);
    tcase_add_test(tests, who_uses_the_store_is_asked_when_it_is_time);
    tcase_add_test(tests, what_fails_beside_a_measurement_fails_behind_it);
    tcase_add_test(tests, an_interruption_forgets_what_is_looked_for);
    tcase_add_test(tests, kernels_are_compiled_while_the_runner_starts);
    tcase_add_test(tests, what_is_rejected_before_the_start_is_a_trial);
    tcase_add_test(tests, behind_one_that_waits_another_is_looked_for);
    return run_suite("campaign ahead", tests);
}

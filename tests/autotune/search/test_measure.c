/*
 * Tests of the paired measurement: its stages, the repeat of a suspicious gain, controls and
 * floors. A scripted runner replaces the device.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/search/measure.h"
#include "base/sha256.h"
#include "tests/autotune/search/scripted_runner.h"

enum { WORKLOADS = 2 };

static scripted_runner runner;
static mgl_candidate incumbent = {.digest = "incumbent"}, candidate = {.digest = "candidate"};
static mgl_trial trial;
static uint64_t draws;
static int restarts;

static mgl_status restart(void *user, const mgl_trial *suspicious, mgl_error *err)
{
    ck_assert_ptr_eq(user, &runner);
    ck_assert_int_eq(suspicious->verdict.outcome, MGL_OUTCOME_SUSPICIOUS);
    restarts++;
    return runner.runner.start(&runner.runner, &incumbent, err);
}

/* Starts a measurement of a candidate that has passed the check. */
static mgl_measurement begin(const runner_script *script, int count)
{
    static const unsigned char nonce[MGL_SHA256_BYTES] = {7};
    mgl_trial_clear(&trial);
    trial = (mgl_trial){.workload_count = WORKLOADS, .p_value = -1};
    mgl_sha256_hex(nonce, trial.nonce);
    draws = 3;
    restarts = 0;
    scripted_runner_init(&runner);
    runner.script = script;
    runner.script_count = count;
    mgl_measurement m = {.runner = &runner.runner,
                         .candidate = &candidate,
                         .trial = &trial,
                         .draws = &draws,
                         .decision = 1,
                         .restart = restart,
                         .user = &runner};
    ck_assert_int_eq(runner.runner.start(&runner.runner, &incumbent, NULL), MGL_OK);
    ck_assert_int_eq(mgl_measure_check(&m, nonce, NULL), MGL_OK);
    return m;
}

static void run(mgl_measurement *m)
{
    mgl_error err = {0};
    ck_assert_msg(!mgl_measure_screen(m, &err) && !mgl_measure_survivors(m, &err) &&
                      !mgl_measure_decision(m, &err) && !mgl_measure_floors(m, &err),
                  "%s: %s", err.where, err.message);
    ck_assert(m->decided);
}

static int pairs_of(mgl_pair_stage stage)
{
    int count = 0;
    for (int i = 0; i < trial.pair_count; i++)
        count += trial.pairs[i].stage == (int)stage;
    return count;
}

/* Checks that each stage has its fixed number of pairs for each workload. */
static void assert_stages(int screen, int survivors, int decision, int clear)
{
    ck_assert_int_eq(pairs_of(MGL_PAIRS_SCREEN), screen * WORKLOADS);
    ck_assert_int_eq(pairs_of(MGL_PAIRS_SURVIVORS), survivors * WORKLOADS);
    ck_assert_int_eq(pairs_of(MGL_PAIRS_DECISION), decision * WORKLOADS);
    ck_assert_int_eq(pairs_of(MGL_PAIRS_CLEAR), clear * WORKLOADS);
}

static const struct {
    double gain, noise;
    mgl_outcome outcome;
    bool counted;
    int screen, survivors, decision, clear;
    const char *diagnostic; /* start of the message */
} stages[] = {
    {-0.05, 0.001, MGL_OUTCOME_REGRESSION, false, 8, 0, 0, 0, "screened: a gain of -"},
    {0, 0.001, MGL_OUTCOME_NO_GAIN, false, 8, 0, 0, 0, "screened: a gain of "},
    {0.004, 0.01, MGL_OUTCOME_NO_GAIN, false, 8, 24, 0, 0, "second look: a gain of "},
    {0.03, 0.001, MGL_OUTCOME_OK, true, 8, 24, 64, 0, "3."},
    {0.3, 0.001, MGL_OUTCOME_OK, true, 8, 0, 0, 32, "3"},
};

START_TEST(a_stage_ends_what_has_no_hope)
{
    const runner_script script = {.gain = stages[_i].gain};
    mgl_measurement m = begin(&script, 1);
    runner.noise = stages[_i].noise;
    run(&m);
    ck_assert_msg(trial.verdict.outcome == stages[_i].outcome, "%s", trial.verdict.diagnostic);
    ck_assert_msg(
        !strncmp(trial.verdict.diagnostic, stages[_i].diagnostic, strlen(stages[_i].diagnostic)),
        "%s", trial.verdict.diagnostic);
    assert_stages(stages[_i].screen, stages[_i].survivors, stages[_i].decision, stages[_i].clear);
    ck_assert_int_eq(m.counted, stages[_i].counted);
    ck_assert_double_eq_tol(trial.gain, stages[_i].gain, 0.01);
    ck_assert_double_eq_tol(log(trial.workloads[1].incumbent_us / trial.workloads[1].candidate_us),
                            stages[_i].gain, 0.01);
    ck_assert_int_eq(m.spent[MGL_MEASURE_CHECK].count, 1);
}
END_TEST

/* Equal speed suffices for a simpler program, unless such programs have lost too much already. */
START_TEST(a_simpler_program_needs_no_gain)
{
    const runner_script script = {.gain = 0.0003};
    mgl_measurement m = begin(&script, 1);
    m.simpler = true;
    run(&m);
    ck_assert_msg(trial.verdict.outcome == MGL_OUTCOME_OK, "%s", trial.verdict.diagnostic);
    m = begin(&script, 1);
    m.simpler = true;
    m.lost = -MGL_SIMPLER_LOSS;
    run(&m);
    ck_assert_msg(trial.verdict.outcome == MGL_OUTCOME_NO_GAIN, "%s", trial.verdict.diagnostic);
}
END_TEST

/* The nonce of the repeat derives from the trial's nonce. The trial keeps the errors of its first
 * check. */
START_TEST(a_suspicious_gain_is_measured_again)
{
    static const runner_script equal[] = {{.gain = 1}, {.gain = 1, .error = 5}},
                               other[] = {{.gain = 1}, {.gain = 0.1}},
                               wrong[] = {{.gain = 1}, {.check = MGL_OUTCOME_MISMATCH}};
    char text[MGL_SHA256_HEX + 8];
    unsigned char nonce[MGL_SHA256_BYTES];
    mgl_measurement m = begin(equal, 2);
    run(&m);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_OK);
    ck_assert_int_eq(restarts, 1);
    ck_assert_int_eq(pairs_of(MGL_PAIRS_REPEAT), mgl_judge_pairs(MGL_PAIRS_REPEAT) * WORKLOADS);
    strcat(strcpy(text, trial.nonce), " again");
    mgl_sha256_of(text, strlen(text), nonce);
    ck_assert_mem_eq(runner.nonces[1], nonce, sizeof nonce);
    ck_assert_double_eq(trial.workloads[0].error, 1e-3);
    m = begin(other, 2);
    run(&m);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_SUSPICIOUS);
    ck_assert_double_eq(trial.workloads[0].candidate_us, 0);
    m = begin(wrong, 2);
    run(&m);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_MISMATCH);
    ck_assert_str_eq(trial.verdict.diagnostic, "once more, in a fresh process: scripted");
    ck_assert_double_eq(trial.gain, 0);
}
END_TEST

START_TEST(disturbed_pairs_decide_nothing)
{
    const runner_script script = {.gain = 0.05};
    mgl_measurement m = begin(&script, 1);
    runner.competing = 1; /* the pairs of the first workload */
    run(&m);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_UNMEASURED);
    ck_assert(m.disturbed && !m.counted);
    ck_assert_msg(!strncmp(trial.verdict.diagnostic, "8 of 16 pairs had an event", 26), "%s",
                  trial.verdict.diagnostic);
    ck_assert_double_eq(trial.gain, 0);
    ck_assert_int_eq(trial.pair_count, 16); /* they stay as evidence */
}
END_TEST

START_TEST(a_time_below_the_floor_is_withheld)
{
    const runner_script script = {.gain = 0.05, .below_floor = true};
    mgl_measurement m = begin(&script, 1);
    run(&m);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_SUBFLOOR);
    ck_assert_double_eq(trial.gain, 0);
    ck_assert_double_eq(trial.workloads[0].candidate_us, 0);
    ck_assert_double_gt(trial.workloads[0].stream_us, 0);
}
END_TEST

START_TEST(what_fails_is_not_measured)
{
    const runner_script check = {.check = MGL_OUTCOME_HANG}, pair = {.pair = MGL_OUTCOME_HANG};
    mgl_measurement m = begin(&check, 1);
    run(&m);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_HANG);
    ck_assert_int_eq(trial.pair_count, 0);
    m = begin(&pair, 1);
    run(&m);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_HANG);
    ck_assert_int_eq(runner.pairs, 1);
}
END_TEST

START_TEST(a_control_shows_no_difference)
{
    bool bad = true;
    mgl_measurement m = begin(NULL, 0);
    ck_assert_int_eq(mgl_measure_control(&m, &bad, NULL), MGL_OK);
    ck_assert(!bad && m.decided);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_NO_GAIN);
    ck_assert_int_eq(pairs_of(MGL_PAIRS_CONTROL), mgl_judge_pairs(MGL_PAIRS_CONTROL) * WORKLOADS);
    m = begin(NULL, 0);
    runner.bad_controls = WORKLOADS;
    ck_assert_int_eq(mgl_measure_control(&m, &bad, NULL), MGL_OK);
    ck_assert(bad);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_SUSPICIOUS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("measure");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, a_stage_ends_what_has_no_hope, 0,
                        (int)(sizeof stages / sizeof *stages));
    tcase_add_test(all, a_simpler_program_needs_no_gain);
    tcase_add_test(all, a_suspicious_gain_is_measured_again);
    tcase_add_test(all, disturbed_pairs_decide_nothing);
    tcase_add_test(all, a_time_below_the_floor_is_withheld);
    tcase_add_test(all, what_fails_is_not_measured);
    tcase_add_test(all, a_control_shows_no_difference);
    suite_add_tcase(suite, all);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Tests of profile-guided rounds, with a scripted model and a table instead of a device. */
#include "autotune/kernels/methods/rounds.h"
#include "base/output.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char unit_text[] = "/* region: launch */\n/* region: macros */\n"
                                "/* region: device */\nstart\n/* region: end */\n";
static mgl_model_client *model_client;
static mgl_text instructions[16], requests[64]; /* instructions of the rounds, requests of the
                                                   calls */
static int rounds, calls;
static mgl_ruling rulings[16];
static bool profiled;

static void teardown(void)
{
    mgl_model_client_close(model_client);
    model_client = NULL;
    for (int i = 0; i < 16; i++)
        mgl_text_clear(&instructions[i]);
    for (int i = 0; i < 64; i++)
        mgl_text_clear(&requests[i]);
    rounds = calls = 0;
}

/* The simulated speed of a text is a word in it: "gain N" percent, "bad", or "near" (the floor). */
static mgl_status evaluate(void *user, const char *text, size_t length,
                           const mgl_kernel_value *values, int count, mgl_trial_verdict *out,
                           mgl_error *err)
{
    (void)user, (void)values, (void)count, (void)err;
    const char *gain = memmem(text, length, "gain ", 5);
    out->outcome = MGL_OUTCOME_COMPILE_OTHER;
    if (!gain)
        return MGL_OK;
    out->facts.gain = atof(gain + 5) / 100;
    out->facts.gain_lo = out->facts.gain - 0.005;
    out->facts.time_us = 100;
    out->facts.floor_us = memmem(text, length, "near", 4) ? 95 : 50;
    out->outcome = out->facts.gain >= 0.01 ? MGL_OUTCOME_OK : MGL_OUTCOME_NO_GAIN;
    return MGL_OK;
}

/* The start is bound by DRAM; a text with the word "spill" spills registers. */
static mgl_status profile(void *user, const char *text, size_t length, mgl_profile *out,
                          mgl_error *err)
{
    (void)user, (void)err;
    profiled = true;
    out->values[MGL_METRIC_DRAM] = 80;
    out->values[MGL_METRIC_SPILL] = memmem(text, length, "spill", 5) ? 64 : 0;
    return MGL_OK;
}

static void on_round(void *user, const mgl_round_report *round)
{
    (void)user;
    rulings[rounds] = round->ruling;
    mgl_text_put(&instructions[rounds++], round->instruction);
}

static void on_call(void *user, const mgl_feedback_call *call)
{
    (void)user;
    mgl_text_put(&requests[calls++], call->request);
}

static mgl_rounds_result run(const char *const *answers, int count, bool no_profile, bool one_shot)
{
    static const char path[] = MGL_BINARY_DIR "/test_rounds_script.json";
    const mgl_work work = {.unit = "merge",
                           .op = "merge",
                           .arch = "sm_90a",
                           .evaluator = {evaluate, NULL},
                           .on_call = on_call};
    const mgl_rounds_options options = {.work = &work,
                                        .text = unit_text,
                                        .length = strlen(unit_text),
                                        .region = MGL_KERNEL_REGION_DEVICE,
                                        .profile = profile,
                                        .no_profile = no_profile,
                                        .one_shot = one_shot,
                                        .on_round = on_round};
    mgl_waiter waiter = mgl_waiter_real(NULL);
    mgl_rounds_result out;
    mgl_text script = {0};
    mgl_error err = {0};
    profiled = false;
    for (int i = 0; i < count; i++)
        mgl_text_format(&script, "%s\"```cuda\\n%s\\n```\"", i ? "," : "[", answers[i]);
    mgl_text_put(&script, "]");
    ck_assert_int_eq(mgl_output_write_file(path, script.bytes, script.length, NULL), MGL_OK);
    mgl_text_clear(&script);
    ck_assert_int_eq(mgl_model_client_open_replay(path, &model_client, NULL), MGL_OK);
    ck_assert_msg(mgl_rounds_run(&options, model_client, &waiter, &out, &err) == MGL_OK, "%s",
                  err.message);
    return out;
}

START_TEST(goes_on_until_the_floor)
{
    static const char *const answers[] = {"gain 3", "broken", "gain 2 spill", "gain 4 near"};
    mgl_rounds_result out = run(answers, 4, false, false);
    ck_assert_int_eq(out.rounds, 3);
    ck_assert_int_eq(out.calls, 4);
    ck_assert_int_eq(out.accepted, 3);
    ck_assert_int_eq(out.finish, MGL_FINISH_FLOOR);
    ck_assert_ptr_nonnull(strstr(out.text.bytes, "near"));
    mgl_rounds_result_clear(&out);
}
END_TEST

START_TEST(the_hint_and_what_got_worse_are_told)
{
    static const char *const answers[] = {"gain 3", "gain 2 spill", "gain 4 near"};
    mgl_rounds_result out = run(answers, 3, false, false);
    ck_assert_ptr_nonnull(strstr(instructions[0].bytes, "DRAM bound"));
    ck_assert_ptr_null(strstr(instructions[1].bytes, "It got worse"));
    ck_assert_ptr_nonnull(strstr(instructions[2].bytes, "spill ("));
    ck_assert_ptr_nonnull(strstr(instructions[2].bytes, "bytes spilled a thread 0 -> 64"));
    ck_assert_ptr_nonnull(strstr(requests[2].bytes, "bytes spilled a thread 0 -> 64"));
    mgl_rounds_result_clear(&out);
}
END_TEST

START_TEST(five_rounds_without_gain_end_it)
{
    static const char *const answers[] = {"gain 0.1", "gain 0.2", "gain 0.3",
                                          "gain 0.4", "gain 0.5", "gain 5"};
    mgl_rounds_result out = run(answers, 6, false, false);
    ck_assert_int_eq(out.rounds, 5);
    ck_assert_int_eq(out.finish, MGL_FINISH_PLATEAU);
    ck_assert_str_eq(out.text.bytes, unit_text);
    ck_assert(rulings[2].stand);
    ck_assert(!rulings[3].stand);
    /* the fifth round starts from the start again */
    ck_assert_ptr_nonnull(strstr(requests[4].bytes, "start"));
    ck_assert_ptr_null(strstr(requests[3].bytes, "\\nstart\\n"));
    mgl_rounds_result_clear(&out);
}
END_TEST

START_TEST(eight_rounds_at_most)
{
    static const char *const answers[] = {"gain 11", "gain 12", "gain 13", "gain 14", "gain 15",
                                          "gain 16", "gain 17", "gain 18", "gain 19"};
    mgl_rounds_result out = run(answers, 9, false, false);
    ck_assert_int_eq(out.rounds, 8);
    ck_assert_int_eq(out.finish, MGL_FINISH_ROUNDS);
    mgl_rounds_result_clear(&out);
}
END_TEST

START_TEST(without_a_profile_there_is_no_hint)
{
    static const char *const answers[] = {"gain 3 near"};
    mgl_rounds_result out = run(answers, 1, true, false);
    ck_assert(!profiled);
    ck_assert_ptr_null(strstr(instructions[0].bytes, "in its way"));
    mgl_rounds_result_clear(&out);
}
END_TEST

START_TEST(one_shot_is_one_call)
{
    static const char *const answers[] = {"broken", "gain 3"};
    mgl_rounds_result out = run(answers, 2, false, true);
    ck_assert_int_eq(out.calls, 1);
    ck_assert_int_eq(out.rounds, 1);
    ck_assert_int_eq(out.accepted, 0);
    mgl_rounds_result_clear(&out);
}
END_TEST

START_TEST(a_model_that_ends_stops_it)
{
    static const char *const answers[] = {"gain 3"};
    mgl_rounds_result out = run(answers, 1, false, false);
    ck_assert_int_eq(out.stopped, MGL_OUTCOME_PROPOSER_BUDGET);
    ck_assert_int_eq(out.accepted, 1);
    mgl_rounds_result_clear(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rounds");
    TCase *tests = tcase_create("rounds");
    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, goes_on_until_the_floor);
    tcase_add_test(tests, the_hint_and_what_got_worse_are_told);
    tcase_add_test(tests, five_rounds_without_gain_end_it);
    tcase_add_test(tests, eight_rounds_at_most);
    tcase_add_test(tests, without_a_profile_there_is_no_hint);
    tcase_add_test(tests, one_shot_is_one_call);
    tcase_add_test(tests, a_model_that_ends_stops_it);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

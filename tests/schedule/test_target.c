/* Tests of targets by name. */
#include "schedule/schedule.h"

#include <check.h>
#include <string.h>

static const struct {
    const char *text, *arch;
    int queues;
    int64_t shared;
} good[] = {
    {"cpu:1", "cpu", 1, 0},
    {"cpu:256", "cpu", 256, 0},
    {"sm_80:108", "sm_80", 108, 166912},
    {"sm_86:84", "sm_86", 84, 101376},
    {"sm_89:128", "sm_89", 128, 101376},
    {"sm_90a:132", "sm_90a", 132, 232448},
    {"sm_100a:148", "sm_100a", 148, 232448},
    {"sm_120a:170", "sm_120a", 170, 101376},
};

START_TEST(known_targets)
{
    mgl_target target;
    mgl_error err = {0};
    mgl_status status = mgl_target_parse(good[_i].text, &target, &err);
    ck_assert_msg(status == MGL_OK, "%s", err.message);
    ck_assert_str_eq(target.arch, good[_i].arch);
    ck_assert_int_eq(target.queues, good[_i].queues);
    ck_assert_int_eq(target.shared_bytes, good[_i].shared);
}
END_TEST

static const struct {
    const char *text, *says;
} bad[] = {
    {"", "is not one of cpu, sm_80"},
    {":", "is not one of cpu, sm_80"},
    {"sm_90:132", "`sm_90` is not one of cpu, sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a"},
    {"SM_90A:132", "is not one of"},
    {"sm_90a", "sm_90a:132"},
    {"sm_90a:", "1 to 256 queues"},
    {"sm_90a:0", "1 to 256 queues"},
    {"sm_90a:257", "1 to 256 queues"},
    {"sm_90a:-1", "1 to 256 queues"},
    {"sm_90a:+1", "1 to 256 queues"},
    {"sm_90a: 1", "1 to 256 queues"},
    {"sm_90a:1 ", "1 to 256 queues"},
    {"sm_90a:1:1", "1 to 256 queues"},
    {"sm_90a:99999999999999999999", "1 to 256 queues"},
    {"cpu:1x", "cpu:1"},
    {"cp:1", "is not one of"},
    {"cpux:1", "is not one of"},
};

START_TEST(rejected_targets)
{
    mgl_target target = {.queues = -7};
    mgl_error err = {0};
    ck_assert_int_eq(mgl_target_parse(bad[_i].text, &target, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, bad[_i].says) != NULL, "%s", err.message);
    ck_assert_str_eq(err.where, bad[_i].text);
    ck_assert_int_eq(target.queues, -7);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule target");
    TCase *cases = tcase_create("target");
    tcase_add_loop_test(cases, known_targets, 0, (int)(sizeof good / sizeof *good));
    tcase_add_loop_test(cases, rejected_targets, 0, (int)(sizeof bad / sizeof *bad));
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

/* Tests of the points of a configuration space, and of the choice of the best tunable values. */
#include "autotune/kernels/methods/configurations.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const mgl_tunable small[] = {{"A", {1, 2, 4}, 3}, {"B", {0, 8}, 2}};
static mgl_tunable large[4]; /* 16 values per axis: 65,536 points */

static void setup(void)
{
    static const char *const names[] = {"A", "B", "C", "D"};
    for (int i = 0; i < 4; i++) {
        large[i] = (mgl_tunable){.name = names[i], .count = 16};
        for (int v = 0; v < 16; v++)
            large[i].values[v] = v;
    }
}

START_TEST(a_small_space_is_taken_whole)
{
    mgl_point points[16];
    ck_assert_int_eq(mgl_sample_points(small, 2, 16, 1, points), 6);
    ck_assert_int_eq(points[0].values[0], 1);
    ck_assert_int_eq(points[0].values[1], 0);
    ck_assert_int_eq(points[5].values[0], 4);
    ck_assert_int_eq(points[5].values[1], 8);
}
END_TEST

START_TEST(a_large_space_has_its_corners_and_no_point_twice)
{
    mgl_point points[64];
    ck_assert_int_eq(mgl_sample_points(large, 4, 64, 7, points), 64);
    for (int c = 0; c < 16; c++) {
        mgl_point corner = {0};
        for (int i = 0; i < 4; i++)
            corner.values[i] = c >> i & 1 ? 15 : 0;
        ck_assert(mgl_point_stands(points, 64, &corner, 4));
    }
    for (int i = 1; i < 64; i++)
        ck_assert(!mgl_point_stands(points, i, &points[i], 4));
}
END_TEST

START_TEST(a_seed_says_which_points)
{
    mgl_point a[64], b[64], c[64];
    mgl_sample_points(large, 4, 64, 7, a);
    mgl_sample_points(large, 4, 64, 7, b);
    mgl_sample_points(large, 4, 64, 8, c);
    ck_assert(!memcmp(a, b, sizeof a));
    ck_assert(memcmp(a, c, sizeof a) != 0);
}
END_TEST

/* ---- configurations -------------------------------------------------------------------------- */

/* Time: 1 plus the distance from (9, 9, 9, 9). Wrong if A is 0, pruned if B is 1. */
static mgl_status evaluate(void *user, const char *text, size_t length,
                           const mgl_kernel_value *values, int count, mgl_trial_verdict *out,
                           mgl_error *err)
{
    double time = 1;
    (void)text, (void)length, (void)err;
    for (int i = 0; i < count; i++)
        time += fabs((double)values[i].value - 9);
    if (user)
        out->facts.time_us = time;
    out->outcome = values[0].value == 0                ? MGL_OUTCOME_MISMATCH
                   : count > 1 && values[1].value == 1 ? MGL_OUTCOME_INVALID_CONFIG
                                                       : MGL_OUTCOME_UNMEASURED;
    return MGL_OK;
}

static int timed;

START_TEST(all_of_a_small_space_are_evaluated)
{
    const mgl_configurations_options options = {
        .text = "", .tunables = small, .tunable_count = 2, .evaluator = {evaluate, NULL}};
    mgl_configurations out;
    ck_assert_int_eq(mgl_configurations_find(&options, &out, NULL), MGL_OK);
    ck_assert_int_eq(out.evaluated, 6);
    ck_assert_int_eq(out.count, 6);
    ck_assert(out.all);
    ck_assert_int_eq(out.list[0].order, 0); /* without a model, in order */
    mgl_configurations_clear(&out);
}
END_TEST

START_TEST(what_does_not_go_together_is_pruned)
{
    static const char *const names[] = {"a", "b"};
    mgl_expression valid;
    ck_assert_int_eq(mgl_expression_parse("8 - a * b", names, 2, &valid, NULL), MGL_OK);
    const mgl_validity rules[] = {{&valid, 0}};
    const mgl_configurations_options options = {.text = "",
                                                .tunables = small,
                                                .tunable_count = 2,
                                                .valid = rules,
                                                .valid_count = 1,
                                                .evaluator = {evaluate, NULL}};
    mgl_configurations out;
    ck_assert_int_eq(mgl_configurations_find(&options, &out, NULL), MGL_OK);
    ck_assert_int_eq(out.evaluated, 3);
    ck_assert_int_eq(out.pruned, 3);
    mgl_configurations_clear(&out);
}
END_TEST

START_TEST(a_large_space_is_searched)
{
    const mgl_configurations_options options = {.text = "",
                                                .tunables = large,
                                                .tunable_count = 4,
                                                .evaluator = {evaluate, &timed},
                                                .seed = 3};
    mgl_configurations out;
    ck_assert_int_eq(mgl_configurations_find(&options, &out, NULL), MGL_OK);
    ck_assert_int_le(out.evaluated, MGL_CONFIGURATIONS_ALL);
    ck_assert_int_eq(out.count, MGL_CONFIGURATIONS_CARRY);
    ck_assert(!out.all);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(out.list[0].point.values[i], 9);
    for (int i = 1; i < out.count; i++)
        ck_assert_double_ge(out.list[i].verdict.facts.time_us,
                            out.list[i - 1].verdict.facts.time_us);
    mgl_configurations_clear(&out);
}
END_TEST

START_TEST(as_many_as_wanted_are_carried)
{
    const mgl_configurations_options options = {.text = "",
                                                .tunables = large,
                                                .tunable_count = 4,
                                                .evaluator = {evaluate, &timed},
                                                .most = 100,
                                                .carry = 16};
    mgl_configurations out;
    ck_assert_int_eq(mgl_configurations_find(&options, &out, NULL), MGL_OK);
    ck_assert_int_eq(out.count, 16);
    ck_assert_int_le(out.evaluated, 100);
    mgl_configurations_clear(&out);
}
END_TEST

/* Start configurations with values of two axes are tried first, with values of the other axes,
 * before any point is drawn. */
START_TEST(what_was_carried_comes_first)
{
    const mgl_configuration start[] = {{.point = {{9, 9}}}, {.point = {{9, 8}}}};
    const mgl_configurations_options options = {.text = "",
                                                .tunables = large,
                                                .tunable_count = 4,
                                                .evaluator = {evaluate, &timed},
                                                .most = 40,
                                                .start = start,
                                                .start_count = 2,
                                                .start_axes = 2};
    mgl_configurations out;
    int carried = 0;
    ck_assert_int_eq(mgl_configurations_find(&options, &out, NULL), MGL_OK);
    for (int i = 0; i < out.count; i++)
        carried += out.list[i].order < 20 && out.list[i].point.values[0] == 9 &&
                   out.list[i].point.values[1] >= 8;
    ck_assert_int_eq(carried, 20);
    mgl_configurations_clear(&out);
}
END_TEST

START_TEST(a_rule_is_of_its_own_tunables)
{
    static const char *const names[] = {"b"};
    mgl_expression valid;
    ck_assert_int_eq(mgl_expression_parse("1 - b", names, 1, &valid, NULL), MGL_OK);
    const mgl_validity rules[] = {{&valid, 1}};
    const mgl_configurations_options options = {.text = "",
                                                .tunables = small,
                                                .tunable_count = 2,
                                                .valid = rules,
                                                .valid_count = 1,
                                                .evaluator = {evaluate, NULL}};
    mgl_configurations out;
    ck_assert_int_eq(mgl_configurations_find(&options, &out, NULL), MGL_OK);
    ck_assert_int_eq(out.count, 3);
    for (int i = 0; i < out.count; i++)
        ck_assert_int_eq(out.list[i].point.values[1], 0);
    mgl_configurations_clear(&out);
}
END_TEST

START_TEST(a_text_without_tunables_has_one_configuration)
{
    mgl_point point;
    ck_assert_int_eq(mgl_sample_points(NULL, 0, 1, 1, &point), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("configurations");
    TCase *tests = tcase_create("configurations");
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, a_small_space_is_taken_whole);
    tcase_add_test(tests, a_large_space_has_its_corners_and_no_point_twice);
    tcase_add_test(tests, a_seed_says_which_points);
    tcase_add_test(tests, all_of_a_small_space_are_evaluated);
    tcase_add_test(tests, what_does_not_go_together_is_pruned);
    tcase_add_test(tests, a_large_space_is_searched);
    tcase_add_test(tests, as_many_as_wanted_are_carried);
    tcase_add_test(tests, what_was_carried_comes_first);
    tcase_add_test(tests, a_rule_is_of_its_own_tunables);
    tcase_add_test(tests, a_text_without_tunables_has_one_configuration);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

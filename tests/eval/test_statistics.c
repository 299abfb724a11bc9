/* Tests of order statistics: the median, the extremes, and interpolation. */
#include <check.h>

#include "eval/statistics.h"

START_TEST(the_median_of_odd_counts_is_a_sample)
{
    const double samples[] = {5, 1, 4, 2, 3};
    ck_assert_double_eq(mgl_median(samples, 5), 3);
}
END_TEST

START_TEST(the_median_of_even_counts_is_between_two)
{
    const double samples[] = {4, 1, 3, 2};
    ck_assert_double_eq_tol(mgl_median(samples, 4), 2.5, 1e-12);
}
END_TEST

START_TEST(the_ends_are_the_extremes)
{
    const double samples[] = {4, 1, 3, 2};
    ck_assert_double_eq(mgl_quantile(samples, 4, 0), 1);
    ck_assert_double_eq(mgl_quantile(samples, 4, 1), 4);
}
END_TEST

START_TEST(shares_lie_between_neighbours)
{
    const double samples[] = {10, 0, 30, 20, 40};
    ck_assert_double_eq_tol(mgl_quantile(samples, 5, 0.1), 4, 1e-12);
    ck_assert_double_eq_tol(mgl_quantile(samples, 5, 0.9), 36, 1e-12);
}
END_TEST

START_TEST(one_sample_is_all_of_them)
{
    const double samples[] = {7};
    ck_assert_double_eq(mgl_quantile(samples, 1, 0.1), 7);
    ck_assert_double_eq(mgl_quantile(samples, 1, 0.9), 7);
}
END_TEST

START_TEST(samples_stay_as_they_were)
{
    double samples[] = {3, 1, 2};
    mgl_median(samples, 3);
    ck_assert_double_eq(samples[0], 3);
    ck_assert_double_eq(samples[2], 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("statistics");
    TCase *tests = tcase_create("statistics");
    tcase_add_test(tests, the_median_of_odd_counts_is_a_sample);
    tcase_add_test(tests, the_median_of_even_counts_is_between_two);
    tcase_add_test(tests, the_ends_are_the_extremes);
    tcase_add_test(tests, shares_lie_between_neighbours);
    tcase_add_test(tests, one_sample_is_all_of_them);
    tcase_add_test(tests, samples_stay_as_they_were);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

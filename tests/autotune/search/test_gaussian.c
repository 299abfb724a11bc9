/*
 * Tests of Gaussian process regression: interpolation, predictions far from the data, and expected
 * improvement.
 */
#include "autotune/search/gaussian.h"

#include <check.h>
#include <stdlib.h>

START_TEST(a_process_goes_through_its_points)
{
    double covariance[9] = {1, 0, 0, 0.6, 1, 0, 0.2, 0.6, 1}, weights[3], scratch[3];
    static const double y[3] = {1, -2, 0.5}, to[3] = {0.6, 1, 0.6};
    ck_assert(mgl_gaussian_factor(covariance, 3));
    mgl_gaussian_solve(covariance, 3, y, weights);
    mgl_gaussian_point p = mgl_gaussian_predict(covariance, weights, 3, 2, to, 1, scratch);
    ck_assert_double_eq_tol(p.mean, -2, 1e-9);
    ck_assert_double_eq_tol(p.deviation, 0, 1e-6);
}
END_TEST

START_TEST(far_from_its_points_a_process_knows_nothing)
{
    double covariance[1] = {1}, weights[1], scratch[1];
    static const double y[1] = {3}, to[1] = {0};
    ck_assert(mgl_gaussian_factor(covariance, 1));
    mgl_gaussian_solve(covariance, 1, y, weights);
    mgl_gaussian_point p = mgl_gaussian_predict(covariance, weights, 1, 4, to, 1, scratch);
    ck_assert_double_eq(p.mean, 0);
    ck_assert_double_eq_tol(p.deviation, 2, 1e-9);
}
END_TEST

START_TEST(what_is_no_covariance_is_rejected)
{
    double covariance[4] = {1, 0, 2, 1};
    ck_assert(!mgl_gaussian_factor(covariance, 2));
}
END_TEST

START_TEST(expected_improvement_is_the_formula_s)
{
    mgl_gaussian_point at_best = {5, 2}, sure = {4, 0}, worse = {6, 0};
    ck_assert_double_eq_tol(mgl_expected_improvement(at_best, 5), 2 * 0.3989422804, 1e-9);
    ck_assert_double_eq(mgl_expected_improvement(sure, 5), 1);
    ck_assert_double_eq(mgl_expected_improvement(worse, 5), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gaussian");
    TCase *tests = tcase_create("gaussian");
    tcase_add_test(tests, a_process_goes_through_its_points);
    tcase_add_test(tests, far_from_its_points_a_process_knows_nothing);
    tcase_add_test(tests, what_is_no_covariance_is_rejected);
    tcase_add_test(tests, expected_improvement_is_the_formula_s);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

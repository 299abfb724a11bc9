/*
 * Tests of the comparison of logits and tokens with a reference: what passes, what fails, and the
 * error pattern that is reported.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/runner/compare.h"
#include "autotune/search/proposer.h"
#include "eval/bench.h"

enum { VOCAB = 1024 };

static float wanted[VOCAB], logits[VOCAB];
static mgl_trial_verdict verdict;
static double error;

/* Approximately normal numbers: sums of uniform numbers (central limit theorem). */
static float draw(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (double)(mgl_draw(state) >> 11) * 0x1p-53;
    return (float)(sum - 6);
}

static void setup(void)
{
    uint64_t state = 7;
    for (int i = 0; i < VOCAB; i++)
        logits[i] = wanted[i] = draw(&state);
    verdict.diagnostic[0] = 0;
}

static mgl_outcome compare(void)
{
    mgl_compare_place at = {{4, 512}, 2, 7};
    mgl_compare_logits(&at, logits, wanted, VOCAB, &error, &verdict);
    return verdict.outcome;
}

static void is_mismatch(const char *pattern)
{
    ck_assert_int_eq(compare(), MGL_OUTCOME_MISMATCH);
    const char *end = strrchr(verdict.diagnostic, ':');
    ck_assert_msg(end && !strcmp(end + 2, pattern), "%s", verdict.diagnostic);
}

START_TEST(equal_logits_pass)
{
    ck_assert_int_eq(compare(), MGL_OUTCOME_OK);
    ck_assert_double_eq(error, 0);
}
END_TEST

START_TEST(errors_of_rounding_pass)
{
    uint64_t state = 9;
    for (int i = 0; i < VOCAB; i++)
        logits[i] += 0.01f * draw(&state);
    ck_assert_int_eq(compare(), MGL_OUTCOME_OK);
    ck_assert_double_eq_tol(error, 0.01, 0.002);
}
END_TEST

START_TEST(a_diagnostic_says_where_and_how_far)
{
    logits[100] += 100;
    ck_assert_int_eq(compare(), MGL_OUTCOME_MISMATCH);
    ck_assert_msg(
        strstr(verdict.diagnostic, "batch 4, context 512, sequence 2, step 7: relative L2 3.") &&
            strstr(verdict.diagnostic, "largest error 100 ") &&
            strstr(verdict.diagnostic, "first bad logit 100, 0.0977 % bad"),
        "%s", verdict.diagnostic);
}
END_TEST

START_TEST(zeros_are_told)
{
    memset(logits, 0, sizeof logits);
    is_mismatch("all zero");
}
END_TEST

START_TEST(a_factor_is_told)
{
    for (int i = 0; i < VOCAB; i++)
        logits[i] *= 1.5f;
    is_mismatch("a constant factor of 1.5");
}
END_TEST

START_TEST(a_row_group_is_told)
{
    for (int i = 80; i < 88; i++)
        logits[i] += 3;
    is_mismatch("one row group");
}
END_TEST

START_TEST(every_kth_is_told)
{
    for (int i = 5; i < VOCAB; i += 16)
        logits[i] += 2;
    is_mismatch("every 16-th");
}
END_TEST

START_TEST(a_tail_is_told)
{
    for (int i = 900; i < VOCAB; i++)
        logits[i] += 2;
    is_mismatch("the tail only");
}
END_TEST

START_TEST(a_run_is_told)
{
    for (int i = 300; i < 400; i++)
        logits[i] += 2;
    is_mismatch("one run, up to 399");
}
END_TEST

START_TEST(what_is_wrong_everywhere_is_told)
{
    uint64_t state = 11;
    for (int i = 0; i < VOCAB; i++)
        logits[i] += 5 + draw(&state);
    is_mismatch("all of them");
}
END_TEST

START_TEST(scattered_errors_are_told)
{
    uint64_t state = 13;
    for (int i = 0; i < 60; i++)
        logits[mgl_draw(&state) % VOCAB] += 2;
    is_mismatch("scattered");
}
END_TEST

static void set_bits(int i, uint32_t bits)
{
    memcpy(&logits[i], &bits, sizeof bits);
}

START_TEST(a_pattern_of_poison_is_unwritten)
{
    static const uint32_t poison[] = {0x7FA17FA1u, 0xA5A5A5A5u};
    set_bits(17, poison[_i]);
    ck_assert_int_eq(compare(), MGL_OUTCOME_UNWRITTEN);
    ck_assert_msg(strstr(verdict.diagnostic, "first logit 17"), "%s", verdict.diagnostic);
    ck_assert_double_eq(error, -1);
}
END_TEST

START_TEST(what_is_no_number_is_told)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    logits[1000] = bad[_i];
    ck_assert_int_eq(compare(), MGL_OUTCOME_NONFINITE);
}
END_TEST

/* ---- tokens ---------------------------------------------------------------------------------- */

/* If the logits have errors at the limit, the chosen token's exact logit is within the tolerance of
 * the largest, in many random draws. */
START_TEST(the_room_holds_for_errors_at_the_limit)
{
    uint64_t state = 17;
    for (int trial = 0; trial < 300; trial++) {
        double norm = 0, largest = -INFINITY, best = -INFINITY;
        int chosen = 0;
        for (int i = 0; i < VOCAB; i++) {
            wanted[i] = draw(&state);
            norm += (double)wanted[i] * (double)wanted[i];
            largest = fmax(largest, (double)wanted[i]);
        }
        norm = sqrt(norm);
        for (int i = 0; i < VOCAB; i++) {
            double l =
                (double)wanted[i] + MGL_BENCH_ERROR * norm / sqrt(VOCAB) * (double)draw(&state);
            if (l > best)
                best = l, chosen = i;
        }
        ck_assert_double_le(largest - (double)wanted[chosen], mgl_compare_room(norm, VOCAB));
    }
}
END_TEST

START_TEST(the_room_is_small)
{
    /* norm of 128,256 logits with a root mean square of 1 */
    ck_assert_double_eq_tol(mgl_compare_room(sqrt(128256), 128256), 0.228, 0.002);
}
END_TEST

static int compare_tokens(float below)
{
    static const int32_t made[6] = {1, 2, 3, 4, 5, 6};
    float largest[6] = {9, 9, 9, 9, 9, 9}, chosen[6] = {9, 9, 9, 9, 9, 9}, norms[6];
    for (int i = 0; i < 6; i++)
        norms[i] = 32; /* root mean square 1 */
    chosen[4] -= below;
    mgl_compare_reference reference = {largest, chosen, norms};
    return mgl_compare_tokens((mgl_workload){2, 0}, 3, made, &reference, VOCAB, &verdict);
}

START_TEST(a_token_near_the_largest_passes)
{
    ck_assert_int_eq(compare_tokens(0.1f), -1);
}
END_TEST

START_TEST(a_token_far_below_does_not)
{
    ck_assert_int_eq(compare_tokens(0.5f), 4);
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_SEMANTIC);
    ck_assert_msg(
        strstr(verdict.diagnostic, "sequence 1, step 1: the f32 logit of token 5 is 0.5 below"),
        "%s", verdict.diagnostic);
}
END_TEST

START_TEST(a_token_that_is_compared_with_no_number_does_not_pass)
{
    ck_assert_int_eq(compare_tokens(NAN), 4);
}
END_TEST

START_TEST(a_token_outside_of_the_vocabulary_is_told)
{
    static const int32_t low[] = {0, -1}, high[] = {VOCAB, 0}, good[] = {0, VOCAB - 1};
    mgl_workload one = {1, 0};
    ck_assert(!mgl_compare_known(one, 2, low, VOCAB, &verdict));
    ck_assert(!mgl_compare_known(one, 2, high, VOCAB, &verdict));
    ck_assert(mgl_compare_known(one, 2, good, VOCAB, &verdict));
}
END_TEST

START_TEST(words_are_compared_bit_by_bit)
{
    float a[] = {1, 0, NAN}, b[] = {1, -0.0f, NAN};
    ck_assert_int_eq(mgl_compare_words(a, a, 3), -1);
    ck_assert_int_eq(mgl_compare_words(a, b, 3), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compare");
    TCase *tests = tcase_create("compare");
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, equal_logits_pass);
    tcase_add_test(tests, errors_of_rounding_pass);
    tcase_add_test(tests, a_diagnostic_says_where_and_how_far);
    tcase_add_test(tests, zeros_are_told);
    tcase_add_test(tests, a_factor_is_told);
    tcase_add_test(tests, a_row_group_is_told);
    tcase_add_test(tests, every_kth_is_told);
    tcase_add_test(tests, a_tail_is_told);
    tcase_add_test(tests, a_run_is_told);
    tcase_add_test(tests, what_is_wrong_everywhere_is_told);
    tcase_add_test(tests, scattered_errors_are_told);
    tcase_add_loop_test(tests, a_pattern_of_poison_is_unwritten, 0, 2);
    tcase_add_loop_test(tests, what_is_no_number_is_told, 0, 3);
    tcase_add_test(tests, the_room_holds_for_errors_at_the_limit);
    tcase_add_test(tests, the_room_is_small);
    tcase_add_test(tests, a_token_near_the_largest_passes);
    tcase_add_test(tests, a_token_far_below_does_not);
    tcase_add_test(tests, a_token_that_is_compared_with_no_number_does_not_pass);
    tcase_add_test(tests, a_token_outside_of_the_vocabulary_is_told);
    tcase_add_test(tests, words_are_compared_bit_by_bit);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

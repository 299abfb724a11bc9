/* Tests of sliding windows over texts longer than the capacity: the tokens that a window reads and
 * scores, and the sums. */
#include "tests/scoring.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY = 24, LONG = 100 };

static mgl_error err;

/* ---- where windows lie ----------------------------------------------------------------------- */

typedef struct layout {
    size_t count, capacity, stride;
    const char *windows; /* begin:scored:end of each */
} layout;

static const layout layouts[] = {
    {10, 4, 2, "0:1:4 2:4:6 4:6:8 6:8:10 "},
    {11, 4, 2, "0:1:4 2:4:6 4:6:8 6:8:10 8:10:11 "},
    {9, 4, 3, "0:1:4 3:4:7 6:7:9 "},
    {6, 4, 1, "0:1:4 1:4:5 2:5:6 "},
    {9, 4, 4, "0:1:4 4:5:8 8:9:9 "}, /* nothing is known before tokens 4 and 8 */
    {4, 4, 2, "0:1:4 "},
    {2, 4, 1, "0:1:2 "},
    {1, 4, 1, "0:1:1 "},
    {0, 4, 1, ""},
    {3, 1, 1, "0:1:1 1:2:2 2:3:3 "},
};

START_TEST(windows_lie)
{
    const layout *l = &layouts[_i];
    char said[256] = "";
    size_t read = 0;
    mgl_eval_window w = {0};
    while (mgl_eval_window_next(&w, l->count, l->capacity, l->stride)) {
        size_t at = strlen(said);
        snprintf(said + at, sizeof said - at, "%zu:%zu:%zu ", w.begin, w.scored, w.end);
        read += w.end - w.begin;
    }
    ck_assert_str_eq(said, l->windows);
    ck_assert_uint_eq(mgl_eval_count_read(l->count, l->capacity, l->stride), read);
}
END_TEST

/* Each token except the first counts once, with at least capacity - stride tokens before it. */
START_TEST(each_token_counts_once)
{
    for (size_t count = 0; count < 40; count++)
        for (size_t capacity = 2; capacity < 12; capacity++)
            for (size_t stride = 1; stride < capacity; stride++) {
                size_t next = 1, known = capacity - stride;
                mgl_eval_window w = {0};
                while (mgl_eval_window_next(&w, count, capacity, stride)) {
                    ck_assert_uint_le(w.end - w.begin, capacity);
                    ck_assert_uint_eq(w.scored, next);
                    ck_assert(w.begin == 0 || w.scored - w.begin == known);
                    next = w.end;
                }
                ck_assert_uint_eq(next, count > 1 ? count : 1);
            }
}
END_TEST

/* ---- what they add up to --------------------------------------------------------------------- */

static mgl_model *model;
static int32_t ids[LONG];

static void set_up(void)
{
    char path[1024];
    const char *root = getenv("MGL_TEST_MODELS");
    mgl_open_options options = {.size = sizeof options, .device = "cpu", .capacity = CAPACITY};
    snprintf(path, sizeof path, "%s/qwen2", root ? root : MGL_SOURCE_DIR "/tests/models");
    ck_assert_msg(!mgl_model_open(path, &options, &model, &err), "%s", err.message);
    for (int i = 0; i < LONG; i++)
        ids[i] = (i * 37 + i * i) % 90 + 1;
}

static void tear_down(void)
{
    mgl_model_close(model);
}

/* The sum of tokens [scored, end) of a window at `begin`. */
static double sum_of(size_t begin, size_t scored, size_t end)
{
    float logprob[CAPACITY];
    double sum = 0;
    ck_assert_int_eq(mgl_model_score(model, ids + begin, end - begin, logprob, &err), MGL_OK);
    for (size_t i = scored; i < end; i++)
        sum -= (double)logprob[i - begin];
    return sum;
}

static bool add_tokens(void *user, size_t tokens)
{
    *(size_t *)user += tokens;
    return true;
}

START_TEST(a_long_text_is_the_sum_of_its_windows)
{
    mgl_ids text = {ids, 50};
    size_t read = 0;
    mgl_eval_options options = {.stride = 10, .progress = add_tokens, .user = &read};
    mgl_eval_result result;
    double nll = sum_of(0, 1, 24) + sum_of(10, 24, 34) + sum_of(20, 34, 44) + sum_of(30, 44, 50);
    ck_assert_int_eq(score_texts(model, &text, 1, &options, &result, &err), MGL_OK);
    ck_assert_double_eq(result.nll, nll);
    ck_assert_uint_eq(result.tokens, 49);
    ck_assert_uint_eq(result.windows, 4);
    ck_assert_uint_eq(result.capacity, CAPACITY);
    ck_assert_double_eq(result.perplexity, exp(nll / 49));
    ck_assert_uint_eq(read, 24 + 24 + 24 + 20);
}
END_TEST

/* With adjacent windows, the first token of each has no context and is not scored. */
START_TEST(windows_side_by_side)
{
    mgl_ids text = {ids, 49};
    mgl_eval_options options = {.stride = CAPACITY};
    mgl_eval_result result;
    double nll = sum_of(0, 1, 24) + sum_of(24, 25, 48);
    ck_assert_int_eq(score_texts(model, &text, 1, &options, &result, &err), MGL_OK);
    ck_assert_double_eq(result.nll, nll);
    ck_assert_uint_eq(result.tokens, 23 + 23);
}
END_TEST

START_TEST(a_text_that_fits_needs_no_window)
{
    mgl_ids text = {ids, CAPACITY};
    mgl_eval_options options = {.stride = 3};
    mgl_eval_result plain, window;
    ck_assert_int_eq(score_texts(model, &text, 1, NULL, &plain, &err), MGL_OK);
    ck_assert_int_eq(score_texts(model, &text, 1, &options, &window, &err), MGL_OK);
    ck_assert_double_eq(plain.nll, window.nll);
    ck_assert_uint_eq(window.windows, 1);
}
END_TEST

START_TEST(a_long_text_without_a_window_is_rejected)
{
    mgl_ids texts[] = {{ids, 3}, {ids, CAPACITY + 1}};
    mgl_eval_result result;
    ck_assert_int_eq(score_texts(model, texts, 2, NULL, &result, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.message,
                     "text 1: 25 tokens are more than the 24 positions of the KV cache "
                     "(the capacity, at most max_position_embeddings or sliding_window); `eval "
                     "--stride N` reads longer texts through a window");
    ck_assert_int_eq(mgl_eval_check_fit(CAPACITY, CAPACITY, &err), MGL_OK);
    ck_assert_int_eq(mgl_eval_check_fit(CAPACITY + 1, CAPACITY, &err), MGL_BAD_INPUT);
}
END_TEST

START_TEST(a_stride_that_leaves_tokens_out_is_rejected)
{
    mgl_ids text = {ids, LONG};
    mgl_eval_options options = {.stride = CAPACITY + 1};
    mgl_eval_result result;
    ck_assert_int_eq(score_texts(model, &text, 1, &options, &result, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "stride");
}
END_TEST

static bool stop(void *user, size_t tokens)
{
    (void)user;
    (void)tokens;
    return false;
}

START_TEST(whoever_looks_on_can_end_it)
{
    mgl_ids text = {ids, LONG};
    mgl_eval_options options = {.stride = 5, .progress = stop};
    mgl_eval_result result;
    ck_assert_int_eq(score_texts(model, &text, 1, &options, &result, &err), MGL_INTERRUPTED);
}
END_TEST

/* An error in a window says where the window begins. */
START_TEST(an_error_names_the_window)
{
    mgl_ids text = {ids, LONG};
    mgl_eval_options options = {.stride = 12};
    mgl_eval_result result;
    ids[40] = -1;
    ck_assert_int_eq(score_texts(model, &text, 1, &options, &result, &err), MGL_BAD_INPUT);
    ck_assert_ptr_eq(strstr(err.message, "text 0, from token 24 on: token 16 is -1"), err.message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("window");
    TCase *layout_tests = tcase_create("layout"), *sums = tcase_create("sums");
    tcase_add_loop_test(layout_tests, windows_lie, 0, (int)(sizeof layouts / sizeof *layouts));
    tcase_add_test(layout_tests, each_token_counts_once);
    tcase_add_checked_fixture(sums, set_up, tear_down);
    tcase_add_test(sums, a_long_text_is_the_sum_of_its_windows);
    tcase_add_test(sums, windows_side_by_side);
    tcase_add_test(sums, a_text_that_fits_needs_no_window);
    tcase_add_test(sums, a_long_text_without_a_window_is_rejected);
    tcase_add_test(sums, a_stride_that_leaves_tokens_out_is_rejected);
    tcase_add_test(sums, whoever_looks_on_can_end_it);
    tcase_add_test(sums, an_error_names_the_window);
    suite_add_tcase(suite, layout_tests);
    suite_add_tcase(suite, sums);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

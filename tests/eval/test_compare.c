/* Tests of the comparison of two models (eval/compare.h), with models whose logits are known: the
 * divergence computed by hand, the quantile, ties, windows and errors. */
#include "base/error.h"
#include "eval/compare.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { VOCAB = 4, LONG = 3000 };

static mgl_error err;
static int32_t ids[LONG];

/* A model with the same logits at all positions, except after the token `special`. */
typedef struct table {
    float plain[VOCAB], after[VOCAB];
    int32_t special; /* -1: none */
    size_t most;     /* largest number of rows of a call */
} table;

static mgl_status read_table(void *user, const int32_t *text, size_t count, size_t begin,
                             float *logits, mgl_error *error)
{
    table *t = user;
    (void)error;
    t->most = count - 1 - begin > t->most ? count - 1 - begin : t->most;
    for (size_t i = begin; i + 1 < count; i++)
        memcpy(logits + (i - begin) * VOCAB, text[i] == t->special ? t->after : t->plain,
               sizeof t->plain);
    return MGL_OK;
}

static mgl_eval_comparison compare(table *p, table *q, const mgl_ids *texts, size_t count,
                                   size_t capacity, size_t stride)
{
    const mgl_eval_reader reference = {p, VOCAB, capacity, read_table};
    const mgl_eval_reader other = {q, VOCAB, capacity, read_table};
    const mgl_eval_options options = {.stride = stride};
    mgl_eval_comparison out;
    ck_assert_msg(!mgl_eval_compare(&reference, &other, texts, count, &options, &out, &err), "%s",
                  err.message);
    return out;
}

/* p = (1/2, 1/4, 1/8, 1/8) and q = (1/4, 1/4, 1/4, 1/4): KL = ln 2 / 2 - ln 2 / 8 - ln 2 / 8 =
 * ln 2 / 4. The logits have offsets, which change no distribution. */
static table halves(void)
{
    const float two = logf(2.0f);
    return (table){.plain = {3 * two + 5, 2 * two + 5, two + 5, two + 5}, .special = -1};
}

static table equal(void)
{
    return (table){.plain = {-7, -7, -7, -7}, .special = -1};
}

START_TEST(a_divergence_by_hand)
{
    const table p = halves(), q = equal();
    ck_assert_double_eq_tol(mgl_eval_divergence(p.plain, q.plain, VOCAB), log(2) / 4, 1e-6);
    /* the other direction: (ln 1/2 + 0 + ln 2 + ln 2) / 4 */
    ck_assert_double_eq_tol(mgl_eval_divergence(q.plain, p.plain, VOCAB), log(2) / 4, 1e-6);
    ck_assert_double_eq(mgl_eval_divergence(p.plain, p.plain, VOCAB), 0);
}
END_TEST

/* All of p is on one id; q gives it 1 of 1 + 3 exp(-2). Probabilities that are 0 in f64 count as
 * 0, and logits that are far apart give a finite number. */
START_TEST(a_divergence_of_a_certain_token)
{
    const float p[VOCAB] = {2000, 0, 0, 0}, q[VOCAB] = {2, 0, 0, 0}, far[VOCAB] = {-2000, 0, 0, 0};
    ck_assert_double_eq_tol(mgl_eval_divergence(p, q, VOCAB), log(1 + 3 * exp(-2)), 1e-12);
    ck_assert_double_eq_tol(mgl_eval_divergence(p, far, VOCAB), 2000 + log(3), 1e-9);
}
END_TEST

START_TEST(sums_over_texts)
{
    table p = halves(), q = equal();
    int32_t first[3] = {3, 0, 1}, second[2] = {0, 2}, alone[1] = {1};
    const mgl_ids texts[] = {{first, 3}, {alone, 1}, {second, 2}, {NULL, 0}};
    const mgl_eval_comparison c = compare(&p, &q, texts, 4, 8, 0);
    ck_assert_uint_eq(c.texts, 4);
    ck_assert_uint_eq(c.tokens, 3);
    ck_assert_uint_eq(c.windows, 2);
    ck_assert_double_eq_tol(c.reference_nll, log(2) + log(4) + log(8), 1e-6);
    ck_assert_double_eq_tol(c.nll, 3 * log(4), 1e-6);
    ck_assert_double_eq_tol(c.reference_perplexity, 4, 1e-5);
    ck_assert_double_eq_tol(c.perplexity, 4, 1e-5);
    ck_assert_double_eq_tol(c.kl_mean, log(2) / 4, 1e-6);
    ck_assert_double_eq_tol(c.kl_quantile, log(2) / 4, 1e-6);
    ck_assert_uint_eq(c.agreed, 3); /* of equal logits, the lowest id is the most likely */
}
END_TEST

START_TEST(a_model_agrees_with_itself)
{
    table p = halves();
    const mgl_ids text = {ids, 100};
    const mgl_eval_comparison c = compare(&p, &p, &text, 1, 100, 0);
    ck_assert_double_eq(c.kl_mean, 0);
    ck_assert_double_eq(c.kl_quantile, 0);
    ck_assert_double_eq(c.nll, c.reference_nll);
    ck_assert_uint_eq(c.agreed, 99);
    ck_assert_uint_eq(p.most, MGL_EVAL_ROWS);
}
END_TEST

/* `differ` of 2,000 positions diverge by ln 2 / 4. The 99.9 % quantile is the value of rank 1,998:
 * two larger values are ignored, three are not. */
static const struct {
    size_t differ;
    double quantile;
} quantiles[] = {{2, 0}, {3, 0.25}};

START_TEST(the_quantile)
{
    table p = halves(), q = halves();
    const mgl_ids text = {ids, 2001};
    q.special = 1;
    memcpy(q.after, equal().plain, sizeof q.after);
    memset(ids, 0, sizeof ids);
    for (size_t i = 0; i < quantiles[_i].differ; i++)
        ids[100 * (i + 1)] = 1;
    const mgl_eval_comparison c = compare(&p, &q, &text, 1, LONG, 0);
    ck_assert_uint_eq(c.tokens, 2000);
    ck_assert_double_eq_tol(c.kl_quantile, quantiles[_i].quantile * log(2), 1e-6);
    ck_assert_double_eq_tol(c.kl_mean, log(2) / 4 * (double)quantiles[_i].differ / 2000, 1e-9);
}
END_TEST

START_TEST(the_most_likely_token)
{
    table p = halves(), q = halves();
    const int32_t text[] = {0, 1, 0, 0, 1, 0};
    const mgl_ids texts = {(int32_t *)text, 6};
    q.special = 1;
    memcpy(q.after, (const float[VOCAB]){0, 0.5f, 0, 0}, sizeof q.after);
    const mgl_eval_comparison c = compare(&p, &q, &texts, 1, 8, 0);
    ck_assert_uint_eq(c.agreed, 3); /* of 5: the tokens after the two tokens 1 differ */
}
END_TEST

/* Windows of 24 tokens that move by 10: each token counts once. */
START_TEST(a_long_text)
{
    table p = halves(), q = equal();
    const mgl_ids text = {ids, 50};
    memset(ids, 0, sizeof ids);
    const mgl_eval_comparison c = compare(&p, &q, &text, 1, 24, 10);
    ck_assert_uint_eq(c.tokens, 49);
    ck_assert_uint_eq(c.windows, 4);
    ck_assert_double_eq_tol(c.nll, 49 * log(4), 1e-4);
}
END_TEST

START_TEST(what_is_rejected)
{
    table p = halves();
    const mgl_eval_reader model = {&p, VOCAB, 8, read_table};
    const mgl_ids texts[] = {{ids, 2}, {ids, 9}};
    mgl_eval_comparison out;
    ck_assert_int_eq(mgl_eval_compare(&model, &model, texts, 2, NULL, &out, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "text 1: 9 tokens are more than the 8 positions"));
    ck_assert_int_eq(mgl_eval_compare(&model, &model, &(mgl_ids){ids, 1}, 1, NULL, &out, &err),
                     MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "there is nothing to score"));
}
END_TEST

static mgl_status fail_to_read(void *user, const int32_t *text, size_t count, size_t begin,
                               float *logits, mgl_error *error)
{
    (void)user, (void)text, (void)count, (void)begin, (void)logits;
    return mgl_fail(error, MGL_DEVICE, NULL, "the device is lost");
}

START_TEST(errors_of_a_model)
{
    table p = halves();
    const mgl_eval_reader model = {&p, VOCAB, 8, read_table}, lost = {NULL, VOCAB, 8, fail_to_read};
    const mgl_ids text = {ids, 4};
    mgl_eval_comparison out;
    ck_assert_int_eq(mgl_eval_compare(&model, &lost, &text, 1, NULL, &out, &err), MGL_DEVICE);
    ck_assert_int_eq(mgl_eval_compare(&lost, &model, &text, 1, NULL, &out, &err), MGL_DEVICE);
    ck_assert_str_eq(err.message, "text 0: the device is lost");
}
END_TEST

START_TEST(equal_tokens_of_replies)
{
    int32_t a[] = {4, 5, 6}, b[] = {4, 5, 7, 8};
    ck_assert_uint_eq(mgl_eval_equal_tokens(&(mgl_ids){a, 3}, &(mgl_ids){b, 4}), 2);
    ck_assert_uint_eq(mgl_eval_equal_tokens(&(mgl_ids){a, 2}, &(mgl_ids){b, 4}), 2);
    ck_assert_uint_eq(mgl_eval_equal_tokens(&(mgl_ids){a, 3}, &(mgl_ids){a, 3}), 3);
    ck_assert_uint_eq(mgl_eval_equal_tokens(&(mgl_ids){a, 0}, &(mgl_ids){a, 3}), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compare");
    TCase *tests = tcase_create("compare");
    tcase_add_test(tests, a_divergence_by_hand);
    tcase_add_test(tests, a_divergence_of_a_certain_token);
    tcase_add_test(tests, sums_over_texts);
    tcase_add_test(tests, a_model_agrees_with_itself);
    tcase_add_loop_test(tests, the_quantile, 0, sizeof quantiles / sizeof *quantiles);
    tcase_add_test(tests, the_most_likely_token);
    tcase_add_test(tests, a_long_text);
    tcase_add_test(tests, what_is_rejected);
    tcase_add_test(tests, errors_of_a_model);
    tcase_add_test(tests, equal_tokens_of_replies);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

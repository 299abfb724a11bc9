/* Tests of the public interface of log-probabilities: they equal those of scoring prompt and reply,
 * in the result and in the callback; in a batch, each reply has the number that it requested. */
#include "megalith.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEW = 9, COUNT = 3, PROMPT = 4 };

static const int32_t prompt[PROMPT] = {909, 452, 449, 268};
static mgl_error err;
static mgl_model *model;
static mgl_result results[COUNT];

static const char *model_path(void)
{
    static char path[1024];
    const char *root = getenv("MGL_TEST_MODELS");
    snprintf(path, sizeof path, "%s/tales-5m", root ? root : MGL_SOURCE_DIR "/tests/models");
    return path;
}

static void set_up(void)
{
    mgl_open_options options = {
        .size = sizeof options, .device = "cpu", .capacity = 48, .threads = 1, .sequences = COUNT};
    ck_assert_int_eq(mgl_model_open(model_path(), &options, &model, &err), MGL_OK);
    for (int i = 0; i < COUNT; i++)
        results[i].size = sizeof results[i];
}

static void tear_down(void)
{
    for (int i = 0; i < COUNT; i++)
        mgl_result_clear(&results[i]);
    mgl_model_close(model);
}

/* Values received by the callback for a batch. */
struct listener {
    size_t count[COUNT];
    float logprobs[COUNT][NEW];
    int32_t likeliest[COUNT][NEW];
};

static void hear(void *user, size_t reply, const mgl_likelihood *of)
{
    struct listener *l = user;
    size_t at = l->count[reply]++;
    l->logprobs[reply][at] = of->logprob;
    l->likeliest[reply][at] = of->top_ids[0];
}

static mgl_request make_request(int logprobs, float temperature)
{
    return (mgl_request){.size = sizeof(mgl_request),
                         .prompt = prompt,
                         .prompt_count = PROMPT,
                         .max_tokens = NEW,
                         .temperature = temperature,
                         .seed = 3,
                         .logprobs = logprobs};
}

static void check_scores(const mgl_result *result)
{
    int32_t all[PROMPT + NEW];
    float scores[PROMPT + NEW];
    memcpy(all, prompt, sizeof prompt);
    memcpy(all + PROMPT, result->output.ids, NEW * sizeof *all);
    ck_assert_int_eq(mgl_model_score(model, all, PROMPT + NEW, scores, &err), MGL_OK);
    for (int i = 0; i < NEW; i++)
        ck_assert_float_le(fabsf(scores[PROMPT + i] - result->logprobs[i]), 1e-4F);
}

/* Checks that the list is in order, and that the token has its rank. */
static void check_top(const mgl_result *result, bool greedy)
{
    for (size_t i = 0; i < result->output.count; i++) {
        const int32_t *ids = result->top_ids + i * result->top_count;
        const float *logprobs = result->top_logprobs + i * result->top_count;
        ck_assert(!greedy || ids[0] == result->output.ids[i]);
        for (size_t n = 0; n < result->top_count; n++) {
            ck_assert(n == 0 || logprobs[n] <= logprobs[n - 1]);
            ck_assert(ids[n] != result->output.ids[i] || logprobs[n] == result->logprobs[i]);
        }
    }
}

START_TEST(are_those_of_scoring)
{
    struct listener l = {0};
    mgl_request requests[COUNT] = {make_request(5, 0), make_request(20, 1.5F), make_request(0, 0)};
    requests[0].on_likelihood = requests[1].on_likelihood = requests[2].on_likelihood = hear;
    requests[0].likelihood_user = requests[1].likelihood_user = &l;
    ck_assert_int_eq(mgl_model_generate_batch(model, requests, COUNT, NULL, NULL, results, &err),
                     MGL_OK);
    ck_assert_uint_eq(results[0].top_count, 5);
    ck_assert_uint_eq(results[1].top_count, 20);
    ck_assert_uint_eq(results[2].top_count, 0);
    ck_assert_ptr_null(results[2].logprobs);
    for (int i = 0; i < 2; i++) {
        check_scores(&results[i]);
        check_top(&results[i], i == 0);
        ck_assert_uint_eq(l.count[i], NEW);
        ck_assert_mem_eq(l.logprobs[i], results[i].logprobs, sizeof l.logprobs[i]);
        for (int n = 0; n < NEW; n++)
            ck_assert_int_eq(l.likeliest[i][n],
                             results[i].top_ids[(size_t)n * results[i].top_count]);
    }
}
END_TEST

/* A reply without log-probabilities has the same tokens; a result can be reused. */
START_TEST(change_nothing)
{
    mgl_request asked = make_request(3, 0.9F), plain = make_request(0, 0.9F);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(mgl_model_generate(model, &asked, NULL, NULL, &results[0], &err), MGL_OK);
    ck_assert_int_eq(mgl_model_generate(model, &plain, NULL, NULL, &results[1], &err), MGL_OK);
    ck_assert_mem_eq(results[0].output.ids, results[1].output.ids, NEW * sizeof(int32_t));
    ck_assert_int_eq(mgl_model_generate(model, &plain, NULL, NULL, &results[0], &err), MGL_OK);
    ck_assert_ptr_null(results[0].logprobs);
}
END_TEST

/* There is one per token, also in a reply that a stop string ends. */
START_TEST(end_with_the_reply)
{
    static const char *const stop = "toad";
    struct listener l = {0};
    mgl_tokenizer *tokenizer;
    mgl_request request = make_request(1, 0);
    ck_assert_int_eq(mgl_tokenizer_open(model_path(), &tokenizer, &err), MGL_OK);
    request.tokenizer = tokenizer;
    request.stops = &stop;
    request.stop_count = 1;
    request.on_likelihood = hear;
    request.likelihood_user = &l;
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &results[0], &err), MGL_OK);
    ck_assert_int_eq(results[0].stop, MGL_STOP_TEXT);
    ck_assert_uint_eq(l.count[0], results[0].output.count);
    check_top(&results[0], true);
    mgl_tokenizer_close(tokenizer);
}
END_TEST

/* If the caller's result struct lacks these fields, nothing is allocated. */
START_TEST(an_older_result_has_none)
{
    mgl_request request = make_request(2, 0);
    results[0].size = offsetof(mgl_result, logprobs);
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &results[0], &err), MGL_OK);
    ck_assert_uint_eq(results[0].output.count, NEW);
    ck_assert_ptr_null(results[0].logprobs);
}
END_TEST

START_TEST(too_many_are_rejected)
{
    for (int logprobs = -1; logprobs <= MGL_MAX_LOGPROBS + 1; logprobs += MGL_MAX_LOGPROBS + 2) {
        mgl_request request = make_request(logprobs, 0);
        ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &results[0], &err),
                         MGL_USAGE);
        ck_assert_str_eq(err.where, "logprobs");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("logprobs");
    TCase *tests = tcase_create("logprobs");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, are_those_of_scoring);
    tcase_add_test(tests, change_nothing);
    tcase_add_test(tests, end_with_the_reply);
    tcase_add_test(tests, an_older_result_has_none);
    tcase_add_test(tests, too_many_are_rejected);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner) != 0;
    srunner_free(runner);
    return failed;
}

/* Tests of the public interface of a batch: replies of one launch equal single replies; how they
 * end; and rejected requests. */
#include "megalith.h"

#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 4, CAPACITY = 48, SIXTEEN = 16 /* maximum with one list */ };

static const char *model_path(const char *name)
{
    static char path[1024];
    const char *root = getenv("MGL_TEST_MODELS");
    snprintf(path, sizeof path, "%s/%s", root ? root : MGL_SOURCE_DIR "/tests/models", name);
    return path;
}

static const int32_t prompt[] = {909, 452, 449, 268, 259, 804, 637, 453};
static const mgl_request requests[COUNT] = {
    {.size = sizeof(mgl_request), .prompt = prompt, .prompt_count = 8, .max_tokens = 30},
    {.size = sizeof(mgl_request),
     .prompt = prompt,
     .prompt_count = 2,
     .max_tokens = 20,
     .temperature = 1.1F,
     .seed = 7},
    {.size = sizeof(mgl_request),
     .prompt = prompt,
     .prompt_count = 5,
     .max_tokens = 3,
     .top_k = 9,
     .temperature = 0.8F},
    {.size = sizeof(mgl_request),
     .prompt = prompt,
     .prompt_count = 3,
     .max_tokens = 1000,
     .ignore_eos = true},
};
static mgl_error err;
static mgl_model *model;
static mgl_result results[SIXTEEN], alone;

static mgl_model *open_model(int32_t sequences)
{
    mgl_model *opened = NULL;
    mgl_open_options options = {
        .size = sizeof options, .device = "cpu", .capacity = CAPACITY, .sequences = sequences};
    ck_assert_msg(mgl_model_open(model_path("tales-5m"), &options, &opened, &err) == MGL_OK,
                  "%s: %s", err.where, err.message);
    return opened;
}

static void set_up(void)
{
    for (size_t i = 0; i < SIXTEEN; i++)
        results[i].size = sizeof results[i];
    alone.size = sizeof alone;
    err = (mgl_error){0};
    model = open_model(COUNT);
}

static void tear_down(void)
{
    for (size_t i = 0; i < SIXTEEN; i++)
        mgl_result_clear(&results[i]);
    mgl_result_clear(&alone);
    mgl_model_close(model);
}

static mgl_status generate(const mgl_request *batch, size_t count)
{
    return mgl_model_generate_batch(model, batch, count, NULL, NULL, results, &err);
}

static void check_same(const mgl_result *a, const mgl_result *b)
{
    ck_assert_int_eq(a->stop, b->stop);
    ck_assert_uint_eq(a->output.count, b->output.count);
    ck_assert_mem_eq(a->output.ids, b->output.ids, b->output.count * sizeof(int32_t));
}

START_TEST(each_is_as_alone)
{
    mgl_model *single = open_model(0);
    ck_assert_int_eq(generate(requests, COUNT), MGL_OK);
    for (size_t i = 0; i < COUNT; i++) {
        ck_assert_int_eq(mgl_model_generate(single, &requests[i], NULL, NULL, &alone, &err),
                         MGL_OK);
        check_same(&results[i], &alone);
    }
    ck_assert_uint_eq(results[2].output.count, 3);
    ck_assert_uint_eq(results[3].output.count, CAPACITY - 3); /* the cache ends it */
    mgl_model_close(single);
}
END_TEST

START_TEST(one_launch_makes_all)
{
    ck_assert_int_eq(generate(requests, COUNT), MGL_OK);
    for (size_t i = 0; i < COUNT; i++)
        ck_assert_int_eq(results[i].launches, 1);
}
END_TEST

/* One reply ends at its end token while the others continue. */
START_TEST(one_ends_early)
{
    mgl_request batch[COUNT];
    memcpy(batch, requests, sizeof batch);
    mgl_model_close(model);
    mgl_open_options options = {
        .size = sizeof options, .device = "cpu", .capacity = 120, .sequences = COUNT};
    ck_assert_int_eq(mgl_model_open(model_path("tales-5m"), &options, &model, &err), MGL_OK);
    batch[0].max_tokens = 100;
    ck_assert_int_eq(generate(batch, COUNT), MGL_OK);
    ck_assert_int_eq(results[0].stop, MGL_STOP_EOS);
    ck_assert_int_eq(results[0].output.ids[results[0].output.count - 1], 910);
    ck_assert_uint_gt(results[3].output.count, results[0].output.count);
    ck_assert_int_eq(results[3].stop, MGL_STOP_LENGTH);
}
END_TEST

/* The error names the request, and nothing runs. */
START_TEST(one_prompt_fills_the_cache)
{
    static int32_t full[CAPACITY];
    for (int i = 0; i < CAPACITY; i++)
        full[i] = 452;
    mgl_request batch[] = {
        requests[1],
        {.size = sizeof(mgl_request), .prompt = full, .prompt_count = CAPACITY, .max_tokens = 5},
        requests[2]};
    ck_assert_int_eq(generate(batch, 3), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "requests[1]: prompt");
    ck_assert_ptr_nonnull(strstr(err.message, "no position is left for a reply"));
    ck_assert_ptr_null(results[0].output.ids);
    batch[1].prompt_count--;
    ck_assert_int_eq(generate(batch, 3), MGL_OK);
    ck_assert_uint_eq(results[1].output.count, 1);
    ck_assert_uint_eq(results[2].output.count, 3);
}
END_TEST

START_TEST(fewer_than_opened_for)
{
    ck_assert_int_eq(generate(requests, 2), MGL_OK);
    ck_assert_int_eq(generate(requests, COUNT), MGL_OK);
    ck_assert_int_eq(generate(requests + 1, 1), MGL_OK);
    ck_assert_int_eq(mgl_model_generate(model, &requests[1], NULL, NULL, &alone, &err), MGL_OK);
    check_same(&results[0], &alone);
}
END_TEST

START_TEST(sixteen_at_once)
{
    mgl_request batch[SIXTEEN];
    mgl_model_close(model);
    model = open_model(SIXTEEN);
    for (size_t i = 0; i < SIXTEEN; i++)
        batch[i] = requests[i % 3];
    ck_assert_int_eq(generate(batch, SIXTEEN), MGL_OK);
    for (size_t i = 3; i < SIXTEEN; i++)
        check_same(&results[i], &results[i % 3]);
}
END_TEST

/* ---- the callback ---------------------------------------------------------------------------- */

/* Tokens received by a callback. */
typedef struct heard {
    int32_t tokens[COUNT][CAPACITY];
    size_t count[COUNT], all, most; /* most: stop at this token; 0: never */
} heard;

static bool listen_to(void *user, size_t reply, int32_t token)
{
    heard *h = user;
    h->tokens[reply][h->count[reply]++] = token;
    return ++h->all != h->most;
}

START_TEST(tokens_come_with_their_reply)
{
    heard h = {0};
    ck_assert_int_eq(mgl_model_generate_batch(model, requests, COUNT, listen_to, &h, results, &err),
                     MGL_OK);
    for (size_t i = 0; i < COUNT; i++) {
        ck_assert_uint_eq(h.count[i], results[i].output.count);
        ck_assert_mem_eq(h.tokens[i], results[i].output.ids, h.count[i] * sizeof(int32_t));
    }
}
END_TEST

/* Replies that had ended keep their end and tokens; the others keep their partial tokens. */
START_TEST(callback_stops_all)
{
    heard h = {.most = 20};
    ck_assert_int_eq(mgl_model_generate_batch(model, requests, COUNT, listen_to, &h, results, &err),
                     MGL_OK);
    ck_assert_int_eq(results[0].stop, MGL_STOP_INTERRUPTED);
    ck_assert_int_eq(results[3].stop, MGL_STOP_INTERRUPTED);
    ck_assert_uint_ge(results[3].output.count, 4);
    ck_assert_int_eq(results[2].stop, MGL_STOP_LENGTH);
    ck_assert_uint_eq(results[2].output.count, 3);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

START_TEST(names_the_request_that_is_rejected)
{
    mgl_request batch[] = {requests[0], requests[1]};
    batch[1].prompt_count = 0;
    ck_assert_int_eq(generate(batch, 2), MGL_BAD_INPUT);
    ck_assert_str_eq(err.message, "contains no tokens; give at least one");
    ck_assert_str_eq(err.where, "requests[1]: prompt");
    ck_assert_ptr_null(results[0].output.ids);
}
END_TEST

START_TEST(a_request_alone_has_no_number)
{
    mgl_request request = requests[0];
    request.max_tokens = 0;
    ck_assert_int_eq(generate(&request, 1), MGL_USAGE);
    ck_assert_str_eq(err.where, "max_tokens");
}
END_TEST

START_TEST(rejects_more_than_opened_for)
{
    static const size_t counts[] = {0, COUNT + 1, (size_t)-1};
    ck_assert_int_eq(generate(requests, counts[_i]), MGL_USAGE);
    ck_assert_str_eq(err.where, "requests");
}
END_TEST

START_TEST(opened_for_one)
{
    mgl_model_close(model);
    model = open_model(1);
    ck_assert_int_eq(generate(requests, 2), MGL_USAGE);
    ck_assert_str_eq(err.message,
                     "wrong number of requests: 2; this model was opened for 1 in one launch");
}
END_TEST

START_TEST(opens_for_1_to_64)
{
    static const int32_t sequences[] = {-1, MGL_MAX_BATCH + 1};
    mgl_model *none = NULL;
    mgl_open_options options = {
        .size = sizeof options, .device = "cpu", .sequences = sequences[_i]};
    ck_assert_int_eq(mgl_model_open(model_path("tales-5m"), &options, &none, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "sequences");
}
END_TEST

static mgl_status open_fewer(int32_t sequences, int64_t fewer, mgl_model_facts *facts)
{
    mgl_model *opened = NULL;
    mgl_open_options options = {.size = sizeof options,
                                .device = "cpu",
                                .capacity = 512,
                                .sequences = sequences,
                                .fewer = fewer};
    *facts = (mgl_model_facts){.size = sizeof *facts};
    mgl_status status = mgl_model_open(model_path("tales-5m"), &options, &opened, &err);
    if (!status)
        ck_assert_int_eq(mgl_model_get_facts(opened, facts, &err), MGL_OK);
    mgl_model_close(opened);
    return status;
}

/* With `fewer`, the model has as many sequences as the default config allows, otherwise the
 * requested number. */
START_TEST(fewer_than_asked_for_by_rows)
{
    mgl_model_facts facts;
    ck_assert_int_eq(open_fewer(MGL_MAX_BATCH, 0, &facts), MGL_BAD_INPUT);
    ck_assert_int_eq(open_fewer(MGL_MAX_BATCH, 1, &facts), MGL_OK);
    ck_assert_int_eq((int)facts.sequences, SIXTEEN);
    ck_assert_int_eq(open_fewer(3, 1, &facts), MGL_OK);
    ck_assert_int_eq((int)facts.sequences, 3);
}
END_TEST

/* The number of sequences is halved until memory suffices. */
START_TEST(fewer_than_asked_for_by_memory)
{
    mgl_model_facts four, facts;
    ck_assert_int_eq(open_fewer(4, 0, &four), MGL_OK);
    mgl_memory_pretend(four.memory_bytes + four.cache_bytes + four.scratch_bytes + 500000);
    mgl_status all = open_fewer(SIXTEEN, 0, &facts), some = open_fewer(SIXTEEN, 1, &facts);
    mgl_memory_pretend(0);
    ck_assert_int_eq(all, MGL_NO_MEMORY);
    ck_assert_msg(some == MGL_OK, "%s: %s", err.where, err.message);
    ck_assert_int_eq((int)facts.sequences, 4);
}
END_TEST

/* If one result cannot be allocated, all are empty. */
START_TEST(survives_memory_running_out)
{
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(generate(requests, COUNT), MGL_OK);
    uint64_t count = mgl_alloc_count();
    ck_assert_uint_ge(count, COUNT);
    for (uint64_t n = 1; n <= count; n++) {
        mgl_alloc_fail_at(n, true);
        mgl_status status = generate(requests, COUNT);
        mgl_alloc_fail_at(0, false);
        ck_assert_int_eq(status, MGL_NO_MEMORY);
        for (size_t i = 0; i < COUNT; i++)
            ck_assert_ptr_null(results[i].output.ids);
    }
}
END_TEST

/* ---- prompts that continue ------------------------------------------------------------------- */

/* A conversation in which each prompt is everything before and two more tokens. */
START_TEST(a_talk_is_read_once)
{
    int32_t talk[CAPACITY];
    size_t length = 0;
    mgl_model *fresh = open_model(1);
    for (int turn = 0; turn < 10; turn++) {
        const size_t before = length;
        talk[length++] = prompt[turn % 8];
        talk[length++] = prompt[(turn + 3) % 8];
        mgl_request request = {.size = sizeof request,
                               .prompt = talk,
                               .prompt_count = length,
                               .max_tokens = 2,
                               .ignore_eos = true};
        mgl_result afresh = {.size = sizeof afresh};
        ck_assert_int_eq(mgl_model_generate(fresh, &request, NULL, NULL, &afresh, &err), MGL_OK);
        ck_assert_int_eq(afresh.reused, 0);
        request.reuse_prefix = 1;
        ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &alone, &err), MGL_OK);
        ck_assert_int_eq(alone.reused, before ? (int64_t)before - 1 : 0);
        ck_assert_uint_eq(alone.output.count, 2);
        ck_assert_mem_eq(alone.output.ids, afresh.output.ids, 2 * sizeof(int32_t));
        memcpy(talk + length, afresh.output.ids, 2 * sizeof(int32_t));
        length += 2;
        mgl_result_clear(&afresh);
    }
    mgl_model_close(fresh);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch");
    TCase *tests = tcase_create("batch");
    tcase_set_timeout(tests, 100);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, each_is_as_alone);
    tcase_add_test(tests, one_launch_makes_all);
    tcase_add_test(tests, one_ends_early);
    tcase_add_test(tests, one_prompt_fills_the_cache);
    tcase_add_test(tests, fewer_than_opened_for);
    tcase_add_test(tests, sixteen_at_once);
    tcase_add_test(tests, tokens_come_with_their_reply);
    tcase_add_test(tests, callback_stops_all);
    tcase_add_test(tests, names_the_request_that_is_rejected);
    tcase_add_test(tests, a_request_alone_has_no_number);
    tcase_add_loop_test(tests, rejects_more_than_opened_for, 0, 3);
    tcase_add_test(tests, opened_for_one);
    tcase_add_loop_test(tests, opens_for_1_to_64, 0, 2);
    tcase_add_test(tests, fewer_than_asked_for_by_rows);
    tcase_add_test(tests, fewer_than_asked_for_by_memory);
    tcase_add_test(tests, survives_memory_running_out);
    tcase_add_test(tests, a_talk_is_read_once);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

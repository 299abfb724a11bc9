/* Tests of wrong calls: NULL arguments, pointers read after a failure, and structs of another
 * version of the header. */
#include "megalith.h"
#include "tests/scratch.h"

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *model_path(void)
{
    static char path[1024];
    const char *root = getenv("MGL_TEST_MODELS");
    snprintf(path, sizeof path, "%s/llama3-rope", root ? root : MGL_SOURCE_DIR "/tests/models");
    return path;
}

static const int32_t prompt[] = {9, 52, 49, 68};
static const mgl_open_options on_cpu = {
    .size = sizeof on_cpu, .device = "cpu", .capacity = 64, .sequences = 2};
static const mgl_request request = {
    .size = sizeof request, .prompt = prompt, .prompt_count = 4, .max_tokens = 5};
static mgl_error err;
static mgl_model *model;
static mgl_tokenizer *tokenizer;

static void set_up(void)
{
    err = (mgl_error){0};
    ck_assert_int_eq(mgl_model_open(model_path(), &on_cpu, &model, &err), MGL_OK);
    ck_assert_int_eq(mgl_tokenizer_open(model_path(), &tokenizer, &err), MGL_OK);
}

static void tear_down(void)
{
    mgl_model_close(model);
    mgl_tokenizer_close(tokenizer);
}

/* Checks that the call is rejected and the message names the argument. */
#define refuses_null(argument, call)                                                               \
    do {                                                                                           \
        err = (mgl_error){0};                                                                      \
        ck_assert_int_eq(call, MGL_USAGE);                                                         \
        ck_assert_msg(strstr(err.message, "\"" argument "\" is NULL"), "%s", err.message);         \
    } while (0)

/* ---- NULL ------------------------------------------------------------------------------------ */

START_TEST(a_tokenizer_rejects_null)
{
    mgl_ids ids = {0};
    int32_t id;
    char *text;
    refuses_null("path", mgl_tokenizer_open(NULL, &(mgl_tokenizer *){0}, &err));
    refuses_null("out", mgl_tokenizer_open(model_path(), NULL, &err));
    refuses_null("tokenizer", mgl_tokenizer_encode(NULL, "a", 1, true, &ids, &err));
    refuses_null("text", mgl_tokenizer_encode(tokenizer, NULL, 1, true, &ids, &err));
    refuses_null("out", mgl_tokenizer_encode(tokenizer, "a", 1, true, NULL, &err));
    refuses_null("tokenizer", mgl_tokenizer_decode(NULL, prompt, 1, true, &text, NULL, &err));
    refuses_null("ids", mgl_tokenizer_decode(tokenizer, NULL, 1, true, &text, NULL, &err));
    refuses_null("out", mgl_tokenizer_decode(tokenizer, prompt, 1, true, NULL, NULL, &err));
    refuses_null("tokenizer", mgl_tokenizer_token(NULL, 1, &text, NULL, &err));
    refuses_null("out", mgl_tokenizer_token(tokenizer, 1, NULL, NULL, &err));
    refuses_null("tokenizer", mgl_tokenizer_find(NULL, "a", 1, &id, &err));
    refuses_null("bytes", mgl_tokenizer_find(tokenizer, NULL, 1, &id, &err));
    refuses_null("out", mgl_tokenizer_find(tokenizer, "a", 1, NULL, &err));
}
END_TEST

START_TEST(a_detokenizer_rejects_null)
{
    mgl_detokenizer *stream;
    const char *text;
    refuses_null("tokenizer", mgl_detokenizer_open(NULL, true, &stream, &err));
    refuses_null("out", mgl_detokenizer_open(tokenizer, true, NULL, &err));
    refuses_null("stream", mgl_detokenizer_next(NULL, 1, &text, NULL, &err));
    refuses_null("stream", mgl_detokenizer_finish(NULL, &text, NULL, &err));
    refuses_null("stream", mgl_detokenizer_prime(NULL, prompt, 1, &err));
    ck_assert_int_eq(mgl_detokenizer_open(tokenizer, true, &stream, &err), MGL_OK);
    refuses_null("ids", mgl_detokenizer_prime(stream, NULL, 1, &err));
    refuses_null("text", mgl_detokenizer_next(stream, 1, NULL, NULL, &err));
    refuses_null("text", mgl_detokenizer_finish(stream, NULL, NULL, &err));
    mgl_detokenizer_close(stream);
}
END_TEST

START_TEST(a_model_rejects_null)
{
    mgl_result result = {.size = sizeof result};
    mgl_model_facts facts = {.size = sizeof facts};
    mgl_ids ids = {0};
    float number = 0;
    refuses_null("path", mgl_model_open(NULL, &on_cpu, &(mgl_model *){0}, &err));
    refuses_null("out", mgl_model_open(model_path(), &on_cpu, NULL, &err));
    refuses_null("model", mgl_model_generate(NULL, &request, NULL, NULL, &result, &err));
    refuses_null("request", mgl_model_generate(model, NULL, NULL, NULL, &result, &err));
    refuses_null("out", mgl_model_generate(model, &request, NULL, NULL, NULL, &err));
    refuses_null("tokenizer",
                 mgl_model_generate_text(model, NULL, &request, NULL, NULL, &result, &err));
    refuses_null("out",
                 mgl_model_generate_text(model, tokenizer, &request, NULL, NULL, NULL, &err));
    refuses_null("model", mgl_model_generate_batch(NULL, &request, 1, NULL, NULL, &result, &err));
    refuses_null("requests", mgl_model_generate_batch(model, NULL, 1, NULL, NULL, &result, &err));
    refuses_null("out", mgl_model_generate_batch(model, &request, 1, NULL, NULL, NULL, &err));
    refuses_null("model", mgl_model_score(NULL, prompt, 1, &number, &err));
    refuses_null("logprob", mgl_model_score(model, prompt, 1, NULL, &err));
    refuses_null("model", mgl_model_score_logits(NULL, prompt, 2, 0, &number, &err));
    refuses_null("logits", mgl_model_score_logits(model, prompt, 2, 0, NULL, &err));
    refuses_null("model", mgl_model_get_logits(NULL, &number, &err));
    refuses_null("logits", mgl_model_get_logits(model, NULL, &err));
    refuses_null("model", mgl_model_get_chat_end_ids(NULL, tokenizer, &ids, &err));
    refuses_null("tokenizer", mgl_model_get_chat_end_ids(model, NULL, &ids, &err));
    refuses_null("out", mgl_model_get_chat_end_ids(model, tokenizer, NULL, &err));
    refuses_null("model", mgl_model_get_facts(NULL, &facts, &err));
    refuses_null("out", mgl_model_get_facts(model, NULL, &err));
    refuses_null("model", mgl_model_get_end_ids(NULL, &ids, &err));
    refuses_null("out", mgl_model_get_end_ids(model, NULL, &err));
    ck_assert_int_eq(mgl_model_score(model, NULL, 1, &number, &err), MGL_USAGE);
}
END_TEST

START_TEST(a_compiler_and_a_switch_reject_null)
{
    mgl_compile_report report = {.size = sizeof report};
    refuses_null("path", mgl_model_compile(NULL, NULL, "/tmp/x", &report, &err));
    refuses_null("to", mgl_model_compile(model_path(), NULL, NULL, &report, &err));
    refuses_null("out", mgl_cancel_new(NULL, &err));
}
END_TEST

/* Functions without a status do nothing, and every `err` may be NULL. */
START_TEST(null_is_nothing_to_the_others)
{
    mgl_model_close(NULL);
    mgl_model_cancel(NULL);
    mgl_tokenizer_close(NULL);
    mgl_detokenizer_close(NULL);
    mgl_text_free(NULL);
    mgl_ids_clear(NULL);
    mgl_result_clear(NULL);
    mgl_cancel_free(NULL);
    mgl_cancel_set(NULL);
    mgl_cancel_reset(NULL);
    ck_assert(!mgl_cancel_is_set(NULL));
    ck_assert_int_eq(mgl_model_open(NULL, NULL, NULL, NULL), MGL_USAGE);
    ck_assert_int_eq(mgl_model_generate(NULL, NULL, NULL, NULL, NULL, NULL), MGL_USAGE);
}
END_TEST

/* An empty text needs no address. */
START_TEST(null_is_the_empty_text)
{
    mgl_ids ids = {0};
    char *text;
    ck_assert_int_eq(mgl_tokenizer_encode(tokenizer, NULL, 0, false, &ids, &err), MGL_OK);
    ck_assert_uint_eq(ids.count, 0);
    ck_assert_int_eq(mgl_tokenizer_decode(tokenizer, NULL, 0, false, &text, NULL, &err), MGL_OK);
    ck_assert_str_eq(text, "");
    mgl_text_free(text);
    mgl_ids_clear(&ids);
}
END_TEST

/* ---- what a failed call leaves --------------------------------------------------------------- */

START_TEST(a_failed_open_leaves_null)
{
    mgl_model *no_model = model;
    mgl_tokenizer *no_tokenizer = tokenizer;
    ck_assert_int_eq(mgl_model_open("/nowhere", NULL, &no_model, &err), MGL_BAD_INPUT);
    ck_assert_ptr_null(no_model);
    no_model = model;
    ck_assert_int_eq(mgl_model_open(model_path(), &(mgl_open_options){0}, &no_model, &err),
                     MGL_USAGE);
    ck_assert_ptr_null(no_model);
    ck_assert_int_eq(mgl_tokenizer_open("/nowhere", &no_tokenizer, &err), MGL_BAD_INPUT);
    ck_assert_ptr_null(no_tokenizer);
}
END_TEST

START_TEST(a_failed_decode_leaves_null)
{
    char *text = "never to be freed";
    const int32_t negative = -1;
    ck_assert_int_eq(mgl_tokenizer_decode(tokenizer, &negative, 1, true, &text, NULL, &err),
                     MGL_BAD_INPUT);
    ck_assert_ptr_null(text);
}
END_TEST

/* ---- structs of other versions --------------------------------------------------------------- */

/* Each struct, with the size that it states. */
START_TEST(a_struct_without_size_is_rejected)
{
    mgl_open_options open = {.device = "cpu"};
    mgl_compile_options compile = {.target = "cpu:1"};
    mgl_compile_report report = {0};
    mgl_request no_size = request;
    mgl_result result = {.size = sizeof result}, no_result = {0};
    mgl_model_facts facts = {0};
    mgl_model *none;
    no_size.size = 0;
    ck_assert_int_eq(mgl_model_open(model_path(), &open, &none, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "mgl_open_options");
    ck_assert_int_eq(mgl_model_generate(model, &no_size, NULL, NULL, &result, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "mgl_request");
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &no_result, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "mgl_result");
    ck_assert_int_eq(mgl_model_get_facts(model, &facts, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "mgl_model_facts");
    ck_assert_int_eq(mgl_model_compile(model_path(), &compile, "/tmp/x", NULL, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "mgl_compile_options");
    ck_assert_int_eq(mgl_model_compile(model_path(), NULL, "/tmp/x", &report, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "mgl_compile_report");
    ck_assert_ptr_nonnull(strstr(err.message, "sizeof(mgl_compile_report)"));
}
END_TEST

/* The program's struct ends before `cancel`; the library must not read beyond it. */
START_TEST(opens_with_options_of_an_older_header)
{
    mgl_open_options open;
    mgl_model *opened;
    memset(&open, 0xFF, sizeof open);
    memcpy(&open, &on_cpu, offsetof(mgl_open_options, cancel));
    open.size = offsetof(mgl_open_options, cancel);
    ck_assert_msg(mgl_model_open(model_path(), &open, &opened, &err) == MGL_OK, "%s", err.message);
    mgl_model_close(opened);
}
END_TEST

START_TEST(tells_an_older_program_the_facts_it_knows)
{
    mgl_model_facts facts;
    memset(&facts, 0x7F, sizeof facts);
    facts.size = offsetof(mgl_model_facts, kernel_s);
    ck_assert_int_eq(mgl_model_get_facts(model, &facts, &err), MGL_OK);
    ck_assert_int_eq(facts.capacity, 64);
    ck_assert_uint_eq(facts.weight_bytes, 0x7F7F7F7F7F7F7F7F);
}
END_TEST

/* A shorter request and result; the arrays have their own stride. */
struct older_request {
    char bytes[offsetof(mgl_request, ignore_eos)];
};
struct older_result {
    char bytes[offsetof(mgl_result, prefill_s)];
};

START_TEST(generates_for_an_older_program)
{
    _Alignas(mgl_request) struct older_request requests[2];
    _Alignas(mgl_result) struct older_result results[2] = {0};
    mgl_result whole = {.size = sizeof whole}, got = {0};
    for (int i = 0; i < 2; i++) {
        mgl_request one = request;
        one.size = sizeof requests[i];
        one.prompt_count = 4 - (size_t)i;
        memcpy(&requests[i], &one, sizeof requests[i]);
        memcpy(&results[i], &(size_t){sizeof results[i]}, sizeof(size_t));
    }
    ck_assert_msg(mgl_model_generate_batch(model, (const mgl_request *)(const void *)requests, 2,
                                           NULL, NULL, (mgl_result *)(void *)results,
                                           &err) == MGL_OK,
                  "%s", err.message);
    mgl_request second = request;
    second.prompt_count = 3;
    ck_assert_int_eq(mgl_model_generate(model, &second, NULL, NULL, &whole, &err), MGL_OK);
    memcpy(&got, &results[1], sizeof results[1]);
    ck_assert_uint_eq(got.output.count, whole.output.count);
    ck_assert_mem_eq(got.output.ids, whole.output.ids, whole.output.count * sizeof(int32_t));
    mgl_result_clear(&whole);
    for (int i = 0; i < 2; i++)
        mgl_result_clear((mgl_result *)(void *)&results[i]);
}
END_TEST

START_TEST(an_array_has_one_size)
{
    mgl_request requests[2] = {request, request};
    mgl_result results[2] = {{.size = sizeof results[0]}, {.size = sizeof results[0]}};
    requests[1].size = 0;
    ck_assert_int_eq(mgl_model_generate_batch(model, requests, 2, NULL, NULL, results, &err),
                     MGL_USAGE);
    ck_assert_str_eq(err.where, "mgl_request");
    requests[1].size = requests[0].size;
    results[1].size--;
    ck_assert_int_eq(mgl_model_generate_batch(model, requests, 2, NULL, NULL, results, &err),
                     MGL_USAGE);
    ck_assert_str_eq(err.where, "mgl_result");
}
END_TEST

/* A nonzero field of a newer header. */
START_TEST(rejects_what_a_newer_program_asks_for)
{
    struct {
        mgl_open_options known;
        int64_t unknown;
    } newer = {.known = on_cpu, .unknown = 0};
    mgl_model *opened;
    newer.known.size = sizeof newer;
    ck_assert_int_eq(mgl_model_open(model_path(), &newer.known, &opened, &err), MGL_OK);
    mgl_model_close(opened);
    newer.unknown = 1;
    ck_assert_int_eq(mgl_model_open(model_path(), &newer.known, &opened, &err), MGL_USAGE);
    ck_assert_ptr_nonnull(strstr(err.message, "newer library"));
}
END_TEST

/* mgl_model_generate_text has a tokenizer; other requests of a chat must name it. */
START_TEST(a_chat_needs_a_tokenizer)
{
    mgl_request chat = request;
    mgl_result result = {.size = sizeof result};
    mgl_ids ids = {0};
    chat.chat = 1;
    chat.tokenizer = NULL;
    ck_assert_int_eq(mgl_model_generate(model, &chat, NULL, NULL, &result, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "tokenizer");
    ck_assert_int_eq(mgl_model_generate_text(model, tokenizer, &chat, NULL, NULL, &result, &err),
                     MGL_OK);
    mgl_result_clear(&result);
    ck_assert_int_eq(mgl_model_get_chat_end_ids(model, tokenizer, &ids, &err), MGL_OK);
    ck_assert_uint_eq(ids.count, 1);
    ck_assert_int_eq(ids.ids[0], 910);
    mgl_ids_clear(&ids);
}
END_TEST

START_TEST(a_cleared_result_keeps_its_size)
{
    mgl_result result = {.size = sizeof result};
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &result, &err), MGL_OK);
    mgl_result_clear(&result);
    ck_assert_uint_eq(result.size, sizeof result);
    ck_assert_ptr_null(result.output.ids);
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &result, &err), MGL_OK);
    mgl_result_clear(&result);
}
END_TEST

START_TEST(compiles_without_a_report)
{
    char folder[] = "/tmp/megalith-arguments-XXXXXX", path[64];
    mgl_compile_options options = {.size = sizeof options, .target = "cpu:1", .capacity = 16};
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/m.mega", folder);
    ck_assert_int_eq(mgl_model_compile(model_path(), &options, path, NULL, &err), MGL_OK);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arguments");
    TCase *tests = tcase_create("arguments");
    tcase_set_timeout(tests, 100);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_tokenizer_rejects_null);
    tcase_add_test(tests, a_detokenizer_rejects_null);
    tcase_add_test(tests, a_model_rejects_null);
    tcase_add_test(tests, a_compiler_and_a_switch_reject_null);
    tcase_add_test(tests, null_is_nothing_to_the_others);
    tcase_add_test(tests, null_is_the_empty_text);
    tcase_add_test(tests, a_failed_open_leaves_null);
    tcase_add_test(tests, a_failed_decode_leaves_null);
    tcase_add_test(tests, a_struct_without_size_is_rejected);
    tcase_add_test(tests, opens_with_options_of_an_older_header);
    tcase_add_test(tests, tells_an_older_program_the_facts_it_knows);
    tcase_add_test(tests, generates_for_an_older_program);
    tcase_add_test(tests, an_array_has_one_size);
    tcase_add_test(tests, rejects_what_a_newer_program_asks_for);
    tcase_add_test(tests, a_chat_needs_a_tokenizer);
    tcase_add_test(tests, a_cleared_result_keeps_its_size);
    tcase_add_test(tests, compiles_without_a_report);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

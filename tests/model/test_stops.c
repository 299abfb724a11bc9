/* Tests of the public interface of stop strings: the tokens end with the one that completes the
 * string, and the text before it; alone, in a batch and in a conversation. Also tests rejected
 * requests. */
#include "megalith.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEW = 24, CAPACITY = 96, COUNT = 3 };

static const int32_t prompt[] = {909, 452, 449, 268};
static mgl_error err;
static mgl_tokenizer *tokenizer;
static mgl_model *model;
static mgl_result result, results[COUNT];

static void set_up(void)
{
    char path[1024];
    const char *root = getenv("MGL_TEST_MODELS");
    snprintf(path, sizeof path, "%s/tales-5m", root ? root : MGL_SOURCE_DIR "/tests/models");
    mgl_open_options options = {.size = sizeof options,
                                .device = "cpu",
                                .capacity = CAPACITY,
                                .threads = 1,
                                .sequences = COUNT};
    ck_assert_int_eq(mgl_tokenizer_open(path, &tokenizer, &err), MGL_OK);
    ck_assert_int_eq(mgl_model_open(path, &options, &model, &err), MGL_OK);
    result.size = sizeof result;
    for (int i = 0; i < COUNT; i++)
        results[i].size = sizeof results[i];
}

static void tear_down(void)
{
    mgl_result_clear(&result);
    for (int i = 0; i < COUNT; i++)
        mgl_result_clear(&results[i]);
    mgl_model_close(model);
    mgl_tokenizer_close(tokenizer);
}

/* A request for a greedy reply, or a sampled one. */
static mgl_request make_request(bool hot)
{
    return (mgl_request){.size = sizeof(mgl_request),
                         .prompt = prompt,
                         .prompt_count = 4,
                         .max_tokens = NEW,
                         .temperature = hot ? 60.0F : 0.0F,
                         .seed = 11,
                         .ignore_eos = true,
                         .tokenizer = tokenizer};
}

/* The received ids. */
struct listener {
    int32_t ids[NEW];
    size_t count;
};

static bool hear(void *user, int32_t token)
{
    struct listener *l = user;
    l->ids[l->count++] = token;
    return true;
}

static void generate(const mgl_request *request, struct listener *l)
{
    *l = (struct listener){0};
    ck_assert_msg(!mgl_model_generate(model, request, hear, l, &result, &err), "%s: %s", err.where,
                  err.message);
    ck_assert_uint_eq(l->count, result.output.count);
    ck_assert_mem_eq(l->ids, result.output.ids, l->count * sizeof *l->ids);
}

/* The text of ids (count) that a stream returns before its end. Release with free. */
static char *stream_text(const int32_t *ids, size_t count, const char *stop, bool finish)
{
    mgl_detokenizer *stream;
    const char *text;
    char *all = calloc(1, 4096);
    size_t size = 0, length;
    ck_assert_int_eq(mgl_detokenizer_open(tokenizer, true, &stream, &err), MGL_OK);
    ck_assert_int_eq(mgl_detokenizer_set_stops(stream, &stop, stop != NULL, &err), MGL_OK);
    for (size_t i = 0; i <= count; i++) {
        if (i == count && !finish)
            break;
        mgl_status status = i == count ? mgl_detokenizer_finish(stream, &text, &length, &err)
                                       : mgl_detokenizer_next(stream, ids[i], &text, &length, &err);
        ck_assert_int_eq(status, MGL_OK);
        memcpy(all + size, text, length);
        size += length;
    }
    mgl_detokenizer_close(stream);
    return all;
}

/* The number of ids until their text contains the stop string. */
static size_t tokens_until(const int32_t *ids, const char *stop)
{
    for (size_t count = 1; count <= NEW; count++) {
        char *text = stream_text(ids, count, NULL, false);
        bool found = strstr(text, stop) != NULL;
        free(text);
        if (found)
            return count;
    }
    return 0;
}

/* Checks that the reply ends with `stop`, which is in its text `whole`. */
static void check_cut(bool hot, const int32_t *ids, const char *whole, const char *stop)
{
    struct listener l;
    mgl_request request = make_request(hot);
    request.stops = &stop;
    request.stop_count = 1;
    size_t count = tokens_until(ids, stop);
    if (!count) /* it completes when the held text is released */
        return;
    generate(&request, &l);
    ck_assert_int_eq(result.stop, MGL_STOP_TEXT);
    ck_assert_uint_eq(l.count, count);
    ck_assert_mem_eq(l.ids, ids, count * sizeof *ids);
    char *text = stream_text(l.ids, l.count, stop, true);
    ck_assert_uint_eq(strlen(text), (size_t)(strstr(whole, stop) - whole));
    ck_assert_int_eq(memcmp(text, whole, strlen(text)), 0);
    free(text);
}

static size_t character(const char *text)
{
    size_t size = 1;
    while ((text[size] & 0xC0) == 0x80)
        size++;
    return size;
}

/* Every substring of one and of five characters. */
START_TEST(anywhere)
{
    const bool hot = _i;
    int32_t ids[NEW];
    struct listener l;
    mgl_request request = make_request(hot);
    generate(&request, &l);
    ck_assert_int_eq(result.stop, MGL_STOP_LENGTH);
    memcpy(ids, l.ids, sizeof ids);
    char *whole = stream_text(ids, NEW, NULL, true);
    for (const char *at = whole; *at; at += character(at)) {
        char stop[64] = "";
        for (int length = 1; length <= 5 && at[strlen(stop)]; length++) {
            size_t size = strlen(stop);
            memcpy(stop + size, at + size, character(at + size));
            if (length == 1 || length == 5)
                check_cut(hot, ids, whole, stop);
        }
    }
    free(whole);
}
END_TEST

/* The first of several stop strings ends the reply; one that never occurs changes nothing. */
START_TEST(of_several)
{
    static const char *const stops[] = {"never", "near", "lived"};
    struct listener l;
    mgl_request request = make_request(false);
    request.stops = stops;
    request.stop_count = 3;
    generate(&request, &l);
    ck_assert_int_eq(result.stop, MGL_STOP_TEXT);
    char *text = stream_text(l.ids, l.count, "lived", true);
    ck_assert_str_eq(text, " a curious toad named Yara who ");
    free(text);
    request.stop_count = 1;
    generate(&request, &l);
    ck_assert_int_eq(result.stop, MGL_STOP_LENGTH);
    ck_assert_uint_eq(l.count, NEW);
}
END_TEST

static bool append(void *user, const char *text, size_t length)
{
    strncat(user, text, length);
    return true;
}

/* The streamed text of a reply ends before the stop string. */
START_TEST(the_text_ends_before_it)
{
    static const char *const stops[] = {"near", "lived"};
    char text[256] = "";
    mgl_request request = make_request(false);
    request.stops = stops;
    request.stop_count = 2;
    ck_assert_int_eq(
        mgl_model_generate_text(model, tokenizer, &request, append, text, &result, &err), MGL_OK);
    ck_assert_str_eq(text, " a curious toad named Yara who ");
    ck_assert_int_eq(result.stop, MGL_STOP_TEXT);
}
END_TEST

START_TEST(each_of_a_batch_alone)
{
    static const char *const near = "near", *const toad = "toad";
    mgl_request requests[COUNT] = {make_request(false), make_request(true), make_request(false)};
    requests[0].stops = &near;
    requests[2].stops = &toad;
    requests[0].stop_count = requests[2].stop_count = 1;
    ck_assert_int_eq(mgl_model_generate_batch(model, requests, COUNT, NULL, NULL, results, &err),
                     MGL_OK);
    for (int i = 0; i < COUNT; i++) {
        struct listener l;
        generate(&requests[i], &l);
        ck_assert_int_eq(results[i].stop, i == 1 ? MGL_STOP_LENGTH : MGL_STOP_TEXT);
        ck_assert_int_eq(results[i].stop, result.stop);
        ck_assert_uint_eq(results[i].output.count, l.count);
        ck_assert_mem_eq(results[i].output.ids, l.ids, l.count * sizeof *l.ids);
    }
    ck_assert_uint_gt(results[0].output.count, results[2].output.count);
}
END_TEST

/* A prompt that continues such a reply reads only the new tokens. */
START_TEST(a_talk_goes_on)
{
    static const char *const near = "near";
    int32_t talk[64];
    struct listener l, afresh;
    mgl_request request = make_request(false);
    request.stops = &near;
    request.stop_count = 1;
    request.reuse_prefix = 1;
    generate(&request, &l);
    memcpy(talk, prompt, sizeof prompt);
    memcpy(talk + 4, l.ids, l.count * sizeof *l.ids);
    talk[4 + l.count] = 268;
    request.prompt = talk;
    request.prompt_count = 5 + l.count;
    size_t said = l.count;
    generate(&request, &l);
    ck_assert_int_eq(result.reused, (int64_t)(3 + said));
    request.reuse_prefix = 0;
    generate(&request, &afresh);
    ck_assert_uint_eq(afresh.count, l.count);
    ck_assert_mem_eq(afresh.ids, l.ids, l.count * sizeof *l.ids);
}
END_TEST

START_TEST(what_is_rejected)
{
    static const char *const texts[] = {"a", ""};
    mgl_request request = make_request(false);
    request.stops = texts;
    request.stop_count = 2;
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &result, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "stops[1]");
    request.tokenizer = NULL;
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &result, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "tokenizer");
    request.tokenizer = tokenizer;
    request.stops = NULL;
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &result, &err), MGL_USAGE);
}
END_TEST

/* A request of an older header lacks these fields. */
START_TEST(an_older_request_is_as_ever)
{
    static const char *const stop = "a";
    mgl_request request = make_request(false);
    request.size = offsetof(mgl_request, tokenizer);
    request.stops = &stop;
    request.stop_count = 1;
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &result, &err), MGL_OK);
    ck_assert_int_eq(result.stop, MGL_STOP_LENGTH);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stops");
    TCase *tests = tcase_create("stops");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, anywhere, 0, 2);
    tcase_add_test(tests, of_several);
    tcase_add_test(tests, the_text_ends_before_it);
    tcase_add_test(tests, each_of_a_batch_alone);
    tcase_add_test(tests, a_talk_goes_on);
    tcase_add_test(tests, what_is_rejected);
    tcase_add_test(tests, an_older_request_is_as_ever);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner) != 0;
    srunner_free(runner);
    return failed;
}

/* Tests of launches of more than 16 replies, with a config that has the knob `second_rows`: each
 * reply equals a single reply; and rejected requests. */
#include "megalith.h"
#include "tests/sanitized.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = MGL_MAX_BATCH, LENGTH = 30, NEW = 24, CAPACITY = LENGTH + NEW, TOP = 3 };

/* State of the random numbers. */
static uint64_t state;

/* 0 to below - 1. */
static int draw(int below)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (int)((state >> 33) % (uint64_t)below);
}

static mgl_error err;
static mgl_tokenizer *tokenizer;
static int32_t prompts[MOST][LENGTH];
static mgl_request requests[MOST];
static mgl_result results[MOST], alone;
static char config_path[200];

static const char *model_path(void)
{
    static char path[1024];
    const char *root = getenv("MGL_TEST_MODELS");
    snprintf(path, sizeof path, "%s/tales-5m", root ? root : MGL_SOURCE_DIR "/tests/models");
    return path;
}

static const char *write_config(const char *knobs)
{
    const char *folder = getenv("TMPDIR");
    snprintf(config_path, sizeof config_path, "%.100s/megalith-many-%d.json",
             folder ? folder : "/tmp", (int)getpid());
    FILE *file = fopen(config_path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "{\"schema\": \"megalith.config/1\", %s}", knobs);
    fclose(file);
    return config_path;
}

/* Opens a model with these knobs; NULL: the default. */
static mgl_status open_with(const char *knobs, int32_t sequences, mgl_model **out)
{
    mgl_open_options options = {.size = sizeof options,
                                .device = "cpu",
                                .config = knobs ? write_config(knobs) : NULL,
                                .capacity = CAPACITY,
                                .sequences = sequences,
                                .penalties = 1};
    return mgl_model_open(model_path(), &options, out, &err);
}

static mgl_model *open_model(const char *knobs, int32_t sequences)
{
    mgl_model *model = NULL;
    ck_assert_msg(open_with(knobs, sequences, &model) == MGL_OK, "%s: %s", err.where, err.message);
    return model;
}

/* A random request: any length and end, greedy or drawn. */
static void draw_request(int i)
{
    static const char *const stops[] = {"the", "was"};
    mgl_request *r = &requests[i];
    *r = (mgl_request){.size = sizeof *r,
                       .prompt = prompts[i],
                       .prompt_count = (size_t)(1 + draw(LENGTH)),
                       .max_tokens = 1 + draw(NEW + 6), /* the cache ends some */
                       .ignore_eos = draw(2)};
    for (size_t t = 0; t < r->prompt_count; t++)
        prompts[i][t] = draw(909);
    if (draw(3)) {
        r->temperature = 0.5F + (float)draw(10) / 10;
        r->seed = (uint64_t)draw(1 << 20);
        r->top_k = draw(2) * draw(60);
        r->top_p = draw(2) ? 0.9F : 0;
    }
    if (draw(3) == 0) {
        r->repeat_penalty = 1 + (double)draw(5) / 10;
        r->frequency_penalty = (double)draw(8) / 10;
    }
    if (draw(4) == 0) {
        r->tokenizer = tokenizer;
        r->stops = stops;
        r->stop_count = 2;
    }
    if (draw(4) == 0) {
        r->logprobs = 1 + draw(TOP);
        r->prompt_logprobs = draw(2);
    }
}

static void set_up(void)
{
    err = (mgl_error){0};
    state = 15;
    ck_assert_int_eq(mgl_tokenizer_open(model_path(), &tokenizer, &err), MGL_OK);
    for (int i = 0; i < MOST; i++) {
        results[i].size = sizeof results[i];
        draw_request(i);
    }
    alone.size = sizeof alone;
}

static void tear_down(void)
{
    for (int i = 0; i < MOST; i++)
        mgl_result_clear(&results[i]);
    mgl_result_clear(&alone);
    mgl_tokenizer_close(tokenizer);
    if (config_path[0])
        unlink(config_path);
}

static void check_same(int i)
{
    const mgl_result *r = &results[i];
    size_t count = alone.output.count;
    ck_assert_msg(r->stop == alone.stop && r->output.count == count,
                  "reply %d ends by %d behind %zu tokens, alone by %d behind %zu", i, (int)r->stop,
                  r->output.count, (int)alone.stop, count);
    ck_assert_mem_eq(r->output.ids, alone.output.ids, count * sizeof(int32_t));
    ck_assert_uint_eq(r->top_count, alone.top_count);
    if (!alone.logprobs)
        return;
    ck_assert_mem_eq(r->logprobs, alone.logprobs, count * sizeof(float));
    ck_assert_mem_eq(r->top_ids, alone.top_ids, count * r->top_count * sizeof(int32_t));
    ck_assert_uint_eq(r->prompt_logprob_count, alone.prompt_logprob_count);
    if (alone.prompt_logprobs)
        ck_assert_mem_eq(r->prompt_logprobs, alone.prompt_logprobs,
                         alone.prompt_logprob_count * sizeof(float));
}

/* Runs the first `count` requests in one launch, and each with a program with one list. */
static void check_batch(mgl_model *model, size_t count)
{
    mgl_model *single = open_model(NULL, 1);
    ck_assert_msg(mgl_model_generate_batch(model, requests, count, NULL, NULL, results, &err) ==
                      MGL_OK,
                  "%s: %s", err.where, err.message);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(mgl_model_generate(single, &requests[i], NULL, NULL, &alone, &err),
                         MGL_OK);
        check_same((int)i);
    }
    mgl_model_close(single);
}

static const struct {
    const char *knobs;
    int sequences, count;
} batches[] = {{"\"second_rows\": 40", 40, 40},
               {"\"second_rows\": 128", 40, 40},
               {"\"rows\": 1, \"second_rows\": 64", 64, 64},
               {"\"rows\": 4, \"second_rows\": 100", 64, 40},
               {"\"second_rows\": 17", 17, 17}};
enum { BATCHES = sizeof batches / sizeof *batches };

START_TEST(each_is_as_alone)
{
    mgl_model *model = open_model(batches[_i].knobs, batches[_i].sequences);
    check_batch(model, (size_t)batches[_i].count);
    mgl_model_close(model);
}
END_TEST

/* The replies include every kind of end. */
START_TEST(they_end_in_all_ways)
{
    int ends[MGL_STOP_TEXT + 1] = {0};
    mgl_model *model = open_model("\"second_rows\": 64", 64);
    ck_assert_int_eq(mgl_model_generate_batch(model, requests, MOST, NULL, NULL, results, &err),
                     MGL_OK);
    for (int i = 0; i < MOST; i++)
        ends[results[i].stop]++;
    ck_assert_int_gt(ends[MGL_STOP_EOS], 0);
    ck_assert_int_gt(ends[MGL_STOP_LENGTH], 0);
    ck_assert_int_gt(ends[MGL_STOP_TEXT], 0);
    mgl_model_close(model);
}
END_TEST

/* Alternating launches of few and many replies. */
START_TEST(fewer_than_opened_for)
{
    static const size_t counts[] = {3, 50, 1, 17};
    mgl_model *model = open_model("\"second_rows\": 64", 64);
    for (int i = 0; i < 4; i++)
        check_batch(model, counts[i]);
    mgl_model_close(model);
}
END_TEST

/* Tokens received by each reply. */
typedef struct heard {
    int32_t tokens[MOST][CAPACITY];
    size_t count[MOST];
} heard;

static bool listen_to(void *user, size_t reply, int32_t token)
{
    heard *h = user;
    h->tokens[reply][h->count[reply]++] = token;
    return true;
}

START_TEST(tokens_come_with_their_reply)
{
    heard h = {0};
    mgl_model *model = open_model("\"second_rows\": 64", 64);
    ck_assert_int_eq(mgl_model_generate_batch(model, requests, MOST, listen_to, &h, results, &err),
                     MGL_OK);
    for (int i = 0; i < MOST; i++) {
        ck_assert_uint_eq(h.count[i], results[i].output.count);
        ck_assert_mem_eq(h.tokens[i], results[i].output.ids, h.count[i] * sizeof(int32_t));
    }
    mgl_model_close(model);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

/* Knobs; a number of sequences that does not fit; the message. */
static const struct {
    const char *knobs;
    int sequences;
    mgl_status status;
    const char *message;
} refusals[] = {
    {NULL, 17, MGL_BAD_INPUT,
     "is 17; a launch has 1 to 16, as many as the config has rows; the knob `second_rows` "
     "allows up to 64"},
    {"\"rows\": 2", 3, MGL_BAD_INPUT, "is 3; a launch has 1 to 2, as many as the config has rows"},
    {"\"second_rows\": 20", 21, MGL_BAD_INPUT,
     "is 21; a launch has 1 to 20, as many as the config has rows; the knob `second_rows` "
     "allows up to 64"},
    {"\"second_rows\": 128", 65, MGL_USAGE, "must not be 65; one launch generates 1 to 64 replies"},
};
enum { REFUSALS = sizeof refusals / sizeof *refusals };

START_TEST(rejects_more_than_there_are_rows)
{
    mgl_model *none = NULL;
    ck_assert_int_eq(open_with(refusals[_i].knobs, refusals[_i].sequences, &none),
                     refusals[_i].status);
    ck_assert_str_eq(err.where, "sequences");
    ck_assert_str_eq(err.message, refusals[_i].message);
    ck_assert_ptr_null(none);
}
END_TEST

START_TEST(rejects_more_than_opened_for)
{
    mgl_model *model = open_model("\"second_rows\": 128", 40);
    ck_assert_int_eq(mgl_model_generate_batch(model, requests, 41, NULL, NULL, results, &err),
                     MGL_USAGE);
    ck_assert_str_eq(
        err.message,
        "wrong number of requests: 41; this model was opened for 1 to 40 in one launch");
    mgl_model_close(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("many");
    TCase *tests = tcase_create("many");
    tcase_set_timeout(tests, 200);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, each_is_as_alone, 0, BY_SANITIZER(BATCHES, 1));
    tcase_add_test(tests, they_end_in_all_ways);
    tcase_add_test(tests, fewer_than_opened_for);
    tcase_add_test(tests, tokens_come_with_their_reply);
    tcase_add_loop_test(tests, rejects_more_than_there_are_rows, 0, REFUSALS);
    tcase_add_test(tests, rejects_more_than_opened_for);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

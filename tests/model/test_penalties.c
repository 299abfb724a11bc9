/* Tests of penalties and of log-probabilities of prompts, on tests/models/tales-5m. Each token of a
 * greedy reply equals the published formulas applied to the model's logits: in a batch, in a
 * conversation, after stop strings, and with a compiled model. */
#include "megalith.h"
#include "tests/scratch.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NEW = 14, COUNT = 3, PROMPT = 4, ROOM = 96 };

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

static mgl_model *open_model(int64_t penalties)
{
    mgl_model *opened;
    mgl_open_options options = {.size = sizeof options,
                                .device = "cpu",
                                .capacity = ROOM,
                                .threads = 1,
                                .sequences = COUNT,
                                .penalties = penalties};
    ck_assert_int_eq(mgl_model_open(model_path(), &options, &opened, &err), MGL_OK);
    return opened;
}

static void set_up(void)
{
    model = open_model(1);
    for (int i = 0; i < COUNT; i++)
        results[i].size = sizeof results[i];
}

static void tear_down(void)
{
    for (int i = 0; i < COUNT; i++)
        mgl_result_clear(&results[i]);
    mgl_model_close(model);
}

static mgl_request make_request(double repeat, double presence, double frequency)
{
    return (mgl_request){.size = sizeof(mgl_request),
                         .prompt = prompt,
                         .prompt_count = PROMPT,
                         .max_tokens = NEW,
                         .ignore_eos = true,
                         .repeat_penalty = repeat,
                         .presence_penalty = presence,
                         .frequency_penalty = frequency};
}

static int times(const int32_t *ids, size_t count, int32_t id)
{
    int n = 0;
    for (size_t i = 0; i < count; i++)
        n += ids[i] == id;
    return n;
}

/* The token that the formulas choose after prompt and `made` tokens (tests/vm/penalties.c has their
 * sources). */
static int32_t choose(const mgl_request *r, const int32_t *made, size_t count, const float *logits,
                      int32_t vocab)
{
    double best = -DBL_MAX;
    int32_t chosen = 0;
    for (int32_t id = 0; id < vocab; id++) {
        double score = (double)logits[id];
        const int sampled = times(made, count, id);
        if (r->repeat_penalty > 0 && sampled + times(r->prompt, r->prompt_count, id) > 0)
            score = score < 0 ? score * r->repeat_penalty : score / r->repeat_penalty;
        score -= sampled * r->frequency_penalty + (sampled > 0 ? r->presence_penalty : 0);
        if (score > best) {
            best = score;
            chosen = id;
        }
    }
    return chosen;
}

static const struct {
    double repeat, presence, frequency;
} settings[] = {{1.3, 0, 0}, {0.7, 0, 0}, {0, 1.5, 0}, {0, -1, 0}, {0, 0, 0.9}, {1.2, 0.4, 0.3}};
enum { SETTINGS = sizeof settings / sizeof *settings };

static mgl_request request_of(int setting)
{
    return make_request(settings[setting].repeat, settings[setting].presence,
                        settings[setting].frequency);
}

START_TEST(are_the_published_ones)
{
    mgl_model_facts facts = {.size = sizeof facts};
    ck_assert_int_eq(mgl_model_get_facts(model, &facts, &err), MGL_OK);
    float *logits = malloc((size_t)facts.vocab * sizeof *logits);
    ck_assert_ptr_nonnull(logits);
    mgl_request request = request_of(_i);
    for (int32_t most = 1; most <= NEW; most++) {
        request.max_tokens = most;
        ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &results[0], &err),
                         MGL_OK);
        ck_assert_int_eq(mgl_model_get_logits(model, logits, &err), MGL_OK);
        const int32_t *made = results[0].output.ids;
        ck_assert_int_eq(made[most - 1],
                         choose(&request, made, (size_t)most - 1, logits, facts.vocab));
    }
    free(logits);
}
END_TEST

START_TEST(are_each_reply_s_own)
{
    mgl_request requests[COUNT] = {request_of(0), make_request(0, 0, 0), request_of(4)};
    mgl_result alone = {.size = sizeof alone};
    ck_assert_int_eq(mgl_model_generate_batch(model, requests, COUNT, NULL, NULL, results, &err),
                     MGL_OK);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(mgl_model_generate(model, &requests[i], NULL, NULL, &alone, &err), MGL_OK);
        ck_assert_mem_eq(alone.output.ids, results[i].output.ids, NEW * sizeof(int32_t));
    }
    mgl_result_clear(&alone);
}
END_TEST

/* Cached prompt tokens count too. */
START_TEST(count_what_is_reused)
{
    int32_t talk[ROOM];
    size_t length = PROMPT;
    mgl_model *fresh = open_model(1);
    memcpy(talk, prompt, sizeof prompt);
    for (int turn = 0; turn < 3; turn++) {
        mgl_request request = request_of(0);
        request.prompt = talk;
        request.prompt_count = length;
        ck_assert_int_eq(mgl_model_generate(fresh, &request, NULL, NULL, &results[1], &err),
                         MGL_OK);
        request.reuse_prefix = 1;
        ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &results[0], &err),
                         MGL_OK);
        ck_assert_int_eq(results[0].reused > 0, turn > 0);
        ck_assert_mem_eq(results[0].output.ids, results[1].output.ids, NEW * sizeof(int32_t));
        memcpy(talk + length, results[0].output.ids, NEW * sizeof(int32_t));
        length += NEW;
        talk[length++] = 452 + turn;
    }
    mgl_model_close(fresh);
}
END_TEST

static const struct {
    double repeat, presence, frequency;
    const char *where;
} hostile[] = {{-1, 0, 0, "repeat_penalty"},
               {1e-9, 0, 0, "repeat_penalty"},
               {1e9, 0, 0, "repeat_penalty"},
               {(double)NAN, 0, 0, "repeat_penalty"},
               {0, 2.5, 0, "presence_penalty"},
               {0, (double)NAN, 0, "presence_penalty"},
               {0, -1e300, 0, "presence_penalty"},
               {0, 0, -2.5, "frequency_penalty"},
               {0, 0, (double)INFINITY, "frequency_penalty"}};

START_TEST(what_makes_no_sense_is_rejected)
{
    mgl_request request =
        make_request(hostile[_i].repeat, hostile[_i].presence, hostile[_i].frequency);
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &results[0], &err), MGL_USAGE);
    ck_assert_str_eq(err.where, hostile[_i].where);
}
END_TEST

START_TEST(need_a_model_that_has_them)
{
    mgl_request request = request_of(0);
    mgl_model *without = open_model(0);
    ck_assert_int_eq(mgl_model_generate(without, &request, NULL, NULL, &results[0], &err),
                     MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "penalties");
    request.repeat_penalty = 1; /* is none */
    ck_assert_int_eq(mgl_model_generate(without, &request, NULL, NULL, &results[0], &err), MGL_OK);
    mgl_model_close(without);
}
END_TEST

START_TEST(are_compiled_in)
{
    char folder[] = "/tmp/megalith-penalties-XXXXXX", path[64];
    mgl_open_options open = {.size = sizeof open, .device = "cpu", .penalties = 1};
    mgl_request request = request_of(5);
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/m.mega", folder);
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &results[0], &err), MGL_OK);
    for (int with = 0; with < 2; with++) {
        mgl_model *compiled = NULL;
        mgl_compile_options options = {
            .size = sizeof options, .target = "cpu:1", .capacity = ROOM, .penalties = with};
        ck_assert_int_eq(mgl_model_compile(model_path(), &options, path, NULL, &err), MGL_OK);
        mgl_status status = mgl_model_open(path, &open, &compiled, &err);
        ck_assert_int_eq(status, with ? MGL_OK : MGL_BAD_INPUT);
        ck_assert(with || strstr(err.message, "--penalties"));
        if (with)
            ck_assert_int_eq(mgl_model_generate(compiled, &request, NULL, NULL, &results[1], &err),
                             MGL_OK);
        mgl_model_close(compiled);
        unlink(path);
    }
    rmdir(folder);
    ck_assert_mem_eq(results[1].output.ids, results[0].output.ids, NEW * sizeof(int32_t));
}
END_TEST

/* ---- log-probabilities of prompts ------------------------------------------------------------ */

START_TEST(prompts_are_scored)
{
    float scores[PROMPT];
    mgl_request requests[COUNT] = {request_of(0), make_request(0, 0, 0), make_request(0, 0, 0)};
    mgl_result plain = {.size = sizeof plain};
    requests[0].prompt_logprobs = 1;
    requests[2].prompt_logprobs = 1;
    requests[2].prompt_count = 1;
    ck_assert_int_eq(mgl_model_generate_batch(model, requests, COUNT, NULL, NULL, results, &err),
                     MGL_OK);
    ck_assert_uint_eq(results[0].prompt_logprob_count, PROMPT);
    ck_assert_ptr_null(results[1].prompt_logprobs);
    ck_assert_uint_eq(results[2].prompt_logprob_count, 1);
    ck_assert_float_eq(results[2].prompt_logprobs[0], 0.0F);
    ck_assert_int_eq(results[0].launches, 2);
    ck_assert_int_eq(mgl_model_score(model, prompt, PROMPT, scores, &err), MGL_OK);
    ck_assert_mem_eq(results[0].prompt_logprobs, scores, sizeof scores);
    requests[0].prompt_logprobs = 0;
    ck_assert_int_eq(mgl_model_generate(model, &requests[0], NULL, NULL, &plain, &err), MGL_OK);
    ck_assert_mem_eq(plain.output.ids, results[0].output.ids, NEW * sizeof(int32_t));
    ck_assert_int_eq(plain.launches, 1);
    mgl_result_clear(&plain);
}
END_TEST

/* If the caller's result struct lacks these fields, nothing is allocated. */
START_TEST(an_older_result_has_none)
{
    mgl_request request = request_of(0);
    request.prompt_logprobs = 1;
    request.logprobs = 2;
    results[0].size = offsetof(mgl_result, prompt_logprobs);
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &results[0], &err), MGL_OK);
    ck_assert_ptr_null(results[0].prompt_logprobs);
    ck_assert_ptr_nonnull(results[0].logprobs);
}
END_TEST

START_TEST(a_switch_that_is_set_ends_them)
{
    mgl_cancel *cancel;
    mgl_model *switched;
    mgl_request request = request_of(0);
    request.prompt_logprobs = 1;
    ck_assert_int_eq(mgl_cancel_new(&cancel, &err), MGL_OK);
    mgl_open_options options = {.size = sizeof options,
                                .device = "cpu",
                                .capacity = ROOM,
                                .cancel = cancel,
                                .penalties = 1};
    ck_assert_int_eq(mgl_model_open(model_path(), &options, &switched, &err), MGL_OK);
    mgl_cancel_set(cancel);
    ck_assert_int_eq(mgl_model_generate(switched, &request, NULL, NULL, &results[0], &err), MGL_OK);
    ck_assert_int_eq(results[0].stop, MGL_STOP_INTERRUPTED);
    ck_assert_ptr_null(results[0].prompt_logprobs);
    mgl_model_close(switched);
    mgl_cancel_free(cancel);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("penalties");
    TCase *tests = tcase_create("penalties");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, are_the_published_ones, 0, SETTINGS);
    tcase_add_test(tests, are_each_reply_s_own);
    tcase_add_test(tests, count_what_is_reused);
    tcase_add_loop_test(tests, what_makes_no_sense_is_rejected, 0,
                        (int)(sizeof hostile / sizeof *hostile));
    tcase_add_test(tests, need_a_model_that_has_them);
    tcase_add_test(tests, are_compiled_in);
    tcase_add_test(tests, prompts_are_scored);
    tcase_add_test(tests, an_older_result_has_none);
    tcase_add_test(tests, a_switch_that_is_set_ends_them);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner) != 0;
    srunner_free(runner);
    return failed;
}

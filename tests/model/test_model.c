/* Tests of the public interface of a model: many replies of one object, cancelling, rejected
 * requests, and every failed allocation. */
#include "megalith.h"

#include "base/memory.h"
#include "tests/scoring.h"
#include "tests/scratch.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *model_path(const char *name)
{
    static char path[1024];
    const char *root = getenv("MGL_TEST_MODELS");
    snprintf(path, sizeof path, "%s/%s", root ? root : MGL_SOURCE_DIR "/tests/models", name);
    return path;
}

static const int32_t prompt[] = {909, 452, 449, 268, 259, 804, 637, 453};
static const mgl_request story = {
    .size = sizeof story, .prompt = prompt, .prompt_count = 8, .max_tokens = 20};
static mgl_error err;

static mgl_model *open_model(const char *name, int32_t capacity)
{
    mgl_model *model = NULL;
    mgl_open_options options = {.size = sizeof options, .device = "cpu", .capacity = capacity};
    ck_assert_msg(mgl_model_open(model_path(name), &options, &model, &err) == MGL_OK, "%s: %s",
                  err.where, err.message);
    return model;
}

static bool count_token(void *user, int32_t token)
{
    int *count = user;
    (void)token;
    ++*count;
    return true;
}

START_TEST(many_replies_of_one_model)
{
    mgl_model *model = open_model("tales-5m", 64);
    mgl_result first = {.size = sizeof first}, again = {.size = sizeof again};
    int counted = 0;
    ck_assert_int_eq(mgl_model_generate(model, &story, count_token, &counted, &first, &err),
                     MGL_OK);
    ck_assert_uint_eq(first.output.count, 20);
    ck_assert_int_eq(counted, 20);
    ck_assert_int_eq(first.stop, MGL_STOP_LENGTH);
    ck_assert_int_eq(first.launches, 1);
    for (int i = 0; i < 3; i++) { /* the same result object is reused, nothing of it leaks */
        ck_assert_int_eq(mgl_model_generate(model, &story, NULL, NULL, &again, &err), MGL_OK);
        ck_assert_uint_eq(again.output.count, first.output.count);
        ck_assert_int_eq(memcmp(again.output.ids, first.output.ids, 20 * sizeof(int32_t)), 0);
    }
    mgl_result_clear(&first);
    mgl_result_clear(&again);
    mgl_model_close(model);
}
END_TEST

/* Received text, and the number of pieces to accept. */
typedef struct pieces {
    char text[400];
    int count, most;
} pieces;

static bool take_piece(void *user, const char *text, size_t length)
{
    pieces *p = user;
    ck_assert_uint_lt(strlen(p->text) + length, sizeof p->text);
    strncat(p->text, text, length);
    return ++p->count < p->most;
}

START_TEST(a_reply_as_text)
{
    mgl_model *model = open_model("tales-5m", 96);
    mgl_tokenizer *tokenizer;
    mgl_result result = {.size = sizeof result};
    mgl_request whole = story;
    pieces all = {.most = 99}, some = {.most = 3};
    char *text;
    whole.max_tokens = 80; /* up to the end token, which has no text */
    ck_assert_int_eq(mgl_tokenizer_open(model_path("tales-5m"), &tokenizer, &err), MGL_OK);
    ck_assert_int_eq(
        mgl_model_generate_text(model, tokenizer, &whole, take_piece, &all, &result, &err), MGL_OK);
    ck_assert_int_eq(result.stop, MGL_STOP_EOS);
    ck_assert_int_eq(mgl_tokenizer_decode(tokenizer, result.output.ids, result.output.count, true,
                                          &text, NULL, &err),
                     MGL_OK);
    ck_assert_str_eq(all.text, text);
    mgl_text_free(text);
    ck_assert_int_eq(
        mgl_model_generate_text(model, tokenizer, &whole, take_piece, &some, &result, &err),
        MGL_OK);
    ck_assert_int_eq(result.stop, MGL_STOP_INTERRUPTED);
    ck_assert_int_eq(some.count, 3);
    ck_assert_mem_eq(some.text, all.text, strlen(some.text));
    ck_assert_int_eq(mgl_model_generate_text(model, tokenizer, &whole, NULL, NULL, &result, &err),
                     MGL_OK);
    mgl_result_clear(&result);
    mgl_tokenizer_close(tokenizer);
    mgl_model_close(model);
}
END_TEST

START_TEST(tells_its_facts)
{
    mgl_model *model = open_model("tales-5m", 0);
    mgl_model_facts facts = {.size = sizeof facts};
    ck_assert_int_eq(mgl_model_get_facts(model, &facts, &err), MGL_OK);
    ck_assert_int_eq(facts.vocab, 913);
    ck_assert_int_eq(facts.max_positions, 1024);
    ck_assert_int_eq(facts.capacity, 1024); /* 4,096, but no more than there are */
    ck_assert_int_eq(facts.queues, 1);
    ck_assert_str_eq(facts.dtype, "f32");
    ck_assert_double_gt(facts.load_s, 0);
    mgl_model_close(model);
    mgl_open_options options = {.size = sizeof options, .device = "cpu", .wanted = 77};
    ck_assert_int_eq(mgl_model_open(model_path("tales-5m"), &options, &model, &err), MGL_OK);
    ck_assert_int_eq(mgl_model_get_facts(model, &facts, &err), MGL_OK);
    ck_assert_int_eq(facts.capacity, 77);
    mgl_model_close(model);
}
END_TEST

static bool stop_at_third(void *user, int32_t token)
{
    int *count = user;
    (void)token;
    return ++*count < 3;
}

START_TEST(callback_stops_the_reply)
{
    mgl_model *model = open_model("llama3-rope", 64);
    mgl_result result = {.size = sizeof result};
    int count = 0;
    ck_assert_int_eq(mgl_model_generate(model, &story, stop_at_third, &count, &result, &err),
                     MGL_OK);
    ck_assert_int_eq(result.stop, MGL_STOP_INTERRUPTED);
    ck_assert_int_eq(count, 3);
    ck_assert_uint_ge(result.output.count, 3);
    ck_assert_uint_lt(result.output.count, 20);
    /* The next reply is not interrupted. */
    ck_assert_int_eq(mgl_model_generate(model, &story, NULL, NULL, &result, &err), MGL_OK);
    ck_assert_int_eq(result.stop, MGL_STOP_LENGTH);
    mgl_result_clear(&result);
    mgl_model_close(model);
}
END_TEST

/* Opens a folder with the files of a checkpoint and another generation_config.json. */
static mgl_model *open_with_generation(const char *name, const char *generation)
{
    static const char *const files[] = {"config.json", "model.safetensors"};
    char folder[] = "/tmp/megalith-generation-XXXXXX", from[1100], to[128];
    mgl_model *model = NULL;
    scratch_make(folder);
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof from, "%s/%s", model_path(name), files[i]);
        snprintf(to, sizeof to, "%s/%s", folder, files[i]);
        ck_assert_int_eq(symlink(from, to), 0);
    }
    snprintf(to, sizeof to, "%s/generation_config.json", folder);
    FILE *file = fopen(to, "w");
    ck_assert_ptr_nonnull(file);
    fputs(generation, file);
    fclose(file);
    mgl_open_options options = {
        .size = sizeof options, .device = "cpu", .capacity = 64, .penalties = 2};
    ck_assert_msg(mgl_model_open(folder, &options, &model, &err) == MGL_OK, "%s: %s", err.where,
                  err.message);
    unlink(to);
    for (int i = 0; i < 2; i++) {
        snprintf(to, sizeof to, "%s/%s", folder, files[i]);
        unlink(to);
    }
    rmdir(folder);
    return model;
}

/* Each of the three values alone makes a hot reply greedy, so none of them may be ignored. */
START_TEST(samples_with_the_values_of_the_checkpoint)
{
    static const char *const generations[] = {
        "{\"do_sample\":true,\"temperature\":9.0,\"top_k\":0}",
        "{\"do_sample\":true,\"temperature\":9.0,\"top_k\":1}",
        "{\"do_sample\":true,\"temperature\":9.0,\"top_k\":0,\"top_p\":0.000001}",
        "{\"do_sample\":true,\"temperature\":0.0001,\"top_k\":0}"};
    mgl_result greedy = {.size = sizeof greedy}, sampled = {.size = sizeof sampled};
    mgl_request request = story;
    request.ignore_eos = true;
    mgl_model *model = open_with_generation("llama3-rope", generations[_i]);
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &greedy, &err), MGL_OK);
    request.sample = true;
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &sampled, &err), MGL_OK);
    ck_assert_uint_eq(sampled.output.count, 20);
    bool same = !memcmp(sampled.output.ids, greedy.output.ids, 20 * sizeof(int32_t));
    ck_assert_int_eq(same, _i != 0);
    mgl_result_clear(&greedy);
    mgl_result_clear(&sampled);
    mgl_model_close(model);
}
END_TEST

/* repetition_penalty of generation_config.json, for which the model is opened: an almost greedy
 * sample. */
START_TEST(samples_with_the_penalty_of_the_checkpoint)
{
    mgl_result greedy = {.size = sizeof greedy}, sampled = {.size = sizeof sampled};
    mgl_result plain = {.size = sizeof plain};
    mgl_request request = story;
    request.ignore_eos = true;
    mgl_model *model = open_with_generation(
        "llama3-rope", "{\"temperature\":0.0001,\"top_k\":0,\"repetition_penalty\":0.1}");
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &plain, &err), MGL_OK);
    request.repeat_penalty = 0.1;
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &greedy, &err), MGL_OK);
    request.repeat_penalty = 0;
    request.sample = true;
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &sampled, &err), MGL_OK);
    ck_assert_mem_eq(sampled.output.ids, greedy.output.ids, 20 * sizeof(int32_t));
    ck_assert_mem_ne(sampled.output.ids, plain.output.ids, 20 * sizeof(int32_t));
    mgl_result_clear(&greedy);
    mgl_result_clear(&sampled);
    mgl_result_clear(&plain);
    mgl_model_close(model);
}
END_TEST

static void *cancel_soon(void *model)
{
    usleep(50000);
    mgl_model_cancel(model);
    return NULL;
}

START_TEST(cancelled_from_another_thread)
{
    mgl_model *model = open_model("tales-5m", 1024);
    mgl_request request = story;
    mgl_result result = {.size = sizeof result};
    pthread_t thread;
    request.max_tokens = 1000;
    request.ignore_eos = true;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, model), 0);
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &result, &err), MGL_OK);
    ck_assert_int_eq(result.stop, MGL_STOP_INTERRUPTED);
    ck_assert_uint_lt(result.output.count, 1000);
    pthread_join(thread, NULL);
    mgl_result_clear(&result);
    mgl_model_close(model);
}
END_TEST

/* ---- the switch ------------------------------------------------------------------------------ */

static mgl_cancel *make_switch(void)
{
    mgl_cancel *cancel = NULL;
    ck_assert_int_eq(mgl_cancel_new(&cancel, &err), MGL_OK);
    return cancel;
}

static mgl_model *open_with_switch(mgl_cancel *cancel)
{
    mgl_model *model = NULL;
    mgl_open_options options = {
        .size = sizeof options, .device = "cpu", .capacity = 64, .sequences = 2, .cancel = cancel};
    ck_assert_msg(mgl_model_open(model_path("tales-5m"), &options, &model, &err) == MGL_OK, "%s",
                  err.message);
    return model;
}

/* A switch that is set before a reply begins ends that reply and all others until it is reset. */
START_TEST(a_switch_set_before_a_reply_is_not_lost)
{
    mgl_cancel *cancel = make_switch();
    mgl_model *model = open_with_switch(cancel);
    mgl_result result = {.size = sizeof result};
    int heard = 0;
    mgl_cancel_set(cancel);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(mgl_model_generate(model, &story, count_token, &heard, &result, &err),
                         MGL_OK);
        ck_assert_int_eq(result.stop, MGL_STOP_INTERRUPTED);
        ck_assert_uint_eq(result.output.count, 0);
    }
    ck_assert_int_eq(heard, 0);
    mgl_cancel_reset(cancel);
    ck_assert_int_eq(mgl_model_generate(model, &story, count_token, &heard, &result, &err), MGL_OK);
    ck_assert_int_eq(result.stop, MGL_STOP_LENGTH);
    mgl_result_clear(&result);
    mgl_model_close(model);
    mgl_cancel_free(cancel);
}
END_TEST

START_TEST(a_switch_ends_every_reply_of_a_batch)
{
    mgl_cancel *cancel = make_switch();
    mgl_model *model = open_with_switch(cancel);
    const mgl_request two[] = {story, story};
    mgl_result results[2] = {{.size = sizeof *results}, {.size = sizeof *results}};
    mgl_cancel_set(cancel);
    ck_assert_int_eq(mgl_model_generate_batch(model, two, 2, NULL, NULL, results, &err), MGL_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(results[i].stop, MGL_STOP_INTERRUPTED);
        ck_assert_uint_eq(results[i].output.count, 0);
        mgl_result_clear(&results[i]);
    }
    mgl_model_close(model);
    mgl_cancel_free(cancel);
}
END_TEST

START_TEST(a_switch_ends_scoring)
{
    mgl_cancel *cancel = make_switch();
    mgl_model *model = open_with_switch(cancel);
    float logprob[8];
    mgl_cancel_set(cancel);
    ck_assert_int_eq(mgl_model_score(model, prompt, 8, logprob, &err), MGL_INTERRUPTED);
    mgl_cancel_reset(cancel);
    ck_assert_int_eq(mgl_model_score(model, prompt, 8, logprob, &err), MGL_OK);
    mgl_model_close(model);
    mgl_cancel_free(cancel);
}
END_TEST

/* With a switch, mgl_model_cancel is not lost either. */
START_TEST(cancelling_a_model_sets_its_switch)
{
    mgl_cancel *cancel = make_switch();
    mgl_model *model = open_with_switch(cancel);
    mgl_result result = {.size = sizeof result};
    mgl_model_cancel(model);
    ck_assert(mgl_cancel_is_set(cancel));
    ck_assert_int_eq(mgl_model_generate(model, &story, NULL, NULL, &result, &err), MGL_OK);
    ck_assert_int_eq(result.stop, MGL_STOP_INTERRUPTED);
    mgl_result_clear(&result);
    mgl_model_close(model);
    mgl_cancel_free(cancel);
}
END_TEST

START_TEST(a_switch_ends_opening)
{
    mgl_cancel *cancel = make_switch();
    mgl_model *model = NULL;
    mgl_open_options options = {.size = sizeof options, .device = "cpu", .cancel = cancel};
    mgl_cancel_set(cancel);
    ck_assert_int_eq(mgl_model_open(model_path("tales-5m"), &options, &model, &err),
                     MGL_INTERRUPTED);
    ck_assert_ptr_null(model);
    ck_assert_str_eq(err.message, "interrupted");
    mgl_cancel_free(cancel);
}
END_TEST

/* A thread that sets a switch after some time. */
typedef struct timer {
    mgl_cancel *cancel;
    useconds_t after;
    pthread_t thread;
} timer;

static void *set_later(void *argument)
{
    const timer *t = argument;
    usleep(t->after);
    mgl_cancel_set(t->cancel);
    return NULL;
}

/* Sets the switch at many moments of opening and of a reply: one of them ends by it. */
START_TEST(a_switch_is_lost_at_no_moment)
{
    int ended_opening = 0, moments = 60;
    for (int i = 0; i < moments; i++) {
        timer t = {.cancel = make_switch(), .after = (useconds_t)i * 400};
        mgl_model *model = NULL;
        mgl_result result = {.size = sizeof result};
        mgl_open_options options = {
            .size = sizeof options, .device = "cpu", .capacity = 1024, .cancel = t.cancel};
        mgl_request request = story;
        request.max_tokens = 1000;
        request.ignore_eos = true;
        ck_assert_int_eq(pthread_create(&t.thread, NULL, set_later, &t), 0);
        mgl_status status = mgl_model_open(model_path("tales-5m"), &options, &model, &err);
        ck_assert(status == MGL_OK || status == MGL_INTERRUPTED);
        if (status) {
            ended_opening++;
        } else {
            ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &result, &err),
                             MGL_OK);
            ck_assert_int_eq(result.stop, MGL_STOP_INTERRUPTED);
        }
        pthread_join(t.thread, NULL);
        mgl_result_clear(&result);
        mgl_model_close(model);
        mgl_cancel_free(t.cancel);
    }
    ck_assert_int_gt(ended_opening, 0);
}
END_TEST

/* A rejected request, and the message. */
typedef struct refusal {
    mgl_request request;
    mgl_status status;
    const char *where;
} refusal;

static const int32_t beyond[] = {909, 913}, negative[] = {909, -1};
static const refusal refusals[] = {
    {{.size = sizeof(mgl_request), .prompt = prompt, .prompt_count = 0, .max_tokens = 1},
     MGL_BAD_INPUT,
     "prompt"},
    {{.size = sizeof(mgl_request), .prompt = beyond, .prompt_count = 2, .max_tokens = 1},
     MGL_BAD_INPUT,
     "prompt"},
    {{.size = sizeof(mgl_request), .prompt = negative, .prompt_count = 2, .max_tokens = 1},
     MGL_BAD_INPUT,
     "prompt"},
    {{.size = sizeof(mgl_request), .prompt = prompt, .prompt_count = 8, .max_tokens = 0},
     MGL_USAGE,
     "max_tokens"},
    {{.size = sizeof(mgl_request), .prompt = NULL, .prompt_count = 8, .max_tokens = 1},
     MGL_USAGE,
     "prompt"},
    {{.size = sizeof(mgl_request), .prompt = prompt, .prompt_count = 8, .max_tokens = -1},
     MGL_USAGE,
     "max_tokens"},
    {{.size = sizeof(mgl_request),
      .prompt = prompt,
      .prompt_count = 8,
      .max_tokens = 1,
      .temperature = -1},
     MGL_USAGE,
     "temperature"},
    {{.size = sizeof(mgl_request),
      .prompt = prompt,
      .prompt_count = 8,
      .max_tokens = 1,
      .temperature = (float)NAN},
     MGL_USAGE,
     "temperature"},
    {{.size = sizeof(mgl_request),
      .prompt = prompt,
      .prompt_count = 8,
      .max_tokens = 1,
      .temperature = (float)INFINITY},
     MGL_USAGE,
     "temperature"},
    {{.size = sizeof(mgl_request),
      .prompt = prompt,
      .prompt_count = 8,
      .max_tokens = 1,
      .top_k = -1},
     MGL_USAGE,
     "top_k"},
    {{.size = sizeof(mgl_request),
      .prompt = prompt,
      .prompt_count = 8,
      .max_tokens = 1,
      .top_p = 1.5F},
     MGL_USAGE,
     "top_p"},
    {{.size = sizeof(mgl_request),
      .prompt = prompt,
      .prompt_count = 8,
      .max_tokens = 1,
      .top_p = -0.1F},
     MGL_USAGE,
     "top_p"},
    {{.size = sizeof(mgl_request),
      .prompt = prompt,
      .prompt_count = 8,
      .max_tokens = 1,
      .min_p = 1.5},
     MGL_USAGE,
     "min_p"},
};

START_TEST(rejects)
{
    mgl_model *model = open_model("llama3-rope", 7);
    mgl_result result = {.size = sizeof result};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        err = (mgl_error){0};
        ck_assert_int_eq(mgl_model_generate(model, &refusals[i].request, NULL, NULL, &result, &err),
                         refusals[i].status);
        ck_assert_str_eq(err.where, refusals[i].where);
        ck_assert_ptr_null(result.output.ids);
    }
    /* Eight tokens do not fit seven positions. */
    ck_assert_int_eq(mgl_model_generate(model, &story, NULL, NULL, &result, &err), MGL_BAD_INPUT);
    mgl_model_close(model);
}
END_TEST

/* No position is left for a reply. The prompt can be scored. */
START_TEST(prompt_that_fills_the_cache)
{
    float logprob[8];
    mgl_model *model = open_model("llama3-rope", 8);
    mgl_result result = {.size = sizeof result};
    ck_assert_int_eq(mgl_model_generate(model, &story, NULL, NULL, &result, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "prompt");
    ck_assert_msg(strstr(err.message, "has 8 tokens, and the KV cache has 8 positions"), "%s",
                  err.message);
    ck_assert_int_eq(mgl_model_score(model, prompt, 8, logprob, &err), MGL_OK);
    mgl_model_close(model);
}
END_TEST

/* The logits after a reply are those from which its last token was chosen. */
START_TEST(logits_of_the_last_token)
{
    mgl_model *model = open_model("tales-5m", 64);
    static float logits[913];
    mgl_result result = {.size = sizeof result};
    ck_assert_int_eq(mgl_model_generate(model, &story, NULL, NULL, &result, &err), MGL_OK);
    ck_assert_int_eq(mgl_model_get_logits(model, logits, &err), MGL_OK);
    int best = 0;
    for (int i = 1; i < 913; i++)
        best = logits[i] > logits[best] ? i : best;
    ck_assert_int_eq(best, result.output.ids[result.output.count - 1]);
    mgl_result_clear(&result);
    mgl_model_close(model);
}
END_TEST

/* Scores a greedy reply: each token is the most likely one, and scores do not depend on replies in
 * between. */
START_TEST(scores)
{
    mgl_model *model = open_model("tales-5m", 64);
    float first[8] = {1}, again[8] = {1}, one = 1;
    mgl_result result = {.size = sizeof result};
    ck_assert_int_eq(mgl_model_score(model, prompt, 8, first, &err), MGL_OK);
    ck_assert_float_eq(first[0], 0);
    for (int i = 1; i < 8; i++)
        ck_assert_float_lt(first[i], 0);
    ck_assert_int_eq(mgl_model_generate(model, &story, NULL, NULL, &result, &err), MGL_OK);
    ck_assert_int_eq(mgl_model_score(model, prompt, 8, again, &err), MGL_OK);
    ck_assert_int_eq(memcmp(first, again, sizeof first), 0);
    ck_assert_int_eq(mgl_model_score(model, prompt, 1, &one, &err), MGL_OK);
    ck_assert_float_eq(one, 0);
    ck_assert_int_eq(mgl_model_score(model, beyond, 2, first, &err), MGL_BAD_INPUT);
    mgl_result_clear(&result);
    mgl_model_close(model);
}
END_TEST

/* Logits of a text in two parts give its scores. */
START_TEST(logits_of_a_text)
{
    enum { VOCAB = 913 };
    mgl_model *model = open_model("tales-5m", 64);
    static float logits[7 * VOCAB];
    float logprob[8];
    ck_assert_int_eq(mgl_model_score(model, prompt, 8, logprob, &err), MGL_OK);
    ck_assert_int_eq(mgl_model_score_logits(model, prompt, 4, 0, logits, &err), MGL_OK);
    ck_assert_int_eq(mgl_model_score_logits(model, prompt, 8, 3, logits + 3 * VOCAB, &err), MGL_OK);
    for (int i = 0; i < 7; i++) {
        double sum = 0;
        for (int id = 0; id < VOCAB; id++)
            sum += exp((double)logits[i * VOCAB + id]);
        ck_assert_double_eq_tol((double)logits[i * VOCAB + prompt[i + 1]] - log(sum),
                                (double)logprob[i + 1], 1e-5);
    }
    ck_assert_int_eq(mgl_model_score_logits(model, prompt, 8, 8, logits, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "begin");
    ck_assert_int_eq(mgl_model_score_logits(model, prompt, 8, 7, logits, &err), MGL_OK);
    ck_assert_int_eq(mgl_model_score_logits(model, beyond, 2, 0, logits, &err), MGL_BAD_INPUT);
    mgl_model_close(model);
}
END_TEST

START_TEST(evaluation_sums_over_texts)
{
    mgl_model *model = open_model("tales-5m", 64);
    int32_t ids[8];
    float logprob[8];
    mgl_eval_result result;
    memcpy(ids, prompt, sizeof ids);
    mgl_ids texts[] = {{ids, 8}, {ids, 1}, {ids, 5}, {NULL, 0}};
    ck_assert_int_eq(score_texts(model, texts, 4, NULL, &result, &err), MGL_OK);
    ck_assert_int_eq(mgl_model_score(model, prompt, 8, logprob, &err), MGL_OK);
    double nll = 0;
    for (int i = 1; i < 8; i++)
        nll -= logprob[i] * (i < 5 ? 2.0 : 1.0);
    ck_assert_uint_eq(result.texts, 4);
    ck_assert_uint_eq(result.tokens, 7 + 4);
    ck_assert_double_le(fabs(result.nll - nll), 1e-5 * nll);
    ck_assert_double_le(fabs(result.perplexity - exp(result.nll / 11)), 1e-9);
    ck_assert_int_eq(score_texts(model, texts + 3, 1, NULL, &result, &err), MGL_BAD_INPUT);
    mgl_model_close(model);
}
END_TEST

/* End tokens of generation_config.json, else of config.json. */
START_TEST(end_ids_are_told)
{
    mgl_model *model = open_model("tales-5m", 64);
    mgl_ids ids = {0};
    ck_assert_int_eq(mgl_model_get_end_ids(model, &ids, &err), MGL_OK);
    ck_assert_uint_eq(ids.count, 1);
    ck_assert_int_eq(ids.ids[0], 910);
    ck_assert_int_eq(mgl_model_get_end_ids(model, &ids, &err), MGL_OK); /* replaces it */
    mgl_ids_clear(&ids);
    mgl_model_close(model);
}
END_TEST

START_TEST(opening_rejects)
{
    mgl_model *model = NULL;
    static const struct {
        mgl_open_options options;
        mgl_status status;
    } cases[] = {
        {{.size = sizeof(mgl_open_options), .device = "tpu"}, MGL_USAGE},
        {{.size = sizeof(mgl_open_options), .device = "cuda:1234"}, MGL_USAGE},
        {{.size = sizeof(mgl_open_options), .device = "cpu", .dtype = "f64"}, MGL_USAGE},
        {{.size = sizeof(mgl_open_options), .device = "cpu", .capacity = -1}, MGL_USAGE},
        {{.size = sizeof(mgl_open_options), .device = "cpu", .prompt = -1}, MGL_USAGE},
        {{.size = sizeof(mgl_open_options), .device = "cpu", .prompt = INT64_C(1) << 31},
         MGL_USAGE},
        {{.size = sizeof(mgl_open_options), .device = "cpu", .capacity = 1 << 20}, MGL_BAD_INPUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(mgl_model_open(model_path("llama3-rope"), &cases[i].options, &model, &err),
                         cases[i].status);
        ck_assert_ptr_null(model);
        ck_assert_uint_gt(strlen(err.message), 10);
    }
    ck_assert_int_eq(mgl_model_open("/nowhere", NULL, &model, NULL), MGL_BAD_INPUT);
    mgl_model_close(NULL);
}
END_TEST

/* Opens, generates and scores while the n-th allocation and all later ones fail. */
static mgl_status live(bool *opened)
{
    mgl_model *model = NULL;
    mgl_result result = {.size = sizeof result};
    float logprob[8];
    mgl_open_options options = {.size = sizeof options, .device = "cpu", .capacity = 16};
    mgl_request request = story;
    request.max_tokens = 2;
    mgl_status status = mgl_model_open(model_path("llama3-rope"), &options, &model, &err);
    *opened = status == MGL_OK;
    if (!status)
        status = mgl_model_generate(model, &request, NULL, NULL, &result, &err);
    if (!status)
        status = mgl_model_score(model, prompt, 8, logprob, &err);
    mgl_result_clear(&result);
    mgl_model_close(model);
    return status;
}

START_TEST(survives_memory_running_out)
{
    bool opened;
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(live(&opened), MGL_OK);
    uint64_t count = mgl_alloc_count(), tried = 0;
    ck_assert_uint_gt(count, 50);
    /* Tests all of the first and last allocations, and about a hundred between. */
    uint64_t step = count / 100 + 1;
    for (uint64_t n = 1; n <= count; n += n < 40 || n + 40 > count ? 1 : step, tried++) {
        for (int forever = 0; forever < 2; forever++) {
            mgl_alloc_fail_at(n, forever);
            mgl_status status = live(&opened);
            mgl_alloc_fail_at(0, false);
            ck_assert_msg(status == MGL_NO_MEMORY || (!forever && status == MGL_OK),
                          "allocation %llu of %llu: status %d: %s: %s", (unsigned long long)n,
                          (unsigned long long)count, (int)status, err.where, err.message);
        }
    }
    ck_assert_uint_gt(tried, 50);
}
END_TEST

static void stop_compiling(void *user, mgl_stage stage, uint64_t done, uint64_t total)
{
    ck_assert_int_eq(stage, MGL_STAGE_WEIGHTS);
    ck_assert_uint_le(done, total);
    mgl_cancel_set(user);
}

/* A reply of a compiled model, and a compilation that is stopped. */
START_TEST(compiles)
{
    char folder[] = "/tmp/megalith-model-XXXXXX", path[64];
    mgl_compile_options options = {
        .size = sizeof options, .target = "cpu:2", .dtype = "bf16", .capacity = 64};
    mgl_compile_report report = {.size = sizeof report};
    mgl_model *model;
    mgl_model_facts facts = {.size = sizeof facts};
    mgl_result result = {.size = sizeof result};
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/m.mega", folder);
    ck_assert_int_eq(mgl_model_compile(model_path("tales-5m"), &options, path, &report, &err),
                     MGL_OK);
    ck_assert_str_eq(report.target, "cpu:2");
    ck_assert(!report.kernel && !report.note[0]);
    ck_assert_int_eq(mgl_model_open(path, NULL, &model, &err), MGL_OK);
    ck_assert_int_eq(mgl_model_get_facts(model, &facts, &err), MGL_OK);
    ck_assert_str_eq(facts.device, "cpu");
    ck_assert_str_eq(facts.dtype, "bf16");
    ck_assert_int_eq(facts.queues, 2);
    ck_assert_int_eq(facts.capacity, 64);
    ck_assert_int_eq(facts.max_positions, 1024);
    ck_assert_int_eq(mgl_model_generate(model, &story, NULL, NULL, &result, &err), MGL_OK);
    ck_assert_uint_eq(result.output.count, 20);
    mgl_result_clear(&result);
    mgl_model_close(model);
    ck_assert_int_eq(unlink(path), 0);
    options.cancel = options.stage_user = make_switch();
    options.on_stage = stop_compiling;
    for (int i = 0; i < 2; i++) /* during writing; and before */
        ck_assert_int_eq(mgl_model_compile(model_path("tales-5m"), &options, path, &report, &err),
                         MGL_INTERRUPTED);
    ck_assert_int_eq(rmdir(folder), 0);
    mgl_cancel_free(options.cancel);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model");
    TCase *tests = tcase_create("model");
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, many_replies_of_one_model);
    tcase_add_test(tests, a_reply_as_text);
    tcase_add_test(tests, tells_its_facts);
    tcase_add_test(tests, callback_stops_the_reply);
    tcase_add_test(tests, cancelled_from_another_thread);
    tcase_add_test(tests, a_switch_set_before_a_reply_is_not_lost);
    tcase_add_test(tests, a_switch_ends_every_reply_of_a_batch);
    tcase_add_test(tests, a_switch_ends_scoring);
    tcase_add_test(tests, cancelling_a_model_sets_its_switch);
    tcase_add_test(tests, a_switch_ends_opening);
    tcase_add_test(tests, a_switch_is_lost_at_no_moment);
    tcase_add_loop_test(tests, samples_with_the_values_of_the_checkpoint, 0, 4);
    tcase_add_test(tests, samples_with_the_penalty_of_the_checkpoint);
    tcase_add_test(tests, rejects);
    tcase_add_test(tests, prompt_that_fills_the_cache);
    tcase_add_test(tests, logits_of_the_last_token);
    tcase_add_test(tests, scores);
    tcase_add_test(tests, logits_of_a_text);
    tcase_add_test(tests, evaluation_sums_over_texts);
    tcase_add_test(tests, end_ids_are_told);
    tcase_add_test(tests, opening_rejects);
    tcase_add_test(tests, compiles);
    tcase_add_test(tests, survives_memory_running_out);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

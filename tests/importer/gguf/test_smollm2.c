/*
 * A published GGUF model: SmolLM2-135M-Instruct in Q4_1. tests/models/smollm2-golden.json has what
 * Hugging Face Transformers answers in f32 on the file's exactly decoded weights: prompts by the
 * model's chat template, greedy replies, and likelihoods of texts. The loss of Transformers in f32
 * has an error of up to 5.3e-6, so the likelihoods (`nll_f64`) are computed in f64. smollm2.sh
 * fetches the model and runs this program with its path.
 */
#include "megalith.h"

#include "base/json.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN MGL_SOURCE_DIR "/tests/models/smollm2-golden.json"

enum { CAPACITY = 160, MOST_TOKENS = 64 };

static const char *path;
static mgl_error err;
static mgl_json golden;
static mgl_tokenizer *tokenizer;
static mgl_chat_template *chat;
static mgl_model *model;

static void ok(mgl_status status)
{
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
}

static void set_up(void)
{
    const mgl_open_options options = {
        .size = sizeof options, .device = "cpu", .dtype = "f32", .capacity = CAPACITY};
    ok(mgl_json_read_regular(GOLDEN, 1 << 20, &golden, &err));
    ok(mgl_tokenizer_open(path, &tokenizer, &err));
    ok(mgl_chat_template_open(path, NULL, &chat, &err));
    ok(mgl_model_open(path, &options, &model, &err));
}

static void tear_down(void)
{
    mgl_model_close(model);
    mgl_chat_template_close(chat);
    mgl_tokenizer_close(tokenizer);
    mgl_json_clear(&golden);
}

static void check_ids(const char *what, const char *of, const int32_t *ids, size_t count,
                      const cJSON *wanted)
{
    const cJSON *item;
    size_t i = 0;
    cJSON_ArrayForEach(item, wanted)
    {
        ck_assert_msg(i < count && ids[i] == item->valueint,
                      "%s of \"%s\": token %zu is %d, not %d", what, of, i,
                      i < count ? (int)ids[i] : -1, item->valueint);
        i++;
    }
    ck_assert_msg(i == count, "%s of \"%s\": %zu tokens, not %zu", what, of, count, i);
}

static void check_reply(const cJSON *entry)
{
    const char *user = mgl_json_member(entry, "user")->valuestring;
    char *messages = NULL, *text = NULL;
    mgl_ids prompt = {0};
    mgl_result result = {.size = sizeof result};
    mgl_conversation conversation = {.size = sizeof conversation};
    ok(mgl_messages_add(&messages, "user", user, strlen(user), &err));
    conversation.messages = messages;
    ok(mgl_chat_template_encode(chat, tokenizer, &conversation, &prompt, &err));
    check_ids("prompt", user, prompt.ids, prompt.count, mgl_json_member(entry, "prompt_ids"));
    const mgl_request request = {.size = sizeof request,
                                 .prompt = prompt.ids,
                                 .prompt_count = prompt.count,
                                 .max_tokens = MOST_TOKENS,
                                 .tokenizer = tokenizer,
                                 .chat = 1};
    ok(mgl_model_generate(model, &request, NULL, NULL, &result, &err));
    check_ids("reply", user, result.output.ids, result.output.count,
              mgl_json_member(entry, "output_ids"));
    ok(mgl_tokenizer_decode(tokenizer, result.output.ids, result.output.count, true, &text, NULL,
                            &err));
    ck_assert_str_eq(text, mgl_json_member(entry, "text")->valuestring);
    mgl_text_free(text);
    mgl_text_free(messages);
    mgl_result_clear(&result);
    mgl_ids_clear(&prompt);
}

START_TEST(test_replies)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, mgl_json_member(golden.root, "chat")) check_reply(entry);
}
END_TEST

START_TEST(test_likelihoods)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, mgl_json_member(golden.root, "likelihood"))
    {
        const char *text = mgl_json_member(entry, "text")->valuestring;
        const double wanted = mgl_json_member(entry, "nll_f64")->valuedouble;
        mgl_ids ids = {0};
        float logprobs[CAPACITY];
        double nll = 0;
        ok(mgl_tokenizer_encode(tokenizer, text, strlen(text), true, &ids, &err));
        check_ids("text", text, ids.ids, ids.count, mgl_json_member(entry, "ids"));
        ok(mgl_model_score(model, ids.ids, ids.count, logprobs, &err));
        for (size_t i = 1; i < ids.count; i++) /* the first token is not scored */
            nll -= (double)logprobs[i];
        ck_assert_msg(fabs(nll - wanted) <= 1e-6 * wanted, "%.9g, not %.9g: \"%s\"", nll, wanted,
                      text);
        mgl_ids_clear(&ids);
    }
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE.gguf\n", argv[0]);
        return EXIT_FAILURE;
    }
    path = argv[1];
    Suite *suite = suite_create("gguf_smollm2");
    TCase *tests = tcase_create("smollm2");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, test_replies);
    tcase_add_test(tests, test_likelihoods);
    tcase_set_timeout(tests, 0);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

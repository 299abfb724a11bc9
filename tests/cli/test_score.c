/*
 * Tests of `score`: against the log-likelihoods of Hugging Face and of `eval`, and rejected input.
 */
#include "command.h"
#include "tests/sanitized.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number `key` of text `index`. */
static const cJSON *of_text(const mgl_json *json, int index, const char *key)
{
    const cJSON *text = cJSON_GetArrayItem(json_at(json, "texts"), index);
    ck_assert_ptr_nonnull(text);
    return mgl_json_member(text, key);
}

static double number_of(const mgl_json *json, int index, const char *key)
{
    const cJSON *number = of_text(json, index, key);
    ck_assert_msg(cJSON_IsNumber(number), "text %d has no %s", index, key);
    return number->valuedouble;
}

static const char *const models[] = {"tales-5m", "llama3-rope", "qwen3"};

/* The sums of all texts are the likelihood that Hugging Face has for them. */
START_TEST(as_hugging_face)
{
    mgl_json golden = model_json(models[_i], "golden.json");
    command_result result = command_runf("score %s --device cpu --texts %s/val_texts.json --json",
                                         model_path(models[_i]), model_path(models[_i]));
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.score/1");
    double nll = 0, tokens = 0, wanted = json_number(&golden, "fp32.perplexity.nll");
    for (int i = 0; i < cJSON_GetArraySize(json_at(&json, "texts")); i++) {
        nll -= number_of(&json, i, "sum");
        tokens += number_of(&json, i, "scored");
    }
    ck_assert_double_eq(tokens, json_number(&golden, "fp32.perplexity.tokens"));
    ck_assert_double_le(fabs(nll - wanted), 1e-5 * wanted);
    mgl_json_clear(&json);
    mgl_json_clear(&golden);
    command_clear(&result);
}
END_TEST

/* The first token has no log-probability; the others sum to `sum`. */
START_TEST(numbers_of_a_text)
{
    command_result result = command_runf("score %s --device cpu --json --text 'Once there was'",
                                         model_path("tales-5m"));
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.score/1");
    const cJSON *logprobs = of_text(&json, 0, "logprobs");
    const cJSON *tokens = of_text(&json, 0, "tokens");
    ck_assert_int_eq(cJSON_GetArraySize(of_text(&json, 0, "ids")), 4);
    ck_assert_int_eq(cJSON_GetArraySize(logprobs), 4);
    ck_assert(cJSON_IsNull(logprobs->child));
    double sum = 0;
    for (const cJSON *one = logprobs->child->next; one; one = one->next)
        sum += one->valuedouble;
    ck_assert_double_eq_tol(number_of(&json, 0, "sum"), sum, 1e-6);
    ck_assert_double_eq_tol(number_of(&json, 0, "mean"), sum / 3, 1e-6);
    ck_assert_double_eq_tol(number_of(&json, 0, "perplexity"), exp(-sum / 3), 1e-6);
    ck_assert_str_eq(cJSON_GetArrayItem(tokens, 0)->valuestring, "<|begin_of_text|>");
    ck_assert_str_eq(cJSON_GetArrayItem(tokens, 2)->valuestring, " there");
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* A text as an argument, from a file, in a list, and as ids gives the same number. */
START_TEST(ways_to_give_a_text)
{
    static const char list[] = "[\"Once there was\", {\"text\": \"Once there was\"}, "
                               "{\"ids\": [909, 452, 449, 268]}]";
    static const char line[] = "sum -1.0404  mean -0.346811  perplexity 1.414550\n";
    char three[200];
    const char *model = model_path("tales-5m");
    snprintf(three, sizeof three, "%s%s%s", line, line, line);
    command_result text = command_runf("score %s --device cpu --text 'Once there was'", model);
    ck_assert_str_eq(text.out, line);
    command_result file = command_runf("score %s --device cpu --file %s", model,
                                       scratch_file("text", "Once there was"));
    ck_assert_str_eq(file.out, line);
    command_result many =
        command_runf("score %s --device cpu --texts %s", model, scratch_file("list.json", list));
    ck_assert_str_eq(many.out, three);
    command_clear(&text);
    command_clear(&file);
    command_clear(&many);
}
END_TEST

/* A text of one token, and one of none: nothing is scored. */
START_TEST(texts_with_nothing_to_score)
{
    const char *list = scratch_file("list.json", "[\"\", {\"ids\": []}]");
    command_result plain =
        command_runf("score %s --device cpu --texts %s", model_path("tales-5m"), list);
    ck_assert_str_eq(plain.out, "sum 0  mean -  perplexity -\nsum 0  mean -  perplexity -\n");
    command_clear(&plain);
    command_result result =
        command_runf("score %s --device cpu --json --texts %s", model_path("tales-5m"), list);
    mgl_json json = command_json(&result, "megalith.score/1");
    ck_assert_double_eq(number_of(&json, 0, "scored"), 0);
    ck_assert(cJSON_IsNull(of_text(&json, 0, "mean")));
    ck_assert(cJSON_IsNull(of_text(&json, 1, "perplexity")));
    ck_assert_int_eq(cJSON_GetArraySize(of_text(&json, 1, "ids")), 0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* Ids need no tokenizer; without one, no tokens are printed. */
START_TEST(a_model_without_a_tokenizer)
{
    char line[2048], folder[200];
    snprintf(folder, sizeof folder, "%s/bare", scratch_folder());
    snprintf(line, sizeof line, "mkdir -p %s && ln -sf %s/*.safetensors %s/*.json %s && rm %s/t*",
             folder, model_path("qwen2"), model_path("qwen2"), folder, folder);
    ck_assert_int_eq(system(line), 0);
    command_result result = command_runf("score %s --device cpu --json --texts %s", folder,
                                         scratch_file("list.json", "[{\"ids\": [1, 2, 3]}]"));
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.score/1");
    ck_assert(cJSON_IsNull(of_text(&json, 0, "tokens")->child));
    ck_assert_double_lt(number_of(&json, 0, "sum"), 0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

typedef struct refusal {
    const char *list, *flags;
    int code;
    const char *says;
} refusal;

static const refusal refusals[] = {
    {"[\"a\", \"Once there was a small fox\"]", "--capacity 4", 2,
     "text 1: 7 tokens are more than the 4 positions of the KV cache"},
    {"[\"Once there was a small fox\"]", "--capacity 4", 2, "`eval --stride N` reads longer texts"},
    {"[]", "", 2, "list.json: holds 0 texts; at least one is needed"},
    {"{}", "", 2, "list.json: line 1: one of \"text\" and \"ids\" is needed"},
    {"3", "", 2, "list.json: is not a list of texts; write a JSON array"},
    {"[\"a\", 1]", "", 2, "[1]: must be a string or an object"},
    {"[{}]", "", 2, "[0]: one of \"text\" and \"ids\" is needed"},
    {"[{\"text\": \"a\", \"ids\": [1]}]", "", 2, "[0]: only one of \"text\" and \"ids\""},
    {"[{\"text\": \"a\", \"seed\": 1}]", "", 2, "unknown key \"seed\"; allowed: text and ids"},
    {"[{\"ids\": [1, 913]}]", "", 2, "list.json: text 0: text: token 1 is 913"},
    {"\"a\"\n{\"ids\": [1, 913]}\n", "", 2, "list.json: line 2: text: token 1 is 913"},
    {"\"a\"\n\"Once there was a small fox\"\n", "--capacity 4", 2, "list.json: line 2: 7 tokens"},
    {"[\"a\"]", "--text b", 1, "only one of --text, --file and --texts"},
    {"[\"a\"]", "--capacity 1025", 2, "1025 positions are requested; the model has 1024"},
};

START_TEST(what_is_rejected)
{
    const refusal *r = &refusals[_i];
    command_result result =
        command_runf("score %s --device cpu --texts %s %s", model_path("tales-5m"),
                     scratch_file("list.json", r->list), r->flags);
    ck_assert_msg(result.code == r->code, "%s: exit %d: %s", r->list, result.code, result.err);
    ck_assert_msg(strstr(result.err, r->says) != NULL, "%s: %s", r->list, result.err);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

START_TEST(a_text_is_needed)
{
    command_result result = command_runf("score %s", model_path("tales-5m"));
    ck_assert_int_eq(result.code, 1);
    ck_assert_ptr_nonnull(strstr(result.err, "one of --text, --file and --texts is needed"));
    command_clear(&result);
    result = command_runf("score %s --text ''", model_path("tales-5m"));
    ck_assert_int_eq(result.code, 1);
    ck_assert_ptr_nonnull(strstr(result.err, "--text: is empty"));
    command_clear(&result);
    result = command_runf("score %s --file %s", model_path("tales-5m"), scratch_file("none", ""));
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "is empty"));
    command_clear(&result);
}
END_TEST

/* The same bytes as `tokenize`. */
START_TEST(a_pipe_is_the_text_when_none_is_given)
{
    char line[1200];
    command_result text =
        command_runf("score %s --device cpu --text 'Once there was'", model_path("tales-5m"));
    ck_assert_int_eq(text.code, 0);
    snprintf(line, sizeof line, "score %s --device cpu", model_path("tales-5m"));
    command_result piped = command_run(line, "Once there was");
    ck_assert_msg(piped.code == 0, "%s", piped.err);
    ck_assert_str_eq(piped.out, text.out);
    command_clear(&piped);
    snprintf(line, sizeof line, "score %s --device cpu --file -", model_path("tales-5m"));
    piped = command_run(line, "Once there was");
    ck_assert_msg(piped.code == 0, "%s", piped.err);
    ck_assert_str_eq(piped.out, text.out);
    command_clear(&piped);
    snprintf(line, sizeof line, "score %s --device cpu --config -", model_path("tales-5m"));
    piped = command_run(line, "{}");
    ck_assert_int_eq(piped.code, 1);
    ck_assert_ptr_nonnull(strstr(piped.err, "or a text through a pipe"));
    command_clear(&piped);
    command_clear(&text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli score");
    TCase *tests = tcase_create("score");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, as_hugging_face, 0,
                        BY_SANITIZER((int)(sizeof models / sizeof *models), 1));
    tcase_add_test(tests, numbers_of_a_text);
    tcase_add_test(tests, ways_to_give_a_text);
    tcase_add_test(tests, texts_with_nothing_to_score);
    tcase_add_test(tests, a_model_without_a_tokenizer);
    tcase_add_loop_test(tests, what_is_rejected, 0, (int)(sizeof refusals / sizeof *refusals));
    tcase_add_test(tests, a_text_is_needed);
    tcase_add_test(tests, a_pipe_is_the_text_when_none_is_given);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

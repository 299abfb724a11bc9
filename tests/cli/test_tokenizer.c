/*
 * Tests of tokenizers as checkpoints have them: tokens defined outside tokenizer.json, tokenizer
 * classes, and unusable tokenizers. The results of Transformers are in
 * tests/tokenizer/goldens/declared.json.
 */
#include "command.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A folder NAME in the scratch folder with config.json and weights of llama3-rope, whose vocabulary
 * has 913 ids, and the tokenizer.json of `from`. Static storage. */
static const char *make_model(const char *name, const char *from)
{
    static char folder[300];
    char line[3000];
    snprintf(folder, sizeof folder, "%s/%s", scratch_folder(), name);
    snprintf(line, sizeof line,
             "mkdir -p %s && cp %s/config.json %s/model.safetensors %s && "
             "cp %s/tokenizer.json %s",
             folder, model_path("llama3-rope"), model_path("llama3-rope"), folder, model_path(from),
             folder);
    ck_assert_int_eq(system(line), 0);
    return folder;
}

static void put_file(const char *folder, const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void assert_prints(command_result result, const char *out)
{
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_str_eq(result.out, out);
    command_clear(&result);
}

static void assert_fails(command_result result, const char *says)
{
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, says) != NULL, "\"%s\" does not say \"%s\"", result.err, says);
    command_clear(&result);
}

/* A token that only tokenizer_config.json has. If the model has no row for its id, a text with the
 * token is an error of every verb. */
START_TEST(a_token_of_tokenizer_config)
{
    static const char outside[] = "the token \"<new>\" is outside the vocabulary of the model";
    static const char *const lines[] = {"tokenize %s --text 'a<new>b'", "run %s -p 'a<new>b' -n 2",
                                        "score %s --text 'a<new>b'", "eval %s --texts %s"};
    char texts[400];
    const char *folder = make_model("added", "tales-5m");
    snprintf(texts, sizeof texts, "%s", scratch_file("texts.json", "[\"a<new>b\"]"));
    put_file(folder, "tokenizer_config.json",
             "{\"added_tokens_decoder\": {\"950\": {\"content\": \"<new>\", \"special\": true}}}");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[1000];
        snprintf(line, sizeof line, lines[i], folder, texts);
        assert_fails(command_run(line, NULL), outside);
    }
    assert_prints(command_runf("tokenize %s --text ab", folder), "909,64,65\n");
    command_result result = command_runf("info %s", folder);
    ck_assert_msg(strstr(result.out, "ids 0 to 913, 5 added tokens") != NULL, "%s", result.out);
    ck_assert_msg(strstr(result.out, "a token of the ids 913 to 913 is an error") != NULL, "%s",
                  result.out);
    command_clear(&result);
    char line[400];
    snprintf(line, sizeof line, "rm %s/config.json", folder);
    ck_assert_int_eq(system(line), 0);
    assert_prints(command_runf("tokenize %s --text 'a<new>b'", folder), "909,64,913,65\n");
    assert_prints(command_runf("detokenize %s --ids 64,913,65", folder), "ab\n");
}
END_TEST

/* CodeLlamaTokenizer prepends a space to a text once, whatever `legacy` is. */
START_TEST(the_class_of_code_llama)
{
    const char *folder = make_model("llama", "tokenizers/metaspace");
    put_file(folder, "tokenizer_config.json",
             "{\"tokenizer_class\": \"LlamaTokenizer\", \"legacy\": false}");
    command_result wanted = command_runf("tokenize %s --text 'a</s>e aa e'", folder);
    put_file(folder, "tokenizer_config.json",
             "{\"tokenizer_class\": \"CodeLlamaTokenizer\", \"legacy\": true}");
    assert_prints(command_runf("tokenize %s --text 'a</s>e aa e'", folder), wanted.out);
    command_clear(&wanted);
}
END_TEST

/* A compiled model has what its tokenizer needs: the class, and tokens of all three files. */
START_TEST(a_compiled_model_tokenizes_like_its_folder)
{
    static const char *const files[][3] = {
        {"tokenizer_config.json", "{\"tokenizer_class\": \"LlamaTokenizer\", \"legacy\": true}",
         "1,497,2,562,497,325,562\n"},
        {"added_tokens.json", "{\"a\": 5000}", "1,325,2,562,468,325,325,562\n"},
        {"special_tokens_map.json", "{\"bos_token\": {\"content\": \"e\", \"lstrip\": true}}",
         "1,325,2,329,468,325,325,329\n"}};
    char compiled[300];
    const char *folder = make_model("llama", "tokenizers/metaspace");
    snprintf(compiled, sizeof compiled, "%s/llama.mega", scratch_folder());
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        put_file(folder, files[i][0], files[i][1]);
        command_result made =
            command_runf("compile %s --target cpu:1 -o %s --quiet", folder, compiled);
        ck_assert_msg(made.code == 0, "%s", made.err);
        command_clear(&made);
        assert_prints(command_runf("tokenize %s --text 'a</s>e aa e'", folder), files[i][2]);
        assert_prints(command_runf("tokenize %s --text 'a</s>e aa e'", compiled), files[i][2]);
    }
}
END_TEST

START_TEST(truncation_is_ignored_and_told)
{
    const char *folder = make_model("cut", "tales-5m");
    char line[1000];
    snprintf(line, sizeof line,
             "sed -i 's/\"truncation\": *null/\"truncation\": {\"direction\": \"Right\", "
             "\"max_length\": 2, \"strategy\": \"LongestFirst\", \"stride\": 0}/' "
             "%s/tokenizer.json && grep -q LongestFirst %s/tokenizer.json",
             folder, folder);
    ck_assert_int_eq(system(line), 0);
    assert_prints(command_runf("tokenize %s --text hihi", folder), "909,71,72,71,72\n");
    command_result result = command_runf("info %s", folder);
    ck_assert_msg(strstr(result.out, "truncation of tokenizer.json is ignored") != NULL, "%s",
                  result.out);
    command_clear(&result);
    result = command_runf("info %s --json", folder);
    mgl_json json = command_json(&result, "megalith.info/1");
    ck_assert(cJSON_IsTrue(json_at(&json, "tokenizer.truncation_ignored")));
    ck_assert(cJSON_IsFalse(json_at(&json, "tokenizer.padding_ignored")));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

static const struct {
    const char *model, *says;
} unusable[] = {
    {"{\"type\": \"Unigram\", \"vocab\": [[\"a\", 0.0]], \"unk_id\": 0}",
     "the model \"Unigram\" is not supported; supported: BPE; give ids instead of texts"},
    {"{\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}, \"unk_token\": \"a\"}",
     "the model \"WordPiece\""},
    {"{\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": \"a\"}",
     "the model \"WordLevel\""},
};

/* The model runs by ids, and the reason is printed; texts are rejected with the reason. */
START_TEST(a_tokenizer_that_is_no_bpe)
{
    const char *says = unusable[_i].says, *folder = make_model("nobpe", "tales-5m");
    char text[400], compiled[300];
    snprintf(text, sizeof text, "{\"model\": %s}", unusable[_i].model);
    put_file(folder, "tokenizer.json", text);
    snprintf(compiled, sizeof compiled, "%s/nobpe.mega", scratch_folder());
    command_result made = command_runf("compile %s --target cpu:1 -o %s", folder, compiled);
    ck_assert_msg(made.code == 0 && strstr(made.err, says), "%s", made.err);
    command_clear(&made);
    const char *models[] = {folder, compiled};
    for (size_t i = 0; i < 2; i++) {
        command_result result = command_runf("run %s --prompt-ids 1,2 -n 3", models[i]);
        ck_assert_msg(result.code == 0, "%s", result.err);
        ck_assert_str_eq(result.out, "649 554 448\n");
        ck_assert_msg(strstr(result.err, "the tokenizer cannot be used") != NULL, "%s", result.err);
        ck_assert_msg(strstr(result.err, says) != NULL, "%s", result.err);
        command_clear(&result);
        result = command_runf("info %s", models[i]);
        ck_assert_msg(result.code == 0 && strstr(result.out, says), "%s", result.out);
        command_clear(&result);
        assert_fails(command_runf("tokenize %s --text a", models[i]), says);
        assert_fails(command_runf("detokenize %s --ids 1", models[i]), says);
        assert_fails(command_runf("run %s --prompt a", models[i]), says);
        result = command_runf("run %s --prompts %s -n 3", models[i],
                              scratch_file("prompts.json", "[{\"ids\": [1, 2]}, \"a\"]"));
        ck_assert_int_eq(result.code, 2);
        ck_assert_msg(strstr(result.out, "649 554 448") != NULL, "%s", result.out);
        ck_assert_msg(strstr(result.err, says) != NULL, "%s", result.err);
        command_clear(&result);
        assert_fails(command_runf("score %s --text a", models[i]), says);
    }
}
END_TEST

/* Numbers that Python writes and JSON does not have, and a template with U+0000. */
START_TEST(other_keys_may_have_any_value)
{
    const char *folder = make_model("any", "tales-5m");
    char line[1000];
    snprintf(line, sizeof line, "sed -i 's/{/{\"x\": [NaN, -Infinity],/' %s/config.json", folder);
    ck_assert_int_eq(system(line), 0);
    put_file(folder, "tokenizer_config.json",
             "{\"chat_template\": \"a\\u0000b\", \"model_max_length\": 1e30}");
    assert_prints(command_runf("tokenize %s --text hi", folder), "909,71,72\n");
}
END_TEST

START_TEST(split_special_tokens_is_rejected)
{
    const char *folder = make_model("split", "tales-5m");
    put_file(folder, "tokenizer_config.json", "{\"split_special_tokens\": true}");
    assert_fails(command_runf("tokenize %s --text a", folder), "split_special_tokens = true");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli tokenizer");
    TCase *tests = tcase_create("tokenizer");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_token_of_tokenizer_config);
    tcase_add_test(tests, the_class_of_code_llama);
    tcase_add_test(tests, a_compiled_model_tokenizes_like_its_folder);
    tcase_add_test(tests, truncation_is_ignored_and_told);
    tcase_add_loop_test(tests, a_tokenizer_that_is_no_bpe, 0, sizeof unusable / sizeof *unusable);
    tcase_add_test(tests, other_keys_may_have_any_value);
    tcase_add_test(tests, split_special_tokens_is_rejected);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

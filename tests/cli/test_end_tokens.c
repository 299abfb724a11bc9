/*
 * Tests of end tokens: the union of generation_config.json, config.json and, for chats, eos_token
 * of tokenizer_config.json, for a folder and a compiled model. `info` names the sources.
 */
#include "command.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEMPLATE                                                                                   \
    "{% for m in messages %}{{ '[' + m.content + ']' if m.role == 'user' else m.content + '</s>' " \
    "}}{% endfor %}"

static const char *folder(void)
{
    static char path[1100];
    snprintf(path, sizeof path, "%s/ends", scratch_folder());
    return path;
}

/* Replaces a file of the model; NULL: none. */
static void put(const char *name, const char *content)
{
    char path[1300];
    snprintf(path, sizeof path, "%s/%s", folder(), name);
    unlink(path);
    snprintf(path, sizeof path, "ends/%s", name);
    if (content)
        scratch_file(path, content);
}

/* config.json of the fixture with this eos_token_id. */
static void put_config(const char *ends)
{
    mgl_json json = model_json("tales-5m", "config.json");
    cJSON_DeleteItemFromObjectCaseSensitive(json.root, "eos_token_id");
    cJSON_AddItemToObject(json.root, "eos_token_id", cJSON_Parse(ends));
    char *text = cJSON_Print(json.root);
    put("config.json", text);
    cJSON_free(text);
    mgl_json_clear(&json);
}

/* The weights of tales-5m with the tokenizer of words, whose greedy reply to [Hello] is " gol net
 * bat gum ...". */
static void make_model(const char *generation, const char *config, const char *tokenizer)
{
    char line[4096];
    snprintf(line, sizeof line, "mkdir -p %s && ln -sf %s/model* %s && ln -sf %s/tokenizer.json %s",
             folder(), model_path("tales-5m"), folder(), model_path("tokenizers/words"), folder());
    ck_assert_int_eq(system(line), 0);
    put_config(config);
    put("generation_config.json", generation);
    put("tokenizer_config.json", tokenizer);
    put("chat_template.jinja", TEMPLATE);
}

static void assert_info(const char *want)
{
    char line[500];
    command_result result = command_runf("info %s", folder());
    ck_assert_msg(result.code == 0, "%s", result.err);
    snprintf(line, sizeof line, "\nend tokens    %s\n", want);
    ck_assert_msg(strstr(result.out, line) != NULL, "%s", result.out);
    command_clear(&result);
}

static const struct shown {
    const char *generation, *config, *tokenizer, *text;
} shown[] = {
    {NULL, "null", NULL, "none"},
    {NULL, "910", "{}", "910 (config.json)"},
    {"{\"eos_token_id\": [7, 910]}", "[910, 5]", "{\"eos_token\": \"</s>\"}",
     "5 (config.json); 7 (generation_config.json); 910 (generation_config.json, config.json); 2 "
     "(tokenizer_config.json, in chats only)"},
    {"{\"eos_token_id\": 2}", "null", "{\"eos_token\": {\"content\": \"</s>\"}}",
     "2 (generation_config.json, tokenizer_config.json)"},
    {NULL, "null", "{\"eos_token\": null}", "none"},
    {"{\"eos_token_id\": [7, -1, 5000]}", "5000", NULL,
     "7 (generation_config.json); -1 (generation_config.json) cannot occur: the model has the ids "
     "0 "
     "to 912; 5000 (generation_config.json, config.json) cannot occur: the model has the ids 0 to "
     "912"},
    {NULL, "-1", NULL, "none; -1 (config.json) cannot occur: the model has the ids 0 to 912"},
};

START_TEST(info_names_the_sources)
{
    make_model(shown[_i].generation, shown[_i].config, shown[_i].tokenizer);
    assert_info(shown[_i].text);
}
END_TEST

START_TEST(info_has_them_as_json)
{
    make_model("{\"eos_token_id\": 7}", "7", "{\"eos_token\": \"</s>\"}");
    command_result result = command_runf("info %s --json", folder());
    mgl_json json = command_json(&result, "megalith.info/1");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "end_tokens")), 1);
    const cJSON *other = json_at(&json, "end_token_sources")->child, *chat = other->next;
    ck_assert_int_eq((int)mgl_json_member(chat, "id")->valuedouble, 2);
    ck_assert_str_eq(mgl_json_member(chat, "token")->valuestring, "</s>");
    ck_assert_str_eq(mgl_json_member(chat, "sources")->child->valuestring, "tokenizer_config.json");
    ck_assert(cJSON_IsTrue(mgl_json_member(chat, "chat_only")));
    ck_assert_int_eq((int)mgl_json_member(other, "id")->valuedouble, 7);
    ck_assert_int_eq(cJSON_GetArraySize(mgl_json_member(other, "sources")), 2);
    ck_assert(cJSON_IsFalse(mgl_json_member(other, "chat_only")));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* Replaces the model's tokenizer.json; NULL: removes it. */
static void put_tokenizer(const char *fixture)
{
    char line[2500];
    snprintf(line, sizeof line, "rm %s/tokenizer.json", folder());
    ck_assert_int_eq(system(line), 0);
    if (!fixture)
        return;
    snprintf(line, sizeof line, "ln -s %s/tokenizer.json %s", model_path(fixture), folder());
    ck_assert_int_eq(system(line), 0);
}

/* The chat's end token has the first id after the model's ids. */
START_TEST(info_of_an_id_beyond_the_vocabulary)
{
    make_model(NULL, "7", "{\"eos_token\": \"<far>\"}");
    put_tokenizer("tales-5m");
    assert_info(
        "7 (config.json); 913 (tokenizer_config.json, in chats only) cannot occur: the model "
        "has the ids 0 to 912");
    command_result result = command_runf("info %s --json", folder());
    ck_assert_ptr_nonnull(strstr(result.out, "\"chat_only\":true,\"in_vocabulary\":false}]"));
    ck_assert_ptr_nonnull(strstr(result.out, "\"chat_only\":false,\"in_vocabulary\":true}"));
    command_clear(&result);
    make_model("{\"eos_token_id\": 913}", "7", "{\"eos_token\": \"<far>\"}");
    put_tokenizer("tales-5m");
    assert_info(
        "7 (config.json); 913 (generation_config.json, tokenizer_config.json) cannot occur: "
        "the model has the ids 0 to 912");
}
END_TEST

/* Without a usable tokenizer, the model runs with ids only. The advice is one line. */
START_TEST(info_without_a_tokenizer)
{
    make_model(NULL, "7", "{\"eos_token\": \"</s>\"}");
    put_tokenizer(NULL);
    put("tokenizer.model", "x");
    assert_info("7 (config.json); \"</s>\" (tokenizer_config.json) has no id: the model has no "
                "usable tokenizer");
    command_result result = command_runf("info %s", folder());
    ck_assert_msg(
        strstr(result.out, "\ntokenizer     cannot be used; run the model with token ids "
                           "(--prompt-ids): ") &&
            strstr(result.out, "/ends: holds tokenizer.model, a tokenizer of SentencePiece") &&
            strstr(result.out, "\nsupported     yes, with token ids only (see tokenizer)\n"),
        "%s", result.out);
    command_clear(&result);
    put("tokenizer.model", NULL);
    result = command_runf("info %s", folder());
    ck_assert_msg(
        strstr(result.out, "\n"
                           "tokenizer     none; run the model with token ids (--prompt-ids)\n") &&
            strstr(result.out, "\nsupported     yes, with token ids only (see tokenizer)\n"),
        "%s", result.out);
    command_clear(&result);
}
END_TEST

/* Why the one reply of `run` ended, and how many tokens it has. */
static void assert_end(const char *flags, const char *model, const char *stop, int count)
{
    command_result result =
        command_runf("run %s --device cpu --dtype f32 --quiet --json -n 6 %s", model, flags);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_str_eq(json_string(&json, "stop"), stop);
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "output_ids")), count);
    mgl_json_clear(&json);
    command_clear(&result);
}

/* The third token of the reply is the end token of tokenizer_config.json. */
static void assert_chat_ends(const char *model)
{
    char flags[1300];
    assert_end("-p '[Hello]'", model, "length", 6);
    assert_end("-p Hello --chat", model, "eos", 3);
    assert_end("-p Hello --chat --ignore-eos", model, "length", 6);
    snprintf(flags, sizeof flags, "--prompts %s",
             scratch_file("messages.json",
                          "[{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}]"));
    assert_end(flags, model, "eos", 3);
    snprintf(flags, sizeof flags, "chat %s --device cpu --dtype f32 --json -n 6", model);
    command_result result = command_run(flags, "Hello\n");
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_ptr_null(strstr(result.err, "no end token"));
    mgl_json json = command_json(&result, "megalith.chat/1");
    ck_assert_str_eq(mgl_json_member(json_at(&json, "replies")->child, "stop")->valuestring, "eos");
    mgl_json_clear(&json);
    command_clear(&result);
}

START_TEST(a_chat_ends_at_its_token)
{
    char mega[1200];
    make_model(NULL, "null", "{\"eos_token\": {\"content\": \"\u2581bat\"}}");
    assert_chat_ends(folder());
    snprintf(mega, sizeof mega, "%s/ends.mega", scratch_folder());
    ck_assert_int_eq(command_code("compile %s -o %s --target cpu:1 --capacity 64", folder(), mega),
                     0);
    assert_chat_ends(mega);
    command_result result = command_runf("info %s", mega);
    ck_assert_ptr_nonnull(strstr(result.out, "(tokenizer_config.json, in chats only)"));
    command_clear(&result);
}
END_TEST

START_TEST(a_chat_without_end_tokens_warns)
{
    char line[1300];
    make_model(NULL, "null", NULL);
    snprintf(line, sizeof line, "chat %s --device cpu --dtype f32 --quiet -n 2", folder());
    command_result result = command_run(line, "Hello\n");
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.err, "warning: no end token is known"));
    command_clear(&result);
}
END_TEST

START_TEST(a_token_that_the_tokenizer_does_not_have)
{
    make_model(NULL, "5", "{\"eos_token\": \"<gone>\"}");
    command_result result = command_runf("info %s", folder());
    ck_assert_msg(strstr(result.out, "\nend tokens    5 (config.json); ") != NULL, "%s",
                  result.out);
    command_clear(&result);
    make_model(NULL, "5", "{\"eos_token\": 3}");
    result = command_runf("run %s --device cpu --chat -p Hello -n 2", folder());
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "eos_token must be a text"));
    command_clear(&result);
}
END_TEST

START_TEST(more_than_fit_are_an_error)
{
    make_model("{\"eos_token_id\": [3,4,5,6,7,8,9,10,11]}", "[12,13,14,15,16,17,18,19]", NULL);
    command_result result = command_runf("run %s --device cpu -p Hello -n 2", folder());
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "17 end tokens"));
    command_clear(&result);
    make_model("{\"eos_token_id\": [3,4,5,6,7,8,9,10,11]}", "[12,13,14,15,16,17,18]",
               "{\"eos_token\": \"</s>\"}");
    ck_assert_int_eq(command_code("run %s --device cpu -p Hello -n 2", folder()), 0);
    result = command_runf("run %s --device cpu --chat -p Hello -n 2", folder());
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "17 end tokens"));
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("end tokens");
    TCase *cases = tcase_create("end tokens");
    tcase_set_timeout(cases, time_limit(60));
    tcase_add_loop_test(cases, info_names_the_sources, 0, sizeof shown / sizeof *shown);
    tcase_add_test(cases, info_has_them_as_json);
    tcase_add_test(cases, info_of_an_id_beyond_the_vocabulary);
    tcase_add_test(cases, info_without_a_tokenizer);
    tcase_add_test(cases, a_chat_ends_at_its_token);
    tcase_add_test(cases, a_chat_without_end_tokens_warns);
    tcase_add_test(cases, a_token_that_the_tokenizer_does_not_have);
    tcase_add_test(cases, more_than_fit_are_an_error);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

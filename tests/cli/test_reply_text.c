/*
 * Tests of the text of a reply after its prompt. The tokenizer's words begin with a space, which is
 * lost at the start of a text. Checks `run` in each of its forms, and `chat`, whose next turn
 * continues from the tokens of the reply.
 */
#include "command.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The weights of tales-5m with the tokenizer of words. */
static const char *words(void)
{
    static char path[1100];
    char line[4096];
    snprintf(path, sizeof path, "%s/words", scratch_folder());
    snprintf(line, sizeof line,
             "mkdir -p %s && ln -sf %s/config.json %s/generation_config.json %s/model* %s && "
             "ln -sf %s/tokenizer.json %s",
             path, model_path("tales-5m"), model_path("tales-5m"), model_path("tales-5m"), path,
             model_path("tokenizers/words"), path);
    ck_assert_int_eq(system(line), 0);
    return path;
}

static command_result run(const char *flags)
{
    command_result result =
        command_runf("run %s --device cpu --dtype f32 --quiet %s", words(), flags);
    ck_assert_msg(result.code == 0, "%s", result.err);
    return result;
}

static void assert_output(const char *flags, const char *want)
{
    command_result result = run(flags);
    ck_assert_msg(!strcmp(result.out, want), "%s: \"%s\"", flags, result.out);
    command_clear(&result);
}

START_TEST(the_first_space_is_kept)
{
    assert_output("-p Hello -n 4", " gol net bat gum\n");
    assert_output("-p Hello -n 4 --echo", "Hello gol net bat gum\n");
    assert_output("--prompt-ids 1,3 -n 4 --echo", "Hello gol net bat gum\n");
    assert_output("-p Hello -n 4 --stop ' net'", " gol\n");
    assert_output("-p Hello -n 4 --stop ' gol'", "\n");
    assert_output("-p Hello -n 4 --stop gol", " \n");
}
END_TEST

/* The bytes E4 BD begin a character. No token of the reply is its last byte. */
START_TEST(an_unfinished_character_is_part_of_neither)
{
    command_result result = run("--prompt-ids 1,3,906,907 -n 4 --echo");
    ck_assert_msg(!strncmp(result.out, "Hello ", 6), "%s", result.out);
    ck_assert_ptr_null(strstr(result.out, "\uFFFD"));
    command_clear(&result);
}
END_TEST

START_TEST(json_and_lists_have_it)
{
    char flags[1200];
    command_result result = run("-p Hello -n 4 --json");
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_str_eq(json_string(&json, "text"), " gol net bat gum");
    mgl_json_clear(&json);
    command_clear(&result);
    snprintf(flags, sizeof flags, "-n 4 --json --prompts %s",
             scratch_file("list.json", "[{\"text\": \"Hello\"}, {\"text\": \"Hello\", \"stop\": "
                                       "\" net\"}, {\"ids\": [1, 3]}]"));
    result = run(flags);
    json = command_json(&result, "megalith.run/1");
    static const char *const want[] = {" gol net bat gum", " gol", " gol net bat gum"};
    for (int i = 0; i < 3; i++) {
        const cJSON *output = cJSON_GetArrayItem(json_at(&json, "outputs"), i);
        ck_assert_str_eq(mgl_json_member(output, "text")->valuestring, want[i]);
    }
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* The text of a reply in a template, and the message that reports the tokens in the cache. */
static const struct history {
    const char *reply, *message;
} histories[] = {
    {"{{ m.content }}", " gol net bat gum"},
    {"{{ ' ' + m.content }}", "gol net bat gum"},
    {"{{ ' ' + m.content|trim }}", " gol net bat gum"},
};

static int length_of(const cJSON *reply, const char *ids)
{
    return cJSON_GetArraySize(mgl_json_member(reply, ids));
}

START_TEST(the_next_turn_goes_on_from_the_reply)
{
    char template[300], line[2000];
    const struct history *h = &histories[_i];
    snprintf(template, sizeof template,
             "{%% for m in messages %%}{%% if m.role == 'user' %%}{{ '[' + m.content + ']' }}"
             "{%% else %%}%s{{ '</s>' }}{%% endif %%}{%% endfor %%}",
             h->reply);
    snprintf(line, sizeof line,
             "chat %s --device cpu --dtype f32 --quiet --json -n 4 --template %s", words(),
             scratch_file("words.jinja", template));
    command_result result = command_run(line, "Hello\nHello\n");
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.chat/1");
    const cJSON *first = json_at(&json, "replies")->child;
    ck_assert_str_eq(mgl_json_member(first, "text")->valuestring, " gol net bat gum");
    const cJSON *message = cJSON_GetArrayItem(json_at(&json, "messages"), 1);
    ck_assert_str_eq(mgl_json_member(message, "content")->valuestring, h->message);
    /* The reply's last token is not in the cache. */
    ck_assert_int_eq((int)mgl_json_member(first->next, "reused")->valuedouble,
                     length_of(first, "prompt_ids") + length_of(first, "output_ids") - 1);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reply text");
    TCase *cases = tcase_create("reply text");
    tcase_set_timeout(cases, time_limit(60));
    tcase_add_test(cases, the_first_space_is_kept);
    tcase_add_test(cases, an_unfinished_character_is_part_of_neither);
    tcase_add_test(cases, json_and_lists_have_it);
    tcase_add_loop_test(cases, the_next_turn_goes_on_from_the_reply, 0,
                        sizeof histories / sizeof *histories);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Tests of `run --chat`: a message or a conversation through the chat template, and its reply. */
#include "command.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEMPLATE                                                                                   \
    "{{ bos_token }}{% for m in messages %}{{ m.role ~ ': ' ~ m.content }}<|eot_id|>{% endfor %}"  \
    "{{ x }}{% if tools %}{{ tools[0].a }}{% endif %}"
#define MESSAGES                                                                                   \
    "[{\"role\": \"user\", \"content\": \"Hi\", \"n\": 1.0}, {\"role\": \"assistant\", "           \
    "\"content\": \"Oh\"}, {\"role\": \"user\", \"content\": \"Why\"}]"

/* tales-5m with a template. */
static const char *talker(void)
{
    const char *path = scratch_model("tales-5m", "talker");
    scratch_file("talker/chat_template.jinja", TEMPLATE);
    return path;
}

static command_result run(const char *flags, const char *input)
{
    char line[3000];
    snprintf(line, sizeof line, "run %s --device cpu --max-tokens 3 %s", talker(), flags);
    return command_run(line, input);
}

/* Checks the text of the prompt, and that its ids have no additional special tokens. */
static void assert_prompt(const char *flags, const char *input, const char *text)
{
    char both[2000];
    snprintf(both, sizeof both, "--json %s", flags);
    command_result result = run(both, input);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_str_eq(json_string(&json, "prompt_text"), text);
    int first = (int)json_at(&json, "prompt_ids")->child->valuedouble;
    int second = (int)json_at(&json, "prompt_ids")->child->next->valuedouble;
    ck_assert_int_eq(first, 909);
    ck_assert_int_ne(second, 909);
    ck_assert_int_eq((int)json_number(&json, "launches"), 1);
    mgl_json_clear(&json);
    command_clear(&result);
}

START_TEST(the_prompt_is_the_message)
{
    assert_prompt("--chat -p Hello", NULL, "<|begin_of_text|>user: Hello<|eot_id|>");
    assert_prompt("--chat", "Hello\n", "<|begin_of_text|>user: Hello<|eot_id|>");
    assert_prompt("--chat --prompt-file -", "Hello\n", "<|begin_of_text|>user: Hello\n<|eot_id|>");
}
END_TEST

START_TEST(a_system_message_stands_in_front)
{
    assert_prompt("--chat -p Hello --system 'Be brief'", NULL,
                  "<|begin_of_text|>system: Be brief<|eot_id|>user: Hello<|eot_id|>");
    char flags[1100];
    snprintf(flags, sizeof flags, "--chat --system S --messages %s",
             scratch_file("m.json", MESSAGES));
    assert_prompt(flags, NULL,
                  "<|begin_of_text|>system: S<|eot_id|>user: Hi<|eot_id|>assistant: Oh<|eot_id|>"
                  "user: Why<|eot_id|>");
}
END_TEST

START_TEST(messages_are_a_conversation)
{
    assert_prompt("--chat --messages -", MESSAGES,
                  "<|begin_of_text|>user: Hi<|eot_id|>assistant: Oh<|eot_id|>user: Why<|eot_id|>");
}
END_TEST

/* The format of numbers, the order of keys, and quotes are preserved. */
START_TEST(messages_stay_as_they_are)
{
    char flags[1100];
    snprintf(flags, sizeof flags, "--chat --messages - --template %s",
             scratch_file("raw.jinja", "{{ bos_token }}{{ messages | tojson }}"));
    assert_prompt(flags,
                  "[{\"role\":\"user\",\"b\":1.0,\"a\":[123456789012345678901,null,true,{}],"
                  "\"content\":\"\\\"\\n\\u00e4\"}]",
                  "<|begin_of_text|>[{\"role\": \"user\", \"b\": 1.0, \"a\": "
                  "[123456789012345678901, null, true, {}], \"content\": "
                  "\"\\\"\\nä\"}]");
}
END_TEST

START_TEST(flags_of_the_template)
{
    char flags[2200];
    snprintf(flags, sizeof flags, "--chat -p A --template-args '{\"x\": 7}' --tools %s",
             scratch_file("tools.json", "[{\"a\": 8}]"));
    assert_prompt(flags, NULL, "<|begin_of_text|>user: A<|eot_id|>78");
    snprintf(flags, sizeof flags, "--chat -p A --template %s",
             scratch_file("o.jinja", "{{ bos_token }}other"));
    assert_prompt(flags, NULL, "<|begin_of_text|>other");
}
END_TEST

/* The reply is that of the rendered text's ids. */
START_TEST(the_reply_is_that_of_the_ids)
{
    char flags[1000] = "--prompt-ids ", *end = flags + strlen(flags);
    command_result chat = run("--chat -p Hello --json", NULL);
    mgl_json json = command_json(&chat, "megalith.run/1");
    for (const cJSON *id = json_at(&json, "prompt_ids")->child; id; id = id->next)
        end += snprintf(end, 20, "%d%s", (int)id->valuedouble, id->next ? "," : "");
    command_result ids = run(flags, NULL);
    char text[200];
    snprintf(text, sizeof text, "%s\n", json_string(&json, "text"));
    ck_assert_str_eq(ids.out, text);
    mgl_json_clear(&json);
    command_clear(&chat);
    command_clear(&ids);
    command_result plain = run("--chat -p Hello", NULL);
    ck_assert_str_eq(plain.out, text);
    command_clear(&plain);
}
END_TEST

/* In a list, texts are messages with --chat, ids are unchanged, and messages are a conversation. */
START_TEST(a_list_has_conversations)
{
    char flags[1200];
    snprintf(flags, sizeof flags, "--json --chat --system S --prompts %s",
             scratch_file("list.json", "[\"A\", {\"ids\": [909, 5]}, {\"text\": \"B\"}, "
                                       "{\"messages\": " MESSAGES ", \"max_tokens\": 1}]"));
    command_result result = run(flags, NULL);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.run/1");
    static const char *const texts[] = {
        "<|begin_of_text|>system: S<|eot_id|>user: A<|eot_id|>", NULL,
        "<|begin_of_text|>system: S<|eot_id|>user: B<|eot_id|>",
        "<|begin_of_text|>system: S<|eot_id|>user: Hi<|eot_id|>assistant: Oh<|eot_id|>user: "
        "Why<|eot_id|>"};
    const cJSON *output = json_at(&json, "outputs")->child;
    for (int i = 0; i < 4; i++, output = output->next) {
        const cJSON *text = mgl_json_member(output, "prompt_text");
        if (texts[i])
            ck_assert_str_eq(text->valuestring, texts[i]);
        else
            ck_assert_ptr_null(text);
    }
    mgl_json_clear(&json);
    command_clear(&result);
    result = run("--prompts -", "[{\"messages\": " MESSAGES "}, \"A\"]");
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
}
END_TEST

static const struct {
    const char *flags, *input;
    int code;
    const char *says;
} refused[] = {
    {"-p A --system S", NULL, 1, "--system: needs a conversation; give --chat too"},
    {"-p A --template-name S", NULL, 1, "--template-name: needs a conversation; give --chat"},
    {"--messages -", MESSAGES, 1, "--messages: needs a conversation; give --chat too"},
    {"--chat --prompt-ids 1", NULL, 1, "--prompt-ids: cannot be combined with --chat"},
    {"--chat -p A --messages -", MESSAGES, 1, "only one of --prompt"},
    {"--prompts - --system S", "[\"A\"]", 1, "--system: needs a conversation; add --chat"},
    {"--chat --messages - --system S", "[{\"role\":\"system\",\"content\":\"\"}]", 1,
     "already has a system message"},
    {"--chat --messages -", "[]", 2, "the conversation is empty"},
    {"--chat --messages -", "{}", 2, "must be a JSON array of messages"},
    {"--chat --messages -", "[{\"content\": \"\"}]", 2, "message 0 has no role"},
    {"--chat --messages -", "[", 2, "/dev/stdin:1:2"},
    {"--chat --prompts -", "[{\"messages\": 3}]", 2, "[0].messages: must be a JSON array"},
    {"--prompts -", "[{\"messages\": [{}]}]", 2, "[0]: message 0 has no role"},
    {"--prompts -", "[{\"messages\": [], \"text\": \"\"}]", 2, "only one of \"text\", \"ids\""},
    {"--chat -p A --template-name none", NULL, 2, "is called none: it has default"},
    {"--chat -p A --template nowhere.jinja", NULL, 2, "nowhere.jinja"},
};

START_TEST(says_what_is_wrong)
{
    command_result result = run(refused[_i].flags, refused[_i].input);
    ck_assert_msg(result.code == refused[_i].code, "%d: %s", result.code, result.err);
    ck_assert_msg(strstr(result.err, refused[_i].says) != NULL, "%s", result.err);
    const bool entry = strstr(result.err, "standard input: [") != NULL;
    ck_assert_str_eq(result.out, entry ? "==> prompt 0: error <==\n" : "");
    command_clear(&result);
}
END_TEST

START_TEST(a_model_without_a_template)
{
    command_result result = command_runf("run %s --chat -p A", model_path("tales-5m"));
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "the model has no chat template") != NULL, "%s", result.err);
    ck_assert_msg(strstr(result.err, "give one by --template FILE") != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conversation");
    TCase *tests = tcase_create("conversation");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_prompt_is_the_message);
    tcase_add_test(tests, a_system_message_stands_in_front);
    tcase_add_test(tests, messages_are_a_conversation);
    tcase_add_test(tests, messages_stay_as_they_are);
    tcase_add_test(tests, flags_of_the_template);
    tcase_add_test(tests, the_reply_is_that_of_the_ids);
    tcase_add_test(tests, a_list_has_conversations);
    tcase_add_loop_test(tests, says_what_is_wrong, 0, (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tests, a_model_without_a_template);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

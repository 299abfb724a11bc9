/*
 * Tests of a model's chat templates: their files, the choice of a template, its variables, and
 * errors of invalid conversations.
 */
#include "base/file.h"
#include "base/memory.h"
#include "importer/chat/chat.h"
#include "tests/scratch.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- models ---------------------------------------------------------------------------------- */

static char folder[] = "/tmp/megalith-chat-XXXXXX";

static void make_folder(void)
{
    scratch_make(folder);
}

static void remove_folder(void)
{
    char line[100];
    snprintf(line, sizeof line, "rm -r %s", folder);
    ck_assert_int_eq(system(line), 0);
}

static void write_file(const char *name, const char *text)
{
    char path[200];
    mgl_error err;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    ck_assert_int_eq(mgl_folder_make(path, 0700, &err), MGL_OK);
    *slash = '/';
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static const char user[] = "[{\"role\": \"user\", \"content\": \"hi\"}]";

static mgl_status render(const mgl_conversation *conversation, char **out, mgl_error *err)
{
    mgl_chat_template *template = NULL;
    mgl_conversation given = *conversation;
    given.size = sizeof given;
    given.messages = given.messages ? given.messages : user;
    *out = NULL;
    mgl_status status = mgl_chat_template_open(folder, NULL, &template, err);
    if (!status)
        status = mgl_chat_template_render(template, &given, out, NULL, err);
    mgl_chat_template_close(template);
    return status;
}

static void assert_renders(const mgl_conversation *conversation, const char *text)
{
    mgl_error err = {0};
    char *out;
    mgl_status status = render(conversation, &out, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    ck_assert_str_eq(out, text);
    mgl_text_free(out);
}

static void assert_refused(const mgl_conversation *conversation, const char *where,
                           const char *message)
{
    mgl_error err = {0};
    char *out;
    ck_assert_int_eq(render(conversation, &out, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.where, where), "%s", err.where);
    ck_assert_msg(strstr(err.message, message), "%s", err.message);
    ck_assert_ptr_null(out);
}

static const mgl_conversation plain = {0}, tools = {.tools = "[]"};

/* ---- where templates are --------------------------------------------------------------------- */

START_TEST(the_config_has_one)
{
    write_file("tokenizer_config.json", "{\"chat_template\": \"C{{ tools }}\"}");
    assert_renders(&plain, "CNone");
    assert_renders(&tools, "C[]");
}
END_TEST

START_TEST(the_config_has_several)
{
    write_file("tokenizer_config.json",
               "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"R\"}, {\"name\": "
               "\"tool_use\", \"template\": \"T\"}, {\"name\": \"default\", \"template\": "
               "\"D\"}]}");
    assert_renders(&plain, "D");
    assert_renders(&tools, "T");
}
END_TEST

START_TEST(one_is_taken_by_its_name)
{
    write_file("tokenizer_config.json",
               "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"R\"}, {\"name\": "
               "\"tool_use\", \"template\": \"T\"}, {\"name\": \"default\", \"template\": "
               "\"D\"}]}");
    assert_renders(&(mgl_conversation){.template_name = "rag"}, "R");
    assert_renders(&(mgl_conversation){.template_name = "rag", .tools = "[]"}, "R");
    assert_renders(&(mgl_conversation){.template_name = "default", .tools = "[]"}, "D");
    assert_refused(&(mgl_conversation){.template_name = "none"}, folder,
                   "is called none: it has rag, tool_use, default; name one of these");
}
END_TEST

START_TEST(ids_are_those_of_the_text)
{
    mgl_chat_template *template;
    mgl_tokenizer *tokenizer;
    mgl_error err = {0};
    mgl_ids ids = {0}, wanted = {0};
    mgl_conversation conversation = {.size = sizeof conversation, .messages = user};
    write_file("chat_template.jinja", "<|eot_id|>{{ messages[0].content }}");
    ck_assert_int_eq(mgl_chat_template_open(folder, NULL, &template, &err), MGL_OK);
    ck_assert_int_eq(mgl_tokenizer_open(MGL_SOURCE_DIR "/tests/models/tales-5m", &tokenizer, &err),
                     MGL_OK);
    ck_assert_int_eq(mgl_chat_template_encode(template, tokenizer, &conversation, &ids, &err),
                     MGL_OK);
    ck_assert_int_eq(mgl_tokenizer_encode(tokenizer, "<|eot_id|>hi", 12, false, &wanted, &err),
                     MGL_OK);
    ck_assert_uint_eq(ids.count, wanted.count);
    ck_assert_mem_eq(ids.ids, wanted.ids, ids.count * sizeof *ids.ids);
    ck_assert_int_eq(ids.ids[0], 911);
    mgl_ids_clear(&ids);
    mgl_ids_clear(&wanted);
    mgl_tokenizer_close(tokenizer);
    mgl_chat_template_close(template);
}
END_TEST

static void assert_added(const char *before, const char *text, const char *after)
{
    mgl_error err = {0};
    char *messages = before ? mgl_strdup(before) : NULL;
    ck_assert_int_eq(mgl_messages_add(&messages, "user", text, strlen(text), &err), MGL_OK);
    ck_assert_str_eq(messages, after);
    mgl_text_free(messages);
}

START_TEST(messages_are_added)
{
    static const char *const none[] = {"", "{}", "[", "]", "[] x"};
    assert_added(NULL, "a", "[{\"role\":\"user\",\"content\":\"a\"}]");
    assert_added(" [ ]\n", "\"ä\n", " [ {\"role\":\"user\",\"content\":\"\\\"ä\\n\"}]");
    assert_added("[{\"a\": 1.0}]", "", "[{\"a\": 1.0},{\"role\":\"user\",\"content\":\"\"}]");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        mgl_error err = {0};
        char *messages = mgl_strdup(none[i]);
        ck_assert_int_eq(mgl_messages_add(&messages, "user", "", 0, &err), MGL_BAD_INPUT);
        ck_assert_str_eq(messages, none[i]);
        mgl_text_free(messages);
    }
    ck_assert_int_eq(mgl_messages_add(NULL, "user", "", 0, NULL), MGL_USAGE);
}
END_TEST

START_TEST(a_file_counts_more)
{
    write_file("tokenizer_config.json", "{\"chat_template\": \"C\"}");
    write_file("chat_template.jinja", "F\n");
    assert_renders(&plain, "F");
    write_file("additional_chat_templates/tool_use.jinja", "A");
    assert_renders(&plain, "F");
    assert_renders(&tools, "A");
}
END_TEST

START_TEST(a_named_file_counts_most)
{
    mgl_chat_template *template;
    mgl_error err = {0};
    char path[100], *out;
    mgl_conversation conversation = {.size = sizeof conversation, .messages = user};
    write_file("tokenizer_config.json", "{\"chat_template\": \"C\", \"bos_token\": \"<s>\"}");
    write_file("mine.jinja", "{{ bos_token }}M");
    snprintf(path, sizeof path, "%s/mine.jinja", folder);
    ck_assert_int_eq(mgl_chat_template_open(folder, path, &template, &err), MGL_OK);
    ck_assert_int_eq(mgl_chat_template_render(template, &conversation, &out, NULL, &err), MGL_OK);
    ck_assert_str_eq(out, "<s>M");
    mgl_text_free(out);
    mgl_chat_template_close(template);
    write_file("mine.jinja", "{% bad %}");
    ck_assert_int_eq(mgl_chat_template_open(folder, path, &template, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.where, "mine.jinja:1:4"));
}
END_TEST

START_TEST(there_is_none)
{
    assert_refused(&plain, folder, "the model has no chat template");
    write_file("tokenizer_config.json", "{\"chat_template\": null}");
    assert_refused(&plain, folder, "the model has no chat template");
    write_file("tokenizer_config.json",
               "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"R\"}]}");
    assert_refused(&plain, folder, "it has rag");
    write_file("tokenizer_config.json", "{\"chat_template\": 5}");
    assert_refused(&plain, "tokenizer_config.json", "must be a text, or a list");
    write_file("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"a\"}]}");
    assert_refused(&plain, "tokenizer_config.json", "'a' has no text");
    write_file("tokenizer_config.json", "[]");
    assert_refused(&plain, "tokenizer_config.json", "is not a JSON object");
    write_file("tokenizer_config.json", "{");
    assert_refused(&plain, "tokenizer_config.json:1:2", "not valid JSON");
}
END_TEST

/* A template with an error is reported only if it is chosen. */
START_TEST(a_bad_template_among_good_ones)
{
    write_file("chat_template.jinja", "D");
    write_file("additional_chat_templates/tool_use.jinja", "\n{% extends 'x' %}");
    assert_renders(&plain, "D");
    assert_refused(&tools, "tool_use.jinja:2:4", "'extends' is not supported");
}
END_TEST

/* ---- special tokens -------------------------------------------------------------------------- */

static const char show_tokens[] =
    "{{ bos_token }}|{{ eos_token }}|{{ image_token }}|{{ pad_token }}|"
    "{{ add_bos_token }}|{{ mask }}";

START_TEST(tokens_of_the_config)
{
    write_file("chat_template.jinja", show_tokens);
    write_file("tokenizer_config.json",
               "{\"bos_token\": {\"__type\": \"AddedToken\", \"content\": \"<s>\"}, \"eos_token\": "
               "\"</s>\", \"pad_token\": null, \"image_token\": \"<i>\", \"add_bos_token\": true, "
               "\"added_tokens_decoder\": {}, \"extra_special_tokens\": {\"mask\": \"<m>\"}}");
    write_file("special_tokens_map.json", "{\"bos_token\": \"[B]\", \"pad_token\": \"[P]\"}");
    assert_renders(&plain, "<s>|</s>|<i>|[P]||<m>");
}
END_TEST

START_TEST(tokens_of_an_old_model)
{
    write_file("chat_template.jinja", show_tokens);
    write_file("tokenizer_config.json", "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}");
    write_file("special_tokens_map.json", "{\"bos_token\": {\"content\": \"[B]\"}}");
    assert_renders(&plain, "[B]|</s>||||");
}
END_TEST

START_TEST(arguments_count_more_than_tokens)
{
    const mgl_conversation given = {.args = "{\"bos_token\": \"[A]\", \"mask\": 1.0}"};
    write_file("chat_template.jinja", show_tokens);
    write_file("tokenizer_config.json", "{\"bos_token\": \"<s>\"}");
    assert_renders(&given, "[A]|||||1.0");
}
END_TEST

/* ---- conversations --------------------------------------------------------------------------- */

START_TEST(what_a_template_is_given)
{
    const mgl_conversation given = {
        .messages = "[{\"b\": 1, \"role\": \"user\", \"a\": null, \"n\": 123456789012345678901}]",
        .tools = "[{\"z\": 1.0, \"a\": 1}]",
        .args = "{\"x\": [1e2, -0]}",
        .no_generation_prompt = true};
    write_file("chat_template.jinja", "{{ messages }}{{ tools }}{{ x }}{{ add_generation_prompt }}"
                                      "{{ documents }}");
    assert_renders(&given, "[{'b': 1, 'role': 'user', 'n': 123456789012345678901}]"
                           "[{'z': 1.0, 'a': 1}][100.0, 0]FalseNone");
}
END_TEST

START_TEST(thoughts_have_all_their_names)
{
    const mgl_conversation given = {
        .messages = "[{\"role\": \"assistant\", \"reasoning\": \"r\", \"content\": \"c\"}, "
                    "{\"role\": \"assistant\", \"reasoning_content\": null, \"thinking\": \"t\"}]"};
    write_file("chat_template.jinja", "{{ messages }}");
    assert_renders(&given,
                   "[{'thinking': 'r', 'role': 'assistant', 'reasoning': 'r', 'content': 'c', "
                   "'reasoning_content': 'r'}, {'thinking': 't', 'role': 'assistant', "
                   "'reasoning_content': 't'}]");
}
END_TEST

static const struct refusal {
    mgl_conversation conversation;
    const char *where, *message;
} refused[] = {
    {{.messages = ""}, "messages:1:1", "not valid JSON"},
    {{.messages = "[{\"role\": }]", .messages_name = "m.json"}, "m.json:1:11", "not valid JSON"},
    {{.messages = "{}"}, "messages", "must be a JSON array of messages"},
    {{.messages = "[]"}, "messages", "the conversation is empty"},
    {{.messages = "[\"hi\"]"}, "messages", "element 0 is not an object"},
    {{.messages = "[{\"role\": \"user\"}, {\"content\": \"\"}]"},
     "messages",
     "message 1 has no role"},
    {{.messages = "[{\"role\": 1}]"}, "messages", "message 0 has no role"},
    {{.tools = "{}"}, "tools", "must be a JSON array of tools"},
    {{.tools = "[1]", .tools_name = "t.json"}, "t.json", "element 0 is not an object"},
    {{.args = "[]"}, "template arguments", "must be a JSON object"},
    {{.args = "{\"tools\": []}"}, "template arguments", "'tools' is a separate input"},
};

START_TEST(no_conversation)
{
    write_file("chat_template.jinja", "x");
    assert_refused(&refused[_i].conversation, refused[_i].where, refused[_i].message);
}
END_TEST

START_TEST(arguments_that_are_missing)
{
    mgl_chat_template *template;
    mgl_conversation conversation = {.size = sizeof conversation};
    mgl_error err;
    char *out;
    write_file("chat_template.jinja", "x");
    ck_assert_int_eq(mgl_chat_template_open(NULL, NULL, &template, &err), MGL_USAGE);
    ck_assert_int_eq(mgl_chat_template_open(folder, NULL, NULL, &err), MGL_USAGE);
    ck_assert_int_eq(mgl_chat_template_open(folder, NULL, &template, &err), MGL_OK);
    ck_assert_int_eq(mgl_chat_template_render(template, &conversation, &out, NULL, &err),
                     MGL_USAGE);
    ck_assert_ptr_nonnull(strstr(err.message, "messages"));
    conversation.size = 0;
    ck_assert_int_eq(mgl_chat_template_render(template, &conversation, &out, NULL, &err),
                     MGL_USAGE);
    ck_assert_int_eq(mgl_chat_template_render(template, NULL, &out, NULL, &err), MGL_USAGE);
    mgl_chat_template_close(template);
    mgl_chat_template_close(NULL);
}
END_TEST

/* ---- threads and memory ---------------------------------------------------------------------- */

static void *render_often(void *template)
{
    mgl_conversation conversation = {.size = sizeof conversation, .messages = user};
    for (int i = 0; i < 200; i++) {
        mgl_error err;
        char *out;
        if (mgl_chat_template_render(template, &conversation, &out, NULL, &err) ||
            strcmp(out, "<s>hi ÄÄ") != 0)
            return template;
        mgl_text_free(out);
    }
    return NULL;
}

START_TEST(threads_share_a_template)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    mgl_chat_template *template;
    mgl_error err;
    write_file("tokenizer_config.json", "{\"bos_token\": \"<s>\"}");
    write_file("chat_template.jinja",
               "{{ bos_token ~ messages[0].content ~ ' ' }}{{ ('ä' 'ä'|upper)[0:2] }}");
    ck_assert_int_eq(mgl_chat_template_open(folder, NULL, &template, &err), MGL_OK);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, render_often, template), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        ck_assert_int_eq(pthread_join(threads[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
    mgl_chat_template_close(template);
}
END_TEST

START_TEST(every_allocation_fails_once)
{
    const mgl_conversation given = {
        .messages = "[{\"role\": \"user\", \"content\": \"a\", \"reasoning\": 1.5, \"x\": null}]",
        .tools = "[{\"a\": 1}]",
        .args = "{\"b\": true}"};
    mgl_status status = MGL_NO_MEMORY;
    write_file("tokenizer_config.json",
               "{\"bos_token\": \"<s>\", \"chat_template\": [{\"name\": \"default\", "
               "\"template\": \"{{ bos_token ~ messages ~ tools ~ b }}\"}, {\"name\": \"tool_use\","
               " \"template\": \"{{ tools|tojson(indent=2) }}\"}]}");
    write_file("special_tokens_map.json", "{\"bos_token\": \"[B]\"}");
    uint64_t n = 1;
    for (; status; n++) {
        mgl_error err = {0};
        char *out;
        ck_assert_uint_lt(n, 2000);
        mgl_alloc_fail_at(n, false);
        status = render(&given, &out, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert_msg(status == MGL_OK || status == MGL_NO_MEMORY, "allocation %d: status %d: %s",
                      (int)n, status, err.message);
        mgl_text_free(out);
    }
    ck_assert_uint_gt(n, 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chat");
    TCase *tests = tcase_create("chat");
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, the_config_has_one);
    tcase_add_test(tests, the_config_has_several);
    tcase_add_test(tests, one_is_taken_by_its_name);
    tcase_add_test(tests, ids_are_those_of_the_text);
    tcase_add_test(tests, messages_are_added);
    tcase_add_test(tests, a_file_counts_more);
    tcase_add_test(tests, a_named_file_counts_most);
    tcase_add_test(tests, there_is_none);
    tcase_add_test(tests, a_bad_template_among_good_ones);
    tcase_add_test(tests, tokens_of_the_config);
    tcase_add_test(tests, tokens_of_an_old_model);
    tcase_add_test(tests, arguments_count_more_than_tokens);
    tcase_add_test(tests, what_a_template_is_given);
    tcase_add_test(tests, thoughts_have_all_their_names);
    tcase_add_loop_test(tests, no_conversation, 0, (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tests, arguments_that_are_missing);
    tcase_add_test(tests, threads_share_a_template);
    tcase_add_test(tests, every_allocation_fails_once);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Tests of `template`: a conversation through a chat template, as text and as ids. */
#include "command.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char messages[] = "[{\"role\": \"user\", \"content\": \"Hello w\\u00f6rld\"}]";
static const char template[] =
    "{{ '<|begin_of_text|>' }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if tools %}{{ tools | tojson }}{% endif %}{{ x }}{% if add_generation_prompt %}>{% endif "
    "%}";

/* Runs the verb with a given template on a model without one, and more flags. */
static command_result run(const char *flags)
{
    return command_runf("template %s --template %s --messages %s %s", model_path("tales-5m"),
                        scratch_file("t.jinja", template), scratch_file("m.json", messages), flags);
}

START_TEST(prints_the_text)
{
    command_result result = run("");
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_str_eq(result.out, "<|begin_of_text|>user: Hello wörld\n>");
    ck_assert_str_eq(result.err, "");
    command_clear(&result);
    result = run("--no-generation-prompt --template-args '{\"x\": 1.0}'");
    ck_assert_str_eq(result.out, "<|begin_of_text|>user: Hello wörld\n1.0");
    command_clear(&result);
}
END_TEST

START_TEST(takes_tools)
{
    char flags[300];
    snprintf(flags, sizeof flags, "--tools %s",
             scratch_file("tools.json", "[{\"b\":1,\"a\":2.0}]"));
    command_result result = run(flags);
    ck_assert_str_eq(result.out, "<|begin_of_text|>user: Hello wörld\n[{\"b\": 1, \"a\": 2.0}]>");
    command_clear(&result);
}
END_TEST

START_TEST(reads_standard_input)
{
    char line[600];
    snprintf(line, sizeof line, "template %s --template %s --messages -", model_path("tales-5m"),
             scratch_file("t.jinja", template));
    command_result result = command_run(line, messages);
    ck_assert_str_eq(result.out, "<|begin_of_text|>user: Hello wörld\n>");
    command_clear(&result);
}
END_TEST

/* Special tokens in the text are one id each, and none is added. */
START_TEST(prints_ids)
{
    command_result result = run("--json");
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.template/1");
    ck_assert_str_eq(json_string(&json, "text"), "<|begin_of_text|>user: Hello wörld\n>");
    const cJSON *ids = json_at(&json, "ids");
    char text[2000] = "", line[4000];
    for (const cJSON *id = ids->child; id; id = id->next)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", *text ? "," : "",
                 (int)id->valuedouble);
    ck_assert_int_gt(cJSON_GetArraySize(ids), 5);
    ck_assert_int_eq((int)ids->child->valuedouble, 909);
    ck_assert_int_ne((int)ids->child->next->valuedouble, 909);
    snprintf(line, sizeof line, "detokenize %s --ids %s", model_path("tales-5m"), text);
    command_result back = command_run(line, NULL);
    ck_assert_ptr_nonnull(strstr(back.out, "user: Hello w"));
    command_clear(&back);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* A model with a template and without a tokenizer: rendering text needs no tokenizer. */
START_TEST(a_folder_without_a_tokenizer)
{
    scratch_file("tokenizer_config.json", "{\"chat_template\": \"{{ messages[0].content }}\"}");
    command_result result = command_runf("template %s --messages %s --json", scratch_folder(),
                                         scratch_file("m.json", messages));
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.template/1");
    ck_assert_str_eq(json_string(&json, "text"), "Hello wörld");
    ck_assert(cJSON_IsNull(json_at(&json, "ids")));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

static void assert_text(const char *model, const char *flags, const char *text)
{
    command_result result = command_runf("template %s --messages %s %s", model,
                                         scratch_file("m.json", messages), flags);
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_str_eq(result.out, text);
    command_clear(&result);
}

/* A snapshot with additional templates, and its compiled file. */
START_TEST(a_template_is_taken_by_its_name)
{
    char path[1024], name[1100], mega[1100];
    const char *tools = scratch_file("tools.json", "[{\"a\": 1}]");
    snprintf(path, sizeof path, "%s", scratch_model("tales-5m", "several"));
    scratch_file("several/chat_template.jinja", "D");
    snprintf(name, sizeof name, "%s/additional_chat_templates", path);
    ck_assert_int_eq(mkdir(name, 0700), 0);
    scratch_file("several/additional_chat_templates/tool_use.jinja", "T{{ \"\\\"ä\" }}\n");
    scratch_file("several/additional_chat_templates/rag.jinja", "R");
    snprintf(mega, sizeof mega, "%s/several.mega", scratch_folder());
    command_result result =
        command_runf("compile %s --target cpu:1 --capacity 64 -o %s", path, mega);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    for (int i = 0; i < 2; i++) {
        const char *model = i ? mega : path;
        char flags[1100];
        assert_text(model, "", "D");
        assert_text(model, "--template-name rag", "R");
        snprintf(flags, sizeof flags, "--tools %s", tools);
        assert_text(model, flags, "T\"ä");
        snprintf(flags, sizeof flags, "--tools %s --template-name default", tools);
        assert_text(model, flags, "D");
    }
    result = command_runf("template %s --messages %s --template-name no", mega,
                          scratch_file("m.json", messages));
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "is called no: it has default, rag, tool_use; name one") !=
                      NULL,
                  "%s", result.err);
    command_clear(&result);
    result = command_runf("compile %s --target cpu:1 -o %s/rag.jinja", path, name);
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "rag.jinja") != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

START_TEST(says_what_is_wrong)
{
    const char *model = model_path("tales-5m"), *good = scratch_file("m.json", messages);
    command_result result = command_runf("template %s --messages %s", model, good);
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "the model has no chat template"));
    command_clear(&result);
    result = command_runf("template %s --messages %s --template %s", model, good,
                          scratch_file("bad.jinja", "a\n{{ messages | nope }}"));
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "bad.jinja:2:15: the filter 'nope' is not supported"));
    ck_assert_ptr_nonnull(strstr(result.err, "\n              ^~~~"));
    command_clear(&result);
    result = command_runf("template %s --template %s --messages %s --json", model,
                          scratch_file("t.jinja", template), scratch_file("empty.json", "[]"));
    ck_assert_int_eq(result.code, 2);
    mgl_json json = command_json(&result, "megalith.error/1");
    ck_assert_ptr_nonnull(strstr(json_string(&json, "message"), "the conversation is empty"));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("template");
    TCase *tests = tcase_create("template");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, prints_the_text);
    tcase_add_test(tests, takes_tools);
    tcase_add_test(tests, reads_standard_input);
    tcase_add_test(tests, prints_ids);
    tcase_add_test(tests, a_folder_without_a_tokenizer);
    tcase_add_test(tests, a_template_is_taken_by_its_name);
    tcase_add_test(tests, says_what_is_wrong);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

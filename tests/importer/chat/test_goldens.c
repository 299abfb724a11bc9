/*
 * Tests against texts rendered by Hugging Face (make_goldens.py): each construct of the language,
 * and templates in the style of published ones with conversations of every kind. An error of
 * Hugging Face must be an error here.
 */
#include "base/file.h"
#include "base/memory.h"
#include "importer/chat/jinja.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER MGL_SOURCE_DIR "/tests/importer/chat/"

static mgl_json read_values(const char *path)
{
    mgl_json json = {0};
    mgl_error err = {0};
    char *text;
    size_t length;
    mgl_status status = mgl_file_read(path, (size_t)64 << 20, &text, &length, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    status = mgl_json_parse_values(text, length, length, path, &json, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_free(text);
    return json;
}

static const char *text_of(const cJSON *object, const char *key, size_t *length)
{
    cJSON *string = cJSON_GetObjectItemCaseSensitive(object, key);
    return string ? mgl_json_take_text(string, length) : NULL;
}

static const char *string_of(const cJSON *object, const char *key)
{
    const cJSON *item = mgl_json_member(object, key);
    return item ? item->valuestring : NULL;
}

static int wrong; /* cases */

/* Compares the output with the case, and prints the difference. */
static void compare(const char *name, const cJSON *item, mgl_status status, const char *text,
                    size_t length, const mgl_error *err)
{
    size_t wanted_length = 0;
    const char *wanted = text_of(item, "text", &wanted_length);
    bool same = wanted ? !status && length == wanted_length && !memcmp(text, wanted, length)
                       : status == MGL_BAD_INPUT;
    if (same)
        return;
    wrong++;
    fprintf(stderr, "==> %s\nwanted: %s\n", name,
            wanted ? wanted : cJSON_GetObjectItemCaseSensitive(item, "error")->valuestring);
    if (status)
        fprintf(stderr, "failed: %s: %s\n", err->where, err->message);
    else
        fprintf(stderr, "got:    %s\n", text);
}

static const char *cases = FOLDER "goldens/constructs.json";

START_TEST(constructs)
{
    mgl_json json = read_values(cases);
    cJSON *none = cJSON_CreateObject();
    wrong = 0;
    for (cJSON *item = json.root->child; item; item = item->next) {
        mgl_error err = {0};
        mgl_jinja *jinja = NULL;
        char *text = NULL;
        size_t size, length = 0;
        const char *template = text_of(item, "template", &size), *name = string_of(item, "name");
        cJSON *variables = cJSON_GetObjectItemCaseSensitive(item, "variables");
        mgl_status status = mgl_jinja_parse(template, size, "case", &jinja, &err);
        if (!status)
            status = mgl_jinja_render(jinja, variables ? variables : none, &text, &length, &err);
        compare(name ? name : template, item, status, text, length, &err);
        mgl_free(text);
        mgl_jinja_free(jinja);
    }
    cJSON_Delete(none);
    mgl_json_clear(&json);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* Characters whose Python escapes are not reproduced here. */
static const struct {
    const char *template, *says;
} escaping[] = {
    {"{{ ('%s'|safe) % '<' }}", "the operator '%' of a text of the filter 'safe'"},
    {"{{ '%s'|safe|format('<') }}", "the filter 'format' of a text of the filter 'safe'"},
    {"{{ ('a'|safe).replace('a', '<') }}", "the method 'replace' of a text of the filter 'safe'"},
    {"{{ (','|safe).join(['<']) }}", "the method 'join' of a text of the filter 'safe'"},
    {"{{ ('{}'|safe).format('<') }}", "the method 'format' of a text of the filter 'safe'"},
    {"{{ ((',' + ('a'|safe)) ~ '').join(['<']) }}", NULL},
};

START_TEST(escaping_is_rejected_by_name)
{
    mgl_error err = {0};
    mgl_jinja *jinja = NULL;
    char *text = NULL;
    size_t length = 0;
    cJSON *none = cJSON_CreateObject();
    const char *template = escaping[_i].template, *says = escaping[_i].says;
    ck_assert_int_eq(mgl_jinja_parse(template, strlen(template), "case", &jinja, &err), MGL_OK);
    mgl_status status = mgl_jinja_render(jinja, none, &text, &length, &err);
    ck_assert_int_eq(status, says ? MGL_BAD_INPUT : MGL_OK);
    ck_assert_msg(!says || strstr(err.message, says), "%s", err.message);
    mgl_free(text);
    mgl_jinja_free(jinja);
    cJSON_Delete(none);
}
END_TEST

/* A folder with only the special tokens of a model. */
static const char *make_model(void)
{
    static const char folder[] = MGL_BINARY_DIR "/chat-goldens";
    static const char config[] = "{\"bos_token\": {\"content\": \"<s>\"}, \"eos_token\": \"</s>\","
                                 " \"added_tokens_decoder\": {}, \"add_bos_token\": true}";
    mgl_error err = {0};
    ck_assert_int_eq(mgl_folder_make(folder, 0700, &err), MGL_OK);
    FILE *file = fopen(MGL_BINARY_DIR "/chat-goldens/tokenizer_config.json", "w");
    ck_assert_ptr_nonnull(file);
    fputs(config, file);
    fclose(file);
    return folder;
}

static const cJSON *find_conversation(const mgl_json *all, const char *name)
{
    const cJSON *item = all->root->child;
    while (item && strcmp(string_of(item, "name"), name))
        item = item->next;
    ck_assert_ptr_nonnull(item);
    return item;
}

/* One template with one conversation. */
static void check_family(const char *model, const cJSON *item, const cJSON *given)
{
    mgl_error err = {0};
    mgl_chat_template *template = NULL;
    const char *prompt = string_of(given, "add_generation_prompt");
    mgl_conversation conversation = {.size = sizeof conversation,
                                     .messages = string_of(given, "messages"),
                                     .tools = string_of(given, "tools"),
                                     .args = string_of(given, "args"),
                                     .no_generation_prompt = prompt && !strcmp(prompt, "false")};
    char name[200], path[400], *text = NULL;
    size_t length = 0;
    snprintf(path, sizeof path, FOLDER "templates/%s.jinja", string_of(item, "template"));
    snprintf(name, sizeof name, "%s: %s", string_of(item, "template"), string_of(given, "name"));
    mgl_status status = mgl_chat_template_open(model, path, &template, &err);
    if (!status)
        status = mgl_chat_template_render(template, &conversation, &text, &length, &err);
    compare(name, item, status, text, length, &err);
    mgl_text_free(text);
    mgl_chat_template_close(template);
}

START_TEST(families)
{
    const char *model = make_model();
    mgl_json json = read_values(FOLDER "goldens/families.json");
    mgl_json conversations = read_values(FOLDER "goldens/conversations.json");
    wrong = 0;
    for (const cJSON *item = json.root->child; item; item = item->next)
        check_family(model, item,
                     find_conversation(&conversations, string_of(item, "conversation")));
    mgl_json_clear(&conversations);
    mgl_json_clear(&json);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* chat_goldens [F.json]: uses other cases for `constructs`, in the form of the golden file. */
int main(int argc, char **argv)
{
    cases = argc > 1 ? argv[1] : cases;
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    Suite *suite = suite_create("goldens");
    TCase *tests = tcase_create("goldens");
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, constructs);
    tcase_add_loop_test(tests, escaping_is_rejected_by_name, 0, sizeof escaping / sizeof *escaping);
    tcase_add_test(tests, families);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

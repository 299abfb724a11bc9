/*
 * Tests that text from files and names cannot control the terminal. Escape sequences and other
 * control characters in architectures, paths, patterns, keys and schedules are printed as `?`, in
 * errors and in answers. Quoted text is shortened so that the rest of the sentence is visible.
 */
#include "command.h"
#include "tests/damaged/models.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define EVIL                                                                                       \
    "\x1B[2J\x1B]0;title\x07\xC2\x9B"                                                              \
    "31m\xE2\x80\xAE\xFF"
#define SEEN "?[2J?]0;title??31m??"

/* A folder with control characters in its name, with a model in it. */
static const char *evil_folder(const damaged_model *model)
{
    static char path[256];
    static int number;
    snprintf(path, sizeof path, "%s/%d" EVIL "\n\r", scratch_folder(), number++);
    ck_assert(write_damaged_model(model, path));
    return path;
}

static void check_visible(command_result *result, int code, const char *says)
{
    ck_assert_msg(result->code == code, "exit %d: %s", result->code, result->err);
    ck_assert_msg(only_visible(result->err), "%s", result->err);
    ck_assert_msg(only_visible(result->out), "%s", result->out);
    ck_assert_msg(strstr(result->err, says) || strstr(result->out, says), "%s%s", result->err,
                  result->out);
    command_clear(result);
}

START_TEST(the_path_of_a_model)
{
    damaged_model good = {.edit = NONE};
    const char *folder = evil_folder(&good);
    command_result result = command_runf("info '%s'", folder);
    check_visible(&result, 0, SEEN);
    result = command_runf("compile '%s' --target cpu:1 -o '%s/x.mega'", folder, folder);
    check_visible(&result, 0, SEEN);
    result = command_runf("run '%s/none' --prompt-ids 1", folder);
    check_visible(&result, 2, SEEN);
    result = command_runf("run '%s' --prompt Once", folder);
    check_visible(&result, 2, SEEN);
    result = command_runf("'%s'", EVIL);
    check_visible(&result, 1, SEEN);
}
END_TEST

START_TEST(an_architecture)
{
    damaged_model model = {.edit = REPLACE,
                           .file = "config.json",
                           .from = "LlamaForCausalLM",
                           .to = "\\u001b[2J\\u202e"};
    const char *folder = evil_folder(&model);
    command_result result = command_runf("info '%s'", folder);
    check_visible(&result, 0, "architecture  ?[2J?\n");
    result = command_runf("run '%s' --prompt-ids 1", folder);
    check_visible(&result, 2, "?[2J? is not supported");
}
END_TEST

/* A tokenizer with one component, such as Split with a pattern. */
static command_result tokenize_with(const char *part)
{
    char json[8192];
    snprintf(json, sizeof json,
             "{\"version\": \"1.0\", %s \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, "
             "\"merges\": []}}",
             part);
    return command_runf("tokenize %s --text a", scratch_file("tokenizer.json", json));
}

START_TEST(a_pattern)
{
    command_result result = tokenize_with(
        "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": "
        "\"(\\u001b[2J\\u009b\\n\"}, \"behavior\": \"Isolated\", \"invert\": false},");
    check_visible(&result, 2, "(?[2J??");
    result = tokenize_with("\"normalizer\": {\"type\": \"\\u001b[2J\"},");
    check_visible(&result, 2, "the normalizer \"?[2J\" is not supported");
    result = tokenize_with("\"\\u001b\": 1, \"\\u001b\": 2,");
    check_visible(&result, 2, "the key \"?\" is given twice");
}
END_TEST

/* The reason is visible although the pattern is three times as long as a message. */
START_TEST(a_long_pattern)
{
    char pattern[5000], part[6000];
    memset(pattern, 'a', sizeof pattern - 2);
    strcpy(pattern + sizeof pattern - 2, "(");
    snprintf(part, sizeof part,
             "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"%s\"}, "
             "\"behavior\": \"Isolated\", \"invert\": false},",
             pattern);
    command_result result = tokenize_with(part);
    check_visible(&result, 2, "aaaa...\" is malformed: a group does not end");
}
END_TEST

START_TEST(a_schedule)
{
    const char *path = scratch_file("evil.mls", "megalith 1\ntarget " EVIL "\n");
    command_result result = command_runf("check %s", path);
    check_visible(&result, 2, SEEN);
    char line[512];
    snprintf(line, sizeof line, "check '%s/" EVIL ".mls'", scratch_folder());
    result = command_run(line, NULL);
    check_visible(&result, 2, SEEN);
}
END_TEST

/* JSON escapes control characters, so the architecture is printed unchanged. */
START_TEST(json_tells_it_as_it_is)
{
    damaged_model model = {
        .edit = REPLACE, .file = "config.json", .from = "LlamaForCausalLM", .to = "\\u001b[2J"};
    char folder[128];
    snprintf(folder, sizeof folder, "%s/json", scratch_folder());
    ck_assert(write_damaged_model(&model, folder));
    command_result result = command_runf("info %s --json", folder);
    ck_assert_int_eq(result.code, 0);
    ck_assert(only_visible(result.out));
    mgl_json json = command_json(&result, "megalith.info/1");
    ck_assert_str_eq(json_string(&json, "architecture"), "\x1B[2J");
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("terminal");
    TCase *tests = tcase_create("terminal");
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, the_path_of_a_model);
    tcase_add_test(tests, an_architecture);
    tcase_add_test(tests, a_pattern);
    tcase_add_test(tests, a_long_pattern);
    tcase_add_test(tests, a_schedule);
    tcase_add_test(tests, json_tells_it_as_it_is);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* Files that are read: - is standard input for every one of them, once; a device that has no end is
 * refused at once. */
#include "command.h"

#include "base/file.h"
#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define IDS   "[909, 452, 449]"
#define TEXTS "[\"Once there was\", \"A fox\"]"

/* A line with a file argument, %s, and what the file holds; NULL: a schedule of the model. */
static const struct {
    const char *line; /* %s: the model, then the file */
    const char *content;
} lines[] = {
    {"lower %s --target cpu:1 --config %s", "{\"schema\": \"megalith.config/1\", \"rows\": 3}"},
    {"run %s --device cpu --prompt Once --max-tokens 4 --config %s",
     "{\"schema\": \"megalith.config/1\", \"rows\": 3}"},
    {"run %s --device cpu --prompt Once --max-tokens 4 --schedule %s", NULL},
    {"run %s --device cpu --max-tokens 4 --prompt-file %s", "Once there was"},
    {"run %s --device cpu --max-tokens 4 --prompts %s", TEXTS},
    {"eval %s --device cpu --texts %s", TEXTS},
    {"tokenize %s --texts %s", TEXTS},
    {"detokenize %s --ids-file %s", IDS},
};
enum { LINES = sizeof lines / sizeof *lines };

/* A schedule of the model, released with mgl_free. */
static char *make_schedule(void)
{
    char path[1100], *text;
    size_t length;
    mgl_error err;
    snprintf(path, sizeof path, "%s/made.mls", scratch_folder());
    command_result result =
        command_runf("lower %s --target cpu:1 --capacity 64 -o %s", model_path("tales-5m"), path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    ck_assert_int_eq(mgl_file_read(path, 1 << 26, &text, &length, &err), MGL_OK);
    return text;
}

START_TEST(a_dash_is_standard_input)
{
    char line[3000];
    char *schedule = make_schedule();
    const char *content = lines[_i].content ? lines[_i].content : schedule;
    snprintf(line, sizeof line, lines[_i].line, model_path("tales-5m"),
             scratch_file("input", content));
    command_result of_file = command_run(line, NULL);
    ck_assert_msg(of_file.code == 0, "%s: %s", line, of_file.err);
    snprintf(line, sizeof line, lines[_i].line, model_path("tales-5m"), "-");
    command_result of_input = command_run(line, content);
    ck_assert_msg(of_input.code == 0, "%s: %s", line, of_input.err);
    ck_assert_str_eq(of_input.out, of_file.out);
    command_clear(&of_file);
    command_clear(&of_input);
    mgl_free(schedule);
}
END_TEST

START_TEST(a_dash_is_standard_input_for_a_schedule)
{
    char *schedule = make_schedule();
    command_result result = command_run("check -", schedule);
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_ptr_nonnull(strstr(result.out, "accepted: "));
    command_clear(&result);
    result = command_run("check -", "nonsense");
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "/dev/stdin:1:") != NULL, "%s", result.err);
    command_clear(&result);
    result = command_run("explain -", schedule);
    ck_assert_msg(strstr(result.err, "there is no such diagnostic") == NULL, "%s", result.err);
    command_clear(&result);
    char line[3000];
    snprintf(line, sizeof line, "compile %s --schedule - -o %s/of.mega", model_path("tales-5m"),
             scratch_folder());
    result = command_run(line, schedule);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    mgl_free(schedule);
}
END_TEST

START_TEST(standard_input_is_read_once)
{
    command_result result = command_run("run m --prompt-file - --config -", "x");
    ck_assert_int_eq(result.code, 1);
    ck_assert_msg(strstr(result.err, "is asked for twice") != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

static const char *const endless[] = {"check /dev/zero",
                                      "explain /dev/zero",
                                      "lower %s --target cpu:1 --config /dev/zero",
                                      "run %s --device cpu --prompt Once --config /dev/zero",
                                      "run %s --device cpu --prompt Once --schedule /dev/zero",
                                      "run %s --device cpu --prompt-file /dev/zero",
                                      "run %s --device cpu --prompts /dev/zero",
                                      "eval %s --device cpu --texts /dev/zero",
                                      "tokenize %s --texts /dev/zero",
                                      "detokenize %s --ids-file /dev/zero",
                                      "compile %s --schedule /dev/zero -o none.mega",
                                      "compile %s --config /dev/zero --target cpu:1 -o none.mega",
                                      "bench --shape llama-1b --config /dev/zero"};
enum { ENDLESS = sizeof endless / sizeof *endless };

/* The programs of this process's tests stay far below what reading a cap's bytes would take. */
START_TEST(a_device_without_an_end_is_refused)
{
    char line[2000];
    struct rusage use;
    snprintf(line, sizeof line, endless[_i], model_path("tales-5m"));
    command_result result = command_run(line, NULL);
    ck_assert_msg(result.code == 2, "%s: exit %d: %s", line, result.code, result.err);
    ck_assert_msg(strstr(result.err, "of a device") != NULL, "%s", result.err);
    command_clear(&result);
    ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &use), 0);
    ck_assert_int_lt(use.ru_maxrss, 200 * 1024);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli inputs");
    TCase *tests = tcase_create("inputs");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, a_device_without_an_end_is_refused, 0, ENDLESS);
    tcase_add_loop_test(tests, a_dash_is_standard_input, 0, LINES);
    tcase_add_test(tests, a_dash_is_standard_input_for_a_schedule);
    tcase_add_test(tests, standard_input_is_read_once);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

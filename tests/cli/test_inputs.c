/*
 * Tests of input files: - is standard input for each, but only once; an endless device is rejected
 * at once.
 */
#include "command.h"
#include "terminal.h"

#include "base/file.h"
#include "base/memory.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define IDS   "[909, 452, 449]"
#define TEXTS "[\"Once there was\", \"A fox\"]"

/* A command line with a file argument, %s, and the file's contents; NULL: a schedule of the
 * model. */
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
    {"score %s --device cpu --file %s", "Once there was"},
    {"eval %s --device cpu --file %s", "Once there was"},
    {"score %s --device cpu --texts %s", TEXTS},
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
    ck_assert_msg(strstr(result.err, "unknown diagnostic") == NULL, "%s", result.err);
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

/* Command lines that use standard input twice, and the first option that reads it. */
static const struct {
    const char *line, *first;
} twice[] = {
    {"run m --prompt-file - --config -", "and --prompt-file reads it too"},
    {"run m --prompts - --schedule /dev/stdin", "and --prompts reads it too"},
    {"eval m --texts - --config -", "and --texts reads it too"},
    {"compile m -o f --schedule - --config -", "and --config reads it too"},
    {"tune m --space - --config -", "and --space reads it too"},
    {"tune m --chat-key-file - --space -", "and --space reads it too"},
};
enum { TWICE = sizeof twice / sizeof *twice };

START_TEST(standard_input_is_read_once)
{
    command_result result = command_run(twice[_i].line, "x");
    ck_assert_int_eq(result.code, 1);
    ck_assert_msg(strstr(result.err, "can be read only once") != NULL, "%s", result.err);
    ck_assert_msg(strstr(result.err, twice[_i].first) != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

/* ---- a prompt through a pipe ----------------------------------------------------------------- */

static const char in_words[] = "run %s --device cpu --max-tokens 6 --quiet";

static char *reply_to(const char *flags, const char *input)
{
    char line[3000];
    int length = snprintf(line, sizeof line, in_words, model_path("tales-5m"));
    snprintf(line + length, sizeof line - (size_t)length, " %s", flags);
    command_result result = command_run(line, input);
    ck_assert_msg(result.code == 0, "%s: %s", line, result.err);
    char *reply = strdup(result.out);
    command_clear(&result);
    return reply;
}

static void check_same(const char *flags, const char *input, const char *other_flags,
                       const char *other_input)
{
    char *reply = reply_to(flags, input), *other = reply_to(other_flags, other_input);
    ck_assert_str_eq(reply, other);
    free(reply);
    free(other);
}

START_TEST(a_pipe_is_the_prompt_when_none_is_given)
{
    check_same("", "Once there was", "--prompt 'Once there was'", NULL);
}
END_TEST

START_TEST(the_line_end_of_echo_is_no_part_of_it)
{
    check_same("", "Once there was\n", "", "Once there was");
    check_same("", "Once there was\r\n", "", "Once there was");
}
END_TEST

START_TEST(one_line_end_alone_is_left_out)
{
    check_same("", "Once\n\n", "--prompt-file -", "Once\n");
}
END_TEST

START_TEST(a_pipe_is_not_read_beside_a_prompt)
{
    check_same("--prompt Once", "A fox", "--prompt Once", NULL);
}
END_TEST

static void check_refused(const char *line, const char *input, const char *message)
{
    command_result result = command_run(line, input);
    ck_assert_int_eq(result.code, 1);
    ck_assert_msg(strstr(result.err, message) != NULL, "%s", result.err);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}

START_TEST(an_empty_pipe_is_an_error)
{
    check_refused("run m", "", "is needed; standard input, which is read in their place, is empty");
    check_refused("run m", "\n", "is empty");
}
END_TEST

/* The pipe contains the config. */
START_TEST(a_pipe_that_is_read_already_is_no_prompt)
{
    check_refused("run m --config -", "{}",
                  "one of --prompt, --prompt-file, --prompt-ids, --prompts and");
}
END_TEST

START_TEST(a_terminal_is_not_waited_for)
{
    terminal t;
    terminal_open(&t, 200);
    pid_t pid = terminal_start(&t, &(terminal_program){.line = "run m", .kind = "dumb"});
    ck_assert_int_eq(terminal_end(&t, pid), 1);
    ck_assert_msg(strstr(t.bytes, "or a text through a pipe") != NULL, "%s", t.bytes);
    terminal_close(&t);
}
END_TEST

/* Ctrl-C while the pipe's writer sends nothing. */
START_TEST(waiting_for_a_prompt_can_be_interrupted)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    command running = command_start_with("run m", ends[0], 0);
    close(ends[0]);
    command_await_handler(&running);
    kill(running.pid, SIGINT);
    command_result result = command_end(&running);
    ck_assert_int_eq(result.code, 130);
    command_clear(&result);
    close(ends[1]);
}
END_TEST

/* ---- campaigns ------------------------------------------------------------------------------- */

START_TEST(a_dash_is_standard_input_for_a_space)
{
    char line[3000];
    snprintf(line, sizeof line, "tune %s --device none --dry-run --space - --store %s/none.db",
             model_path("tales-5m"), scratch_folder());
    command_result result = command_run(
        line, "{\"schema\": \"megalith.space/1\", \"knobs\": {\"rows\": [0, 16]}, \"moves\": []}");
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_msg(strstr(result.out, "space     1 knobs, 2 configs") != NULL, "%s", result.out);
    command_clear(&result);
}
END_TEST

START_TEST(a_dash_is_standard_input_for_a_campaign)
{
    char line[3000], store[1100];
    snprintf(store, sizeof store, "%s/dash.db", scratch_folder());
    snprintf(
        line, sizeof line,
        "tune %s --device none --proposer external --trials 1 --name dash --hours 0 --store %s",
        model_path("tales-5m"), store);
    command_result result = command_run(line, NULL);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    snprintf(line, sizeof line, "campaign submit - --store %s", store);
    result = command_run(line, "{\"schema\": \"megalith.proposal/1\", \"config\": {\"rows\": 3}}");
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_str_eq(result.out, "1\n");
    command_clear(&result);
    snprintf(line, sizeof line, "campaign import - --store %s", store);
    result = command_run(line, "nonsense");
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "stdin") != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

/* A named pipe is rejected without a wait. A file that is not a proposal is not quoted or kept. */
START_TEST(other_files_are_no_proposals)
{
    char line[600], path[300], store[300];
    snprintf(store, sizeof store, "%s/other.db", scratch_folder());
    snprintf(
        line, sizeof line,
        "tune %s --device none --proposer external --trials 1 --name other --hours 0 --store %s",
        model_path("tales-5m"), store);
    command_result result = command_run(line, NULL);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    snprintf(path, sizeof path, "%s/proposal.pipe", scratch_folder());
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    result = command_runf("campaign submit %s --store %s", path, store);
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "named pipe") != NULL, "%s", result.err);
    command_clear(&result);
    snprintf(path, sizeof path, "%s/secret", scratch_folder());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("root:x:0:0:root:/root:/bin/bash\n", file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(command_code("campaign submit %s --store %s", path, store), 0);
    snprintf(line, sizeof line, "campaign resume other --trials 1 --store %s", store);
    result = command_run(line, NULL);
    ck_assert_msg(!strstr(result.out, "root:") && !strstr(result.err, "root:"), "%s", result.err);
    command_clear(&result);
    result = command_runf("campaign history other --json --store %s", store);
    ck_assert_msg(strstr(result.out, "first line is `megalith 1`") != NULL, "%s", result.out);
    ck_assert_msg(!strstr(result.out, "root:"), "%s", result.out);
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

/* Checks that the child processes of the tests used much less memory than a file of the maximum
 * size. */
START_TEST(a_device_without_an_end_is_rejected)
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
    tcase_add_loop_test(tests, a_device_without_an_end_is_rejected, 0, ENDLESS);
    tcase_add_loop_test(tests, a_dash_is_standard_input, 0, LINES);
    tcase_add_test(tests, a_dash_is_standard_input_for_a_schedule);
    tcase_add_test(tests, other_files_are_no_proposals);
    tcase_add_loop_test(tests, standard_input_is_read_once, 0, TWICE);
    tcase_add_test(tests, a_pipe_is_the_prompt_when_none_is_given);
    tcase_add_test(tests, the_line_end_of_echo_is_no_part_of_it);
    tcase_add_test(tests, one_line_end_alone_is_left_out);
    tcase_add_test(tests, a_pipe_is_not_read_beside_a_prompt);
    tcase_add_test(tests, an_empty_pipe_is_an_error);
    tcase_add_test(tests, a_pipe_that_is_read_already_is_no_prompt);
    tcase_add_test(tests, a_terminal_is_not_waited_for);
    tcase_add_test(tests, waiting_for_a_prompt_can_be_interrupted);
    tcase_add_test(tests, a_dash_is_standard_input_for_a_space);
    tcase_add_test(tests, a_dash_is_standard_input_for_a_campaign);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

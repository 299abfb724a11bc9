/*
 * Tests of INT, TERM and HUP: every verb ends soon, with 128 + signal, one line and no partial
 * file. Also while a verb waits for input, and while it cannot check for signals.
 */
#include "command.h"

#include "base/clock.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct signal_case {
    int number;
    const char *name;
} kinds[] = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- a program that waits for its input ------------------------------------------------------ */

/* `megalith LINE`, whose standard input is a pipe that stays open. */
typedef struct waiting {
    command running;
    int input;
} waiting;

static waiting start_waiting(const char *line, int ignored)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    waiting w = {.input = ends[1]};
    w.running = command_start_with(line, ends[0], ignored);
    close(ends[0]);
    command_await_handler(&w.running);
    return w;
}

/* Sends a signal, and checks that the program ended soon. */
static command_result end_waiting(waiting *w, double since)
{
    command_result result = command_end(&w->running);
    ck_assert_double_lt(mgl_clock_s() - since, COMMAND_ENDS_S);
    close(w->input);
    return result;
}

static command_result interrupt(const char *flags, int number)
{
    char line[2000];
    snprintf(line, sizeof line, "tokenize %s%s", model_path("tales-5m"), flags);
    waiting w = start_waiting(line, 0);
    double start = mgl_clock_s();
    ck_assert_int_eq(kill(w.running.pid, number), 0);
    return end_waiting(&w, start);
}

START_TEST(a_verb_that_waits_for_input_ends)
{
    char said[100];
    command_result result = interrupt("", kinds[_i].number);
    snprintf(said, sizeof said, "megalith tokenize: interrupted by %s\n", kinds[_i].name);
    ck_assert_int_eq(result.code, 128 + kinds[_i].number);
    ck_assert_str_eq(result.err, said);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

START_TEST(with_json_it_prints_the_error)
{
    command_result result = interrupt(" --json", kinds[_i].number);
    mgl_json json = command_json(&result, "megalith.error/1");
    ck_assert_int_eq(result.code, 128 + kinds[_i].number);
    ck_assert_int_eq((int)json_number(&json, "exit"), 128 + kinds[_i].number);
    ck_assert_ptr_nonnull(strstr(json_string(&json, "message"), kinds[_i].name));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* timeout(1) sends its signal to the process and to its group. */
START_TEST(two_at_once_are_one)
{
    char line[2000];
    snprintf(line, sizeof line, "tokenize %s", model_path("tales-5m"));
    waiting w = start_waiting(line, 0);
    double start = mgl_clock_s();
    kill(w.running.pid, SIGTERM);
    usleep(2000);
    kill(w.running.pid, SIGTERM);
    command_result result = end_waiting(&w, start);
    ck_assert_int_eq(result.code, 143);
    ck_assert_str_eq(result.err, "megalith tokenize: interrupted by SIGTERM\n");
    command_clear(&result);
}
END_TEST

/* Two signals of different kinds: the exit code is that of the first. */
START_TEST(the_first_counts)
{
    char line[2000];
    snprintf(line, sizeof line, "tokenize %s", model_path("tales-5m"));
    waiting w = start_waiting(line, 0);
    double start = mgl_clock_s();
    kill(w.running.pid, SIGHUP); /* the lower number, which is delivered first if both are
                                    pending */
    kill(w.running.pid, SIGTERM);
    command_result result = end_waiting(&w, start);
    ck_assert_int_eq(result.code, 129);
    command_clear(&result);
}
END_TEST

/* Started as by nohup. */
START_TEST(what_is_ignored_stays_ignored)
{
    char line[2000];
    snprintf(line, sizeof line, "tokenize %s", model_path("tales-5m"));
    waiting w = start_waiting(line, SIGHUP);
    ck_assert_int_eq(kill(w.running.pid, SIGHUP), 0);
    usleep(300000);
    ck_assert_int_eq(write(w.input, "Hello world", 11), 11);
    close(w.input);
    command_result result = command_end(&w.running);
    ck_assert_int_eq(result.code, 0);
    ck_assert_str_eq(result.out, "909,39,524,78,258,276,325\n");
    command_clear(&result);
}
END_TEST

/* ---- a program whose reader does not read ---------------------------------------------------- */

/* Earlier output stays complete up to its end. The program does not wait for the reader. */
START_TEST(a_reader_that_does_not_read_holds_nobody_up)
{
    static char text[300000];
    char line[2000];
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = "a fox "[i % 6];
    snprintf(line, sizeof line, "tokenize %s", model_path("tales-5m"));
    waiting w = start_waiting(line, 0);
    ck_assert_int_eq(fcntl(w.running.out, F_SETPIPE_SZ, 4096), 4096);
    ck_assert_int_eq(write(w.input, text, sizeof text - 1), (ssize_t)sizeof text - 1);
    close(w.input);
    w.input = dup(0);
    ck_assert(command_await(&w.running, 10));
    usleep(100000);
    int status;
    double start = mgl_clock_s();
    ck_assert_int_eq(kill(w.running.pid, SIGINT), 0);
    ck_assert_int_eq(waitpid(w.running.pid, &status, 0), w.running.pid);
    ck_assert_double_lt(mgl_clock_s() - start, COMMAND_ENDS_S);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 130);
    close(w.running.out);
    close(w.running.err);
    close(w.input);
}
END_TEST

/* ---- verbs at work --------------------------------------------------------------------------- */

static int count_files(const char *folder)
{
    int count = 0;
    DIR *files = opendir(folder);
    ck_assert_ptr_nonnull(files);
    for (struct dirent *file = readdir(files); file; file = readdir(files))
        count += file->d_name[0] != '.';
    closedir(files);
    return count;
}

/* Interrupts the verb after some time. Returns the result, or code 0 if it had ended before. */
static command_result interrupt_after(const char *line, int number, int ms)
{
    command running = command_start(line);
    command_await_handler(&running);
    usleep((useconds_t)ms * 1000);
    double start = mgl_clock_s();
    kill(running.pid, number);
    command_result result = command_end(&running);
    ck_assert_double_lt(mgl_clock_s() - start, COMMAND_ENDS_S);
    return result;
}

static void check_end(const command_result *result, int number)
{
    if (result->code == 0)
        return;
    ck_assert_int_eq(result->code, 128 + number);
    if (result->err[0]) /* no message: it had finished */
        ck_assert_ptr_nonnull(strstr(result->err, ": interrupted by SIG"));
}

/* Interrupts each kind of verb at one random moment. */
START_TEST(compile_leaves_nothing)
{
    char line[3000], folder[300];
    int number = kinds[_i % KINDS].number;
    snprintf(folder, sizeof folder, "%s/out%d", scratch_folder(), _i);
    snprintf(line, sizeof line, "mkdir %s", folder);
    ck_assert_int_eq(system(line), 0);
    snprintf(line, sizeof line, "compile %s --target cpu:1 -o %s/f.mega", model_path("tales-5m"),
             folder);
    command_result result = interrupt_after(line, number, _i * 3);
    check_end(&result, number);
    if (result.code == 0)
        ck_assert_int_eq(count_files(folder), 1);
    else if (count_files(folder) > 0) { /* it had finished when the signal arrived */
        command_result whole = command_runf("info %s/f.mega", folder);
        ck_assert_int_eq(count_files(folder), 1);
        ck_assert_int_eq(whole.code, 0);
        command_clear(&whole);
    }
    command_clear(&result);
}
END_TEST

START_TEST(eval_and_score_end)
{
    char line[3000];
    int number = kinds[_i % KINDS].number;
    snprintf(line, sizeof line, "%s %s --device cpu --texts %s/val_texts.json",
             _i % 2 ? "eval" : "score", model_path("tales-5m"), model_path("tales-5m"));
    command_result result = interrupt_after(line, number, _i * 40);
    check_end(&result, number);
    ck_assert_int_ne(result.code, 0);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

/* Interrupts a reply in progress. Returns whether it printed its closing line within 0.1 s. */
static bool closes(int number)
{
    char line[3000];
    snprintf(line, sizeof line, "run %s --device cpu --prompt Once --ignore-eos --max-tokens 1000",
             model_path("tales-5m"));
    command running = command_start(line);
    ck_assert(command_await(&running, 100));
    kill(running.pid, number);
    command_result result = command_end(&running);
    ck_assert_int_eq(result.code, 128 + number);
    ck_assert_ptr_nonnull(strstr(result.err, "megalith run: interrupted by SIG"));
    const bool closed = strstr(result.err, " tokens/s; prompt of 2 tokens") != NULL;
    if (closed)
        ck_assert_ptr_nonnull(strstr(result.err, "\nmegalith run: interrupted by SIG"));
    command_clear(&result);
    return closed;
}

/* A busy machine may miss the limit once, but not always. */
START_TEST(run_tells_what_it_said)
{
    bool closed = false;
    for (int i = 0; i < 5 && !closed; i++)
        closed = closes(kinds[_i].number);
    ck_assert(closed);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli signals");
    TCase *tests = tcase_create("signals");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, a_verb_that_waits_for_input_ends, 0, KINDS);
    tcase_add_loop_test(tests, with_json_it_prints_the_error, 0, KINDS);
    tcase_add_test(tests, two_at_once_are_one);
    tcase_add_test(tests, the_first_counts);
    tcase_add_test(tests, what_is_ignored_stays_ignored);
    tcase_add_test(tests, a_reader_that_does_not_read_holds_nobody_up);
    tcase_add_loop_test(tests, compile_leaves_nothing, 0, 9);
    tcase_add_loop_test(tests, eval_and_score_end, 0, 6);
    tcase_add_loop_test(tests, run_tells_what_it_said, 0, KINDS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

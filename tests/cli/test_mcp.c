/*
 * Tests of `mcp` from a client's view: one message per line in and out, and how the server ends.
 * tests/autotune/mcp/test_mcp.c tests the answers.
 */
#include "command.h"

#include "base/clock.h"
#include "tests/time_limit.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
#define PONG "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"

static void check_talk(const char *input, const char *output)
{
    command_result result = command_run("mcp", input);
    ck_assert_str_eq(result.out, output);
    ck_assert_str_eq(result.err, "");
    ck_assert_int_eq(result.code, 0);
    command_clear(&result);
}

START_TEST(the_end_of_its_input_ends_it)
{
    check_talk("", "");
}
END_TEST

START_TEST(it_answers_a_line_a_request)
{
    check_talk(PING "\n" PING "\r\n", PONG PONG);
}
END_TEST

START_TEST(the_last_line_needs_no_end)
{
    check_talk(PING, PONG);
}
END_TEST

START_TEST(empty_lines_ask_for_nothing)
{
    check_talk("\n\n\r\n  \n" PING "\n", PONG);
}
END_TEST

/* If a tool fails, the answer contains its error. */
START_TEST(nothing_else_is_said)
{
    command_result result = command_run("mcp --store /nowhere/campaigns.db",
                                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
                                        "call\",\"params\":{\"name\":\"best\"}}\n");
    ck_assert_int_eq(result.code, 0);
    ck_assert_str_eq(result.err, "");
    ck_assert_ptr_nonnull(strstr(result.out, "\"isError\":true"));
    ck_assert_ptr_eq(strchr(result.out, '\n'), result.out + result.out_length - 1);
    command_clear(&result);
}
END_TEST

START_TEST(a_line_without_end_is_rejected)
{
    enum { MIB = 1 << 20, LENGTH = 81 };
    char *input = malloc((size_t)LENGTH * MIB + sizeof PING + 1);
    ck_assert_ptr_nonnull(input);
    memset(input, 'x', (size_t)LENGTH * MIB);
    strcpy(input + (size_t)LENGTH * MIB, "\n" PING);
    command_result result = command_run("mcp", input);
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.out, "\"code\":-32700"));
    ck_assert_ptr_nonnull(strstr(result.out, PONG));
    command_clear(&result);
    free(input);
}
END_TEST

START_TEST(a_folder_that_is_none_is_told)
{
    command_result result = command_run("mcp --folders /nowhere/at/all", PING);
    ck_assert_int_eq(result.code, 2);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

START_TEST(a_signal_ends_it)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    command running = command_start_with("mcp", ends[0], 0);
    ck_assert_int_eq(write(ends[1], PING "\n", sizeof PING), sizeof PING);
    ck_assert_int_eq(command_await(&running, sizeof PONG - 1), 1);
    double start = mgl_clock_s();
    kill(running.pid, SIGTERM);
    command_result result = command_end(&running);
    ck_assert_double_lt(mgl_clock_s() - start, COMMAND_ENDS_S);
    ck_assert_int_eq(result.code, 128 + SIGTERM);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* ---- a request that waits -------------------------------------------------------------------- */

#define PATIENT                                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/"                                            \
    "call\",\"params\":{\"name\":\"submit_trial\","                                                \
    "\"arguments\":{\"schedule\":\"x\",\"wait_s\":600}}}\n"
#define CANCEL                                                                                     \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2}}\n"

/* The command line of a server whose campaign has no running process. */
static const char *serve_trials(void)
{
    static char line[500];
    char store[300];
    snprintf(store, sizeof store, "%s/mcp.db", scratch_folder());
    command_result result =
        command_runf("tune %s --device none --seed 5 --trials 1 --quiet --store %s",
                     model_path("tales-5m"), store);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    snprintf(line, sizeof line, "mcp --allow-trials --store %s", store);
    return line;
}

START_TEST(a_cancelled_request_is_not_answered)
{
    command_result result = command_run(serve_trials(), PATIENT CANCEL PING "\n");
    ck_assert_str_eq(result.out, PONG);
    ck_assert_int_eq(result.code, 0);
    command_clear(&result);
}
END_TEST

START_TEST(the_end_of_its_input_ends_a_wait)
{
    double start = mgl_clock_s();
    command_result result = command_run(serve_trials(), PATIENT);
    ck_assert_double_lt(mgl_clock_s() - start, time_limit(10));
    ck_assert_ptr_nonnull(strstr(result.out, "\"state\":\"queued\""));
    ck_assert_int_eq(result.code, 0);
    command_clear(&result);
}
END_TEST

START_TEST(a_signal_ends_a_wait)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    command running = command_start_with(serve_trials(), ends[0], 0);
    ck_assert_int_eq(write(ends[1], PING "\n" PATIENT, sizeof PING + sizeof PATIENT - 1),
                     sizeof PING + sizeof PATIENT - 1);
    ck_assert_int_eq(command_await(&running, sizeof PONG - 1), 1);
    usleep(100000);
    double start = mgl_clock_s();
    kill(running.pid, SIGTERM);
    command_result result = command_end(&running);
    ck_assert_double_lt(mgl_clock_s() - start, COMMAND_ENDS_S);
    ck_assert_int_eq(result.code, 128 + SIGTERM);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* ---- micro-kernels --------------------------------------------------------------------------- */

/* The command line continues a work that a tool started, and vice versa. */
START_TEST(kernel_sessions_are_those_of_the_command_line)
{
    char folder[300], line[400];
    snprintf(folder, sizeof folder, "%s/kernels", scratch_folder());
    snprintf(line, sizeof line, "mcp --allow-trials --kernels %s", folder);
    command_result result = command_run(
        line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
              "\"kernel_begin\",\"arguments\":{\"unit\":\"merge\",\"task\":\"Add it.\"}}}\n");
    ck_assert_msg(strstr(result.out, "\"isError\":false") != NULL, "%s", result.out);
    ck_assert_int_eq(result.code, 0);
    command_clear(&result);
    result = command_runf("kernel next merge --folder %s", folder);
    ck_assert_msg(strstr(result.out, "\"instruction\":\"Add it.\"") != NULL, "%s", result.out);
    command_clear(&result);
    result = command_runf("kernel prompt merge --folder %s --drop --task 'Mend it.'", folder);
    ck_assert_int_eq(result.code, 0);
    command_clear(&result);
    snprintf(line, sizeof line, "mcp --kernels %s", folder);
    result =
        command_run(line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
                          "\"name\":\"kernel_next\",\"arguments\":{\"unit\":\"merge\"}}}\n");
    ck_assert_msg(strstr(result.out, "\"instruction\":\"Mend it.\"") != NULL, "%s", result.out);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli mcp");
    TCase *tests = tcase_create("mcp");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_end_of_its_input_ends_it);
    tcase_add_test(tests, it_answers_a_line_a_request);
    tcase_add_test(tests, the_last_line_needs_no_end);
    tcase_add_test(tests, empty_lines_ask_for_nothing);
    tcase_add_test(tests, nothing_else_is_said);
    tcase_add_test(tests, a_line_without_end_is_rejected);
    tcase_add_test(tests, a_folder_that_is_none_is_told);
    tcase_add_test(tests, a_signal_ends_it);
    tcase_add_test(tests, a_cancelled_request_is_not_answered);
    tcase_add_test(tests, the_end_of_its_input_ends_a_wait);
    tcase_add_test(tests, a_signal_ends_a_wait);
    tcase_add_test(tests, kernel_sessions_are_those_of_the_command_line);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

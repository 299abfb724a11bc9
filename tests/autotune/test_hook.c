/* Tests of the program of --on-event: it receives events, and is killed if it does not end. */
#include "autotune/hook.h"

#include "base/clock.h"
#include "tests/time_limit.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = MGL_BINARY_DIR "/hook-XXXXXX";
static char script[200], answer[200];

static const char *write_script(const char *text)
{
    snprintf(script, sizeof script, "%s/hook.sh", folder);
    FILE *file = fopen(script, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\n%s\n", text);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(script, 0700), 0);
    return script;
}

static mgl_hook *open_hook(const char *program, double seconds)
{
    mgl_hook *hook;
    mgl_error err = {0};
    ck_assert_msg(!mgl_hook_open(program, seconds, &hook, &err), "%s", err.message);
    return hook;
}

/* Whether the process has ended, or is a zombie that its new parent has not reaped. */
static bool is_dead(pid_t pid)
{
    char path[64], state[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return true;
    bool dead = !fgets(state, sizeof state, file) || strstr(state, ") Z ");
    fclose(file);
    return dead;
}

START_TEST(it_hears_of_the_event)
{
    char text[400], line[64] = "";
    snprintf(answer, sizeof answer, "%s/heard", folder);
    snprintf(text, sizeof text, "cat > %s", answer);
    mgl_hook *hook = open_hook(write_script(text), 0);
    ck_assert_int_eq(mgl_hook_tell(hook, "{\"a\":1}\n", 8, NULL), MGL_OK);
    mgl_hook_close(hook, NULL);
    FILE *file = fopen(answer, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    ck_assert_str_eq(line, "{\"a\":1}\n");
    fclose(file);
}
END_TEST

/* Runs the program for this time. Returns the number that it wrote, or 0 if it did not start in
 * time on a busy machine. */
static pid_t run_for(double seconds, const char *program)
{
    char line[64] = "";
    mgl_hook *hook = open_hook(program, seconds);
    double began = mgl_clock_s();
    ck_assert_int_eq(mgl_hook_tell(hook, "{}", 2, NULL), MGL_OK);
    mgl_hook_close(hook, NULL);
    ck_assert_double_lt(mgl_clock_s() - began, seconds + time_limit(20));
    FILE *file = fopen(answer, "r");
    if (file && !fgets(line, sizeof line, file))
        line[0] = 0;
    if (file)
        fclose(file);
    return (pid_t)atol(line);
}

START_TEST(it_is_killed_with_what_it_started)
{
    char text[400];
    pid_t pid = 0;
    snprintf(answer, sizeof answer, "%s/pid", folder);
    snprintf(text, sizeof text, "sleep 100 & echo $! > %s; wait", answer);
    const char *program = write_script(text);
    for (double seconds = 0.3; !pid && seconds < time_limit(20); seconds *= 2)
        pid = run_for(seconds, program);
    ck_assert_int_gt(pid, 0);
    for (int i = 0; i < time_limit(500) && !is_dead(pid); i++)
        usleep(10000);
    ck_assert(is_dead(pid));
}
END_TEST

START_TEST(what_is_not_there_is_an_error)
{
    mgl_error err = {0};
    mgl_hook *hook = open_hook("/dev/null/nowhere/hook", 0);
    ck_assert_int_ne(mgl_hook_tell(hook, "{}", 2, &err), MGL_OK);
    ck_assert_ptr_nonnull(strstr(err.message, "cannot be started"));
    mgl_hook_close(hook, NULL);
}
END_TEST

START_TEST(an_interruption_does_not_wait)
{
    atomic_int abort = 1;
    mgl_hook *hook = open_hook(write_script("sleep 1000"), time_limit(60));
    double began = mgl_clock_s();
    ck_assert_int_eq(mgl_hook_tell(hook, "{}", 2, NULL), MGL_OK);
    mgl_hook_close(hook, &abort);
    ck_assert_double_lt(mgl_clock_s() - began, time_limit(5));
}
END_TEST

START_TEST(so_many_run_at_once)
{
    atomic_int abort = 1;
    mgl_error err = {0};
    mgl_hook *hook = open_hook(write_script("sleep 1000"), time_limit(60));
    for (int i = 0; i < MGL_HOOKS_AT_ONCE; i++)
        ck_assert_int_eq(mgl_hook_tell(hook, "{}", 2, &err), MGL_OK);
    ck_assert_int_eq(mgl_hook_tell(hook, "{}", 2, &err), MGL_SYSTEM);
    mgl_hook_close(hook, &abort);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hook");
    TCase *tests = tcase_create("hook");
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, it_hears_of_the_event);
    tcase_add_test(tests, it_is_killed_with_what_it_started);
    tcase_add_test(tests, what_is_not_there_is_an_error);
    tcase_add_test(tests, an_interruption_does_not_wait);
    tcase_add_test(tests, so_many_run_at_once);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    unlink(script);
    static const char *const names[] = {"heard", "pid"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(answer, sizeof answer, "%s/%s", folder, names[i]);
        unlink(answer);
    }
    rmdir(folder);
    return failed != 0;
}

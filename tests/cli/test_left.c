/*
 * Tests of unattended campaigns: after a logout, after a pseudo-terminal closes under a shell, and
 * after a reboot during a trial. The reboot is simulated: a store as SIGKILL leaves it, with a
 * process id of an earlier boot that now belongs to another process.
 */
#include "command.h"
#include "terminal.h"

#include "tests/tools/stored.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "tests/time_limit.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const double patience_s = 60; /* time limit for what takes a second on an idle machine */
enum { TRIALS = 60, FIRST_TRIALS = 3 };

static void pause_a_little(void)
{
    usleep(20000);
}

/* A file's text; NULL if it is missing. Release with mgl_free. */
static char *text_of(const char *store, const char *end)
{
    char path[400], *text = NULL;
    size_t length;
    snprintf(path, sizeof path, "%s%s", store, end);
    return mgl_file_read(path, 1 << 20, &text, &length, NULL) ? NULL : text;
}

/* Waits for a process that this process inherited. Returns its exit code, or 128 + signal. */
static int await_end(pid_t pid)
{
    int status = 0;
    double end = mgl_clock_s() + time_limit(patience_s);
    pid_t ended;
    while (!(ended = waitpid(pid, &status, WNOHANG)) && mgl_clock_s() < end)
        pause_a_little();
    ck_assert_msg(ended > 0, "process %ld is no child that ended", (long)pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- logout ---------------------------------------------------------------------------------- */

/* A shell on a terminal, and the campaign started from it. */
typedef struct login {
    terminal terminal;
    pid_t shell, campaign;
    const char *store;
} login;

/* Types this line. */
static void type(login *l, const char *line)
{
    ck_assert_int_eq(write(l->terminal.master, line, strlen(line)), (ssize_t)strlen(line));
    ck_assert_int_eq(write(l->terminal.master, "\n", 1), 1);
}

/* The campaign waits for submissions, so it still runs at the logout. */
static void log_in(login *l, const char *name, const char *more)
{
    char line[2000];
    *l = (login){.store = scratch_store(name)};
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphaned processes become children of this process */
    terminal_open(&l->terminal, 200);
    l->shell = terminal_start_shell(&l->terminal);
    snprintf(line, sizeof line,
             "%s/megalith tune %s --device none --seed 5 --store %s --proposer external --trials 1 "
             "--name night %s; echo left$?.",
             MGL_BINARY_DIR, model_path("tales-5m"), l->store, more);
    type(l, line);
}

static void begin_beside(login *l, const char *name)
{
    log_in(l, name, "--detach");
    ck_assert_msg(terminal_await(&l->terminal, "left0.", patience_s), "%s", l->terminal.bytes);
    char *pid = text_of(l->store, ".night.pid");
    ck_assert_ptr_nonnull(pid);
    l->campaign = (pid_t)atol(pid);
    mgl_free(pid);
}

/* Closes the terminal: the kernel sends SIGHUP to the shell (the session leader) and to the
 * foreground process group. */
static void log_out(login *l)
{
    terminal_close(&l->terminal);
    await_end(l->shell);
}

static void says(const login *l, const char *text)
{
    char *log = text_of(l->store, ".night.log");
    ck_assert_ptr_nonnull(log);
    ck_assert_msg(strstr(log, text) != NULL, "%s", log);
    mgl_free(log);
}

START_TEST(detached_it_outlives_a_logout_and_ends_by_itself)
{
    login l;
    begin_beside(&l, "logout");
    ck_assert_int_eq(getsid(l.campaign), l.campaign);
    log_out(&l);
    ck_assert_int_eq(waitpid(l.campaign, NULL, WNOHANG), 0);
    char line[600];
    snprintf(line, sizeof line, "campaign submit %s --wait --name night",
             scratch_file("proposal.txt",
                          "{\"schema\":\"megalith.proposal/1\",\"config\":{\"page_bytes\":8192}}"));
    ck_assert_int_eq(command_code("%s --store %s", line, l.store),
                     13); /* unmeasured: there is no device */
    ck_assert_int_eq(await_end(l.campaign), 0);
    says(&l, "ended: its 1 trials are made");
}
END_TEST

START_TEST(detached_it_is_stopped_from_elsewhere)
{
    login l;
    begin_beside(&l, "stop");
    log_out(&l);
    ck_assert_int_eq(command_code("campaign stop night --store %s", l.store), 0);
    ck_assert_int_eq(await_end(l.campaign), 0);
    says(&l, "stopped: it was asked to stop");
}
END_TEST

/* Waits until the campaign is in its store. */
static void await_campaign(const char *store)
{
    double end = mgl_clock_s() + time_limit(patience_s);
    while (command_code("campaign status night --store %s", store) && mgl_clock_s() < end)
        pause_a_little();
}

START_TEST(otherwise_a_logout_ends_it)
{
    login l;
    log_in(&l, "foreground", "2>/dev/null");
    await_campaign(l.store);
    log_out(&l);
    await_end(-1);
    command_result status = command_runf("campaign status night --store %s", l.store);
    ck_assert_msg(strstr(status.out, "paused: it was interrupted") != NULL, "%s", status.out);
    command_clear(&status);
}
END_TEST

/* ---- reboot ---------------------------------------------------------------------------------- */

static const char *tune_line(const char *store)
{
    static char line[1000];
    snprintf(line, sizeof line,
             "tune %s --device none --seed 7 --trials %d --proposer random --name night --quiet "
             "--store %s",
             model_path("tales-5m"), TRIALS, store);
    return line;
}

static void run_whole(const char *store, stored *out)
{
    mgl_error err = {0};
    command_result result = command_run(tune_line(store), NULL);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    ck_assert_msg(!stored_read(store, "night", out, &err), "%s", err.message);
    ck_assert_int_eq(out->count, TRIALS);
}

static void kill_in_the_middle(const char *store)
{
    mgl_error err = {0};
    stored now = {0};
    command running = command_start(tune_line(store));
    double end = mgl_clock_s() + time_limit(patience_s);
    while (now.count < FIRST_TRIALS && mgl_clock_s() < end)
        if (stored_read(store, "night", &now, &err))
            now.count = 0; /* trial 1 is in progress */
    kill(running.pid, SIGKILL);
    command_result result = command_end(&running);
    ck_assert_int_eq(result.code, 128 + SIGKILL);
    command_clear(&result);
}

/* The lock contains the id of its process; now another process has this id. */
static void recycle_process(const char *store, const char *boot)
{
    char path[400];
    char *said = text_of(store, "-none-1.lock");
    ck_assert_ptr_nonnull(said);
    ck_assert_int_gt(atol(said), 0);
    const char *old = strchr(said, '\n');
    ck_assert_ptr_nonnull(old);
    snprintf(path, sizeof path, "%s-none-1.lock", store);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "%ld\n%s", (long)getpid(), boot ? boot : old + 1);
    fclose(file);
    mgl_free(said);
}

static const char *const boots[] = {"00000000-0000-4000-8000-000000000000", NULL /* the same */};

START_TEST(after_a_reboot_the_same_command_goes_on)
{
    char name[32], path[300];
    stored whole, now;
    run_whole(scratch_store("whole"), &whole);
    stored_remove(scratch_store("whole"));
    snprintf(name, sizeof name, "reboot%d", _i);
    snprintf(path, sizeof path, "%s", scratch_store(name));
    kill_in_the_middle(path);
    recycle_process(path, boots[_i]);
    run_whole(path, &now);
    ck_assert(stored_agrees(&now, &whole));
    stored_remove(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli left");
    TCase *tests = tcase_create("left");
    tcase_set_timeout(tests, 280);
    tcase_add_test(tests, detached_it_outlives_a_logout_and_ends_by_itself);
    tcase_add_test(tests, detached_it_is_stopped_from_elsewhere);
    tcase_add_test(tests, otherwise_a_logout_ends_it);
    tcase_add_loop_test(tests, after_a_reboot_the_same_command_goes_on, 0,
                        sizeof boots / sizeof *boots);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/*
 * Tests of the runner's worker processes: what a worker inherits and may do, and every way in which
 * it can end. The workers are real, as in test_runner.c.
 */
#include "tests/autotune/runner/runner_fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autotune/runner/sandbox.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "tests/scratch.h"
#include "tests/time_limit.h"
#include "vm/cuda/cache.h"

static char *read_proc(pid_t pid, const char *name, size_t *length)
{
    char path[64], *text;
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    ok(mgl_file_read(path, 1 << 20, &text, length, &err));
    return text;
}

/* Whether an environment variable of the process begins with `start`. */
static bool has_entry(pid_t pid, const char *start)
{
    size_t length;
    bool found_one = false;
    char *text = read_proc(pid, "environ", &length);
    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        found_one |= !strncmp(text + at, start, strlen(start));
    mgl_free(text);
    return found_one;
}

START_TEST(no_key_reaches_a_worker)
{
    setenv("MEGALITH_CHAT_KEY", "planted", 1);
    setenv("MEGALITH_TEST", "planted", 1);
    setenv("SOME_NAME", "planted", 1);
    setenv("CUDA_TOKEN_X", "planted", 1);
    begin(NULL);
    pid_t pid = mgl_process_id(state()->executor);
    ck_assert(has_entry(pid, "PATH="));
    ck_assert(has_entry(pid, "MEGALITH_TEST=planted"));
    ck_assert(has_entry(pid, "MEGALITH_CACHE=/dev/null/nowhere/kernels"));
    ck_assert(!has_entry(pid, "MEGALITH_CHAT_KEY"));
    ck_assert(!has_entry(pid, "SOME_NAME"));
    ck_assert(!has_entry(pid, "CUDA_TOKEN_X"));
    ck_assert(!has_entry(mgl_process_id(state()->referee), "MEGALITH_CHAT_KEY"));
}
END_TEST

START_TEST(a_worker_has_a_socket_and_nothing_else)
{
    char path[64];
    int count = 0;
    FILE *extra = fopen("/dev/null", "r");
    begin(NULL);
    snprintf(path, sizeof path, "/proc/%ld/fd", (long)mgl_process_id(state()->executor));
    DIR *folder = opendir(path);
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    fclose(extra);
    ck_assert_int_eq(count, 4);
}
END_TEST

START_TEST(a_worker_gets_no_new_rights)
{
    size_t length;
    begin(NULL);
    char *text = read_proc(mgl_process_id(state()->executor), "status", &length);
    ck_assert_ptr_nonnull(strstr(text, "NoNewPrivs:\t1"));
    mgl_free(text);
}
END_TEST

/* Whether a seccomp filter is active for the process. */
static bool is_filtered(pid_t pid)
{
    size_t length;
    char *text = read_proc(pid, "status", &length);
    bool filtered = strstr(text, "\nSeccomp:\t2") != NULL;
    mgl_free(text);
    return filtered;
}

/* The runner reports operations that this machine's sandbox cannot forbid. */
START_TEST(executor_and_referee_are_in_the_sandbox)
{
    mgl_runner_device device;
    mgl_sandbox has;
    mgl_sandbox_look(&has);
    begin(NULL);
    check(&other);
    ok(runner->get_device(runner, &device, &err));
    ck_assert_int_eq(device.sandbox[0] != 0, has.missing[0] != 0);
    if (has.seccomp) {
        ck_assert(is_filtered(mgl_process_id(state()->executor)));
        ck_assert(is_filtered(mgl_process_id(state()->referee)));
    }
}
END_TEST

START_TEST(without_a_sandbox_that_is_told)
{
    mgl_runner_device device;
    options.no_sandbox = true;
    begin(NULL);
    ok(runner->get_device(runner, &device, &err));
    ck_assert_str_eq(device.sandbox, "the workers have none (--no-sandbox)");
    ck_assert_int_eq(is_filtered(mgl_process_id(state()->executor)), is_filtered(getpid()));
}
END_TEST

static void *abort_soon(void *unused)
{
    (void)unused;
    usleep(100000);
    atomic_store(&abort_flag, 1);
    return NULL;
}

START_TEST(an_abort_ends_a_check_at_once)
{
    pthread_t thread;
    begin("hang");
    ck_assert_int_eq(pthread_create(&thread, NULL, abort_soon, NULL), 0);
    double start = mgl_clock_s();
    ck_assert_int_eq(runner->check(runner, &other, nonce, &found, &err), MGL_INTERRUPTED);
    ck_assert_double_lt(mgl_clock_s() - start, time_limit(20)); /* its own limit is a minute */
    pthread_join(thread, NULL);
    atomic_store(&abort_flag, 0);
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
    waitpid(-1, NULL, WNOHANG); /* the killed one was waited for briefly only */
}
END_TEST

/* A process that opens a runner, writes the ids of its workers to `to`, and waits to be killed. */
static pid_t start_parent(int to)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    begin(NULL);
    pid_t workers[2] = {mgl_process_id(state()->executor), mgl_process_id(state()->referee)};
    if (write(to, workers, sizeof workers) == (ssize_t)sizeof workers)
        for (;;)
            pause();
    _exit(1);
}

START_TEST(workers_die_with_their_parent)
{
    int ends[2], how;
    pid_t workers[2];
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t parent = start_parent(ends[1]);
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], workers, sizeof workers), sizeof workers);
    close(ends[0]);
    kill(parent, SIGKILL);
    ck_assert_int_eq(waitpid(parent, &how, 0), parent);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(waitpid(workers[i], &how, 0), workers[i]); /* the worker is now this test's
                                                                       child */
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}
END_TEST

/* Every allocation of the runner in a check fails once: an error, and the next check passes. */
START_TEST(a_check_without_memory_is_an_error)
{
    mgl_status status = MGL_NO_MEMORY;
    begin(NULL);
    for (uint64_t n = 1; status; n += 7) {
        mgl_alloc_fail_at(n, true);
        status = runner->check(runner, &other, nonce, &found, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert_msg(status == MGL_OK || status == MGL_NO_MEMORY, "%s: %s", err.where,
                      err.message);
        ck_assert_uint_lt(n, 10000);
    }
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
}
END_TEST

/* A runner for a GPU builds kernels ahead in at most two processes, which end with the runner. The
 * test ignores the results, because this machine may have no compiler. */
START_TEST(compilers_are_few_and_go_with_the_runner)
{
    mgl_candidate ahead = {.program_count = 1};
    mgl_schedule_config knobs = subject.start;
    int processes = 0;
    strcpy(subject.target.arch, "sm_90a");
    subject.target.shared_bytes = 232448;
    subject.dtype = MGL_BF16;
    options.device = "cuda";
    ok(mgl_runner_device_open(&options, &runner, &err));
    for (int i = 0; i < 4; i++) {
        mgl_lower_options how = {
            .dtype = subject.dtype, .capacity = subject.capacity, .sequences = 1};
        knobs.page_bytes = 4096 << i;
        ok(mgl_schedule_lower(subject.graph, &subject.target, &how, &knobs, &ahead.programs[0],
                              &err));
        runner->prepare(runner, &ahead);
        release(&ahead);
    }
    options.device = "cpu";
    mgl_sandbox has;
    mgl_sandbox_look(&has);
    for (int i = 0; i < runner->compilers; i++) {
        mgl_process *compiler = state()->compilers[i].process;
        processes += mgl_process_lives(compiler);
        if (has.seccomp && mgl_process_lives(compiler))
            ck_assert(is_filtered(mgl_process_id(compiler)));
    }
    ck_assert_int_gt(processes, 0);
}
END_TEST

/* After each new kernel, the runner checks the size of the folder. */
START_TEST(kernels_have_so_much_of_the_disk)
{
    char key[MGL_SHA256_HEX] = "new", folder[] = "/tmp/megalith-kernels-XXXXXX", reason[200],
         bytes[1000] = "";
    size_t length;
    scratch_make(folder);
    ck_assert(mgl_cuda_cache_put(folder, "old", bytes, sizeof bytes, reason, sizeof reason));
    usleep(20000); /* the clock of a file's times is coarse */
    ck_assert(mgl_cuda_cache_put(folder, "new", bytes, sizeof bytes, reason, sizeof reason));
    options.kernels = folder;
    options.kernel_bytes = 1500;
    ok(mgl_runner_device_open(&options, &runner, &err));
    mgl_runner_note_kernel(state(), key);
    ck_assert_ptr_null(mgl_cuda_cache_get(folder, "old", &length));
    void *kept = mgl_cuda_cache_get(folder, "new", &length);
    ck_assert_ptr_nonnull(kept);
    mgl_free(kept);
    snprintf(bytes, sizeof bytes, "rm -r %s", folder);
    ck_assert_int_eq(system(bytes), 0);
}
END_TEST

START_TEST(a_worker_without_a_socket_ends)
{
    ck_assert_int_eq(mgl_worker_main("none"), 1);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("runner processes");
    tcase_add_test(tests, no_key_reaches_a_worker);
    tcase_add_test(tests, a_worker_has_a_socket_and_nothing_else);
    tcase_add_test(tests, a_worker_gets_no_new_rights);
    tcase_add_test(tests, executor_and_referee_are_in_the_sandbox);
    tcase_add_test(tests, without_a_sandbox_that_is_told);
    tcase_add_test(tests, an_abort_ends_a_check_at_once);
    tcase_add_test(tests, workers_die_with_their_parent);
    tcase_add_test(tests, a_check_without_memory_is_an_error);
    tcase_add_test(tests, compilers_are_few_and_go_with_the_runner);
    tcase_add_test(tests, kernels_have_so_much_of_the_disk);
    tcase_add_test(tests, a_worker_without_a_socket_ends);
    return runner_main(argc, argv, "runner processes", tests);
}

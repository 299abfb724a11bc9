/*
 * Tests of compiling a kernel from the command line with NVRTC, which cannot be interrupted: Ctrl-C
 * ends the verb at once, with the compiler's process, and no file remains.
 */
#include "command.h"

#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/time_limit.h"
#include "vm/cuda/cuda.h"

static char output[1100];

static void set_up(void)
{
    char cache[1100];
    snprintf(cache, sizeof cache, "%s/no-kernels-yet", scratch_folder());
    setenv("MEGALITH_CACHE", cache, 1);
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    snprintf(output, sizeof output, "%s/tales.mega", scratch_folder());
}

/* Whether process `pid` is a child of `parent` in which the compiler runs. */
static bool compiles(int pid, pid_t parent)
{
    char path[64], line[512] = "";
    int of = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    bool read = file && fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    const char *name = strstr(line, "(megalith-nvrtc) ");
    return read && name && sscanf(name, "(megalith-nvrtc) %*c %d", &of) == 1 && of == parent;
}

static pid_t find_compiler(pid_t parent)
{
    pid_t found = 0;
    const struct dirent *entry;
    DIR *folder = opendir("/proc");
    ck_assert_ptr_nonnull(folder);
    while (!found && (entry = readdir(folder)))
        if (atoi(entry->d_name) > 0 && compiles(atoi(entry->d_name), parent))
            found = atoi(entry->d_name);
    closedir(folder);
    return found;
}

/* Starts a compilation, and waits until the compiler runs. */
static command start(pid_t *compiler)
{
    char line[3000];
    snprintf(line, sizeof line, "compile %s --target sm_90a:132 -o %s", model_path("tales-5m"),
             output);
    command running = command_start(line);
    *compiler = 0;
    for (int i = 0; i < time_limit(3000) && !*compiler; i++) {
        usleep(10000);
        *compiler = find_compiler(running.pid);
    }
    ck_assert_int_gt(*compiler, 0);
    usleep(200000);
    return running;
}

/* The compiler's process must end soon. The program or this process, which inherits it, reaps
 * it. */
static bool is_gone(pid_t compiler)
{
    for (int i = 0; i < time_limit(200) && kill(compiler, 0) == 0; i++, usleep(10000))
        waitpid(compiler, NULL, WNOHANG);
    return kill(compiler, 0) != 0;
}

START_TEST(an_interrupt_ends_the_compiler)
{
    pid_t compiler;
    command running = start(&compiler);
    double start_s = mgl_clock_s();
    kill(running.pid, SIGINT);
    command_result result = command_end(&running);
    ck_assert_int_eq(result.code, 130);
    ck_assert_double_lt(mgl_clock_s() - start_s, COMMAND_ENDS_S);
    ck_assert(is_gone(compiler));
    ck_assert_int_ne(access(output, F_OK), 0);
    command_clear(&result);
}
END_TEST

START_TEST(a_compiler_that_is_killed_is_told)
{
    pid_t compiler;
    command running = start(&compiler);
    kill(compiler, SIGKILL);
    command_result result = command_end(&running);
    ck_assert_int_eq(result.code, 4);
    ck_assert_msg(strstr(result.err, "compiler of the kernel was ended by signal 9"), "%s",
                  result.err);
    ck_assert_int_ne(access(output, F_OK), 0);
    command_clear(&result);
}
END_TEST

START_TEST(the_compiler_dies_with_the_program)
{
    pid_t compiler;
    command running = start(&compiler);
    kill(running.pid, SIGKILL);
    command_result result = command_end(&running);
    ck_assert_int_eq(result.code, 128 + SIGKILL);
    ck_assert(is_gone(compiler));
    command_clear(&result);
}
END_TEST

int main(void)
{
    static mgl_cuda_probe probe;
    mgl_cuda_get_probe(&probe);
    if (!probe.nvrtc) {
        printf("SKIPPED cli kernel: no kernel was compiled: %s\n", probe.nvrtc_reason);
        return 77;
    }
    Suite *suite = suite_create("cli kernel");
    TCase *tests = tcase_create("kernel");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, an_interrupt_ends_the_compiler);
    tcase_add_test(tests, a_compiler_that_is_killed_is_told);
    tcase_add_test(tests, the_compiler_dies_with_the_program);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

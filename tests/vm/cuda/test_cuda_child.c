/*
 * Tests of the child process that compiles kernels. The child is this test, started again, with a
 * fake compiler instead of NVRTC. The requested architecture selects its behavior.
 */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/scratch.h"
#include "tests/time_limit.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"

/* ---- a compiler ------------------------------------------------------------------------------ */

enum { LARGE = 20 << 20, ROOM = 1 << 16 };

static char made[LARGE]; /* its result: its input and more */
static size_t made_bytes;

static void add(const char *text)
{
    size_t length = strlen(text) + 1;
    if (made_bytes + length > ROOM) /* in the child there is no test to fail */
        abort();
    memcpy(made + made_bytes, text, length);
    made_bytes += length;
}

static int nvrtc_version(int *major, int *minor)
{
    *major = 13, *minor = 0;
    return 0;
}

static int nvrtc_create(void **program, const char *source, const char *name, int count,
                        const char *const *headers, const char *const *names)
{
    *program = made;
    made_bytes = 0;
    add(name);
    add(source);
    for (int i = 0; i < count; i++) {
        add(names[i]);
        add(headers[i]);
    }
    return 0;
}

static int count_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count - 3; /* . and .. and the folder itself */
}

/* Facts about the child process, for the test. */
static void add_surroundings(void)
{
    char text[200];
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    struct sigaction term, pipe;
    sigaction(SIGTERM, NULL, &term);
    sigaction(SIGPIPE, NULL, &pipe);
    snprintf(text, sizeof text, "descriptors %d, own group %d, TERM blocked %d, defaults %d %d",
             count_descriptors(), getpgrp() == getpid(), sigismember(&blocked, SIGTERM),
             term.sa_handler == SIG_DFL, pipe.sa_handler == SIG_DFL);
    add(text);
}

static int nvrtc_compile(void *program, int count, const char *const *options)
{
    (void)program;
    const char *arch = options[0] + strlen("-arch=");
    for (int i = 0; i < count; i++)
        add(options[i]);
    if (!strcmp(arch, "sleep")) {
        if (write(2, "s", 1) == 1)
            for (;;)
                pause();
    } else if (!strcmp(arch, "kill")) {
        raise(SIGKILL);
    } else if (!strcmp(arch, "exit")) {
        _exit(3);
    } else if (!strcmp(arch, "refuse")) {
        return 6;
    } else if (!strcmp(arch, "large")) {
        memset(made, 'x', LARGE);
        made_bytes = LARGE;
    } else if (!strcmp(arch, "print")) {
        printf("a library prints this\n");
        fflush(stdout);
    } else if (!strcmp(arch, "look")) {
        made_bytes = 0;
        add_surroundings();
    }
    return 0;
}

static int nvrtc_log_size(void *program, size_t *bytes)
{
    (void)program;
    *bytes = 14;
    return 0;
}

static int nvrtc_log(void *program, char *log)
{
    (void)program;
    memcpy(log, "error: planted", 14);
    return 0;
}

static int nvrtc_cubin_size(void *program, size_t *bytes)
{
    (void)program;
    *bytes = made_bytes;
    return 0;
}

static int nvrtc_cubin(void *program, char *cubin)
{
    (void)program;
    memcpy(cubin, made, made_bytes);
    return 0;
}

static int nvrtc_destroy(void **program)
{
    *program = NULL;
    return 0;
}

#define nvrtc_ptx_size nvrtc_cubin_size
#define nvrtc_ptx      nvrtc_cubin

static const mgl_nvrtc own_compiler = {
#define MGL_X(member, symbol, arguments) .member = nvrtc_##member,
    MGL_NVRTC_FUNCTIONS(MGL_X)
#undef MGL_X
        .path = "planted"};

/* ---- what the tests share -------------------------------------------------------------------- */

static mgl_cuda_image image;
static mgl_error err;
static atomic_int abort_flag;

static const mgl_cuda_source sources[] = {{"first.cu", (const unsigned char *)"#include \"a\"\n"},
                                          {"a", (const unsigned char *)""},
                                          {"b", (const unsigned char *)"\303\244\n\n"}};

/* Cancels the compilation at its first progress call. */
static void end_it(void *user, mgl_stage stage, uint64_t done, uint64_t total)
{
    (void)user, (void)done, (void)total;
    ck_assert_int_eq(stage, MGL_STAGE_KERNEL);
    atomic_store(&abort_flag, 1);
}

static mgl_status compile(const char *arch, bool ends)
{
    static const mgl_cuda_constant constants[] = {{"A", 1}, {"B", 4294967295u}};
    mgl_cuda_watch watch = {&abort_flag, ends ? end_it : NULL, NULL};
    atomic_store(&abort_flag, 0);
    memset(&err, 0, sizeof err);
    return mgl_cuda_compile_sources(sources, 3, arch, constants, 2, &watch, &image, &err);
}

static void no_child_is_left(void)
{
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

static void setup(void)
{
    mgl_cuda_compile_use_child("/proc/self/exe");
}

static void teardown(void)
{
    mgl_cuda_image_clear(&image);
    no_child_is_left();
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(a_child_makes_what_this_process_makes)
{
    ck_assert_msg(compile("sm_1", false) == MGL_OK, "%s", err.message);
    mgl_cuda_image of_child = image;
    mgl_cuda_compile_use_child(NULL);
    ck_assert_int_eq(compile("sm_1", false), MGL_OK);
    ck_assert_uint_eq(of_child.length, image.length);
    ck_assert_mem_eq(of_child.bytes, image.bytes, image.length + 1);
    ck_assert_str_eq(of_child.log, "error: planted");
    mgl_cuda_image_clear(&of_child);
}
END_TEST

START_TEST(a_large_result_comes_whole)
{
    ck_assert_msg(compile("large", false) == MGL_OK, "%s", err.message);
    ck_assert_uint_eq(image.length, LARGE);
    ck_assert_uint_eq(strspn(image.bytes, "x"), LARGE);
}
END_TEST

START_TEST(what_a_library_prints_is_not_in_the_answer)
{
    ck_assert_msg(compile("print", false) == MGL_OK, "%s", err.message);
    ck_assert_str_eq(image.bytes, "first.cu");
}
END_TEST

/* The child does not inherit descriptors opened without O_CLOEXEC either. */
START_TEST(a_child_has_only_what_it_needs)
{
    sigset_t term, before;
    int extra = open("/dev/null", O_RDONLY);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &before);
    void (*pipe)(int) = signal(SIGPIPE, SIG_IGN);
    mgl_status status = compile("look", false);
    signal(SIGPIPE, pipe);
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(extra);
    ck_assert_msg(status == MGL_OK, "%s", err.message);
    /* standard streams and the answer */
    ck_assert_str_eq(image.bytes, "descriptors 4, own group 1, TERM blocked 0, defaults 1 1");
}
END_TEST

START_TEST(the_compilers_own_error_is_told)
{
    ck_assert_int_eq(compile("refuse", false), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "NVRTC 13.0 cannot compile the kernel for refuse") &&
                      strstr(err.message, "error: planted"),
                  "%s", err.message);
    ck_assert(!image.died);
}
END_TEST

START_TEST(a_child_that_is_killed_is_told)
{
    ck_assert_int_eq(compile("kill", false), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "was ended by signal 9 (Killed)"), "%s", err.message);
    ck_assert(image.died);
    ck_assert_ptr_null(image.bytes);
}
END_TEST

START_TEST(a_child_that_gives_up_is_told)
{
    ck_assert_int_eq(compile("exit", false), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "ended with code 3"), "%s", err.message);
    ck_assert(image.died);
}
END_TEST

/* If the system reaps children automatically, the child's exit status is unknown. */
START_TEST(children_may_be_ignored)
{
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    mgl_status good = compile("sm_1", false);
    mgl_cuda_image_clear(&image);
    mgl_status bad = compile("exit", false);
    signal(SIGCHLD, before);
    ck_assert_int_eq(good, MGL_OK);
    ck_assert_int_eq(bad, MGL_DEVICE);
}
END_TEST

START_TEST(a_child_is_ended)
{
    double start = mgl_clock_s();
    ck_assert_int_eq(compile("sleep", true), MGL_INTERRUPTED);
    ck_assert_double_lt(mgl_clock_s() - start, time_limit(2));
    no_child_is_left();
}
END_TEST

/* If no child can be started, this process compiles. */
START_TEST(a_program_that_is_not_there_is_no_obstacle)
{
    mgl_cuda_compile_use_child("/nowhere/megalith");
    ck_assert_msg(compile("sm_1", false) == MGL_OK, "%s", err.message);
}
END_TEST

/* A separate process that starts an endless compilation, and reports it with a byte on `said`. */
static pid_t start_parent(int said)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(said, 2);
        compile("sleep", false);
        _exit(1);
    }
    return pid;
}

/* This process inherits the child, and reads its exit status. */
START_TEST(a_child_dies_with_its_parent)
{
    int ends[2], how = 0;
    char byte;
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t parent = start_parent(ends[1]);
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1); /* the child compiles */
    kill(parent, SIGKILL);
    ck_assert_int_eq(waitpid(parent, &how, 0), parent);
    ck_assert_int_gt(waitpid(-1, &how, 0), 0);
    ck_assert(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    close(ends[0]);
}
END_TEST

/* A copy of this program that deletes its own file before it compiles. */
START_TEST(the_program_may_be_deleted_meanwhile)
{
    char folder[] = "/tmp/megalith-child-XXXXXX", line[256];
    scratch_make(folder);
    snprintf(line, sizeof line, "cp /proc/%d/exe %s/copy && %s/copy deleted; rmdir %s", getpid(),
             folder, folder, folder);
    ck_assert_int_eq(system(line), 0);
}
END_TEST

START_TEST(a_worker_without_a_parent_does_nothing)
{
    ck_assert_int_eq(mgl_cuda_compile_worker("1"), 1);
}
END_TEST

static int compile_deleted(const char *self)
{
    mgl_cuda_compile_use_child("/proc/self/exe");
    return unlink(self) || compile("look", false) || !image.bytes || access(self, F_OK) == 0;
}

int main(int argc, char **argv)
{
    mgl_nvrtc_override(&own_compiler);
    if (argc == 3 && !strcmp(argv[1], MGL_CUDA_WORKER_FLAG))
        return mgl_cuda_compile_worker(argv[2]);
    if (argc == 2 && !strcmp(argv[1], "deleted"))
        return compile_deleted(argv[0]);
    Suite *suite = suite_create("cuda_child");
    TCase *tests = tcase_create("cuda_child");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_child_makes_what_this_process_makes);
    tcase_add_test(tests, a_large_result_comes_whole);
    tcase_add_test(tests, what_a_library_prints_is_not_in_the_answer);
    tcase_add_test(tests, a_child_has_only_what_it_needs);
    tcase_add_test(tests, the_compilers_own_error_is_told);
    tcase_add_test(tests, a_child_that_is_killed_is_told);
    tcase_add_test(tests, a_child_that_gives_up_is_told);
    tcase_add_test(tests, children_may_be_ignored);
    tcase_add_test(tests, a_child_is_ended);
    tcase_add_test(tests, a_program_that_is_not_there_is_no_obstacle);
    tcase_add_test(tests, a_child_dies_with_its_parent);
    tcase_add_test(tests, the_program_may_be_deleted_meanwhile);
    tcase_add_test(tests, a_worker_without_a_parent_does_nothing);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * Tests of a worker's sandbox. A child inside the sandbox tries each forbidden operation and must
 * fail. A child outside must succeed, because an attempt that always fails proves nothing.
 * Operations that this machine's kernel does not have are skipped.
 */
#include "autotune/runner/sandbox_parts.h"
#include "tests/autotune/runner/sandbox_attempts.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_THERE = 253, ABORTED = 254 };

static attempt_place place;
static mgl_sandbox has; /* the mechanisms of this machine */
static int listeners[2], ends[2];
static const char word[8] = "parents";

static void write_secret(void)
{
    FILE *file = fopen(place.secret, "w");
    ck_assert_ptr_nonnull(file);
    fputs("secret", file);
    fclose(file);
}

static void listen_at(int i, int family, struct sockaddr *address, socklen_t length)
{
    listeners[i] = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listeners[i], address, length), 0);
    ck_assert_int_eq(listen(listeners[i], 64), 0);
    getsockname(listeners[i], address, &length);
}

static void setup(void)
{
    struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    snprintf(place.folder, sizeof place.folder, "/tmp/megalith-sandbox-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(place.folder));
    snprintf(place.cache, sizeof place.cache, "%s/cache", place.folder);
    snprintf(place.secret, sizeof place.secret, "%s/secret", place.folder);
    snprintf(place.socket, sizeof place.socket, "%s/socket", place.folder);
    snprintf(local.sun_path, sizeof local.sun_path, "%s", place.socket);
    ck_assert_int_eq(mkdir(place.cache, 0700), 0);
    write_secret();
    listen_at(0, AF_INET, (struct sockaddr *)&tcp, sizeof tcp);
    listen_at(1, AF_UNIX, (struct sockaddr *)&local, sizeof local);
    place.port = ntohs(tcp.sin_port);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    place.pair = ends[0];
    place.word = word;
}

static void teardown(void)
{
    char line[100];
    for (int i = 0; i < 2; i++) {
        close(listeners[i]);
        close(ends[i]);
    }
    snprintf(line, sizeof line, "rm -r %s", place.folder);
    ck_assert_int_eq(system(line), 0);
}

/* ---- children -------------------------------------------------------------------------------- */

static void enter(void)
{
    mgl_sandbox is;
    const mgl_sandbox_options options = {.cache = place.cache};
    mgl_sandbox_enter(&options, &is);
    if (is.seccomp != has.seccomp || is.landlock != has.landlock)
        _exit(NOT_THERE);
}

static int end_of(pid_t pid)
{
    int how;
    ck_assert_int_eq(waitpid(pid, &how, 0), pid);
    return WIFEXITED(how) ? WEXITSTATUS(how) : WTERMSIG(how) == SIGABRT ? ABORTED : 255;
}

/* Runs a function in a child, in a sandbox if `confined`. Returns its result. */
static int try_in_child(attempt_fn *fn, bool confined)
{
    fflush(stdout);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid)
        return end_of(pid);
    if (confined)
        enter();
    _exit(fn(&place));
}

static bool is_held(attempt_part part)
{
    return part == BY_CALLS ? has.seccomp : has.landlock > 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(it_is_rejected)
{
    const attempt *a = &attempts[_i];
    if (!is_held(a->part))
        return; /* main has printed that it is skipped */
    int error = try_in_child(a->fn, true);
    ck_assert_msg(error == a->error, "%s: %s", a->name, error ? strerror(error) : "is possible");
}
END_TEST

START_TEST(it_is_possible_outside)
{
    const attempt *a = &attempts[_i];
    int error = a->possible ? try_in_child(a->fn, false) : 0;
    ck_assert_msg(error == 0, "%s: %s", a->name, strerror(error));
}
END_TEST

START_TEST(it_goes_on)
{
    int error = try_in_child(uses[_i].fn, true);
    ck_assert_msg(error == 0, "%s: %s", uses[_i].name, strerror(error));
}
END_TEST

static int stop_by_abort(const attempt_place *unused)
{
    (void)unused;
    abort();
}

START_TEST(an_abort_ends_it)
{
    ck_assert_int_eq(try_in_child(stop_by_abort, true), ABORTED);
}
END_TEST

/* A thread that exists before the sandbox is entered, like the threads of a driver. */
static atomic_int entered;

static void *try_a_socket(void *result)
{
    while (!atomic_load(&entered))
        sched_yield();
    *(int *)result = socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0;
    return NULL;
}

static int socket_of_older_thread(const attempt_place *unused)
{
    pthread_t thread;
    int result = 0;
    (void)unused;
    pthread_create(&thread, NULL, try_a_socket, &result);
    enter();
    atomic_store(&entered, 1);
    pthread_join(thread, NULL);
    return result;
}

START_TEST(threads_that_were_there_are_held_too)
{
    if (has.seccomp)
        ck_assert_int_eq(try_in_child(socket_of_older_thread, false), EPERM);
}
END_TEST

/* As in a worker, the compiler's library is opened before the sandbox is entered. It loads parts of
 * itself later. */
static int compile(const attempt_place *unused)
{
    static const mgl_cuda_source source = {
        "x.cu", (const unsigned char *)"__global__ void x(float *y) { *y += 1.0f; }\n"};
    const mgl_nvrtc *nvrtc;
    mgl_cuda_image image;
    mgl_error err = {0};
    (void)unused;
    if (mgl_nvrtc_open(&nvrtc, &err))
        return NOT_THERE;
    enter();
    mgl_status status = mgl_cuda_compile_sources(&source, 1, "sm_90a", NULL, 0, NULL, &image, &err);
    if (status)
        printf("%s: %s\n", err.where, err.message);
    fflush(stdout);
    return status ? EIO : image.length == 0;
}

START_TEST(a_kernel_is_compiled)
{
    int result = try_in_child(compile, false);
    if (result == NOT_THERE)
        printf("SKIPPED: compiling in the sandbox: NVRTC is not installed\n");
    else
        ck_assert_int_eq(result, 0);
}
END_TEST

static int enter_twice(const attempt_place *p)
{
    (void)p;
    enter();
    return 0;
}

START_TEST(it_can_be_entered_again)
{
    ck_assert_int_eq(try_in_child(enter_twice, true), 0);
}
END_TEST

/* Installs a seccomp filter like that of a container, which denies the system calls of both
 * mechanisms. */
static int refuse_both(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static int enter_in_container(const attempt_place *p)
{
    static const char both[] =
        "no seccomp: the system denies it, as in some containers; no Landlock: ";
    mgl_sandbox is;
    if (refuse_both())
        return NOT_THERE;
    mgl_sandbox_enter(&(mgl_sandbox_options){.cache = p->cache}, &is);
    return is.seccomp || is.landlock || strncmp(is.missing, both, strlen(both)) != 0;
}

START_TEST(a_container_that_rejects_is_told)
{
    int result = try_in_child(enter_in_container, false);
    if (result == NOT_THERE)
        printf("SKIPPED: container without seccomp\n");
    else
        ck_assert_int_eq(result, 0);
}
END_TEST

int main(void)
{
    mgl_sandbox_look(&has);
    if (has.missing[0])
        printf("SKIPPED: operations that this machine cannot deny: %s\n", has.missing);
    Suite *suite = suite_create("sandbox");
    TCase *tests = tcase_create("sandbox");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, it_is_rejected, 0, attempt_count);
    tcase_add_loop_test(tests, it_is_possible_outside, 0, attempt_count);
    tcase_add_loop_test(tests, it_goes_on, 0, use_count);
    tcase_add_test(tests, an_abort_ends_it);
    tcase_add_test(tests, threads_that_were_there_are_held_too);
    tcase_add_test(tests, a_kernel_is_compiled);
    tcase_add_test(tests, it_can_be_entered_again);
    tcase_add_test(tests, a_container_that_rejects_is_told);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_set_fork_status(suite_runner, CK_NOFORK);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

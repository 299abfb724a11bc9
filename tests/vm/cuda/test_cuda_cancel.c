/*
 * Tests of cancelling the opening of a CUDA machine, with the fake driver and compiler: at any call
 * of the driver, while weights are copied, and while the kernel is compiled. Opening returns soon
 * and leaks nothing. A compilation that cannot be stopped continues in the background.
 */
#include "tests/vm/cuda/cuda_support.h"
#include "tests/vm/cuda/fake_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "tests/scratch.h"
#include "tests/time_limit.h"
#include "vm/cuda/compile.h"
#include "vm/weights.h"

static mgl_graph *graph;
static mgl_program *program;
static char folder[] = "/tmp/megalith-cancel-XXXXXX";

/* Progress calls received, and the reaction. */
static struct {
    bool ends;       /* cancel at the first progress call of the kernel */
    int releases_at; /* release the compiler at this progress call of the kernel; 0: it was not
                        held */
    int calls[3], last[3]; /* per stage: calls; calls with done == total */
    uint64_t done[3];
} heard;

static void hear(void *user, mgl_stage stage, uint64_t done, uint64_t total)
{
    (void)user;
    ck_assert_uint_ge(done, heard.done[stage]);
    ck_assert(done <= total || (stage == MGL_STAGE_KERNEL && total == 0));
    heard.done[stage] = done;
    heard.last[stage] += done == total;
    if (++heard.calls[stage] == heard.releases_at && stage == MGL_STAGE_KERNEL)
        fake.hold = false;
    if (heard.ends && stage == MGL_STAGE_KERNEL)
        fake.abort = 1;
}

static void setup(void)
{
    reset_fake();
    memset(&heard, 0, sizeof heard);
    nvrtc_compiles = 0;
    scratch_make(folder);
    setenv("MEGALITH_CACHE", folder, 1);
    mgl_cu_override(&fake_cu);
    mgl_nvrtc_override(&fake_nvrtc);
    graph = random_graph(&tiny_model, 64, true, MGL_F32, 1);
    program = program_for(graph, "sm_90a:4", &(device_options){.dtype = MGL_BF16, .capacity = 32});
}

static void teardown(void)
{
    mgl_cuda_await_compilations();
    mgl_program_free(program);
    mgl_graph_free(graph);
    mgl_cu_override(NULL);
    mgl_nvrtc_override(NULL);
    scratch_remove(folder);
}

static mgl_weights *given; /* weights instead of the graph's, or NULL */

static mgl_status open_vm(mgl_vm **vm, mgl_error *err)
{
    mgl_vm_options options = {.kind = MGL_VM_CUDA,
                              .unchecked = true,
                              .weights = given,
                              .abort = &fake.abort,
                              .on_stage = hear};
    *vm = NULL;
    return mgl_vm_open(program, graph, &options, vm, err);
}

/* Opens and closes a machine, and waits for abandoned compilations. */
static mgl_status open_and_close(void)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_status status = open_vm(&vm, &err);
    if (status == MGL_INTERRUPTED)
        ck_assert_str_eq(err.message, "interrupted");
    else
        ok(status, err);
    mgl_vm_close(vm);
    mgl_cuda_await_compilations();
    nothing_is_left();
    return status;
}

/* Only loading the kernel, the last step, cannot be cancelled any more. */
START_TEST(opening_ends_at_any_call_of_the_driver)
{
    int interrupted = 0, late = 0;
    setenv("MEGALITH_CACHE", "/dev/null/none", 1); /* an unusable cache folder, so that the compiler
                                                      is always asked */
    for (int n = 1;; n++) {
        reset_fake();
        memset(&heard, 0, sizeof heard);
        fake.abort_at = n;
        mgl_status status = open_and_close();
        if (fake.calls < n) {
            ck_assert_int_eq(status, MGL_OK);
            break;
        }
        interrupted += status == MGL_INTERRUPTED;
        late += status == MGL_OK;
    }
    ck_assert_int_gt(interrupted, 20);
    ck_assert_int_lt(late, 10);
}
END_TEST

START_TEST(what_was_asked_before_is_not_lost)
{
    fake.abort = 1;
    ck_assert_int_eq(open_and_close(), MGL_INTERRUPTED);
    ck_assert_int_eq(fake.calls, 0); /* the driver was not even started */
}
END_TEST

static mgl_status (*make_piece)(const mgl_weights *weights, size_t piece, void *to, mgl_error *err);

static mgl_status make_last(const mgl_weights *weights, size_t piece, void *to, mgl_error *err)
{
    fake.abort = 1;
    return make_piece(weights, piece, to, err);
}

/* Each thread completes its current piece. */
START_TEST(no_more_weights_are_sent)
{
    mgl_error err;
    ok(mgl_weights_pack(program, graph, &given, &err), err);
    make_piece = given->make;
    given->make = make_last;
    ck_assert_int_eq(open_and_close(), MGL_INTERRUPTED);
    ck_assert_int_le(fake.copies, mgl_parallel_threads());
    ck_assert_uint_gt(given->count, MGL_MAX_THREADS);
    mgl_weights_close(given);
    given = NULL;
}
END_TEST

/* The fake NVRTC waits for the test: opening does not wait for it. */
START_TEST(nvrtc_is_not_waited_for)
{
    mgl_error err;
    mgl_vm *vm;
    heard.ends = true;
    fake.hold = true;
    double start = mgl_clock_s();
    ck_assert_int_eq(open_vm(&vm, &err), MGL_INTERRUPTED);
    ck_assert_double_lt(mgl_clock_s() - start, time_limit(2));
    nothing_is_left();
    fake.hold = false;
}
END_TEST

/* An abandoned compilation completes on its thread, and its result is used later. */
START_TEST(what_was_left_is_kept)
{
    mgl_error err;
    mgl_vm *vm;
    heard.ends = true;
    fake.hold = true;
    ck_assert_int_eq(open_vm(&vm, &err), MGL_INTERRUPTED);
    fake.hold = false;
    mgl_cuda_await_compilations();
    memset(&heard, 0, sizeof heard);
    fake.abort = 0;
    ck_assert_int_eq(open_and_close(), MGL_OK);
    ck_assert_int_eq(nvrtc_compiles, 1);
}
END_TEST

/* The compiler's total is unknown; its end is reported once. */
START_TEST(waiting_for_the_compiler_is_told)
{
    heard.releases_at = 2;
    fake.hold = true;
    ck_assert_int_eq(open_and_close(), MGL_OK);
    ck_assert_int_ge(heard.calls[MGL_STAGE_KERNEL], 3);
    ck_assert_int_eq(heard.last[MGL_STAGE_KERNEL], 1);
}
END_TEST

START_TEST(the_end_of_the_weights_is_told_once)
{
    ck_assert_int_eq(open_and_close(), MGL_OK);
    ck_assert_int_eq(heard.last[MGL_STAGE_WEIGHTS], 1);
    ck_assert_int_eq(heard.calls[MGL_STAGE_PROMPT], 0);
}
END_TEST

static void *release_later(void *unused)
{
    usleep(300000);
    fake.hold = false;
    return unused;
}

/* NVRTC crashes if its static data is destroyed while it runs. */
START_TEST(an_exit_waits_for_what_was_left)
{
    int how;
    fflush(NULL);
    double start = mgl_clock_s();
    pid_t pid = fork();
    if (pid == 0) {
        mgl_error err;
        mgl_vm *vm;
        pthread_t thread;
        heard.ends = true;
        fake.hold = true;
        mgl_status status = open_vm(&vm, &err);
        if (status == MGL_INTERRUPTED && !pthread_create(&thread, NULL, release_later, NULL) &&
            !pthread_detach(thread))
            exit(0);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(pid, &how, 0), pid);
    ck_assert(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    ck_assert_double_ge(mgl_clock_s() - start, 0.3);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cuda_cancel");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, opening_ends_at_any_call_of_the_driver);
    tcase_add_test(tests, what_was_asked_before_is_not_lost);
    tcase_add_test(tests, no_more_weights_are_sent);
    tcase_add_test(tests, nvrtc_is_not_waited_for);
    tcase_add_test(tests, what_was_left_is_kept);
    tcase_add_test(tests, waiting_for_the_compiler_is_told);
    tcase_add_test(tests, the_end_of_the_weights_is_told_once);
    tcase_add_test(tests, an_exit_waits_for_what_was_left);
    return fixture_main("cuda_cancel", tests);
}

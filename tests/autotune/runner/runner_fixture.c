/* Implements the fixture of the runner's tests. See runner_fixture.h. */
#include "tests/autotune/runner/runner_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const mgl_config config = {
    .geometry = {64, 2, 4, 2, 16, 96, 75, 1e-5f},
    .max_positions = 128,
    .tied = true,
    .rope = {.type = MGL_ROPE_DEFAULT, .theta = 10000, .factor = 1, .attention_factor = 1},
    .extras = 0};
const mgl_workloads three = {.list = {{1, 0}, {1, 20}, {2, 5}}, .count = 3};

mgl_subject subject;
mgl_candidate standard, other;
mgl_runner_options options;
mgl_runner *runner;
mgl_runner_check found;
mgl_error err;
atomic_int abort_flag;
unsigned char nonce[MGL_SHA256_BYTES];

static void lower(const mgl_schedule_config *knobs, mgl_candidate *out)
{
    *out = (mgl_candidate){.program_of = {0, 0, 1}, .program_count = 2};
    for (int p = 0; p < out->program_count; p++) {
        mgl_lower_options how = {
            .dtype = subject.dtype, .capacity = subject.capacity, .sequences = p + 1};
        ok(mgl_schedule_lower(subject.graph, &subject.target, &how, knobs, &out->programs[p],
                              &err));
    }
}

void release(mgl_candidate *candidate)
{
    for (int p = 0; p < candidate->program_count; p++)
        mgl_program_free(candidate->programs[p]);
}

static void make_subject(void)
{
    mgl_graph *graph;
    ok(mgl_synthetic_open(&config, 1, &graph, &err));
    subject = (mgl_subject){.config = config,
                            .graph = graph,
                            .target = {.arch = "cpu", .queues = 3},
                            .dtype = MGL_F32,
                            .capacity = 64,
                            .workloads = three};
    mgl_schedule_config_default(&subject.start);
    mgl_schedule_config knobs = subject.start;
    knobs.splits = 2;
    lower(&subject.start, &standard);
    lower(&knobs, &other);
}

static void clear_subject(void)
{
    release(&standard);
    release(&other);
    mgl_graph_free((mgl_graph *)subject.graph);
}

static void setup(void)
{
    make_subject();
    atomic_store(&abort_flag, 0);
    memset(&err, 0, sizeof err);
    for (int i = 0; i < MGL_SHA256_BYTES; i++)
        nonce[i] = (unsigned char)(7 * i + 1);
    options = (mgl_runner_options){.subject = &subject,
                                   .device = "cpu",
                                   .program = "/proc/self/exe",
                                   .kernels = "/dev/null/nowhere/kernels",
                                   .abort = &abort_flag};
}

static void no_child_is_left(void)
{
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

static void teardown(void)
{
    if (runner)
        runner->close(runner);
    runner = NULL;
    clear_subject();
    no_child_is_left();
}

void begin(const char *fault)
{
    options.fault = fault;
    ok(mgl_runner_device_open(&options, &runner, &err));
    ok(runner->start(runner, &standard, &err));
}

mgl_outcome check(const mgl_candidate *candidate)
{
    nonce[0]++;
    ok(runner->check(runner, candidate, nonce, &found, &err));
    return found.verdict.outcome;
}

mgl_runner_state *state(void)
{
    return (mgl_runner_state *)runner;
}

int runner_main(int argc, char **argv, const char *name, TCase *tests)
{
    if (argc == 3 && !strcmp(argv[1], MGL_WORKER_FLAG))
        return mgl_worker_main(argv[2]);
    Suite *suite = suite_create(name);
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_set_fork_status(suite_runner, CK_NOFORK);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * Tests of the runner on a GPU, with a two-layer model of llama-1b's shape: candidates with the
 * same and with another kernel, pairs, the floor, the baseline, a real checkpoint, failing workers,
 * and kernels compiled ahead. Speeds are printed, not tested. MGL_TEST_PART=K/N runs a part of the
 * tests (tests/parts.h).
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/runner/runner_state.h"
#include "base/clock.h"
#include "eval/bench.h"
#include "tests/parts.h"
#include "tests/scratch.h"
#include "vm/cuda/cuda.h"

#define MODEL "tales-5m"

#define ok(call) ck_assert_msg((call) == MGL_OK, "%s: %s", err.where, err.message)

enum { SKIP = 77, CAPACITY = 512, PAIRS = 8 };
enum { SHORT, LONG, TWO, WORKLOADS };

static const mgl_workloads workloads = {.list = {{1, 0}, {1, 300}, {2, 0}}, .count = WORKLOADS};
static mgl_config config;
static mgl_target target;
static mgl_subject subject;
static mgl_graph *graph;
static mgl_candidate standard, same_kernel, other_kernel;
static mgl_runner_options options;
static mgl_runner *runner;
static mgl_runner_check found;
static mgl_error err;
static unsigned char nonce[MGL_SHA256_BYTES];

static void lower(const mgl_schedule_config *knobs, mgl_candidate *out)
{
    *out = (mgl_candidate){.program_of = {0, 0, 1}, .program_count = 2};
    for (int p = 0; p < out->program_count; p++) {
        mgl_lower_options how = {
            .dtype = subject.dtype, .capacity = subject.capacity, .sequences = p + 1};
        ok(mgl_schedule_lower(graph, &target, &how, knobs, &out->programs[p], &err));
    }
}

static void release(mgl_candidate *candidate)
{
    for (int p = 0; p < candidate->program_count; p++)
        mgl_program_free(candidate->programs[p]);
}

static void setup(void)
{
    ok(mgl_synthetic_open(&config, 1, &graph, &err));
    subject = (mgl_subject){.config = config,
                            .graph = graph,
                            .target = target,
                            .dtype = MGL_BF16,
                            .capacity = CAPACITY,
                            .workloads = workloads};
    mgl_schedule_config_default(&subject.start);
    mgl_schedule_config knobs = subject.start;
    lower(&knobs, &standard);
    knobs.queues[MGL_STEP_HEAD].count = target.queues / 2;
    lower(&knobs, &same_kernel);
    knobs = subject.start;
    knobs.page_bytes = 8192;
    lower(&knobs, &other_kernel);
    options = (mgl_runner_options){.subject = &subject,
                                   .device = "cuda",
                                   .program = "/proc/self/exe",
                                   .kernels = MGL_BINARY_DIR "/runner-kernels"};
}

static void teardown(void)
{
    if (runner)
        runner->close(runner);
    runner = NULL;
    release(&standard);
    release(&same_kernel);
    release(&other_kernel);
    mgl_graph_free(graph);
}

static void begin(const char *fault)
{
    double start = mgl_clock_s();
    options.fault = fault;
    ok(mgl_runner_device_open(&options, &runner, &err));
    ok(runner->start(runner, &standard, &err));
    printf("start: %.2f s\n", mgl_clock_s() - start);
}

static mgl_outcome check(const mgl_candidate *candidate)
{
    nonce[0]++;
    ok(runner->check(runner, candidate, nonce, &found, &err));
    printf("check: %s in %.2f s, compiler %.2f s, same kernel %d, errors %.2e %.2e %.2e: %s\n",
           mgl_outcome_name(found.verdict.outcome), found.seconds, found.compile_s,
           found.same_kernel, found.errors[SHORT], found.errors[LONG], found.errors[TWO],
           found.verdict.diagnostic);
    return found.verdict.outcome;
}

static void measure(int workload, bool control)
{
    mgl_pair pairs[PAIRS];
    mgl_trial_verdict verdict;
    double start = mgl_clock_s();
    ok(runner->pair(runner, workload, PAIRS, 11, control, pairs, &verdict, &err));
    ck_assert_msg(verdict.outcome == MGL_OUTCOME_OK, "%s", verdict.diagnostic);
    for (int i = 0; i < PAIRS; i++) {
        ck_assert_double_gt(pairs[i].incumbent_us, 0);
        ck_assert_double_gt(pairs[i].candidate_us, 0);
    }
    printf("pairs: %.1f and %.1f us, %u and %u MHz, dropped %d, %.2f s\n", pairs[0].incumbent_us,
           pairs[0].candidate_us, pairs[0].sm_mhz[0], pairs[0].sm_mhz[1], pairs[0].dropped,
           mgl_clock_s() - start);
}

START_TEST(candidates_are_checked_and_measured)
{
    begin(NULL);
    ck_assert(runner->measures);
    ck_assert_msg(check(&same_kernel) == MGL_OUTCOME_OK, "%s", found.verdict.diagnostic);
    ck_assert(found.same_kernel);
    for (int w = 0; w < WORKLOADS; w++) {
        ck_assert_double_le(found.errors[w], MGL_BENCH_ERROR);
        ck_assert_double_ge(found.defaults[w], 0);
        measure(w, false);
    }
    measure(SHORT, true);
    ok(runner->promote(runner, &err));
    ck_assert_msg(check(&other_kernel) == MGL_OUTCOME_OK, "%s", found.verdict.diagnostic);
    ck_assert(!found.same_kernel);
    measure(TWO, false);
}
END_TEST

START_TEST(a_floor_is_measured)
{
    double us[2];
    begin(NULL);
    check(&same_kernel);
    ok(runner->floor(runner, SHORT, false, &us[0], &err));
    ok(runner->floor(runner, SHORT, true, &us[1], &err));
    printf("floor: %.1f us, then %.1f us\n", us[0], us[1]);
    ck_assert_double_gt(us[1], 0);
    ck_assert_double_le(us[1], us[0]); /* not faster than the fastest stream */
    measure(SHORT, false);
}
END_TEST

/* Without cuBLAS, the test prints that. */
START_TEST(the_baseline_is_timed)
{
    double us;
    begin(NULL);
    ck_assert_int_eq(check(&same_kernel), MGL_OUTCOME_OK);
    for (int w = 0; w < WORKLOADS; w++) {
        mgl_status status = runner->baseline(runner, w, &us, &err);
        if (status == MGL_DEVICE && strstr(err.message, "cuBLAS")) {
            printf("SKIPPED: no baseline: %s\n", err.message);
            return;
        }
        ok(status);
        ck_assert_double_gt(us, 0);
        printf("baseline: %.1f us\n", us);
        measure(w, false); /* the runner works after it */
    }
}
END_TEST

/* ---- other models ---------------------------------------------------------------------------- */

/* Replaces the model by one of `subject.config`. */
static void take_config(void)
{
    mgl_schedule_config knobs;
    release(&standard);
    release(&same_kernel);
    release(&other_kernel);
    mgl_graph_free(graph);
    ok(mgl_synthetic_open(&subject.config, 1, &graph, &err));
    subject.graph = graph;
    lower(&subject.start, &standard);
    knobs = subject.start;
    knobs.queues[MGL_STEP_HEAD].count = target.queues / 2;
    lower(&knobs, &same_kernel);
    knobs = subject.start;
    knobs.page_bytes = 8192;
    lower(&knobs, &other_kernel);
}

/* A shape with biases, and one with norms of q and k. */
START_TEST(families_are_checked_and_measured)
{
    static const char *const shapes[] = {"qwen2.5-0.5b", "qwen3-0.6b"};
    ok(mgl_synthetic_find_shape(shapes[_i], &subject.config, &err));
    ck_assert_uint_ne(subject.config.extras, MGL_EXTRA_NONE);
    subject.config.geometry.layers = 2;
    take_config();
    begin(NULL);
    const mgl_candidate *candidates[] = {&same_kernel, &other_kernel};
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(check(candidates[i]) == MGL_OUTCOME_OK, "%s", found.verdict.diagnostic);
        for (int w = 0; w < WORKLOADS; w++) {
            ck_assert_double_le(found.errors[w], MGL_BENCH_ERROR);
            measure(w, false);
        }
    }
}
END_TEST

/* ---- a real checkpoint ----------------------------------------------------------------------- */

static char checkpoint[512]; /* path of the model being tested */

/* Replaces the shape by a small checkpoint from $MGL_TEST_MODELS, or else from the source tree. */
static void take_real_model(const char *name)
{
    const char *folder = getenv("MGL_TEST_MODELS");
    snprintf(checkpoint, sizeof checkpoint, "%s/%s",
             folder ? folder : MGL_SOURCE_DIR "/tests/models", name);
    ok(mgl_synthetic_read_config(checkpoint, &subject.config, &err));
    subject.capacity = 256;
    subject.workloads = (mgl_workloads){.list = {{1, 0}, {1, 100}, {2, 0}}, .count = WORKLOADS};
    take_config();
}

static mgl_outcome decode(const mgl_candidate *candidate, int program)
{
    static mgl_real_texts texts;
    static mgl_real_numbers numbers;
    mgl_real_facts facts = {0};
    mgl_trial_verdict verdict = {.outcome = MGL_OUTCOME_OK};
    double start = mgl_clock_s();
    int sequences = candidate->programs[program]->limits.sequences;
    ok(mgl_real_open(checkpoint, &subject, &texts, &err));
    ok(runner->decode(runner, &texts, program, sequences, &numbers, &verdict, &err));
    if (verdict.outcome == MGL_OUTCOME_OK)
        mgl_real_compare(&texts, &numbers, sequences, false, &facts, &verdict);
    printf("checkpoint: %s in %.2f s, %d sequences, %d of %d part, %.5f and %.5f nats: %s\n",
           mgl_outcome_name(verdict.outcome), mgl_clock_s() - start, sequences, facts.parted,
           facts.texts, facts.nll, facts.nll_default, verdict.diagnostic);
    return verdict.outcome;
}

/* Trained, with biases, and with norms of q and k. */
START_TEST(both_run_on_a_real_checkpoint)
{
    static const char *const models[] = {MODEL, "qwen2", "qwen3"};
    take_real_model(models[_i]);
    begin(NULL);
    const mgl_candidate *candidates[] = {&same_kernel, &other_kernel};
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(check(candidates[i]) == MGL_OUTCOME_OK, "%s", found.verdict.diagnostic);
        for (int p = 0; p < candidates[i]->program_count; p++)
            ck_assert_int_eq(decode(candidates[i], p), MGL_OUTCOME_OK);
    }
    measure(SHORT, false);
}
END_TEST

START_TEST(what_goes_wrong_on_it_is_the_verdict)
{
    static const struct {
        const char *fault;
        mgl_outcome outcome;
    } faults[] = {{"real:wrong_token", MGL_OUTCOME_MODEL_MISMATCH},
                  {"real:wrong_logits", MGL_OUTCOME_MODEL_MISMATCH},
                  {"real:hang", MGL_OUTCOME_HANG}};
    options.limit_s = 3;
    take_real_model(MODEL);
    begin(faults[_i].fault);
    ck_assert_int_eq(check(&same_kernel), MGL_OUTCOME_OK);
    ck_assert_int_eq(decode(&same_kernel, 0), faults[_i].outcome);
    ck_assert_int_eq(decode(&same_kernel, 0), MGL_OUTCOME_OK);
}
END_TEST

START_TEST(a_worker_that_comes_to_grief_is_replaced)
{
    static const struct {
        const char *fault;
        mgl_outcome outcome;
    } faults[] = {{"crash", MGL_OUTCOME_ILLEGAL_ADDRESS}, {"hang", MGL_OUTCOME_HANG}};
    options.limit_s = 15;
    begin(faults[_i].fault);
    ck_assert_int_eq(check(&same_kernel), faults[_i].outcome);
    ck_assert_int_eq(check(&same_kernel), MGL_OUTCOME_OK);
}
END_TEST

START_TEST(kernels_are_compiled_ahead)
{
    begin(NULL);
    runner->prepare(runner, &other_kernel);
    ck_assert_int_eq(check(&same_kernel), MGL_OUTCOME_OK);
    ck_assert_msg(check(&other_kernel) == MGL_OUTCOME_OK, "%s", found.verdict.diagnostic);
}
END_TEST

/* Number of processes on the device that are not the runner's, as the executor counts them while a
 * referee runs; -1: unknown. */
static int count_other_processes(bool no_sandbox)
{
    mgl_answer answer;
    mgl_paired_bench_clocks clocks;
    const mgl_question question = {.kind = MGL_REQUEST_LOOK, .limit_s = 10};
    options.no_sandbox = no_sandbox;
    begin(NULL);
    ck_assert_int_eq(check(&same_kernel), MGL_OUTCOME_OK);
    ok(mgl_runner_ask((mgl_runner_state *)runner, &question, sizeof clocks, &answer, &err));
    ck_assert_int_eq(answer.error.code, MGL_OK);
    memcpy(&clocks, answer.bytes, sizeof clocks);
    mgl_answer_clear(&answer);
    runner->close(runner);
    runner = NULL;
    return clocks.processes;
}

/* Other tests may start or end on the device between two counts, so the count inside the sandbox is
 * compared with the counts before and after it, several times if they differ. */
START_TEST(the_sandbox_hides_nothing_of_the_device)
{
    enum { ATTEMPTS = 10 };
    int before = count_other_processes(true);
    for (int i = 0; i < ATTEMPTS; i++) {
        int within = count_other_processes(false), after = count_other_processes(true);
        printf("other processes: %d and %d without the sandbox, %d in it\n", before, after, within);
        if (before == within && within == after)
            return;
        before = after;
    }
    ck_abort_msg("the counts inside and outside the sandbox are never the same");
}
END_TEST

/* Inside the sandbox, the driver starts no process and opens no new kind of file, even if the
 * kernel is not in a cache. */
START_TEST(a_kernel_is_compiled_in_the_sandbox)
{
    char folder[] = "/tmp/megalith-runner-XXXXXX", line[100];
    mgl_runner_device device;
    scratch_make(folder);
    options.kernels = folder;
    begin(NULL);
    ok(runner->get_device(runner, &device, &err));
    printf("sandbox: %s\n", device.sandbox[0] ? device.sandbox : "whole");
    ck_assert_msg(check(&other_kernel) == MGL_OUTCOME_OK, "%s", found.verdict.diagnostic);
    ck_assert(!found.same_kernel);
    measure(SHORT, false);
    snprintf(line, sizeof line, "ls %s/*.kernel >/dev/null && rm -r %s", folder, folder);
    ck_assert_int_eq(system(line), 0);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], MGL_WORKER_FLAG))
        return mgl_worker_main(argv[2]);
    if (argc == 3 && !strcmp(argv[1], MGL_CUDA_WORKER_FLAG))
        return mgl_cuda_compile_worker(argv[2]);
    if (mgl_cuda_live_target(0, &target, &err)) {
        printf("SKIPPED: the runner's test needs a GPU: %s\n", err.message);
        return SKIP;
    }
    if (mgl_synthetic_find_shape("llama-1b", &config, &err))
        return EXIT_FAILURE;
    config.geometry.layers = 2;
    config.max_positions = 2048;
    setvbuf(stdout, NULL, _IONBF, 0);
    Suite *suite = suite_create("runner_gpu");
    TCase *tests = tcase_create("runner_gpu");
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, setup, teardown);
    add_cases(tests, candidates_are_checked_and_measured, 1);
    add_cases(tests, a_floor_is_measured, 1);
    add_cases(tests, the_baseline_is_timed, 1);
    add_cases(tests, families_are_checked_and_measured, 2);
    add_cases(tests, both_run_on_a_real_checkpoint, 3);
    add_cases(tests, what_goes_wrong_on_it_is_the_verdict, 3);
    add_cases(tests, a_worker_that_comes_to_grief_is_replaced, 2);
    add_cases(tests, kernels_are_compiled_ahead, 1);
    add_cases(tests, the_sandbox_hides_nothing_of_the_device, 1);
    add_cases(tests, a_kernel_is_compiled_in_the_sandbox, 1);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_set_fork_status(suite_runner, CK_NOFORK);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

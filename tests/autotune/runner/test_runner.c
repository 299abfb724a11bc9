/*
 * Tests of the runner on the CPU. Real workers, which are this test started again, execute real
 * programs of a small model. Options of the runner plant faults in workers.
 */
#include "tests/autotune/runner/runner_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "tests/time_limit.h"

/* ---- checking -------------------------------------------------------------------------------- */

START_TEST(a_correct_candidate_passes)
{
    begin(NULL);
    ck_assert_msg(check(&other) == MGL_OUTCOME_OK, "%s", found.verdict.diagnostic);
    for (int w = 0; w < three.count; w++) {
        ck_assert_double_ge(found.errors[w], 0);
        ck_assert_double_lt(found.errors[w], 1e-4);
        ck_assert_double_lt(found.defaults[w], 1e-4);
        ck_assert_double_ge(found.defaults[w], 0);
    }
    ck_assert_double_eq(found.errors[three.count], -1);
    ck_assert_double_gt(found.seconds, 0);
}
END_TEST

START_TEST(a_cpu_has_no_baseline)
{
    double us = 1;
    begin(NULL);
    ck_assert_int_eq(runner->baseline(runner, ONE_STEP, &us, &err), MGL_DEVICE);
    ck_assert_double_eq(us, 0);
    ck_assert_ptr_nonnull(strstr(err.message, "cuBLAS"));
    ck_assert_msg(check(&other) == MGL_OUTCOME_OK, "%s", found.verdict.diagnostic);
}
END_TEST

START_TEST(the_device_is_described)
{
    mgl_runner_device device;
    begin(NULL);
    ok(runner->get_device(runner, &device, &err));
    ck_assert_str_eq(device.name, "cpu");
    ck_assert_str_eq(device.target.arch, "cpu");
    ck_assert_uint_gt(device.memory_free, 0);
    ck_assert(runner->executes);
    ck_assert(!runner->measures);
}
END_TEST

/* A program that the worker's own validator rejects is REJECTED. */
START_TEST(the_workers_validator_has_a_say)
{
    mgl_candidate broken = {.program_count = 1};
    begin(NULL);
    mgl_program *program;
    ok(mgl_schedule_parse(state()->standard.texts[1], state()->standard.lengths[1], "text",
                          &program, &err));
    program->waits[program->wait_count - 1].threshold--;
    broken.programs[0] = program;
    ck_assert_int_eq(check(&broken), MGL_OUTCOME_REJECTED);
    ck_assert_msg(strstr(found.verdict.diagnostic, "MG"), "%s", found.verdict.diagnostic);
    release(&broken);
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
}
END_TEST

static const struct {
    const char *fault, *says;
    mgl_outcome outcome;
} faults[] = {
    {"crash", "run: the worker was ended by signal 11", MGL_OUTCOME_ILLEGAL_ADDRESS},
    {"garbage", "run: the worker answered with no reply", MGL_OUTCOME_LAUNCH},
    {"wrong_logits", "a constant factor of 1.5", MGL_OUTCOME_MISMATCH},
    {"wrong_token", "sequence 0, step 0: the f32 logit of token", MGL_OUTCOME_SEMANTIC},
    {"no_token", "sequence 0, step 0: token 75 is none of the 75", MGL_OUTCOME_SEMANTIC},
    {"nan", "not a number, first logit 37", MGL_OUTCOME_NONFINITE},
    {"second_differs", "differ in logits, first in number 0", MGL_OUTCOME_NONDETERMINISTIC},
    {"poison", "left unwritten, first logit 37", MGL_OUTCOME_UNWRITTEN},
    {"canary", "x: written outside of every buffer", MGL_OUTCOME_OOB_WRITE},
    {"watchdog", "the watchdog stopped the kernel", MGL_OUTCOME_HANG},
    {"address", "CUDA_ERROR_ILLEGAL_ADDRESS", MGL_OUTCOME_ILLEGAL_ADDRESS},
    {"slow", "", MGL_OUTCOME_OK},
};
enum { FAULTS = sizeof faults / sizeof *faults };

START_TEST(a_fault_is_the_verdict_and_the_next_check_passes)
{
    begin(faults[_i].fault);
    mgl_outcome outcome = check(&other);
    ck_assert_str_eq(mgl_outcome_name(outcome), mgl_outcome_name(faults[_i].outcome));
    ck_assert_msg(strstr(found.verdict.diagnostic, faults[_i].says), "%s",
                  found.verdict.diagnostic);
    ck_assert_msg(check(&other) == MGL_OUTCOME_OK, "%s", found.verdict.diagnostic);
}
END_TEST

START_TEST(a_hang_is_ended)
{
    char wanted[64];
    options.limit_s = time_limit(2);
    snprintf(wanted, sizeof wanted, "run: did not end within %g s", options.limit_s);
    begin("hang");
    ck_assert_int_eq(check(&other), MGL_OUTCOME_HANG);
    ck_assert_msg(strstr(found.verdict.diagnostic, wanted), "%s", found.verdict.diagnostic);
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
}
END_TEST

START_TEST(memory_is_limited)
{
    options.limit_bytes = 512 << 20;
    begin("memory");
    ck_assert_int_eq(check(&other), MGL_OUTCOME_VM_RESOURCES);
    ck_assert_msg(strstr(found.verdict.diagnostic, "more than the 536870912 bytes"), "%s",
                  found.verdict.diagnostic);
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
}
END_TEST

START_TEST(unknown_fault_is_rejected)
{
    options.fault = "typo";
    ck_assert_int_eq(mgl_runner_device_open(&options, &runner, &err), MGL_USAGE);
}
END_TEST

/* The death of workers between two trials is no candidate's fault. */
START_TEST(workers_that_die_are_replaced)
{
    begin(NULL);
    kill(mgl_process_id(state()->executor), SIGKILL);
    kill(mgl_process_id(state()->referee), SIGKILL);
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
}
END_TEST

static const char hanging[] = "hanging";
static const double patience_s = 50; /* less than the runner's limit */

/* Replaces the C library's pause, which a hanging worker calls. It sets the process name, so that
 * the test can see that the worker hangs. */
int pause(void)
{
    sigset_t none;
    prctl(PR_SET_NAME, hanging);
    sigemptyset(&none);
    return sigsuspend(&none);
}

static bool hangs(pid_t worker)
{
    char path[40], *name;
    size_t length;
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)worker);
    if (mgl_file_read(path, 1 << 10, &name, &length, NULL))
        return false;
    const bool is_so = !strncmp(name, hanging, sizeof hanging - 1);
    mgl_free(name);
    return is_so;
}

/* Kills the worker one second after it begins to hang, so that the runner has read its memory
 * use. */
static void *kill_hanging(void *worker)
{
    const pid_t pid = *(pid_t *)worker;
    const double end = mgl_clock_s() + time_limit(patience_s);
    while (!hangs(pid) && mgl_clock_s() < end)
        usleep(1000);
    if (!hangs(pid))
        return NULL;
    sleep(1);
    kill(pid, SIGKILL);
    return NULL;
}

/* The candidate hangs until its worker is killed, and is correct in a second check. */
START_TEST(a_kill_from_outside_is_no_verdict)
{
    pthread_t thread;
    begin("hang");
    pid_t worker = mgl_process_id(state()->executor);
    ck_assert_int_eq(pthread_create(&thread, NULL, kill_hanging, &worker), 0);
    ck_assert_msg(check(&other) == MGL_OUTCOME_OK, "%s", found.verdict.diagnostic);
    pthread_join(thread, NULL);
    ck_assert(state()->killed);
    ck_assert_int_ne(mgl_process_id(state()->executor), worker);
}
END_TEST

START_TEST(a_kill_from_outside_spares_the_pairs)
{
    pthread_t thread;
    mgl_pair pairs[2];
    mgl_trial_verdict verdict;
    begin("pair:hang");
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
    pid_t worker = mgl_process_id(state()->executor);
    ck_assert_int_eq(pthread_create(&thread, NULL, kill_hanging, &worker), 0);
    ok(runner->pair(runner, ONE_STEP, 2, 1, false, pairs, &verdict, &err));
    pthread_join(thread, NULL);
    ck_assert_msg(verdict.outcome == MGL_OUTCOME_OK, "%s", verdict.diagnostic);
    ck_assert(state()->killed);
}
END_TEST

static uint64_t resident_bytes(pid_t pid)
{
    char path[40], *text;
    size_t length;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    ok(mgl_file_read(path, 1 << 16, &text, &length, &err));
    uint64_t kilobytes = strtoull(strstr(text, "VmRSS:") + 6, NULL, 10);
    mgl_free(text);
    return kilobytes << 10;
}

/* If a killed worker used much of its memory limit, the system may have killed it for that. */
START_TEST(a_kill_of_a_large_worker_is_a_verdict)
{
    pthread_t thread;
    begin(NULL);
    options.limit_bytes = resident_bytes(mgl_process_id(state()->executor)) * 3 / 2;
    runner->close(runner);
    begin("hang");
    pid_t worker = mgl_process_id(state()->executor);
    ck_assert_int_eq(pthread_create(&thread, NULL, kill_hanging, &worker), 0);
    ck_assert_int_eq(check(&other), MGL_OUTCOME_VM_RESOURCES);
    pthread_join(thread, NULL);
    ck_assert(!state()->killed);
}
END_TEST

START_TEST(a_runner_can_be_started_again)
{
    begin(NULL);
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
    ok(runner->start(runner, &other, &err));
    ck_assert_int_eq(check(&standard), MGL_OUTCOME_OK);
    ck_assert_double_eq(found.defaults[0], -1); /* `other` is not the default */
}
END_TEST

/* ---- workloads that do not fit --------------------------------------------------------------- */

START_TEST(a_workload_without_room_is_rejected)
{
    subject.workloads.list[ONE_STEP].context = 40;
    ok(mgl_runner_device_open(&options, &runner, &err));
    ck_assert_int_eq(runner->start(runner, &standard, &err), MGL_USAGE);
    ck_assert_msg(strstr(err.message, "need a capacity of 73; it is 64"), "%s", err.message);
}
END_TEST

START_TEST(too_little_memory_is_told_in_bytes)
{
    mgl_paired_bench_device device = {.name = "small", .memory_free = 1000};
    begin(NULL);
    ck_assert_int_eq(mgl_runner_set_fits(&state()->incumbent, &subject, &device, &err), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "bytes, and 1000 are free"), "%s", err.message);
}
END_TEST

START_TEST(a_device_that_is_not_there_is_told)
{
    options.device = "cuda:15";
    ok(mgl_runner_device_open(&options, &runner, &err));
    ck_assert_int_eq(runner->start(runner, &standard, &err), MGL_DEVICE);
}
END_TEST

START_TEST(a_program_that_is_no_worker_is_told)
{
    options.program = "/bin/true";
    ok(mgl_runner_device_open(&options, &runner, &err));
    ck_assert_int_eq(runner->start(runner, &standard, &err), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "the worker ended with code"), "%s", err.message);
}
END_TEST

/* ---- pairs ----------------------------------------------------------------------------------- */

enum { PAIRS = 12 };
static mgl_pair pairs[PAIRS];
static mgl_trial_verdict verdict;

static void measure(int workload, uint64_t seed, bool control)
{
    ok(runner->pair(runner, workload, PAIRS, seed, control, pairs, &verdict, &err));
}

static unsigned order(void)
{
    unsigned bits = 0;
    for (int i = 0; i < PAIRS; i++)
        bits |= (unsigned)pairs[i].candidate_first << i;
    return bits;
}

START_TEST(pairs_come_in_an_order_that_the_seed_draws)
{
    begin(NULL);
    check(&other);
    measure(TWO_SEQUENCES, 1, false);
    ck_assert_msg(verdict.outcome == MGL_OUTCOME_OK, "%s", verdict.diagnostic);
    unsigned first = order();
    ck_assert_uint_ne(first, 0);
    ck_assert_uint_ne(first, (1u << PAIRS) - 1);
    measure(ONE_STEP, 1, false);
    ck_assert_uint_eq(order(), first);
    measure(ONE_STEP, 2, false);
    ck_assert_uint_ne(order(), first);
    for (int i = 0; i < PAIRS; i++) {
        ck_assert_double_gt(pairs[i].incumbent_us, 0);
        ck_assert_double_gt(pairs[i].candidate_us, 0);
        ck_assert_int_eq(pairs[i].workload, ONE_STEP);
    }
}
END_TEST

START_TEST(a_control_needs_no_candidate)
{
    begin(NULL);
    measure(ANOTHER_STEP, 3, true);
    ck_assert_msg(verdict.outcome == MGL_OUTCOME_OK, "%s", verdict.diagnostic);
    ck_assert_int_eq(pairs[0].stage, MGL_PAIRS_CONTROL);
    ck_assert_double_gt(pairs[PAIRS - 1].candidate_us, 0);
}
END_TEST

START_TEST(a_control_leaves_the_candidate)
{
    begin(NULL);
    check(&other);
    measure(TWO_SEQUENCES, 3, true);
    measure(TWO_SEQUENCES, 3, false);
    ck_assert_msg(verdict.outcome == MGL_OUTCOME_OK, "%s", verdict.diagnostic);
    ok(runner->promote(runner, &err));
}
END_TEST

START_TEST(a_slow_candidate_takes_longer)
{
    begin("pair:slow");
    check(&other);
    measure(ONE_STEP, 4, false);
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_OK);
    for (int i = 0; i < PAIRS; i++)
        ck_assert_double_gt(pairs[i].candidate_us, 20000.0 / MGL_WORKLOAD_TOKENS);
}
END_TEST

START_TEST(a_time_without_the_tokens_is_none)
{
    begin("pair:wrong_token");
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
    measure(ONE_STEP, 5, false);
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_MISMATCH);
    ck_assert_msg(strstr(verdict.diagnostic, "step 0: a timed launch of the candidate made token"),
                  "%s", verdict.diagnostic);
    measure(ONE_STEP, 5, false);
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_OK);
}
END_TEST

START_TEST(a_crash_between_pairs_is_the_verdict)
{
    begin("pair:crash");
    check(&other);
    measure(TWO_SEQUENCES, 6, false);
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_ILLEGAL_ADDRESS);
    measure(TWO_SEQUENCES, 6, false);
    ck_assert_msg(verdict.outcome == MGL_OUTCOME_OK, "%s", verdict.diagnostic);
}
END_TEST

START_TEST(only_what_is_correct_is_measured)
{
    begin("nan");
    check(&other);
    ck_assert_int_eq(runner->pair(runner, ONE_STEP, PAIRS, 1, false, pairs, &verdict, &err),
                     MGL_USAGE);
    ck_assert_int_eq(runner->promote(runner, &err), MGL_USAGE);
}
END_TEST

START_TEST(a_cpu_has_no_floor)
{
    double us = 1;
    begin(NULL);
    check(&other);
    ok(runner->floor(runner, ONE_STEP, false, &us, &err));
    ck_assert_double_eq(us, 0);
}
END_TEST

START_TEST(a_candidate_becomes_the_incumbent)
{
    begin(NULL);
    check(&other);
    ok(runner->promote(runner, &err));
    ck_assert_int_eq(check(&standard), MGL_OUTCOME_OK);
    ck_assert_double_eq(found.defaults[0], -1);
    measure(TWO_SEQUENCES, 1, false);
    ck_assert_msg(verdict.outcome == MGL_OUTCOME_OK, "%s", verdict.diagnostic);
}
END_TEST

START_TEST(with_leave_for_other_formats_the_default_is_measured_always)
{
    subject.allow_formats = true;
    begin(NULL);
    check(&other);
    ok(runner->promote(runner, &err));
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
    for (int w = 0; w < three.count; w++)
        ck_assert_double_ge(found.defaults[w], 0);
    measure(TWO_SEQUENCES, 1, false);
    ck_assert_msg(verdict.outcome == MGL_OUTCOME_OK, "%s", verdict.diagnostic);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("runner");
    tcase_add_test(tests, a_correct_candidate_passes);
    tcase_add_test(tests, a_cpu_has_no_baseline);
    tcase_add_test(tests, the_device_is_described);
    tcase_add_test(tests, the_workers_validator_has_a_say);
    tcase_add_loop_test(tests, a_fault_is_the_verdict_and_the_next_check_passes, 0, FAULTS);
    tcase_add_test(tests, a_hang_is_ended);
    tcase_add_test(tests, memory_is_limited);
    tcase_add_test(tests, unknown_fault_is_rejected);
    tcase_add_test(tests, workers_that_die_are_replaced);
    tcase_add_test(tests, a_kill_from_outside_is_no_verdict);
    tcase_add_test(tests, a_kill_from_outside_spares_the_pairs);
    tcase_add_test(tests, a_kill_of_a_large_worker_is_a_verdict);
    tcase_add_test(tests, a_runner_can_be_started_again);
    tcase_add_test(tests, a_workload_without_room_is_rejected);
    tcase_add_test(tests, too_little_memory_is_told_in_bytes);
    tcase_add_test(tests, a_device_that_is_not_there_is_told);
    tcase_add_test(tests, a_program_that_is_no_worker_is_told);
    tcase_add_test(tests, pairs_come_in_an_order_that_the_seed_draws);
    tcase_add_test(tests, a_control_needs_no_candidate);
    tcase_add_test(tests, a_control_leaves_the_candidate);
    tcase_add_test(tests, a_slow_candidate_takes_longer);
    tcase_add_test(tests, a_time_without_the_tokens_is_none);
    tcase_add_test(tests, a_crash_between_pairs_is_the_verdict);
    tcase_add_test(tests, only_what_is_correct_is_measured);
    tcase_add_test(tests, a_cpu_has_no_floor);
    tcase_add_test(tests, a_candidate_becomes_the_incumbent);
    tcase_add_test(tests, with_leave_for_other_formats_the_default_is_measured_always);
    return runner_main(argc, argv, "runner", tests);
}

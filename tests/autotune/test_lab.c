/*
 * The device lab on the CPU: real workers, which are this test started once more, that execute real
 * programs of a small model. What a worker may do wrong is planted by a fault of the lab's options.
 */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autotune/lab_state.h"
#include "autotune/sandbox.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "vm/cuda/cache.h"
#include "vm/cuda/cuda.h"

#define ok(call) ck_assert_msg((call) == MGL_OK, "%s: %s", err.where, err.message)

static const mgl_config config = {
    {64, 2, 4, 2, 16, 96, 75, 1e-5f}, 128, true, {MGL_ROPE_DEFAULT, 10000, 1, 0, 0, 0}, 0};
static const mgl_workloads three = {.list = {{1, 0}, {1, 20}, {2, 5}}, .count = 3};
enum { ONE_STEP, ANOTHER_STEP, TWO_SEQUENCES }; /* the workloads */

static mgl_subject subject;
static mgl_candidate standard, other; /* the default; with other queues */
static mgl_lab_options options;
static mgl_lab *lab;
static mgl_lab_check found;
static mgl_error err;
static atomic_int abort_flag;
static unsigned char nonce[MGL_SHA256_BYTES];

/* ---- what the tests share -------------------------------------------------------------------- */

static void lower(const mgl_schedule_config *knobs, mgl_candidate *out)
{
    *out = (mgl_candidate){.program_of = {0, 0, 1}, .program_count = 2};
    for (int p = 0; p < out->program_count; p++) {
        mgl_lower_options how = {subject.dtype, subject.capacity, p + 1};
        ok(mgl_schedule_lower(subject.graph, &subject.target, &how, knobs, &out->programs[p],
                              &err));
    }
}

static void release(mgl_candidate *candidate)
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
    options = (mgl_lab_options){.subject = &subject,
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
    if (lab)
        lab->close(lab);
    lab = NULL;
    clear_subject();
    no_child_is_left();
}

static void begin(const char *fault)
{
    options.fault = fault;
    ok(mgl_lab_device_open(&options, &lab, &err));
    ok(lab->start(lab, &standard, &err));
}

static mgl_outcome check(const mgl_candidate *candidate)
{
    nonce[0]++;
    ok(lab->check(lab, candidate, nonce, &found, &err));
    return found.outcome;
}

static mgl_lab_state *state(void)
{
    return (mgl_lab_state *)lab;
}

/* ---- checking -------------------------------------------------------------------------------- */

START_TEST(a_correct_candidate_passes)
{
    begin(NULL);
    ck_assert_msg(check(&other) == MGL_OUTCOME_OK, "%s", found.diagnostic);
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
    ck_assert_int_eq(lab->baseline(lab, ONE_STEP, &us, &err), MGL_DEVICE);
    ck_assert_double_eq(us, 0);
    ck_assert_ptr_nonnull(strstr(err.message, "cuBLAS"));
    ck_assert_msg(check(&other) == MGL_OUTCOME_OK, "%s", found.diagnostic);
}
END_TEST

START_TEST(the_device_is_described)
{
    mgl_lab_device device;
    begin(NULL);
    ok(lab->get_device(lab, &device, &err));
    ck_assert_str_eq(device.name, "cpu");
    ck_assert_str_eq(device.target.arch, "cpu");
    ck_assert_uint_gt(device.memory_free, 0);
    ck_assert(lab->executes);
    ck_assert(!lab->measures);
}
END_TEST

/* A worker has other eyes than the gates: what does not get past its own validator is REJECTED. */
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
    ck_assert_msg(strstr(found.diagnostic, "MG"), "%s", found.diagnostic);
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
    ck_assert_msg(strstr(found.diagnostic, faults[_i].says), "%s", found.diagnostic);
    ck_assert_msg(check(&other) == MGL_OUTCOME_OK, "%s", found.diagnostic);
}
END_TEST

START_TEST(a_hang_is_ended)
{
    options.limit_s = 2;
    begin("hang");
    ck_assert_int_eq(check(&other), MGL_OUTCOME_HANG);
    ck_assert_msg(strstr(found.diagnostic, "run: did not end within 2 s"), "%s", found.diagnostic);
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
}
END_TEST

START_TEST(memory_is_limited)
{
    options.limit_bytes = 512 << 20;
    begin("memory");
    ck_assert_int_eq(check(&other), MGL_OUTCOME_VM_RESOURCES);
    ck_assert_msg(strstr(found.diagnostic, "more than the 536870912 bytes"), "%s",
                  found.diagnostic);
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
}
END_TEST

START_TEST(a_fault_that_nobody_knows_is_refused)
{
    options.fault = "typo";
    ck_assert_int_eq(mgl_lab_device_open(&options, &lab, &err), MGL_USAGE);
}
END_TEST

/* Between two trials nobody is to blame. */
START_TEST(workers_that_die_are_replaced)
{
    begin(NULL);
    kill(mgl_process_id(state()->executor), SIGKILL);
    kill(mgl_process_id(state()->referee), SIGKILL);
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
}
END_TEST

static void *kill_soon(void *worker)
{
    sleep(1);
    kill(*(pid_t *)worker, SIGKILL);
    return NULL;
}

/* The candidate hangs until somebody kills its worker, and is right when it is checked once more.
 */
START_TEST(a_kill_from_outside_is_no_verdict)
{
    pthread_t thread;
    begin("hang");
    pid_t worker = mgl_process_id(state()->executor);
    ck_assert_int_eq(pthread_create(&thread, NULL, kill_soon, &worker), 0);
    ck_assert_msg(check(&other) == MGL_OUTCOME_OK, "%s", found.diagnostic);
    pthread_join(thread, NULL);
    ck_assert(state()->killed);
    ck_assert_int_ne(mgl_process_id(state()->executor), worker);
}
END_TEST

START_TEST(a_kill_from_outside_spares_the_pairs)
{
    pthread_t thread;
    mgl_pair pairs[2];
    mgl_outcome outcome;
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1];
    begin("pair:hang");
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
    pid_t worker = mgl_process_id(state()->executor);
    ck_assert_int_eq(pthread_create(&thread, NULL, kill_soon, &worker), 0);
    ok(lab->pair(lab, ONE_STEP, 2, 1, false, pairs, &outcome, diagnostic, &err));
    pthread_join(thread, NULL);
    ck_assert_msg(outcome == MGL_OUTCOME_OK, "%s", diagnostic);
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

/* A worker that holds much of what it may hold is one that the kernel may have killed. */
START_TEST(a_kill_of_a_large_worker_is_a_verdict)
{
    pthread_t thread;
    begin(NULL);
    options.limit_bytes = resident_bytes(mgl_process_id(state()->executor)) * 19 / 10;
    lab->close(lab);
    begin("hang");
    pid_t worker = mgl_process_id(state()->executor);
    ck_assert_int_eq(pthread_create(&thread, NULL, kill_soon, &worker), 0);
    ck_assert_int_eq(check(&other), MGL_OUTCOME_VM_RESOURCES);
    pthread_join(thread, NULL);
    ck_assert(!state()->killed);
}
END_TEST

START_TEST(a_lab_can_be_started_again)
{
    begin(NULL);
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
    ok(lab->start(lab, &other, &err));
    ck_assert_int_eq(check(&standard), MGL_OUTCOME_OK);
    ck_assert_double_eq(found.defaults[0], -1); /* `other` is not the default */
}
END_TEST

/* ---- what does not fit ----------------------------------------------------------------------- */

START_TEST(a_workload_without_room_is_refused)
{
    subject.workloads.list[ONE_STEP].context = 40;
    ok(mgl_lab_device_open(&options, &lab, &err));
    ck_assert_int_eq(lab->start(lab, &standard, &err), MGL_USAGE);
    ck_assert_msg(strstr(err.message, "need a capacity of 73; it is 64"), "%s", err.message);
}
END_TEST

START_TEST(too_little_memory_is_told_in_bytes)
{
    mgl_wire_device device = {.name = "small", .memory_free = 1000};
    begin(NULL);
    ck_assert_int_eq(mgl_lab_set_fits(&state()->incumbent, &subject, &device, &err), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "bytes, and 1000 are free"), "%s", err.message);
}
END_TEST

START_TEST(a_device_that_is_not_there_is_told)
{
    options.device = "cuda:15";
    ok(mgl_lab_device_open(&options, &lab, &err));
    ck_assert_int_eq(lab->start(lab, &standard, &err), MGL_DEVICE);
}
END_TEST

START_TEST(a_program_that_is_no_worker_is_told)
{
    options.program = "/bin/true";
    ok(mgl_lab_device_open(&options, &lab, &err));
    ck_assert_int_eq(lab->start(lab, &standard, &err), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "the worker ended with code"), "%s", err.message);
}
END_TEST

/* ---- pairs ----------------------------------------------------------------------------------- */

enum { PAIRS = 12 };
static mgl_pair pairs[PAIRS];
static mgl_outcome outcome;
static char diagnostic[MGL_MAX_DIAGNOSTIC + 1];

static void measure(int workload, uint64_t seed, bool control)
{
    ok(lab->pair(lab, workload, PAIRS, seed, control, pairs, &outcome, diagnostic, &err));
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
    ck_assert_msg(outcome == MGL_OUTCOME_OK, "%s", diagnostic);
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
    ck_assert_msg(outcome == MGL_OUTCOME_OK, "%s", diagnostic);
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
    ck_assert_msg(outcome == MGL_OUTCOME_OK, "%s", diagnostic);
    ok(lab->promote(lab, &err));
}
END_TEST

START_TEST(a_slow_candidate_takes_longer)
{
    begin("pair:slow");
    check(&other);
    measure(ONE_STEP, 4, false);
    ck_assert_int_eq(outcome, MGL_OUTCOME_OK);
    for (int i = 0; i < PAIRS; i++)
        ck_assert_double_gt(pairs[i].candidate_us, 20000.0 / MGL_WORKLOAD_TOKENS);
}
END_TEST

START_TEST(a_time_without_the_tokens_is_none)
{
    begin("pair:wrong_token");
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
    measure(ONE_STEP, 5, false);
    ck_assert_int_eq(outcome, MGL_OUTCOME_MISMATCH);
    ck_assert_msg(strstr(diagnostic, "step 0: a timed launch of the candidate made token"), "%s",
                  diagnostic);
    measure(ONE_STEP, 5, false);
    ck_assert_int_eq(outcome, MGL_OUTCOME_OK);
}
END_TEST

START_TEST(a_crash_between_pairs_is_the_verdict)
{
    begin("pair:crash");
    check(&other);
    measure(TWO_SEQUENCES, 6, false);
    ck_assert_int_eq(outcome, MGL_OUTCOME_ILLEGAL_ADDRESS);
    measure(TWO_SEQUENCES, 6, false);
    ck_assert_msg(outcome == MGL_OUTCOME_OK, "%s", diagnostic);
}
END_TEST

START_TEST(only_what_is_correct_is_measured)
{
    begin("nan");
    check(&other);
    ck_assert_int_eq(lab->pair(lab, ONE_STEP, PAIRS, 1, false, pairs, &outcome, diagnostic, &err),
                     MGL_USAGE);
    ck_assert_int_eq(lab->promote(lab, &err), MGL_USAGE);
}
END_TEST

START_TEST(a_cpu_has_no_floor)
{
    double us = 1;
    begin(NULL);
    check(&other);
    ok(lab->floor(lab, ONE_STEP, false, &us, &err));
    ck_assert_double_eq(us, 0);
}
END_TEST

START_TEST(a_candidate_becomes_the_incumbent)
{
    begin(NULL);
    check(&other);
    ok(lab->promote(lab, &err));
    ck_assert_int_eq(check(&standard), MGL_OUTCOME_OK);
    ck_assert_double_eq(found.defaults[0], -1);
    measure(TWO_SEQUENCES, 1, false);
    ck_assert_msg(outcome == MGL_OUTCOME_OK, "%s", diagnostic);
}
END_TEST

START_TEST(with_leave_for_other_formats_the_default_is_measured_always)
{
    subject.allow_narrow = true;
    begin(NULL);
    check(&other);
    ok(lab->promote(lab, &err));
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
    for (int w = 0; w < three.count; w++)
        ck_assert_double_ge(found.defaults[w], 0);
    measure(TWO_SEQUENCES, 1, false);
    ck_assert_msg(outcome == MGL_OUTCOME_OK, "%s", diagnostic);
}
END_TEST

/* ---- the processes --------------------------------------------------------------------------- */

static char *read_proc(pid_t pid, const char *name, size_t *length)
{
    char path[64], *text;
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    ok(mgl_file_read(path, 1 << 20, &text, length, &err));
    return text;
}

/* Whether the process has an entry that begins so. */
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

/* Whether the system calls of the process are looked at. */
static bool is_filtered(pid_t pid)
{
    size_t length;
    char *text = read_proc(pid, "status", &length);
    bool filtered = strstr(text, "\nSeccomp:\t2") != NULL;
    mgl_free(text);
    return filtered;
}

/* What this machine can not refuse is told, and test_sandbox says so. */
START_TEST(executor_and_referee_are_in_the_sandbox)
{
    mgl_lab_device device;
    mgl_sandbox has;
    mgl_sandbox_look(&has);
    begin(NULL);
    check(&other);
    ok(lab->get_device(lab, &device, &err));
    ck_assert_int_eq(device.sandbox[0] != 0, has.missing[0] != 0);
    if (has.seccomp) {
        ck_assert(is_filtered(mgl_process_id(state()->executor)));
        ck_assert(is_filtered(mgl_process_id(state()->referee)));
    }
}
END_TEST

START_TEST(without_a_sandbox_that_is_told)
{
    mgl_lab_device device;
    options.no_sandbox = true;
    begin(NULL);
    ok(lab->get_device(lab, &device, &err));
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
    ck_assert_int_eq(lab->check(lab, &other, nonce, &found, &err), MGL_INTERRUPTED);
    ck_assert_double_lt(mgl_clock_s() - start, 20); /* its own limit is a minute */
    pthread_join(thread, NULL);
    atomic_store(&abort_flag, 0);
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
    waitpid(-1, NULL, WNOHANG); /* the killed one was waited for briefly only */
}
END_TEST

/* A process that has a lab, tells its workers, and waits to be killed. */
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
        ck_assert_int_eq(waitpid(workers[i], &how, 0), workers[i]); /* it is this test's by now */
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}
END_TEST

/* Memory of the lab that runs out, anywhere in a check: an error, and the next check passes. */
START_TEST(a_check_without_memory_is_an_error)
{
    mgl_status status = MGL_NO_MEMORY;
    begin(NULL);
    for (uint64_t n = 1; status; n += 7) {
        mgl_alloc_fail_at(n, true);
        status = lab->check(lab, &other, nonce, &found, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert_msg(status == MGL_OK || status == MGL_NO_MEMORY, "%s: %s", err.where,
                      err.message);
        ck_assert_uint_lt(n, 10000);
    }
    ck_assert_int_eq(check(&other), MGL_OUTCOME_OK);
}
END_TEST

/* Whatever becomes of the kernels, since there need be no compiler here: two processes at most,
 * which go with the lab. */
START_TEST(compilers_are_few_and_go_with_the_lab)
{
    mgl_candidate ahead = {.program_count = 1};
    mgl_schedule_config knobs = subject.start;
    int processes = 0;
    strcpy(subject.target.arch, "sm_90a");
    subject.target.shared_bytes = 232448;
    subject.dtype = MGL_BF16;
    ok(mgl_lab_device_open(&options, &lab, &err));
    for (int i = 0; i < 4; i++) {
        mgl_lower_options how = {subject.dtype, subject.capacity, 1};
        knobs.page_bytes = 4096 << i;
        ok(mgl_schedule_lower(subject.graph, &subject.target, &how, &knobs, &ahead.programs[0],
                              &err));
        lab->prepare(lab, &ahead);
        release(&ahead);
    }
    mgl_sandbox has;
    mgl_sandbox_look(&has);
    for (int i = 0; i < lab->compilers; i++) {
        mgl_process *compiler = state()->compilers[i].process;
        processes += mgl_process_lives(compiler);
        if (has.seccomp && mgl_process_lives(compiler))
            ck_assert(is_filtered(mgl_process_id(compiler)));
    }
    ck_assert_int_gt(processes, 0);
}
END_TEST

/* Whoever notes a kernel has the folder looked at. */
START_TEST(kernels_have_so_much_of_the_disk)
{
    char key[MGL_SHA256_HEX] = "new", folder[] = "/tmp/megalith_kernels_XXXXXX", reason[200],
         bytes[1000] = "";
    size_t length;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert(mgl_cuda_cache_put(folder, "old", bytes, sizeof bytes, reason, sizeof reason));
    usleep(20000); /* the clock of a file's times is coarse */
    ck_assert(mgl_cuda_cache_put(folder, "new", bytes, sizeof bytes, reason, sizeof reason));
    options.kernels = folder;
    options.kernel_bytes = 1500;
    ok(mgl_lab_device_open(&options, &lab, &err));
    mgl_lab_note_kernel(state(), key);
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
    if (argc == 3 && !strcmp(argv[1], MGL_WORKER_FLAG))
        return mgl_worker_main(argv[2]);
    Suite *suite = suite_create("lab");
    TCase *tests = tcase_create("lab");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_correct_candidate_passes);
    tcase_add_test(tests, a_cpu_has_no_baseline);
    tcase_add_test(tests, the_device_is_described);
    tcase_add_test(tests, the_workers_validator_has_a_say);
    tcase_add_loop_test(tests, a_fault_is_the_verdict_and_the_next_check_passes, 0, FAULTS);
    tcase_add_test(tests, a_hang_is_ended);
    tcase_add_test(tests, memory_is_limited);
    tcase_add_test(tests, a_fault_that_nobody_knows_is_refused);
    tcase_add_test(tests, workers_that_die_are_replaced);
    tcase_add_test(tests, a_kill_from_outside_is_no_verdict);
    tcase_add_test(tests, a_kill_from_outside_spares_the_pairs);
    tcase_add_test(tests, a_kill_of_a_large_worker_is_a_verdict);
    tcase_add_test(tests, a_lab_can_be_started_again);
    tcase_add_test(tests, a_workload_without_room_is_refused);
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
    tcase_add_test(tests, no_key_reaches_a_worker);
    tcase_add_test(tests, a_worker_has_a_socket_and_nothing_else);
    tcase_add_test(tests, a_worker_gets_no_new_rights);
    tcase_add_test(tests, executor_and_referee_are_in_the_sandbox);
    tcase_add_test(tests, without_a_sandbox_that_is_told);
    tcase_add_test(tests, an_abort_ends_a_check_at_once);
    tcase_add_test(tests, workers_die_with_their_parent);
    tcase_add_test(tests, a_check_without_memory_is_an_error);
    tcase_add_test(tests, compilers_are_few_and_go_with_the_lab);
    tcase_add_test(tests, kernels_have_so_much_of_the_disk);
    tcase_add_test(tests, a_worker_without_a_socket_ends);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

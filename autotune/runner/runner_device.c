/*
 * The device runner, parent side: manages workers and the programs loaded in them. Two processes
 * use the device. The executor runs the incumbent and the candidate; the referee computes the f32
 * reference and never runs a candidate. Compilers need no device and work in the background.
 *
 * All state is kept here, because a worker may die at any moment. The next worker gets programs,
 * weights and cache again when a request needs them. A failure of a worker while a candidate runs
 * becomes the candidate's verdict, provided that a new worker works.
 *
 * Other files: runner_check.c (correctness), runner_look.c (memory after a launch), runner_under.c
 * (launches under a tool), runner_pair.c (timing), runner_real.c (real checkpoint, baseline),
 * runner_build_ahead.c (compilation), runner_set.c (programs of a candidate), process.c (one
 * worker), worker.c (the worker process).
 */
#include "autotune/runner/runner_state.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/system/cgroup.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double default_limit_s = 60;
_Static_assert(MGL_REQUEST_COUNT <= (int)MGL_RUNNER_WAITS, "each kind of request has its place");

/* ---- workers --------------------------------------------------------------------------------- */

static void set_hello(const mgl_runner_state *runner, mgl_worker_role role, mgl_wire_hello *hello)
{
    memset(hello, 0, sizeof *hello);
    mgl_wire_build(hello->build);
    hello->role = (int32_t)role;
    hello->parent = getpid();
    snprintf(hello->device, sizeof hello->device, "%s", runner->device);
    hello->config = runner->options.subject->config;
}

static mgl_status greet(const mgl_runner_state *runner, mgl_process *process, mgl_worker_role role,
                        mgl_error *err)
{
    mgl_wire_hello hello;
    set_hello(runner, role, &hello);
    mgl_question question = {.kind = MGL_REQUEST_HELLO,
                             .fixed = &hello,
                             .fixed_length = sizeof hello,
                             .limit_s = MGL_RUNNER_LONG * runner->limit_s};
    return mgl_process_post(process, &question, err);
}

/* Awaits the reply to the greeting. Except for a compiler, it contains the device's facts. */
static mgl_status await_greeting(mgl_runner_state *runner, mgl_process *process,
                                 mgl_worker_role role, mgl_error *err)
{
    mgl_answer answer;
    size_t wanted = role == MGL_COMPILER ? 0 : sizeof runner->facts;
    mgl_status status = mgl_process_await(process, wanted, &answer, err);
    if (!status && answer.error.code)
        status = mgl_answer_fail(&answer, err);
    if (!status && role == MGL_EXECUTOR)
        memcpy(&runner->facts, answer.bytes, sizeof runner->facts);
    mgl_answer_clear(&answer);
    return status;
}

/* Puts the worker into the sandbox, before it receives a candidate, and records its report. */
static mgl_status confine(mgl_runner_state *runner, mgl_process *process, mgl_error *err)
{
    mgl_wire_sandbox found;
    const mgl_question question = {.kind = MGL_REQUEST_SANDBOX,
                                   .bytes = runner->readable,
                                   .length = runner->readable ? strlen(runner->readable) : 0,
                                   .limit_s = runner->limit_s};
    mgl_status status = mgl_process_get(process, &question, &found, sizeof found, err);
    if (status)
        return status;
    found.missing[sizeof found.missing - 1] = 0;
    mgl_format_into(runner->sandbox, sizeof runner->sandbox, "%s%s",
                    found.missing[0] ? "the workers' sandbox is not whole: " : "", found.missing);
    return MGL_OK;
}

static mgl_status end_worker(mgl_process **worker, mgl_status status)
{
    if (status) {
        mgl_process_close(*worker);
        *worker = NULL;
    }
    return status;
}

mgl_status mgl_runner_call_worker(mgl_runner_state *runner, mgl_worker_role role, mgl_process **out,
                                  mgl_error *err)
{
    mgl_process_options options = {.program = runner->program,
                                   .kernels = runner->kernels,
                                   .abort = runner->options.abort,
                                   .limit_bytes = runner->limit_bytes,
                                   .under = runner->tool ? runner->tool->words : NULL};
    mgl_status status = mgl_check_abort(runner->options.abort, err);
    if (!status)
        status = mgl_process_start(&options, out, err);
    if (!status)
        status = greet(runner, *out, role, err);
    return end_worker(out, status);
}

mgl_status mgl_runner_await_worker(mgl_runner_state *runner, mgl_worker_role role,
                                   mgl_process **worker, mgl_error *err)
{
    const bool confined =
        !runner->options.no_sandbox && !(runner->tool && runner->tool->no_sandbox);
    mgl_status status = await_greeting(runner, *worker, role, err);
    if (!status && confined)
        status = confine(runner, *worker, err);
    return end_worker(worker, status);
}

mgl_status mgl_runner_start_worker(mgl_runner_state *runner, mgl_worker_role role,
                                   mgl_process **out, mgl_error *err)
{
    mgl_status status = mgl_runner_call_worker(runner, role, out, err);
    return status ? status : mgl_runner_await_worker(runner, role, out, err);
}

void mgl_runner_end_executor(mgl_runner_state *runner)
{
    mgl_process_close(runner->executor);
    runner->executor = NULL;
    memset(runner->resident, 0, sizeof runner->resident);
}

static mgl_status need_executor(mgl_runner_state *runner, mgl_error *err)
{
    if (mgl_process_lives(runner->executor))
        return MGL_OK;
    mgl_runner_end_executor(runner);
    return mgl_runner_start_worker(runner, MGL_EXECUTOR, &runner->executor, err);
}

void mgl_runner_note_wait(mgl_runner_state *runner, mgl_request_kind kind, double since)
{
    mgl_runner_time *wait = &runner->runner.waits[kind];
    wait->what = mgl_request_name(kind);
    wait->seconds += mgl_clock_s() - since;
    wait->count++;
}

void mgl_runner_note_work(mgl_runner_state *runner, mgl_runner_work work, double seconds)
{
    static const char *const names[MGL_RUNNER_WORKS] = {"launches", "weights", "reference",
                                                        "stream"};
    mgl_runner_time *time = &runner->runner.works[work];
    time->what = names[work];
    time->seconds += seconds;
    time->count++;
    runner->runner.busy_s += seconds;
}

mgl_status mgl_runner_ask_process(mgl_runner_state *runner, mgl_process *process,
                                  const mgl_question *question, size_t wanted, mgl_answer *out,
                                  mgl_error *err)
{
    static const mgl_runner_work works[MGL_REQUEST_COUNT] = {
        [MGL_REQUEST_SET] = MGL_RUNNER_WEIGHTS,
        [MGL_REQUEST_RUN] = MGL_RUNNER_WEIGHTS,
        [MGL_REQUEST_REFER] = MGL_RUNNER_REFERENCE,
        [MGL_REQUEST_STREAM] = MGL_RUNNER_STREAM};
    const double began = mgl_clock_s();
    mgl_question limited = *question;
    if (limited.limit_s <= 0)
        limited.limit_s = runner->limit_s;
    mgl_status status = mgl_process_ask(process, &limited, wanted, out, err);
    mgl_runner_note_wait(runner, question->kind, began);
    if (!status && out->device_s > 0) /* a report is untrusted: a worker cannot have worked longer
                                       * than the wait */
        mgl_runner_note_work(runner, works[question->kind],
                             fmin(out->device_s, mgl_clock_s() - began));
    return status;
}

mgl_status mgl_runner_ask(mgl_runner_state *runner, const mgl_question *question, size_t wanted,
                          mgl_answer *out, mgl_error *err)
{
    *out = (mgl_answer){0};
    mgl_status status = need_executor(runner, err);
    if (!status)
        status = mgl_runner_ask_process(runner, runner->executor, question, wanted, out, err);
    if (!mgl_process_lives(runner->executor))
        mgl_runner_end_executor(runner);
    return status;
}

/* Asks for the device's current state. If the executor died between two requests, asks a new
 * one. */
static mgl_status ask_device(mgl_runner_state *runner, mgl_error *err)
{
    mgl_answer answer;
    const mgl_question question = {.kind = MGL_REQUEST_DEVICE};
    mgl_status status = mgl_runner_ask(runner, &question, sizeof runner->facts, &answer, err);
    if (!status && answer.fate != MGL_FATE_ANSWERED) {
        mgl_answer_clear(&answer);
        status = mgl_runner_ask(runner, &question, sizeof runner->facts, &answer, err);
    }
    if (!status && answer.error.code)
        status = mgl_answer_fail(&answer, err);
    if (!status)
        memcpy(&runner->facts, answer.bytes, sizeof runner->facts);
    mgl_answer_clear(&answer);
    return status;
}

mgl_fault mgl_runner_take_fault(mgl_runner_state *runner, mgl_runner_deed deed)
{
    mgl_fault fault = runner->fault;
    if (runner->fault_in != deed)
        return MGL_FAULT_NONE;
    runner->fault = MGL_FAULT_NONE;
    return fault;
}

mgl_status mgl_runner_arm(mgl_runner_state *runner, mgl_fault fault, mgl_error *err)
{
    const int32_t number = (int32_t)fault;
    const mgl_question question = {
        .kind = MGL_REQUEST_FAULT, .fixed = &number, .fixed_length = sizeof number};
    return mgl_runner_get(runner, &question, NULL, 0, NULL, err);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static mgl_outcome outcome_of_end(const mgl_answer *a)
{
    enum { KILLED = 9, BUS = 7, SEGMENT = 11 };
    if (a->fate == MGL_FATE_HUNG)
        return MGL_OUTCOME_HANG;
    if (a->fate == MGL_FATE_GREW || a->signal == KILLED) /* out of memory */
        return MGL_OUTCOME_VM_RESOURCES;
    if (a->signal == SEGMENT || a->signal == BUS)
        return MGL_OUTCOME_ILLEGAL_ADDRESS;
    return MGL_OUTCOME_LAUNCH;
}

/* The outcome of a device error, by the driver's names in its message (vm/cuda/driver.c). */
static mgl_outcome outcome_of_device(const mgl_answer *a)
{
    const char *message = a->error.message;
    if (strstr(a->error.where, "nvrtc"))
        return MGL_OUTCOME_COMPILE_OTHER;
    if (strstr(message, "ADDRESS"))
        return MGL_OUTCOME_ILLEGAL_ADDRESS;
    if (strstr(message, "LAUNCH_TIMEOUT"))
        return MGL_OUTCOME_HANG;
    if (a->kind != MGL_REQUEST_SET)
        return MGL_OUTCOME_LAUNCH;
    if (strstr(message, "bytes of shared memory a block"))
        return MGL_OUTCOME_RESOURCE_SHARED;
    bool driver = strstr(message, "CUDA_ERROR_") && !strstr(message, "OUT_OF_MEMORY");
    return driver ? MGL_OUTCOME_LAUNCH : MGL_OUTCOME_VM_RESOURCES;
}

/* Returns the outcome of a launch that ended, but that mgl_paired_bench_run (eval/paired_bench.c)
 * found incorrect. */
static mgl_outcome outcome_of_gate(const mgl_answer *a)
{
    if (strstr(a->error.message, MGL_PAIRED_BENCH_NONFINITE))
        return MGL_OUTCOME_NONFINITE;
    if (strstr(a->error.message, MGL_PAIRED_BENCH_TOO_FEW))
        return MGL_OUTCOME_SEMANTIC;
    return MGL_OUTCOME_OOB_WRITE;
}

static mgl_outcome outcome_of(const mgl_answer *a)
{
    bool set = a->kind == MGL_REQUEST_SET;
    if (a->fate != MGL_FATE_ANSWERED)
        return outcome_of_end(a);
    switch (a->error.code) {
    case MGL_REJECTED:
        return MGL_OUTCOME_REJECTED;
    case MGL_WATCHDOG:
        return MGL_OUTCOME_HANG;
    case MGL_GATE:
        return outcome_of_gate(a);
    case MGL_DEVICE:
        return outcome_of_device(a);
    case MGL_BAD_INPUT:
        return set ? MGL_OUTCOME_VM_RESOURCES : MGL_OUTCOME_NONFINITE;
    case MGL_NO_MEMORY:
        return MGL_OUTCOME_VM_RESOURCES;
    default:
        return MGL_OUTCOME_LAUNCH;
    }
}

/* Whether the candidate was rejected before anything ran, so that the worker is undamaged. */
static bool is_harmless(mgl_outcome outcome)
{
    return outcome == MGL_OUTCOME_REJECTED || outcome == MGL_OUTCOME_COMPILE_OTHER ||
           outcome == MGL_OUTCOME_RESOURCE_SHARED || outcome == MGL_OUTCOME_VM_RESOURCES;
}

mgl_status mgl_runner_blame(mgl_runner_state *runner, const mgl_answer *a,
                            mgl_trial_verdict *verdict, mgl_error *err)
{
    runner->killed |= a->killed;
    mgl_trial_verdict_fail(verdict, outcome_of(a), &a->error);
    if (a->fate == MGL_FATE_ANSWERED && is_harmless(verdict->outcome))
        return MGL_OK;
    mgl_runner_end_executor(runner);
    return ask_device(runner, err);
}

/* ---- programs and launches ------------------------------------------------------------------- */

mgl_status mgl_runner_get(mgl_runner_state *runner, const mgl_question *question, void *to,
                          size_t wanted, mgl_trial_verdict *verdict, mgl_error *err)
{
    mgl_answer answer;
    mgl_status status = mgl_runner_ask(runner, question, wanted, &answer, err);
    if (!status && answer.error.code && verdict) {
        status = mgl_runner_blame(runner, &answer, verdict, err);
    } else if (!status && answer.error.code) {
        mgl_runner_end_executor(runner);
        status = mgl_answer_fail(&answer, err);
    } else if (!status && wanted) {
        memcpy(to, answer.bytes, wanted);
    }
    mgl_answer_clear(&answer);
    return status;
}

/* The context of the first workload of a program. */
static int context_of(const mgl_runner_state *runner, const mgl_runner_set *set, int program)
{
    const mgl_workloads *workloads = &runner->options.subject->workloads;
    int w = 0;
    while (w < workloads->count - 1 && set->program_of[w] != program)
        w++;
    return workloads->list[w].context;
}

mgl_status mgl_runner_place(mgl_runner_state *runner, mgl_side side, const mgl_runner_set *set,
                            int program, double *kernel_s, mgl_trial_verdict *verdict,
                            mgl_error *err)
{
    mgl_wire_set fixed;
    mgl_text bytes = {0};
    double seconds = 0;
    mgl_runner_resident *resident = &runner->resident[side];
    mgl_trial_verdict *blamed = side == MGL_CANDIDATE ? verdict : NULL;
    if (runner->executor && resident->serial == set->serial && resident->program == program)
        return MGL_OK;
    mgl_status status = mgl_runner_await_kernel(runner, set->keys[program], err);
    if (!status)
        status = mgl_runner_set_write(set, program, &fixed, &bytes, err);
    if (!status) {
        fixed.side = (int32_t)side;
        fixed.seed = runner->expected;
        fixed.context = context_of(runner, set, program);
        const mgl_question question = {.kind = MGL_REQUEST_SET,
                                       .fixed = &fixed,
                                       .bytes = bytes.bytes,
                                       .fixed_length = sizeof fixed,
                                       .length = bytes.length,
                                       .limit_s = MGL_RUNNER_LONG * runner->limit_s +
                                                  MGL_RUNNER_COMPILE_S};
        *resident = (mgl_runner_resident){0};
        status = mgl_runner_get(runner, &question, &seconds, sizeof seconds, blamed, err);
    }
    mgl_text_clear(&bytes);
    if (status)
        return status;
    mgl_runner_note_kernel(runner, set->keys[program]);
    if (!blamed || blamed->outcome == MGL_OUTCOME_OK)
        *resident = (mgl_runner_resident){set->serial, program};
    if (kernel_s)
        *kernel_s = seconds;
    return MGL_OK;
}

mgl_status mgl_runner_launch(mgl_runner_state *runner, const mgl_wire_load *load, int32_t *tokens,
                             double *seconds, mgl_trial_verdict *verdict, mgl_error *err)
{
    struct {
        double seconds;
        mgl_runner_tokens tokens;
    } reply;
    const size_t bytes = (size_t)load->batch * (size_t)load->tokens * sizeof *tokens;
    const mgl_question question = {
        .kind = MGL_REQUEST_RUN, .fixed = load, .fixed_length = sizeof *load};
    mgl_trial_verdict *blamed = load->side == MGL_CANDIDATE ? verdict : NULL;
    mgl_status status =
        mgl_runner_get(runner, &question, &reply, sizeof reply.seconds + bytes, blamed, err);
    if (status || (blamed && blamed->outcome != MGL_OUTCOME_OK))
        return status;
    *seconds = reply.seconds;
    mgl_runner_note_work(runner, MGL_RUNNER_LAUNCHES, *seconds);
    memcpy(tokens, reply.tokens, bytes);
    return MGL_OK;
}

/* ---- repetition ------------------------------------------------------------------------------ */

/* If another process killed the worker of a candidate, the operation is repeated once, and its
 * second result counts. A candidate whose workers are killed repeatedly must not block a
 * campaign. */
static mgl_status check_candidate(mgl_runner *self, const mgl_candidate *candidate,
                                  const unsigned char nonce[MGL_SHA256_BYTES],
                                  mgl_runner_check *out, mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    const mgl_runner_check before = *out;
    runner->killed = false;
    mgl_status status = mgl_runner_check_candidate(self, candidate, nonce, out, err);
    if (status || !runner->killed)
        return status;
    *out = before;
    return mgl_runner_check_candidate(self, candidate, nonce, out, err);
}

static mgl_status measure_pairs(mgl_runner *self, int workload, int count, uint64_t seed,
                                bool control, mgl_pair *out, mgl_trial_verdict *verdict,
                                mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    runner->killed = false;
    mgl_status status =
        mgl_runner_measure_pairs(self, workload, count, seed, control, out, verdict, err);
    if (status || !runner->killed)
        return status;
    return mgl_runner_measure_pairs(self, workload, count, seed, control, out, verdict, err);
}

static mgl_status decode(mgl_runner *self, const mgl_real_texts *texts, int program, int sequences,
                         mgl_real_numbers *out, mgl_trial_verdict *verdict, mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    runner->killed = false;
    mgl_status status = mgl_runner_decode(self, texts, program, sequences, out, verdict, err);
    if (status || !runner->killed)
        return status;
    return mgl_runner_decode(self, texts, program, sequences, out, verdict, err);
}

/* ---- functions of the interface -------------------------------------------------------------- */

static mgl_status get_device(mgl_runner *self, mgl_runner_device *out, mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    mgl_status status = ask_device(runner, err);
    if (status)
        return status;
    mgl_paired_bench_device *f = &runner->facts;
    f->name[sizeof f->name - 1] = f->uuid[sizeof f->uuid - 1] = 0;
    f->target.arch[sizeof f->target.arch - 1] = 0;
    *out = (mgl_runner_device){.target = f->target, .memory_free = f->memory_free};
    mgl_format_into(out->name, sizeof out->name, "%s", f->name);
    mgl_format_into(out->uuid, sizeof out->uuid, "%s", f->uuid);
    mgl_format_into(out->sandbox, sizeof out->sandbox, "%s",
                    runner->options.no_sandbox ? "the workers have none (--no-sandbox)"
                                               : runner->sandbox);
    mgl_format_into(out->driver, sizeof out->driver, "%d.%d", f->driver_version / 1000,
                    f->driver_version % 1000 / 10);
    return MGL_OK;
}

static mgl_status check_workloads(const mgl_subject *subject, mgl_error *err)
{
    for (int w = 0; w < subject->workloads.count; w++) {
        const mgl_workload *load = &subject->workloads.list[w];
        if (load->context + MGL_WORKLOAD_TOKENS + 1 > subject->capacity)
            return mgl_fail(err, MGL_USAGE, "workloads",
                            "%d positions and %d tokens behind them need a capacity of %d; it is "
                            "%d",
                            load->context, (int)MGL_WORKLOAD_TOKENS,
                            load->context + MGL_WORKLOAD_TOKENS + 1, subject->capacity);
    }
    return MGL_OK;
}

static bool is_same(const mgl_runner_set *a, const mgl_runner_set *b)
{
    bool same = a->program_count == b->program_count;
    for (int p = 0; p < a->program_count && same; p++)
        same = a->lengths[p] == b->lengths[p] && !memcmp(a->texts[p], b->texts[p], a->lengths[p]);
    return same;
}

/* The number of sequences of a program, from any workload that uses it. */
static int sequences_of(const mgl_subject *subject, const mgl_candidate *candidate, int program)
{
    int w = 0;
    while (w < subject->workloads.count - 1 && candidate->program_of[w] != program)
        w++;
    return subject->workloads.list[w].batch;
}

/* Makes the default, with as many programs as the incumbent, by lowering the campaign's start
 * config. */
static mgl_status make_default(mgl_runner_state *runner, const mgl_candidate *incumbent,
                               mgl_error *err)
{
    const mgl_subject *subject = runner->options.subject;
    mgl_status status = MGL_OK;
    mgl_candidate made = *incumbent;
    made.program_count = 0;
    for (int p = 0; p < incumbent->program_count && !status; p++) {
        mgl_lower_options options = {.dtype = subject->dtype,
                                     .capacity = subject->capacity,
                                     .sequences = sequences_of(subject, incumbent, p)};
        status = mgl_schedule_lower(subject->graph, &subject->target, &options, &subject->start,
                                    &made.programs[p], err);
        if (!status)
            made.program_count++;
    }
    if (!status)
        status = mgl_runner_set_make(subject, &made, ++runner->serials, &runner->standard, err);
    for (int p = 0; p < made.program_count; p++)
        mgl_program_free(made.programs[p]);
    return status;
}

static mgl_status take_incumbent(mgl_runner_state *runner, const mgl_candidate *incumbent,
                                 mgl_error *err)
{
    mgl_runner_set_clear(&runner->standard);
    mgl_runner_set_clear(&runner->incumbent);
    mgl_runner_set_clear(&runner->candidate);
    runner->checked = false;
    mgl_status status = make_default(runner, incumbent, err);
    if (!status)
        status = mgl_runner_set_make(runner->options.subject, incumbent, ++runner->serials,
                                     &runner->incumbent, err);
    if (!status && is_same(&runner->standard, &runner->incumbent))
        runner->incumbent.serial = runner->standard.serial;
    return status;
}

/* Loads the incumbent's programs, which waits for its kernels, while the referee opens its
 * device. */
static mgl_status start_referee(mgl_runner_state *runner, mgl_error *err)
{
    mgl_trial_verdict none = {.outcome = MGL_OUTCOME_OK};
    mgl_status status = mgl_runner_call_worker(runner, MGL_REFEREE, &runner->referee, err);
    for (int p = 0; p < runner->incumbent.program_count && !status; p++)
        status = mgl_runner_place(runner, MGL_INCUMBENT, &runner->incumbent, p, NULL, &none, err);
    if (!status)
        return mgl_runner_await_worker(runner, MGL_REFEREE, &runner->referee, err);
    return end_worker(&runner->referee, status);
}

/* Starts with new workers, so that a device that was lost and returned is detected. An executor
 * that was only asked for its device before the first start is kept. The incumbent's kernels are
 * compiled in parallel. */
static mgl_status start(mgl_runner *self, const mgl_candidate *incumbent, mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    if (runner->incumbent.serial != 0)
        mgl_runner_end_executor(runner);
    mgl_process_close(runner->referee);
    runner->referee = NULL;
    mgl_status status = check_workloads(runner->options.subject, err);
    if (!status)
        status = take_incumbent(runner, incumbent, err);
    if (!status) {
        mgl_runner_prepare(self, incumbent);
        status = ask_device(runner, err);
    }
    if (!status)
        status =
            mgl_runner_set_fits(&runner->incumbent, runner->options.subject, &runner->facts, err);
    return status ? status : start_referee(runner, err);
}

static void close_runner(mgl_runner *self)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    mgl_runner_end_executor(runner);
    mgl_process_close(runner->referee);
    mgl_runner_end_compilers(runner);
    mgl_runner_set_clear(&runner->standard);
    mgl_runner_set_clear(&runner->incumbent);
    mgl_runner_set_clear(&runner->candidate);
    mgl_free(runner->ready);
    mgl_free(runner->device);
    mgl_free(runner->program);
    mgl_free(runner->kernels);
    mgl_free(runner);
}

/* ---- opening --------------------------------------------------------------------------------- */

static uint64_t half_of_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    mgl_cgroup_limits limits;
    mgl_cgroup_read("", &limits);
    uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    return (bytes < limits.memory ? bytes : limits.memory) / 2;
}

/* Half of the processors compile; the other half lowers and proves proposals. */
static int choose_compilers(void)
{
    int half = mgl_parallel_processors() / 2;
    return half < 2 ? 2 : half < MGL_MOST_COMPILERS ? half : MGL_MOST_COMPILERS;
}

/* Parses "hang", "pair:hang" or "real:hang". */
static mgl_status read_fault(mgl_runner_state *runner, const char *fault, mgl_error *err)
{
    static const char *const starts[] = {[MGL_RUNNER_PAIR] = "pair:", [MGL_RUNNER_REAL] = "real:"};
    if (!fault)
        return MGL_OK;
    const char *name = fault;
    for (int d = MGL_RUNNER_PAIR; d <= MGL_RUNNER_REAL; d++) {
        size_t length = strlen(starts[d]);
        if (strncmp(fault, starts[d], length) != 0)
            continue;
        runner->fault_in = (mgl_runner_deed)d;
        name = fault + length;
    }
    if (mgl_fault_parse(name, &runner->fault))
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, fault, "a worker has no such fault");
}

static mgl_status copy_options(mgl_runner_state *runner, const mgl_runner_options *options,
                               mgl_error *err)
{
    runner->options = *options;
    runner->limit_s = options->limit_s > 0 ? options->limit_s : default_limit_s;
    runner->limit_bytes = options->limit_bytes ? options->limit_bytes : half_of_memory();
    runner->device = mgl_strdup(options->device);
    runner->program = mgl_strdup(options->program);
    runner->kernels = options->kernels ? mgl_strdup(options->kernels) : NULL;
    if (!runner->device || !runner->program || (options->kernels && !runner->kernels))
        return mgl_fail_memory(err, strlen(options->device) + 1);
    if (strlen(runner->device) >= sizeof((mgl_wire_hello *)0)->device)
        return mgl_fail(err, MGL_USAGE, runner->device,
                        "is no device: there are cpu, cuda and cuda:1");
    return read_fault(runner, options->fault, err);
}

mgl_status mgl_runner_device_open(const mgl_runner_options *options, mgl_runner **out,
                                  mgl_error *err)
{
    *out = NULL;
    mgl_runner_state *runner = mgl_alloc_zero(1, sizeof *runner);
    if (!runner)
        return mgl_fail_memory(err, sizeof *runner);
    runner->runner = (mgl_runner){.measures = strcmp(options->device, "cpu") != 0,
                                  .executes = true,
                                  .compilers = choose_compilers(),
                                  .get_device = get_device,
                                  .start = start,
                                  .check = check_candidate,
                                  .take = mgl_runner_take,
                                  .look = mgl_runner_look_at,
                                  .under = mgl_runner_run_under,
                                  .pair = measure_pairs,
                                  .floor = mgl_runner_measure_floor,
                                  .decode = decode,
                                  .baseline = mgl_runner_time_baseline,
                                  .promote = mgl_runner_promote,
                                  .prepare = mgl_runner_prepare,
                                  .is_ready = mgl_runner_is_ready,
                                  .close = close_runner};
    mgl_status status = copy_options(runner, options, err);
    if (status)
        close_runner(&runner->runner);
    else
        *out = &runner->runner;
    return status;
}

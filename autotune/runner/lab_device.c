/*
 * The device lab, the parent's side: which workers there are and what is resident in them. Two
 * processes hold a device: the executor runs incumbent and candidate, the referee makes the f32
 * reference and never runs a program of anybody's. Compilers, which need no device, work ahead.
 *
 * All that is remembered stands here: a worker may die at any moment, and the next one gets
 * programs, weights and cache anew when it is asked for something that needs them. What a worker
 * did wrong while a candidate ran is the candidate's verdict, provided that a new worker does
 * better.
 *
 * The other files: lab_check.c (correctness), lab_look.c (what a launch
 * leaves in memory), lab_under.c (what a tool says of a launch), lab_pair.c (times), lab_real.c (a
 * real checkpoint, and the baseline), lab_ahead.c (compiling), lab_set.c (what is kept of a
 * candidate), process.c (one worker), worker.c (the worker itself).
 */
#include "autotune/runner/lab_state.h"

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/parallel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double default_limit_s = 60;
_Static_assert(MGL_REQUEST_COUNT <= (int)MGL_LAB_WAITS, "each kind of request has its place");

/* ---- workers --------------------------------------------------------------------------------- */

static void set_hello(const mgl_lab_state *lab, mgl_worker_role role, mgl_wire_hello *hello)
{
    memset(hello, 0, sizeof *hello);
    mgl_wire_build(hello->build);
    hello->role = (int32_t)role;
    hello->parent = getpid();
    snprintf(hello->device, sizeof hello->device, "%s", lab->device);
    hello->config = lab->options.subject->config;
}

mgl_status mgl_lab_fail(const mgl_answer *answer, mgl_error *err)
{
    if (err)
        *err = answer->error;
    return answer->error.code;
}

static mgl_status greet(const mgl_lab_state *lab, mgl_process *process, mgl_worker_role role,
                        mgl_error *err)
{
    mgl_wire_hello hello;
    set_hello(lab, role, &hello);
    mgl_question question = {.kind = MGL_REQUEST_HELLO,
                             .fixed = &hello,
                             .fixed_length = sizeof hello,
                             .limit_s = MGL_LAB_LONG * lab->limit_s};
    return mgl_process_post(process, &question, err);
}

/* The answer to the greeting: one that is no failure has the device's facts, but for a compiler. */
static mgl_status await_greeting(mgl_lab_state *lab, mgl_process *process, mgl_worker_role role,
                                 mgl_error *err)
{
    mgl_answer answer;
    size_t wanted = role == MGL_COMPILER ? 0 : sizeof lab->facts;
    mgl_status status = mgl_process_await(process, wanted, &answer, err);
    if (!status && answer.error.code)
        status = mgl_lab_fail(&answer, err);
    if (!status && role == MGL_EXECUTOR)
        memcpy(&lab->facts, answer.bytes, sizeof lab->facts);
    mgl_answer_clear(&answer);
    return status;
}

/* What the worker says of itself before it has seen a candidate. */
static mgl_status confine(mgl_lab_state *lab, mgl_process *process, mgl_error *err)
{
    mgl_wire_sandbox found;
    mgl_answer answer;
    mgl_question question = {.kind = MGL_REQUEST_SANDBOX,
                             .bytes = lab->readable,
                             .length = lab->readable ? strlen(lab->readable) : 0,
                             .limit_s = lab->limit_s};
    mgl_status status = mgl_process_ask(process, &question, sizeof found, &answer, err);
    if (!status && answer.error.code)
        status = mgl_lab_fail(&answer, err);
    if (!status) {
        memcpy(&found, answer.bytes, sizeof found);
        found.missing[sizeof found.missing - 1] = 0;
        mgl_format_into(lab->sandbox, sizeof lab->sandbox, "%s%s",
                        found.missing[0] ? "the workers' sandbox is not whole: " : "",
                        found.missing);
    }
    mgl_answer_clear(&answer);
    return status;
}

static mgl_status end_worker(mgl_process **worker, mgl_status status)
{
    if (status) {
        mgl_process_close(*worker);
        *worker = NULL;
    }
    return status;
}

mgl_status mgl_lab_call_worker(mgl_lab_state *lab, mgl_worker_role role, mgl_process **out,
                               mgl_error *err)
{
    mgl_process_options options = {.program = lab->program,
                                   .kernels = lab->kernels,
                                   .abort = lab->options.abort,
                                   .limit_bytes = lab->limit_bytes,
                                   .under = lab->tool ? lab->tool->words : NULL};
    mgl_status status = mgl_check_abort(lab->options.abort, err);
    if (!status)
        status = mgl_process_start(&options, out, err);
    if (!status)
        status = greet(lab, *out, role, err);
    return end_worker(out, status);
}

mgl_status mgl_lab_await_worker(mgl_lab_state *lab, mgl_worker_role role, mgl_process **worker,
                                mgl_error *err)
{
    const bool confined = !lab->options.no_sandbox && !(lab->tool && lab->tool->no_sandbox);
    mgl_status status = await_greeting(lab, *worker, role, err);
    if (!status && confined)
        status = confine(lab, *worker, err);
    return end_worker(worker, status);
}

mgl_status mgl_lab_start_worker(mgl_lab_state *lab, mgl_worker_role role, mgl_process **out,
                                mgl_error *err)
{
    mgl_status status = mgl_lab_call_worker(lab, role, out, err);
    return status ? status : mgl_lab_await_worker(lab, role, out, err);
}

void mgl_lab_end_executor(mgl_lab_state *lab)
{
    mgl_process_close(lab->executor);
    lab->executor = NULL;
    memset(lab->resident, 0, sizeof lab->resident);
}

static mgl_status need_executor(mgl_lab_state *lab, mgl_error *err)
{
    if (mgl_process_lives(lab->executor))
        return MGL_OK;
    mgl_lab_end_executor(lab);
    return mgl_lab_start_worker(lab, MGL_EXECUTOR, &lab->executor, err);
}

void mgl_lab_note_wait(mgl_lab_state *lab, mgl_request_kind kind, double since)
{
    mgl_lab_time *wait = &lab->lab.waits[kind];
    wait->what = mgl_request_name(kind);
    wait->seconds += mgl_clock_s() - since;
    wait->count++;
}

void mgl_lab_note_work(mgl_lab_state *lab, mgl_lab_work work, double seconds)
{
    static const char *const names[MGL_LAB_WORKS] = {"launches", "weights", "reference", "stream"};
    mgl_lab_time *time = &lab->lab.works[work];
    time->what = names[work];
    time->seconds += seconds;
    time->count++;
    lab->lab.busy_s += seconds;
}

mgl_status mgl_lab_ask_process(mgl_lab_state *lab, mgl_process *process,
                               const mgl_question *question, size_t wanted, mgl_answer *out,
                               mgl_error *err)
{
    static const mgl_lab_work works[MGL_REQUEST_COUNT] = {[MGL_REQUEST_SET] = MGL_LAB_WEIGHTS,
                                                          [MGL_REQUEST_RUN] = MGL_LAB_WEIGHTS,
                                                          [MGL_REQUEST_REFER] = MGL_LAB_REFERENCE,
                                                          [MGL_REQUEST_STREAM] = MGL_LAB_STREAM};
    const double began = mgl_clock_s();
    mgl_status status = mgl_process_ask(process, question, wanted, out, err);
    mgl_lab_note_wait(lab, question->kind, began);
    if (!status && out->device_s > 0) /* no worker has worked for longer than it was waited for */
        mgl_lab_note_work(lab, works[question->kind], fmin(out->device_s, mgl_clock_s() - began));
    return status;
}

mgl_status mgl_lab_ask(mgl_lab_state *lab, const mgl_question *question, size_t wanted,
                       mgl_answer *out, mgl_error *err)
{
    *out = (mgl_answer){0};
    mgl_status status = need_executor(lab, err);
    if (!status)
        status = mgl_lab_ask_process(lab, lab->executor, question, wanted, out, err);
    if (!mgl_process_lives(lab->executor))
        mgl_lab_end_executor(lab);
    return status;
}

/* The device as it is now. An executor that died between two requests is nobody's fault: a new one
 * is asked. */
static mgl_status ask_device(mgl_lab_state *lab, mgl_error *err)
{
    mgl_answer answer;
    mgl_question question = {.kind = MGL_REQUEST_DEVICE, .limit_s = lab->limit_s};
    mgl_status status = mgl_lab_ask(lab, &question, sizeof lab->facts, &answer, err);
    if (!status && answer.fate != MGL_FATE_ANSWERED) {
        mgl_answer_clear(&answer);
        status = mgl_lab_ask(lab, &question, sizeof lab->facts, &answer, err);
    }
    if (!status && answer.error.code)
        status = mgl_lab_fail(&answer, err);
    if (!status)
        memcpy(&lab->facts, answer.bytes, sizeof lab->facts);
    mgl_answer_clear(&answer);
    return status;
}

mgl_fault mgl_lab_take_fault(mgl_lab_state *lab, mgl_lab_deed deed)
{
    mgl_fault fault = lab->fault;
    if (lab->fault_in != deed)
        return MGL_FAULT_NONE;
    lab->fault = MGL_FAULT_NONE;
    return fault;
}

mgl_status mgl_lab_arm(mgl_lab_state *lab, mgl_fault fault, mgl_error *err)
{
    mgl_answer answer;
    int32_t number = (int32_t)fault;
    mgl_question question = {.kind = MGL_REQUEST_FAULT,
                             .fixed = &number,
                             .fixed_length = sizeof number,
                             .limit_s = lab->limit_s};
    mgl_status status = mgl_lab_ask(lab, &question, 0, &answer, err);
    if (!status && answer.error.code)
        status = mgl_lab_fail(&answer, err);
    mgl_answer_clear(&answer);
    return status;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static mgl_outcome outcome_of_end(const mgl_answer *a)
{
    enum { KILLED = 9, BUS = 7, SEGMENT = 11 };
    if (a->fate == MGL_FATE_HUNG)
        return MGL_OUTCOME_HANG;
    if (a->fate == MGL_FATE_GREW || a->signal == KILLED) /* memory ran out */
        return MGL_OUTCOME_VM_RESOURCES;
    if (a->signal == SEGMENT || a->signal == BUS)
        return MGL_OUTCOME_ILLEGAL_ADDRESS;
    return MGL_OUTCOME_LAUNCH;
}

/* The driver's own names of what went wrong stand in its messages (vm/cuda/driver.c). */
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

/* What mgl_duel_run finds wrong with a launch that ended (eval/duel.c). */
static mgl_outcome outcome_of_gate(const mgl_answer *a)
{
    if (strstr(a->error.message, "not numbers"))
        return MGL_OUTCOME_NONFINITE;
    if (strstr(a->error.message, "tokens in place of"))
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

/* Refused before anything ran: the worker is as good as before. */
static bool is_harmless(mgl_outcome outcome)
{
    return outcome == MGL_OUTCOME_REJECTED || outcome == MGL_OUTCOME_COMPILE_OTHER ||
           outcome == MGL_OUTCOME_RESOURCE_SHARED || outcome == MGL_OUTCOME_VM_RESOURCES;
}

mgl_status mgl_lab_blame(mgl_lab_state *lab, const mgl_answer *a, mgl_lab_verdict *verdict,
                         mgl_error *err)
{
    lab->killed |= a->killed;
    verdict->outcome = outcome_of(a);
    mgl_diagnostic_of(&a->error, verdict->diagnostic);
    if (a->fate == MGL_FATE_ANSWERED && is_harmless(verdict->outcome))
        return MGL_OK;
    mgl_lab_end_executor(lab);
    return ask_device(lab, err);
}

/* ---- programs and launches ------------------------------------------------------------------- */

static mgl_status take_failure(mgl_lab_state *lab, mgl_side side, const mgl_answer *answer,
                               mgl_lab_verdict *verdict, mgl_error *err)
{
    if (side == MGL_CANDIDATE)
        return mgl_lab_blame(lab, answer, verdict, err);
    mgl_lab_end_executor(lab);
    return mgl_lab_fail(answer, err);
}

/* Positions before those that the first workload of a program makes. */
static int context_of(const mgl_lab_state *lab, const mgl_lab_set *set, int program)
{
    const mgl_workloads *workloads = &lab->options.subject->workloads;
    int w = 0;
    while (w < workloads->count - 1 && set->program_of[w] != program)
        w++;
    return workloads->list[w].context;
}

mgl_status mgl_lab_place(mgl_lab_state *lab, mgl_side side, const mgl_lab_set *set, int program,
                         mgl_wire_facts *facts, mgl_lab_verdict *verdict, mgl_error *err)
{
    mgl_answer answer;
    mgl_wire_set fixed;
    mgl_text bytes = {0};
    mgl_lab_resident *resident = &lab->resident[side];
    if (lab->executor && resident->serial == set->serial && resident->program == program)
        return MGL_OK;
    mgl_status status = mgl_lab_await_kernel(lab, set->keys[program], err);
    if (!status)
        status = mgl_lab_set_write(set, program, &fixed, &bytes, err);
    if (!status) {
        fixed.side = (int32_t)side;
        fixed.seed = lab->expected;
        fixed.context = context_of(lab, set, program);
        const mgl_question question = {.kind = MGL_REQUEST_SET,
                                       .fixed = &fixed,
                                       .bytes = bytes.bytes,
                                       .fixed_length = sizeof fixed,
                                       .length = bytes.length,
                                       .limit_s = MGL_LAB_LONG * lab->limit_s + MGL_LAB_COMPILE_S};
        status = mgl_lab_ask(lab, &question, sizeof *facts, &answer, err);
    }
    mgl_text_clear(&bytes);
    if (status)
        return status;
    *resident = (mgl_lab_resident){0};
    mgl_lab_note_kernel(lab, set->keys[program]);
    if (answer.error.code)
        status = take_failure(lab, side, &answer, verdict, err);
    else
        *resident = (mgl_lab_resident){set->serial, program};
    if (facts && answer.bytes)
        memcpy(facts, answer.bytes, sizeof *facts);
    mgl_answer_clear(&answer);
    return status;
}

mgl_status mgl_lab_launch(mgl_lab_state *lab, const mgl_wire_load *load, int32_t *tokens,
                          double *seconds, mgl_lab_verdict *verdict, mgl_error *err)
{
    mgl_answer answer;
    size_t bytes = (size_t)load->batch * (size_t)load->tokens * sizeof *tokens;
    mgl_question question = {.kind = MGL_REQUEST_RUN,
                             .fixed = load,
                             .fixed_length = sizeof *load,
                             .limit_s = lab->limit_s};
    mgl_status status = mgl_lab_ask(lab, &question, sizeof *seconds + bytes, &answer, err);
    if (status)
        return status;
    if (answer.error.code) {
        status = take_failure(lab, (mgl_side)load->side, &answer, verdict, err);
    } else {
        memcpy(seconds, answer.bytes, sizeof *seconds);
        mgl_lab_note_work(lab, MGL_LAB_LAUNCHES, *seconds);
        memcpy(tokens, (char *)answer.bytes + sizeof *seconds, bytes);
    }
    mgl_answer_clear(&answer);
    return status;
}

/* ---- once more ------------------------------------------------------------------------------- */

/* A worker that somebody killed says nothing of the candidate that it was at work on: the same is
 * done once more, and what comes of that counts, whatever it is. A candidate that has workers
 * killed again and again must not hold a campaign up. */
static mgl_status check_candidate(mgl_lab *self, const mgl_candidate *candidate,
                                  const unsigned char nonce[MGL_SHA256_BYTES], mgl_lab_check *out,
                                  mgl_error *err)
{
    mgl_lab_state *lab = (mgl_lab_state *)self;
    const mgl_lab_check before = *out;
    lab->killed = false;
    mgl_status status = mgl_lab_check_candidate(self, candidate, nonce, out, err);
    if (status || !lab->killed)
        return status;
    *out = before;
    return mgl_lab_check_candidate(self, candidate, nonce, out, err);
}

static mgl_status measure_pairs(mgl_lab *self, int workload, int count, uint64_t seed, bool control,
                                mgl_pair *out, mgl_outcome *outcome,
                                char diagnostic[MGL_MAX_DIAGNOSTIC + 1], mgl_error *err)
{
    mgl_lab_state *lab = (mgl_lab_state *)self;
    lab->killed = false;
    mgl_status status =
        mgl_lab_measure_pairs(self, workload, count, seed, control, out, outcome, diagnostic, err);
    if (status || !lab->killed)
        return status;
    return mgl_lab_measure_pairs(self, workload, count, seed, control, out, outcome, diagnostic,
                                 err);
}

static mgl_status decode(mgl_lab *self, const mgl_real_texts *texts, int program, int sequences,
                         mgl_real_numbers *out, mgl_outcome *outcome,
                         char diagnostic[MGL_MAX_DIAGNOSTIC + 1], mgl_error *err)
{
    mgl_lab_state *lab = (mgl_lab_state *)self;
    lab->killed = false;
    mgl_status status =
        mgl_lab_decode(self, texts, program, sequences, out, outcome, diagnostic, err);
    if (status || !lab->killed)
        return status;
    return mgl_lab_decode(self, texts, program, sequences, out, outcome, diagnostic, err);
}

/* ---- the lab's functions --------------------------------------------------------------------- */

static mgl_status get_device(mgl_lab *self, mgl_lab_device *out, mgl_error *err)
{
    mgl_lab_state *lab = (mgl_lab_state *)self;
    mgl_status status = ask_device(lab, err);
    if (status)
        return status;
    mgl_wire_device *f = &lab->facts;
    f->name[sizeof f->name - 1] = f->uuid[sizeof f->uuid - 1] = f->arch[sizeof f->arch - 1] = 0;
    *out = (mgl_lab_device){.target = {.queues = f->queues, .shared_bytes = f->shared_bytes},
                            .memory_total = f->memory_total,
                            .memory_free = f->memory_free,
                            .l2_bytes = f->l2_bytes};
    mgl_format_into(out->name, sizeof out->name, "%s", f->name);
    mgl_format_into(out->uuid, sizeof out->uuid, "%s", f->uuid);
    mgl_format_into(out->target.arch, sizeof out->target.arch, "%s", f->arch);
    mgl_format_into(out->sandbox, sizeof out->sandbox, "%s",
                    lab->options.no_sandbox ? "the workers have none (--no-sandbox)"
                                            : lab->sandbox);
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

static bool is_same(const mgl_lab_set *a, const mgl_lab_set *b)
{
    bool same = a->program_count == b->program_count;
    for (int p = 0; p < a->program_count && same; p++)
        same = a->lengths[p] == b->lengths[p] && !memcmp(a->texts[p], b->texts[p], a->lengths[p]);
    return same;
}

/* The sequences of a program, whichever workload asks for it. */
static int sequences_of(const mgl_subject *subject, const mgl_candidate *candidate, int program)
{
    int w = 0;
    while (w < subject->workloads.count - 1 && candidate->program_of[w] != program)
        w++;
    return subject->workloads.list[w].batch;
}

/* The default, with as many programs as the incumbent has: what lowering makes of the config that
 * the campaign began with. */
static mgl_status make_default(mgl_lab_state *lab, const mgl_candidate *incumbent, mgl_error *err)
{
    const mgl_subject *subject = lab->options.subject;
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
        status = mgl_lab_set_make(subject, &made, ++lab->serials, &lab->standard, err);
    for (int p = 0; p < made.program_count; p++)
        mgl_program_free(made.programs[p]);
    return status;
}

static mgl_status take_incumbent(mgl_lab_state *lab, const mgl_candidate *incumbent, mgl_error *err)
{
    mgl_lab_set_clear(&lab->standard);
    mgl_lab_set_clear(&lab->incumbent);
    mgl_lab_set_clear(&lab->candidate);
    lab->checked = false;
    mgl_status status = make_default(lab, incumbent, err);
    if (!status)
        status =
            mgl_lab_set_make(lab->options.subject, incumbent, ++lab->serials, &lab->incumbent, err);
    if (!status && is_same(&lab->standard, &lab->incumbent))
        lab->incumbent.serial = lab->standard.serial;
    return status;
}

/* The incumbent's kernels are awaited while the referee opens its device. */
static mgl_status start_referee(mgl_lab_state *lab, mgl_error *err)
{
    mgl_lab_verdict none = {.outcome = MGL_OUTCOME_OK};
    mgl_status status = mgl_lab_call_worker(lab, MGL_REFEREE, &lab->referee, err);
    for (int p = 0; p < lab->incumbent.program_count && !status; p++)
        status = mgl_lab_place(lab, MGL_INCUMBENT, &lab->incumbent, p, NULL, &none, err);
    if (!status)
        return mgl_lab_await_worker(lab, MGL_REFEREE, &lab->referee, err);
    return end_worker(&lab->referee, status);
}

/* From new workers, so that a device that was lost and is back is found: only an executor that was
 * asked for its device alone, before the lab was started first, stays. The incumbent's kernels are
 * compiled beside all of it. */
static mgl_status start(mgl_lab *self, const mgl_candidate *incumbent, mgl_error *err)
{
    mgl_lab_state *lab = (mgl_lab_state *)self;
    if (lab->incumbent.serial != 0)
        mgl_lab_end_executor(lab);
    mgl_process_close(lab->referee);
    lab->referee = NULL;
    mgl_status status = check_workloads(lab->options.subject, err);
    if (!status)
        status = take_incumbent(lab, incumbent, err);
    if (!status) {
        mgl_lab_prepare(self, incumbent);
        status = ask_device(lab, err);
    }
    if (!status)
        status = mgl_lab_set_fits(&lab->incumbent, lab->options.subject, &lab->facts, err);
    return status ? status : start_referee(lab, err);
}

static void close_lab(mgl_lab *self)
{
    mgl_lab_state *lab = (mgl_lab_state *)self;
    mgl_lab_end_executor(lab);
    mgl_process_close(lab->referee);
    mgl_lab_end_compilers(lab);
    mgl_lab_set_clear(&lab->standard);
    mgl_lab_set_clear(&lab->incumbent);
    mgl_lab_set_clear(&lab->candidate);
    mgl_free(lab->ready);
    mgl_free(lab->device);
    mgl_free(lab->program);
    mgl_free(lab->kernels);
    mgl_free(lab);
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

/* Half of the processors: the others propose and prove. */
static int choose_compilers(void)
{
    int half = mgl_parallel_processors() / 2;
    return half < 2 ? 2 : half < MGL_MOST_COMPILERS ? half : MGL_MOST_COMPILERS;
}

/* "hang", "pair:hang" or "real:hang". */
static mgl_status read_fault(mgl_lab_state *lab, const char *fault, mgl_error *err)
{
    static const char *const starts[] = {[MGL_LAB_PAIR] = "pair:", [MGL_LAB_REAL] = "real:"};
    if (!fault)
        return MGL_OK;
    const char *name = fault;
    for (int d = MGL_LAB_PAIR; d <= MGL_LAB_REAL; d++) {
        size_t length = strlen(starts[d]);
        if (strncmp(fault, starts[d], length) != 0)
            continue;
        lab->fault_in = (mgl_lab_deed)d;
        name = fault + length;
    }
    if (mgl_fault_parse(name, &lab->fault))
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, fault, "a worker has no such fault");
}

static mgl_status copy_options(mgl_lab_state *lab, const mgl_lab_options *options, mgl_error *err)
{
    lab->options = *options;
    lab->limit_s = options->limit_s > 0 ? options->limit_s : default_limit_s;
    lab->limit_bytes = options->limit_bytes ? options->limit_bytes : half_of_memory();
    lab->device = mgl_strdup(options->device);
    lab->program = mgl_strdup(options->program);
    lab->kernels = options->kernels ? mgl_strdup(options->kernels) : NULL;
    if (!lab->device || !lab->program || (options->kernels && !lab->kernels))
        return mgl_fail_memory(err, strlen(options->device) + 1);
    if (strlen(lab->device) >= sizeof((mgl_wire_hello *)0)->device)
        return mgl_fail(err, MGL_USAGE, lab->device,
                        "is no device: there are cpu, cuda and cuda:1");
    return read_fault(lab, options->fault, err);
}

mgl_status mgl_lab_device_open(const mgl_lab_options *options, mgl_lab **out, mgl_error *err)
{
    *out = NULL;
    mgl_lab_state *lab = mgl_alloc_zero(1, sizeof *lab);
    if (!lab)
        return mgl_fail_memory(err, sizeof *lab);
    lab->lab = (mgl_lab){.measures = strcmp(options->device, "cpu") != 0,
                         .executes = true,
                         .compilers = choose_compilers(),
                         .get_device = get_device,
                         .start = start,
                         .check = check_candidate,
                         .take = mgl_lab_take,
                         .look = mgl_lab_look_at,
                         .under = mgl_lab_run_under,
                         .pair = measure_pairs,
                         .floor = mgl_lab_measure_floor,
                         .decode = decode,
                         .baseline = mgl_lab_time_baseline,
                         .promote = mgl_lab_promote,
                         .prepare = mgl_lab_prepare,
                         .is_ready = mgl_lab_is_ready,
                         .close = close_lab};
    mgl_status status = copy_options(lab, options, err);
    if (status)
        close_lab(&lab->lab);
    else
        *out = &lab->lab;
    return status;
}

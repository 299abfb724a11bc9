/*
 * Runs a request on the CUDA machine in one cooperative launch. The host uploads the launch state,
 * starts the kernel, and polls pinned memory to deliver tokens until the kernel ends. Implements
 * mgl_cuda_run, the logits readers and mgl_cuda_get_trace.
 */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "schedule/step.h"
#include "schedule/variant_shapes.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/encode.h"
#include "vm/cuda/machine.h"

enum { POLL_NS = 20000 };

/* Bytes of a (sequences, capacity) array of words. */
static size_t word_bytes(const mgl_cuda_vm *vm)
{
    const mgl_limits *limits = &vm->vm.program->limits;
    return (size_t)limits->sequences * (size_t)limits->capacity * sizeof(int32_t);
}

static mgl_status upload(mgl_cuda_vm *vm, int buffer, const void *from, size_t bytes,
                         mgl_error *err)
{
    return mgl_cu_check(vm->cu, vm->cu->copy_in(vm->buffers[buffer], from, bytes),
                        "copying to the device", err);
}

static mgl_status fill(mgl_cuda_vm *vm, mgl_cu_address at, unsigned char value, size_t bytes,
                       mgl_error *err)
{
    if (bytes == 0)
        return MGL_OK;
    return mgl_cu_check(vm->cu, vm->cu->memory_set(at, value, bytes), "clearing device memory",
                        err);
}

/* Uploads the prompts' token counts for sequences with penalties. Counts of other sequences are
 * 0. */
static mgl_status count_prompts(mgl_cuda_vm *vm, const mgl_vm_request *request, mgl_error *err)
{
    const size_t bytes = (size_t)vm->vm.program->geometry.vocab * sizeof *vm->counts;
    mgl_cu_address at = vm->io.counts < 0 ? 0 : vm->buffers[vm->io.counts];
    mgl_status status = MGL_OK;
    if (vm->io.counts >= 0)
        status = fill(vm, at, 0, bytes * (size_t)vm->vm.program->limits.sequences, err);
    for (int s = 0; s < request->count && vm->io.counts >= 0 && !status; s++, at += bytes) {
        if (!mgl_vm_is_penalized(&request->sequences[s]))
            continue;
        memset(vm->counts, 0, bytes);
        mgl_vm_count_prompt(&request->sequences[s], vm->counts);
        status = mgl_cu_check(vm->cu, vm->cu->copy_in(at, vm->counts, bytes),
                              "copying to the device", err);
    }
    return status;
}

/* Resets everything that a launch changes. */
static mgl_status reset(mgl_cuda_vm *vm, const mgl_vm_request *request, mgl_error *err)
{
    const mgl_limits *limits = &vm->vm.program->limits;
    struct {
        int buffer;
        const void *from;
        size_t words;
    } parts[] = {
        {vm->io.control, vm->control, MGL_CONTROL_WORDS},
        {vm->io.table, vm->table, (size_t)mgl_limits_most(limits) * MGL_TABLE_WORDS},
        {vm->io.sequence, vm->sequences, (size_t)limits->sequences * MGL_SEQUENCE_WORDS},
        {vm->io.prompt, vm->prompt, word_bytes(vm) / sizeof(int32_t)},
    };
    mgl_status status = fill(vm, vm->counters, 0, vm->counter_bytes, err);
    if (!status)
        status = fill(vm, vm->flags, 0xFF, vm->flag_bytes, err);
    if (!status)
        status = fill(vm, vm->trace, 0, vm->trace_bytes, err);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !status; i++)
        status = upload(vm, parts[i].buffer, parts[i].from, parts[i].words * sizeof(int32_t), err);
    if (!status)
        status = fill(vm, vm->buffers[vm->io.output], 0, word_bytes(vm), err);
    if (!status)
        status = fill(vm, vm->buffers[vm->io.score], 0, word_bytes(vm), err);
    if (!status)
        status = count_prompts(vm, request, err);
    memset((void *)(uintptr_t)vm->pinned, 0, vm->pinned_bytes);
    /* the default-stream operations above must finish before the kernel starts on its own stream */
    return status
               ? status
               : mgl_cu_check(vm->cu, vm->cu->stream_synchronize(NULL), "starting the launch", err);
}

/* Grows the pinned memory if sample reports more than tokens. */
static mgl_status make_room(mgl_cuda_vm *vm, const mgl_vm_request *request, mgl_error *err)
{
    void *pinned = NULL;
    mgl_cu_address address = 0;
    vm->pinned_bytes =
        sizeof(mgl_cuda_pinned) + word_bytes(vm) * (1 + mgl_vm_likely_words(request));
    if (vm->pinned_bytes <= vm->pinned_room)
        return MGL_OK;
    mgl_status status = mgl_cu_check(
        vm->cu, vm->cu->pinned_alloc(&pinned, vm->pinned_bytes, MGL_CU_PINNED_PORTABLE_MAPPED),
        "allocating pinned memory", err);
    if (!status)
        status = mgl_cu_check(vm->cu, vm->cu->pinned_address(&address, pinned, 0),
                              "mapping pinned memory", err);
    if (status) {
        if (pinned)
            vm->cu->pinned_free(pinned);
        return status;
    }
    vm->cu->pinned_free(vm->pinned);
    vm->pinned = pinned;
    vm->pinned_address = address;
    vm->pinned_room = vm->pinned_bytes;
    return MGL_OK;
}

static mgl_status launch(mgl_cuda_vm *vm, mgl_error *err)
{
    const mgl_program *program = vm->whole;
    mgl_device_launch block = {.queues = vm->queues,
                               .records = vm->records,
                               .counters = vm->counters,
                               .stopped = vm->counters + (uint64_t)program->counter_count *
                                                             MGL_COUNTER_WORDS * sizeof(uint32_t),
                               .host = vm->pinned_address + offsetof(mgl_cuda_pinned, host),
                               .reports = vm->pinned_address + offsetof(mgl_cuda_pinned, reports),
                               .stream = vm->pinned_address + offsetof(mgl_cuda_pinned, stream),
                               .trace = vm->trace_epochs > 0 ? vm->trace : 0,
                               .trace_epochs = (uint32_t)vm->trace_epochs,
                               .tasks = (uint32_t)program->task_count,
                               .sequences = (uint32_t)program->limits.sequences,
                               .capacity = (uint32_t)program->limits.capacity,
                               .pending = mgl_cuda_ring_pages(program, program->exec.pending_bytes),
                               .delay_seed = vm->delay_seed,
                               .deadline_ns = (uint64_t)vm->deadline_ms * 1000000};
    void *arguments[] = {&block};
    int result = vm->cu->event_record(vm->events[0], vm->stream);
    if (!result)
        result = vm->cu->launch_cooperative(vm->function, (unsigned)program->queue_count, 1, 1,
                                            (unsigned)(program->exec.warps + MGL_OTHER_WARPS) * 32,
                                            1, 1, (unsigned)mgl_cuda_shared_bytes(program),
                                            vm->stream, arguments);
    if (!result)
        result = vm->cu->event_record(vm->events[1], vm->stream);
    return mgl_cu_check(vm->cu, result, "launching the kernel", err);
}

_Static_assert(MGL_HOST_ASKED((int)MGL_ASKED_WORDS) <= (int)MGL_HOST_WORDS,
               "there is a word for all that the host asks");

/* Host view of a launch in progress. */
struct progress {
    mgl_cuda_vm *vm;
    const mgl_vm_request *request;
    mgl_vm_delivery delivery;
};

/* What sample reported about the next token of a sequence; NULL if not requested. */
static const volatile int32_t *likely_of(const struct progress *p, int s)
{
    const mgl_limits *limits = &p->vm->vm.program->limits;
    size_t words = mgl_vm_likely_words(p->request), capacity = (size_t)limits->capacity;
    size_t at = (size_t)s * capacity + (size_t)p->delivery.given[s];
    return words ? p->vm->pinned->stream + (size_t)limits->sequences * capacity + at * words : NULL;
}

/* Whether all words of the report have arrived; they arrive in any order. */
static bool has_landed(const struct progress *p, const volatile int32_t *likely)
{
    bool landed = !likely || likely[MGL_LIKELY_OWN] != 0;
    for (int i = 0; likely && i < p->delivery.likely; i++)
        landed &=
            likely[MGL_LIKELY_IDS + i] != 0 && likely[MGL_LIKELY_IDS + p->request->likely + i] != 0;
    return landed;
}

/* Sends the host's requests to the kernel. */
static void ask(const struct progress *p)
{
    for (int i = 0; i < MGL_ASKED_WORDS; i++)
        p->vm->pinned->host[MGL_HOST_ASKED(i)] = p->delivery.asked[i];
}

/* Delivers the tokens that have appeared since the last poll. */
static void hand_out(struct progress *p)
{
    int capacity = p->vm->vm.program->limits.capacity;
    mgl_vm_delivery *d = &p->delivery;
    for (int s = 0; s < p->request->count; s++)
        while (!mgl_vm_is_stopped(d, s) && d->given[s] < p->request->sequences[s].max_new &&
               d->given[s] < capacity) {
            int32_t word =
                p->vm->pinned->stream[(size_t)s * (size_t)capacity + (size_t)d->given[s]];
            const volatile int32_t *likely = likely_of(p, s);
            if (word == 0 || !has_landed(p, likely))
                break;
            mgl_vm_give(d, p->request, s, word - 1, likely);
        }
    if (p->request->abort && *p->request->abort)
        d->asked[MGL_ASKED_ABORT] = 1;
    ask(p);
}

/* Polls until the kernel ends. */
static mgl_status follow(struct progress *p, mgl_error *err)
{
    const struct timespec pause = {0, POLL_NS};
    int result;
    while ((result = p->vm->cu->stream_query(p->vm->stream)) == MGL_CU_NOT_READY) {
        hand_out(p);
        nanosleep(&pause, NULL);
    }
    mgl_status status = mgl_cu_check(p->vm->cu, result, "running the kernel", err);
    if (!status)
        hand_out(p);
    return status;
}

static mgl_status download(mgl_cuda_vm *vm, void *to, int buffer, size_t bytes, mgl_error *err)
{
    return mgl_cu_check(vm->cu, vm->cu->copy_out(to, vm->buffers[buffer], bytes),
                        "copying from the device", err);
}

static mgl_status collect(mgl_cuda_vm *vm, const mgl_vm_request *request, mgl_vm_report *out,
                          mgl_error *err)
{
    const mgl_limits *limits = &vm->vm.program->limits;
    size_t sequences = (size_t)limits->sequences * MGL_SEQUENCE_WORDS * sizeof(int32_t);
    size_t capacity = (size_t)limits->capacity;
    int32_t control[MGL_CONTROL_WORDS];
    mgl_status status = download(vm, control, vm->io.control, sizeof control, err);
    if (!status)
        status = download(vm, vm->sequences, vm->io.sequence, sequences, err);
    if (!status)
        status = download(vm, vm->output, vm->io.output, word_bytes(vm), err);
    if (!status)
        status = download(vm, vm->score, vm->io.score, word_bytes(vm), err);
    if (status)
        return status;
    out->epochs = control[MGL_CONTROL_EPOCH];
    for (int s = 0; s < request->count; s++) {
        const int32_t *q = vm->sequences + s * MGL_SEQUENCE_WORDS;
        out->output[s] = vm->output + (size_t)s * capacity;
        out->produced[s] = q[MGL_SEQUENCE_PRODUCED];
        out->state[s] = q[MGL_SEQUENCE_STATE];
        out->written[s] = q[MGL_SEQUENCE_LENGTH]; /* excludes the table of an epoch that did not
                                                     run */
        out->score[s] = vm->score + (size_t)s * capacity;
    }
    vm->sampled_list = vm->pinned->host[MGL_HOST_SAMPLED] / MGL_HOST_SECOND;
    vm->sampled = vm->pinned->host[MGL_HOST_SAMPLED] % MGL_HOST_SECOND - 1;
    return MGL_OK;
}

static mgl_status run(mgl_cuda_vm *vm, const mgl_vm_request *request, mgl_vm_report *out,
                      mgl_error *err)
{
    struct progress progress = {
        .vm = vm, .request = request, .delivery = mgl_vm_begin_delivery(vm->vm.program, request)};
    mgl_status status = make_room(vm, request, err);
    if (!status)
        status = reset(vm, request, err);
    if (!status)
        ask(&progress);
    double start = mgl_clock_s();
    if (!status)
        status = launch(vm, err);
    if (status)
        return status;
    out->launches = 1;
    vm->delay_seed += vm->delay_seed > 0;
    status = follow(&progress, err);
    double end = mgl_clock_s();
    float milliseconds = 0;
    if (!status)
        status =
            mgl_cu_check(vm->cu, vm->cu->event_elapsed(&milliseconds, vm->events[0], vm->events[1]),
                         "timing the kernel", err);
    out->device_s = (double)milliseconds * 1e-3;
    double first = progress.delivery.first_s;
    out->prefill_s = (first > 0 ? first : end) - start;
    out->decode_s = end - start - out->prefill_s;
    if (!status)
        status = mgl_cuda_read_reports(vm, err);
    if (!status)
        status = collect(vm, request, out, err);
    if (!status)
        mgl_vm_cut_stopped(&progress.delivery, request, out);
    return status;
}

mgl_status mgl_cuda_run(mgl_vm *base, const mgl_vm_request *request, mgl_vm_report *out,
                        mgl_error *err)
{
    mgl_cuda_vm *vm = (mgl_cuda_vm *)base;
    *out = (mgl_vm_report){0};
    vm->sampled = -1;
    mgl_status status = mgl_vm_prepare(base->program, request, vm->control, vm->table,
                                       vm->sequences, vm->prompt, err);
    if (!status)
        status = mgl_cuda_enter(vm, err);
    if (status)
        return status;
    status = run(vm, request, out, err);
    mgl_cuda_leave(vm);
    return status;
}

mgl_status mgl_cuda_get_logits(mgl_vm *base, float *logits, mgl_error *err)
{
    const mgl_cuda_vm *vm = (const mgl_cuda_vm *)base;
    if (vm->sampled < 0)
        return mgl_fail(err, MGL_USAGE, NULL, "the last run sampled no token: there are no logits");
    return mgl_cuda_get_row_logits(base, vm->sampled, logits, err);
}

mgl_status mgl_cuda_get_row_logits(mgl_vm *base, int row, float *logits, mgl_error *err)
{
    mgl_cuda_vm *vm = (mgl_cuda_vm *)base;
    size_t bytes = (size_t)base->program->geometry.vocab * sizeof *logits;
    if (row < 0 || row > vm->sampled)
        return mgl_fail(err, MGL_USAGE, NULL, "row %d was not sampled in the last epoch", row);
    mgl_status status = mgl_cuda_enter(vm, err);
    if (status)
        return status;
    mgl_cu_address from = vm->buffers[vm->logits[vm->sampled_list]] + (uint64_t)row * bytes;
    status =
        mgl_cu_check(vm->cu, vm->cu->copy_out(logits, from, bytes), "copying from the device", err);
    mgl_cuda_leave(vm);
    return status;
}

mgl_status mgl_cuda_get_trace(mgl_vm *base, mgl_device_event **out, mgl_error *err)
{
    mgl_cuda_vm *vm = (mgl_cuda_vm *)base;
    if (vm->trace_epochs == 0 || base->lost)
        return mgl_fail(err, MGL_USAGE, NULL, "the machine has no trace");
    mgl_device_event *events = mgl_alloc(vm->trace_bytes);
    if (!events)
        return mgl_fail_memory(err, vm->trace_bytes);
    mgl_status status = mgl_cuda_enter(vm, err);
    if (!status) {
        status = mgl_cu_check(vm->cu, vm->cu->copy_out(events, vm->trace, vm->trace_bytes),
                              "copying from the device", err);
        mgl_cuda_leave(vm);
    }
    if (status)
        mgl_free(events);
    else
        *out = events;
    return status;
}

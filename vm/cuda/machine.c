/*
 * Opens and closes the CUDA machine. One device allocation (the arena) holds tapes, buffers,
 * records and counters. A machine with an owner uses the tapes, const buffers and caches of the
 * owner's arena instead. The weights are packed and uploaded while the kernel compiles on another
 * thread, since each takes seconds and neither needs the other. `abort` cancels opening at any
 * point except within a driver call. Implements mgl_vm_cuda_open (vm.h).
 */
#include "vm/cuda/machine.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "schedule/step.h"
#include "schedule/variant_shapes.h"
#include "validator/validator.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/encode.h"

enum { ALIGNMENT = 256 };

mgl_status mgl_cuda_enter(mgl_cuda_vm *vm, mgl_error *err)
{
    mgl_cu_begin();
    mgl_status status = mgl_cu_check(vm->cu, vm->cu->context_push(vm->context),
                                     "entering the device's context", err);
    if (status)
        mgl_cu_end();
    return status;
}

void mgl_cuda_leave(mgl_cuda_vm *vm)
{
    void *context;
    vm->cu->context_pop(&context);
    mgl_cu_end();
}

/* Releases everything; works on a partially opened machine. */
static void close_machine(mgl_vm *base)
{
    mgl_cuda_vm *vm = (mgl_cuda_vm *)base;
    const mgl_cu *cu = vm->cu;
    if (vm->context && !mgl_cuda_enter(vm, NULL)) {
        for (int i = 0; i < 2; i++)
            if (vm->events[i])
                cu->event_destroy(vm->events[i]);
        if (vm->stream)
            cu->stream_destroy(vm->stream);
        if (vm->pinned)
            cu->pinned_free(vm->pinned);
        if (vm->arena)
            cu->memory_free(vm->arena);
        if (vm->module)
            cu->module_unload(vm->module);
        mgl_cuda_leave(vm);
    }
    mgl_cu_begin();
    if (vm->context)
        cu->context_release(vm->device);
    mgl_cu_end();
    mgl_joined_clear(&vm->joined);
    mgl_free(vm->buffers);
    mgl_free(vm->tapes);
    mgl_free(vm->control);
    mgl_free(vm->table);
    mgl_free(vm->sequences);
    mgl_free(vm->prompt);
    mgl_free(vm->output);
    mgl_free(vm->counts);
    mgl_free(vm->score);
    mgl_free(vm);
}

static void get_facts(const mgl_vm *base, mgl_vm_facts *out)
{
    *out = ((const mgl_cuda_vm *)base)->facts;
}

/* ---- device and kernel ---------------------------------------------------------------------- */

/* Finds the device, checks its resources against the program, and opens its context. */
static mgl_status open_device(mgl_cuda_vm *vm, int ordinal, mgl_target *live, mgl_error *err)
{
    const mgl_program *program = vm->vm.program;
    double start = mgl_clock_s();
    int cooperative = 0;
    mgl_status status = mgl_cuda_live_target(ordinal, live, err);
    if (!status)
        status = mgl_cu_open(&vm->cu, err);
    if (!status)
        status = mgl_cu_check(vm->cu, vm->cu->device_get(&vm->device, ordinal),
                              "finding the device", err);
    if (status)
        return status;
    const mgl_cu *cu = vm->cu;
    cu->device_name(vm->name, (int)sizeof vm->name, vm->device);
    cu->device_attribute(&vm->sms, MGL_CU_DEVICE_SM_COUNT, vm->device);
    cu->device_attribute(&cooperative, MGL_CU_DEVICE_COOPERATIVE, vm->device);
    if (!cooperative)
        return mgl_fail(err, MGL_DEVICE, vm->name,
                        "the device has no cooperative launch: take another GPU" MGL_HINT_CPU);
    size_t shared = mgl_cuda_shared_bytes(program);
    if (shared > (size_t)live->shared_bytes)
        return mgl_fail(
            err, MGL_DEVICE, vm->name,
            "the program needs %zu bytes of shared memory a block, the device has %lld: "
            "take fewer ring_pages or stage_bytes",
            shared, (long long)live->shared_bytes);
    void *context = NULL;
    mgl_cu_begin();
    status = mgl_cu_check(cu, cu->context_retain(&context, vm->device),
                          "opening the device's context", err);
    mgl_cu_end();
    vm->context = status ? NULL : context;
    vm->facts.driver_s = mgl_clock_s() - start;
    snprintf(vm->facts.device, sizeof vm->facts.device, "%s", vm->name);
    return status;
}

static mgl_status load_image(mgl_cuda_vm *vm, const void *image, mgl_error *err)
{
    char log[1024] = "";
    int options[2] = {MGL_CU_JIT_ERROR_LOG, MGL_CU_JIT_ERROR_LOG_BYTES};
    void *values[2] = {log, (void *)(uintptr_t)sizeof log};
    void *module = NULL;
    int result = vm->cu->module_load(&module, image, 2, options, values);
    vm->module = result ? NULL : module;
    mgl_status status = mgl_cu_check(vm->cu, result, "loading the kernel", err);
    if (status)
        mgl_error_add_lines(err, log);
    return status;
}

/* Checks that all queues can be co-resident, before any launch depends on it. */
static mgl_status check_occupancy(mgl_cuda_vm *vm, mgl_error *err)
{
    const mgl_program *program = vm->vm.program;
    int blocks = 0, threads = (program->exec.warps + MGL_OTHER_WARPS) * 32,
        queues = program->queue_count;
    size_t shared = mgl_cuda_shared_bytes(program);
    mgl_status status =
        mgl_cu_check(vm->cu, vm->cu->occupancy(&blocks, vm->function, threads, shared),
                     "asking for the kernel's occupancy", err);
    vm->blocks = blocks * vm->sms;
    if (!status && vm->blocks < queues)
        status = mgl_fail(err, MGL_DEVICE, vm->name,
                          "the program has %d queues, but only %d blocks of %d threads and %zu "
                          "bytes of shared memory fit the device's %d multiprocessors at once: "
                          "lower for fewer queues",
                          queues, vm->blocks, threads, shared, vm->sms);
    return status;
}

unsigned mgl_cuda_extras(const mgl_cuda_vm *vm)
{
    return (vm->trace_epochs > 0 ? (unsigned)MGL_CUDA_TRACE : 0) |
           (vm->delay_seed > 0 ? (unsigned)MGL_CUDA_DELAYS : 0);
}

/* The precompiled kernel that matches the architecture and the current sources, or NULL. */
static const mgl_vm_kernel *find_kernel(const mgl_cuda_vm *vm, const mgl_vm_options *options)
{
    char key[MGL_SHA256_HEX];
    if (options->kernel_count)
        mgl_cuda_kernel_key(vm->vm.program, vm->arch, mgl_cuda_extras(vm), key);
    for (int i = 0; i < options->kernel_count; i++)
        if (!strcmp(options->kernels[i].arch, vm->arch) && !strcmp(options->kernels[i].key, key))
            return &options->kernels[i];
    return NULL;
}

/* A kernel being prepared. */
typedef struct making {
    const mgl_vm_kernel *ready;     /* precompiled kernel, or NULL */
    mgl_cuda_compilation *compiler; /* running compilation, if there is no precompiled kernel */
} making;

/* Finds a precompiled kernel, or starts the compiler. Needs no device. */
static mgl_status start_kernel(const mgl_cuda_vm *vm, const mgl_vm_options *options, making *m,
                               mgl_error *err)
{
    *m = (making){.ready = find_kernel(vm, options)};
    return m->ready ? MGL_OK
                    : mgl_cuda_compile_start(vm->vm.program, vm->arch, mgl_cuda_extras(vm),
                                             &m->compiler, err);
}

/* Reads the loaded kernel's resource use and checks that the device can provide it. */
static mgl_status set_up_kernel(mgl_cuda_vm *vm, mgl_error *err)
{
    const mgl_cu *cu = vm->cu;
    mgl_status status = mgl_cu_check(cu, cu->module_function(&vm->function, vm->module, "megalith"),
                                     "finding the kernel", err);
    if (status)
        return status;
    size_t shared = mgl_cuda_shared_bytes(vm->vm.program);
    cu->function_get(&vm->facts.registers, MGL_CU_FUNCTION_REGISTERS, vm->function);
    cu->function_get(&vm->facts.spill_bytes, MGL_CU_FUNCTION_LOCAL_BYTES, vm->function);
    vm->facts.shared_bytes = (int)shared;
    status = mgl_cu_check(
        cu, cu->function_set(vm->function, MGL_CU_FUNCTION_DYNAMIC_SHARED, (int)shared),
        "asking for shared memory", err);
    return status ? status : check_occupancy(vm, err);
}

static mgl_status load_kernel(mgl_cuda_vm *vm, const void *image, mgl_error *err)
{
    double start = mgl_clock_s();
    mgl_status status = load_image(vm, image, err);
    if (!status)
        status = set_up_kernel(vm, err);
    vm->facts.kernel_s = mgl_clock_s() - start;
    return status;
}

/* Waits for the compiler, if it was started, and loads the kernel. If `status` is an error, the
 * machine has failed already and only waits. */
static mgl_status finish_kernel(mgl_cuda_vm *vm, const making *m, const mgl_vm_options *options,
                                mgl_status status, mgl_error *err)
{
    mgl_cuda_watch watch = {options->abort, options->on_stage, options->stage_user};
    mgl_cuda_image image = {0};
    double start = mgl_clock_s();
    mgl_status made =
        m->ready ? MGL_OK
                 : mgl_cuda_compile_finish(m->compiler, &watch, &image, status ? NULL : err);
    if (!status)
        status = made ? made : mgl_check_abort(options->abort, err);
    if (!status)
        status = load_kernel(vm, m->ready ? m->ready->bytes : image.bytes, err);
    vm->facts.kernel_s += image.total_s;
    vm->facts.nvrtc_s = image.compile_s;
    mgl_cuda_image_clear(&image);
    vm->facts.compile_s = mgl_clock_s() - start;
    return status;
}

/* ---- memory --------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Reserves `bytes` in the arena and returns their offset. */
static uint64_t take(mgl_cuda_vm *vm, uint64_t bytes)
{
    uint64_t at = vm->arena_bytes;
    vm->arena_bytes += round_up(bytes);
    return at;
}

/* Like `take`, with a guard at the end (mgl_vm_poison). */
static uint64_t take_guarded(mgl_cuda_vm *vm, uint64_t bytes)
{
    return take(vm, bytes + MGL_GUARD_BYTES);
}

/* Whether a machine with an owner uses the owner's buffer. */
static bool is_owned(const mgl_cuda_vm *vm, const mgl_buffer *buffer)
{
    return mgl_cuda_owner(vm) && mgl_validator_is_shared(buffer);
}

/* Address of the owner's buffer of that name, which it has (mgl_validator_check_pair). */
static uint64_t owned_address(const mgl_cuda_vm *owner, const char *name)
{
    int i = 0;
    while (strcmp(owner->whole->buffers[i].name, name) != 0)
        i++;
    return owner->buffers[i];
}

/* Assigns every item an offset in the arena. */
static void place(mgl_cuda_vm *vm, size_t record_bytes)
{
    const mgl_program *program = vm->whole;
    vm->arena_bytes = 0;
    vm->facts.tape_bytes = vm->facts.const_bytes = vm->facts.kv_bytes = 0;
    for (int q = 0; q < program->queue_count && !mgl_cuda_owner(vm); q++) {
        size_t bytes = (size_t)program->queues[q].tape_bytes;
        vm->tapes[q] = take_guarded(vm, bytes);
        vm->facts.tape_bytes += bytes;
    }
    for (int i = 0; i < program->buffer_count; i++) {
        const mgl_buffer *b = &program->buffers[i];
        size_t bytes = mgl_buffer_bytes(b);
        if (b->sets > 1 || is_owned(vm, b))
            continue;
        vm->buffers[i] = take_guarded(vm, bytes);
        vm->facts.const_bytes += b->space == MGL_SPACE_CONST ? bytes : 0;
        vm->facts.kv_bytes += b->space == MGL_SPACE_KV ? bytes : 0;
    }
    vm->flags = vm->arena_bytes;
    for (int i = 0; i < program->buffer_count; i++)
        if (program->buffers[i].sets > 1)
            vm->buffers[i] = take_guarded(vm, mgl_buffer_bytes(&program->buffers[i]) *
                                                  (size_t)program->buffers[i].sets);
    vm->flag_bytes = vm->arena_bytes - vm->flags;
    vm->trace_bytes =
        (size_t)vm->trace_epochs * (size_t)program->task_count * sizeof(mgl_device_event);
    vm->trace = take(vm, vm->trace_bytes);
    vm->records = take(vm, record_bytes);
    vm->queues = take(vm, (size_t)(program->queue_count * mgl_cuda_lists(vm->vm.program)) *
                              sizeof(mgl_device_queue));
    vm->counter_bytes = ((size_t)program->counter_count + 1) * MGL_COUNTER_WORDS * sizeof(uint32_t);
    vm->counters = take(vm, vm->counter_bytes);
}

/* Extra arena bytes, so that other programs of the model fit after an exchange. All programs have
 * the same weights. A tape ends with less than a page of padding, and a program has at most as many
 * tapes as co-resident blocks, one or two per multiprocessor. Records, counters and activations are
 * small. Without `fill`, an exchange copies to a second arena anyway. */
static size_t slack_of(const mgl_cuda_vm *vm)
{
    size_t pages = 2 * (size_t)vm->sms * (size_t)vm->vm.program->exec.page_bytes;
    size_t weights = vm->facts.tape_bytes + vm->facts.const_bytes + vm->facts.kv_bytes;
    return vm->fill ? round_up(pages + (vm->arena_bytes - weights) / 4) : 0;
}

mgl_status mgl_cuda_allocate(mgl_cuda_vm *vm, mgl_error *err)
{
    size_t free_bytes = 0, total = 0, slack = slack_of(vm);
    mgl_status status = mgl_cu_check(vm->cu, vm->cu->memory_info(&free_bytes, &total),
                                     "asking for free memory", err);
    if (status)
        return status;
    vm->arena_room = vm->arena_bytes + (vm->arena_bytes + slack <= free_bytes ? slack : 0);
    int result = vm->arena_bytes > free_bytes ? MGL_CU_OUT_OF_MEMORY
                                              : vm->cu->memory_alloc(&vm->arena, vm->arena_room);
    if (result == MGL_CU_OUT_OF_MEMORY)
        return mgl_fail(err, MGL_DEVICE, vm->name,
                        "too little device memory: %zu bytes are needed (%zu of weights, %zu of KV "
                        "cache) and %zu are free; a smaller --capacity or --dtype needs less",
                        vm->arena_bytes, vm->facts.tape_bytes + vm->facts.const_bytes,
                        vm->facts.kv_bytes, free_bytes);
    return mgl_cu_check(vm->cu, result, "allocating device memory", err);
}

/* Turns offsets into addresses and clears the arena. */
static mgl_status anchor(mgl_cuda_vm *vm, mgl_error *err)
{
    const mgl_program *program = vm->whole;
    const mgl_cuda_vm *owner = mgl_cuda_owner(vm);
    for (int q = 0; q < program->queue_count; q++)
        vm->tapes[q] = owner ? owner->tapes[q] : vm->tapes[q] + vm->arena;
    for (int i = 0; i < program->buffer_count; i++)
        vm->buffers[i] = is_owned(vm, &program->buffers[i])
                             ? owned_address(owner, program->buffers[i].name)
                             : vm->buffers[i] + vm->arena;
    vm->flags += vm->arena;
    vm->trace += vm->arena;
    vm->records += vm->arena;
    vm->queues += vm->arena;
    vm->counters += vm->arena;
    return mgl_cu_check(vm->cu, vm->cu->memory_set(vm->arena, 0, vm->arena_bytes),
                        "clearing device memory", err);
}

static mgl_status upload(mgl_cuda_vm *vm, mgl_cu_address to, const void *from, size_t bytes,
                         mgl_error *err)
{
    return mgl_cu_check(vm->cu, vm->cu->copy_in(to, from, bytes), "copying to the device", err);
}

/* Encodes the program with the current addresses. The length does not depend on them. */
static mgl_status encode(mgl_cuda_vm *vm, mgl_cuda_tables *tables, mgl_error *err)
{
    mgl_cuda_addresses addresses = {vm->buffers, vm->tapes, vm->kv_ring};
    return mgl_cuda_encode(vm->vm.program, &addresses, tables, err);
}

mgl_status mgl_cuda_fill(mgl_cuda_vm *vm, mgl_error *err)
{
    mgl_vm_places places = {vm->tapes, vm->buffers, mgl_cuda_swizzles_kv(vm->vm.program, vm->arch)};
    return vm->fill(vm->fill_user, vm->vm.program, &places, err);
}

static mgl_status check_and_upload(mgl_cuda_vm *vm, const mgl_weights *weights,
                                   const mgl_vm_options *options, mgl_error *err)
{
    mgl_status status = mgl_weights_check_orders(weights, err);
    return status ? status : mgl_cuda_upload(vm, weights, options, err);
}

/* Writes the weights: made by `fill` on the device, from the options, or packed from the graph. */
static mgl_status write_weights(mgl_cuda_vm *vm, const mgl_graph *graph,
                                const mgl_vm_options *options, mgl_error *err)
{
    mgl_weights *packed = NULL;
    double start = mgl_clock_s();
    mgl_status status = MGL_OK;
    if (mgl_cuda_owner(vm))
        return MGL_OK;
    if (vm->fill)
        status = mgl_cuda_fill(vm, err);
    else if (options->weights)
        status = check_and_upload(vm, options->weights, options, err);
    else if (!(status = mgl_weights_pack(vm->vm.program, graph, &packed, err)))
        status = check_and_upload(vm, packed, options, err);
    mgl_weights_close(packed);
    vm->facts.pack_s = mgl_clock_s() - start;
    return status;
}

mgl_status mgl_cuda_lay_out(mgl_cuda_vm *vm, mgl_error *err)
{
    mgl_cuda_tables tables;
    mgl_status status = encode(vm, &tables, err);
    if (status)
        return status;
    place(vm, tables.record_bytes);
    mgl_cuda_tables_clear(&tables);
    return MGL_OK;
}

mgl_status mgl_cuda_settle(mgl_cuda_vm *vm, mgl_error *err)
{
    mgl_cuda_tables tables;
    mgl_status status = anchor(vm, err);
    if (!status)
        status = encode(vm, &tables, err);
    if (status)
        return status;
    status = upload(vm, vm->records, tables.records, tables.record_bytes, err);
    if (!status)
        status = upload(vm, vm->queues, tables.queues,
                        (size_t)tables.queue_entries * sizeof *tables.queues, err);
    mgl_cuda_tables_clear(&tables);
    return status;
}

/* Allocates the device memory and writes everything except the weights. */
static mgl_status prepare_device(mgl_cuda_vm *vm, mgl_error *err)
{
    mgl_status status = mgl_cuda_lay_out(vm, err);
    if (!status)
        status = mgl_cuda_allocate(vm, err);
    return status ? status : mgl_cuda_settle(vm, err);
}

/* Allocates host memory for launches. */
static mgl_status allocate_host(mgl_cuda_vm *vm, mgl_error *err)
{
    const mgl_program *program = vm->whole;
    const mgl_limits *limits = &program->limits;
    size_t words = (size_t)limits->sequences * (size_t)limits->capacity;
    vm->buffers = mgl_alloc_zero((size_t)program->buffer_count, sizeof *vm->buffers);
    vm->tapes = mgl_alloc_zero((size_t)program->queue_count, sizeof *vm->tapes);
    vm->control = mgl_alloc_zero(MGL_CONTROL_WORDS, sizeof *vm->control);
    vm->table =
        mgl_alloc_zero((size_t)mgl_limits_most(limits) * MGL_TABLE_WORDS, sizeof *vm->table);
    vm->sequences =
        mgl_alloc_zero((size_t)limits->sequences * MGL_SEQUENCE_WORDS, sizeof *vm->sequences);
    vm->prompt = mgl_alloc_zero(words, sizeof *vm->prompt);
    vm->output = mgl_alloc_zero(words, sizeof *vm->output);
    vm->score = mgl_alloc_zero(words, sizeof *vm->score);
    vm->pinned_bytes = sizeof(mgl_cuda_pinned) + words * sizeof(int32_t);
    if (vm->io.counts >= 0 &&
        !(vm->counts = mgl_alloc((size_t)program->geometry.vocab * sizeof *vm->counts)))
        return mgl_fail_memory(err, (size_t)program->geometry.vocab * sizeof *vm->counts);
    if (!vm->buffers || !vm->tapes || !vm->control || !vm->table || !vm->sequences || !vm->prompt ||
        !vm->output || !vm->score)
        return mgl_fail_memory(err, words * sizeof(int32_t));
    return MGL_OK;
}

static mgl_status allocate_pinned(mgl_cuda_vm *vm, mgl_error *err)
{
    const mgl_cu *cu = vm->cu;
    void *pinned = NULL;
    mgl_status status =
        mgl_cu_check(cu, cu->pinned_alloc(&pinned, vm->pinned_bytes, MGL_CU_PINNED_PORTABLE_MAPPED),
                     "allocating pinned memory", err);
    vm->pinned = status ? NULL : pinned;
    vm->pinned_room = vm->pinned_bytes;
    if (!status)
        status = mgl_cu_check(cu, cu->pinned_address(&vm->pinned_address, pinned, 0),
                              "mapping pinned memory", err);
    if (!status)
        status = mgl_cu_check(cu, cu->stream_create(&vm->stream, MGL_CU_STREAM_NON_BLOCKING),
                              "making a stream", err);
    for (int i = 0; i < 2 && !status; i++)
        status = mgl_cu_check(cu, cu->event_create(&vm->events[i], MGL_CU_EVENT_DEFAULT),
                              "making an event", err);
    return status;
}

/* No counter may exceed 2^31 in the maximum number of epochs of a launch, one per position. */
static mgl_status check_epochs(const mgl_program *program, mgl_error *err)
{
    int64_t epochs = (int64_t)program->limits.capacity + 1;
    if (epochs * (program->signal_count + 1) < INT32_MAX)
        return MGL_OK;
    /* one counter may have all signals: count exactly only in this rare case */
    for (int c = 0; c < program->counter_count; c++) {
        int64_t signals = 0;
        for (int i = 0; i < program->signal_count; i++)
            signals += program->signals[i] == c;
        if (epochs * (signals + 1) >= INT32_MAX)
            return mgl_fail(err, MGL_BAD_INPUT, program->counters[c].name,
                            "the counter has %lld signals an epoch: in %lld epochs it would pass "
                            "2^31; take a smaller capacity",
                            (long long)signals, (long long)epochs);
    }
    return MGL_OK;
}

/* Writes the weights and prepares the kernel, in parallel. */
static mgl_status write_all(mgl_cuda_vm *vm, const mgl_graph *graph, const mgl_vm_options *options,
                            mgl_error *err)
{
    making kernel;
    mgl_status status = start_kernel(vm, options, &kernel, err);
    if (status)
        return status;
    status = write_weights(vm, graph, options, err);
    return finish_kernel(vm, &kernel, options, status, err);
}

/* Finds the io buffers of both lists. Both use the same buffers, except for the logits. */
static mgl_status find_io(mgl_cuda_vm *vm, mgl_error *err)
{
    const mgl_program *program = vm->vm.program;
    mgl_vm_io second;
    mgl_status status = mgl_vm_find_io(program, &vm->io, err);
    if (!status)
        vm->logits[0] = vm->logits[1] = vm->io.logits;
    if (status || !program->second)
        return status;
    status = mgl_vm_find_io(program->second, &second, err);
    vm->logits[1] = status ? -1 : second.logits;
    return status;
}

mgl_status mgl_cuda_accept(mgl_cuda_vm *vm, mgl_error *err)
{
    const mgl_program *program = vm->vm.program;
    mgl_status status = mgl_cuda_check_program(program, err);
    if (!status && program->second)
        status = mgl_program_join(program, &vm->joined, err);
    vm->whole = vm->joined.program ? vm->joined.program : program;
    if (!status)
        status = check_epochs(vm->whole, err);
    return status ? status : find_io(vm, err);
}

/* Checks that the owner is on the same device and keeps the cache in the same order. */
static mgl_status check_owner(const mgl_cuda_vm *vm, mgl_error *err)
{
    const mgl_cuda_vm *owner = mgl_cuda_owner(vm);
    if (!owner)
        return MGL_OK;
    if (vm->context != owner->context)
        return mgl_fail(err, MGL_USAGE, vm->name, "the owner of the weights is on another device");
    if (mgl_cuda_swizzles_kv(vm->vm.program, vm->arch) !=
        mgl_cuda_swizzles_kv(owner->vm.program, owner->arch))
        return mgl_fail(err, MGL_BAD_INPUT, "cache",
                        "the program keeps the cache in another order than the owner's program; "
                        "lower both with the same kind of attention");
    return MGL_OK;
}

static mgl_status open_machine(mgl_cuda_vm *vm, const mgl_graph *graph,
                               const mgl_vm_options *options, mgl_error *err)
{
    mgl_target live;
    mgl_status status = mgl_cuda_accept(vm, err);
    if (!status)
        status = allocate_host(vm, err);
    if (!status)
        status = open_device(vm, options->device, &live, err);
    if (!status)
        status = mgl_check_abort(options->abort, err);
    if (!status)
        status = mgl_cuda_enter(vm, err);
    if (status)
        return status;
    snprintf(vm->arch, sizeof vm->arch, "%s", options->arch ? options->arch : live.arch);
    vm->kv_ring = mgl_cuda_streams_kv(vm->vm.program, vm->arch);
    status = mgl_cuda_check_arch(vm->vm.program, vm->arch, err);
    if (!status)
        status = check_owner(vm, err);
    if (!status)
        status = allocate_pinned(vm, err);
    if (!status)
        status = mgl_check_abort(options->abort, err);
    if (!status)
        status = prepare_device(vm, err);
    if (!status)
        status = mgl_check_abort(options->abort, err);
    if (!status)
        status = write_all(vm, graph, options, err);
    mgl_cuda_leave(vm);
    return status;
}

mgl_status mgl_vm_cuda_open(const mgl_program *program, const mgl_graph *graph,
                            const mgl_vm_options *options, mgl_vm **out, mgl_error *err)
{
    mgl_cuda_vm *vm = mgl_alloc_zero(1, sizeof *vm);
    if (!vm)
        return mgl_fail_memory(err, sizeof *vm);
    vm->vm = (mgl_vm){.program = program,
                      .owner = options->owner,
                      .close = close_machine,
                      .run = mgl_cuda_run,
                      .get_logits = mgl_cuda_get_logits,
                      .get_facts = get_facts,
                      .get_row_logits = mgl_cuda_get_row_logits,
                      .poison = mgl_cuda_poison,
                      .check_guards = mgl_cuda_check_guards,
                      .refill = mgl_cuda_refill,
                      .get_buffer = mgl_cuda_get_buffer,
                      .get_constant = mgl_cuda_get_constant,
                      .exchange = mgl_cuda_exchange};
    vm->fill = options->fill;
    vm->fill_user = options->fill_user;
    vm->deadline_ms = options->deadline_ms > 0 ? options->deadline_ms : 2000;
    vm->trace_epochs = options->trace_epochs;
    vm->delay_seed = options->delay_seed;
    vm->sampled = -1;
    mgl_status status = open_machine(vm, graph, options, err);
    if (status)
        close_machine(&vm->vm);
    else
        *out = &vm->vm;
    return status;
}

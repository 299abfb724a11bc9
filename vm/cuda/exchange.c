/*
 * Another program on an open machine. Context, kernel, stream and pinned memory stay; the arena is
 * planned anew, so that queues, edges and activations may differ from the old program's.
 *
 * Weights that were packed are copied into a second arena, from wherever the first one has them,
 * and then the first is released: nothing is written where something is still to be read, and until
 * all of it has succeeded the old program is untouched. Weights that `fill` makes need not be
 * copied: they are made anew in the same arena, where the new program fits it.
 */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/encode.h"
#include "vm/cuda/machine.h"

/* The machine's architecture has to have all variants that the program names: a machine that is
 * opened for the program would refuse it likewise. Its kernel has to be the program's, and all its
 * queues have to fit the device at once. */
static mgl_status check_kernel(const mgl_cuda_vm *vm, const mgl_program *program, mgl_error *err)
{
    char old[MGL_SHA256_HEX], key[MGL_SHA256_HEX];
    mgl_status status = mgl_cuda_check_arch(program, vm->arch, err);
    if (status)
        return status;
    mgl_cuda_kernel_key(vm->vm.program, vm->arch, mgl_cuda_extras(vm), old);
    mgl_cuda_kernel_key(program, vm->arch, mgl_cuda_extras(vm), key);
    if (strcmp(old, key) != 0)
        return mgl_fail(err, MGL_BAD_INPUT, "kernel",
                        "the program needs another kernel than the machine has; open a machine for "
                        "it");
    if (program->queue_count > vm->blocks)
        return mgl_fail(err, MGL_BAD_INPUT, "queues",
                        "the program has %d queues, but only %d blocks of the kernel fit the "
                        "device at once: lower for fewer queues",
                        program->queue_count, vm->blocks);
    return MGL_OK;
}

/* The machine with the program, whose arena is planned, but not there yet. */
static mgl_status plan_next(const mgl_cuda_vm *vm, const mgl_program *program, mgl_cuda_vm *next,
                            mgl_error *err)
{
    *next = *vm;
    next->vm.program = program;
    next->joined = (mgl_joined){0};
    next->buffers = next->tapes = NULL;
    next->arena = 0;
    next->sampled = -1;
    next->facts.kernel_s = next->facts.nvrtc_s = next->facts.compile_s = 0;
    mgl_status status = mgl_cuda_accept(next, err);
    if (!status)
        status = check_kernel(vm, program, err);
    if (status)
        return status;
    const size_t buffers = (size_t)next->whole->buffer_count;
    next->buffers = mgl_alloc_zero(buffers, sizeof *next->buffers);
    next->tapes = mgl_alloc_zero((size_t)program->queue_count, sizeof *next->tapes);
    if (!next->buffers || !next->tapes)
        return mgl_fail_memory(err, buffers * sizeof *next->buffers);
    return mgl_cuda_plan(next, err);
}

static void release_arena(mgl_cuda_vm *vm)
{
    if (vm->arena)
        vm->cu->memory_free(vm->arena);
    vm->arena = 0;
}

/* ---- weights that were packed --------------------------------------------------------------- */

/* A run of bytes that is copied at once. */
typedef struct run {
    mgl_cu_address to, from;
    size_t bytes;
} run;

static mgl_status copy_run(const mgl_cuda_vm *vm, const run *r, mgl_error *err)
{
    if (r->bytes == 0)
        return MGL_OK;
    return mgl_cu_check(vm->cu, vm->cu->copy_within_async(r->to, r->from, r->bytes, NULL),
                        "copying on the device", err);
}

/* The pieces that the old program has; those that follow one another here and there as one run. */
static mgl_status copy_pieces(const mgl_cuda_vm *vm, const mgl_cuda_vm *next,
                              const mgl_weights *weights, mgl_error *err)
{
    run r = {0};
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < weights->count && !status; i++) {
        const mgl_piece *piece = &weights->pieces[i];
        if (piece->origin.part < 0)
            continue;
        run more = {mgl_cuda_part_address(next, piece->part) + piece->offset,
                    mgl_cuda_part_address(vm, piece->origin.part) + piece->origin.offset,
                    piece->bytes};
        if (r.to + r.bytes == more.to && r.from + r.bytes == more.from) {
            r.bytes += more.bytes;
        } else {
            status = copy_run(next, &r, err);
            r = more;
        }
    }
    return status ? status : copy_run(next, &r, err);
}

/* Both arenas are there at once; where they have no room, nothing has happened yet. */
static mgl_status allocate_beside(mgl_cuda_vm *next, mgl_error *err)
{
    if (!mgl_cuda_allocate(next, err))
        return MGL_OK;
    if (err)
        err->code = MGL_BAD_INPUT;
    return MGL_BAD_INPUT;
}

static mgl_status carry(const mgl_cuda_vm *vm, mgl_cuda_vm *next, const mgl_graph *graph,
                        mgl_error *err)
{
    const mgl_resident resident = {.program = vm->vm.program};
    const mgl_vm_options options = {.kind = MGL_VM_CUDA};
    mgl_weights *weights;
    mgl_status status = mgl_weights_carry(next->vm.program, graph, &resident, &weights, err);
    if (status)
        return status;
    status = allocate_beside(next, err);
    if (!status)
        status = mgl_cuda_settle(next, err);
    if (!status)
        status = copy_pieces(vm, next, weights, err);
    if (!status)
        status = mgl_cuda_upload(next, weights, &options, err);
    int result = next->cu->stream_synchronize(NULL); /* before either arena goes */
    if (!status)
        status = mgl_cu_check(next->cu, result, "copying on the device", err);
    mgl_weights_close(weights);
    return status;
}

/* ---- weights that `fill` makes -------------------------------------------------------------- */

/* In the old program's arena, or, where that is too small, in a new one in its place. */
static mgl_status refill(mgl_cuda_vm *vm, mgl_cuda_vm *next, mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (next->arena_bytes > vm->arena_room) {
        release_arena(vm);
        status = mgl_cuda_allocate(next, err);
    } else {
        next->arena = vm->arena;
        vm->arena = 0;
    }
    if (!status)
        status = mgl_cuda_settle(next, err);
    return status ? status : mgl_cuda_fill(next, err);
}

/* ---- the exchange --------------------------------------------------------------------------- */

/* The machine has no program any more: whatever went wrong is the device's failure. */
static mgl_status lose(mgl_cuda_vm *vm, mgl_error *err)
{
    vm->vm.program = NULL;
    vm->vm.lost = true;
    if (err)
        err->code = MGL_DEVICE;
    return MGL_DEVICE;
}

/* Within the device's context. */
static mgl_status make_next(mgl_cuda_vm *vm, mgl_cuda_vm *next, const mgl_graph *graph,
                            mgl_error *err)
{
    double start = mgl_clock_s();
    mgl_status status = vm->fill ? refill(vm, next, err) : carry(vm, next, graph, err);
    next->facts.pack_s = mgl_clock_s() - start;
    release_arena(status ? next : vm);
    return status == MGL_DEVICE || (status && !vm->arena) ? lose(vm, err) : status;
}

mgl_status mgl_cuda_exchange(mgl_vm *base, const mgl_program *program, const mgl_graph *graph,
                             mgl_error *err)
{
    mgl_cuda_vm *vm = (mgl_cuda_vm *)base, next;
    mgl_status status = plan_next(vm, program, &next, err);
    if (!status && mgl_cuda_enter(vm, err))
        status = lose(vm, err);
    else if (!status) {
        status = make_next(vm, &next, graph, err);
        mgl_cuda_leave(vm);
    }
    mgl_joined_clear(status ? &next.joined : &vm->joined);
    mgl_free(status ? next.buffers : vm->buffers);
    mgl_free(status ? next.tapes : vm->tapes);
    if (!status)
        *vm = next;
    return status;
}

/*
 * Exchanges the program of an open CUDA machine (mgl_vm_exchange). Context, kernel, stream and
 * pinned memory stay. The arena is laid out anew, so queues, edges and activations may differ from
 * the old program's.
 *
 * Packed weights are copied from the old arena into a second one, and the old arena is then
 * released. No copy overwrites data that is still to be read, and the old program is unchanged
 * until everything has succeeded. Weights made by `fill` need no copy: they are made anew in the
 * same arena, if the new program fits.
 */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/encode.h"
#include "vm/cuda/machine.h"

/* Checks that the architecture has all variants of the program, as opening a machine does. Also
 * checks that the program uses the same kernel, and that all queues can be co-resident. */
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

/* Prepares the machine state for the new program: the arena is laid out, but not allocated. */
static mgl_status lay_out_next(const mgl_cuda_vm *vm, const mgl_program *program, mgl_cuda_vm *next,
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
    return mgl_cuda_lay_out(next, err);
}

static void release_arena(mgl_cuda_vm *vm)
{
    if (vm->arena)
        vm->cu->memory_free(vm->arena);
    vm->arena = 0;
}

/* ---- packed weights ------------------------------------------------------------------------- */

/* A contiguous copy. */
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

/* Copies the pieces that the old program has. Pieces contiguous in both arenas form one copy. */
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

/* Allocates the second arena. If it does not fit, the exchange fails without changes. */
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
    int result = next->cu->stream_synchronize(NULL); /* before either arena is released */
    if (!status)
        status = mgl_cu_check(next->cu, result, "copying on the device", err);
    mgl_weights_close(weights);
    return status;
}

/* ---- weights made by `fill` ----------------------------------------------------------------- */

/* Uses the old program's arena or, if it is too small, replaces it by a new one. */
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

/* ---- exchange ------------------------------------------------------------------------------- */

/* Marks the machine as lost: it has no program, and the error becomes MGL_DEVICE. */
static mgl_status lose(mgl_cuda_vm *vm, mgl_error *err)
{
    vm->vm.program = NULL;
    vm->vm.lost = true;
    if (err)
        err->code = MGL_DEVICE;
    return MGL_DEVICE;
}

/* Makes the new state. Call with the device's context current. */
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
    mgl_status status = lay_out_next(vm, program, &next, err);
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

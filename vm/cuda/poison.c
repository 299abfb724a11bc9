/* Correctness checks on the CUDA machine: poisons memory, writes and checks guards, refills
 * weights, and reads buffers. vm/vm.h documents these functions. */
#include "vm/cuda/machine.h"

/* The guard after a tape or a buffer of the arena. */
typedef struct guard {
    mgl_cu_address at;
    int buffer, queue;  /* what precedes the guard; the other is -1 */
    unsigned char byte; /* value of its bytes while a kernel runs */
} guard;

static guard guard_of_tape(const mgl_cuda_vm *vm, int queue)
{
    uint64_t bytes = (uint64_t)vm->vm.program->queues[queue].tape_bytes;
    return (guard){vm->tapes[queue] + bytes, -1, queue, MGL_GUARD_BYTE};
}

/* The guard after a buffer. A launch sets the flagged buffers, and the guards between them, to all
 * ones. */
static guard guard_of_buffer(const mgl_cuda_vm *vm, int buffer)
{
    const mgl_buffer *b = &vm->whole->buffers[buffer];
    uint64_t bytes = mgl_buffer_bytes(b) * (uint64_t)b->sets;
    unsigned char byte = b->sets > 1 ? 0xFF : MGL_GUARD_BYTE;
    return (guard){vm->buffers[buffer] + bytes, buffer, -1, byte};
}

/* Operation on a guard. */
typedef mgl_status guard_fn(const mgl_cuda_vm *vm, const guard *g, mgl_error *err);

static mgl_status for_guards(const mgl_cuda_vm *vm, guard_fn *act, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int q = 0; q < vm->vm.program->queue_count && !status; q++) {
        guard g = guard_of_tape(vm, q);
        status = act(vm, &g, err);
    }
    for (int i = 0; i < vm->whole->buffer_count && !status; i++) {
        guard g = guard_of_buffer(vm, i);
        status = act(vm, &g, err);
    }
    return status;
}

static mgl_status write_guard(const mgl_cuda_vm *vm, const guard *g, mgl_error *err)
{
    return mgl_cu_check(vm->cu, vm->cu->memory_set(g->at, g->byte, MGL_GUARD_BYTES),
                        "writing a guard", err);
}

static mgl_status check_guard(const mgl_cuda_vm *vm, const guard *g, mgl_error *err)
{
    unsigned char bytes[MGL_GUARD_BYTES];
    mgl_status status =
        mgl_cu_check(vm->cu, vm->cu->copy_out(bytes, g->at, sizeof bytes), "reading a guard", err);
    long damage = status ? -1 : mgl_vm_find_damage(bytes, sizeof bytes, g->byte);
    return damage < 0 ? status : mgl_vm_fail_guard(vm->whole, g->buffer, g->queue, damage, err);
}

/* Poisons whole words. The last word may extend into the guard, which is written afterwards. */
static mgl_status poison_buffer(const mgl_cuda_vm *vm, int buffer, uint32_t word, int context,
                                mgl_error *err)
{
    mgl_vm_stretches s = mgl_vm_poisoned(&vm->whole->buffers[buffer], context);
    size_t words = (s.width + sizeof word - 1) / sizeof word;
    size_t pitch = s.count > 1 ? s.pitch : words * sizeof word;
    if (s.count == 0 || words == 0)
        return MGL_OK;
    return mgl_cu_check(
        vm->cu, vm->cu->memory_set_2d(vm->buffers[buffer] + s.first, pitch, word, words, s.count),
        "poisoning device memory", err);
}

mgl_status mgl_cuda_poison(mgl_vm *base, uint32_t word, int context, mgl_error *err)
{
    mgl_cuda_vm *vm = (mgl_cuda_vm *)base;
    mgl_status status = mgl_cuda_enter(vm, err);
    if (status)
        return status;
    for (int i = 0; i < vm->whole->buffer_count && !status; i++)
        status = poison_buffer(vm, i, word, context, err);
    if (!status)
        status = for_guards(vm, write_guard, err);
    mgl_cuda_leave(vm);
    return status;
}

mgl_status mgl_cuda_check_guards(mgl_vm *base, mgl_error *err)
{
    mgl_cuda_vm *vm = (mgl_cuda_vm *)base;
    mgl_status status = mgl_cuda_enter(vm, err);
    if (status)
        return status;
    status = for_guards(vm, check_guard, err);
    mgl_cuda_leave(vm);
    return status;
}

/* Clears the KV cache, as it was when the machine was opened. */
static mgl_status clear_cache(const mgl_cuda_vm *vm, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int i = 0; i < vm->whole->buffer_count && !status; i++) {
        const mgl_buffer *b = &vm->whole->buffers[i];
        if (b->space == MGL_SPACE_KV)
            status =
                mgl_cu_check(vm->cu, vm->cu->memory_set(vm->buffers[i], 0, mgl_buffer_bytes(b)),
                             "clearing the cache", err);
    }
    return status;
}

mgl_status mgl_cuda_refill(mgl_vm *base, mgl_error *err)
{
    mgl_cuda_vm *vm = (mgl_cuda_vm *)base;
    if (!vm->fill)
        return mgl_fail(err, MGL_USAGE, NULL, "the machine was opened without a fill");
    mgl_status status = mgl_cuda_enter(vm, err);
    if (status)
        return status;
    status = clear_cache(vm, err);
    if (!status)
        status = mgl_cuda_fill(vm, err);
    mgl_cuda_leave(vm);
    return status;
}

static mgl_status copy_out(mgl_cuda_vm *vm, mgl_cu_address from, size_t bytes, void *to,
                           mgl_error *err)
{
    mgl_status status = mgl_cuda_enter(vm, err);
    if (status)
        return status;
    status = mgl_cu_check(vm->cu, vm->cu->copy_out(to, from, bytes), "reading device memory", err);
    mgl_cuda_leave(vm);
    return status;
}

mgl_status mgl_cuda_get_buffer(mgl_vm *base, int buffer, void *to, mgl_error *err)
{
    mgl_cuda_vm *vm = (mgl_cuda_vm *)base;
    return copy_out(vm, vm->buffers[buffer], mgl_vm_buffer_bytes(&vm->whole->buffers[buffer]), to,
                    err);
}

mgl_status mgl_cuda_get_constant(mgl_vm *base, int queue, int buffer, size_t first, size_t bytes,
                                 void *to, mgl_error *err)
{
    mgl_cuda_vm *vm = (mgl_cuda_vm *)base;
    const mgl_cu_address at = queue >= 0 ? vm->tapes[queue] : vm->buffers[buffer];
    return copy_out(vm, at + first, bytes, to, err);
}

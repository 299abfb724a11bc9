/*
 * Correctness checks beyond tokens: logits of every row, poisoned memory that reveals reads before
 * writes, guards that reveal writes past a buffer, and hashes of constants. A correct program
 * computes the same bits whatever its activations, outputs and unused cache held before. autotune/
 * and the tests use them through vm.h.
 */
#include "vm/prefix.h"

#include "base/memory.h"

#include <stdio.h>

mgl_status mgl_vm_get_row_logits(mgl_vm *vm, int row, float *logits, mgl_error *err)
{
    mgl_status status = mgl_vm_check_usable(vm, err);
    return status ? status : vm->get_row_logits(vm, row, logits, err);
}

mgl_status mgl_vm_poison(mgl_vm *vm, uint32_t word, int context, mgl_error *err)
{
    mgl_status status = mgl_vm_check_usable(vm, err);
    if (status)
        return status;
    int capacity = vm->program->limits.capacity;
    if (context < 0 || context > capacity)
        return mgl_fail(err, MGL_USAGE, "context", "%d positions; the capacity is %d", context,
                        capacity);
    mgl_prefix_forget(mgl_prefix_of(vm));
    return vm->poison(vm, word, context, err);
}

mgl_status mgl_vm_check_guards(mgl_vm *vm, mgl_error *err)
{
    mgl_status status = mgl_vm_check_usable(vm, err);
    return status ? status : vm->check_guards(vm, err);
}

mgl_status mgl_vm_refill(mgl_vm *vm, mgl_error *err)
{
    if (!vm->refill)
        return mgl_fail(err, MGL_USAGE, NULL, "only the CUDA machine has weights made in place");
    mgl_status status = mgl_vm_check_usable(vm, err);
    mgl_prefix_forget(mgl_prefix_of(vm));
    return status ? status : vm->refill(vm, err);
}

size_t mgl_vm_buffer_bytes(const mgl_buffer *buffer)
{
    return mgl_buffer_bytes(buffer) * (size_t)buffer->sets;
}

mgl_status mgl_vm_get_buffer(mgl_vm *vm, int buffer, void *to, mgl_error *err)
{
    mgl_status status = mgl_vm_check_usable(vm, err);
    return status ? status : vm->get_buffer(vm, buffer, to, err);
}

enum { HASHED_AT_ONCE = 1 << 20 };

static mgl_status hash_part(mgl_vm *vm, int queue, int buffer, size_t bytes, void *piece,
                            mgl_sha256 *hash, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (size_t at = 0; at < bytes && !status; at += HASHED_AT_ONCE) {
        const size_t count = bytes - at < HASHED_AT_ONCE ? bytes - at : HASHED_AT_ONCE;
        status = vm->get_constant(vm, queue, buffer, at, count, piece, err);
        if (!status)
            mgl_sha256_add(hash, piece, count);
    }
    return status;
}

mgl_status mgl_vm_hash_constants(mgl_vm *vm, unsigned char hash[MGL_SHA256_BYTES], mgl_error *err)
{
    mgl_sha256 state;
    mgl_status status = mgl_vm_check_usable(vm, err);
    if (status)
        return status;
    if (!vm->get_constant)
        return mgl_fail(err, MGL_USAGE, NULL,
                        "only the CUDA machine has its own copy of the weights");
    void *piece = mgl_alloc(HASHED_AT_ONCE);
    if (!piece)
        return mgl_fail_memory(err, HASHED_AT_ONCE);
    const mgl_program *whole = mgl_program_whole(vm->program);
    mgl_sha256_start(&state);
    for (int q = 0; q < vm->program->queue_count && !status; q++)
        status =
            hash_part(vm, q, -1, (size_t)vm->program->queues[q].tape_bytes, piece, &state, err);
    for (int i = 0; i < whole->buffer_count && !status; i++)
        if (whole->buffers[i].space == MGL_SPACE_CONST)
            status = hash_part(vm, -1, i, mgl_buffer_bytes(&whole->buffers[i]), piece, &state, err);
    mgl_sha256_end(&state, hash);
    mgl_free(piece);
    return status;
}

/* A cache is (sequences, kv_heads, capacity, head_dim). Of each head, the positions from `context`
 * on are poisoned. */
mgl_vm_stretches mgl_vm_poisoned(const mgl_buffer *b, int context)
{
    size_t bytes = mgl_buffer_bytes(b);
    if (b->space == MGL_SPACE_CONST)
        return (mgl_vm_stretches){0};
    if (b->space != MGL_SPACE_KV) {
        bytes *= (size_t)b->sets;
        return (mgl_vm_stretches){.width = bytes, .pitch = bytes, .count = 1};
    }
    size_t heads = (size_t)(b->extents[0].count * b->extents[1].count), pitch = bytes / heads;
    size_t first = pitch / (size_t)b->extents[2].count * (size_t)context;
    return (mgl_vm_stretches){
        .first = first, .width = pitch - first, .pitch = pitch, .count = first < pitch ? heads : 0};
}

long mgl_vm_find_damage(const unsigned char *guard, size_t bytes, unsigned char byte)
{
    for (size_t i = 0; i < bytes; i++)
        if (guard[i] != byte)
            return (long)i;
    return -1;
}

mgl_status mgl_vm_fail_guard(const mgl_program *program, int buffer, int queue, long at,
                             mgl_error *err)
{
    char where[96];
    if (buffer >= 0)
        snprintf(where, sizeof where, "buffer %s", program->buffers[buffer].name);
    else
        snprintf(where, sizeof where, "the tape of queue %d", queue);
    return mgl_fail(err, MGL_GATE, where,
                    "byte %ld behind its end was written: a task writes outside of every buffer",
                    at);
}

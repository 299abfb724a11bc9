/*
 * The consumer side of the KV buffers, a ring in shared memory with mbarriers kv_buffer_full and
 * kv_buffer_empty: the cached keys and values of a unit's sequence, for attention of rows in a
 * program with panels (attention/flash.cuh). The epilogue warp fills them
 * (roles/kv_buffer_loader.cuh). A buffer holds KV_BUFFER_POSITIONS consecutive positions in the
 * layout of the cache: their keys, then their values. A unit's positions begin with a buffer; its
 * last buffer may be short.
 *
 * Buffers are counted over all epochs and tasks. Each consumer warp visits all of them in order: it
 * waits until a buffer has landed, reads its tiles of the buffer, and frees it, also if it has no
 * tile there.
 */
#ifndef MGL_DEVICE_ATTENTION_KV_BUFFERS_CUH
#define MGL_DEVICE_ATTENTION_KV_BUFFERS_CUH

#include "vm/cuda/device/attention/kv_pages.cuh"
#include "vm/cuda/device/preissued.cuh"
#include "vm/cuda/device/trace.cuh"

#if MGL_PANELS

/* The keys (0) or the values (1) of a KV buffer. */
static __device__ __forceinline__ u8 *kv_buffer(u32 kv_index, int which)
{
    return kv_buffer_memory() + kv_index % KV_BUFFER_SLOTS * KV_BUFFER_BYTES +
           which * (KV_BUFFER_BYTES / 2);
}

/* KV buffers for so many positions. */
static __device__ __forceinline__ u32 kv_buffers_of(int positions)
{
    return (u32)(positions + KV_BUFFER_POSITIONS - 1) / KV_BUFFER_POSITIONS;
}

/* Waits until a KV buffer has landed. */
static __device__ __forceinline__ void wait_kv_buffer(machine &m, u32 kv_index)
{
    const u32 since = trace_clock();
    while (!barrier_tested(&own().kv_buffer_full[kv_index % KV_BUFFER_SLOTS],
                           kv_index / KV_BUFFER_SLOTS & 1) &&
           !own().lost)
        ; /* the loader keeps the deadline */
    __syncwarp();
    trace_starved(m, since);
}

/* Frees a KV buffer that has landed. */
static __device__ __forceinline__ void free_kv_buffer(u32 kv_index)
{
    __syncwarp();
    if (is_first_lane())
        barrier_arrive(&own().kv_buffer_empty[kv_index % KV_BUFFER_SLOTS]);
}

/* Advances from buffer `at` to buffer `to` and frees the buffers in between. */
static __device__ __forceinline__ void pass_kv_buffers(machine &m, u32 &at, u32 to)
{
    for (; at != to; at++) {
        wait_kv_buffer(m, at);
        free_kv_buffer(at);
    }
}

#endif

#endif

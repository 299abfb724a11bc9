/*
 * Trays of keys and values: what the cache has of a unit's sequence comes through shared memory,
 * for attention of rows in a program with panels (attention/flash.cuh; roles/kv_buffer_loader.cuh
 * fills them). A tray has KV_BUFFER_POSITIONS positions that follow one another, as they lie in the
 * cache: their keys, then their values. A unit's positions begin with a tray; its last one may be
 * short.
 *
 * Trays are counted over all epochs and tasks. Each warp goes through all of them, in order: it
 * waits until a tray has landed, takes its tiles of it, and lets go of it, also where it has none.
 */
#ifndef MGL_DEVICE_ATTENTION_KV_BUFFERS_CUH
#define MGL_DEVICE_ATTENTION_KV_BUFFERS_CUH

#include "vm/cuda/device/attention/kv_pages.cuh"
#include "vm/cuda/device/preissued.cuh"
#include "vm/cuda/device/trace.cuh"

#if MGL_PANELS

/* The keys (0) or the values (1) of a tray. */
static __device__ __forceinline__ u8 *kv_buffer(u32 act_tile, int which)
{
    return kv_buffer_memory() + act_tile % KV_BUFFER_SLOTS * KV_BUFFER_BYTES +
           which * (KV_BUFFER_BYTES / 2);
}

/* Trays of so many positions. */
static __device__ __forceinline__ u32 kv_buffers_of(int positions)
{
    return (u32)(positions + KV_BUFFER_POSITIONS - 1) / KV_BUFFER_POSITIONS;
}

/* Waits until a tray has landed. */
static __device__ __forceinline__ void wait_kv_buffer(machine &m, u32 act_tile)
{
    const u32 since = trace_clock();
    while (!barrier_tested(&own().kv_buffer_full[act_tile % KV_BUFFER_SLOTS],
                           act_tile / KV_BUFFER_SLOTS & 1) &&
           !own().lost)
        ; /* the loader has a clock in its waits */
    __syncwarp();
    trace_starved(m, since);
}

/* Lets go of a tray that has landed. */
static __device__ __forceinline__ void free_kv_buffer(u32 act_tile)
{
    __syncwarp();
    if (is_first_lane())
        barrier_arrive(&own().kv_buffer_empty[act_tile % KV_BUFFER_SLOTS]);
}

/* Goes from tray `at` to tray `to`, letting go of those in between. */
static __device__ __forceinline__ void pass_kv_buffers(machine &m, u32 &at, u32 to)
{
    for (; at != to; at++) {
        wait_kv_buffer(m, at);
        free_kv_buffer(at);
    }
}

#endif

#endif

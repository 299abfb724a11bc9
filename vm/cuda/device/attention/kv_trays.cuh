/*
 * Trays of keys and values: what the cache has of a unit's sequence comes through shared memory,
 * for attention of rows in a program with panels (attention/flash.cuh; roles/kv_tray_loader.cuh
 * fills them). A tray has KV_TRAY_POSITIONS positions that follow one another, as they lie in the
 * cache: their keys, then their values. A unit's positions begin with a tray; its last one may be
 * short.
 *
 * Trays are counted over all epochs and tasks. Each warp goes through all of them, in order: it
 * waits until a tray has landed, takes its tiles of it, and lets go of it, also where it has none.
 */
#ifndef MGL_DEVICE_ATTENTION_KV_TRAYS_CUH
#define MGL_DEVICE_ATTENTION_KV_TRAYS_CUH

#include "vm/cuda/device/attention/kv_pages.cuh"
#include "vm/cuda/device/early.cuh"
#include "vm/cuda/device/trace.cuh"

#if MGL_PANELS

/* The keys (0) or the values (1) of a tray. */
static __device__ __forceinline__ u8 *kv_tray(u32 tray, int which)
{
    return kv_tray_memory() + tray % KV_TRAY_PLACES * KV_TRAY_BYTES + which * (KV_TRAY_BYTES / 2);
}

/* Trays of so many positions. */
static __device__ __forceinline__ u32 kv_trays_of(int positions)
{
    return (u32)(positions + KV_TRAY_POSITIONS - 1) / KV_TRAY_POSITIONS;
}

/* Waits until a tray has landed. */
static __device__ __forceinline__ void wait_kv_tray(machine &m, u32 tray)
{
    const u32 since = trace_clock();
    while (!barrier_tested(&own().kv_tray_full[tray % KV_TRAY_PLACES], tray / KV_TRAY_PLACES & 1) &&
           !own().lost)
        ; /* the loader has a clock in its waits */
    __syncwarp();
    trace_starved(m, since);
}

/* Lets go of a tray that has landed. */
static __device__ __forceinline__ void free_kv_tray(u32 tray)
{
    __syncwarp();
    if (is_first_lane())
        barrier_arrive(&own().kv_tray_empty[tray % KV_TRAY_PLACES]);
}

/* Goes from tray `at` to tray `to`, letting go of those in between. */
static __device__ __forceinline__ void pass_kv_trays(machine &m, u32 &at, u32 to)
{
    for (; at != to; at++) {
        wait_kv_tray(m, at);
        free_kv_tray(at);
    }
}

#endif

#endif

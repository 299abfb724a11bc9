/*
 * Begin and end of pre-issued tasks: tasks that are announced to the consumers before their
 * counters are reached (is_preissued in ops.cuh). The controller opens the start barrier of such a
 * task itself and observes its end through `done`. So neither the start nor the end takes the
 * detour through the epilogue. Called by the consume functions of the pre-issued families.
 */
#ifndef MGL_DEVICE_PREISSUED_CUH
#define MGL_DEVICE_PREISSUED_CUH

#include "vm/cuda/device/trace.cuh"

#if PREISSUED_TASKS

/* Waits until the task begins. Returns false if it does not begin because the block leaves. */
static __device__ __forceinline__ bool wait_preissued_start(const machine &m)
{
    wait_start(m);
    return !own().leave;
}

/* Waits until the epilogue has reached the warp's task. */
static __device__ __forceinline__ void wait_reached()
{
    const u32 task = own().begun[thread_index() / 32];
    while (!__all_sync(0xFFFFFFFFu, (int)(load_shared_acquire(&own().reached) - task) >= 0))
        ; /* no deadline needed: the epilogue waits for nothing in between */
}

/* Ends the warp's part of the task. The record may be overwritten from here on. Waits first until
 * the epilogue has reached the task; otherwise the epilogue would miss a phase of `body`. */
static __device__ __forceinline__ void end_preissued(const machine &m)
{
    wait_reached();
    trace_products(m);
    __syncwarp();
    if (is_first_lane()) {
        barrier_arrive(&own().done);
        barrier_arrive(&own().body);
    }
}

#if MGL_PANELS

/* Waits until the loader has switched to the second list. Returns false if the loader has given up.
 */
static __device__ __forceinline__ bool wait_switched()
{
    while (!__all_sync(0xFFFFFFFFu, load_shared_acquire(&own().switched)))
        if (__any_sync(0xFFFFFFFFu, own().lost))
            return false;
    return true;
}

#endif

#endif

#endif

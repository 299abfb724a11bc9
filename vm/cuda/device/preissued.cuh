/*
 * Tasks that the consumers know before their counters are there (is_preissued): how they begin, and
 * how they end. The controller opens `go` of such a task itself, and sees its end by `done`:
 * neither word goes by way of the epilogue.
 */
#ifndef MGL_DEVICE_PREISSUED_CUH
#define MGL_DEVICE_PREISSUED_CUH

#include "vm/cuda/device/trace.cuh"

#if PREISSUED_TASKS

/* Waits until the task begins. False: it will not, the block leaves. */
static __device__ __forceinline__ bool wait_preissued_start(const machine &m)
{
    wait_start(m);
    return !own().leave;
}

/* Waits until the epilogue has come to the warp's task. */
static __device__ __forceinline__ void wait_reached()
{
    const u32 task = own().begun[thread_index() / 32];
    while (!__all_sync(0xFFFFFFFFu, (int)(load_shared_acquire(&own().reached) - task) >= 0))
        ; /* the epilogue waits for nothing in between */
}

/* The warp has done its part of the task, whose record may be gone from here on. The epilogue has
 * come to it, or it would miss a phase of `body`. */
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

/* Waits until the loader has turned to the second list; false: it has given up. */
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

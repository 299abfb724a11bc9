/*
 * Events for `megalith trace`: what a task of an epoch did when. Without MGL_TRACE there is no code
 * of them.
 */
#ifndef MGL_DEVICE_TRACE_CUH
#define MGL_DEVICE_TRACE_CUH

#include "vm/cuda/device/task.cuh"

#if MGL_TRACE
/* What the consumers have left of the task that has just ended. What they do behind their last
 * arrival may come late, and then counts for the one behind it. One lane. */
static __device__ __forceinline__ void see_event(u32 number)
{
    mgl_device_event &seen = own().seen[number & 1];
    seen.input = own().input;
    seen.products = own().products;
    seen.end = own().ended = time_ns();
    seen.starved = own().starved;
    seen.ahead = own().ahead;
}
#endif

#if MGL_TRACE
/* Leaves the event of a task that has ended. */
static __device__ void leave_event(const machine &m, const mgl_device_event &seen)
{
    if (own().launch.trace == 0)
        return;
    mgl_device_event *to = (mgl_device_event *)own().launch.trace +
                           (size_t)(m.epoch % own().launch.trace_epochs) * own().launch.tasks +
                           task_of(m)->task;
    *to = seen;
    to->epoch = m.epoch + 1;
}
#endif

#endif

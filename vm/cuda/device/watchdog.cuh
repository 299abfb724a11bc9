/*
 * The watchdog: deadlines of spin waits. A wait that exceeds its deadline stops all queues, writes
 * the queue's report for the host, and gives up. The task then runs to its end with whatever data
 * is in memory. The spin waits of flags.cuh, controller.cuh and loader.cuh call it.
 */
#ifndef MGL_DEVICE_WATCHDOG_CUH
#define MGL_DEVICE_WATCHDOG_CUH

#include "vm/cuda/device/task.cuh"

/* Whether the watchdog of some queue has stopped the launch. */
static __device__ bool is_stopped()
{
    return load_relaxed((const u32 *)own().launch.stopped) != 0;
}

/* Whether a wait that gives up writes the report: only the first wait of the block. A wait of a
 * task that has not begun does not report, because a wait of the previous task is the cause. From
 * then on the task's results are invalid. */
static __device__ __forceinline__ bool is_to_report()
{
    const u32 warp = threadIdx.x / 32;
    own().dead = 1;
    if (warp < MGL_WARPS && (int)(own().begun[warp] - 1 - own().finished) > 0)
        return false;
    return atomicCAS(&own().reported, 0u, 1u) == 0;
}

/* Stops all queues. The first queue that stops them is reported to the host. */
static __device__ __forceinline__ void stop_all()
{
    if (atomicCAS((u32 *)own().launch.stopped, 0u, 1u) == 0)
        store_system((int *)own().launch.host + MGL_HOST_EXPIRED, (int)blockIdx.x + 1);
}

/* Writes the block's report, which the host reads after the kernel has ended. */
static __device__ __forceinline__ void write_report(int kind, int task, u32 epoch, u32 which,
                                                    u32 wanted, u32 seen)
{
    int *report = (int *)own().launch.reports + blockIdx.x * MGL_REPORT_WORDS;
    if (!is_to_report())
        return;
#if MGL_LISTS
    epoch += own().others;
#endif
    store_system(report + MGL_REPORT_TASK, task);
    store_system(report + MGL_REPORT_COUNTER, (int)which);
    store_system(report + MGL_REPORT_WANTED, (int)wanted);
    store_system(report + MGL_REPORT_SEEN, (int)seen);
    store_system(report + MGL_REPORT_EPOCH, (int)epoch);
    store_system(report + MGL_REPORT_KIND, kind);
}

/* Called by a wait every POLLS polls. `since` is the time of the wait's first call, 0 in the first
 * call. The result is the value to pass next time, or 0 if the wait must give up: its deadline has
 * passed, or another queue has stopped the launch. In that case the report names what the wait
 * waited for. */
static __device__ __forceinline__ u64 look_at_clock(u64 since, int kind, int task, u32 epoch,
                                                    u32 which, u32 wanted, u32 seen)
{
    u64 now = clock_ns();
    if (since == 0)
        since = now;
    if (!is_stopped()) {
        if (now - since < own().launch.deadline_ns)
            return since;
        stop_all();
    }
    write_report(kind, task, epoch, which, wanted, seen);
    return 0;
}

/* look_at_clock without a report, for poll number n (from 1 on). Returns whether the wait must give
 * up. It calls no function that is not inlined, because such a call costs registers. */
static __device__ __forceinline__ bool is_late(u32 n, u64 *since)
{
    if (n % POLLS)
        return false;
    u64 now = clock_ns();
    if (*since == 0)
        *since = now;
    return now - *since >= own().launch.deadline_ns || is_stopped();
}

/* Writes the report of a wait for flagged words of an operand that gave up without one. */
static __device__ __forceinline__ void report_flags(const machine &m, int operand)
{
    const u64 long_ago = 1;
    look_at_clock(long_ago, MGL_REPORT_FLAG, task_of(m)->task, m.epoch, (u32)operand, 1, 0);
}

#endif

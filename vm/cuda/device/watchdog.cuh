/*
 * The watchdog: what a wait does that takes too long. It stops all queues, leaves the queue's
 * report for the host, and gives up; the task then runs on, on whatever is in memory.
 */
#ifndef MGL_DEVICE_WATCHDOG_CUH
#define MGL_DEVICE_WATCHDOG_CUH

#include "vm/cuda/device/task.cuh"

/* Whether somebody's watchdog has spoken. */
static __device__ bool is_stopped()
{
    return load_relaxed((const u32 *)own().launch.stopped) != 0;
}

/* Whether a wait that gives up says why: the block's first to do so, but not one of a task that has
 * not begun, since the one before has a wait of its own. From then on what the task makes is worth
 * nothing. */
static __device__ __forceinline__ bool is_to_report()
{
    const u32 warp = threadIdx.x / 32;
    own().dead = 1;
    if (warp < MGL_WARPS && (int)(own().begun[warp] - 1 - own().finished) > 0)
        return false;
    return atomicCAS(&own().reported, 0u, 1u) == 0;
}

/* Has everybody leave; the first to say so is told to the host. */
static __device__ __forceinline__ void stop_all()
{
    if (atomicCAS((u32 *)own().launch.stopped, 0u, 1u) == 0)
        store_system((int *)own().launch.host + MGL_HOST_EXPIRED, (int)blockIdx.x + 1);
}

/* The block's report, which the host reads when the kernel has ended. */
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

/* What a wait does every so many polls. `since` is when the wait looked first, 0 at the first look;
 * the result is what to hand in next time, or 0 when the wait has to give up, because it is past
 * its deadline or because another one is; then the queue's report says what it waited for. */
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

/* The same without the report, at poll number n, from 1 on: whether the wait has to give up. A call
 * costs the registers that it may use. */
static __device__ __forceinline__ bool is_late(u32 n, u64 *since)
{
    if (n % POLLS)
        return false;
    u64 now = clock_ns();
    if (*since == 0)
        *since = now;
    return now - *since >= own().launch.deadline_ns || is_stopped();
}

/* Reports a wait for flagged words of that operand, which has given up without a report. */
static __device__ __forceinline__ void report_flags(const machine &m, int operand)
{
    const u64 long_ago = 1;
    look_at_clock(long_ago, MGL_REPORT_FLAG, task_of(m)->task, m.epoch, (u32)operand, 1, 0);
}

#endif

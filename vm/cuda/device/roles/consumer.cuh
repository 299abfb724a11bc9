/*
 * The consumer warps: they execute task after task, when the controller announces it and the start
 * barrier opens. Each warp executes its share of the task through the function of the op's family
 * (dispatch.cuh).
 */
#ifndef MGL_DEVICE_ROLES_CONSUMER_CUH
#define MGL_DEVICE_ROLES_CONSUMER_CUH

#include "vm/cuda/device/dispatch.cuh"
#include "vm/cuda/device/trace.cuh"

/* Whether the loader is not told at the task's announcement that the task waits for its counters.
 * In panels that are not small-M panels, `pending` is set from `start` to the first activation tile
 * (do_panels). */
static __device__ __forceinline__ bool waits_unseen(const machine &m, int op)
{
#if MGL_PANELS
    return is_preissued(op) && (is_of<FAMILY_PANEL>(op) ? small_m_groups_of(m)
                                                        : small_m_groups(rows_of(m), false)) == 0;
#else
    return false;
#endif
}

/* The consumers' loop. The number of the warp's task is in shared memory: the compiler would keep a
 * value that lives through all tasks in local memory, whose latency is ten times as long. */
static __device__ __forceinline__ void run_consumer(machine &m)
{
    for (;;) {
        know_thread(m);
        const u32 number = own().begun[m.warp];
        while (!barrier_passed(&own().announced[number & 1], number >> 1 & 1))
            ; /* each wait of the controller has a deadline */
        __syncwarp();
        own().begun[m.warp] = number + 1; /* every lane stores, so each lane reads its own store
                                             later */
        if (own().leave)
            return;
        const instruction_slot task = own().instruction[number & 1];
        m.record = task.record;
        m.instruction = number & 1;
        m.epoch = task.epoch;
        m.base = task.base;
        if (thread_of(m) == 0 && !waits_unseen(m, task.op))
            own().pending = 1; /* until its input is there */
        trace_begin(m);
        if (is_preissued(task.op)) {
            if (!consume_preissued(m, task.op))
                return; /* `leave` may already refer to the next task, so it is not checked here */
            continue;
        }
        const bool writes_psums = consume_op(m, task.op);
        if (!writes_psums) {
            __syncwarp();
            wait_start(m);
        }
        trace_products(m); /* if no partial sums are written, this comes before the epilogue can
                              end the task */
        if (!writes_psums && is_first_lane())
            barrier_arrive(&own().body);
    }
}

#endif

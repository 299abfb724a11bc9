/*
 * The consumers: task after task, as the controller makes them known and the epilogue opens them.
 * Each warp does its share of the task by the function of the op's family (dispatch.cuh).
 */
#ifndef MGL_DEVICE_ROLES_CONSUMER_CUH
#define MGL_DEVICE_ROLES_CONSUMER_CUH

#include "vm/cuda/device/dispatch.cuh"
#include "vm/cuda/device/trace.cuh"

/* Whether the loader is not told that the task waits for its counters: where panels are not slim,
 * `pending` is set from `go` up to the first tray (do_panels). */
static __device__ __forceinline__ bool waits_unseen(const machine &m, int op)
{
#if MGL_PANELS
    return is_preissued(op) && (is_of<FAMILY_PANEL>(op) ? small_m_groups_of(m)
                                                        : small_m_groups(rows_of(m), false)) == 0;
#else
    return false;
#endif
}

/* The number of the warp's task stands in shared memory: a value that lives through all tasks would
 * be kept in local memory, which is ten times as far. */
static __device__ __forceinline__ void run_consumer(machine &m)
{
    for (;;) {
        know_thread(m);
        const u32 number = own().begun[m.warp];
        while (!barrier_passed(&own().announced[number & 1], number >> 1 & 1))
            ; /* the controller has a clock in each of its waits */
        __syncwarp();
        own().begun[m.warp] = number + 1; /* every lane: whoever reads it next has written it */
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
                return; /* `leave` may stand for the task behind by now: it is not asked here */
            continue;
        }
        const bool writes_psums = consume_op(m, task.op);
        if (!writes_psums) {
            __syncwarp();
            wait_start(m);
        }
        trace_products(m); /* without slots, before the epilogue can have ended the task */
        if (!writes_psums && is_first_lane())
            barrier_arrive(&own().body);
    }
}

#endif

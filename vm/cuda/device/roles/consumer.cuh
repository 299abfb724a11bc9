/*
 * The consumers: task after task, as the controller prepares and the epilogue opens them. Each warp
 * does its share of the task by the function of the op's family (ops.def).
 */
#ifndef MGL_DEVICE_ROLES_CONSUMER_CUH
#define MGL_DEVICE_ROLES_CONSUMER_CUH

#include "vm/cuda/device/ops.cuh"
#include "vm/cuda/device/task.cuh"

/* What reads flagged words alone begins before `go`, and waits for that where it leaves something.
 */
static __device__ __forceinline__ void consume_op(machine &m, int op)
{
#define CONSUME_CONTROLLER(id, name)
#define CONSUME_CONSUMERS(id, name)                                                                \
    if (is_of<FAMILY_##id>(op))                                                                    \
        consume_##name(m);                                                                         \
    else
#define CONSUME_EPILOGUE(id, name)                                                                 \
    if (is_of<FAMILY_##id>(op)) {                                                                  \
        if (consume_##name(m))                                                                     \
            return;                                                                                \
    } else
#define MGL_FAMILY(id, name, needs, ahead) CONSUME_##needs(id, name)
#include "instructions/ops.def"
    {
        /* nothing: the controller lets no other op through */
    }
#undef CONSUME_CONTROLLER
#undef CONSUME_CONSUMERS
#undef CONSUME_EPILOGUE
    __syncwarp();
    wait_go(m);
    if (is_first_lane())
        barrier_arrive(&own().body);
}

static __device__ __forceinline__ void consume_task(machine &m, int op)
{
#if MGL_TRACE
    m.starved = 0;
    consume_op(m, op);
    if (thread_of(m) == 0) {
        own().starved = m.starved;
        own().products = time_ns();
    }
#else
    consume_op(m, op);
#endif
}

/* Task after task, as the controller prepares and the epilogue opens them. Which task it is stands
 * in shared memory: as a value that lives through all tasks it would be kept in local memory, which
 * is ten times as far. */
static __device__ __forceinline__ void run_consumer(machine &m)
{
    for (;;) {
        know_thread(m);
        const u32 number = own().begun[m.warp];
        while (!barrier_passed(&own().known[number & 1], number >> 1 & 1))
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
        if (thread_of(m) == 0)
            own().pending = 1; /* until input_is_there */
        consume_task(m, task.op);
    }
}

#endif

/*
 * The epilogue: one warp that opens task after task (`go`), adds up what the consumers leave in the
 * slots, writes outputs, and says when a task has ended.
 */
#ifndef MGL_DEVICE_ROLES_EPILOGUE_CUH
#define MGL_DEVICE_ROLES_EPILOGUE_CUH

#include "vm/cuda/device/ops.cuh"
#include "vm/cuda/device/trace.cuh"

/* Opens `go` for the consumers; what the controller has prepared comes before it. */
static __device__ __forceinline__ void open(u32 number)
{
    __syncwarp();
    if (!is_first_lane())
        return;
#if MGL_TRACE
    own().input = own().products = own().starved = 0;
    own().seen[number & 1].begin = own().ended;
    own().seen[number & 1].go = time_ns();
#endif
    barrier_arrive(&own().go);
}

/* A task that consumers do alone, or that has nothing for the slots: before all of them are done,
 * `go` may not open again, or a warp that is late would take the next phase for this one. */
static __device__ __forceinline__ void wait_body(const machine &m, u32 *bodies)
{
    while (!barrier_passed(&own().body, *bodies & 1))
        ; /* the consumers have a clock in each of their waits */
    __syncwarp();
    ++*bodies;
}

/* The epilogue of the task at hand; false: it has none, or nothing for it. */
static __device__ __forceinline__ bool finish_op(machine &m)
{
#define FINISH_BARE(id, name)
#define FINISH_ALONE(id, name)
#define FINISH_PREPARED(id, name)
#define FINISH_FINISHED(id, name)                                                                  \
    case OP_##id:                                                                                  \
        return finish_##name(m);
#define MGL_OP(id, name, family, step, device, ...) FINISH_##device(id, name)
    switch (task_of(m)->op) {
#include "instructions/ops.def"
    }
#undef FINISH_BARE
#undef FINISH_ALONE
#undef FINISH_PREPARED
#undef FINISH_FINISHED
    return false;
}

static __device__ __forceinline__ void finish_task(machine &m, u32 *bodies)
{
    if (!finish_op(m))
        wait_body(m, bodies);
}

static __device__ __forceinline__ bool is_prepared(u32 number)
{
    return __all_sync(0xFFFFFFFFu, (int)(load_shared_acquire(&own().prepared) - number) > 0);
}

/* Task after task, as the controller prepares them. The next one is opened before it is said that
 * this one has ended: that waits for its stores. */
static __device__ __forceinline__ void run_epilogue(machine &m)
{
    u32 bodies = 0;
    bool opened = false;
    for (u32 number = 0;;) {
        if (!opened) {
            while (!is_prepared(number))
                ; /* the controller and the consumers have a clock in each of their waits */
            if (own().leave)
                return;
            open(number);
        }
        const instruction_slot task = own().instruction[number & 1];
        m.record = task.record;
        m.instruction = number & 1;
        m.epoch = task.epoch;
        finish_task(m, &bodies);
#if MGL_TRACE
        if (is_first_lane())
            see_event(number);
#endif
        opened = is_prepared(++number);
        if (opened)
            open(number);
        __syncwarp();
        if (is_first_lane())
            store_shared_release(&own().finished, number);
    }
}

#endif

/*
 * The epilogue warp. For each task it opens the start barrier, adds up the partial sums that the
 * consumers write (split-K reduction), and writes the outputs. Then it publishes in `finished` that
 * the task has ended. The per-op code is reached through finish_op (dispatch.cuh). In tasks without
 * partial sums the warp fills activation tiles or KV buffers (act_tile_loader.cuh,
 * kv_buffer_loader.cuh).
 */
#ifndef MGL_DEVICE_ROLES_EPILOGUE_CUH
#define MGL_DEVICE_ROLES_EPILOGUE_CUH

#include "vm/cuda/device/dispatch.cuh"
#include "vm/cuda/device/roles/act_tile_loader.cuh"
#include "vm/cuda/device/trace.cuh"

/* Whether the controller has permitted task `number` to begin. */
static __device__ __forceinline__ bool is_prepared(u32 number)
{
    return __all_sync(0xFFFFFFFFu, (int)(load_shared_acquire(&own().prepared) - number) > 0);
}

/* Opens the start barrier for the consumers, unless the controller opens it. All that the
 * controller prepared for the task is visible to the consumers once they pass the barrier. */
static __device__ __forceinline__ void open(u32 number)
{
    __syncwarp();
    if (!is_first_lane())
        return;
#if PREISSUED_TASKS
    if (own().opened[number & 1])
        return;
#endif
    trace_began(number);
    barrier_arrive(&own().start);
}

/* The epilogue's loop. It opens the next task before it publishes the end of this one, because that
 * release waits for the task's stores. */
FAR_OR_INLINE void run_epilogue(machine m);

#if IN_OBJECT(EPILOGUE)

FAR_OR_INLINE void run_epilogue(machine m)
{
    u32 bodies = 0;
    bool opened = false;
    for (u32 number = 0;;) {
        act_tile_plan plan = {};
        if (!opened) {
            while (!is_prepared(number)) /* each wait of the controller and of the consumers has
                                            a deadline */
                plan_act_tiles(m, number, plan);
            if (own().leave) {
                if (is_first_lane())
                    barrier_arrive(&own().start);
                return await_act_tiles();
            }
            open(number);
        }
        const instruction_slot task = own().instruction[number & 1];
        m.record = task.record;
        m.instruction = number & 1;
        m.epoch = task.epoch;
        if (!finish_op(m)) {
            fetch_act_tiles(m, task.op, number, plan);
            /* The start barrier may not open again before all consumers are done with the task.
             * Otherwise a late warp would take the next phase for this one. */
            while (!barrier_passed(&own().body, bodies & 1))
                ; /* each wait of the consumers has a deadline */
            __syncwarp();
            bodies++;
            note_act_tiles(task.op);
        }
        trace_end(number);
        opened = is_prepared(++number);
        if (opened)
            open(number);
        __syncwarp();
        if (is_first_lane())
            store_shared_release(&own().finished, number);
    }
}

#endif

#endif

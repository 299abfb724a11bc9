/*
 * The kernel: one block a queue, all resident at once (a cooperative launch), from the first token
 * of a reply to its last. Roles of the warps: device/machine.cuh.
 *
 * A task: the director waits for its counters, prepares it, and makes it known; the epilogue, done
 * with the one before, opens `go`; consumers and epilogue do it together, or the consumers alone;
 * the director signals, and resets what the `clear` behind it names.
 */
#include "vm/cuda/device/few.cuh"
#include "vm/cuda/device/machine.cuh"

#include "instructions/attend/attend.cuh"
#include "instructions/attend_past/attend_past.cuh"
#include "instructions/attend_tail/attend_tail.cuh"
#include "instructions/clear/clear.cuh"
#include "instructions/embed/embed.cuh"
#include "instructions/enter/enter.cuh"
#include "instructions/head/head.cuh"
#include "instructions/linear_add/linear_add.cuh"
#include "instructions/merge/merge.cuh"
#include "instructions/norm_linear/norm_linear.cuh"
#include "instructions/norm_swiglu/norm_swiglu.cuh"
#include "instructions/sample/sample.cuh"

#include "vm/cuda/device/director.cuh"

/* ---- consumers --------------------------------------------------------------------------------
 */

/* What reads flagged words alone begins before `go`, and waits for that where it leaves something.
 */
static __device__ __forceinline__ void consume_op(machine &m, int op)
{
#define CONSUME_DIRECTOR(id, name)
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
        /* nothing: the director lets no other op through */
    }
#undef CONSUME_DIRECTOR
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

/* Task after task, as the director prepares and the epilogue opens them. Which turn it is stands in
 * shared memory: as a value that lives through all tasks it would be kept in local memory, which is
 * ten times as far. */
static __device__ __forceinline__ void consume(machine &m)
{
    for (;;) {
        know_thread(m);
        const u32 turn = own().turns[m.warp];
        while (!barrier_passed(&own().known[turn & 1], turn >> 1 & 1))
            ; /* the director has a clock in each of its waits */
        __syncwarp();
        own().turns[m.warp] = turn + 1; /* every lane: whoever reads it next has written it */
        if (own().leave)
            return;
        const start task = own().task[turn & 1];
        m.record = task.record;
        m.which = turn & 1;
        m.epoch = task.epoch;
        m.base = task.base;
        if (thread_of(m) == 0)
            own().pending = 1; /* until input_is_there */
        consume_task(m, task.op);
    }
}

/* ---- the epilogue -----------------------------------------------------------------------------
 */

/* Opens `go` for the consumers; what the director has prepared comes before it. */
static __device__ __forceinline__ void open(u32 turn)
{
    __syncwarp();
    if (!is_first_lane())
        return;
#if MGL_TRACE
    own().input = own().products = own().starved = 0;
    own().seen[turn & 1].begin = own().ended;
    own().seen[turn & 1].go = time_ns();
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

#if MGL_TRACE
/* What the consumers have left of the turn that has just ended. What they do behind their last
 * arrival may come late, and then counts for the one behind it. One lane. */
static __device__ __forceinline__ void see_event(u32 turn)
{
    mgl_device_event &seen = own().seen[turn & 1];
    seen.input = own().input;
    seen.products = own().products;
    seen.end = own().ended = time_ns();
    seen.starved = own().starved;
    seen.ahead = own().ahead;
}
#endif

static __device__ __forceinline__ bool is_prepared(u32 turn)
{
    return __all_sync(0xFFFFFFFFu, (int)(load_shared_acquire(&own().prepared) - turn) > 0);
}

/* Turn after turn, as the director prepares them. The next one is opened before it is said that
 * this one has ended: that waits for its stores. */
static __device__ __forceinline__ void finish(machine &m)
{
    u32 bodies = 0;
    bool opened = false;
    for (u32 turn = 0;;) {
        if (!opened) {
            while (!is_prepared(turn))
                ; /* the director and the consumers have a clock in each of their waits */
            if (own().leave)
                return;
            open(turn);
        }
        const start task = own().task[turn & 1];
        m.record = task.record;
        m.which = turn & 1;
        m.epoch = task.epoch;
        finish_task(m, &bodies);
#if MGL_TRACE
        if (is_first_lane())
            see_event(turn);
#endif
        opened = is_prepared(++turn);
        if (opened)
            open(turn);
        __syncwarp();
        if (is_first_lane())
            store_shared_release(&own().finished, turn);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    megalith(const __grid_constant__ mgl_device_launch launch)
{
    machine m = {};
    know_thread(m);
    const mgl_device_queue &queue = ((const mgl_device_queue *)launch.queues)[blockIdx.x];
    if (thread_of(m) == 0) {
        own().launch = launch;
        copy_init();
        own().pending = own().leave = own().dead = own().stop = 0;
        own().landed = own().lost = 0;
        own().early = own().demanded = 0;
        own().prepared = own().finished = own().reported = 0;
        own().task[0] = own().task[1] = {};
#if MGL_TRACE
        own().ended = time_ns();
#endif
        own().past_number = own().past_used = 0;
        own().entered = 0;
        for (int w = 0; w < MGL_WARPS; w++)
            own().turns[w] = 0;
        delay_init();
    }
    __syncthreads();
    if (m.warp == LOADER)
        load_tape(m, queue);
    else if (m.warp == WATCHER)
        watch_ring(m);
    else if (m.warp == DIRECTOR)
        direct(m, queue);
    else if (m.warp == EPILOGUE)
        finish(m);
    else
        consume(m);
}

/*
 * Event recording for `megalith trace`: the times at which a task of an epoch reached each of its
 * stages (mgl_device_event, record.h). Roles and ops call these functions at the stages. Without
 * MGL_TRACE the functions are empty.
 *
 * Consumer warp 0 writes its times to shared memory; the epilogue and the controller copy them to
 * the event. A time that consumers write after their last arrival may come too late, and then
 * counts for the next task.
 */
#ifndef MGL_DEVICE_TRACE_CUH
#define MGL_DEVICE_TRACE_CUH

#include "vm/cuda/device/ops.cuh"
#include "vm/cuda/device/task.cuh"

#if MGL_TRACE

/* At the start of the kernel; one thread. */
static __device__ __forceinline__ void trace_start()
{
    own().ended = time_ns();
}

/* The epilogue opens task `number`; one lane. */
static __device__ __forceinline__ void trace_began(u32 number)
{
    own().input = own().products = own().starved = own().act_tiles = 0;
    own().seen[number & 1].begin = own().ended;
    own().seen[number & 1].go = time_ns();
}

/* A consumer begins a task. */
static __device__ __forceinline__ void trace_begin(machine &m)
{
    m.starved = 0;
}

/* The consumers have their input; called by all, thread 0 records. */
static __device__ __forceinline__ void trace_input(const machine &m)
{
    if (thread_of(m) != 0)
        return;
    own().input = time_ns();
    own().act_tiles = 0; /* only waits for activation tiles after this point count */
}

/* The same for a task with pages of the ring; one thread. */
static __device__ __forceinline__ void trace_input_ahead(const machine &m)
{
    own().input = time_ns();
    own().ahead = own().landed - m.freed;
}

/* Start time of a consumer's wait for pages. trace_starved adds the time since then. */
static __device__ __forceinline__ u32 trace_clock()
{
    return time_ns();
}

static __device__ __forceinline__ void trace_starved(machine &m, u32 since)
{
    m.starved += time_ns() - since;
}

/* The same for activation tiles of panels. */
static __device__ __forceinline__ void trace_act_tile(u32 since)
{
    if (thread_index() == 0)
        own().act_tiles += time_ns() - since;
}

/* The consumer's waiting time in the task so far, and its setter for callers of out-of-line
 * functions that wait. */
static __device__ __forceinline__ u32 trace_starved_of(const machine &m)
{
    return m.starved;
}

static __device__ __forceinline__ void trace_set_starved(machine &m, u32 starved)
{
    m.starved = starved;
}

/* A consumer has finished its last product, or all of a task without a tape. */
static __device__ __forceinline__ void trace_products(const machine &m)
{
    if (thread_of(m) != 0)
        return;
    own().starved = m.starved;
    own().products = time_ns();
}

/* The epilogue has ended task `number`. */
static __device__ __forceinline__ void trace_end(u32 number)
{
    if (!is_first_lane())
        return;
    mgl_device_event &seen = own().seen[number & 1];
    seen.input = own().input;
    seen.products = own().products;
    seen.end = own().ended = time_ns();
    seen.starved = own().starved;
    seen.act_tiles = own().act_tiles;
    seen.ahead = own().ahead;
}

/* The controller has executed a task alone; `go` is the time at which it began. */
static __device__ __forceinline__ void trace_end_alone(u32 go)
{
    if (!is_first_lane())
        return;
    mgl_device_event seen = {};
    seen.begin = own().ended;
    seen.go = go;
    seen.end = own().ended = time_ns();
    own().seen[2] = seen;
}

/* Writes the event of a task that has ended for the host; one lane. With two lists the epochs of
 * each list are counted separately, and the event has their sum. Clears of nothing, which pad a
 * short queue, are skipped: they have the number of another task. */
static __device__ void write_event(const machine &m, const mgl_device_event &seen)
{
    if (own().launch.trace == 0)
        return;
#if MGL_LISTS
    if (task_of(m)->op == OP_CLEAR && task_of(m)->clears == 0)
        return;
    const u32 epoch = m.epoch + m.others;
#else
    const u32 epoch = m.epoch;
#endif
    mgl_device_event *to = (mgl_device_event *)own().launch.trace +
                           (size_t)(epoch % own().launch.trace_epochs) * own().launch.tasks +
                           task_of(m)->task;
    *to = seen;
    to->epoch = epoch + 1;
}

/* Writes the event when the controller has finished with a task. `alone`: the controller executed
 * the task itself; otherwise the task is the last of `count`. */
static __device__ __forceinline__ void trace_settle(const machine &m, bool alone, u32 count)
{
    if (is_first_lane())
        write_event(m, own().seen[alone ? 2 : (count - 1) & 1]);
}

/* Records a task that the controller leaves out, with equal times of begin, go and end. */
static __device__ __forceinline__ void trace_left_out(const machine &m)
{
    mgl_device_event seen = {};
    seen.begin = seen.go = seen.end = time_ns();
    if (is_first_lane())
        write_event(m, seen);
}

#else

static __device__ __forceinline__ void trace_start() {}

static __device__ __forceinline__ void trace_began(u32) {}

static __device__ __forceinline__ void trace_begin(machine &) {}

static __device__ __forceinline__ void trace_input(const machine &) {}

static __device__ __forceinline__ void trace_input_ahead(const machine &) {}

static __device__ __forceinline__ u32 trace_clock()
{
    return 0;
}

static __device__ __forceinline__ void trace_starved(machine &, u32) {}

static __device__ __forceinline__ void trace_act_tile(u32) {}

static __device__ __forceinline__ u32 trace_starved_of(const machine &)
{
    return 0;
}

static __device__ __forceinline__ void trace_set_starved(machine &, u32) {}

static __device__ __forceinline__ void trace_products(const machine &) {}

static __device__ __forceinline__ void trace_end(u32) {}

static __device__ __forceinline__ void trace_end_alone(u32) {}

static __device__ __forceinline__ void trace_settle(const machine &, bool, u32) {}

static __device__ __forceinline__ void trace_left_out(const machine &) {}

#endif

#endif

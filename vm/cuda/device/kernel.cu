/*
 * The kernel: one block a queue, all resident at once (a cooperative launch), from the first token
 * of a reply to its last. Roles of the warps: device/machine.cuh.
 *
 * A task: the epilogue waits for its counters and opens `go`; consumers and epilogue do it together,
 * or either alone; the epilogue signals, and resets what the `clear` behind it names.
 */
#include "vm/cuda/device/machine.cuh"

#include "instructions/attend/attend.cuh"
#include "instructions/attend_past/attend_past.cuh"
#include "instructions/attend_tail/attend_tail.cuh"
#include "instructions/embed/embed.cuh"
#include "instructions/enter/enter.cuh"
#include "instructions/head/head.cuh"
#include "instructions/linear_add/linear_add.cuh"
#include "instructions/merge/merge.cuh"
#include "instructions/norm_linear/norm_linear.cuh"
#include "instructions/norm_swiglu/norm_swiglu.cuh"
#include "instructions/sample/sample.cuh"

enum {
#define MGL_OP(id, name, tape, operands, meaning) OP_##id,
#include "instructions/ops.def"
#undef MGL_OP
    OP_COUNT
};

/* ---- consumers -------------------------------------------------------------------------------- */

/* Out of line: their registers are not those of the loop. */
static __device__ __noinline__ void merge_apart(machine m)
{
    consume_merge(m);
}

static __device__ __noinline__ void sample_apart(machine m)
{
    consume_sample(m);
}

static __device__ __forceinline__ bool has_tape(int op)
{
    return op == OP_NORM_LINEAR || op == OP_NORM_SWIGLU || op == OP_LINEAR_ADD || op == OP_HEAD;
}

static __device__ __forceinline__ void consume_op(machine &m)
{
    int op = task_of(m)->op;
    if (has_tape(op) && own().in.count > 0)
        return consume_linear(m);
    if (has_tape(op))
        skip_linear(m);
    else if (op == OP_MERGE)
        merge_apart(m);
    else if (op == OP_SAMPLE)
        sample_apart(m);
    else
        attend_rows(m);
    __syncwarp();
    if (m.lane == 0)
        barrier_arrive(&own().body);
}

static __device__ __forceinline__ void consume_task(machine &m)
{
#if MGL_TRACE
    m.starved = 0;
    consume_op(m);
    if (m.tid == 0) {
        own().starved = m.starved;
        own().products = time_ns();
    }
#else
    consume_op(m);
#endif
}

#if MGL_TRACE
/* The event of the task at hand; lane 0. What consumers do behind their last arrival may come late, and
 * then counts for the task behind it. */
static __device__ void leave_event(const machine &m, u32 begin, u32 go)
{
    if (m.launch->trace == 0)
        return;
    mgl_device_event *to = (mgl_device_event *)m.launch->trace +
                           (size_t)(m.epoch % m.launch->trace_epochs) * m.launch->tasks +
                           task_of(m)->task;
    to->epoch = m.epoch + 1;
    to->begin = begin;
    to->go = go;
    to->input = own().input;
    to->products = own().products;
    to->end = time_ns();
    to->starved = own().starved;
    to->ahead = own().ahead;
}
#endif

/* Task after task, as the epilogue opens them. */
static __device__ __forceinline__ void consume(machine &m)
{
    for (u32 n = 0;; n++) {
        while (!barrier_passed(&own().go, n & 1))
            ; /* the epilogue has a clock in each of its waits */
        __syncwarp();
        if (own().leave)
            return;
        m.record = own().current;
        m.epoch = own().epoch;
        m.base = own().base;
        consume_task(m);
    }
}

/* ---- the epilogue ----------------------------------------------------------------------------- */

/* Starts fetching a record; a lane's part lands with fetch_wait. */
static __device__ __forceinline__ void fetch(const machine &m, uint4 *to, u32 offset, u32 bytes)
{
    const u8 *from = (const u8 *)m.launch->records + offset;
    for (u32 i = m.lane * 16; i < bytes; i += 32 * 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to) + i),
                     "l"(from + i)
                     : "memory");
}

/* This thread's fetches (cp.async) have landed, and so those of the warp. */
static __device__ __forceinline__ void fetch_wait()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
}

/* Waits for the task's counters: one lane each. */
static __device__ __forceinline__ void wait_counters(const machine &m)
{
    const mgl_device_wait *waits =
        (const mgl_device_wait *)((const u8 *)task_of(m) + task_of(m)->wait_at);
    for (int i = m.lane; i < task_of(m)->waits; i += 32) {
        const u32 *at =
            (const u32 *)m.launch->counters + (size_t)waits[i].counter * MGL_COUNTER_WORDS;
        u32 wanted = m.epoch * waits[i].per_epoch + waits[i].threshold, seen;
        u64 since = 0;
        for (u32 n = 1; (seen = load_acquire(at)) < wanted; n++)
            if (n % POLLS == 0 &&
                !(since = look_at_clock(m.launch, since, MGL_REPORT_WAIT, task_of(m)->task, m.epoch,
                                        waits[i].counter, wanted, seen)))
                break;
    }
    __syncwarp();
}

/* All stores of the block so far come before every signal. */
static __device__ __forceinline__ void signal(const machine &m)
{
    const u32 *signals = (const u32 *)((const u8 *)task_of(m) + task_of(m)->signal_at);
    __syncwarp();
    if (m.lane != 0 || task_of(m)->signals == 0)
        return;
    fence_gpu();
    for (int i = 0; i < task_of(m)->signals; i++)
        add_relaxed((u32 *)m.launch->counters + (size_t)signals[i] * MGL_COUNTER_WORDS);
}

/* Resets words to "not written" in the set that the next epoch uses: all rows that the epoch that used
 * it last wrote. `history`: rows of this epoch and of those before, a byte each, the newest lowest. */
static __device__ __forceinline__ void clear(const machine &m, u64 history)
{
    const mgl_device_clear *clears =
        (const mgl_device_clear *)((const u8 *)task_of(m) + task_of(m)->clear_at);
    u64 policy = keep_policy();
    for (int i = 0; i < task_of(m)->clears; i++) {
        const mgl_device_clear &c = clears[i];
        int rows = (int)(history >> 8 * (c.sets - 1) & 255), words = (int)c.bytes / 16;
        u8 *to = (u8 *)c.at + set_of(m.epoch + 1, c.sets) * c.set_bytes;
        for (int e = m.lane; e < (int)c.outer * rows * words; e += 32)
            store_four_words(to + e / words / rows * c.outer_bytes +
                                 (size_t)(e / words % rows) * c.row_bytes + e % words * 16,
                             0xFFFFFFFFu, policy);
    }
}

/* What the consumers need to know of the task; one lane. */
static __device__ __forceinline__ void prepare(const machine &m)
{
    switch (task_of(m)->op) {
    case OP_NORM_LINEAR:
        return prepare_norm_linear(m);
    case OP_NORM_SWIGLU:
        return prepare_norm_swiglu(m);
    case OP_LINEAR_ADD:
        return prepare_linear_add(m);
    case OP_HEAD:
        return prepare_head(m);
    case OP_ATTEND:
        return prepare_attend(m);
    case OP_ATTEND_TAIL:
        return prepare_attend_tail(m);
    case OP_ATTEND_PAST:
        return prepare_attend_past(m);
    }
}

/* Opens `go` for the consumers. */
static __device__ __forceinline__ void go(const machine &m)
{
    __syncwarp();
    if (m.lane != 0)
        return;
    prepare(m);
    own().current = m.record;
    own().epoch = m.epoch;
    own().base = m.base;
    own().pending = 1;
    barrier_arrive(&own().go);
}

/* A task that consumers do alone, or that has nothing for the slots: before all of them are done, `go`
 * may not open again, or a warp that is late would take the next phase for this one. */
static __device__ __forceinline__ void wait_body(const machine &m, u32 *bodies)
{
    while (!barrier_passed(&own().body, *bodies & 1))
        ; /* the consumers have a clock in each of their waits */
    __syncwarp();
    ++*bodies;
}

/* One task, once its counters are there. */
static __device__ __forceinline__ void finish_task(machine &m, u32 *bodies)
{
    switch (task_of(m)->op) {
    case OP_ENTER:
        return op_enter(m);
    case OP_EMBED:
        return op_embed(m);
    case OP_CLEAR:
        return; /* what it resets stands in the record, as for any other task */
    }
    go(m);
    switch (task_of(m)->op) {
    case OP_NORM_LINEAR:
        return finish_norm_linear(m);
    case OP_NORM_SWIGLU:
        return finish_norm_swiglu(m);
    case OP_LINEAR_ADD:
        return finish_linear_add(m);
    case OP_HEAD:
        if (own().wanted_count > 0)
            return finish_head(m);
    }
    wait_body(m, bodies);
}

/* Task after task, epoch after epoch, until there is no next epoch or a watchdog has spoken. */
static __device__ __forceinline__ void direct(machine &m, const mgl_device_queue &queue)
{
    u32 bodies = 0, at = 0;
    u64 history = 0;
    fetch(m, own().record[0], queue.first, queue.first_bytes);
    for (bool on = true; on; at = at + 1 == RECORDS ? 0 : at + 1) {
        m.record = at;
        fetch_wait();
#if MGL_TRACE
        u32 begin = time_ns();
#endif
        wait_counters(m);
#if MGL_TRACE
        u32 opened = time_ns();
        if (m.lane == 0)
            own().input = own().products = own().starved = 0;
#endif
        fetch(m, own().record[at + 1 == RECORDS ? 0 : at + 1], task_of(m)->next,
              task_of(m)->next_bytes);
        /* asked of the whole warp: a consumer may set `dead` between two lanes' looks */
        if (__all_sync(0xFFFFFFFFu, !own().dead))
            finish_task(m, &bodies);
        bool enters = task_of(m)->op == OP_ENTER;
        on = !own().dead && !(enters && !own().control[MGL_CONTROL_GO]);
        on = __all_sync(0xFFFFFFFFu, on);
        if (!on)
            break;
#if MGL_TRACE
        if (m.lane == 0)
            leave_event(m, begin, opened);
#endif
        if (enters)
            history = history << 8 | (u64)rows_of(m);
        if (task_of(m)->op == OP_CLEAR)
            clear(m, history);
        signal(m);
        if (task_of(m)->op != OP_CLEAR)
            clear(m, history);
        if (task_of(m)->next == queue.first) {
            m.epoch++;
            m.base += queue.pages;
        }
    }
    fetch_wait();
    __syncwarp();
    if (m.lane == 0) {
        own().leave = 1;
        own().stop = 1;
        barrier_arrive(&own().go);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    megalith(const __grid_constant__ mgl_device_launch launch)
{
    machine m = {};
    m.launch = &launch;
    m.tid = threadIdx.x;
    m.warp = m.tid / 32;
    m.lane = m.tid % 32;
    const mgl_device_queue &queue = ((const mgl_device_queue *)launch.queues)[blockIdx.x];
    if (m.tid == 0) {
        copy_init();
        for (int w = 0; w < 16; w++)
            own().done[w] = 0;
        own().pending = own().leave = own().dead = own().stop = 0;
    }
    __syncthreads();
    if (m.warp == LOADER)
        load_tape(m, queue);
    else if (m.warp == EPILOGUE)
        direct(m, queue);
    else
        consume(m);
}

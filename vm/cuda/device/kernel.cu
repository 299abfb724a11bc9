/*
 * The kernel: one block a queue, all resident at once (a cooperative launch), from the first token
 * of a reply to its last. Roles of the warps: device/machine.cuh.
 *
 * A task: the epilogue waits for its counters and opens `go`; consumers and epilogue do it together,
 * or either alone; the epilogue signals, and resets what the `clear` behind it names.
 */
#include "vm/cuda/device/few.cuh"
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

static __device__ __noinline__ void attend_apart(machine m, u32 rows)
{
    attend_rows(m, rows);
}

static __device__ __noinline__ u32 attend_short_apart(machine m)
{
    return attend_short(m);
}

/* One row in one pass; of several those that warps do by themselves, then what is left. */
static __device__ __forceinline__ void consume_attend(const machine &m)
{
    if (is_single_pass(m))
        return attend_single_apart(m);
    u32 rows = SHORT && rows_of(m) > 1 ? attend_short_apart(m) : ~0u;
    if (rows)
        attend_apart(m, rows);
}

static __device__ __noinline__ void sample_apart(machine m)
{
    consume_sample(m);
}

static __device__ __forceinline__ bool has_tape(int op)
{
    return op == OP_NORM_LINEAR || op == OP_NORM_SWIGLU || op == OP_LINEAR_ADD || op == OP_HEAD;
}

static __device__ __forceinline__ void consume_op(machine &m, int op)
{
    if (has_tape(op) && own().in[m.which].count > 0)
        return consume_linear(m);
    if (has_tape(op))
        skip_linear(m);
    else if (op == OP_MERGE)
        merge_apart(m);
    else if (op == OP_SAMPLE)
        sample_apart(m);
    else
        consume_attend(m);
    __syncwarp();
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

/* Task after task, as the epilogue opens them. Which turn it is stands in shared memory: as a value that
 * lives through all tasks it would be kept in local memory, which is ten times as far. */
static __device__ __forceinline__ void consume(machine &m)
{
    for (;;) {
        know_thread(m);
        const u32 turn = own().turns[m.warp];
        while (!barrier_passed(&own().go, turn & 1))
            ; /* the epilogue has a clock in each of its waits */
        __syncwarp();
        own().turns[m.warp] = turn + 1; /* every lane: whoever reads it next has written it */
        if (own().leave)
            return;
        const start task = own().task[turn & 1];
        m.record = task.record;
        m.which = task.which;
        m.epoch = task.epoch;
        m.base = task.base;
        consume_task(m, task.op);
    }
}

/* ---- the epilogue ----------------------------------------------------------------------------- */

/* Starts fetching a record; a lane's part lands with fetch_wait. */
static __device__ __forceinline__ void fetch(const machine &m, uint4 *to, u32 offset, u32 bytes)
{
    const u8 *from = (const u8 *)own().launch.records + offset;
    for (u32 i = m.lane * 16; i < bytes; i += 32 * 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to) + i),
                     "l"(from + i)
                     : "memory");
}

static __device__ __forceinline__ u32 next_record(u32 record)
{
    return record + 1 == RECORDS ? 0 : record + 1;
}

/* The record behind the one behind the task at hand, where that of the task before was. */
static __device__ __forceinline__ void fetch_after_next(machine m)
{
    const u32 next = next_record(m.record);
    m.record = next;
    fetch(m, own().record[next_record(next)], task_of(m)->next, task_of(m)->next_bytes);
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
            (const u32 *)own().launch.counters + (size_t)waits[i].counter * MGL_COUNTER_WORDS;
        u32 wanted = m.epoch * waits[i].per_epoch + waits[i].threshold, seen;
        u64 since = 0;
        for (u32 n = 1; (seen = load_acquire(at)) < wanted; n++)
            if (n % POLLS == 0 && !(since = look_at_clock(since, MGL_REPORT_WAIT, task_of(m)->task,
                                                          m.epoch, waits[i].counter, wanted, seen)))
                break;
    }
    __syncwarp();
}

/* All stores of the block so far come before every signal. */
static __device__ __forceinline__ void signal(const machine &m)
{
    const u32 *signals = (const u32 *)((const u8 *)task_of(m) + task_of(m)->signal_at);
    __syncwarp();
    if (!is_first_lane() || task_of(m)->signals == 0)
        return;
    fence_gpu();
    for (int i = 0; i < task_of(m)->signals; i++)
        add_relaxed((u32 *)own().launch.counters + (size_t)signals[i] * MGL_COUNTER_WORDS);
}

/* Tells the host what sample has chosen: behind the signal, whose fence would else wait for the host's
 * memory. */
static __device__ __forceinline__ void tell(const machine &m)
{
    if (task_of(m)->op != OP_SAMPLE || !is_first_lane())
        return;
    for (int r = 0; r < rows_of(m); r++) {
        if (own().told[r].token == 0)
            continue;
        store_system((int *)own().launch.stream + own().told[r].at, own().told[r].token);
        store_system((int *)own().launch.host + MGL_HOST_SAMPLED, r + 1);
    }
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
        if (c.outer == 1 && rows == 1) { /* decoding: no divisions */
            for (int e = m.lane; e < words; e += 32)
                store_four_words(to + e * 16, 0xFFFFFFFFu, policy);
            continue;
        }
        for (int e = m.lane; e < (int)c.outer * rows * words; e += 32)
            store_four_words(to + e / words / rows * c.outer_bytes +
                                 (size_t)(e / words % rows) * c.row_bytes + e % words * 16,
                             0xFFFFFFFFu, policy);
    }
}

/* What the consumers need to know of the task. One lane. */
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

static __device__ __forceinline__ bool is_attention(int op)
{
    return op == OP_ATTEND || op == OP_ATTEND_TAIL || op == OP_ATTEND_PAST;
}

/* Where an epilogue stands. */
struct progress {
    u32 turn;         /* of the consumers: tasks opened so far */
    u32 bodies;       /* tasks that ended with `body` */
    u64 history;      /* rows of this epoch and of those before, a byte each, the newest lowest */
    bool ready;       /* the task at hand is prepared, */
    bool quick;       /* and nothing stands between it and the one before but that one's end; */
    bool opened;      /* it is open */
    bool owes_clears; /* those of the task before are still to be done, */
    u32 clear_epoch;  /* which was of this epoch */
#if MGL_TRACE
    mgl_device_event seen; /* of the task that has just ended */
#endif
};

/* Makes the task known as that of the next turn. One lane. */
static __device__ __forceinline__ void prepare_turn(const machine &m, const progress &p)
{
    prepare(m);
    own().task[p.turn & 1] = {(u16)m.record, (u16)m.which, task_of(m)->op, m.epoch, m.base};
}

/* Opens `go` for the consumers; what the epilogue's lanes have written comes before it. */
static __device__ __forceinline__ void open(progress &p)
{
    __syncwarp();
    if (is_first_lane()) {
#if MGL_TRACE
        own().input = own().products = own().starved = 0;
#endif
        own().pending = 1;
        barrier_arrive(&own().go);
    }
    p.turn++;
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

/* Prepares the task behind the one at hand, which the consumers are at, if it is a product, attention or a merge
 * of this epoch, and what that needs in shared memory is not in use. */
static __device__ __forceinline__ void prepare_next(machine m, progress &p)
{
    const int op = task_of(m)->op;
    const bool plain = task_of(m)->signals == 0;
    m.record = next_record(m.record);
    m.which ^= 1;
    p.ready = has_tape(task_of(m)->op) || task_of(m)->op == OP_MERGE ||
              (is_attention(task_of(m)->op) && !is_attention(op));
    p.quick = p.ready && plain && task_of(m)->waits == 0;
    if (p.ready && is_first_lane())
        prepare_turn(m, p);
}

/* One task, once its counters are there. */
static __device__ __forceinline__ void finish_task(machine &m, u32 *bodies)
{
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

/* Tasks that the epilogue does alone. What a clear resets stands in its record, as for any task. */
static __device__ __forceinline__ bool is_alone(int op)
{
    return op == OP_ENTER || op == OP_EMBED || op == OP_CLEAR;
}

/* Resets what the task before names: behind `go`, while the consumers wait for their input. It comes
 * before everything that this queue writes or signals later on. */
static __device__ __forceinline__ void pay_clears(machine m, progress &p)
{
    __syncwarp();
    if (!p.owes_clears)
        return;
    m.record = m.record == 0 ? RECORDS - 1 : m.record - 1;
    m.epoch = p.clear_epoch;
    clear(m, p.history);
    p.owes_clears = false;
    __syncwarp(); /* the record is overwritten soon */
}

#if MGL_TRACE
/* What the consumers have left of the task that has just ended. What they do behind their last arrival may
 * come late, and then counts for the task behind it. */
static __device__ __forceinline__ void see_event(mgl_device_event &seen)
{
    seen.input = own().input;
    seen.products = own().products;
    seen.end = time_ns();
    seen.starved = own().starved;
    seen.ahead = own().ahead;
}

/* The event of the task at hand; lane 0. */
static __device__ void leave_event(const machine &m, const mgl_device_event &seen, u32 begin,
                                   u32 counted)
{
    if (own().launch.trace == 0)
        return;
    mgl_device_event *to = (mgl_device_event *)own().launch.trace +
                           (size_t)(m.epoch % own().launch.trace_epochs) * own().launch.tasks +
                           task_of(m)->task;
    *to = seen;
    to->epoch = m.epoch + 1;
    to->begin = begin;
    to->go = counted;
}
#endif

/* The task at hand, its counters waited for; the record behind it is there. */
static __device__ __forceinline__ void work(machine &m, progress &p)
{
    const int op = task_of(m)->op;
    if (is_alone(op)) {
        pay_clears(m, p);
        fetch_after_next(m);
        p.ready = false;
        if (op == OP_ENTER)
            op_enter(m);
        else if (op == OP_EMBED)
            op_embed(m);
#if MGL_TRACE
        see_event(p.seen);
        p.seen.input = p.seen.products = p.seen.starved = 0;
#endif
        return;
    }
    if (!p.opened) {
        if (!p.ready && is_first_lane())
            prepare_turn(m, p);
        open(p);
    }
    p.opened = false;
    pay_clears(m, p);
    fetch_after_next(m);
    prepare_next(m, p);
    finish_task(m, &p.bodies);
#if MGL_TRACE
    see_event(p.seen);
#endif
    /* asked of the whole warp: a consumer may set `dead` between two lanes' looks */
    if (p.quick && __all_sync(0xFFFFFFFFu, !own().dead)) {
        open(p);
        p.opened = true;
    }
}

/* Task after task, epoch after epoch, until there is no next epoch or a watchdog has spoken. */
static __device__ __forceinline__ void direct(machine &m, const mgl_device_queue queue)
{
    progress p = {};
    fetch(m, own().record[0], queue.first, queue.first_bytes);
    fetch_wait();
    fetch(m, own().record[1], task_of(m)->next, task_of(m)->next_bytes);
    for (bool on = true; on; m.record = next_record(m.record), m.which ^= 1) {
#if MGL_TRACE
        u32 begin = time_ns();
#endif
        fetch_wait(); /* the next one's record, which was asked for a task ago */
        wait_counters(m);
#if MGL_TRACE
        u32 counted = time_ns();
#endif
        if (p.opened || __all_sync(0xFFFFFFFFu, !own().dead))
            work(m, p);
        bool enters = task_of(m)->op == OP_ENTER;
        on = !own().dead && !(enters && !own().control[MGL_CONTROL_GO]);
        on = p.opened || __all_sync(0xFFFFFFFFu, on); /* what is open is done to its end */
        if (!on)
            break;
#if MGL_TRACE
        if (is_first_lane())
            leave_event(m, p.seen, begin, counted);
#endif
        if (enters)
            p.history = p.history << 8 | (u64)rows_of(m);
        if (task_of(m)->op == OP_CLEAR)
            clear(m, p.history);
        signal(m);
        tell(m);
        p.owes_clears = task_of(m)->op != OP_CLEAR && task_of(m)->clears > 0;
        p.clear_epoch = m.epoch;
        if (task_of(m)->next == queue.first) {
            m.epoch++;
            m.base += queue.pages;
        }
    }
    fetch_wait();
    __syncwarp();
    if (is_first_lane()) {
        own().leave = 1;
        own().stop = 1;
        barrier_arrive(&own().go);
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
        for (int w = 0; w < MGL_WARPS; w++)
            own().turns[w] = 0;
        delay_init();
    }
    __syncthreads();
    if (m.warp == LOADER)
        load_tape(m, queue);
    else if (m.warp == WATCHER)
        watch_ring(m);
    else if (m.warp == EPILOGUE)
        direct(m, queue);
    else
        consume(m);
}

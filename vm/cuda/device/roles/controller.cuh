/*
 * The controller: a warp that goes through the queue's tasks ahead of the warps that do them. It
 * fetches their records, waits for their counters, makes known to consumers and epilogue what they
 * have to do, does alone what needs no consumers, and, once a task has ended, signals and resets
 * what the `clear` behind it names.
 *
 * Tasks that need consumers are numbered from 0. The controller says with `prepared` how many may
 * begin, the epilogue with `finished` how many have ended. Task n has instruction slot n % 2: it is
 * prepared when task n - 2 has ended, and begins when task n - 1 has, but for the reading of
 * flagged words. So one look at a word stands between two tasks, and all that is known beforehand
 * is done while the task before is at work.
 *
 * What the clear behind a task resets belongs to the set that the next epoch uses. Nothing of this
 * epoch writes there, and the controller itself enters the next epoch: so the next task need not
 * wait for the clear, and all that is signalled later on comes after it.
 */
#ifndef MGL_DEVICE_ROLES_CONTROLLER_CUH
#define MGL_DEVICE_ROLES_CONTROLLER_CUH

#include "vm/cuda/device/attention/kv_pages.cuh"
#include "vm/cuda/device/dispatch.cuh"
#include "vm/cuda/device/trace.cuh"
#include "vm/cuda/device/watchdog.cuh"

/* ---- records ----------------------------------------------------------------------------------
 */

/* Starts fetching a record; a lane's part lands with fetch_wait. */
static __device__ __forceinline__ void fetch(const machine &m, uint4 *to, u32 offset, u32 bytes)
{
    const u8 *from = (const u8 *)own().launch.records + offset;
    for (u32 i = m.lane * 16; i < bytes; i += 32 * 16)
        copy_16(shared_address(to) + i, from + i);
}

static __device__ __forceinline__ u32 next_record(u32 record)
{
    return record + 1 == RECORDS ? 0 : record + 1;
}

/* This thread's fetches (cp.async) have landed, and so those of the warp. */
static __device__ __forceinline__ void fetch_wait()
{
    copy_16_wait();
    __syncwarp();
}

/* The records of the first tasks, as many as there is room for. */
static __device__ __forceinline__ void fetch_first(machine m, const mgl_device_queue &queue)
{
    fetch(m, own().record[0], queue.first, queue.first_bytes);
    fetch_wait();
    for (; m.record + 1 < RECORDS; m.record++) {
        fetch(m, own().record[m.record + 1], task_of(m)->next, task_of(m)->next_bytes);
        fetch_wait();
    }
}

/* The record that is furthest ahead, to where that of the task before the one at hand was. */
static __device__ __forceinline__ void fetch_ahead(machine m)
{
    const u32 before = m.record == 0 ? RECORDS - 1 : m.record - 1;
    m.record = before == 0 ? RECORDS - 1 : before - 1;
    fetch(m, own().record[before], task_of(m)->next, task_of(m)->next_bytes);
}

/* ---- edges ------------------------------------------------------------------------------------
 */

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

/* Tells the host what sample has chosen: behind the signal, whose fence would else wait for the
 * host's memory. */
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

/* ---- tasks ------------------------------------------------------------------------------------
 */

/* Where the controller stands. */
struct progress {
    u32 permitted; /* tasks that may begin */
    u64 history;   /* rows of this epoch and of those before, a byte each, the newest lowest */
    bool prepared; /* the task at hand is, in its instruction slot, */
    bool begun;    /* or it is one of `permitted` */
};

/* Fills the instruction slot of the next task that needs consumers. */
static __device__ __forceinline__ void prepare_task(machine &m, progress &p)
{
    m.instruction = p.permitted & 1;
    if (is_first_lane()) {
        prepare_op(m);
        own().instruction[m.instruction] = {m.record, task_of(m)->op, m.epoch, m.base};
    }
    p.prepared = true;
}

/* Lets it begin, as soon as the task before has ended. */
static __device__ __forceinline__ void permit_task(progress &p)
{
    __syncwarp();
    if (is_first_lane()) {
        store_shared_release(&own().prepared, p.permitted + 1);
        barrier_arrive(&own().known[p.permitted & 1]);
    }
    p.permitted++;
    p.begun = true;
}

/* Prepares the task while the one before is at work, if it is of this epoch and its family lets it
 * (ops.def). Without counters it may begin. */
static __device__ __forceinline__ void prepare_ahead(machine &m, progress &p, int before)
{
    const int op = task_of(m)->op;
    p.prepared = p.begun = false;
    if (before == OP_ENTER || !goes_ahead(op, before))
        return;
    prepare_task(m, p);
    if (task_of(m)->waits == 0)
        permit_task(p);
}

/* Waits until so many tasks that need consumers have ended. */
static __device__ __forceinline__ void wait_finished(u32 count)
{
    while ((int)(count - load_shared_acquire(&own().finished)) > 0)
        ; /* the consumers have a clock in each of their waits */
    __syncwarp();
}

/* Whether no wait of the block has given up: asked of the whole warp, since a consumer may set
 * `dead` between two lanes' looks. */
static __device__ __forceinline__ bool is_alive()
{
    return __all_sync(0xFFFFFFFFu, !own().dead);
}

/* Whether the kernel has the task's op. If not, that is reported, and everybody leaves. All tasks
 * come by here, so neither consumers nor epilogue meet such an op. */
static __device__ __forceinline__ bool knows_op(const machine &m)
{
    const u32 op = (u32)task_of(m)->op;
    if (op < OP_COUNT)
        return true;
    if (is_first_lane()) {
        stop_all();
        leave_report(MGL_REPORT_OP, task_of(m)->task, m.epoch, op, 0, 0);
    }
    __syncwarp();
    return false;
}

/* Begins the task at hand, if it has not; false: a wait has given up, or nobody knows how. */
static __device__ __forceinline__ bool begin(machine &m, progress &p)
{
    if (p.begun)
        return true;
    if (!knows_op(m))
        return false;
    wait_counters(m);
    if (!is_alive())
        return false;
    if (is_alone(task_of(m)->op)) {
        const u32 go = trace_clock();
        do_op(m);
        trace_end_alone(go);
        return true;
    }
    if (!p.prepared)
        prepare_task(m, p);
    permit_task(p);
    return true;
}

/* Waits for the end of a task, which is that of `count` tasks, and does what is due then. Clears
 * behind the signals: those are waited for. False: the block leaves. */
static __device__ __forceinline__ bool settle(const machine &m, progress &p, u32 count)
{
    const int op = task_of(m)->op;
    wait_finished(count);
    if (!is_alive() || (op == OP_ENTER && !own().control[MGL_CONTROL_GO]))
        return false;
    trace_settle(m, is_alone(op), count);
    if (op == OP_ENTER)
        p.history = p.history << 8 | (u64)rows_of(m);
    if (op == OP_CLEAR)
        clear(m, p.history);
    signal(m);
    tell(m);
    if (op != OP_CLEAR && task_of(m)->clears > 0)
        clear(m, p.history);
    __syncwarp(); /* the record is overwritten soon */
    return true;
}

static __device__ __forceinline__ void go_to_next(machine &m, const mgl_device_queue &queue)
{
    if (KV_RING && is_of<FAMILY_ATTENTION>(task_of(m)->op))
        m.base += own().kv_shift;
    if (task_of(m)->next == queue.first) {
        m.epoch++;
        m.base += queue.pages;
    }
    m.record = next_record(m.record);
}

/* Task after task, epoch after epoch, until there is no next epoch or a watchdog has spoken. What
 * may begin is done to its end. */
static __device__ __forceinline__ void run_controller(machine &m, const mgl_device_queue queue)
{
    progress p = {};
    fetch_first(m, queue);
    for (bool on = begin(m, p); on;) {
        const machine before = m;
        const u32 count = p.permitted;
        go_to_next(m, queue);
        prepare_ahead(m, p, task_of(before)->op);
        on = settle(before, p, count);
        fetch_wait(); /* of the record that was furthest ahead */
        fetch_ahead(m);
        on = on && begin(m, p);
    }
    wait_finished(p.permitted);
    fetch_wait();
    if (is_first_lane()) {
        own().leave = 1;
        own().stop = 1;
        store_shared_release(&own().prepared, p.permitted + 1);
        barrier_arrive(&own().known[p.permitted & 1]);
    }
}

#endif

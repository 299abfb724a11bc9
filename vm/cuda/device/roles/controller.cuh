/*
 * The controller warp: it walks through the queue's tasks ahead of the warps that execute them. It
 * fetches the records, waits for the counters (acquire), and announces tasks to consumers and
 * epilogue. Tasks that need no consumers it executes alone. When a task has ended, the controller
 * signals (release) and then resets the regions of the `clear` that follows the task.
 *
 * Tasks that need consumers are numbered from 0. The controller publishes in `prepared` how many
 * may begin, the epilogue in `finished` how many have ended. Task n uses instruction slot n % 2.
 * The controller prepares task n when task n - 2 has ended. Task n begins when task n - 1 has
 * ended; only flagged words are read earlier. So a single check of a word separates two tasks, and
 * all preparation overlaps the previous task. Tasks of pre-issued families (ops.def) are announced
 * before their counters are reached, so that the consumers get ready. Such a task begins with the
 * start barrier too, which the controller then opens (preissued.cuh).
 *
 * Attention and merges of unsplit or of split rows do nothing in an epoch without such rows. If
 * such a task has no waits, signals and clears, the controller leaves it out: the task is not
 * announced (leave_out). The controller leaves out at most two tasks in a row (MOST_LEFT_OUT), and
 * never the task after enter. The next task that does nothing is announced and ends at once.
 *
 * The clear after a task resets the set that the next epoch uses. No task of this epoch writes
 * there, and the controller itself enters the next epoch. So the next task does not wait for the
 * clear, and every later signal comes after the clear.
 */
#ifndef MGL_DEVICE_ROLES_CONTROLLER_CUH
#define MGL_DEVICE_ROLES_CONTROLLER_CUH

#include "vm/cuda/device/attention/kv_pages.cuh"
#include "vm/cuda/device/dispatch.cuh"
#include "vm/cuda/device/trace.cuh"
#include "vm/cuda/device/watchdog.cuh"

/* ---- records ----------------------------------------------------------------------------------
 */

/* Starts the copy of a record; each lane copies a part. fetch_wait waits for it. */
static __device__ __forceinline__ void fetch(const machine &m, uint4 *to, u32 offset, u32 bytes)
{
    const u8 *from = (const u8 *)own().launch.records + offset;
    for (u32 i = m.lane * 16; i < bytes; i += 32 * 16)
        copy_16(shared_address(to) + i, from + i);
}

/* Waits until the copies of this thread, and so of the warp, have landed. */
static __device__ __forceinline__ void fetch_wait()
{
    copy_16_wait();
    __syncwarp();
}

static_assert(MGL_LEAST_RECORDS >= RECORDS, "enter has ended when what is behind is fetched");

enum { MOST_LEFT_OUT = RECORDS - 2 }; /* maximum tasks in a row that are left out */

/* Whether the machine's record is the last of its epoch. */
static __device__ __forceinline__ bool is_last(const machine &m, const mgl_device_queue &queue)
{
#if MGL_LISTS
    return task_of(m)->next == own().first[0] || task_of(m)->next == own().first[1];
#else
    return task_of(m)->next == queue.first;
#endif
}

/* Fetches the record after the machine's record, to place `to`. The machine is passed by value, so
 * the caller may pass a copy at another record. After the last record of an epoch, which has begun,
 * comes the first record of the list that the epoch's control names. */
static __device__ __forceinline__ void fetch_next(const machine m, const mgl_device_queue &queue,
                                                  u32 to)
{
#if MGL_LISTS
    if (is_last(m, queue)) {
        const u32 list = own().control[MGL_CONTROL_NEXT] != 0;
        fetch(m, own().record[to], own().first[list], own().first_bytes[list]);
        return;
    }
#endif
    fetch(m, own().record[to], task_of(m)->next, task_of(m)->next_bytes);
}

/* Publishes for the loader the list of an epoch. The lists of all earlier epochs are published
 * already. Also publishes for the previous epoch, which has been entered, whether rows want logits
 * and whether its panels are small-M panels. */
static __device__ __forceinline__ void publish_list(u32 epoch, u32 list)
{
#if MGL_PANELS
    __syncwarp();
    if (is_first_lane()) {
        own().list[epoch % 4] = list;
        own().heads[(epoch - 1) % 4] = own().wanted_count > 0;
        const int rows = own().control[MGL_CONTROL_ROWS];
        own().small_m[(epoch - 1) % 4] =
            (u32)small_m_groups(rows, false) | (u32)small_m_groups(rows, true) << 16;
        store_shared_release(&own().listed, epoch + 1);
    }
#endif
}

/* Fetches the first record of the launch, from the list of its first epoch. */
static __device__ __forceinline__ void fetch_first(machine &m, const mgl_device_queue &queue)
{
    fetch(m, own().record[0], queue.first, queue.first_bytes);
    fetch_wait();
#if MGL_LISTS
    const mgl_device_queue &many =
        ((const mgl_device_queue *)own().launch.queues)[blockIdx.x * LISTS + 1];
    const int *control = (const int *)operand(m, MGL_OPERAND(enter, control)).at;
    m.list = control[MGL_CONTROL_LIST] != 0;
    m.others = 0;
    __syncwarp();
    if (is_first_lane()) {
        own().first[0] = queue.first;
        own().first_bytes[0] = queue.first_bytes;
        own().first[1] = many.first;
        own().first_bytes[1] = many.first_bytes;
    }
    __syncwarp();
    if (m.list != 0)
        fetch(m, own().record[0], many.first, many.first_bytes);
    fetch_wait();
#if MGL_PANELS
    publish_list(0, m.list);
#endif
#endif
}

static __device__ __forceinline__ u32 record_behind(u32 record)
{
    return record + 1 == RECORDS ? 0 : record + 1;
}

/* ---- edges ------------------------------------------------------------------------------------
 */

/* Waits for the task's counters (acquire polling); one lane per counter. */
static __device__ __forceinline__ void wait_counters(const machine &m)
{
    const mgl_device_wait *waits =
        (const mgl_device_wait *)((const u8 *)task_of(m) + task_of(m)->wait_at);
    for (int i = m.lane; i < task_of(m)->waits; i += 32) {
        const u32 *at =
            (const u32 *)own().launch.counters + (size_t)waits[i].counter * MGL_COUNTER_WORDS;
        u32 wanted = m.epoch * waits[i].per_epoch + waits[i].threshold, seen;
#if MGL_LISTS
        wanted += m.others * waits[i].per_other;
#endif
        u64 since = 0;
        for (u32 n = 1; (seen = load_acquire(at)) < wanted; n++)
            if (n % POLLS == 0 && !(since = look_at_clock(since, MGL_REPORT_WAIT, task_of(m)->task,
                                                          m.epoch, waits[i].counter, wanted, seen)))
                break;
    }
    __syncwarp();
}

/* Signals the task's counters. The fence orders all earlier stores of the block before the signals.
 */
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

/* Sends the tokens that sample has chosen to the host. Called after the signal, whose fence would
 * otherwise wait for the host's memory. */
static __device__ __forceinline__ void tell(const machine &m)
{
    if (task_of(m)->op != OP_SAMPLE)
        return;
#if MGL_LISTS
    u32 last = 0; /* the last row with a token, + 1 */
    for (int r = m.lane; r < rows_of(m); r += 32) {
        if (own().told[r].token == 0)
            continue;
        store_system((int *)own().launch.stream + own().told[r].at, own().told[r].token);
        last = (u32)r + 1;
    }
    last = __reduce_max_sync(0xFFFFFFFFu, last);
    if (last > 0 && is_first_lane())
        store_system((int *)own().launch.host + MGL_HOST_SAMPLED,
                     (int)last + (int)m.list * MGL_HOST_SECOND);
#else
    if (!is_first_lane())
        return;
    for (int r = 0; r < rows_of(m); r++) {
        if (own().told[r].token == 0)
            continue;
        store_system((int *)own().launch.stream + own().told[r].at, own().told[r].token);
        store_system((int *)own().launch.host + MGL_HOST_SAMPLED, r + 1);
    }
#endif
}

/* ---- tasks ------------------------------------------------------------------------------------
 */

/* The controller's progress. */
struct progress {
    u32 permitted; /* tasks that need consumers and may begin */
    u32 done;      /* pre-issued tasks that have ended */
    epoch_history history;
    bool prepared; /* the current task is prepared in its instruction slot, */
    bool known;    /* it is announced to the consumers, */
    bool begun;    /* it is one of `permitted` */
    int postponed; /* records whose fetch is postponed: free places in own().record */
#if MGL_LISTS
    epoch_history history_of_second; /* of the second list; `history` is then the first list's */
#endif
};

/* The history of the current list. */
static __device__ __forceinline__ epoch_history history_of(const progress &p, const machine &m)
{
#if MGL_LISTS
    if (m.list != 0)
        return p.history_of_second;
#endif
    return p.history;
}

/* Adds the epoch that the machine has entered to that history. */
static __device__ __forceinline__ void note_epoch(progress &p, const machine &m)
{
#if MGL_LISTS
    if (m.list != 0)
        return add_epoch(p.history_of_second, rows_of(m));
#endif
    add_epoch(p.history, rows_of(m));
}

/* Advances to the next epoch, which may be of the other list. */
static __device__ __forceinline__ void next_epoch(machine &m, const mgl_device_queue &queue)
{
    m.epoch++;
#if MGL_PANELS
    if (m.list == 0) /* the second list's pages do not use this ring */
#endif
        m.base += queue.pages;
#if MGL_LISTS
    const u32 list = own().control[MGL_CONTROL_NEXT] != 0;
    if (list != m.list) {
        const u32 ended = m.epoch;
        m.epoch = m.others;
        m.others = ended;
        m.list = list;
    }
#endif
}

/* Fills the instruction slot of the next task that needs consumers. */
static __device__ __forceinline__ void prepare_task(machine &m, progress &p)
{
    m.instruction = p.permitted & 1;
    if (is_first_lane()) {
        prepare_op(m);
#if PREISSUED_TASKS
        own().opened[m.instruction] = 0;
#endif
        own().instruction[m.instruction] = {m.record, task_of(m)->op, m.epoch, m.base};
    }
    p.prepared = true;
}

/* Announces the prepared task to the consumers before it may begin. */
static __device__ __forceinline__ void announce_task(progress &p)
{
    __syncwarp();
    if (is_first_lane())
        barrier_arrive(&own().announced[p.permitted & 1]);
    p.known = true;
}

/* Permits the prepared task to begin as soon as the previous task has ended. */
static __device__ __forceinline__ void permit_task(progress &p)
{
    __syncwarp();
    if (is_first_lane()) {
        store_shared_release(&own().prepared, p.permitted + 1);
        if (!p.known)
            barrier_arrive(&own().announced[p.permitted & 1]);
    }
    p.permitted++;
    p.begun = true;
}

/* The same for a task that is announced already, after the end of the previous task. The controller
 * opens the start barrier itself, because the epilogue would come to the task later. */
static __device__ __forceinline__ void open_task(progress &p)
{
    __syncwarp();
    if (is_first_lane()) {
#if PREISSUED_TASKS
        own().opened[p.permitted & 1] = 1;
#endif
        trace_began(p.permitted);
        store_shared_release(&own().prepared, p.permitted + 1);
        barrier_arrive(&own().start);
    }
    p.permitted++;
    p.begun = true;
}

/* Waits until `count` tasks that need consumers have ended. */
static __device__ __forceinline__ void wait_finished(u32 count)
{
    while ((int)(count - load_shared_acquire(&own().finished)) > 0)
        ; /* each wait of the consumers has a deadline */
    __syncwarp();
}

/* Waits until the consumers are done with the previous task, a pre-issued one. The consumers arrive
 * on `done` directly, without the epilogue. */
static __device__ __forceinline__ void wait_done(progress &p)
{
    while (!barrier_passed(&own().done, p.done & 1))
        ; /* each wait of the consumers has a deadline */
    p.done++;
    __syncwarp();
}

/* Whether no wait of the block has given up. The warp votes, because a consumer may set `dead`
 * between the reads of two lanes. */
static __device__ __forceinline__ bool is_alive()
{
    return __all_sync(0xFFFFFFFFu, !own().dead);
}

/* Whether the kernel contains the task's op and variant. If not, the controller reports that and
 * stops all queues. Such a task never begins, so neither consumers nor epilogue see one. */
static __device__ __forceinline__ bool knows_task(const machine &m)
{
    const u32 op = (u32)task_of(m)->op, variant = task_of(m)->variant;
    const bool known = has_op(op);
    if (known && has_variant(op, variant))
        return true;
    if (is_first_lane()) {
        stop_all();
        write_report(known ? MGL_REPORT_VARIANT : MGL_REPORT_OP, task_of(m)->task, m.epoch,
                     known ? variant : op, 0, 0);
    }
    __syncwarp();
    return false;
}

/* Publishes the epoch count of the other list for reports. All tasks of the previous epoch have
 * ended. */
static __device__ __forceinline__ void publish_others(const machine &m)
{
#if MGL_LISTS
    if (task_of(m)->op == OP_ENTER && is_first_lane())
        own().others = m.others;
    __syncwarp();
#endif
}

/* Begins the current task if it has not begun. Returns false if a wait has given up or the kernel
 * does not contain the task's code. */
static __device__ __forceinline__ bool begin(machine &m, progress &p)
{
    if (p.begun)
        return true;
    if (p.known) {
        wait_counters(m);
        if (!is_alive())
            return false;
        open_task(p);
        return true;
    }
    wait_finished(p.permitted);
    publish_others(m);
    if (!knows_task(m))
        return false;
    wait_counters(m);
    if (!is_alive())
        return false;
    if (is_alone(task_of(m)->op)) {
        const u32 go = trace_clock();
        do_op(m);
#if MGL_PANELS
        if (task_of(m)->op == OP_ENTER && own().control[MGL_CONTROL_GO])
            publish_list(m.epoch + m.others + 1, own().control[MGL_CONTROL_NEXT] != 0);
#endif
        trace_end_alone(go);
        return true;
    }
    if (!p.prepared)
        prepare_task(m, p);
    permit_task(p);
    return true;
}

/* Whether the machine's task can be left out: the current epoch has no rows of the kind that the
 * task writes (unsplit or split), the task has no waits, signals and clears, and another task of
 * the epoch follows. */
static __device__ __forceinline__ bool can_leave_out(const machine &m,
                                                     const mgl_device_queue &queue)
{
    const mgl_record &r = *task_of(m);
    if (MGL_UNSPLIT == 0 || r.waits + r.signals + r.clears > 0 || is_last(m, queue))
        return false;
    return r.op == OP_ATTEND ? !has_rows_of(operand(m, MGL_OPERAND(attend, y)).first0)
           : r.op == OP_ATTEND_TAIL
               ? !has_rows_of(operand(m, MGL_OPERAND(attend_tail, part)).first1)
           : r.op == OP_ATTEND_PAST
               ? !has_rows_of(operand(m, MGL_OPERAND(attend_past, part)).first1)
           : r.op == OP_MERGE ? !has_rows_of(operand(m, MGL_OPERAND(merge, part)).first1)
                              : false;
}

/* Advances past the tasks that are left out. Returns their number. If no fetch is postponed, the
 * records of the machine's task and of the next two tasks have been fetched. The last one of these
 * records may not have landed. */
static __device__ __forceinline__ int leave_out(machine &m, const progress &p,
                                                const mgl_device_queue &queue)
{
    int left_out = 0;
    for (; left_out < MOST_LEFT_OUT - p.postponed && can_leave_out(m, queue); left_out++) {
        trace_left_out(m);
        m.base += KV_RING ? task_of(m)->kv_again : 0;
        m.record = record_behind(m.record);
        if (left_out == MOST_LEFT_OUT - 1)
            fetch_wait();
    }
    return left_out;
}

/* Fetches the records after the newest record in own().record. Free places are the place of record
 * `done`, the places of `left_out` tasks that were left out, and the places of postponed fetches.
 * Each fetch first waits for the previous fetch, because a record has the address of the next
 * record. If tasks were left out, this call fetches only one record, so that the controller
 * prepares the next task in time. Each later call fetches up to two records, until no fetch is
 * postponed. */
static __device__ __forceinline__ void fetch_records(const machine &m, progress &p, u32 done,
                                                     int left_out, const mgl_device_queue &queue)
{
    const int wanted = 1 + left_out + p.postponed, count = left_out > 0 ? 1 : min(wanted, 2);
    machine newest = m;
    newest.record = (done + RECORDS - 1 - (u32)p.postponed) % RECORDS;
    for (int i = 0; i < count; i++, newest.record = record_behind(newest.record)) {
        fetch_wait();
        fetch_next(newest, queue, record_behind(newest.record));
    }
    p.postponed = wanted - count;
}

/* The controller's loop over tasks and epochs, until there is no next epoch or a watchdog has
 * expired. Tasks that may begin are run to their end. */
FAR_OR_INLINE void run_controller(machine m, const mgl_device_queue *queues);

#if IN_OBJECT(CONTROLLER)

FAR_OR_INLINE void run_controller(machine m, const mgl_device_queue *queues)
{
    const mgl_device_queue queue = *queues;
    progress p = {};
    fetch_first(m, queue);
    for (machine first = m; first.record + 1 < RECORDS; first.record++) {
        fetch_next(first, queue, first.record + 1);
        fetch_wait();
    }
    for (bool on = begin(m, p); on;) {
        const machine before = m; /* the task that has begun */
        const u32 count = p.permitted;

        /* advance to the next task */
        if (KV_RING && is_of<FAMILY_ATTENTION>(task_of(m)->op))
            m.base += own().kv_shift;
        if (is_last(m, queue))
            next_epoch(m, queue);
        m.record = record_behind(m.record);
        if (p.postponed > 0) /* the next record may not have landed */
            fetch_wait();
        const int left_out = task_of(before)->op == OP_ENTER ? 0 : leave_out(m, p, queue);

        /* Prepare the next task during the previous one if it is of this epoch, its family permits
         * that (ops.def) and the kernel contains it. A task without counters may begin. */
        p.prepared = p.known = p.begun = false;
        if (task_of(before)->op != OP_ENTER && goes_ahead(task_of(m)->op, task_of(before)->op) &&
            has_variant(task_of(m)->op, task_of(m)->variant)) {
            prepare_task(m, p);
            if (task_of(m)->waits == 0)
                permit_task(p);
            else if (is_preissued(task_of(m)->op))
                announce_task(p);
        }

        /* the end of the previous task; clears follow the signals, which other queues wait for */
        const int op = task_of(before)->op;
        /* if the next task may have begun, `done` could be two phases ahead */
        const bool early = is_preissued(op), seen = early && !p.begun;
        if (seen)
            wait_done(p);
        else
            p.done += early ? 1 : 0;
        if (!seen || MGL_TRACE) /* the epilogue sets the time of the task's end */
            wait_finished(count);
        on = false;
        if (is_alive() && (op != OP_ENTER || own().control[MGL_CONTROL_GO])) {
            trace_settle(before, is_alone(op), count);
            if (op == OP_ENTER)
                note_epoch(p, before);
            if (op == OP_CLEAR)
                clear(before, history_of(p, before));
            signal(before);
#if PREISSUED_TASKS
            own().signalled = count; /* every lane */
#endif
            tell(before);
            if (op != OP_CLEAR && task_of(before)->clears > 0)
                clear(before, history_of(p, before));
            __syncwarp(); /* the record is overwritten soon */
            on = true;
        }

        on = on && begin(m, p);
        wait_finished(count); /* the task after the next reuses its instruction slot */

        fetch_records(m, p, before.record, left_out, queue);
    }
    wait_finished(p.permitted);
    fetch_wait();
    if (is_first_lane()) {
        own().leave = 1;
        own().stop = 1;
        store_shared_release(&own().prepared, p.permitted + 1);
        if (!p.known) /* otherwise the consumers wait for `start`, which the epilogue opens */
            barrier_arrive(&own().announced[p.permitted & 1]);
    }
}

#endif

#endif

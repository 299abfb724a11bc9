/*
 * The kernel: one block a queue, all resident at once (a cooperative launch), from the first token
 * of a reply to its last. Warps 0 to W - 1 execute the queue's tasks in order, epoch after epoch;
 * the last warp streams the tape.
 *
 * A task: the leader waits for its edges; a barrier; the op, while the next record is fetched; a
 * barrier; the leader signals.
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

/* Starts fetching a record; the thread's part lands with fetch_wait. */
static __device__ void fetch(const machine &m, uint4 *to, u32 offset, u32 bytes)
{
    const u8 *from = (const u8 *)m.launch->records + offset;
    for (u32 i = m.tid * 16; i < bytes; i += THREADS * 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to) + i),
                     "l"(from + i)
                     : "memory");
}

/* Waits for the task's edges; the leader. False: somebody's watchdog has spoken. */
static __device__ bool wait_edges(const machine &m)
{
    const mgl_device_wait *waits = (const mgl_device_wait *)((const u8 *)m.task + m.task->wait_at);
    for (int i = 0; i < m.task->waits; i++) {
        const u32 *at =
            (const u32 *)m.launch->counters + (size_t)waits[i].counter * MGL_COUNTER_WORDS;
        u32 wanted = m.epoch * waits[i].per_epoch + waits[i].threshold, seen;
        u64 since = 0;
        for (u32 n = 1; (seen = load_acquire(at)) < wanted; n++)
            if (n % POLLS == 0 && must_give_up(m.launch, &since, MGL_REPORT_WAIT, m.task->task,
                                               m.epoch, waits[i].counter, wanted, seen))
                return false;
    }
    return true;
}

/* All stores of the block so far come before every signal. */
static __device__ void signal(const machine &m)
{
    const u32 *signals = (const u32 *)((const u8 *)m.task + m.task->signal_at);
    if (m.task->signals > 0)
        fence_gpu();
    for (int i = 0; i < m.task->signals; i++)
        add_relaxed((u32 *)m.launch->counters + (size_t)signals[i] * MGL_COUNTER_WORDS);
}

static __device__ void execute(machine &m)
{
    switch (m.task->op) {
    case OP_ENTER:
        op_enter(m);
        break;
    case OP_EMBED:
        op_embed(m);
        break;
    case OP_NORM_LINEAR:
        op_norm_linear(m);
        break;
    case OP_ATTEND:
        op_attend(m);
        break;
    case OP_ATTEND_TAIL:
        op_attend_tail(m);
        break;
    case OP_ATTEND_PAST:
        op_attend_past(m);
        break;
    case OP_MERGE:
        op_merge(m);
        break;
    case OP_LINEAR_ADD:
        op_linear_add(m);
        break;
    case OP_NORM_SWIGLU:
        op_norm_swiglu(m);
        break;
    case OP_HEAD:
        op_head(m);
        break;
    case OP_SAMPLE:
        op_sample(m);
        break;
    }
}

/* One task; m.task is in shared memory. False: the block leaves. */
static __device__ bool run_task(machine &m, uint4 *next)
{
    int op = m.task->op;
    fetch_norm(m, op == OP_NORM_LINEAR || op == OP_NORM_SWIGLU || op == OP_HEAD);
    if (m.tid == 0)
        m.s->leave = !wait_edges(m);
    fetch_wait();
    consumer_barrier();
    if (m.s->leave)
        return false;
    fetch(m, next, m.task->next, m.task->next_bytes);
    execute(m);
    fetch_wait();
    consumer_barrier();
    if (m.s->dead)
        return false;
    if (m.tid == 0)
        signal(m);
    return op != OP_ENTER || m.s->control[MGL_CONTROL_GO];
}

static __device__ void consume(machine &m, const mgl_device_queue &queue)
{
    u32 count = 0;
    bool go = true;
    fetch(m, m.s->record[0], queue.first, queue.first_bytes);
    fetch_wait();
    consumer_barrier();
    for (m.epoch = 0; go; m.epoch++) {
        for (u32 i = 0; i < queue.tasks && go; i++, count++) {
            m.task = (const mgl_record *)m.s->record[count & 1];
            go = run_task(m, m.s->record[~count & 1]);
        }
        m.base += queue.pages;
    }
    if (m.tid == 0)
        m.s->stop = 1;
}

extern "C" __global__ void __launch_bounds__((MGL_WARPS + 1) * 32, 1)
    megalith(const __grid_constant__ mgl_device_launch launch)
{
    extern __shared__ __align__(128) u8 memory[];
    machine m = {};
    m.launch = &launch;
    m.s = (shared *)memory;
    m.stage = (float *)(memory + MGL_SHARED);
    m.ring = memory + MGL_SHARED + MGL_STAGE;
    m.tid = threadIdx.x;
    m.warp = m.tid / 32;
    m.lane = m.tid % 32;
    const mgl_device_queue &queue = ((const mgl_device_queue *)launch.queues)[blockIdx.x];
    if (m.tid == 0) {
        copy_init(m.s);
        m.s->stop = 0;
        m.s->dead = 0;
        m.s->leave = 0;
    }
    __syncthreads();
    if (m.warp == MGL_WARPS)
        load_tape(m, queue);
    else
        consume(m, queue);
}

/*
 * The machine that one block is. Its warps have five roles:
 *
 *   consumers   W warps: inputs, products with the weights, attention, sampling
 *   director    one warp: goes through the queue's tasks; waits for counters, prepares what the
 *               others need to know of a task and lets them begin (`known`), signals
 *   epilogue    one warp: adds up what the consumers leave in the slots, writes outputs, and says
 *               when a task has ended (`go` for the next)
 *   loader      one warp: streams the queue's tape into a ring of pages in shared memory
 *   watcher     one warp: sees what has landed there, and says so
 *
 * In a product each consumer warp has a run of the columns, reads that share of the input and
 * leaves partial sums of 8 weight rows at a time in a slot; the epilogue takes them from there. No
 * barrier of the block stands in that path: slots, ring and `go` are mbarriers.
 *
 * Queue order. A task leaves nothing, in memory or in what its block shares, before the one before
 * it has ended
 * (`go`), outputs written: so a queue's tasks follow one another, whoever executes them. Flagged
 * words alone are read earlier, as soon as the task is known: they tell for themselves.
 *
 * Memory model. Counters: a task's stores, then the mbarrier by which its warps report to the
 * epilogue, then its word to the director (a release), then the director's gpu fence and add (a
 * release); a waiting director polls with ld.acquire.gpu, then its word to the epilogue, then `go`.
 * So everything before a signal is visible to every thread of a task that waited for it. Flags:
 * words of all ones are not written yet; they are stored and polled with relaxed accesses at gpu
 * scope, each word tells for itself, and nothing else is concluded from it. All loads of data are
 * plain or relaxed ones: never non-coherent ones (no __ldg, no __restrict__ on what a task of this
 * epoch writes), because the acquire does not reach those.
 *
 * Leaving. A block leaves whole, between two tasks, by the director's decision. A wait that gives
 * up (the watchdog, here or elsewhere) sets `dead`; the task then runs on, on whatever is in
 * memory, through all its barriers, touches no address that it would not have touched anyway, and
 * nothing is signalled.
 *
 * Constants that the host defines: what the shape of the code depends on. MGL_ROWS, MGL_BATCH (1: a
 * launch may have more than one sequence), MGL_HIDDEN, MGL_WIDE (columns of attention's output),
 * MGL_FFN, MGL_HEADS (of one kv head), MGL_HEAD_DIM, MGL_VOCAB, MGL_EPS_BITS, MGL_WEIGHT and
 * MGL_CACHE (dtypes), MGL_PAGE, MGL_RING, MGL_FLIGHT, MGL_PREFETCH (pages), MGL_WARPS, MGL_STAGE,
 * MGL_SHARED (bytes that struct shared may have), MGL_PLAIN (1: one row, and every product and
 * attention of the kind that decoding by flags has: see vm/cuda/plain.c), MGL_PAST (1: such
 * attention has its keys and values from the ring, where there are bulk copies), MGL_TRACE (1:
 * tasks leave events), MGL_DELAYS (1: random delays, see device/delay.cuh).
 *
 * What a launch can be told is no constant, or each length of a prompt would have a kernel of its
 * own: sequences, capacity and the pages that may be on their way while an edge is waited for stand
 * in mgl_device_launch, strides and splits in the records. Of the capacity a kernel has nothing but
 * MGL_PAST: whether a split may have more positions than registers have room for.
 */
#ifndef MGL_DEVICE_MACHINE_CUH
#define MGL_DEVICE_MACHINE_CUH

#define MGL_STEP_FN    static __device__
#define MGL_SAMPLER_FN static __device__
#define MGL_PHILOX_FN  static __device__
#define MGL_WAYS_FN    static __device__
#define MGL_TAPE_FN    static __device__ __forceinline__ constexpr
#define MGL_FLOAT_BITS __float_as_uint
#define MGL_BITS_FLOAT __uint_as_float

#include "instructions/operands.h"
#include "instructions/sample/philox.h"
#include "instructions/sample/sampler.h"
#include "schedule/step.h"
#include "schedule/ways.h"
#include "vm/cuda/device/record.h"

#ifndef INFINITY
#define INFINITY __int_as_float(0x7F800000)
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

enum {
    THREADS = MGL_WARPS * 32,                       /* consumers */
    BLOCK_THREADS = THREADS + MGL_OTHER_WARPS * 32, /* the other roles stand behind them */
    EPILOGUE = MGL_WARPS,                           /* warp number */
    LOADER = MGL_WARPS + 1,
    WATCHER = MGL_WARPS + 2,
    DIRECTOR = MGL_WARPS + 3,
    PAGE_BLOCKS = MGL_PAGE / MGL_BLOCK_BYTES,
    PARTIALS = MGL_PARTIAL_BYTES / 4,
    POLLS = 256, /* of memory between looks at the clock */
    MOST_ROWS = MGL_ROWS <= 1   ? 1
                : MGL_ROWS <= 8 ? 8
                                : 16, /* rows that there is machine code for */
    SLOTS = MGL_WARPS * MGL_ROW_GROUP * MOST_ROWS * 8 <= PARTIALS ? 4 : 2,
    SLOT = PARTIALS / SLOTS, /* partial sums of some row groups: (warp, row group, row, 8) */
    RECORDS =
        4 /* the one before (its clears) or the furthest ahead, the one at hand, the next two */
};
static_assert(MGL_WARPS * MGL_ROW_GROUP * MOST_ROWS <= SLOT,
              "a slot must have room for a row group");

/* A (rows, columns) region as a task uses it: taken from its operand once, before there is haste.
 */
struct view {
    u8 *at;           /* the first element, in the set that this epoch uses */
    long long stride; /* bytes from row to row */
    int dtype;
    bool flag;
};

/* The input of a task with a tape; the consumers take a copy in one go. */
struct alignas(16) input {
    view x;
    const float *g; /* RMSNorm's weight, NULL for none */
    const int *map; /* (count) which rows; NULL: 0, 1, ... */
    int columns;
    int kblocks;   /* of a weight row */
    int count;     /* rows to work on */
    int row_bytes; /* of the stage; the low parts stand behind all rows' high ones */
    int segments;  /* of the task */
    u32 end;       /* page of the epoch's tape at which the task is done with it */
    bool vector;   /* rows begin at, and have whole, multiples of 16 bytes */
    bool low;      /* split into high and low parts */
    bool staged;   /* in the stage, normalised and rounded */
    bool few;      /* the short way: sum_few for all segments */
    bool flows;    /* one row of the short way: it is read before `go` already, since its words tell
                      for themselves */
    bool early;    /* and with a norm: its squares come before its sums */
};

/* Keys or values of one kv head: (sequences, positions, head_dim). */
struct cache_view {
    u8 *at;
    long long sequence; /* elements from one to the next */
    int position;
};

/* What a task attends to. This epoch's k and v are operands 1 and 2 where it appends. */
struct attention {
    view q, k_new, v_new;
    view y; /* the output, where it is attention's */
    const float *rope;
    int rope_stride;   /* floats */
    cache_view k, v;   /* to append to as well */
    int split, splits; /* its share of the earlier positions */
    bool now;          /* this epoch's rows too: it appends */
    int part;          /* number of the operand, where the output is the split's partial; else 0 */
};

/* A turn, as the director makes it known. */
struct alignas(16) start {
    u32 record; /* of the task */
    int op;
    u32 epoch, base;
};

/* What the host is to be told of a sampled token. */
struct news {
    int at;    /* of the stream */
    int token; /* + 1; 0: nothing */
};

/* Shared memory of a block: this in MGL_SHARED bytes, then the stage, then the ring. */
struct shared {
    mgl_device_launch
        launch;         /* the kernel's argument: as a pointer in each thread it would be spilled */
    u64 full[MGL_RING]; /* mbarriers: the page of the slot has landed */
    u64 empty[MGL_RING];    /* no consumer warp needs it any more */
    u64 slot_full[SLOTS];   /* every consumer warp has left its partial sums */
    u64 slot_empty[SLOTS];  /* the epilogue has taken them */
    u64 known[2];           /* the next turn, even or odd, may begin */
    u64 go;                 /* and the one before it has ended */
    u64 body;               /* every consumer warp is done with a task that has no slots */
    u64 squares_full;       /* every consumer warp has left its `sums` of an early input */
    volatile u32 pending;   /* an edge is waited for: fewer bytes in flight */
    volatile u32 demanded;  /* pages below are the task's at hand, which has its input */
    volatile u32 prepared;  /* turns that may begin: the director's word */
    volatile u32 finished;  /* and that have ended: the epilogue's */
    volatile int leave;     /* the director's decision, at `known` */
    volatile int dead;      /* a wait gave up: what the task makes is worth nothing */
    u32 reported;           /* the block's report says why */
    volatile int stop;      /* tells the loader to go */
    volatile int lost;      /* the loader has given up: no page will land any more */
    volatile u32 landed;    /* pages, all below have: the watcher's word */
    volatile u32 turns[16]; /* (warp) turns so far */
    volatile u32 end[16];   /* (warp) page at which the task at hand is done with the tape */
    start task[2];          /* of even and of odd turns: the one at hand and the next */
    alignas(16) float partial[PARTIALS];
    uint4 record[RECORDS][MGL_RECORD_BYTES / 16];
    float sums[MGL_ROWS * MGL_WARPS]; /* sums of squares (row, warp) */
    u32 early;                        /* inputs so far; the epilogue's */
    int control[MGL_CONTROL_WORDS];
    int table[MGL_ROWS * MGL_TABLE_WORDS];
    /* the task at hand, made ready by the director: what a thread would otherwise keep in
     * registers, or worse, in local memory, whose loads go to L2 here */
    input in[2];
    attention att;

    /* what the next attention of one row, or the one at hand, has of earlier positions, for the
     * loader (copy.cuh) */
    volatile u64 past_keys, past_values; /* where they are, */
    volatile u32 past_bytes;             /* so many bytes of each, */
    volatile u32 past_run;               /* of which its warps want so many at a time */
    volatile u32 past_shift;  /* PAST: pages by which what is behind it on the tape comes later */
    volatile u32 entered;     /* PAST: epochs so far, */
    volatile u32 past_first;  /* and the position of the launch's first row */
    volatile u32 past_number; /* of what stands here; odd while that is written */
    volatile u32 past_used;   /* runs that its warps have asked for themselves */

    news told[MGL_ROWS];  /* by sample, of each row; the director passes it on */
    int wanted[MGL_ROWS]; /* rows that want logits, in order */
    int wanted_count;
#if MGL_TRACE
    volatile u32 input, products, starved, ahead; /* of consumer warp 0 in the task at hand */
    volatile u32 ended;                           /* when the task before did */
    mgl_device_event seen[3]; /* of even and of odd turns, and of a task without consumers */
#endif
#if MGL_DELAYS
    u32 delay_seed;
    volatile u32 delays[BLOCK_THREADS / 32]; /* (warp) calls of delay() so far */
#endif
};

static_assert(sizeof(shared) <= MGL_SHARED, "the block's own shared memory is too small");

extern __shared__ __align__(128) u8 block_memory[];

/* The three parts. Named like this rather than by pointers, so that the compiler sees what memory
 * it is. */
static __device__ __forceinline__ shared &own()
{
    return *(shared *)block_memory;
}

static __device__ __forceinline__ u8 *stage_memory() /* MGL_STAGE bytes */
{
    return block_memory + MGL_SHARED;
}

static __device__ __forceinline__ u8 *ring_memory() /* (MGL_RING, MGL_PAGE) */
{
    return block_memory + MGL_SHARED + MGL_STAGE;
}

#include "vm/cuda/device/delay.cuh"

/* Threads of one block, in their own words. Passed by value where a function is not inlined, so
 * that it stays in registers. */
struct machine {
    u32 record; /* of the task at hand: number in own().record */
    u32 epoch;
    u32 base;  /* page at which the tape of this epoch starts, counted over all epochs */
    u32 known; /* pages below this one have landed, as far as this warp knows; see ring.cuh */
    u32 freed; /* pages below this one are not needed any more by this warp */
    u32 which; /* of own().in is the task's */
#if MGL_TRACE
    u32 starved; /* ns, of the task at hand */
#endif
    u32 slot; /* slots used so far, over all tasks: which one, and which phase of it */
    int warp, lane;
};

/* Asks anew who this thread is: a value that lived through all tasks would be kept in local memory.
 */
static __device__ __forceinline__ void know_thread(machine &m)
{
    u32 thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    m.warp = (int)(thread / 32);
    m.lane = (int)(thread % 32);
}

/* Its number in the block; for consumers, among them. */
static __device__ __forceinline__ int thread_of(const machine &m)
{
    return m.warp * 32 + m.lane;
}

/* Whether this is lane 0, asked anew each time: as a value that lives long the compiler keeps it in
 * local memory, which takes ten times as long as asking. */
static __device__ __forceinline__ bool is_first_lane()
{
    u32 lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane == 0;
}

static __device__ __forceinline__ void consumer_barrier()
{
    asm volatile("bar.sync 1, %0;" ::"n"((int)THREADS) : "memory");
}

/* ---- scopes and clocks ------------------------------------------------------------------------
 */

static __device__ __forceinline__ u32 load_acquire(const u32 *at)
{
    u32 value;
    delay();
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

/* With a relaxed add behind it: a release of all that the block did before its last barrier. */
static __device__ __forceinline__ void fence_gpu()
{
    delay();
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

static __device__ __forceinline__ void add_relaxed(u32 *at)
{
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(at) : "memory");
    delay();
}

static __device__ __forceinline__ u32 load_relaxed(const u32 *at)
{
    u32 value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

/* Memory that the host writes or reads while the kernel runs. */
static __device__ __forceinline__ int load_system(const int *at)
{
    int value;
    asm volatile("ld.relaxed.sys.global.s32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

static __device__ __forceinline__ void store_system(int *at, int value)
{
    asm volatile("st.relaxed.sys.global.s32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
    delay();
}

static __device__ __forceinline__ u64 clock_ns()
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Low half of a nanosecond clock that all queues share. */
static __device__ __forceinline__ u32 time_ns()
{
    return (u32)clock_ns();
}

/* ---- the watchdog -----------------------------------------------------------------------------
 */

/* Whether somebody's watchdog has spoken. */
static __device__ bool is_stopped()
{
    return load_relaxed((const u32 *)own().launch.stopped) != 0;
}

/* Whether a wait that gives up says why: the block's first to do so, but not one of a turn that has
 * not begun, since the one before has a wait of its own. From then on what the task makes is worth
 * nothing. */
static __device__ __forceinline__ bool is_to_report()
{
    const u32 warp = threadIdx.x / 32;
    own().dead = 1;
    if (warp < MGL_WARPS && (int)(own().turns[warp] - 1 - own().finished) > 0)
        return false;
    return atomicCAS(&own().reported, 0u, 1u) == 0;
}

/* Has everybody leave; the first to say so is told to the host. */
static __device__ __forceinline__ void stop_all()
{
    if (atomicCAS((u32 *)own().launch.stopped, 0u, 1u) == 0)
        store_system((int *)own().launch.host + MGL_HOST_EXPIRED, (int)blockIdx.x + 1);
}

/* The block's report, which the host reads when the kernel has ended. */
static __device__ __forceinline__ void leave_report(int kind, int task, u32 epoch, u32 which,
                                                    u32 wanted, u32 seen)
{
    int *report = (int *)own().launch.reports + blockIdx.x * MGL_REPORT_WORDS;
    if (!is_to_report())
        return;
    store_system(report + MGL_REPORT_TASK, task);
    store_system(report + MGL_REPORT_COUNTER, (int)which);
    store_system(report + MGL_REPORT_WANTED, (int)wanted);
    store_system(report + MGL_REPORT_SEEN, (int)seen);
    store_system(report + MGL_REPORT_EPOCH, (int)epoch);
    store_system(report + MGL_REPORT_KIND, kind);
}

/* What a wait does every so many polls. `since` is when the wait looked first, 0 at the first look;
 * the result is what to hand in next time, or 0 when the wait has to give up, because it is past
 * its deadline or because another one is; then the queue's report says what it waited for. */
static __device__ __forceinline__ u64 look_at_clock(u64 since, int kind, int task, u32 epoch,
                                                    u32 which, u32 wanted, u32 seen)
{
    u64 now = clock_ns();
    if (since == 0)
        since = now;
    if (!is_stopped()) {
        if (now - since < own().launch.deadline_ns)
            return since;
        stop_all();
    }
    leave_report(kind, task, epoch, which, wanted, seen);
    return 0;
}

/* ---- numbers ----------------------------------------------------------------------------------
 */

static __device__ __forceinline__ float bf16_float(u32 bits)
{
    return __uint_as_float(bits << 16);
}

static __device__ __forceinline__ float f16_float(u32 bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((u16)bits));
    return value;
}

static __device__ __forceinline__ u16 float_f16(float value)
{
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

/* Round to nearest even, as mgl_f32_to_bf16 of the host. */
static __device__ __forceinline__ u16 float_bf16(float value)
{
    u32 u = __float_as_uint(value);
    if ((u & 0x7FFFFFFFu) > 0x7F800000u)
        return (u16)((u >> 16) | 0x40);
    return (u16)((u + 0x7FFFu + ((u >> 16) & 1)) >> 16);
}

/* The three formats by number: what a dtype's values are and how 16 bytes of them become floats. */
enum { DTYPE_F32, DTYPE_BF16, DTYPE_F16 };

template <int DTYPE> struct format {
    enum { SIZE = DTYPE == DTYPE_F32 ? 4 : 2, VECTOR = 16 / SIZE };

    static __device__ __forceinline__ void unpack(uint4 raw, float *to)
    {
        const u32 words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (DTYPE == DTYPE_F32) {
                to[i] = __uint_as_float(words[i]);
            } else if (DTYPE == DTYPE_BF16) {
                to[(2 * i) % VECTOR] = bf16_float(words[i] & 0xFFFFu);
                to[(2 * i + 1) % VECTOR] = __uint_as_float(words[i] & 0xFFFF0000u);
            } else {
                to[(2 * i) % VECTOR] = f16_float(words[i] & 0xFFFFu);
                to[(2 * i + 1) % VECTOR] = f16_float(words[i] >> 16);
            }
        }
    }

    static __device__ __forceinline__ float load(const u8 *at, long long i)
    {
        if (DTYPE == DTYPE_F32)
            return ((const float *)at)[i];
        u32 bits = ((const u16 *)at)[i];
        return DTYPE == DTYPE_BF16 ? bf16_float(bits) : f16_float(bits);
    }

    /* The value that store leaves. */
    static __device__ __forceinline__ float round(float value)
    {
        return DTYPE == DTYPE_F32    ? value
               : DTYPE == DTYPE_BF16 ? bf16_float(float_bf16(value))
                                     : f16_float(float_f16(value));
    }

    static __device__ __forceinline__ void store(u8 *at, long long i, float value)
    {
        if (DTYPE == DTYPE_F32)
            ((float *)at)[i] = value;
        else
            ((u16 *)at)[i] = DTYPE == DTYPE_BF16 ? float_bf16(value) : float_f16(value);
    }
};

typedef format<MGL_WEIGHT> weight_format;
typedef format<MGL_CACHE> cache_format;

/* ---- records ----------------------------------------------------------------------------------
 */

static __device__ __forceinline__ const mgl_record *task_of(const machine &m)
{
    return (const mgl_record *)own().record[m.record];
}

/* Operand MGL_OPERAND(op, name) of the task. */
static __device__ __forceinline__ const mgl_device_operand &operand(const machine &m, int i)
{
    return ((const mgl_device_operand *)(task_of(m) + 1))[i];
}

static __device__ __forceinline__ const mgl_device_segment &segment(const machine &m, int i)
{
    return ((const mgl_device_segment *)((const u8 *)task_of(m) + task_of(m)->segment_at))[i];
}

/* The set of `sets` that an epoch uses. */
static __device__ __forceinline__ u32 set_of(u32 epoch, u32 sets)
{
    return sets == 2 ? epoch & 1 : sets == 1 ? 0 : epoch % sets;
}

/* The first element of a region, in the set that this epoch uses. */
static __device__ __forceinline__ u8 *address_of(const machine &m, const mgl_device_operand &o)
{
    return (u8 *)o.at + set_of(m.epoch, o.sets) * o.set_bytes;
}

static __device__ __forceinline__ view view_of(const machine &m, const mgl_device_operand &o)
{
    view v = {address_of(m, o), o.stride0 * (o.dtype == 0 ? 4 : 2), o.dtype, o.flag != 0};
    return v;
}

/* Row r of a (rows, columns) region of 32-bit elements, from its first column on. */
static __device__ __forceinline__ float *row_of(const mgl_device_operand &o, int r)
{
    return (float *)o.at + r * o.stride0;
}

static __device__ __forceinline__ int rows_of(const machine &m)
{
    return own().control[MGL_CONTROL_ROWS];
}

/* ---- sums over a warp -------------------------------------------------------------------------
 */

static __device__ __forceinline__ float warp_sum(float value)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
    return value;
}

static __device__ __forceinline__ float warp_max(float value)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, offset));
    return value;
}

#endif

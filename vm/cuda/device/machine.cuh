/*
 * The machine that one block is: a loader warp that streams the queue's tape into a ring of pages
 * in shared memory, and MGL_WARPS consumer warps that execute the queue's tasks.
 *
 * Memory model. A task's stores, a barrier of the consumers, then one thread's gpu fence and
 * add to the counter (a release); a waiting task's one thread polls with ld.acquire.gpu, then a
 * barrier. So everything before a signal is visible to every thread of a task that waited for it.
 * All loads of data are plain ones: never non-coherent ones (no __ldg, no __restrict__ on what a
 * task of this epoch writes), because the acquire does not reach those.
 *
 * Leaving. A block leaves whole: at the start of a task, by the leader's (thread 0's) decision,
 * or at its end, by what shared memory says behind the barrier. A wait inside an op that gives up
 * (the watchdog, here or elsewhere) sets `dead`; the op then runs on, on whatever is in memory,
 * through all its barriers, touches no address that it would not have touched anyway, and nothing
 * is signalled.
 *
 * Constants that the host defines: MGL_ROWS, MGL_SEQUENCES, MGL_CAPACITY, MGL_HEADS (of one kv
 * head), MGL_HEAD_DIM, MGL_VOCAB, MGL_EPS_BITS, MGL_WEIGHT and MGL_CACHE (dtypes), MGL_PAGE,
 * MGL_RING, MGL_WARPS, MGL_STAGE, MGL_SHARED (bytes that struct shared may have).
 */
#ifndef MGL_DEVICE_MACHINE_CUH
#define MGL_DEVICE_MACHINE_CUH

#define MGL_STEP_FN    static __device__
#define MGL_SAMPLER_FN static __device__
#define MGL_PHILOX_FN  static __device__
#define MGL_FLOAT_BITS __float_as_uint
#define MGL_BITS_FLOAT __uint_as_float

#include "instructions/sample/philox.h"
#include "instructions/sample/sampler.h"
#include "schedule/step.h"
#include "vm/cuda/device/record.h"

#ifndef INFINITY
#define INFINITY __int_as_float(0x7F800000)
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

enum {
    THREADS = MGL_WARPS * 32, /* consumers; the loader's 32 stand behind them */
    BLOCK_BYTES = 512,
    PAGE_BLOCKS = MGL_PAGE / BLOCK_BYTES,
    PARTIALS = MGL_PARTIAL_BYTES / 4,
    POLLS = 1024, /* of a counter between looks at the clock */
    GROUP_ROWS = 8
};

/* Shared memory of a block: this in MGL_SHARED bytes, then the stage, then the ring. */
struct shared {
    u64 full[MGL_RING];  /* mbarriers: the page of the slot has landed */
    u64 empty[MGL_RING]; /* every consumer warp is done with it */
    float partial[PARTIALS];
    uint4 record[2][MGL_RECORD_BYTES / 16]; /* this task's and the next one's */
    int control[MGL_CONTROL_WORDS];
    int table[MGL_ROWS * MGL_TABLE_WORDS];
    float sums[MGL_ROWS * MGL_WARPS]; /* sums of squares (row, warp) */
    int wanted[MGL_ROWS];             /* rows that want logits */
    int wanted_count;
    int leave;         /* the leader's decision for the task at hand */
    volatile int dead; /* a wait inside an op gave up: what the op made is worth nothing */
    volatile int stop; /* tells the loader to go */
};

static_assert(sizeof(shared) <= MGL_SHARED, "the block's own shared memory is too small");

/* Threads of one block, in their own words. */
struct machine {
    const mgl_device_launch *launch;
    shared *s;
    float *stage; /* MGL_STAGE bytes */
    u8 *ring;     /* (MGL_RING, MGL_PAGE) */
    const mgl_record *task;
    const float *norm; /* the task's norm weight in the stage, NULL: it is not there */
    u32 epoch;
    u32 page;   /* next page, counted over all epochs, that this warp has not released */
    u32 base;   /* page at which the tape of this epoch starts */
    int landed; /* `page` has landed: no need to ask again */
    int dead;   /* the watchdog has spoken */
    int tid, warp, lane;
};

static __device__ __forceinline__ void consumer_barrier()
{
    asm volatile("bar.sync 1, %0;" ::"n"((int)THREADS) : "memory");
}

/* This thread's fetches (cp.async) have landed. */
static __device__ __forceinline__ void fetch_wait()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* ---- scopes and clocks ------------------------------------------------------------------------ */

static __device__ __forceinline__ u32 load_acquire(const u32 *at)
{
    u32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

/* With a relaxed add behind it: a release of all that the block did before its last barrier. */
static __device__ __forceinline__ void fence_gpu()
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

static __device__ __forceinline__ void add_relaxed(u32 *at)
{
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(at) : "memory");
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
}

static __device__ __forceinline__ u64 clock_ns()
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* ---- the watchdog ----------------------------------------------------------------------------- */

/* Whether somebody's watchdog has spoken. */
static __device__ bool is_stopped(const mgl_device_launch *launch)
{
    return load_relaxed((const u32 *)launch->stopped) != 0;
}

/* What a wait does every so many polls: true when it has to give up, because it is past its deadline
 * or because another one is; then the queue's report says what it waited for. *since is 0 at the
 * first look. */
static __device__ __noinline__ bool must_give_up(const mgl_device_launch *launch, u64 *since,
                                                 int kind, int task, u32 epoch, u32 which,
                                                 u32 wanted, u32 seen)
{
    int *report = (int *)launch->reports + blockIdx.x * MGL_REPORT_WORDS;
    u64 now = clock_ns();
    if (*since == 0)
        *since = now;
    if (!is_stopped(launch)) {
        if (now - *since < launch->deadline_ns)
            return false;
        if (atomicCAS((u32 *)launch->stopped, 0u, 1u) == 0)
            store_system((int *)launch->host + MGL_HOST_EXPIRED, (int)blockIdx.x + 1);
    }
    store_system(report + MGL_REPORT_TASK, task);
    store_system(report + MGL_REPORT_COUNTER, (int)which);
    store_system(report + MGL_REPORT_WANTED, (int)wanted);
    store_system(report + MGL_REPORT_SEEN, (int)seen);
    store_system(report + MGL_REPORT_EPOCH, (int)epoch);
    store_system(report + MGL_REPORT_KIND, kind);
    return true; /* the host reads when the kernel has ended */
}

/* ---- numbers ---------------------------------------------------------------------------------- */

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

/* ---- records ---------------------------------------------------------------------------------- */

static __device__ __forceinline__ const mgl_device_operand &operand(const machine &m, int i)
{
    return ((const mgl_device_operand *)(m.task + 1))[i];
}

static __device__ __forceinline__ const mgl_device_segment &segment(const machine &m, int i)
{
    return ((const mgl_device_segment *)((const u8 *)m.task + m.task->segment_at))[i];
}

/* Row r of a (rows, columns) region, from its first column on. */
static __device__ __forceinline__ float *row_of(const mgl_device_operand &o, int r)
{
    return (float *)o.at + r * o.stride0;
}

static __device__ __forceinline__ int rows_of(const machine &m)
{
    return m.s->control[MGL_CONTROL_ROWS];
}

/* ---- sums over a warp ------------------------------------------------------------------------- */

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

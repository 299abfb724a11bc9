/*
 * Wrappers for all PTX instructions without a C++ equivalent: scoped loads and stores, mbarriers,
 * bulk and async copies, flagged words with their cache policies, conversions, tensor cores,
 * clocks. All device files use these functions. Only this file depends on the architecture: no
 * other file has an asm statement or tests __CUDA_ARCH__.
 *
 *   sm_90 and later   MGL_BULK_COPY: one thread starts one bulk copy per page (cp.async.bulk,
 *                     PTX ISA 9.7.9.25); its bytes complete the frame's `full` barrier. L2 policy:
 *                     evict first, because the bytes are needed again one epoch later at the
 *                     earliest.
 *   sm_80 to sm_89    the 32 lanes copy 16 bytes at a time (cp.async); each lane's copies arrive
 *                     on `full` once they have landed (cp.async.mbarrier.arrive.noinc).
 */
#ifndef MGL_DEVICE_PTX_CUH
#define MGL_DEVICE_PTX_CUH

#include "base/dtypes.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#if __CUDA_ARCH__ >= 900
#define MGL_BULK_COPY 1
#else
#define MGL_BULK_COPY 0
#endif

/* Whether an instruction converts e4m3 numbers: on sm_89 only with CUDA 12.1 or newer. */
#if __CUDA_ARCH__ >= 900 ||                                                                        \
    (__CUDA_ARCH__ >= 890 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201)
#define MGL_CONVERTS_E4M3 1
#else
#define MGL_CONVERTS_E4M3 0
#endif
enum { CONVERTS_E4M3 = MGL_CONVERTS_E4M3 };

/* Optimization barrier: returns `value` in a register whose value the compiler cannot derive. The
 * compiler keeps this register instead of computing the value again, and cannot simplify
 * expressions of `value`. */
static __device__ __forceinline__ u32 kept(u32 value)
{
    asm volatile("" : "+r"(value));
    return value;
}

/* delay.cuh: random delays in accesses that other warps see, for tests. */
static __device__ void delay();

/* ---- threads, clocks ---- */

/* The thread's number in the block, read again at each call. */
static __device__ __forceinline__ u32 thread_index()
{
    u32 thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

/* Whether this is lane 0, read again at each call: the compiler keeps a long-lived value in local
 * memory, which takes ten times as long as the instruction. */
static __device__ __forceinline__ bool is_first_lane()
{
    u32 lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane == 0;
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

static __device__ __forceinline__ u32 cycles()
{
    u32 now;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
    return now;
}

static __device__ __forceinline__ void sleep_ns(u32 ns)
{
    asm volatile("nanosleep.u32 %0;" ::"r"(ns) : "memory");
}

/* Named barrier 1 for the first COUNT threads of the block. */
template <int COUNT> static __device__ __forceinline__ void named_barrier()
{
    asm volatile("bar.sync 1, %0;" ::"n"(COUNT) : "memory");
}

/* ---- scopes ---- */

static __device__ __forceinline__ u32 shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ u32 load_acquire(const u32 *at)
{
    u32 value;
    delay();
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

/* Followed by a relaxed add: a release of everything that the block did before its last barrier. */
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

/* For memory that the host writes or reads while the kernel runs. */
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

/* Adds to a word of shared memory at address `at` (shared_address()); returns the old value. */
static __device__ __forceinline__ u32 add_shared(u32 at, u32 value)
{
    u32 before;
    asm volatile("atom.shared.add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "r"(at), "r"(value)
                 : "memory");
    return before;
}

/* The same without the old value. */
static __device__ __forceinline__ void add_to_shared(u32 at, u32 value)
{
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
}

/* For a word of shared memory that one role writes and others read. */
static __device__ __forceinline__ u32 load_shared_acquire(const volatile u32 *at)
{
    u32 value;
    delay();
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];"
                 : "=r"(value)
                 : "r"(shared_address((const void *)at))
                 : "memory");
    return value;
}

static __device__ __forceinline__ void store_shared_release(volatile u32 *at, u32 value)
{
    delay();
    asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(shared_address((const void *)at)),
                 "r"(value)
                 : "memory");
    delay();
}

/* ---- mbarriers ---- */

static __device__ __forceinline__ void barrier_init(u64 *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
                 : "memory");
}

/* Called after the mbarriers are initialized, before a block barrier. */
static __device__ void barrier_init_fence()
{
#if MGL_BULK_COPY
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* Whether the phase with that parity is complete; may sleep up to `ns`. Acquires at block scope.
 * `at`: the barrier's shared address. */
static __device__ __forceinline__ bool barrier_passed_at(u32 at, u32 parity, int ns = 1000)
{
    u32 passed;
    delay();
#if MGL_BULK_COPY
    asm volatile("{\n .reg .pred p;\n"
                 " mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3;\n"
                 " selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(passed)
                 : "r"(at), "r"(parity), "r"(ns)
                 : "memory");
#else
    asm volatile("{\n .reg .pred p;\n"
                 " mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
                 " selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(passed)
                 : "r"(at), "r"(parity)
                 : "memory");
#endif
    return passed;
}

static __device__ __forceinline__ bool barrier_passed(u64 *barrier, u32 parity, int ns = 1000)
{
    return barrier_passed_at(shared_address(barrier), parity, ns);
}

/* The same without sleeping. */
static __device__ __forceinline__ bool barrier_tested_at(u32 at, u32 parity)
{
    u32 passed;
    delay();
    asm volatile("{\n .reg .pred p;\n"
                 " mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
                 " selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(passed)
                 : "r"(at), "r"(parity)
                 : "memory");
    return passed;
}

static __device__ __forceinline__ bool barrier_tested(u64 *barrier, u32 parity)
{
    return barrier_tested_at(shared_address(barrier), parity);
}

/* Releases at block scope. */
static __device__ __forceinline__ void barrier_arrive_at(u32 at)
{
    delay();
    asm volatile("{\n .reg .b64 state;\n mbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(at)
                 : "memory");
    delay();
}

static __device__ __forceinline__ void barrier_arrive(u64 *barrier)
{
    barrier_arrive_at(shared_address(barrier));
}

#if MGL_BULK_COPY

/* Arrives `times` times. */
static __device__ __forceinline__ void barrier_arrive_times(u32 at, int times)
{
    delay();
    asm volatile("{\n .reg .b64 state;\n mbarrier.arrive.shared.b64 state, [%0], %1;\n}" ::"r"(at),
                 "r"(times)
                 : "memory");
    delay();
}

#endif

/* ---- copies ---- */

/* Starts the copy of 16 bytes into shared memory. */
static __device__ __forceinline__ void copy_16(u32 to, const u8 *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/* Commits the copies that this thread has started since the last call as a group. */
static __device__ __forceinline__ void copy_16_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until all groups of this thread except the last COUNT have landed. */
template <int COUNT> static __device__ __forceinline__ void copy_16_wait_groups()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(COUNT) : "memory");
}

/* Waits until all copies of this thread have landed. */
static __device__ __forceinline__ void copy_16_wait()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

#if MGL_BULK_COPY

static __device__ u64 copy_policy()
{
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/* Arrives as one of the phase's arrivals and adds to the bytes that the phase expects. The phase is
 * complete when all threads have arrived and all bytes have landed. */
static __device__ __forceinline__ void expect_bytes(u64 *full, u32 bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(full)),
        "r"(bytes)
        : "memory");
}

/* Starts the copy of some of the expected bytes. */
static __device__ __forceinline__ void copy_piece(void *to, const u8 *from, u32 bytes, u64 *full,
                                                  u64 policy)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
                 " [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(full)), "l"(policy)
                 : "memory");
}

/* Starts the copy of a page or of a part of a page; one thread. */
static __device__ __forceinline__ void copy_bytes(void *to, const u8 *from, u32 bytes, u64 *full,
                                                  u64 policy)
{
    expect_bytes(full, bytes);
    copy_piece(to, from, bytes, full, policy);
}

static __device__ __forceinline__ void copy_page(int, void *to, const u8 *from, u64 *full,
                                                 u64 policy)
{
    copy_bytes(to, from, MGL_PAGE, full, policy);
}

/* Prefetches bytes, a multiple of 16, into L2. */
static __device__ __forceinline__ void prefetch_bytes(u64 from, u32 bytes)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"((const u8 *)from), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void prefetch_page(int, const u8 *from)
{
    prefetch_bytes((u64)from, MGL_PAGE);
}

/* Prefetches bytes into L2; one lane. */
static __device__ __forceinline__ void prefetch_vectors(const u8 *from, int bytes)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes));
}

/* Proxy fence: later bulk copies read what earlier stores wrote to global memory. */
static __device__ __forceinline__ void fence_bulk_reads()
{
    asm volatile("fence.proxy.async.global;" ::: "memory");
}

/* Proxy fence: later bulk copies overwrite what earlier stores wrote to shared memory. */
static __device__ __forceinline__ void fence_bulk_writes()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#else

static __device__ u64 copy_policy()
{
    return 0;
}

/* Starts the copy of one page; all lanes of the warp. Unrolled to one instruction per copy: with
 * loop instructions between them one warp does not keep up with the memory. */
static __device__ __forceinline__ void copy_page(int lane, void *to, const u8 *from, u64 *full, u64)
{
    const u32 at = shared_address(to) + (u32)lane * 16;
    from += lane * 16;
#pragma unroll 32
    for (u32 i = 0; i < MGL_PAGE; i += 32 * 16)
        copy_16(at + i, from + i);
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(full))
                 : "memory");
}

static __device__ __forceinline__ void prefetch_page(int lane, const u8 *from)
{
    for (u32 i = lane * 128; i < MGL_PAGE; i += 32 * 128)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i) : "memory");
}

static __device__ __forceinline__ void prefetch_vectors(const u8 *from, int bytes)
{
    for (int i = 0; i < bytes; i += 128)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i));
}

#endif

/* ---- vectors, and flagged words ---- */

/* Loads 16 bytes of global memory at the place of the call: the compiler does not move asm
 * volatile. */
static __device__ __forceinline__ void load_vector(uint4 *to, const u8 *from)
{
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to->x), "=r"(to->y), "=r"(to->z), "=r"(to->w)
                 : "l"(from));
}

/* The same for shared memory, at a shared address. */
static __device__ __forceinline__ void load_shared_vector_at(uint4 *to, u32 from)
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to->x), "=r"(to->y), "=r"(to->z), "=r"(to->w)
                 : "r"(from));
}

static __device__ __forceinline__ void load_shared_vector(uint4 *to, const u32 *from)
{
    load_shared_vector_at(to, shared_address(from));
}

/* Cache policy of flagged words: L2 keeps them, because every queue reads them soon. */
static __device__ __forceinline__ u64 keep_policy()
{
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

static __device__ __forceinline__ uint4 load_words(const void *at, u64 policy)
{
    uint4 v;
    delay();
    asm volatile("ld.relaxed.gpu.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at), "l"(policy)
                 : "memory");
    return v;
}

static __device__ __forceinline__ void store_word(void *at, u32 word, u64 policy)
{
    asm volatile("st.relaxed.gpu.global.L2::cache_hint.u32 [%0], %1, %2;" ::"l"(at), "r"(word),
                 "l"(policy)
                 : "memory");
    delay();
}

static __device__ __forceinline__ void store_two_words(void *at, u32 first, u32 second, u64 policy)
{
    asm volatile("st.relaxed.gpu.global.L2::cache_hint.v2.u32 [%0], {%1, %2}, %3;" ::"l"(at),
                 "r"(first), "r"(second), "l"(policy)
                 : "memory");
    delay();
}

static __device__ __forceinline__ void store_four_words(void *at, u32 word, u64 policy)
{
    asm volatile(
        "st.relaxed.gpu.global.L2::cache_hint.v4.u32 [%0], {%1, %1, %1, %1}, %2;" ::"l"(at),
        "r"(word), "l"(policy)
        : "memory");
    delay();
}

static __device__ __forceinline__ void store_words(void *at, uint4 words, u64 policy)
{
    asm volatile(
        "st.relaxed.gpu.global.L2::cache_hint.v4.u32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(at),
        "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w), "l"(policy)
        : "memory");
    delay();
}

/* ---- numbers ---- */

/* Number formats, numbered like mgl_dtype. */
enum {
#define MGL_X(id, name, bytes, stored) DTYPE_##id,
    MGL_DTYPES(MGL_X)
#undef MGL_X
};

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

/* Two values as 16-bit words, the first in the low half; round to nearest even. */
static __device__ __forceinline__ u32 pack_pair(int dtype, float first, float second)
{
    u32 word;
    if (dtype == DTYPE_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
    return word;
}

static __device__ __forceinline__ float reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ __forceinline__ float power_of_2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Transposes an 8 x 8 matrix of 16-bit values; each lane holds two values of a row. */
static __device__ __forceinline__ u32 transposed(u32 word)
{
    u32 result;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(word));
    return result;
}

/* c += a b on tensor cores, 16 x 16 by 16 x 8, of bf16 or f16 with f32 sums. The PTX ISA shows the
 * lane layout at mma.m16n8k16. */
template <int DTYPE>
static __device__ __forceinline__ void multiply_add(float *c, u32 a0, u32 a1, u32 a2, u32 a3,
                                                    u32 b0, u32 b1)
{
    if (DTYPE == DTYPE_BF16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, "
            "%7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
            "{%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* Converts two e4m3 numbers to f16, exactly. Only for CONVERTS_E4M3. */
static __device__ __forceinline__ u32 f16_of_e4m3(u16 pair)
{
    u32 word = 0;
#if MGL_CONVERTS_E4M3
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(word) : "h"(pair));
#endif
    return word;
}

/* d += a b on tensor cores, 16 x 32 by 32 x 8, with exact 32-bit sums. a: unsigned 8-bit integers,
 * b: signed 8-bit integers. The PTX ISA shows the lane layout at mma.m16n8k32. */
static __device__ __forceinline__ void multiply_integers(int *d, uint4 a, uint2 b)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%10, %11, %12, %13};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y), "r"(d[0]), "r"(d[1]),
          "r"(d[2]), "r"(d[3]));
}

/* ---- warpgroups ---- */

/* Loads four 8 x 8 matrices of 16-bit elements from shared memory. Lane l passes the address of row
 * l % 8 of matrix l / 8, and gets two neighbors of row l / 4 of each matrix. */
static __device__ __forceinline__ void load_matrices(u32 (&words)[4], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(at)
                 : "memory");
}

#if MGL_WARPGROUPS

/* Orders register writes before the following wgmma instructions; called by the whole warpgroup,
 * like all functions below. */
static __device__ __forceinline__ void warpgroup_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void warpgroup_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until all committed products are done. */
static __device__ __forceinline__ void warpgroup_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/* Compiler barrier for a word that products read: the word is computed before the fence. */
static __device__ __forceinline__ void warpgroup_ready(u32 &word)
{
    asm volatile("" : "+r"(word)::"memory");
}

/* Compiler barrier for a sum of finished products: no read of the sum moves before the wait. */
static __device__ __forceinline__ void warpgroup_settled(float &sum)
{
    asm volatile("" : "+f"(sum)::"memory");
}

/* The low word of a shared-memory matrix descriptor for an operand of 16 columns at address `at`, a
 * multiple of 16 bytes. An operand that begins n times 16 bytes later has a word larger by n. Eight
 * rows of 64 bytes are a swizzle atom, swizzled by quarters; atoms follow one another (PTX ISA,
 * matrix descriptor: bits 0 to 13 the address / 16, 16 to 29 a stride that is not used, 32 to 45
 * the bytes from atom to atom / 16, 62 and 63 the swizzle, 2 for 64 bytes). */
static __device__ __forceinline__ u32 operand_word(u32 at)
{
    return 1 << 16 | at >> 4;
}

/* Starts d += a b: 64 rows, 16 for each warp, by COUNT columns with k = 16, of bf16 with f32 sums.
 * A lane holds the same elements of a, and of each eight columns of d, as in multiply_add. b lies
 * column by column, see operand_word. warpgroup_wait waits for the result. */
template <int COUNT>
static __device__ __forceinline__ void warpgroup_multiply(float *d, const u32 (&a)[4], u32 word)
{
    const u64 b = (u64)(2u << 30 | 512 / 16) << 32 | word;
    if constexpr (COUNT == 16)
        asm volatile("{\n .reg .pred p;\n setp.ne.u32 p, 1, 0;\n"
                     " wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4,"
                     " %5, %6, %7}, {%8, %9, %10, %11}, %12, p, 1, 1, 0;\n}"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                       "+f"(d[6]), "+f"(d[7])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
                     : "memory");
    else if constexpr (COUNT == 32)
        asm volatile("{\n .reg .pred p;\n setp.ne.u32 p, 1, 0;\n"
                     " wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {%0, %1, %2, %3, %4,"
                     " %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19},"
                     " %20, p, 1, 1, 0;\n}"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                       "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                       "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
                     : "memory");
    else
        asm volatile("{\n .reg .pred p;\n setp.ne.u32 p, 1, 0;\n"
                     " wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4,"
                     " %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20,"
                     " %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34,"
                     " %35}, %36, p, 1, 1, 0;\n}"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                       "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                       "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                       "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                       "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                       "+f"(d[30]), "+f"(d[31])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
                     : "memory");
}

#endif

#endif

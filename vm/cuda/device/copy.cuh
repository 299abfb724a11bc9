/*
 * The copy path: how a page of the tape gets into the ring, and the barriers that say so. The one
 * file of the kernel that knows the architecture.
 *
 *   sm_90 and later   one thread starts one bulk copy a page (cp.async.bulk, PTX ISA 9.7.9.25);
 *                     its bytes complete the slot's `full` barrier. L2 evicts the bytes first:
 *                     they come back one epoch later at the earliest.
 *   sm_80 to sm_89    the 32 lanes copy 16 bytes at a time (cp.async); each lane's copies arrive on
 *                     `full` once they have landed (cp.async.mbarrier.arrive.noinc).
 *
 * A slot goes round: the loader waits until all warps arrived on `empty`, fills; consumers wait for
 * `full`, read, and arrive on `empty`. Use n of a slot completes phase n of both barriers, so the
 * parity to wait for follows from the page's number.
 */
#ifndef MGL_DEVICE_COPY_CUH
#define MGL_DEVICE_COPY_CUH

#include "vm/cuda/device/machine.cuh"

#if __CUDA_ARCH__ >= 900
#define MGL_BULK_COPY 1
enum { RING_POLLS = 64 }; /* of a barrier between looks at the clock: each may sleep a while */
#else
#define MGL_BULK_COPY 0
enum { RING_POLLS = 1024 };
#endif

static __device__ __forceinline__ u32 shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void barrier_init(u64 *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
                 : "memory");
}

/* After the barriers are set up, before a barrier of the block. */
static __device__ void copy_init_fence()
{
#if MGL_BULK_COPY
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

static __device__ void copy_init(shared *s)
{
    for (int i = 0; i < MGL_RING; i++) {
        barrier_init(&s->full[i], MGL_BULK_COPY ? 1 : 32);
        barrier_init(&s->empty[i], MGL_WARPS);
    }
    copy_init_fence();
}

/* Whether the phase of that parity is complete. Acquires at block scope. */
static __device__ __forceinline__ bool barrier_passed(u64 *barrier, u32 parity)
{
    u32 passed;
#if MGL_BULK_COPY
    asm volatile("{\n .reg .pred p;\n"
                 " mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, 1000;\n"
                 " selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(passed)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
#else
    asm volatile("{\n .reg .pred p;\n"
                 " mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
                 " selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(passed)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
#endif
    return passed;
}

/* Releases at block scope. */
static __device__ __forceinline__ void barrier_arrive(u64 *barrier)
{
    asm volatile("{\n .reg .b64 state;\n mbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(
                     shared_address(barrier))
                 : "memory");
}

static __device__ __forceinline__ u32 parity_of(u32 page)
{
    return page / MGL_RING & 1;
}

#if MGL_BULK_COPY

static __device__ u64 copy_policy()
{
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/* Starts the copy of one page; by one thread. */
static __device__ void copy_page(void *to, const u8 *from, u64 *full, u64 policy)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(full)),
        "r"(MGL_PAGE)
        : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
                 " [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
                 "l"(from), "r"(MGL_PAGE), "r"(shared_address(full)), "l"(policy)
                 : "memory");
}

#else

static __device__ u64 copy_policy()
{
    return 0;
}

/* Starts the copy of one page; by all lanes of the warp. */
static __device__ void copy_page(void *to, const u8 *from, u64 *full, u64)
{
    u32 lane = threadIdx.x & 31;
    for (u32 i = lane * 16; i < MGL_PAGE; i += 32 * 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to) + i),
                     "l"(from + i)
                     : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(full))
                 : "memory");
}

#endif

/* Waits until the slot of `page` is free. False: the block is leaving. */
static __device__ bool loader_wait(machine &m, u32 page)
{
    if (page < MGL_RING)
        return !m.s->stop;
    u64 *empty = &m.s->empty[page % MGL_RING];
    for (u32 n = 1; !barrier_passed(empty, parity_of(page - MGL_RING)); n++) {
        /* no clock here: the consumers that it waits for have one in each of their waits, and a
         * chain of edges may well take longer than any one of them */
        if (m.s->stop || (n % RING_POLLS == 0 && is_stopped(m.launch)))
            return false;
    }
    return !m.s->stop;
}

/* The loader warp: streams the tape round and round until the block leaves, then waits for the
 * copies in flight, which must not land in shared memory that is somebody else's by then. */
static __device__ void load_tape(machine &m, const mgl_device_queue &queue)
{
    const u8 *tape = (const u8 *)queue.tape;
    u64 policy = copy_policy();
    u32 page = 0, at = 0;
    if (queue.pages == 0 || (MGL_BULK_COPY && m.lane != 0))
        return;
    for (;; page++) {
        bool go = loader_wait(m, page);
#if !MGL_BULK_COPY
        go = __all_sync(0xFFFFFFFFu, go); /* lanes may have looked at different times */
#endif
        if (!go)
            break;
        copy_page(m.ring + (size_t)(page % MGL_RING) * MGL_PAGE, tape + (size_t)at * MGL_PAGE,
                  &m.s->full[page % MGL_RING], policy);
        at = at + 1 == queue.pages ? 0 : at + 1;
    }
    for (u32 i = page < MGL_RING ? 0 : page - MGL_RING; i < page; i++)
        while (!barrier_passed(&m.s->full[i % MGL_RING], parity_of(i)))
            ;
}

#endif

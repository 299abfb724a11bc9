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
 * Page p has slot p % MGL_RING. Every consumer warp arrives on the slot's `empty` barrier once for every
 * page of the tape, after the page has landed: so no warp is a phase ahead of another, and the loader
 * fills the slot when the phase is complete.
 *
 * Bytes in flight make everything else wait, the words of edges above all: the loader keeps at most
 * MGL_FLIGHT pages on their way, and MGL_PENDING while the queue waits for an edge. While the ring is
 * full it asks the next MGL_PREFETCH pages into L2.
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

static __device__ void copy_init()
{
    for (int i = 0; i < MGL_RING; i++) {
        barrier_init(&own().full[i], MGL_BULK_COPY ? 1 : 32);
        barrier_init(&own().empty[i], MGL_WARPS);
    }
    for (int i = 0; i < SLOTS; i++) {
        barrier_init(&own().slot_full[i], MGL_WARPS);
        barrier_init(&own().slot_empty[i], 1);
    }
    barrier_init(&own().go, 1);
    barrier_init(&own().body, MGL_WARPS);
    copy_init_fence();
}

/* Whether the phase of that parity is complete; may sleep a while. Acquires at block scope. */
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

/* The same, at once. */
static __device__ __forceinline__ bool barrier_tested(u64 *barrier, u32 parity)
{
    u32 passed;
    asm volatile("{\n .reg .pred p;\n"
                 " mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
                 " selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(passed)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
    return passed;
}

/* Releases at block scope. */
static __device__ __forceinline__ void barrier_arrive(u64 *barrier)
{
    asm volatile("{\n .reg .b64 state;\n mbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(
                     shared_address(barrier))
                 : "memory");
}

/* A word of shared memory that one role writes and others read. */
static __device__ __forceinline__ u32 load_shared_acquire(const volatile u32 *at)
{
    u32 value;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];"
                 : "=r"(value)
                 : "r"(shared_address((const void *)at))
                 : "memory");
    return value;
}

static __device__ __forceinline__ void store_shared_release(volatile u32 *at, u32 value)
{
    asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(shared_address((const void *)at)),
                 "r"(value)
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
static __device__ __forceinline__ void copy_page(int, void *to, const u8 *from, u64 *full,
                                                 u64 policy)
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

static __device__ __forceinline__ void prefetch_page(int, const u8 *from)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(MGL_PAGE)
                 : "memory");
}

#else

static __device__ u64 copy_policy()
{
    return 0;
}

/* Starts the copy of one page; by all lanes of the warp. */
static __device__ __forceinline__ void copy_page(int lane, void *to, const u8 *from, u64 *full, u64)
{
    for (u32 i = lane * 16; i < MGL_PAGE; i += 32 * 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to) + i),
                     "l"(from + i)
                     : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(full))
                 : "memory");
}

static __device__ __forceinline__ void prefetch_page(int lane, const u8 *from)
{
    for (u32 i = lane * 128; i < MGL_PAGE; i += 32 * 128)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i) : "memory");
}

#endif

enum {
    LOST_POLLS = 4096, /* of the ring between looks at the clock */
    LOST_DEADLINES = 4 /* that a ring may stand still while no edge is waited for */
};

/* A page (counted over all epochs), its slot, and the parity of a barrier's phase that is its. */
struct turn {
    u32 page, slot, parity;
};

static __device__ __forceinline__ void advance(turn &t)
{
    t.page++;
    if (++t.slot == MGL_RING) {
        t.slot = 0;
        t.parity ^= 1;
    }
}

/* Where the loader stands. */
struct stream {
    const u8 *tape;
    u32 pages;             /* of the tape */
    turn next;             /* to ask for, */
    u32 at;                /* and its number on the tape */
    turn landed;           /* all before have */
    turn free;             /* the slots of all before are free for them */
    u32 fetched, fetch_at; /* the next to ask into L2 */
};

static __device__ __forceinline__ u32 next_on_tape(const stream &t, u32 at)
{
    return at + 1 == t.pages ? 0 : at + 1;
}

/* Whether all lanes of the loader say so: it is one thread where one is enough. */
static __device__ __forceinline__ bool all_say(bool value)
{
    return MGL_BULK_COPY ? value : __all_sync(0xFFFFFFFFu, value);
}

/* Asks the page behind those that L2 was asked for, when the ring is full. */
static __device__ __forceinline__ void prefetch(const machine &m, stream &t)
{
    if (t.fetched < t.next.page) {
        t.fetched = t.next.page;
        t.fetch_at = t.at;
    }
    if (t.fetched >= t.next.page + MGL_PREFETCH)
        return;
    prefetch_page(m.lane, t.tape + (size_t)t.fetch_at * MGL_PAGE);
    t.fetched++;
    t.fetch_at = next_on_tape(t, t.fetch_at);
}

/* Looks which pages have landed, and passes it on to the consumers. */
static __device__ __forceinline__ void see_landed(const machine &m, stream &t)
{
    const u32 before = t.landed.page;
    while (t.landed.page < t.next.page &&
           all_say(barrier_tested(&own().full[t.landed.slot], t.landed.parity)))
        advance(t.landed);
    if (t.landed.page != before && m.lane == 0)
        store_shared_release(&own().landed, t.landed.page);
}

/* The clock of all waits for pages and slots, the consumers' too: whether nothing has moved for so long
 * that none of the waits with a deadline, one after the other, can be to blame. Then the ring's own
 * order is broken, and the block is told. `since`: when the wait began, 0 before the first look. */
static __device__ __forceinline__ bool is_lost(machine m, const stream &t, u64 &since)
{
    const u64 now = clock_ns();
    if (since == 0)
        since = now;
    if (now - since < LOST_DEADLINES * m.launch->deadline_ns || all_say(own().pending != 0))
        return false;
    const start task = own().task[(own().turns[0] + 1) & 1]; /* the turn before the next */
    m.record = task.record;
    look_at_clock(m.launch, since, MGL_REPORT_RING, task_of(m)->task, task.epoch, t.next.page,
                  t.next.page + 1, t.landed.page);
    own().lost = 1;
    return true;
}

/* Waits until pages may be asked for: all below the result; 0: the block is leaving. */
static __device__ __forceinline__ u32 loader_wait(const machine &m, stream &t)
{
    u64 since = 0;
    for (u32 n = 1;; n++) {
        see_landed(m, t);
        while (t.free.page < t.next.page + MGL_FLIGHT &&
               all_say(barrier_tested(&own().empty[t.free.slot], t.free.parity)))
            advance(t.free);
        u32 limit = min(t.free.page, t.landed.page + (own().pending ? MGL_PENDING : MGL_FLIGHT));
        limit = MGL_BULK_COPY ? limit : __reduce_min_sync(0xFFFFFFFFu, limit);
        if (t.next.page < limit)
            return limit;
        if (MGL_PREFETCH > 0 && t.next.page >= t.free.page)
            prefetch(m, t);
        if (n % 16 == 0 && !all_say(!own().stop))
            return 0;
        if (n % LOST_POLLS == 0 && all_say(is_lost(m, t, since)))
            return 0;
    }
}

/* The loader warp: streams the tape round and round until the block leaves, then waits for the
 * copies in flight, which must not land in shared memory that is somebody else's by then. */
static __device__ void load_tape(machine &m, const mgl_device_queue &queue)
{
    u64 policy = copy_policy();
    stream t = {(const u8 *)queue.tape, queue.pages};
    t.free.parity = 1; /* of the phase before the first, which counts as complete */
    if (t.pages == 0 || (MGL_BULK_COPY && m.lane != 0))
        return;
    while (u32 limit = loader_wait(m, t)) {
        while (t.next.page < limit) {
            copy_page(m.lane, ring_memory() + t.next.slot * MGL_PAGE,
                      t.tape + (size_t)t.at * MGL_PAGE, &own().full[t.next.slot], policy);
            t.at = next_on_tape(t, t.at);
            advance(t.next);
        }
    }
    for (; t.landed.page < t.next.page; advance(t.landed))
        while (!barrier_passed(&own().full[t.landed.slot], t.landed.parity))
            ;
}

#endif

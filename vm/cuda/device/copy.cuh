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
 * MGL_FLIGHT pages on their way, some more where the task at hand has its input and needs them, and
 * MGL_PENDING while the queue waits for an edge. While the ring is full it asks the next MGL_PREFETCH pages
 * into L2. A warp of its own, the watcher, sees what lands: the
 * loader has to be faster than the stream where what waited for an edge catches up.
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
    barrier_init(&own().squares_full, MGL_WARPS);
    copy_init_fence();
}

static __device__ __forceinline__ u32 cycles()
{
    u32 now;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
    return now;
}

/* Whether the phase of that parity is complete; may sleep that long. Acquires at block scope. */
static __device__ __forceinline__ bool barrier_passed(u64 *barrier, u32 parity, int ns = 1000)
{
    u32 passed;
    delay();
#if MGL_BULK_COPY
    asm volatile("{\n .reg .pred p;\n"
                 " mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3;\n"
                 " selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(passed)
                 : "r"(shared_address(barrier)), "r"(parity), "r"(ns)
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
    delay();
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
    delay();
    asm volatile("{\n .reg .b64 state;\n mbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(
                     shared_address(barrier))
                 : "memory");
    delay();
}

/* A word of shared memory that one role writes and others read. */
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
    LOST_POLLS = 4096,      /* of the ring between looks at the clock */
    STOP_POLLS = 16,        /* and between looks whether the block leaves */
    LOST_DEADLINES = 4,     /* that a ring may stand still while no edge is waited for, */
    PENDING_DEADLINES = 16, /* and while one is, which has a clock of its own */
    SLOT_NS = MGL_PREFETCH > 0 ? 250 : 1000, /* that the loader sleeps while the ring is full */
    PREFETCH_CYCLES = MGL_PAGE / 16 /* of the SM from one page that L2 is asked for to the next */
};

/* Pages on their way that the task at hand needs. Fewer than the ring has, as all such limits are: or the
 * watcher might look for a phase of a slot that another page has ended meanwhile. */
enum {
    MORE_FLIGHT = MGL_FLIGHT + MGL_FLIGHT / 2,
    URGENT_PAGES = MORE_FLIGHT < MGL_RING ? MORE_FLIGHT : MGL_RING - 1
};
static_assert(MGL_FLIGHT < MGL_RING && MGL_PENDING < MGL_RING, "the watcher needs a page of room");

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
    u32 fetched, fetch_at; /* the next to ask into L2, */
    u32 fetch_time;        /* and when the last was */
    u32 polls;             /* in vain, for the next page, */
    u64 since;             /* and since when, once that was asked */
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

/* Asks the page behind those that L2 was asked for, when the ring is full: not faster than the stream could
 * deliver, or what is exchanged would wait behind it. */
static __device__ __forceinline__ void prefetch(const machine &m, stream &t)
{
    const u32 now = cycles();
    if (!all_say(now - t.fetch_time >= PREFETCH_CYCLES))
        return;
    if (t.fetched < t.next.page) {
        t.fetched = t.next.page;
        t.fetch_at = t.at;
    }
    if (t.fetched >= t.next.page + MGL_PREFETCH)
        return;
    prefetch_page(m.lane, t.tape + (size_t)t.fetch_at * MGL_PAGE);
    t.fetched++;
    t.fetch_at = next_on_tape(t, t.fetch_at);
    t.fetch_time = now;
}

/* The clock of all waits for pages and slots, the consumers' too: whether nothing has moved for so long
 * that none of the waits with a deadline, one after the other, can be to blame. Then the ring's own
 * order is broken, and the block is told. */
static __device__ __forceinline__ bool is_lost(machine m, stream &t)
{
    const u64 now = clock_ns();
    const u64 deadlines = own().pending ? PENDING_DEADLINES : LOST_DEADLINES;
    if (t.since == 0)
        t.since = now;
    if (!all_say(now - t.since >= deadlines * own().launch.deadline_ns))
        return false;
    const start task = own().task[(own().turns[0] + 1) & 1]; /* the turn before the next */
    m.record = task.record;
    look_at_clock(t.since, MGL_REPORT_RING, task_of(m)->task, task.epoch, t.next.page,
                  t.next.page + 1, own().landed);
    own().lost = 1;
    return true;
}

/* Between two looks of the loader: whether the block still needs it. */
static __device__ __forceinline__ bool is_needed(const machine &m, stream &t)
{
    t.polls++;
    if (t.polls % STOP_POLLS == 0 && !all_say(!own().stop))
        return false;
    return t.polls % LOST_POLLS != 0 || !all_say(is_lost(m, t));
}

/* Pages that may be on their way when `page` is asked for: more of those that the task at hand needs. */
static __device__ __forceinline__ u32 most_in_flight(u32 page)
{
    if ((int)(page - load_shared_acquire(&own().demanded)) < 0)
        return URGENT_PAGES;
    return load_shared_acquire(&own().pending) ? MGL_PENDING : MGL_FLIGHT;
}

/* Waits until the next page may be asked for; false: the block is leaving. */
static __device__ __forceinline__ bool loader_wait(const machine &m, stream &t)
{
    t.polls = 0;
    t.since = 0;
    while (!all_say(barrier_passed(&own().empty[t.next.slot], t.next.parity ^ 1, SLOT_NS))) {
        if (MGL_PREFETCH > 0)
            prefetch(m, t);
        if (!is_needed(m, t))
            return false;
    }
    while (!all_say(t.next.page - load_shared_acquire(&own().landed) < most_in_flight(t.next.page)))
        if (!is_needed(m, t))
            return false;
    return true;
}

/* The loader warp: streams the tape round and round until the block leaves, then waits for the
 * copies in flight, which must not land in shared memory that is somebody else's by then. */
static __device__ void load_tape(machine &m, const mgl_device_queue &queue)
{
    u64 policy = copy_policy();
    stream t = {(const u8 *)queue.tape, queue.pages};
    if (t.pages == 0 || (MGL_BULK_COPY && m.lane != 0))
        return;
    for (; loader_wait(m, t); advance(t.next)) {
        copy_page(m.lane, ring_memory() + t.next.slot * MGL_PAGE, t.tape + (size_t)t.at * MGL_PAGE,
                  &own().full[t.next.slot], policy);
        t.at = next_on_tape(t, t.at);
    }
    for (u32 page = own().landed; page < t.next.page; page++)
        while (!barrier_passed(&own().full[page % MGL_RING], parity_of(page)))
            ;
}

/* The watcher: says page after page what has landed, until the block leaves. One thread. */
static __device__ void watch_ring(const machine &m)
{
    turn t = {};
    if (m.lane != 0)
        return;
    while (!own().stop) {
        if (!barrier_passed(&own().full[t.slot], t.parity))
            continue;
        advance(t);
        store_shared_release(&own().landed, t.page);
    }
}

#endif

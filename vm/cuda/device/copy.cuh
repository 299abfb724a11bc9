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
 * Page p has slot p % MGL_RING. Every consumer warp arrives on the slot's `empty` barrier once for
 * every page of the tape, after the page has landed: so no warp is a phase ahead of another, and
 * the loader fills the slot when the phase is complete. Of a page of keys or values those warps
 * arrive that read it, for all.
 *
 * Bytes in flight make everything else wait, the words of edges above all: the loader keeps at most
 * MGL_FLIGHT pages on their way, some more where the task at hand has its input and needs them, and
 * launch.pending while the queue waits for an edge. While the ring is full it asks the next
 * MGL_PREFETCH pages into L2, and before them the keys and values of earlier positions that the
 * next attention, or the one at hand, will read: piece by piece, in the order of their use.
 *
 * With MGL_PAST those come through the ring as well, where the attention stands on the tape: a page
 * of keys, then the same positions' values, and so on; how many there are follows from the epoch's
 * position, which the director announces. They are pages of the ring like others, so what is behind
 * them comes later by as many, which the director adds to an epoch's first page (`base`). If the
 * attention stands within a page of the tape, only what is before it comes then, and the rest of
 * that page, in its place, as a page of its own behind the values.
 *
 * A warp of its own, the watcher, sees what lands: the loader has to be faster than the stream
 * where what waited for an edge catches up.
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
    barrier_init(&own().known[0], 1);
    barrier_init(&own().known[1], 1);
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

/* Waits for the turn's start: the one before has ended, and stage, sums and slots are this one's.
 */
static __device__ __forceinline__ void wait_go(const machine &m)
{
    while (!barrier_passed(&own().go, m.which))
        ; /* the director has a clock in each of its waits, and so have the consumers */
    __syncwarp();
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

/* Starts the copy of a page, or of a part of one; by one thread. */
static __device__ __forceinline__ void copy_bytes(void *to, const u8 *from, u32 bytes, u64 *full,
                                                  u64 policy)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(full)),
        "r"(bytes)
        : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
                 " [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(full)), "l"(policy)
                 : "memory");
}

static __device__ __forceinline__ void copy_page(int, void *to, const u8 *from, u64 *full,
                                                 u64 policy)
{
    copy_bytes(to, from, MGL_PAGE, full, policy);
}

/* Asks for a multiple of 16 bytes into L2. */
static __device__ __forceinline__ void prefetch_bytes(u64 from, u32 bytes)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"((const u8 *)from), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void prefetch_page(int, const u8 *from)
{
    prefetch_bytes((u64)from, MGL_PAGE);
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
    PREFETCH_RATE = 16 /* bytes in a cycle of the SM that L2 is asked for: less than the stream's */
};

/* Keys and values in the ring. */
enum {
    PAST = MGL_PAST,                         /* only where there are bulk copies */
    PAST_SPAN = MGL_PAST_SPAN(MGL_HEAD_DIM), /* positions that a warp attends to at once, */
    PAST_RUN =
        MGL_PAST_RUN(MGL_HEAD_DIM, MGL_PAGE), /* that a page has the keys, or the values, of, */
    PAST_NEAR =
        MGL_PAST_NEAR(MGL_HEAD_DIM, MGL_WARPS), /* and up to which registers have room for them */
    PAST_ROW = MGL_HEAD_DIM * 2                 /* bytes of a position */
};
static_assert(!PAST || PAST_RUN > 0, "a page has no room for what a warp attends to at once");

/* Pages of the ring for an attention to so many earlier positions: of keys and of values in turn.
 */
static __device__ __forceinline__ u32 past_pages(u32 stored)
{
    return stored <= PAST_NEAR ? 0 : 2 * ((stored + PAST_RUN - 1) / max((int)PAST_RUN, 1));
}

/* Keys and values. */
enum {
    AHEAD_BYTES = 262144, /* that L2 is asked for before attention's warps ask, at the most, */
    AHEAD_PIECE = 4096,   /* and at once */
    AHEAD_NS = 50         /* that the loader sleeps meanwhile */
};

/* Pages on their way that the task at hand needs. Fewer than the ring has, as all such limits are:
 * or the watcher might look for a phase of a slot that another page has ended meanwhile. */
enum {
    MORE_FLIGHT = MGL_FLIGHT + MGL_FLIGHT / 2,
    URGENT_PAGES = MORE_FLIGHT < MGL_RING ? MORE_FLIGHT : MGL_RING - 1
};
static_assert(MGL_FLIGHT < MGL_RING, "the watcher needs a page of room");

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

/* What the loader knows of an attention's keys and values. They are asked for run by run: the keys
 * of the first positions, their values, the keys of the next ones, ... */
struct past_stream {
    u64 keys, values; /* where they are, */
    u32 bytes;        /* of each, */
    u32 run_bytes;    /* of a run */
    u32 number;       /* own().past_number of all that */
    u32 run;          /* the one at hand, */
    u32 begin;        /* where its bytes are; nothing is left from `bytes` on */
    u32 at;           /* the next to ask for */
};

/* PAST: the loader among the attentions of its queue. */
struct ring_stream {
    u32 from;  /* block of the page of the tape at hand from which on it is to come */
    u32 epoch; /* of the attention that is next, */
    u32 stop;  /* its number, */
    mgl_device_past next,
        behind; /* and what it is, and the one behind it; their `stop` is ~0 where there is none */
    const mgl_device_past *stops; /* all of the queue's, so many */
    u32 stop_count;
    bool begun;              /* it is known what is to be copied for it: */
    const u8 *keys, *values; /* from where, */
    u32 pages, bytes;        /* so many pages, and so many bytes of each, */
    u32 copied,
        asked;  /* of which so many pages are in the ring or on their way, or L2 was asked for */
    u32 fenced; /* epochs whose cache the copies may read */
};

/* Where the loader stands. */
struct stream {
    const u8 *tape;
    u32 pages;   /* of the tape */
    u32 pending; /* pages that may be on their way while the queue waits for an edge */
    turn next;   /* to ask for, */
    u32 at;      /* and its number on the tape */
    u32 fetched,
        fetch_at;    /* pages of the tape from there on that L2 was asked for, and the next one */
    u32 fetch_time;  /* when L2 was asked last, */
    u32 fetch_bytes; /* and for how much */
    past_stream past;
    ring_stream ring;
    u32 polls; /* in vain, for the next page, */
    u64 since; /* and since when, once that was asked */
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

/* Whether L2 may be asked for more: not faster than the stream could deliver (of its bytes, one in
 * `share`), or what is exchanged would wait behind it. */
static __device__ __forceinline__ bool may_fetch(const stream &t, u32 share)
{
    return all_say(cycles() - t.fetch_time >= t.fetch_bytes / PREFETCH_RATE * share);
}

static __device__ __forceinline__ void note_fetch(stream &t, u32 bytes)
{
    t.fetch_time = cycles();
    t.fetch_bytes = bytes;
}

/* Asks the page behind those that L2 was asked for, when the ring is full. */
static __device__ __forceinline__ void prefetch(const machine &m, stream &t)
{
    if (!may_fetch(t, 1))
        return;
    if (t.fetched == 0)
        t.fetch_at = t.at;
    if (t.fetched >= MGL_PREFETCH || t.fetch_at >= t.pages)
        return;
    prefetch_page(m.lane, t.tape + (size_t)t.fetch_at * MGL_PAGE);
    t.fetched++;
    t.fetch_at = next_on_tape(t, t.fetch_at);
    note_fetch(t, MGL_PAGE);
}

#if MGL_PAST

/* Takes what the next attention has of earlier positions, if the epoch has begun. */
static __device__ __forceinline__ bool see_past(ring_stream &r)
{
    if (r.begun || r.stop >= r.stop_count)
        return r.begun;
    if ((int)(load_shared_acquire(&own().entered) - r.epoch) <= 0)
        return false;
    if (r.fenced != r.epoch + 1) /* what the copies read was written by stores */
        asm volatile("fence.proxy.async.global;" ::: "memory");
    r.fenced = r.epoch + 1;
    const u32 first = own().past_first + r.epoch, splits = r.next.splits;
    const u32 lo = first * r.next.split / splits, hi = first * (r.next.split + 1) / splits;
    r.keys = (const u8 *)r.next.keys + (size_t)lo * PAST_ROW;
    r.values = (const u8 *)r.next.values + (size_t)lo * PAST_ROW;
    r.bytes = (hi - lo) * PAST_ROW;
    r.pages = past_pages(hi - lo);
    r.copied = r.asked = 0;
    r.begun = true;
    return true;
}

/* Where a page of its keys or values is, and how many bytes of it there are. */
static __device__ __forceinline__ const u8 *run_at(const ring_stream &r, u32 page, u32 *bytes)
{
    const u32 begin = page / 2 * (PAST_RUN * PAST_ROW);
    *bytes = min((u32)PAST_RUN * PAST_ROW, r.bytes - begin);
    return (page % 2 ? r.values : r.keys) + begin;
}

/* Asks L2 for those keys and values that the ring has no room for yet, where it is time, unless
 * that is far enough ahead; false: there is nothing to ask for. */
static __device__ __forceinline__ bool ask_ahead(stream &t, u32 share)
{
    ring_stream &r = t.ring;
    /* what is on the tape before comes first */
    if (r.next.stop - t.at * PAGE_BLOCKS >= (t.fetched + 1) * PAGE_BLOCKS || !see_past(r))
        return false;
    r.asked = max(r.asked, r.copied);
    if (r.asked >= r.pages || (r.asked - r.copied) * MGL_PAGE >= AHEAD_BYTES)
        return false;
    if (may_fetch(t, share)) {
        u32 bytes;
        const u8 *from = run_at(r, r.asked, &bytes);
        prefetch_bytes((u64)from, bytes);
        note_fetch(t, bytes);
        r.asked++;
    }
    return true;
}

#elif MGL_BULK_COPY

/* Takes what the block has of the next attention; if that changes meanwhile, another time. */
static __device__ __forceinline__ void see_past(past_stream &past)
{
    const u32 number = load_shared_acquire(&own().past_number);
    if (number == past.number || number % 2 != 0)
        return;
    const past_stream seen = {
        own().past_keys, own().past_values, own().past_bytes, own().past_run, number, 0, 0, 0};
    if (load_shared_acquire(&own().past_number) == number)
        past = seen;
}

static __device__ __forceinline__ void next_run(past_stream &past)
{
    if (past.run % 2 != 0)
        past.begin += past.run_bytes;
    past.run++;
    past.at = past.begin;
}

/* Asks for the next piece of the run at hand. */
static __device__ __forceinline__ void ask_piece(stream &t)
{
    past_stream &past = t.past;
    const u32 end = min(past.begin + past.run_bytes, past.bytes);
    const u32 bytes = min((u32)AHEAD_PIECE, end - past.at);
    prefetch_bytes((past.run % 2 ? past.values : past.keys) + past.at, bytes);
    note_fetch(t, bytes);
    past.at += bytes;
    if (past.at == end)
        next_run(past);
}

/* Asks for keys and values, where it is time, unless that is far enough ahead; false: there is
 * nothing to ask for. */
static __device__ __forceinline__ bool ask_ahead(stream &t, u32 share)
{
    past_stream &past = t.past;
    see_past(past);
    if (past.begin >= past.bytes)
        return false;
    const u32 used = load_shared_acquire(&own().past_used);
    if ((int)(past.run - used) < 0)
        next_run(past);
    else if ((past.run - used) * past.run_bytes >= AHEAD_BYTES)
        return false;
    else if (may_fetch(t, share))
        ask_piece(t);
    return true;
}

#else

static __device__ __forceinline__ bool ask_ahead(stream &, u32)
{
    return false;
}

#endif

/* The clock of all waits for pages and slots, the consumers' too: whether nothing has moved for so
 * long that none of the waits with a deadline, one after the other, can be to blame. Then the
 * ring's own order is broken, and the block is told. */
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

/* Whether the task at hand, which has its input, needs the page. */
static __device__ __forceinline__ bool is_urgent(u32 page)
{
    return (int)(page - load_shared_acquire(&own().demanded)) < 0;
}

/* Pages that may be on their way when one is asked for. */
static __device__ __forceinline__ u32 most_in_flight(const stream &t, bool urgent)
{
    if (urgent)
        return URGENT_PAGES;
    return load_shared_acquire(&own().pending) ? t.pending : MGL_FLIGHT;
}

/* Waits until the next page's slot is free; false: the block is leaving. */
static __device__ __forceinline__ bool wait_for_slot(const machine &m, stream &t)
{
    int ns = SLOT_NS;
    while (!all_say(barrier_passed(&own().empty[t.next.slot], t.next.parity ^ 1, ns))) {
        const bool asks = ask_ahead(t, 1);
        ns = asks ? AHEAD_NS : SLOT_NS;
        if (MGL_PREFETCH > 0 && !asks)
            prefetch(m, t);
        if (!is_needed(m, t))
            return false;
    }
    return true;
}

/* Waits until the next page may be asked for; false: the block is leaving. */
static __device__ __forceinline__ bool loader_wait(const machine &m, stream &t)
{
    t.polls = 0;
    t.since = 0;
    if (!wait_for_slot(m, t))
        return false;
    for (;;) {
        const bool urgent = is_urgent(t.next.page);
        if (all_say(t.next.page - load_shared_acquire(&own().landed) < most_in_flight(t, urgent)))
            return true;
        if (!urgent)
            ask_ahead(t, 2); /* the other half is for the pages */
        if (!is_needed(m, t))
            return false;
    }
}

/* ---- keys and values in the ring ---------------------------------------------------------------
 */

#if MGL_PAST

static __device__ __forceinline__ mgl_device_past stop_number(const ring_stream &r, u32 number)
{
    if (number < r.stop_count)
        return r.stops[number];
    mgl_device_past none = {};
    none.stop = ~0u;
    return none;
}

static __device__ __forceinline__ void begin_stops(ring_stream &r)
{
    r.stop = 0;
    r.next = stop_number(r, 0);
    r.behind = stop_number(r, 1);
}

/* At the end of the tape, and behind the last attention: to the next epoch. */
static __device__ __forceinline__ void end_epoch(stream &t)
{
    if (t.at < t.pages || t.ring.stop < t.ring.stop_count)
        return;
    t.at = 0;
    t.ring.epoch++;
    begin_stops(t.ring);
}

/* Passes the attention at hand. The one behind it has been asked for long ago. */
static __device__ __forceinline__ void pass_attention(stream &t)
{
    ring_stream &r = t.ring;
    r.stop++;
    r.begun = false;
    r.next = r.behind;
    r.behind = stop_number(r, r.stop + 1);
    end_epoch(t);
}

/* Copies of the tape a page up to its end, or up to where an attention stands. */
static __device__ __forceinline__ void copy_piece(stream &t, u64 policy)
{
    const u32 stop = t.ring.next.stop - t.at * PAGE_BLOCKS; /* huge, if that is on another page */
    const u32 end = min(stop, (u32)PAGE_BLOCKS), skipped = t.ring.from * MGL_BLOCK_BYTES;
    copy_bytes(ring_memory() + t.next.slot * MGL_PAGE + skipped,
               t.tape + (size_t)t.at * MGL_PAGE + skipped, (end - t.ring.from) * MGL_BLOCK_BYTES,
               &own().full[t.next.slot], policy);
    t.ring.from = end % PAGE_BLOCKS;
    if (end < PAGE_BLOCKS)
        return;
    t.at++;
    t.fetched = max(t.fetched, 1u) - 1;
    end_epoch(t);
}

/* Copies the next page of keys or values. */
static __device__ __forceinline__ void copy_run(stream &t, u64 policy)
{
    u32 bytes;
    const u8 *from = run_at(t.ring, t.ring.copied, &bytes);
    copy_bytes(ring_memory() + t.next.slot * MGL_PAGE, from, bytes, &own().full[t.next.slot],
               policy);
    t.ring.copied++;
}

/* Waits until the epoch of the attention at hand has begun; false: the block is leaving. */
static __device__ __forceinline__ bool wait_for_past(const machine &m, stream &t)
{
    t.polls = 0;
    t.since = 0;
    while (!see_past(t.ring)) {
        if (MGL_PREFETCH > 0)
            prefetch(m, t);
        if (!is_needed(m, t))
            return false;
        asm volatile("nanosleep.u32 %0;" ::"r"((u32)AHEAD_NS) : "memory");
    }
    return true;
}

/* The tape round and round, and in between the keys and values of attentions, until the block
 * leaves. */
static __device__ __forceinline__ void load_all(const machine &m, stream &t, u64 policy)
{
    begin_stops(t.ring);
    for (;;) {
        const bool stands = t.at * PAGE_BLOCKS + t.ring.from == t.ring.next.stop;
        if (stands && !wait_for_past(m, t))
            return;
        if (stands && t.ring.copied == t.ring.pages) {
            pass_attention(t);
            continue;
        }
        if (!loader_wait(m, t))
            return;
        if (stands)
            copy_run(t, policy);
        else
            copy_piece(t, policy);
        advance(t.next);
    }
}

#else

static __device__ __forceinline__ void load_all(const machine &m, stream &t, u64 policy)
{
    for (; loader_wait(m, t); advance(t.next)) {
        copy_page(m.lane, ring_memory() + t.next.slot * MGL_PAGE, t.tape + (size_t)t.at * MGL_PAGE,
                  &own().full[t.next.slot], policy);
        t.at = next_on_tape(t, t.at);
        t.fetched = max(t.fetched, 1u) - 1;
    }
}

#endif

/* ---- the loader and the watcher ----------------------------------------------------------------
 */

/* A queue without a tape may still attend. */
static __device__ __forceinline__ void ask_alone(stream &t)
{
    while (!load_shared_acquire((const volatile u32 *)&own().stop)) {
        ask_ahead(t, 1);
        asm volatile("nanosleep.u32 %0;" ::"r"((u32)AHEAD_NS) : "memory");
    }
}

/* The loader warp: streams the tape round and round until the block leaves, then waits for the
 * copies in flight, which must not land in shared memory that is somebody else's by then. */
static __device__ void load_tape(machine &m, const mgl_device_queue &queue)
{
    u64 policy = copy_policy();
    stream t = {(const u8 *)queue.tape, queue.pages, own().launch.pending};
    if (MGL_BULK_COPY && m.lane != 0)
        return;
    if (PAST) {
        t.ring.stops = (const mgl_device_past *)((const u8 *)own().launch.records + queue.past_at);
        t.ring.stop_count = queue.past_count;
    }
    if (t.pages == 0 && t.ring.stop_count == 0)
        return ask_alone(t);
    load_all(m, t, policy);
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

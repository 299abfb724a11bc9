/*
 * The loader: a warp that copies the pages of the queue's tape into the ring, round and round, by
 * the copies of ptx.cuh.
 *
 * Page p has frame p % MGL_RING. Every consumer warp arrives on the frame's `empty` barrier once
 * for every page of the tape, after the page has landed: so no warp is a phase ahead of another,
 * and the loader fills the frame when the phase is complete. Of a page of keys or values those
 * warps arrive that read it, for all.
 *
 * Bytes in flight make everything else wait, the words of edges above all: the loader keeps at most
 * MGL_FLIGHT pages on their way, some more where the task at hand has its input and needs them, and
 * launch.pending while the queue waits for an edge. While the ring is full it asks the next
 * MGL_PREFETCH pages into L2, and before them the keys and values of earlier positions that the
 * next attention, or the one at hand, will read: piece by piece, in the order of their use.
 *
 * With MGL_KV_RING those keys and values come through the ring as well, where the attention stands
 * on the tape: a page of keys, then the same positions' values, and so on; how many there are
 * follows from the epoch's position, which the controller announces. They are pages of the ring
 * like others, so what is behind them comes later by as many, which the controller adds to an
 * epoch's first page (`base`). If the attention stands within a page of the tape, only what is
 * before it comes then, and the rest of that page, in its place, as a page of its own behind the
 * values.
 */
#ifndef MGL_DEVICE_ROLES_LOADER_CUH
#define MGL_DEVICE_ROLES_LOADER_CUH

#include "vm/cuda/device/roles/ahead.cuh"
#include "vm/cuda/device/watchdog.cuh"

enum {
    LOST_POLLS = 4096,      /* of the ring between looks at the clock */
    STOP_POLLS = 16,        /* and between looks whether the block leaves */
    LOST_DEADLINES = 4,     /* that a ring may stand still while no edge is waited for, */
    PENDING_DEADLINES = 16, /* and while one is, which has a clock of its own */
    FRAME_NS = MGL_PREFETCH > 0 ? 250 : 1000 /* the loader's sleep while the ring is full */
};

/* Pages on their way that the task at hand needs. Fewer than the ring has, as all such limits are:
 * or the landing warp might look for a phase of a frame that another page has ended meanwhile. */
enum {
    MORE_FLIGHT = MGL_FLIGHT + MGL_FLIGHT / 2,
    URGENT_PAGES = MORE_FLIGHT < MGL_RING ? MORE_FLIGHT : MGL_RING - 1
};
static_assert(MGL_FLIGHT < MGL_RING, "the landing warp needs a page of room");

/* The clock of all waits for pages and frames, the consumers' too: whether nothing has moved for so
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
    const instruction_slot task =
        own().instruction[(own().begun[0] + 1) & 1]; /* of the last task that it began */
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
    if (t.polls % STOP_POLLS == 0 && !all_say(!own().stop && !own().lost))
        return false;
    return t.polls % LOST_POLLS != 0 || !all_say(is_lost(m, t));
}

/* Waits until the next page may be asked for: its frame is free, and not too many pages are on
 * their way. Meanwhile L2 is asked for what comes later. False: the block is leaving. */
static __device__ __forceinline__ bool loader_wait(const machine &m, stream &t)
{
    t.polls = 0;
    t.since = 0;
    int ns = FRAME_NS;
    while (!all_say(barrier_passed(&own().empty[t.next.frame], t.next.parity ^ 1, ns))) {
        const bool asks = ask_ahead(t, 1);
        ns = asks ? AHEAD_NS : FRAME_NS;
        if (MGL_PREFETCH > 0 && !asks)
            prefetch(m, t);
        if (!is_needed(m, t))
            return false;
    }
    for (;;) {
        /* the task at hand, which has its input, needs the page */
        const bool urgent = (int)(t.next.page - load_shared_acquire(&own().demanded)) < 0;
        const u32 in_flight = t.next.page - load_shared_acquire(&own().landed);
        const u32 most = urgent                                ? (u32)URGENT_PAGES
                         : load_shared_acquire(&own().pending) ? t.pending
                                                               : (u32)MGL_FLIGHT;
        if (all_say(in_flight < most))
            return true;
        if (!urgent)
            ask_ahead(t, 2); /* the other half is for the pages */
        if (!is_needed(m, t))
            return false;
    }
}

#if MGL_KV_RING

/* ---- attentions on the tape --------------------------------------------------------------------
 */

static __device__ __forceinline__ mgl_device_kv stop_number(const ring_stream &r, u32 number)
{
    if (number < r.stop_count)
        return r.stops[number];
    mgl_device_kv none = {};
    none.stop = ~0u;
    return none;
}

static __device__ __forceinline__ void begin_stops(ring_stream &r)
{
    r.stop = 0;
    r.next = stop_number(r, 0);
    r.behind = stop_number(r, 1);
}

/* Waits until the epoch of the attention at hand has begun; false: the block is leaving. */
static __device__ __forceinline__ bool wait_for_kv(const machine &m, stream &t)
{
    t.polls = 0;
    t.since = 0;
    while (!see_kv(t.ring)) {
        if (MGL_PREFETCH > 0)
            prefetch(m, t);
        if (!is_needed(m, t))
            return false;
        sleep_ns(AHEAD_NS);
    }
    return true;
}

/* The tape once, and in between the keys and values of attentions: an epoch. False: the block is
 * leaving. */
static __device__ __forceinline__ bool load_tape(const machine &m, stream &t, u64 policy)
{
    ring_stream &r = t.ring;
    begin_stops(r);
    while (t.at < t.pages || r.stop < r.stop_count) {
        const bool stands = t.at * PAGE_BLOCKS + r.from == r.next.stop; /* an attention, here */
        if (stands && !wait_for_kv(m, t))
            return false;
        if (stands && r.copied == r.pages) {
            /* passes it; the one behind it has been asked for long ago */
            r.stop++;
            r.begun = false;
            r.next = r.behind;
            r.behind = stop_number(r, r.stop + 1);
            continue;
        }
        if (!loader_wait(m, t))
            return false;
        u8 *to = ring_memory() + t.next.frame * MGL_PAGE;
        u64 *full = &own().full[t.next.frame];
        if (stands) {
            u32 bytes;
            const u8 *from = kv_page_at(r, r.copied, &bytes);
            copy_bytes(to, from, bytes, full, policy);
            r.copied++;
        } else {
            /* of the tape a page up to its end, or up to where an attention stands, which is far
             * behind the page's end if it is on another page */
            const u32 end = min(r.next.stop - t.at * PAGE_BLOCKS, (u32)PAGE_BLOCKS);
            const u32 skipped = r.from * MGL_BLOCK_BYTES;
            copy_bytes(to + skipped, t.tape + (size_t)t.at * MGL_PAGE + skipped,
                       (end - r.from) * MGL_BLOCK_BYTES, full, policy);
            r.from = end % PAGE_BLOCKS;
            if (end == PAGE_BLOCKS) {
                t.at++;
                t.fetched = max(t.fetched, 1u) - 1;
            }
        }
        advance(t.next);
    }
    t.at = 0;
    r.epoch++;
    return true;
}

#else

/* The tape once. False: the block is leaving. */
static __device__ __forceinline__ bool load_tape(const machine &m, stream &t, u64 policy)
{
    for (u32 i = 0; i < t.pages; i++, advance(t.next)) {
        if (!loader_wait(m, t))
            return false;
        copy_page(m.lane, ring_memory() + t.next.frame * MGL_PAGE, t.tape + (size_t)t.at * MGL_PAGE,
                  &own().full[t.next.frame], policy);
        t.at = next_on_tape(t, t.at);
        t.fetched = max(t.fetched, 1u) - 1;
    }
    return true;
}

#endif

/* At the start of a queue's tape, which is that of the first list. */
static __device__ __forceinline__ stream stream_of(const mgl_device_queue &queue)
{
    stream t = {(const u8 *)queue.tape, queue.pages, own().launch.pending};
    if (KV_RING) {
        t.ring.stops = (const mgl_device_kv *)((const u8 *)own().launch.records + queue.kv_at);
        t.ring.stop_count = queue.kv_count;
    }
    return t;
}

#if !MGL_PANELS /* which have roles/panel_loader.cuh */

/* The loader warp, one thread of it where there are bulk copies. At the end it waits for the copies
 * in flight, which must not land in shared memory that is somebody else's by then. */
static __device__ void run_loader(machine &m, const mgl_device_queue &queue)
{
    u64 policy = copy_policy();
    stream t = stream_of(queue);
    if (MGL_BULK_COPY && m.lane != 0)
        return;
    if (t.pages == 0 && t.ring.stop_count == 0) {
        /* a queue without a tape may still attend */
        while (!load_shared_acquire((const volatile u32 *)&own().stop)) {
            ask_ahead(t, 1);
            sleep_ns(AHEAD_NS);
        }
        return;
    }
    while (load_tape(m, t, policy))
        ;
    for (u32 page = own().landed; page < t.next.page; page++)
        while (!barrier_passed(&own().full[page % MGL_RING], parity_of(page)))
            ;
}

#endif

#endif

/*
 * The loader warp (the producer of the ring buffer): it copies the pages of the queue's tape into
 * the ring, epoch after epoch, by the copies of ptx.cuh.
 *
 * Page p uses frame p % MGL_RING. Every consumer warp arrives on the frame's `empty` barrier once
 * for every page of the tape, after the page has landed. So no warp is a phase ahead of another,
 * and the loader fills the frame when the phase is complete. For a page of keys or values, the
 * warps that read the page arrive on behalf of all warps.
 *
 * Bytes in flight delay all other memory traffic, above all the counters and flags of edges.
 * Therefore the loader limits the pages in flight: MGL_FLIGHT normally, some more if the current
 * task has its input and needs them, and launch.pending while the queue waits for an edge. While
 * the ring is full, the loader prefetches the next MGL_PREFETCH pages into L2. Before those it
 * prefetches the keys and values of earlier positions that the current or the next attention reads,
 * piece by piece in the order of their use (ahead.cuh).
 *
 * With MGL_KV_RING those keys and values come through the ring as well, at the attention's place on
 * the tape: a page of keys, then a page of the values of the same positions, and so on. Their
 * number follows from the epoch's position, which the controller publishes; it is 0 if the epoch's
 * row is not of the kind that the attention attends with. They are pages of the ring like others,
 * so later pages get higher numbers, which the controller adds to an epoch's first page (`base`).
 * If the attention's place is within a page of the tape, only the part of the page before that
 * place comes first. The rest of that page follows the values as its own page, at its usual place
 * within the frame.
 */
#ifndef MGL_DEVICE_ROLES_LOADER_CUH
#define MGL_DEVICE_ROLES_LOADER_CUH

#include "vm/cuda/device/roles/ahead.cuh"
#include "vm/cuda/device/watchdog.cuh"

enum {
    LOST_POLLS = 4096,      /* polls of the ring between two checks of the clock */
    STOP_POLLS = 16,        /* polls between two checks whether the block leaves */
    LOST_DEADLINES = 4,     /* deadlines that a ring may stall while no edge is waited for, */
    PENDING_DEADLINES = 16, /* and while an edge is waited for, which has its own deadline */
    FRAME_NS = MGL_PREFETCH > 0 ? 250 : 1000 /* the loader's sleep while the ring is full */
};

/* Limit of pages in flight that the current task needs. Like all such limits it is below the ring's
 * size. Otherwise the landing warp might wait for a phase of a frame that another page has
 * completed meanwhile. */
enum {
    MORE_FLIGHT = MGL_FLIGHT + MGL_FLIGHT / 2,
    URGENT_PAGES = MORE_FLIGHT < MGL_RING ? MORE_FLIGHT : MGL_RING - 1
};
static_assert(MGL_FLIGHT < MGL_RING, "the landing warp needs a page of room");

/* The deadline of all waits for pages and frames, the consumers' waits included. Whether nothing
 * has moved for so long that no sequence of waits with a deadline can be the cause. Then the order
 * of the ring is broken, and the block is told through `lost`. */
static __device__ __forceinline__ bool is_lost(machine m, stream &t)
{
    const u64 now = clock_ns();
    const u64 deadlines = own().pending ? PENDING_DEADLINES : LOST_DEADLINES;
    if (t.since == 0)
        t.since = now;
    if (!all_say(now - t.since >= deadlines * own().launch.deadline_ns))
        return false;
    const instruction_slot task =
        own().instruction[(own().begun[0] + 1) & 1]; /* of the last task that warp 0 began */
    m.record = task.record;
    look_at_clock(t.since, MGL_REPORT_RING, task_of(m)->task, task.epoch, t.next.page,
                  t.next.page + 1, own().landed);
    own().lost = 1;
    return true;
}

/* Called between two polls of the loader: whether the block still needs the loader. */
static __device__ __forceinline__ bool is_needed(const machine &m, stream &t)
{
    t.polls++;
    if (t.polls % STOP_POLLS == 0 && !all_say(!own().stop && !own().lost))
        return false;
    return t.polls % LOST_POLLS != 0 || !all_say(is_lost(m, t));
}

/* Waits until the next page may be requested: its frame is free, and the number of pages in flight
 * is below the limit. Meanwhile prefetches later data into L2. Returns false if the block is
 * leaving. */
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
        /* the current task, which has its input, needs the page */
        const bool urgent = (int)(t.next.page - load_shared_acquire(&own().demanded)) < 0;
        const u32 in_flight = t.next.page - load_shared_acquire(&own().landed);
        const u32 most = urgent                                ? (u32)URGENT_PAGES
                         : load_shared_acquire(&own().pending) ? t.pending
                                                               : (u32)MGL_FLIGHT;
        if (all_say(in_flight < most))
            return true;
        if (!urgent)
            ask_ahead(t, 2); /* the other half of the bandwidth is for the pages */
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

/* Waits until the epoch of the next attention has begun. Returns false if the block is leaving. */
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

/* Loads one epoch: the tape, with the keys and values of attentions at their places. Returns false
 * if the block is leaving. */
static __device__ __forceinline__ bool load_tape(const machine &m, stream &t, u64 policy)
{
    ring_stream &r = t.ring;
    begin_stops(r);
    while (t.at < t.pages || r.stop < r.stop_count) {
        const bool stands = t.at * PAGE_BLOCKS + r.from == r.next.stop; /* the attention's place */
        if (stands && !wait_for_kv(m, t))
            return false;
        if (stands && r.copied == r.pages) {
            /* past this attention; the record of the following one was loaded long ago */
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
            /* a page of the tape up to its end or up to the attention's place, whichever comes
             * first */
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

/* Loads the tape once. Returns false if the block is leaving. */
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

/* The loader's state at the start of a queue's tape, which is the first list's tape. */
static __device__ __forceinline__ stream stream_of(const mgl_device_queue &queue)
{
    stream t = {(const u8 *)queue.tape, queue.pages, own().launch.pending};
    if (KV_RING) {
        t.ring.stops = (const mgl_device_kv *)((const u8 *)own().launch.records + queue.kv_at);
        t.ring.stop_count = queue.kv_count;
    }
    return t;
}

#if !MGL_PANELS /* kernels with panels use roles/panel_loader.cuh */

/* The loader warp; only one thread of it with bulk copies. At the end it waits for the copies in
 * flight: after the block has left, they would overwrite shared memory of another block. */
static __device__ void run_loader(machine &m, const mgl_device_queue &queue)
{
    u64 policy = copy_policy();
    stream t = stream_of(queue);
    if (MGL_BULK_COPY && m.lane != 0)
        return;
    if (t.pages == 0 && t.ring.stop_count == 0) {
        /* a queue without a tape may still run attention */
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

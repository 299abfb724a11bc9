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

#include "vm/cuda/device/attention/kv_pages.cuh"
#include "vm/cuda/device/ring.cuh"
#include "vm/cuda/device/watchdog.cuh"

enum {
    LOST_POLLS = 4096,      /* of the ring between looks at the clock */
    STOP_POLLS = 16,        /* and between looks whether the block leaves */
    LOST_DEADLINES = 4,     /* that a ring may stand still while no edge is waited for, */
    PENDING_DEADLINES = 16, /* and while one is, which has a clock of its own */
    FRAME_NS = MGL_PREFETCH > 0 ? 250 : 1000, /* that the loader sleeps while the ring is full */
    PREFETCH_RATE = 16 /* bytes in a cycle of the SM that L2 is asked for: less than the stream's */
};

/* Keys and values. */
enum {
    AHEAD_BYTES = 262144, /* that L2 is asked for before attention's warps ask, at the most, */
    AHEAD_PIECE = 4096,   /* and at once */
    AHEAD_NS = 50         /* that the loader sleeps meanwhile */
};

/* Pages on their way that the task at hand needs. Fewer than the ring has, as all such limits are:
 * or the landing warp might look for a phase of a frame that another page has ended meanwhile. */
enum {
    MORE_FLIGHT = MGL_FLIGHT + MGL_FLIGHT / 2,
    URGENT_PAGES = MORE_FLIGHT < MGL_RING ? MORE_FLIGHT : MGL_RING - 1
};
static_assert(MGL_FLIGHT < MGL_RING, "the watcher needs a page of room");

/* What the loader knows of an attention's keys and values. They are asked for run by run: the keys
 * of the first positions, their values, the keys of the next ones, ... */
struct kv_stream {
    u64 keys, values; /* where they are, */
    u32 bytes;        /* of each, */
    u32 run_bytes;    /* of a run */
    u32 number;       /* own().kv_number of all that */
    u32 run;          /* the one at hand, */
    u32 begin;        /* where its bytes are; nothing is left from `bytes` on */
    u32 at;           /* the next to ask for */
};

/* KV_RING: the loader among the attentions of its queue. */
struct ring_stream {
    u32 from;  /* block of the page of the tape at hand from which on it is to come */
    u32 epoch; /* of the attention that is next, */
    u32 stop;  /* its number, */
    mgl_device_kv next,
        behind; /* and what it is, and the one behind it; their `stop` is ~0 where there is none */
    const mgl_device_kv *stops; /* all of the queue's, so many */
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
    u32 pages;       /* of the tape */
    u32 pending;     /* pages that may be on their way while the queue waits for an edge */
    ring_place next; /* to ask for, */
    u32 at;          /* and its number on the tape */
    u32 fetched,
        fetch_at;    /* pages of the tape from there on that L2 was asked for, and the next one */
    u32 fetch_time;  /* when L2 was asked last, */
    u32 fetch_bytes; /* and for how much */
    kv_stream kv;
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

#if MGL_KV_RING

/* Takes what the next attention has of earlier positions, if the epoch has begun. */
static __device__ __forceinline__ bool see_kv(ring_stream &r)
{
    if (r.begun || r.stop >= r.stop_count)
        return r.begun;
    if ((int)(load_shared_acquire(&own().entered) - r.epoch) <= 0)
        return false;
    if (r.fenced != r.epoch + 1) /* what the copies read was written by stores */
        fence_bulk_reads();
    r.fenced = r.epoch + 1;
    const u32 first = own().kv_first + r.epoch, splits = r.next.splits;
    const u32 lo = first * r.next.split / splits, hi = first * (r.next.split + 1) / splits;
    r.keys = (const u8 *)r.next.keys + (size_t)lo * KV_ROW;
    r.values = (const u8 *)r.next.values + (size_t)lo * KV_ROW;
    r.bytes = (hi - lo) * KV_ROW;
    r.pages = kv_pages(hi - lo);
    r.copied = r.asked = 0;
    r.begun = true;
    return true;
}

/* Where a page of its keys or values is, and how many bytes of it there are. */
static __device__ __forceinline__ const u8 *run_at(const ring_stream &r, u32 page, u32 *bytes)
{
    const u32 begin = page / 2 * (KV_PAGE * KV_ROW);
    *bytes = min((u32)KV_PAGE * KV_ROW, r.bytes - begin);
    return (page % 2 ? r.values : r.keys) + begin;
}

/* Asks L2 for those keys and values that the ring has no room for yet, where it is time, unless
 * that is far enough ahead; false: there is nothing to ask for. */
static __device__ __forceinline__ bool ask_ahead(stream &t, u32 share)
{
    ring_stream &r = t.ring;
    /* what is on the tape before comes first */
    if (r.next.stop - t.at * PAGE_BLOCKS >= (t.fetched + 1) * PAGE_BLOCKS || !see_kv(r))
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
static __device__ __forceinline__ void see_kv(kv_stream &kv)
{
    const u32 number = load_shared_acquire(&own().kv_number);
    if (number == kv.number || number % 2 != 0)
        return;
    const kv_stream seen = {
        own().kv_keys, own().kv_values, own().kv_bytes, own().kv_run, number, 0, 0, 0};
    if (load_shared_acquire(&own().kv_number) == number)
        kv = seen;
}

static __device__ __forceinline__ void next_run(kv_stream &kv)
{
    if (kv.run % 2 != 0)
        kv.begin += kv.run_bytes;
    kv.run++;
    kv.at = kv.begin;
}

/* Asks for the next piece of the run at hand. */
static __device__ __forceinline__ void ask_piece(stream &t)
{
    kv_stream &kv = t.kv;
    const u32 end = min(kv.begin + kv.run_bytes, kv.bytes);
    const u32 bytes = min((u32)AHEAD_PIECE, end - kv.at);
    prefetch_bytes((kv.run % 2 ? kv.values : kv.keys) + kv.at, bytes);
    note_fetch(t, bytes);
    kv.at += bytes;
    if (kv.at == end)
        next_run(kv);
}

/* Asks for keys and values, where it is time, unless that is far enough ahead; false: there is
 * nothing to ask for. */
static __device__ __forceinline__ bool ask_ahead(stream &t, u32 share)
{
    kv_stream &kv = t.kv;
    see_kv(kv);
    if (kv.begin >= kv.bytes)
        return false;
    const u32 used = load_shared_acquire(&own().kv_used);
    if ((int)(kv.run - used) < 0)
        next_run(kv);
    else if ((kv.run - used) * kv.run_bytes >= AHEAD_BYTES)
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

/* Waits until the next page's frame is free; false: the block is leaving. */
static __device__ __forceinline__ bool wait_for_frame(const machine &m, stream &t)
{
    int ns = FRAME_NS;
    while (!all_say(barrier_passed(&own().empty[t.next.frame], t.next.parity ^ 1, ns))) {
        const bool asks = ask_ahead(t, 1);
        ns = asks ? AHEAD_NS : FRAME_NS;
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
    if (!wait_for_frame(m, t))
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

#if MGL_KV_RING

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
    copy_bytes(ring_memory() + t.next.frame * MGL_PAGE + skipped,
               t.tape + (size_t)t.at * MGL_PAGE + skipped, (end - t.ring.from) * MGL_BLOCK_BYTES,
               &own().full[t.next.frame], policy);
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
    copy_bytes(ring_memory() + t.next.frame * MGL_PAGE, from, bytes, &own().full[t.next.frame],
               policy);
    t.ring.copied++;
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

/* The tape round and round, and in between the keys and values of attentions, until the block
 * leaves. */
static __device__ __forceinline__ void load_all(const machine &m, stream &t, u64 policy)
{
    begin_stops(t.ring);
    for (;;) {
        const bool stands = t.at * PAGE_BLOCKS + t.ring.from == t.ring.next.stop;
        if (stands && !wait_for_kv(m, t))
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
        copy_page(m.lane, ring_memory() + t.next.frame * MGL_PAGE, t.tape + (size_t)t.at * MGL_PAGE,
                  &own().full[t.next.frame], policy);
        t.at = next_on_tape(t, t.at);
        t.fetched = max(t.fetched, 1u) - 1;
    }
}

#endif

/* A queue without a tape may still attend. */
static __device__ __forceinline__ void ask_alone(stream &t)
{
    while (!load_shared_acquire((const volatile u32 *)&own().stop)) {
        ask_ahead(t, 1);
        sleep_ns(AHEAD_NS);
    }
}

/* The loader warp: streams the tape round and round until the block leaves, then waits for the
 * copies in flight, which must not land in shared memory that is somebody else's by then. */
static __device__ void run_loader(machine &m, const mgl_device_queue &queue)
{
    u64 policy = copy_policy();
    stream t = {(const u8 *)queue.tape, queue.pages, own().launch.pending};
    if (MGL_BULK_COPY && m.lane != 0)
        return;
    if (KV_RING) {
        t.ring.stops = (const mgl_device_kv *)((const u8 *)own().launch.records + queue.kv_at);
        t.ring.stop_count = queue.kv_count;
    }
    if (t.pages == 0 && t.ring.stop_count == 0)
        return ask_alone(t);
    load_all(m, t, policy);
    for (u32 page = own().landed; page < t.next.page; page++)
        while (!barrier_passed(&own().full[page % MGL_RING], parity_of(page)))
            ;
}

#endif

/*
 * The loader warp of a program whose second list has panels (linear/panels.cuh): it loads the
 * epochs of both lists.
 *
 * Epochs of the first list work as in roles/loader.cuh. Epochs of the second list divide the same
 * shared memory in another way: the last PANEL_PAGES frames of the ring are pages of weights, and
 * the activation buffer with the other frames holds activation tiles. Both are rings with their own
 * mbarriers (page_full, page_empty, act_tile_full, act_tile_empty). The loader switches between the
 * lists when the other list's memory is completely free.
 *
 *   page             pieces of the tape: the same k blocks of some row groups of a panel, one after
 *                    the other. A panel that does not fit one page takes several pages of the same
 *                    k blocks
 *   activation tile  some k blocks of the activations of all rows (ACT_TILE_BLOCKS if the epoch has
 *                    the most rows), for one warp team or warpgroup (linear/panel_shape.cuh).
 *                    Small-M panels have none
 *
 * The loader copies the pages. The epilogue, which is idle in such a task, fills the activation
 * tiles (roles/act_tile_loader.cuh): one thread would be too slow for both. In epochs of more rows
 * than wide tasks' small-M panels permit, one thread is too slow even for the pages. Then the
 * landing warp copies the pages of every second place, also the pages of small-M panels.
 *
 * Weights wait only for free pages, so they run ahead over edges, but not before the epoch has
 * begun. Only then is it known which panels are small-M panels, which lie on pages in another way.
 * If no row wants logits, the head's weights are skipped.
 */
#ifndef MGL_DEVICE_ROLES_PANEL_LOADER_CUH
#define MGL_DEVICE_ROLES_PANEL_LOADER_CUH

#include "vm/cuda/device/linear/panel_shape.cuh"
#include "vm/cuda/device/roles/loader.cuh"

#if MGL_PANELS

/* A page, counted over all epochs: its place, and the parity of its phase. */
struct panel_page {
    u32 number, at, parity;
};

static __device__ __forceinline__ void advance(panel_page &p)
{
    p.number++;
    if (++p.at == PANEL_PAGES) {
        p.at = 0;
        p.parity ^= 1;
    }
}

/* The loader's state in the second list. */
struct panel_stream {
    const mgl_device_panel *panels; /* the queue's tasks, in order, */
    u32 count;                      /* their number */
    u32 tasks;                      /* tasks so far, over all epochs */
    panel_page next, landed;
    u32 which;           /* which of the two warps that copy pages: 0 (loader) or 1 (landing
                            warp) */
    u32 asked, parities; /* (bit masks over places) pages that it has requested in this epoch,
                            and the parities of their last phases */
};

static __device__ __forceinline__ bool is_listed(u32 epoch)
{
    return (int)(load_shared_acquire(&own().listed) - epoch) > 0;
}

static __device__ __forceinline__ bool is_of_panels(u32 epoch)
{
    return own().list[epoch % 4] != 0;
}

/* Waits until `is_so` is true. Returns false if the block is leaving. */
template <class CONDITION>
static __device__ __forceinline__ bool wait_until(const machine &m, stream &t,
                                                  const CONDITION &is_so)
{
    t.polls = 0;
    t.since = 0;
    while (!is_so())
        if (!is_needed(m, t))
            return false;
    return true;
}

/* Waits until the last COUNT of the `number` phases of a ring are complete, or all phases if there
 * are fewer. */
template <u32 COUNT>
static __device__ __forceinline__ bool wait_all(const machine &m, stream &t, u64 *barriers,
                                                u32 number)
{
    for (u32 i = number > COUNT ? number - COUNT : 0; i < number; i++)
        if (!wait_until(m, t, [&] { return barrier_tested(&barriers[i % COUNT], i / COUNT & 1); }))
            return false;
    return true;
}

/* ---- weights ----------------------------------------------------------------------------------
 */

/* Whether one more page may be in flight. If no edge is waited for, every free page may be filled.
 * The landed pages are then not checked, because a check takes as long as some requests. */
static __device__ __forceinline__ bool may_fly(const stream &t, panel_stream &p)
{
    if (!load_shared_acquire(&own().pending))
        return true;
    if (p.next.number - p.landed.number >
        PANEL_PAGES) /* the free place of the next page implies that older pages have landed */
        p.landed = {p.next.number - PANEL_PAGES, p.next.at, p.next.parity ^ 1};
    while (p.landed.number != p.next.number &&
           barrier_tested(&own().page_full[p.landed.at], p.landed.parity))
        advance(p.landed);
    return p.next.number - p.landed.number < min(t.pending, (u32)PANEL_PAGES);
}

/* Waits until the next page may be requested. Returns false if the block is leaving. */
static __device__ __forceinline__ bool wait_page(const machine &m, stream &t, panel_stream &p)
{
    return wait_until(
               m, t,
               [&] { return barrier_passed(&own().page_empty[p.next.at], p.next.parity ^ 1); }) &&
           wait_until(m, t, [&] { return may_fly(t, p); });
}

/* The content of a page: `groups` row groups, `stride` bytes apart on the tape; `bytes` bytes of
 * each, in `room` bytes of the page. */
struct page_pieces {
    const u8 *from;
    size_t stride;
    int groups;
    u32 bytes, room;
};

/* Calls each(pieces) for all pages of a task in order, as long as it returns true. small_m: row
 * groups of a small-M panel, or 0 for other panels. */
template <class EACH>
static __device__ __forceinline__ bool go_through_pages(const mgl_device_panel &task, int small_m,
                                                        const EACH &each)
{
    const int kblocks = (int)task.kblocks, most = small_m > 0 ? small_m : (int)PANEL_GROUPS;
    const u32 scales = MGL_SCALED ? task.scales : 0; /* not copied */
    const size_t stride = (size_t)(scales + task.kblocks) * MGL_BLOCK_BYTES;
    for (int group = 0; group < (int)task.groups; group += most) {
        const int left = (int)task.groups - group;
        const panel_shape s = small_m > 0 ? small_m_shape_of(left, small_m) : panel_shape_of(left);
        const u32 room = (u32)(s.piece * MGL_BLOCK_BYTES);
        const u8 *from = (const u8 *)task.tape + (u32)group * stride + scales * MGL_BLOCK_BYTES;
        for (int block = 0; block < kblocks; block += s.piece, from += room) {
            const u32 bytes = (u32)(min(s.piece, kblocks - block) * MGL_BLOCK_BYTES);
            for (int first = 0; first < s.groups; first += s.per)
                if (!each(page_pieces{from + (u32)first * stride, stride,
                                      min(s.per, s.groups - first), bytes, room}))
                    return false;
        }
    }
    return true;
}

static __device__ __forceinline__ void copy_weights(const panel_page &page,
                                                    const page_pieces &pieces, u64 policy)
{
    u8 *to = page_memory() + page.at * MGL_PAGE;
    const u8 *from = pieces.from;
    u64 *full = &own().page_full[page.at];
    expect_bytes(full, (u32)pieces.groups * pieces.bytes);
    for (int g = 0; g < pieces.groups; g++, to += pieces.room, from += pieces.stride)
        copy_piece(to, from, pieces.bytes, full, policy);
}

/* Loads all panels of a task. `alone`: this warp copies all pages of the epoch. Returns false if
 * the block is leaving. */
static __device__ __forceinline__ bool load_task(const machine &m, stream &t, panel_stream &p,
                                                 const mgl_device_panel &task, int small_m,
                                                 bool alone, u64 policy)
{
    return go_through_pages(task, small_m, [&](const page_pieces &pieces) {
        const u32 place = 1u << p.next.at;
        if (alone || p.next.at % 2 == p.which) {
            if (!wait_page(m, t, p))
                return false;
            copy_weights(p.next, pieces, policy);
            p.asked |= place;
            p.parities = p.next.parity ? p.parities | place : p.parities & ~place;
        }
        advance(p.next);
        return true;
    });
}

/* ---- lists ------------------------------------------------------------------------------------
 */

/* Loads the weights of an epoch of the second list. Their layout on pages is known when the epoch
 * has begun; by then all pages of earlier epochs have been used. */
static __device__ __forceinline__ bool load_epoch(const machine &m, stream &t, panel_stream &p,
                                                  u32 epoch, u64 policy)
{
    mgl_device_panel behind = {};
    if (p.count > 0)
        behind = p.panels[0];
    if (!wait_until(m, t, [&] { return is_listed(epoch + 1); }))
        return false;
    const u32 small_m = own().small_m[epoch % 4];
    const bool alone = (small_m & 0xFFFF) > 0;
    p.asked = 0; /* all earlier pages have been used */
    if (p.which == 0) {
        own().stream_from[epoch % 4] = p.next.number;
        store_shared_release(&own().stream_epoch, epoch + 1);
    } else if (alone || own().stream_epoch != epoch + 1) {
        return true; /* the loader copies alone; or it is in a later epoch already, and the
                        values read may be of that epoch */
    }
    for (u32 i = 0; i < p.count; i++) {
        const mgl_device_panel task = behind;
        if (i + 1 < p.count)
            behind = p.panels[i + 1];
        p.tasks++;
        if (task.heads && own().heads[epoch % 4] == 0)
            continue;
        const bool small_n = has_small_n((int)task.groups, task.heads);
        const int few = (int)(small_n ? small_m >> 16 : small_m & 0xFFFF);
        if (!load_task(m, t, p, task, MGL_SCALED && task.scaled ? 0 : few, alone, policy))
            return false;
    }
    return true;
}

/* Loads epochs of the second list, from `epoch` to the next one of the first list, to which `epoch`
 * is set. */
static __device__ __forceinline__ bool load_panels(const machine &m, stream &t, panel_stream &p,
                                                   u32 &epoch, u64 policy)
{
    if (!wait_all<MGL_RING>(m, t, own().empty, t.next.page))
        return false;
    store_shared_release(&own().switched, 1);
    do {
        if (!load_epoch(m, t, p, epoch, policy))
            return false;
        epoch++;
        if (!wait_until(m, t, [&] { return is_listed(epoch); }))
            return false;
    } while (is_of_panels(epoch));
    if (!wait_until(m, t, [&] { return load_shared_acquire(&own().paneled) == p.tasks; }))
        return false;
    store_shared_release(&own().switched, 0);
    fence_bulk_writes(); /* pages overwrite memory where tasks stored sums */
    return wait_all<PANEL_PAGES>(m, t, own().page_empty, p.next.number);
}

/* Loads epoch after epoch until the block leaves. */
static __device__ __forceinline__ void load_lists(const machine &m, stream &t, panel_stream &p,
                                                  u64 policy)
{
    for (u32 epoch = 0;;) {
        if (!wait_until(m, t, [&] { return is_listed(epoch); }))
            return;
        if (is_of_panels(epoch)) {
            if (!load_panels(m, t, p, epoch, policy))
                return;
        } else {
            if (!load_tape(m, t, policy))
                return;
            epoch++;
        }
    }
}

/* Before the block leaves, wait until the copies in flight have landed: await_ring for the ring's
 * pages, */
static __device__ __forceinline__ void await_ring(u32 number)
{
    for (u32 i = number > MGL_RING ? number - MGL_RING : 0; i < number; i++)
        while (!barrier_passed(&own().full[i % MGL_RING], i / MGL_RING & 1))
            ;
}

/* await_pages for the second list's pages. */
static __device__ __forceinline__ void await_pages(const panel_stream &p)
{
    for (int place = 0; place < PANEL_PAGES; place++)
        while ((p.asked >> place & 1) &&
               !barrier_passed(&own().page_full[place], p.parities >> place & 1))
            ;
}

static __device__ __forceinline__ panel_stream panel_stream_of(const mgl_device_queue *queues,
                                                               u32 which)
{
    panel_stream p = {};
    p.panels = (const mgl_device_panel *)((const u8 *)own().launch.records + queues[1].kv_at);
    p.count = queues[1].kv_count;
    p.which = which;
    return p;
}

/* The loader warp's main function; one thread. At the end it waits for the copies in flight. */
FAR void run_panel_loader(machine m, const mgl_device_queue *queues);

#if IN_OBJECT(LOADER)

FAR void run_panel_loader(machine m, const mgl_device_queue *queues)
{
    stream t = stream_of(queues[0]);
    panel_stream p = panel_stream_of(queues, 0);
    if (m.lane != 0)
        return;
    load_lists(m, t, p, copy_policy());
    await_ring(t.next.page);
    await_pages(p);
}

#endif

/* The landing warp's main function (roles/landing.cuh); one thread. In epochs of the second list no
 * ring pages land, and the warp helps the loader. */
FAR void run_panel_landing(machine m, const mgl_device_queue *queues);

#if IN_OBJECT(LOADER)

FAR void run_panel_landing(machine m, const mgl_device_queue *queues)
{
    stream t = stream_of(queues[0]);
    panel_stream p = panel_stream_of(queues, 1);
    ring_place ring = {};
    u32 seen = 0;
    if (m.lane != 0)
        return;
    while (!own().stop) {
        if (barrier_passed(&own().full[ring.frame], ring.parity, own().switched ? 50 : 1000)) {
            advance(ring);
            store_shared_release(&own().landed, ring.page);
            continue;
        }
        const u32 epoch = load_shared_acquire(&own().stream_epoch);
        if (epoch == seen)
            continue;
        const u32 from = own().stream_from[(epoch - 1) % 4];
        seen = epoch;
        p.next = {from, from % PANEL_PAGES, from / PANEL_PAGES & 1};
        if (!load_epoch(m, t, p, epoch - 1, copy_policy()))
            break;
    }
    await_pages(p);
}

#endif

#endif

#endif

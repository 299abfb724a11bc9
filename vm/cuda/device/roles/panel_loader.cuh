/*
 * The loader of a program whose second list has panels (linear/panels.cuh): epoch after epoch, of
 * whichever list.
 *
 * Epochs of the first list are as in roles/loader.cuh. Those of the second have the same memory in
 * another way: the last PANEL_PAGES frames of the ring are pages of weights, and the stage with the
 * other frames is trays of activations. Both are rings with barriers of their own; so a list is
 * turned to when all that the other one had is let go of.
 *
 *   page   pieces of the tape: of some row groups of a panel, one behind the other, the same k
 *          blocks. A panel that one page has no room for takes some pages of the same k blocks
 *   tray   TRAY_BLOCKS k blocks of the activations of all rows, in the order in which the tape has
 *          their weights
 *
 * Weights wait for nothing but room, so they run ahead over edges, and into the next epoch if that
 * is of the same list. Activations are what other queues wrote: the controller has acquired the
 * task's counters when it announces the task, the loader acquires its word, and one fence makes
 * what was stored visible to bulk copies, which are another proxy. Of a k block no more rows are
 * copied than the epoch has.
 *
 * The head has logits of the rows that want them. Of its activations the tiles of PANEL_TILE rows
 * are copied that have such a row, one tile behind the other; and where no row wants logits,
 * neither its weights nor its activations are. Which rows these are is known when the epoch has
 * begun: the stream of weights waits for that at the head, if it is so far ahead.
 *
 * All is one thread, which waits for nothing: what can not go on is looked at again in turn.
 */
#ifndef MGL_DEVICE_ROLES_PANEL_LOADER_CUH
#define MGL_DEVICE_ROLES_PANEL_LOADER_CUH

#include "vm/cuda/device/linear/panel_shape.cuh"
#include "vm/cuda/device/roles/loader.cuh"

#if MGL_PANELS

/* A page or a tray, counted over all epochs: its place, and the parity of a phase that is its. */
template <u32 COUNT> struct turn {
    u32 number, at, parity;
};

template <u32 COUNT> static __device__ __forceinline__ void advance(turn<COUNT> &t)
{
    t.number++;
    if (++t.at == COUNT) {
        t.at = 0;
        t.parity ^= 1;
    }
}

/* Where a stream of the second list stands among the queue's panel tasks. */
struct panel_walk {
    u32 epoch, task;              /* of the launch, and of the epoch */
    mgl_device_panel now, behind; /* that task, and the next */
    int group, block;             /* of the task: the panel's first, and the first to come */
};

/* The loader in the second list. */
struct panel_stream {
    const mgl_device_panel *panels; /* the queue's tasks, in order, */
    u32 count;                      /* so many */
    panel_walk weights, inputs;
    panel_shape shape; /* of the panel whose weights are at hand, */
    int page;          /* and the page of its k blocks that is next */
    turn<PANEL_PAGES> next, landed;
    turn<TRAYS> tray;
    u32 tasks;   /* panel tasks before that of the inputs, over all epochs */
    bool fenced; /* the task's input may be copied: */
    u32 bytes;   /* a k block has so many of all rows of the epoch, */
    u32 wanted;  /* and so many of them are */
};

enum { TILE_BYTES = PANEL_TILE * MGL_PANEL_ROW_BYTES }; /* of a k block */

static __device__ __forceinline__ bool is_listed(u32 epoch)
{
    return (int)(load_shared_acquire(&own().listed) - epoch) > 0;
}

static __device__ __forceinline__ bool is_of_panels(u32 epoch)
{
    return own().list[epoch % 4] != 0;
}

/* ---- walking ----------------------------------------------------------------------------------
 */

static __device__ __forceinline__ void begin_walk(const panel_stream &p, panel_walk &w, u32 epoch)
{
    w.epoch = epoch;
    w.task = 0;
    w.group = w.block = 0;
    if (p.count > 0)
        w.now = p.panels[0];
    if (p.count > 1)
        w.behind = p.panels[1];
}

static __device__ __forceinline__ void next_task(const panel_stream &p, panel_walk &w)
{
    w.group = w.block = 0;
    w.task++;
    w.now = w.behind;
    if (w.task + 1 < p.count)
        w.behind = p.panels[w.task + 1];
}

/* Whether the walk stands at a head that makes no logits, if that is known, which `known` says. */
static __device__ __forceinline__ bool is_idle(const panel_walk &w, bool &known)
{
    known = true;
    if (!w.now.heads)
        return false;
    known = is_listed(w.epoch + 1);
    return known && own().heads[w.epoch % 4] == 0;
}

/* Whether there is a task at hand that copies: at an epoch's end the next one's first, if it is
 * known to be of this list. `passed`: the tasks before it that copy nothing. */
static __device__ __forceinline__ bool has_task(const panel_stream &p, panel_walk &w, u32 &passed)
{
    for (bool known;;) {
        if (w.task >= p.count) {
            if (!is_listed(w.epoch + 1) || !is_of_panels(w.epoch + 1))
                return false;
            begin_walk(p, w, w.epoch + 1);
            if (p.count == 0)
                return false;
        }
        if (!is_idle(w, known))
            return known;
        next_task(p, w);
        passed++;
    }
}

/* ---- weights ----------------------------------------------------------------------------------
 */

static __device__ __forceinline__ void copy_weights(const panel_stream &p, u64 policy)
{
    const panel_walk &w = p.weights;
    const int first = p.page * p.shape.per, groups = min(p.shape.per, p.shape.groups - first);
    const int blocks = min(p.shape.piece, (int)w.now.kblocks - w.block);
    u8 *to = page_memory() + p.next.at * MGL_PAGE;
    u64 *full = &own().page_full[p.next.at];
    const u8 *from =
        (const u8 *)w.now.tape +
        ((size_t)(u32)(w.group + first) * w.now.kblocks + (u32)w.block) * MGL_BLOCK_BYTES;
    expect_bytes(full, (u32)(groups * blocks * MGL_BLOCK_BYTES));
    for (int g = 0; g < groups; g++)
        copy_piece(to + g * p.shape.piece * MGL_BLOCK_BYTES,
                   from + (size_t)(u32)g * w.now.kblocks * MGL_BLOCK_BYTES,
                   (u32)(blocks * MGL_BLOCK_BYTES), full, policy);
}

/* To the page behind. */
static __device__ __forceinline__ void pass_page(panel_stream &p)
{
    panel_walk &w = p.weights;
    advance(p.next);
    if (++p.page < p.shape.pages)
        return;
    p.page = 0;
    w.block += p.shape.piece;
    if (w.block < (int)w.now.kblocks)
        return;
    w.block = 0;
    w.group += PANEL_GROUPS;
    if (w.group >= (int)w.now.groups)
        next_task(p, w);
}

/* Asks for one page, if it may; whether it did. */
static __device__ __forceinline__ bool ask_weights(const stream &t, panel_stream &p, u64 policy)
{
    while (p.landed.number != p.next.number &&
           barrier_tested(&own().page_full[p.landed.at], p.landed.parity))
        advance(p.landed);
    u32 passed = 0;
    if (!has_task(p, p.weights, passed))
        return false;
    const u32 most =
        load_shared_acquire(&own().pending) ? min(t.pending, (u32)PANEL_FLIGHT) : (u32)PANEL_FLIGHT;
    if (p.next.number - p.landed.number >= most ||
        !barrier_tested(&own().page_empty[p.next.at], p.next.parity ^ 1))
        return false;
    if (p.page == 0 && p.weights.block == 0)
        p.shape = panel_shape_of((int)p.weights.now.groups - p.weights.group);
    copy_weights(p, policy);
    pass_page(p);
    return true;
}

/* ---- activations ------------------------------------------------------------------------------
 */

/* What of a k block of so many bytes is of the head's tiles. The last one may be short. */
static __device__ __forceinline__ u32 bytes_of_tiles(u32 bytes)
{
    const u32 last = (u32)own().tiles[own().tile_count - 1];
    return (u32)(own().tile_count - 1) * TILE_BYTES +
           min((u32)TILE_BYTES, bytes - last * TILE_BYTES);
}

/* Whether the task's input may be copied: it has been announced. */
static __device__ __forceinline__ bool has_input(panel_stream &p)
{
    if (p.fenced)
        return true;
    if ((int)(load_shared_acquire(&own().announced) - p.tasks) <= 0)
        return false;
    fence_bulk_reads();
    fence_bulk_writes();
    p.bytes = (u32)own().control[MGL_CONTROL_ROWS] * MGL_PANEL_ROW_BYTES;
    p.wanted = p.inputs.now.heads ? bytes_of_tiles(p.bytes) : p.bytes;
    p.fenced = true;
    return true;
}

/* A k block of the rows that the task multiplies: all, or the head's tiles. Tiles that follow one
 * another are one copy. */
static __device__ __forceinline__ void copy_block(const panel_stream &p, u8 *to, const u8 *from,
                                                  u64 *full, u64 policy)
{
    if (!p.inputs.now.heads)
        return copy_piece(to, from, p.bytes, full, policy);
    for (int i = 0, n = 1; i < own().tile_count; i += n, n = 1) {
        const u32 tile = (u32)own().tiles[i];
        while (i + n < own().tile_count && own().tiles[i + n] == (int)tile + n)
            n++;
        copy_piece(to + i * TILE_BYTES, from + tile * TILE_BYTES,
                   min((u32)n * TILE_BYTES, p.bytes - tile * TILE_BYTES), full, policy);
    }
}

static __device__ __forceinline__ void copy_inputs(const panel_stream &p, u64 policy)
{
    const panel_walk &w = p.inputs;
    const int blocks = min((int)TRAY_BLOCKS, (int)w.now.kblocks - w.block);
    u8 *to = tray_memory() + p.tray.at * TRAY_BYTES;
    u64 *full = &own().tray_full[p.tray.at];
    expect_bytes(full, (u32)blocks * p.wanted);
    for (int i = 0; i < blocks; i++) {
        const int block = mgl_tape_block_at((int)w.now.kblocks, MGL_WARPS, w.block + i);
        copy_block(p, to + i * PANEL_ROWS * MGL_PANEL_ROW_BYTES,
                   (const u8 *)w.now.input + (size_t)(u32)block * (MGL_ROWS * MGL_PANEL_ROW_BYTES),
                   full, policy);
    }
}

/* To the tray behind. */
static __device__ __forceinline__ void pass_tray(panel_stream &p)
{
    panel_walk &w = p.inputs;
    advance(p.tray);
    w.block += TRAY_BLOCKS;
    if (w.block < (int)w.now.kblocks)
        return;
    w.block = 0;
    w.group += PANEL_GROUPS;
    if (w.group < (int)w.now.groups)
        return;
    next_task(p, w);
    p.tasks++;
    p.fenced = false;
}

/* Asks for one tray, if it may; whether it did. */
static __device__ __forceinline__ bool ask_inputs(panel_stream &p, u64 policy)
{
    if (!has_task(p, p.inputs, p.tasks) || !has_input(p) ||
        !barrier_tested(&own().tray_empty[p.tray.at], p.tray.parity ^ 1))
        return false;
    copy_inputs(p, policy);
    pass_tray(p);
    return true;
}

/* ---- lists ------------------------------------------------------------------------------------
 */

/* Waits until `is_so` says so; false: the block is leaving. */
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

/* Waits until the last COUNT of a ring's `number` phases are complete, or all if they are fewer. */
template <u32 COUNT>
static __device__ __forceinline__ bool wait_all(const machine &m, stream &t, u64 *barriers,
                                                u32 number)
{
    for (u32 i = number > COUNT ? number - COUNT : 0; i < number; i++)
        if (!wait_until(m, t, [&] { return barrier_tested(&barriers[i % COUNT], i / COUNT & 1); }))
            return false;
    return true;
}

/* An epoch of the first list. */
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

/* Epochs of the second list, from `epoch` on, up to the next one of the first, which `epoch` is
 * then. */
static __device__ __forceinline__ bool load_panels(const machine &m, stream &t, panel_stream &p,
                                                   u32 &epoch, u64 policy, u64 keep)
{
    if (!wait_all<MGL_RING>(m, t, own().empty, t.next.page))
        return false;
    begin_walk(p, p.weights, epoch);
    begin_walk(p, p.inputs, epoch);
    for (;;) {
        const bool ends = p.weights.task >= p.count && p.inputs.task >= p.count &&
                          p.weights.epoch == p.inputs.epoch && is_listed(p.weights.epoch + 1) &&
                          !is_of_panels(p.weights.epoch + 1);
        if (ends)
            break;
        const bool inputs = ask_inputs(p, keep), weights = ask_weights(t, p, policy);
        if (inputs || weights) {
            t.polls = 0;
            t.since = 0;
        } else if (!is_needed(m, t)) {
            return false;
        }
    }
    epoch = p.weights.epoch + 1;
    return wait_all<PANEL_PAGES>(m, t, own().page_empty, p.next.number) &&
           wait_all<TRAYS>(m, t, own().tray_empty, p.tray.number);
}

/* Epoch after epoch, until the block leaves. */
static __device__ __forceinline__ void load_lists(const machine &m, stream &t, panel_stream &p,
                                                  u64 policy)
{
    const u64 keep = keep_policy();
    for (u32 epoch = 0;;) {
        if (!wait_until(m, t, [&] { return is_listed(epoch); }))
            return;
        if (is_of_panels(epoch)) {
            if (!load_panels(m, t, p, epoch, policy, keep))
                return;
        } else {
            if (!load_tape(m, t, policy))
                return;
            epoch++;
        }
    }
}

/* Waits until the last COUNT of a ring's copies have landed. */
template <u32 COUNT> static __device__ __forceinline__ void await_copies(u64 *full, u32 number)
{
    for (u32 i = number > COUNT ? number - COUNT : 0; i < number; i++)
        while (!barrier_passed(&full[i % COUNT], i / COUNT & 1))
            ;
}

/* The loader warp, one thread of it. At the end it waits for the copies in flight. */
static __device__ __noinline__ void run_panel_loader(machine m, const mgl_device_queue *queues)
{
    stream t = {(const u8 *)queues[0].tape, queues[0].pages, own().launch.pending};
    panel_stream p = {};
    if (m.lane != 0)
        return;
    p.panels = (const mgl_device_panel *)((const u8 *)own().launch.records + queues[1].kv_at);
    p.count = queues[1].kv_count;
    load_lists(m, t, p, copy_policy());
    await_copies<MGL_RING>(own().full, t.next.page);
    await_copies<PANEL_PAGES>(own().page_full, p.next.number);
    await_copies<TRAYS>(own().tray_full, p.tray.number);
}

#endif

#endif

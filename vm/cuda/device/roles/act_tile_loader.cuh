/*
 * The epilogue warp in a task with panels (linear/panels.cuh), where it has no partial sums to add
 * up: it is the producer of the activation tiles. It copies the task's activations into the tiles,
 * panel after panel. Each tile holds some k blocks that follow one another in the order of the
 * tape, which is also their order in memory (schedule/pages.h) if the weights have 16 bits. If they
 * are scaled, a block of the tape belongs to several k blocks, and each k block is one copy.
 * act_tile_full and act_tile_empty order the copies.
 *
 * Other queues wrote the activations. The controller has acquired the task's counters when it
 * announces the task, and the epilogue acquires the announcement. Then a fence.proxy.async in every
 * copying lane makes the stores visible to bulk copies, which use another proxy. A tile is one copy
 * if its k blocks are equally far apart in both memories. Otherwise each k block is one copy of the
 * rows of the epoch.
 *
 * The head computes logits only for the rows that want them. So of the head's activations only the
 * tiles of PANEL_TILE rows that contain such a row are copied, one after the other. If no row wants
 * logits, nothing is copied.
 *
 * Small-M panels (linear/small_m.cuh) have no activation tiles.
 *
 * Each place for a tile has its own ACT_TILE_LANES lanes, which fill the tiles of that place one
 * after another. Each lane copies every ACT_TILE_LANES-th k block. The lanes wait only for the
 * warps that use the place's previous tile.
 */
#ifndef MGL_DEVICE_ROLES_ACT_TILE_LOADER_CUH
#define MGL_DEVICE_ROLES_ACT_TILE_LOADER_CUH

#include "vm/cuda/device/linear/panel_ops.cuh"
#include "vm/cuda/device/roles/kv_buffer_loader.cuh"

/* Publishes that the epilogue has reached pre-issued task `number`. */
static __device__ __forceinline__ void reach(u32 number)
{
#if PREISSUED_TASKS
    __syncwarp();
    if (is_first_lane())
        store_shared_release(&own().reached, number + 1);
#endif
}

#if MGL_PANELS

enum { TILE_BYTES = PANEL_TILE * MGL_PANEL_ROW_BYTES }; /* of a k block */

/* Bytes of the head's tiles in a k block that has `bytes` bytes. The last tile may be short. */
static __device__ __forceinline__ u32 bytes_of_tiles(u32 bytes)
{
    const u32 last = (u32)own().tiles[own().tile_count - 1];
    return (u32)(own().tile_count - 1) * TILE_BYTES +
           min((u32)TILE_BYTES, bytes - last * TILE_BYTES);
}

/* Copies the head's tiles of a k block that has `bytes` bytes for all rows. Consecutive tiles are
 * one copy. */
static __device__ __forceinline__ void copy_tiles(u8 *to, const u8 *from, u32 bytes, u64 *full,
                                                  u64 policy)
{
    for (int i = 0, n = 1; i < own().tile_count; i += n, n = 1) {
        const u32 tile = (u32)own().tiles[i];
        while (i + n < own().tile_count && own().tiles[i + n] == (int)tile + n)
            n++;
        copy_piece(to + i * TILE_BYTES, from + tile * TILE_BYTES,
                   min((u32)n * TILE_BYTES, bytes - tile * TILE_BYTES), full, policy);
    }
}

/* The source of a task's activation tiles. Each k block has `bytes` bytes for all rows, of which
 * `wanted` are copied; k blocks are `room` bytes apart. */
struct act_tile_source {
    const u8 *input;
    act_tile_shape act_tile;
    int kblocks;
    bool whole; /* a tile is one copy */
    bool heads; /* only the head's tiles of rows are copied */
    u32 room, bytes, wanted;
};

/* The same for the task that the epilogue reaches next. */
struct act_tile_plan {
    bool seen; /* the task is announced, */
    bool made; /* and has activation tiles */
    act_tile_source source;
};

/* The place in memory of the k block with number `number` in the order of a tape of scaled weights,
 * whose blocks have `parts` k blocks. */
static __device__ __forceinline__ u32 place_of(int kblocks, int parts, int number)
{
    const int block = mgl_tape_block_at(kblocks / parts, MGL_WARPS, number / parts);
    return (u32)mgl_tape_place_of_block(kblocks, MGL_WARPS, block * parts + number % parts);
}

/* Copies this lane's k blocks of tile `index` of a panel; with `counts` it sets the expected bytes
 * of the tile instead. `parts`: k blocks of a block of weights. */
static __device__ __forceinline__ void fill_act_tile(const act_tile_walk &t,
                                                     const act_tile_source &s, int parts, int index,
                                                     int lane, bool counts, u64 policy)
{
    const int first = index * s.act_tile.blocks, count = min(s.act_tile.blocks, s.kblocks - first);
    const u8 *from = s.input + (size_t)(u32)first * s.room;
    u64 *full = &own().act_tile_full[t.place];
    u8 *to = act_tile_memory() + t.place * ACT_TILE_BYTES;
    if (counts) {
        expect_bytes(full, (u32)count * s.wanted);
        return;
    }
    if (s.whole) {
        if (lane == 0)
            copy_piece(to, from, (u32)count * s.room, full, policy);
        return;
    }
    from += (u32)lane * s.room;
    for (int i = lane; i < count; i += ACT_TILE_LANES, from += ACT_TILE_LANES * s.room) {
        if (parts > 1)
            from = s.input + (size_t)place_of(s.kblocks, parts, first + i) * s.room;
        if (s.heads)
            copy_tiles(to + i * (int)s.act_tile.stride, from, s.bytes, full, policy);
        else
            copy_piece(to + i * (int)s.act_tile.stride, from, s.bytes, full, policy);
    }
}

/* Fills the tiles of a panel: ACT_TILE_LANES lanes fill the tiles of one place, one after another.
 * Returns the phases after the panel. `gone`: the loader, which keeps the deadline, has given up;
 * then the phases are those after the tiles that have landed. */
static __device__ __forceinline__ u32 fill_act_tiles(const machine &m, const act_tile_source &s,
                                                     int turns, u32 phases, bool &gone, u64 policy)
{
    const int place = m.lane / ACT_TILE_LANES, lane = m.lane % ACT_TILE_LANES;
    const int rounds = small_quotient(ACT_TILES, turns);
    const int act_tiles = act_tiles_of(s.kblocks, s.act_tile.blocks);
    const int parts = parts_of_block(format_of(m));
    const act_tile_walk t = act_tile_walk_of(turns, place, phases);
    u32 parity = parity_of(t);
    int index = place < rounds * turns ? place : act_tiles;
    gone = false;
    while (!gone && __any_sync(0xFFFFFFFFu, index < act_tiles)) {
        const bool more = index < act_tiles;
        const bool empty = more && barrier_tested(&own().act_tile_empty[place], parity ^ 1);
        const u32 places = __ballot_sync(0xFFFFFFFFu, empty);
        gone = __any_sync(0xFFFFFFFFu, own().lost); /* places are then freed too early */
        const bool mine = more && !gone && (places >> (place * ACT_TILE_LANES) & 1);
        if (mine && lane == 0)
            fill_act_tile(t, s, parts, index, lane, true, policy);
        __syncwarp();
        if (mine) {
            fill_act_tile(t, s, parts, index, lane, false, policy);
            index += rounds * turns;
            parity ^= 1;
        }
    }
    while (gone && place < ACT_TILES && !barrier_passed(&own().act_tile_full[place], parity ^ 1))
        ;
    return __ballot_sync(0xFFFFFFFFu, lane == 0 && place < ACT_TILES && parity);
}

/* The source of a task's tiles, which is known before the activations are written. */
static __device__ __forceinline__ act_tile_source act_tile_source_of(const machine &m)
{
    const int tiles = (rows_of(m) + PANEL_TILE - 1) / PANEL_TILE;
    const bool head = task_of(m)->op == OP_RMS_HEAD;
    const act_tile_shape act_tile = act_tile_shape_of(panel_rows(m));
    const u32 room = (u32)page_rows(m) * MGL_PANEL_ROW_BYTES;
    const int parts = parts_of_block(format_of(m));
    const bool heads = head && own().tile_count < tiles;
    const bool whole = !heads && parts == 1 && act_tile.stride == room;
    const u32 bytes = whole ? room : (u32)rows_of(m) * MGL_PANEL_ROW_BYTES;
    return {address_of(m, operand(m, MGL_PRODUCT_INPUT)),
            act_tile,
            segment(m, 0).kblocks * parts,
            whole,
            heads,
            room,
            bytes,
            heads ? bytes_of_tiles(bytes) : bytes};
}

/* Fills all tiles of a task. Out of line, because it needs more registers than the epilogue. */
NEAR_OR_INLINE void load_act_tiles(const machine m, const act_tile_source s)
{
    const int groups = segment(m, 0).groups;
    u32 phases = own().act_tile_filled;
    const u64 policy = keep_policy();
    bool gone = false;
    fence_bulk_reads();
    fence_bulk_writes();
    for (int group = 0; group < groups && !gone; group += PANEL_GROUPS)
        phases = fill_act_tiles(m, s, panel_shape_of(groups - group).shares, phases, gone, policy);
    __syncwarp();
    own().act_tile_filled = phases; /* every lane stores, so each lane reads its own store later */
}

/* Whether a task has activation tiles. */
static __device__ __forceinline__ bool has_act_tiles(const machine &m, int op)
{
    return is_of<FAMILY_PANEL>(op) && small_m_groups_of(m) == 0 &&
           (op != OP_RMS_HEAD || own().tile_count > 0);
}

/* Waits until the copies in flight have landed, before the block leaves. */
static __device__ __forceinline__ void await_act_tiles()
{
    const u32 phases = own().act_tile_filled;
    for (int place = 0; place < ACT_TILES; place++)
        while (!barrier_passed(&own().act_tile_full[place],
                               (phases >> (place * ACT_TILE_LANES) & 1) ^ 1))
            ;
    await_kv_buffers();
}

/* Fills the activation tiles of task `number` if it has panels, or the KV buffers if it is
 * attention of rows. `plan`: the source of the tiles, if the task was announced early. */
static __device__ __forceinline__ void fetch_act_tiles(const machine &m, int op, u32 number,
                                                       const act_tile_plan &plan)
{
    if (is_preissued(op))
        reach(number);
    if (is_of<FAMILY_PANEL>(op)) {
        if (has_act_tiles(m, op) && wait_switched())
            load_act_tiles(m, plan.made ? plan.source : act_tile_source_of(m));
    } else if (KV_BUFFERS > 0 && is_of<FAMILY_ATTEND_ROWS>(op)) {
        load_kv_buffers(m);
    }
}

/* Makes the plan of task `number` if the task is announced by now. */
static __device__ __forceinline__ void plan_act_tiles(machine m, u32 number, act_tile_plan &plan)
{
    if (plan.seen ||
        !__all_sync(0xFFFFFFFFu, barrier_tested(&own().announced[number & 1], number >> 1 & 1)))
        return;
    plan.seen = true;
    if (own().leave)
        return;
    const instruction_slot task = own().instruction[number & 1];
    m.record = task.record;
    m.instruction = number & 1;
    m.epoch = task.epoch;
    plan.made = has_act_tiles(m, task.op);
    if (plan.made)
        plan.source = act_tile_source_of(m);
}

/* Publishes that the task's tiles and pages are free: the loader may switch to the other list. */
static __device__ __forceinline__ void note_act_tiles(int op)
{
    __syncwarp();
    if ((is_of<FAMILY_PANEL>(op) || is_of<FAMILY_ATTEND_ROWS>(op)) && is_first_lane())
        store_shared_release(&own().paneled, own().paneled + 1);
}

#else

/* For a kernel without panels: it has no task of that family. */
struct act_tile_plan {
};
static __device__ __forceinline__ void fetch_act_tiles(const machine &, int op, u32 number,
                                                       const act_tile_plan &)
{
    if (is_preissued(op))
        reach(number);
}
static __device__ __forceinline__ void plan_act_tiles(machine, u32, act_tile_plan &) {}
static __device__ __forceinline__ void await_act_tiles() {}
static __device__ __forceinline__ void note_act_tiles(int) {}

#endif

#endif

/*
 * Slim panels: those of epochs with few rows, whose activations go straight to registers.
 *
 * A warp has every so many-th k block of the tape's order, all row groups of the panel, and all
 * activation rows. It loads the activations of some k blocks ahead, from where other queues left
 * them: no copy, no tray and no other warp is waited for. Of the weights all warps go through the
 * same pages, one after another; a page has a k block of each warp, or some.
 *
 * Activations are the MMA's rows here, 16 of them, and weights its columns, 8: so a block of
 * weights is an operand as it lies. Lane l has of row l / 4 of a row group, and of activation rows
 * l / 4 and l / 4 + 8, the 16 bytes of quarter l % 4: words 0 and 1 make one MMA, words 2 and 3
 * another. Which k that is does not matter, since both sides have the same.
 *
 * At the panel's end each warp leaves its sums where trays would be, in the order of panels.cuh,
 * and they are added up, the first warp's first.
 */
#ifndef MGL_DEVICE_LINEAR_SLIM_CUH
#define MGL_DEVICE_LINEAR_SLIM_CUH

#include "vm/cuda/device/linear/panels.cuh"

#if MGL_PANELS

/* ---- products ---------------------------------------------------------------------------------
 */

/* Where a lane's activations of a k block are: of TILES of 16 rows, two of them each. */
template <int TILES> struct slim_rows {
    const u8 *input;
    u32 at[2 * TILES]; /* bytes, from the k block's start */
};

/* Rows behind the last one are that again: nobody takes their sums. */
template <int TILES> static __device__ __forceinline__ slim_rows<TILES> slim_rows_of(machine m)
{
    slim_rows<TILES> r;
    const bool heads = task_of(m)->op == OP_SCALED_HEAD;
    r.input = address_of(m, operand(m, MGL_PRODUCT_INPUT));
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
        int row = i * PANEL_TILE + m.lane / 4;
        if (heads)
            row = own().tiles[min(i, own().tile_count - 1)] * PANEL_TILE + m.lane / 4;
        row = min(row, rows_of(m) - 1);
        r.at[i] = (u32)(row * MGL_PANEL_ROW_BYTES +
                        ((m.lane & 3) ^ (row / 2 & 3)) * MGL_PAGE_QUARTER_BYTES);
    }
    return r;
}

/* The tape's order, to find the k block of a place (mgl_tape_block_at) without a division: a place
 * is below 4,096 (MGL_MAX_COLUMNS), and 65,536 / n + 1 is near enough then for n up to 16. */
struct slim_order {
    int warps, run, of_last;
    u32 by, by_less; /* of as many warps, and of one less */
};

static __device__ __forceinline__ slim_order slim_order_of(int kblocks)
{
    const mgl_tape_order order = mgl_tape_order_of(kblocks, MGL_WARPS);
    return {order.warps, order.run, order.of_last, 65536u / (u32)order.warps + 1,
            65536u / (u32)max(order.warps - 1, 1) + 1};
}

static __device__ __forceinline__ int slim_block(const slim_order &o, int place)
{
    const int full = o.of_last * o.warps, rest = max(place - full, 0);
    const int step = (int)((u32)place * o.by >> 16), behind = (int)((u32)rest * o.by_less >> 16);
    return place < full ? (place - step * o.warps) * o.run + step
                        : (rest - behind * (o.warps - 1)) * o.run + o.of_last + behind;
}

/* Those of the k block at a place of the tape's order. */
template <int TILES>
static __device__ __forceinline__ void
load_rows(uint4 (&to)[2 * TILES], const slim_rows<TILES> &rows, const slim_order &order, int place)
{
    const u8 *from =
        rows.input + (size_t)(u32)slim_block(order, place) * (MGL_ROWS * MGL_PANEL_ROW_BYTES);
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++)
        to[i] = *(const uint4 *)(from + rows.at[i]);
}

/* Of a panel of TILES tiles of rows: row groups at most, those of a page, and pages. */
template <int TILES> struct slim_most {
    enum {
        GROUPS = SLIM_GROUPS / TILES,
        COUNT = GROUPS < SLIM_PER ? GROUPS : SLIM_PER,
        PAGES = (GROUPS + COUNT - 1) / COUNT
    };
};

/* Sums of a lane: of row group g and tile t, of activation row l / 4 those of columns l % 4 * 2 and
 * the next, then the same of row l / 4 + 8. */
template <int TILES> struct slim_sums {
    float of[slim_most<TILES>::PAGES * slim_most<TILES>::COUNT][TILES][4];
};

/* Adds a k block of COUNT row groups: w is where this lane's 16 bytes of a row group would be that
 * stands at the page's start, `at` where the row groups stand. */
template <int COUNT, int TILES>
static __device__ __forceinline__ void
multiply_groups(const u8 *w, const u32 *at, const uint4 (&x)[2 * TILES], float (*sums)[TILES][4])
{
    uint4 b[COUNT];
#pragma unroll
    for (int g = 0; g < COUNT; g++)
        b[g] = *(const uint4 *)(w + at[g]);
#pragma unroll
    for (int g = 0; g < COUNT; g++)
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            const uint4 &upper = x[2 * t], &lower = x[2 * t + 1];
            multiply_add<MGL_WEIGHT>(sums[g][t], upper.x, lower.x, upper.y, lower.y, b[g].x,
                                     b[g].y);
            multiply_add<MGL_WEIGHT>(sums[g][t], upper.z, lower.z, upper.w, lower.w, b[g].z,
                                     b[g].w);
        }
}

/* Those of a page, which has `per`: one or two, or as many as there are. */
template <int COUNT, int TILES>
static __device__ __forceinline__ void multiply_page(const u8 *w, const u32 (&at)[COUNT], int per,
                                                     const uint4 (&x)[2 * TILES],
                                                     float (*sums)[TILES][4])
{
    enum { FIRST = COUNT < 2 ? COUNT : 2 };
    multiply_groups<FIRST, TILES>(w, at, x, sums);
    if constexpr (COUNT > FIRST)
        if (per > FIRST)
            multiply_groups<COUNT - FIRST, TILES>(w, at + FIRST, x, sums + FIRST);
}

/* A page, counted over all epochs: its place, and the parity of a phase that is its. */
struct slim_page {
    u32 at, parity;
};

static __device__ __forceinline__ void wait_page(machine &m, const slim_page &page)
{
    const u32 full = shared_address(&own().page_full[page.at]);
    if (MGL_TRACE && has_passed(full, page.parity))
        return;
    const u32 since = trace_clock();
    wait_phase(full, page.parity);
    trace_starved(m, since);
}

/* Lets go of it, and goes on to the next one. */
static __device__ __forceinline__ void leave_page(slim_page &page)
{
    __syncwarp();
    if (lane_now() == 0)
        barrier_arrive(&own().page_empty[page.at]);
    if (++page.at == PANEL_PAGES) {
        page.at = 0;
        page.parity ^= 1;
    }
}

/* All k blocks of a panel. */
template <int TILES>
static __device__ __forceinline__ void multiply_slim(machine &m, const panel_shape &s,
                                                     slim_sums<TILES> &sums)
{
    enum {
        DEPTH = TILES == 1 ? 4 : 2, /* k blocks on their way */
        COUNT = slim_most<TILES>::COUNT,
        PAGES = slim_most<TILES>::PAGES
    };
    const int warp = warp_now(), kblocks = segment(m, 0).kblocks;
    const int steps = (kblocks + MGL_WARPS - 1) / MGL_WARPS; /* of which the last may be idle */
    const int turns = s.piece / MGL_WARPS;                   /* those of a page */
    const slim_order order = slim_order_of(kblocks);
    const u32 number = own().page_at[warp];
    const u8 *const w = page_memory() + warp * MGL_BLOCK_BYTES + lane_now() * 16;
    const slim_rows<TILES> rows = slim_rows_of<TILES>(m);
    slim_page page = {number % PANEL_PAGES, number / PANEL_PAGES & 1};
    uint4 x[DEPTH][2 * TILES];
    u32 at[COUNT];
    int turn = 0;
#pragma unroll
    for (int g = 0; g < COUNT; g++)
        at[g] = g < s.per ? (u32)(g * s.piece * MGL_BLOCK_BYTES) : 0; /* nobody takes the others */
#pragma unroll
    for (int d = 0; d < DEPTH; d++)
        load_rows<TILES>(x[d], rows, order, min(d * MGL_WARPS + warp, kblocks - 1));
#pragma unroll 1
    for (int first = 0; first < steps; first += DEPTH) {
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const int step = first + d;
            if (step >= steps)
                break;
            const bool ends = turn == turns - 1 || step == steps - 1;
#pragma unroll
            for (int p = 0; p < PAGES; p++) {
                if (p * COUNT >= s.groups)
                    break;
                if (turn == 0)
                    wait_page(m, page);
                if (step * MGL_WARPS + warp < kblocks)
                    multiply_page<COUNT, TILES>(w + page.at * MGL_PAGE +
                                                    turn * (MGL_WARPS * MGL_BLOCK_BYTES),
                                                at, s.per, x[d], sums.of + p * COUNT);
                if (ends)
                    leave_page(page);
            }
            turn = ends ? 0 : turn + 1;
            /* behind the last one that again: on any condition, all would be in local memory */
            load_rows<TILES>(x[d], rows, order,
                             min((step + DEPTH) * MGL_WARPS + warp, kblocks - 1));
        }
    }
    own().page_at[warp] = number + (u32)((steps + turns - 1) / turns * s.pages); /* every lane */
}

/* ---- outputs ----------------------------------------------------------------------------------
 */

/* Tiles of PANEL_TILE rows that are multiplied. */
static __device__ __forceinline__ int slim_tiles(const machine &m)
{
    return (panel_rows(m) + PANEL_TILE - 1) / PANEL_TILE;
}

/* Where the sums stand, in tiles of two row groups: of each warp, of each pair of them, two or
 * four.
 */
static __device__ __forceinline__ panel_pass slim_pass()
{
    return {(u32)(tray_memory() - block_memory), 0, SLIM_GROUPS};
}

/* Stores the warp's sums. */
template <int TILES>
static __device__ __forceinline__ void keep_sums(const machine &m, int groups, int tiles,
                                                 const slim_sums<TILES> &sums)
{
    const panel_pass pass = slim_pass();
    const int row = m.lane / 4, column = m.lane % 4 * 2;
    const int at = row % 2 * 32 + column * 4 + row / 2;
#pragma unroll
    for (int g = 0; g < slim_most<TILES>::GROUPS; g++) {
        if (g >= (groups + 1) / 2 * 2)
            break;
#pragma unroll
        for (int t = 0; t < 2 * TILES; t++) {
            if (t >= tiles)
                break;
            float *to = tile_memory(pass, m.warp, g / 2 * 2 * TILES + t) + g % 2 * 64 + at;
            to[0] = sums.of[g][t / 2][t % 2 * 2];
            to[4] = sums.of[g][t / 2][t % 2 * 2 + 1];
        }
    }
}

/* Outputs of the panel from row group `group` on: leave(lane) makes those of a tile. A warp has the
 * tiles of one column and eight activation rows, and then those of others. */
template <class LEAVE>
static __device__ __forceinline__ void leave_slim(const machine &m, int group, const LEAVE &leave)
{
    const int most = slim_groups(rows_of(m)), tiles = slim_tiles(m);
    const int groups = slim_shape_of(segment(m, 0).groups - group, most).groups;
    const int columns = (groups + COLUMN_GROUPS - 1) / COLUMN_GROUPS;
    const int room = SLIM_GROUPS / most * 2; /* tiles of a pair that there is room for */
    const panel_pass pass = slim_pass();
    static_assert(COLUMN_GROUPS == 4, "a column is two pairs of row groups");
#pragma unroll 1
    for (int i = m.warp; i < columns * tiles; i += MGL_WARPS) {
        const int column = i % columns, tile = i / columns;
#pragma unroll 1
        for (int pair = column * 2; pair < min(column * 2 + 2, (groups + 1) / 2); pair++) {
            panel_lane p = {};
            for (int warp = 0; warp < MGL_WARPS; warp++)
                add_tile(m, pass, warp, pair * room + tile, p);
            p.group = group + pair * 2;
            p.tile = tile * PANEL_TILE;
            p.row = p.tile + (m.lane & 3) * 2;
            p.column = column;
            p.rows = panel_rows(m);
            leave(p);
        }
    }
}

/* ---- a panel ----------------------------------------------------------------------------------
 */

/* Waits for what the epilogue notes of the task's rows. */
static __device__ __forceinline__ void wait_scales()
{
    const u32 task = own().begun[warp_now()];
    while (!__all_sync(0xFFFFFFFFu, (int)(load_shared_acquire(&own().scaled) - task) >= 0))
        ; /* the epilogue waits for nothing in between */
}

/* The sums of the panel from row group `group` on. */
template <int TILES> static __device__ __forceinline__ u32 add_slim(machine m, int group)
{
    slim_sums<TILES> sums = {};
    const panel_shape s = slim_shape_of(segment(m, 0).groups - group, slim_most<TILES>::GROUPS);
    multiply_slim<TILES>(m, s, sums);
    keep_sums<TILES>(m, s.groups, slim_tiles(m), sums);
    return trace_starved_of(m);
}

/* All panels of a task. Behind it all warps' outputs and notes are there. */
template <class LEAVE>
static __device__ __forceinline__ void run_slim(machine &m, const LEAVE &leave)
{
#pragma unroll 1
    for (int group = 0;;) {
        const int most = slim_groups(rows_of(m));
        trace_set_starved(m, most == SLIM_GROUPS ? add_slim<1>(m, group) : add_slim<2>(m, group));
        wait_scales();
        consumer_barrier();
        leave(group, false, 0);
        consumer_barrier();
        group += most;
        if (group >= segment(m, 0).groups)
            return;
    }
}

#endif

#endif

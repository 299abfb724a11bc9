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

#include "instructions/linear_add_weighed/linear_add_weighed.cuh"
#include "vm/cuda/device/linear/panels.cuh"

#if MGL_PANELS

/* ---- activations -------------------------------------------------------------------------------
 */

enum {
    SLIM_BLOCK = MGL_ROWS * MGL_PANEL_ROW_BYTES, /* bytes of a k block of activations */
    SLIM_TURN = MGL_WARPS * SLIM_TURNS * MGL_PAGE_BLOCK_COLUMNS, /* columns of a page's k blocks */
    /* whether each product has as many k blocks for each warp, and whole pages of them */
    SLIM_EVEN =
        MGL_HIDDEN % SLIM_TURN == 0 && MGL_ATTENDED % SLIM_TURN == 0 && MGL_FFN % SLIM_TURN == 0
};

/* The tape's order, to find the k block of a place (mgl_tape_block_at) without a division: of
 * places below SLIM_PLACES, 65,536 / n + 1 is near enough for n up to 16. */
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

/* Where a lane's activations are: of TILES of 16 rows two rows each, from k block 0 on, or with
 * SLIM_EVEN from the warp's first one on. */
template <int TILES> struct slim_rows {
    const u8 *at[2 * TILES];
    slim_order order;
    int warp, kblocks;
};

/* Rows behind the last one are that again: nobody takes their sums. */
template <int TILES>
static __device__ __forceinline__ slim_rows<TILES> slim_rows_of(const machine &m, int kblocks)
{
    slim_rows<TILES> r;
    const bool heads = task_of(m)->op == OP_SCALED_HEAD;
    const u8 *input = address_of(m, operand(m, MGL_PRODUCT_INPUT));
    r.warp = warp_now();
    r.kblocks = kblocks;
    if (SLIM_EVEN)
        input += (size_t)(u32)(r.warp * (kblocks / MGL_WARPS)) * SLIM_BLOCK;
    else
        r.order = slim_order_of(kblocks);
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
        int row = i * PANEL_TILE + lane_now() / 4;
        if (heads)
            row = own().tiles[min(i, own().tile_count - 1)] * PANEL_TILE + lane_now() / 4;
        row = min(row, rows_of(m) - 1);
        r.at[i] = input + row * MGL_PANEL_ROW_BYTES +
                  ((lane_now() & 3) ^ (row / 2 & 3)) * MGL_PAGE_QUARTER_BYTES;
    }
    return r;
}

/* Those of the warp's step `step`, or behind the last one any: on a condition the compiler would
 * keep all of them in local memory. */
template <int TILES>
static __device__ __forceinline__ void load_rows(uint4 (&to)[2 * TILES],
                                                 const slim_rows<TILES> &rows, int step)
{
    const int block =
        SLIM_EVEN ? min(step, rows.kblocks / MGL_WARPS - 1)
                  : slim_block(rows.order, min(step * MGL_WARPS + rows.warp, rows.kblocks - 1));
    const size_t offset = (size_t)(u32)block * SLIM_BLOCK;
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++)
        to[i] = *(const uint4 *)(rows.at[i] + offset);
}

/* A k block of activations as operands, in registers of their own (teams.cuh): of the first 16
 * columns, and of the others. */
template <int TILES> struct slim_operand {
    uint4 a[2][TILES];
};

template <int TILES>
static __device__ __forceinline__ slim_operand<TILES> slim_operand_of(const uint4 (&x)[2 * TILES],
                                                                      u32 zero)
{
    slim_operand<TILES> o;
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        const uint4 &upper = x[2 * t], &lower = x[2 * t + 1];
        o.a[0][t] = make_uint4(upper.x ^ zero, lower.x ^ zero, upper.y ^ zero, lower.y ^ zero);
        o.a[1][t] = make_uint4(upper.z ^ zero, lower.z ^ zero, upper.w ^ zero, lower.w ^ zero);
    }
    return o;
}

/* ---- pages ------------------------------------------------------------------------------------
 */

/* A warp's way through the pages. */
struct slim_walk {
    u32 at, parity;  /* the next page: its place, and the parity of a phase that is its */
    bool landed;     /* it has been seen to have landed, by this lane */
    bool first;      /* of the warp's lanes */
    u32 full, empty; /* the first places' barriers */
};

static __device__ __forceinline__ slim_walk slim_walk_of(u32 number)
{
    slim_walk walk = {number % PANEL_PAGES,
                      number / PANEL_PAGES & 1,
                      false,
                      lane_now() == 0,
                      kept(shared_address(own().page_full)),
                      kept(shared_address(own().page_empty))};
    walk.landed = barrier_tested_at(walk.full + walk.at * 8, walk.parity);
    return walk;
}

/* Waits for the next page: its bytes from page_memory() on. Then looks at the one behind it, of
 * which nobody needs to know for a while. */
static __device__ __forceinline__ u32 take_page(machine &m, slim_walk &walk)
{
    const u32 taken = walk.at;
    if (!__all_sync(0xFFFFFFFFu, walk.landed)) {
        const u32 since = trace_clock();
        wait_phase(walk.full + taken * 8, walk.parity);
        trace_starved(m, since);
    }
    const bool turns = taken + 1 == PANEL_PAGES;
    walk.at = turns ? 0 : taken + 1;
    walk.parity ^= turns ? 1 : 0;
    walk.landed = barrier_tested_at(walk.full + walk.at * 8, walk.parity);
    return taken * MGL_PAGE;
}

/* Lets go of a page, of which this is the first byte. */
static __device__ __forceinline__ void leave_page(const slim_walk &walk, u32 byte)
{
    __syncwarp();
    if (walk.first)
        barrier_arrive_at(walk.empty + byte / MGL_PAGE * 8);
}

/* ---- outputs ----------------------------------------------------------------------------------
 */

/* Tiles of PANEL_TILE rows that are multiplied. */
static __device__ __forceinline__ int slim_tiles(const machine &m)
{
    return (panel_rows(m) + PANEL_TILE - 1) / PANEL_TILE;
}

/* Whether a task keeps notes of its rows: the bests of a head, and the squares of what is weighed,
 * unless all of them are one warp's: of one panel with one column. */
static __device__ __forceinline__ bool slim_keeps_notes(const machine &m)
{
    const int op = task_of(m)->op, most = slim_groups(rows_of(m));
    return op == OP_SCALED_HEAD ||
           (op == OP_LINEAR_ADD_WEIGHED && segment(m, 0).groups > min((int)COLUMN_GROUPS, most));
}

/* Where the sums stand: of each warp SLIM_GROUPS tiles, of two row groups by PANEL_TILE rows each.
 */
static __device__ __forceinline__ panel_pass slim_pass()
{
    return {(u32)(tray_memory() - block_memory), 0, SLIM_GROUPS};
}

/* Outputs of the panel from row group `group` on: leave(lane) makes those of a tile. A warp has the
 * tiles of eight activation rows and of one column of the panel, or where nobody adds up a
 * column's, of one pair of row groups; and then those of others. */
template <class LEAVE>
static __device__ __forceinline__ void leave_slim(const machine &m, int group, const LEAVE &leave)
{
    const int most = slim_groups(rows_of(m)), op = task_of(m)->op;
    const int pairs = (slim_shape_of(segment(m, 0).groups - group, most).groups + 1) / 2;
    const int each = op == OP_LINEAR_ADD_WEIGHED || op == OP_SCALED_HEAD ? COLUMN_GROUPS / 2 : 1;
    const int parts = (pairs + each - 1) / each, items = parts * slim_tiles(m);
    const int room = SLIM_GROUPS / most * 2; /* tiles of a pair that there is room for */
    const panel_pass pass = slim_pass();
#pragma unroll 1
    for (int i = m.warp; i < items; i += MGL_WARPS) {
        const int tile = parts == 1 ? i : i / parts, part = i - tile * parts;
        panel_lane p = {};
        p.tile = tile * PANEL_TILE;
        p.row = p.tile + (m.lane & 3) * 2;
        p.rows = panel_rows(m);
        p.whole = !slim_keeps_notes(m);
#pragma unroll 1
        for (int pair = part * each; pair < min(part * each + each, pairs); pair++) {
            p.sums[0][0] = p.sums[0][1] = p.sums[1][0] = p.sums[1][1] = 0.0f;
            for (int warp = 0; warp < MGL_WARPS; warp++)
                add_tile(m, pass, warp, pair * room + tile, p);
            p.group = group + pair * 2;
            p.column = pair / (COLUMN_GROUPS / 2);
            leave(p);
        }
        if (op == OP_LINEAR_ADD_WEIGHED && p.whole)
            leave_whole_squares(m, p);
    }
}

/* ---- products ---------------------------------------------------------------------------------
 */

/* Sums of a lane: of row group g and tile t, of activation row l / 4 those of columns l % 4 * 2 and
 * the next, then the same of row l / 4 + 8. */
template <int TILES> struct slim_sums {
    enum { GROUPS = SLIM_GROUPS / TILES, PAGES = (GROUPS + SLIM_PER - 1) / SLIM_PER };
    float of[PAGES * SLIM_PER][TILES][4];
};

/* A page's blocks of this warp, of some k blocks and row groups. */
template <int TURNS, int COUNT> struct slim_blocks {
    uint4 of[TURNS][COUNT];
};

template <int TURNS, int COUNT>
static __device__ __forceinline__ void load_blocks(slim_blocks<TURNS, COUNT> &to, const u8 *from)
{
#pragma unroll
    for (int u = 0; u < TURNS; u++)
#pragma unroll
        for (int g = 0; g < COUNT; g++)
            to.of[u][g] = *(const uint4 *)(from + (g * TURNS + u) * (MGL_WARPS * MGL_BLOCK_BYTES));
}

/* Adds k block `u` of the page. */
template <int TILES, int TURNS, int COUNT>
static __device__ __forceinline__ void multiply_blocks(const slim_blocks<TURNS, COUNT> &w, int u,
                                                       const slim_operand<TILES> &x,
                                                       float (*sums)[TILES][4])
{
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int g = 0; g < COUNT; g++)
#pragma unroll
            for (int t = 0; t < TILES; t++)
                multiply_add<MGL_WEIGHT>(sums[g][t], x.a[h][t].x, x.a[h][t].y, x.a[h][t].z,
                                         x.a[h][t].w, h ? w.of[u][g].z : w.of[u][g].x,
                                         h ? w.of[u][g].w : w.of[u][g].y);
}

/* All k blocks of a panel, which has TURNS of this warp, and COUNT row groups, on a page, and up to
 * PAGES pages of the same k blocks. */
template <int TILES, int TURNS, int COUNT, int PAGES>
static __device__ __forceinline__ bool multiply_pages(machine &m, const panel_shape &s, int group,
                                                      slim_sums<TILES> &sums)
{
    /* pages whose activations are on their way: few, since what is executed once a task has to be
     * fetched once a task */
    enum { DEPTH = 2 / TURNS };
    const int warp = warp_now(), kblocks = segment(m, 0).kblocks;
    const int steps = (kblocks + MGL_WARPS * TURNS - 1) / (MGL_WARPS * TURNS);
    const u32 number = own().page_at[warp], zero = (u32)own().stop & 2; /* a flag, 0 or 1 */
    const slim_rows<TILES> rows = slim_rows_of<TILES>(m, kblocks);
    const u8 *const w = page_memory() + warp * MGL_BLOCK_BYTES + lane_now() * 16;
    slim_walk walk = slim_walk_of(number);
    uint4 x[DEPTH][TURNS][2 * TILES];
    if (group == 0) {
        if (!wait_early_go(m))
            return false;
        if (thread_index() == 0)
            own().pending = 0;
        trace_input(m);
    }
#pragma unroll
    for (int d = 0; d < DEPTH; d++)
#pragma unroll
        for (int u = 0; u < TURNS; u++)
            load_rows<TILES>(x[d][u], rows, d * TURNS + u);
#pragma unroll 1
    for (int first = 0; first < steps; first += DEPTH) {
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const int step = first + d;
            if (d > 0 && step >= steps)
                break;
            slim_operand<TILES> operand[TURNS];
#pragma unroll
            for (int u = 0; u < TURNS; u++)
                operand[u] = slim_operand_of<TILES>(x[d][u], zero);
#pragma unroll
            for (int u = 0; u < TURNS; u++)
                load_rows<TILES>(x[d][u], rows, (step + DEPTH) * TURNS + u);
#pragma unroll
            for (int p = 0; p < PAGES; p++) {
                if (p > 0 && p * COUNT >= s.groups)
                    break;
                slim_blocks<TURNS, COUNT> blocks;
                const u32 page = take_page(m, walk);
                load_blocks(blocks, w + page);
#pragma unroll
                for (int u = 0; u < TURNS; u++)
                    if (SLIM_EVEN || (step * TURNS + u) * MGL_WARPS + warp < kblocks)
                        multiply_blocks<TILES>(blocks, u, operand[u], sums.of + p * COUNT);
                leave_page(walk, page);
            }
        }
    }
    own().page_at[warp] = number + (u32)(steps * s.pages); /* every lane */
    return true;
}

/* Stores the warp's sums, those of COUNT row groups; of more than the panel has, or rows than there
 * are, nobody takes them. */
template <int TILES, int COUNT>
static __device__ __forceinline__ void keep_sums(const slim_sums<TILES> &sums)
{
    const panel_pass pass = slim_pass();
    const int row = lane_now() / 4, column = lane_now() % 4 * 2;
    float *first = tile_memory(pass, warp_now(), 0) + row % 2 * 32 + column * 4 + row / 2;
#pragma unroll
    for (int g = 0; g < COUNT && g < slim_sums<TILES>::GROUPS; g++)
#pragma unroll
        for (int t = 0; t < 2 * TILES; t++) {
            float *to = first + (g / 2 * 2 * TILES + t) * TILE_SUMS + g % 2 * 64;
            to[0] = sums.of[g][t / 2][t % 2 * 2];
            to[4] = sums.of[g][t / 2][t % 2 * 2 + 1];
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

/* The sums of the panel from row group `group` on: of COUNT row groups on a page, and up to PAGES
 * pages of the same k blocks. False: the block leaves. */
template <int TILES, int TURNS, int COUNT, int PAGES>
static __device__ __forceinline__ bool add_pages(machine &m, const panel_shape &s, int group)
{
    slim_sums<TILES> sums = {};
    if (!multiply_pages<TILES, TURNS, COUNT, PAGES>(m, s, group, sums))
        return false;
    if (group > 0)
        consumer_barrier(); /* the sums of the panel before have been read */
    keep_sums<TILES, COUNT * PAGES>(sums);
    fence_bulk_writes(); /* trays may come there */
    return true;
}

template <int TILES> static __device__ __forceinline__ bool add_slim(machine &m, int group)
{
    const panel_shape s = slim_shape_of(segment(m, 0).groups - group, slim_sums<TILES>::GROUPS);
    if (SLIM_TURNS > 1 && s.piece > MGL_WARPS)
        return add_pages<TILES, SLIM_TURNS, SLIM_PER / SLIM_TURNS, 1>(m, s, group);
    return add_pages<TILES, 1, SLIM_PER, slim_sums<TILES>::PAGES>(m, s, group);
}

/* All panels of a task. False: the block leaves, and it has not begun. */
template <class LEAVE>
static __device__ __forceinline__ bool run_slim(machine &m, const LEAVE &leave)
{
    const int most = slim_groups(rows_of(m));
#pragma unroll 1
    for (int group = 0; group < segment(m, 0).groups; group += most) {
        if (!(most == SLIM_GROUPS ? add_slim<1>(m, group) : add_slim<2>(m, group)))
            return false;
        wait_scales();
        consumer_barrier();
        leave(group);
    }
    return true;
}

#endif

#endif

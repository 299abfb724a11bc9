/*
 * Panels by pairs of warps (panels.cuh): 16 weight rows, which are two row groups, by 8 activation
 * rows an MMA.
 *
 * A pair has four row groups of the panel, two tiles of 16 rows; its first warp has the activation
 * rows of even tiles of 8, its second one those of odd tiles.
 *
 * In lane l an MMA's operands are words of the 16 bytes that stand at row l / 4 and quarter l % 4
 * of a block, of the weights and of the activations alike: words 0 and 1 make one MMA, words 2 and
 * 3 another. Which k that is does not matter, since both sides have the same.
 */
#ifndef MGL_DEVICE_LINEAR_PAIRS_CUH
#define MGL_DEVICE_LINEAR_PAIRS_CUH

#include "vm/cuda/device/linear/panels.cuh"

#if MGL_PANELS && !MGL_WARPGROUPS

/* ---- products ---------------------------------------------------------------------------------
 */

/* This warp's part of a panel. */
struct panel_part {
    bool works;  /* it has one */
    int column;  /* of pairs, */
    int share;   /* and of those that share its k blocks */
    int half;    /* of the activation rows: tiles of that parity */
    int first;   /* row group, of the panel */
    bool second; /* it has a second tile */
};

static __device__ __forceinline__ panel_part panel_part_of(const machine &m, const panel_shape &s)
{
    panel_part p;
    const int pair = m.warp / 2;
    p.column = pair % s.columns;
    p.share = pair / s.columns;
    p.half = m.warp % 2;
    p.works = p.share < s.shares;
    p.first = p.column * MGL_PANEL_OWN_GROUPS;
    p.second = s.groups - p.first > 2;
    return p;
}

typedef float panel_sums[2][PANEL_TILES][4]; /* (tile of weight rows, tile of rows, a lane's) */

/* Writes the warp's plan; all lanes come here. */
static __device__ __forceinline__ void make_plan(const machine &m, const panel_shape &s,
                                                 const panel_part &part)
{
    volatile panel_plan &plan = plan_of(m.warp);
    const int rows = panel_rows(m), kblocks = segment(m, 0).kblocks;
    const tray_shape tray = tray_shape_of(rows);
    /* of a row group that the panel does not have, another one's, whose sums nobody takes */
    const int group = min(part.first + (m.lane & 3), s.groups - 1);
    if (m.lane < MGL_PANEL_OWN_GROUPS) {
        plan.page[m.lane] = group / s.per;
        plan.byte[m.lane] = (group % s.per) * s.piece * MGL_BLOCK_BYTES;
    }
    if (m.lane == 0) {
        plan.kblocks = kblocks;
        plan.piece = s.piece;
        plan.count = s.pages;
        plan.first = part.first / s.per;
        plan.end = part.works ? min(part.first + 3, s.groups - 1) / s.per + 1 : part.first / s.per;
        plan.tray = tray.blocks;
        plan.stride = (int)tray.stride;
        plan.tiles = (rows + MGL_PANEL_ROW_STEP - 1) / MGL_PANEL_ROW_STEP;
        plan.share = part.works ? part.share : kblocks;
        plan.shares = s.shares;
    }
    __syncwarp();
}

/* An operand's words in registers of their own. An MMA wants its four in a row, and the compiler
 * would copy them there anew before each, waiting for the one before: it does not know that `zero`
 * is 0. */
static __device__ __forceinline__ uint4 gathered(u32 x, u32 y, u32 z, u32 w, u32 zero)
{
    return make_uint4(x ^ zero, y ^ zero, z ^ zero, w ^ zero);
}

/* Adds one k block: w is where this lane's 16 bytes of a row group would stand at page_memory(), x
 * where those of the first tile of rows are; the next ones stand two tiles behind one another. Of
 * the warp's tiles those that have rows; others are multiplied with these where AT_ONCE are.
 * SECOND: it has two tiles of weight rows. */
template <bool SECOND>
static __device__ __forceinline__ void multiply_block(const volatile panel_plan &plan, const u8 *w,
                                                      const u8 *x, u32 zero, panel_sums &sums)
{
    enum {
        STEP = MGL_PANEL_ROW_STEP * MGL_PANEL_ROW_BYTES,
        AT_ONCE = SECOND ? 2 : 4,
        WEIGHT_TILES = SECOND ? 2 : 1
    };
    uint4 a[WEIGHT_TILES][2]; /* operands: of the first 16 columns, and of the others */
#pragma unroll
    for (int t = 0; t < WEIGHT_TILES; t++) {
        const uint4 lower = *(const uint4 *)(w + plan.at[2 * t]);
        const uint4 upper = *(const uint4 *)(w + plan.at[2 * t + 1]);
        a[t][0] = gathered(lower.x, upper.x, lower.y, upper.y, zero);
        a[t][1] = gathered(lower.z, upper.z, lower.w, upper.w, zero);
    }
#pragma unroll
    for (int from = 0; from < PANEL_TILES; from += AT_ONCE) {
        if (from > 0 && from >= plan.tiles)
            break;
        uint4 b[AT_ONCE];
        u32 all = 0;
#pragma unroll
        for (int n = 0; n < AT_ONCE && from + n < PANEL_TILES; n++) {
            b[n] = *(const uint4 *)(x + (from + n) * STEP);
            all ^= b[n].x;
        }
        all &= zero; /* all are asked for before the first is waited for */
#pragma unroll
        for (int n = 0; n < AT_ONCE && from + n < PANEL_TILES; n++)
            b[n].x ^= all;
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int t = 0; t < WEIGHT_TILES; t++)
#pragma unroll
                for (int n = 0; n < AT_ONCE && from + n < PANEL_TILES; n++)
                    multiply_add<MGL_WEIGHT>(sums[t][from + n], a[t][h].x, a[t][h].y, a[t][h].z,
                                             a[t][h].w, h ? b[n].z : b[n].x, h ? b[n].w : b[n].y);
    }
}

/* Makes the plan of the panel from row group `group` on. Returns whether the warp has two tiles of
 * weight rows. */
static __device__ __forceinline__ bool begin_panel(int group)
{
    const machine m = machine_now();
    const panel_shape s = shape_at(m, group);
    const panel_part part = panel_part_of(m, s);
    make_plan(m, s, part);
    return part.second;
}

/* All k blocks of a panel. Pieces of pages and trays have numbers of k blocks that are powers of 2.
 */
template <bool SECOND>
static __device__ __forceinline__ void multiply_panel(machine &m, panel_sums &sums)
{
    const int warp = warp_now(), lane = lane_now();
    const volatile panel_plan &plan = plan_of(warp);
    const int kblocks = plan.kblocks, in_piece = plan.piece - 1, in_tray = plan.tray - 1;
    const u32 zero = (u32)own().stop & 2; /* a flag, 0 or 1 */
    const u8 *const w = page_memory() + lane * 16, *x = NULL;
    u32 tray = own().tray_at[warp];
    int mine = plan.share; /* the next k block that this warp multiplies */
#pragma unroll 1
    for (int at = 0; at < kblocks;) {
        const int to = min(at + min(in_piece, in_tray) + 1, kblocks);
        if ((at & in_piece) == 0) {
            wait_pages(m, plan.first, plan.end);
            find_weights();
        }
        /* quarter l % 4 of row l / 4 of a tile stands where schedule/pages.h has it */
        if ((at & in_tray) == 0)
            x = tray_memory() + wait_tray(tray) + (lane / 4 + warp % 2 * 8) * MGL_PANEL_ROW_BYTES +
                ((lane & 3) ^ (lane >> 3)) * 16;
#pragma unroll 1
        for (; mine < to; mine += plan.shares)
            multiply_block<SECOND>(plan, w + (mine & in_piece) * MGL_BLOCK_BYTES,
                                   x + (mine & in_tray) * plan.stride, zero, sums);
        at = to;
        if ((to & in_tray) == 0 || to == kblocks)
            free_tray(tray++);
        if ((to & in_piece) == 0 || to == kblocks) {
            wait_pages(m, 0, plan.count);
            free_pages(plan.count);
        }
    }
    __syncwarp();
    own().tray_at[warp] = tray; /* every lane */
}

/* ---- outputs ----------------------------------------------------------------------------------
 */

/* The first activation row of a warp's tile. */
static __device__ __forceinline__ int row_of_tile(int tile, int half)
{
    return (tile % PANEL_TILES * 2 + half) * PANEL_TILE;
}

/* Stores the warp's tiles of a pass where the pairs that share their k blocks find them. */
static __device__ __forceinline__ void leave_pass(const machine &m, const panel_pass &pass,
                                                  const panel_part &part, int rows,
                                                  const panel_sums &sums)
{
#pragma unroll
    for (int k = 0; k < ALL_TILES; k++) {
        const int n = k - pass.first;
        if (n < 0 || n >= pass.count || row_of_tile(k, part.half) >= rows ||
            (k >= PANEL_TILES && !part.second))
            continue;
        float *to = tile_memory(pass, m.warp, n) + m.lane;
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[i * 32] = sums[k / PANEL_TILES][k % PANEL_TILES][i];
    }
}

/* Adds up what the pairs that share k blocks have of tile n of a pass. */
static __device__ __forceinline__ panel_lane take_tile(const machine &m, const panel_pass &pass,
                                                       const panel_shape &s, const panel_part &part,
                                                       int n)
{
    panel_lane p = {};
    for (int k = 0; k < s.shares; k++)
        add_tile(m, pass, (k * s.columns + part.column) * 2 + part.half, n, p);
    return p;
}

/* Outputs of this warp's share of the tiles of a pass, of the panel from row group `group` on:
 * leave(lane) makes those of one. */
template <class LEAVE>
static __device__ __forceinline__ void leave_tiles(const machine &m, int group, bool last,
                                                   int number, const LEAVE &leave)
{
    const panel_shape s = shape_at(m, group);
    const panel_part part = panel_part_of(m, s);
    const panel_pass pass = pass_number(last, number);
    const int rows = panel_rows(m);
    const int end = min(pass.count, (part.second ? ALL_TILES : PANEL_TILES) - pass.first);
    if (!part.works)
        return;
    for (int n = part.share; n < end; n += s.shares) {
        const int k = pass.first + n, tile = row_of_tile(k, part.half);
        if (tile >= rows)
            continue;
        panel_lane p = take_tile(m, pass, s, part, n);
        p.group = group + part.first + k / PANEL_TILES * 2;
        p.tile = tile;
        p.row = tile + (m.lane & 3) * 2;
        p.column = part.column;
        p.rows = rows;
        leave(p);
    }
}

/* The sums of the panel from row group `group` on, pass by pass: leave(group, last, pass) makes
 * outputs of what stands in shared memory. */
template <class LEAVE>
static __device__ __forceinline__ void leave_panel(int group, bool last, const panel_sums &sums,
                                                   const LEAVE &leave)
{
    if (last)
        consumer_barrier(); /* all warps have let go of the trays */
#pragma unroll 1
    for (int number = 0;; number++) {
        const machine m = machine_now();
        const panel_shape s = shape_at(m, group);
        const int tiles = min(s.groups, (int)MGL_PANEL_OWN_GROUPS) > 2 ? ALL_TILES : PANEL_TILES;
        if (pass_number(last, number).first >= tiles)
            return;
        const panel_part part = panel_part_of(m, s);
        const bool shared = s.shares > 1;
        if (part.works)
            leave_pass(m, pass_number(last, number), part, panel_rows(m), sums);
        if (shared)
            consumer_barrier();
        else
            __syncwarp();
        leave(group, last, number);
        if (shared)
            consumer_barrier();
        else
            __syncwarp();
    }
}

/* The panel from row group `group` on: its products and outputs. */
template <class LEAVE>
static __device__ __forceinline__ void run_panel(machine &m, int group, bool last,
                                                 const LEAVE &leave)
{
    panel_sums sums = {};
    if (begin_panel(group))
        multiply_panel<true>(m, sums);
    else
        multiply_panel<false>(m, sums);
    leave_panel(group, last, sums, leave);
}

#endif

#endif

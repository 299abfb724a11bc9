/*
 * Panels by warp teams (panels.cuh): split-K over teams of warps. An MMA multiplies 16 weight rows
 * (two row groups) by 8 activation rows.
 *
 * A warp of a team multiplies up to four row groups of the panel (two tiles of 16 rows) by all
 * activation rows. If the registers have no room for so many sums, it multiplies them by every
 * second tile of 8 activation rows. So a team has one or two warps for each four row groups of the
 * panel. The number of teams is the number of warps divided by the size of a team. The teams share
 * the k blocks. Each team has its own activation tiles (panel_shape.cuh), so teams do not wait for
 * each other. All warps share the pages of weights.
 *
 * In lane l, the operands of an MMA are words of the 16 bytes at quarter l % 4 of row l / 4 of a
 * block, for weights and activations. Words 0 and 1 are the operands of one MMA, words 2 and 3 of
 * another. The order of k within a block is arbitrary, because it is the same for both operands.
 *
 * Scales of scaled weights (panel_weights.cuh) are read one k block ahead.
 */
#ifndef MGL_DEVICE_LINEAR_WARP_TEAMS_CUH
#define MGL_DEVICE_LINEAR_WARP_TEAMS_CUH

#include "vm/cuda/device/linear/panel_weights.cuh"

#if MGL_PANELS && !MGL_WARPGROUPS

/* ---- products ---------------------------------------------------------------------------------
 */

/* This warp's part of a panel. */
struct panel_part {
    bool works;  /* the warp has a part */
    int share;   /* number of its team */
    int column;  /* column of row groups */
    int half;    /* half of the activation rows */
    int first;   /* first row group within the panel */
    bool second; /* the warp has a second tile of weight rows */
};

static __device__ __forceinline__ panel_part panel_part_of(const machine &m, const panel_shape &s)
{
    panel_part p;
    const int team = s.columns * s.halves, member = m.warp % team;
    p.share = m.warp / team;
    p.works = p.share < s.shares;
    p.column = member / s.halves;
    p.half = member % s.halves;
    p.first = p.column * MGL_PANEL_OWN_GROUPS;
    p.second = s.groups - p.first > 2;
    return p;
}

/* The sums of a lane: four for each tile, in the order of ALL_TILES. */
typedef float panel_sums[ALL_TILES][4];

/* Moves the words of an operand to separate registers. An MMA needs four consecutive registers.
 * Otherwise the compiler would copy the words before each MMA and wait for the previous MMA. The
 * XOR with `zero` prevents that, because the compiler does not know that `zero` is 0. */
static __device__ __forceinline__ uint4 gathered(u32 x, u32 y, u32 z, u32 w, u32 zero)
{
    return make_uint4(x ^ zero, y ^ zero, z ^ zero, w ^ zero);
}

/* The weights of a block as MMA operands: the first 16 columns, then the other 16. */
template <int TILES> struct team_weights {
    uint4 a[TILES][2];
};

/* `w` is the address of this lane's 16 bytes of a row group if the row group began at
 * page_memory(). */
template <int GROUPS>
static __device__ __forceinline__ void load_weights(team_weights<GROUPS / 2> &to, const u8 *w,
                                                    const u32 (&at)[GROUPS], u32 zero)
{
#pragma unroll
    for (int t = 0; t < GROUPS / 2; t++) {
        const uint4 lower = *(const uint4 *)(w + at[2 * t]);
        const uint4 upper = *(const uint4 *)(w + at[2 * t + 1]);
        to.a[t][0] = gathered(lower.x, upper.x, lower.y, upper.y, zero);
        to.a[t][1] = gathered(lower.z, upper.z, lower.w, upper.w, zero);
    }
}

#if MGL_SCALED

/* Dequantizes part `part` of a block of each row group. `w`, `at`: as for load_weights. */
template <class F, int GROUPS>
static __device__ __forceinline__ void load_codes(team_weights<GROUPS / 2> &to, const u8 *w,
                                                  const u32 (&at)[GROUPS], int part,
                                                  const group_scale (&of)[GROUPS])
{
#pragma unroll
    for (int t = 0; t < GROUPS / 2; t++) {
        const uint4 lower = dequantized<F>(w + at[2 * t], part, of[2 * t]);
        const uint4 upper = dequantized<F>(w + at[2 * t + 1], part, of[2 * t + 1]);
        to.a[t][0] = make_uint4(lower.x, upper.x, lower.y, upper.y);
        to.a[t][1] = make_uint4(lower.z, upper.z, lower.w, upper.w);
    }
}

/* Multiplies the sums of a panel by the row factors of the weights. `group`: the task's number of
 * the warp's first row group; TILES: as for multiply_panel. */
template <int TILES>
static __device__ __forceinline__ void multiply_factors(const machine &m, int group,
                                                        panel_sums &sums)
{
    float factor[2 * TILES];
    ask_factors(m, group, factor);
#pragma unroll
    for (int k = 0; k < ALL_TILES; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sums[k][i] *= factor[k % TILES * 2 + i / 2];
}

#endif

/* Multiplies a block by COUNT tiles of activation rows and adds the products to `sums`. `x` is the
 * address of this lane's 16 bytes of the first tile; the next tiles follow at a distance of STEP
 * bytes. */
template <int TILES, int COUNT, int STEP>
static __device__ __forceinline__ void multiply_tiles(const team_weights<TILES> &w, const u8 *x,
                                                      u32 zero, float (*sums)[4])
{
    uint4 b[COUNT];
    u32 all = 0;
#pragma unroll
    for (int n = 0; n < COUNT; n++) {
        b[n] = *(const uint4 *)(x + n * STEP);
        all ^= b[n].x;
    }
    all &= zero; /* issues all loads before the first one is waited for */
#pragma unroll
    for (int n = 0; n < COUNT; n++)
        b[n].x ^= all;
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int n = 0; n < COUNT; n++)
                multiply_add<MGL_WEIGHT>(sums[n * TILES + t], w.a[t][h].x, w.a[t][h].y, w.a[t][h].z,
                                         w.a[t][h].w, h ? b[n].z : b[n].x, h ? b[n].w : b[n].y);
}

/* Multiplies one k block by `tiles` tiles of activation rows. Up to two tiles past the end may be
 * multiplied too. */
template <int TILES, int MOST, int STEP>
static __device__ __forceinline__ void multiply_block(const team_weights<TILES> &w, const u8 *x,
                                                      int tiles, u32 zero, panel_sums &sums)
{
#pragma unroll
    for (int from = 0; from < MOST; from += 4) {
        const int left = MOST - from;
        if (from > 0 && from >= tiles)
            break;
        if (left >= 4 && tiles - from > 2)
            multiply_tiles<TILES, 4, STEP>(w, x + from * STEP, zero, sums + from * TILES);
        else if (left == 3 && tiles - from > 2)
            multiply_tiles<TILES, 3, STEP>(w, x + from * STEP, zero, sums + from * TILES);
        else if (left >= 2)
            multiply_tiles<TILES, 2, STEP>(w, x + from * STEP, zero, sums + from * TILES);
        else
            multiply_tiles<TILES, 1, STEP>(w, x + from * STEP, zero, sums + from * TILES);
    }
}

/* Multiplies all k blocks of the panel that begins at row group `group`. The k blocks of a piece
 * and of an activation tile are powers of 2. F: format of the weights. TILES: tiles of weight rows
 * of the warp; HALVES: panel_shape.halves. */
template <class F, int TILES, int HALVES>
static __device__ __forceinline__ void multiply_panel(machine &m, const panel_shape &s, int group,
                                                      panel_sums &sums)
{
    enum {
        PARTS = F::PARTS, /* k blocks of activations in a block of weights */
        STEP = HALVES * PANEL_TILE * MGL_PANEL_ROW_BYTES,
        MOST = (ROW_TILES + HALVES - 1) / HALVES
    };
    const panel_part part = panel_part_of(m, s);
    const int warp = warp_now(), lane = lane_now(), rows = panel_rows(m);
    const act_tile_shape shape = act_tile_shape_of(rows);
    const int kblocks = segment(m, 0).kblocks * PARTS, first = part.first;
    const int tiles = ((rows + PANEL_TILE - 1) / PANEL_TILE - part.half + HALVES - 1) / HALVES;
    const int team = s.columns * s.halves;
    const int arrivals = arrivals_of(MGL_WARPS, team, warp % team);
    const u32 zero = (u32)own().stop & 2; /* always 0: stop is 0 or 1 */
    const u8 *const w = page_memory() + lane * 16;
    const u32 phases = own().act_tile_used[warp], page = own().page_at[warp];
    act_tile_walk act_tiles = act_tile_walk_of(s.shares, part.works ? part.share : 0, phases);
    page_walk walk = page_walk_of(s, page);
    /* for each row group of the warp: its page within a piece, its byte on the page, and its offset
     * in the current piece; row groups past the end repeat the last one */
    int on_page[2 * TILES];
    u32 byte[2 * TILES], at[2 * TILES] = {};
#pragma unroll
    for (int g = 0; g < 2 * TILES; g++) {
        const int number = min(first + g, s.groups - 1);
        on_page[g] = number / s.per;
        byte[g] = (u32)(number % s.per * s.piece * MGL_BLOCK_BYTES);
    }
#if MGL_SCALED
    group_scale next[2 * TILES] = {};
    weight_scales scales = {};
    if constexpr (PARTS > 1) {
        scales = weight_scales_of<F>(m);
        if (part.works && part.share * shape.blocks < kblocks)
            ask_scales<F>(scales, part.share * shape.blocks, group + first, group + s.groups, next);
    }
#endif
#pragma unroll 1
    for (int block = part.works ? part.share * shape.blocks : kblocks; block < kblocks;
         block += (s.shares - 1) * shape.blocks) {
        /* the place of quarter l % 4 of row l / 4 of a tile is as in schedule/pages.h */
        const u8 *x = act_tile_memory() + wait_act_tile(act_tiles) +
                      (lane / 4 + part.half * PANEL_TILE) * MGL_PANEL_ROW_BYTES +
                      ((lane & 3) ^ (lane >> 3)) * 16;
        const int end = min(block + shape.blocks, kblocks);
#pragma unroll 1
        for (; block < end; block++, x += shape.stride) {
            team_weights<TILES> weights;
            if (block / PARTS >= walk.end) {
                turn_pages(m, walk, block / PARTS);
#pragma unroll
                for (int g = 0; g < 2 * TILES; g++)
                    at[g] =
                        byte[g] + (u32)(__shfl_sync(0xFFFFFFFFu, walk.at, on_page[g]) * MGL_PAGE);
            }
            const u8 *from = w + (block / PARTS & (walk.step - 1)) * MGL_BLOCK_BYTES;
#if MGL_SCALED
            if constexpr (PARTS > 1) {
                group_scale of[2 * TILES];
#pragma unroll
                for (int g = 0; g < 2 * TILES; g++)
                    of[g] = next[g];
                const int behind =
                    block + 1 < end ? block + 1 : end + (s.shares - 1) * shape.blocks;
                if (F::ON_TAPE)
                    ask_scales<F>(scales, min(behind, kblocks - 1), group + first, group + s.groups,
                                  next);
                load_codes<F>(weights, from, at, block % PARTS, of);
            } else
#endif
                load_weights<2 * TILES>(weights, from, at, zero);
            multiply_block<TILES, MOST, STEP>(weights, x, tiles, zero, sums);
        }
        free_act_tile(act_tiles, arrivals);
    }
    end_pages(m, walk, kblocks / PARTS, page);
    own().act_tile_used[warp] =
        phases_behind(phases, lane, act_tiles_of(kblocks, shape.blocks), s.shares);
#if MGL_SCALED
    if (F::HAS_FACTORS)
        multiply_factors<TILES>(m, group + first, sums);
#endif
}

/* ---- outputs ----------------------------------------------------------------------------------
 */

/* Number of tiles of weight rows of a warp. */
static __device__ __forceinline__ int weight_tiles(const panel_part &part)
{
    return part.second ? 2 : 1;
}

/* The first activation row of the warp's sums in tile k. */
static __device__ __forceinline__ int row_of_tile(const panel_shape &s, const panel_part &part,
                                                  int k)
{
    return (k / weight_tiles(part) * s.halves + part.half) * PANEL_TILE;
}

/* Stores the warp's tiles of a pass in shared memory. */
static __device__ __forceinline__ void write_pass(const machine &m, const panel_pass &pass,
                                                  const panel_shape &s, const panel_part &part,
                                                  int rows, const panel_sums &sums)
{
#pragma unroll
    for (int k = 0; k < ALL_TILES; k++) {
        const int n = k - pass.first;
        if (n < 0 || n >= pass.count || row_of_tile(s, part, k) >= rows)
            continue;
        float *to = tile_memory(pass, m.warp, n) + m.lane;
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[i * 32] = sums[k][i];
    }
}

/* Adds the partial sums of all teams for tile n of a pass (split-K reduction). */
static __device__ __forceinline__ panel_lane fetch_tile(const machine &m, const panel_pass &pass,
                                                        const panel_shape &s, int n)
{
    panel_lane p = {};
    const int team = s.columns * s.halves;
    for (int k = 0; k < s.shares; k++)
        add_tile(m, pass, k * team + m.warp % team, n, p);
    return p;
}

/* Writes the outputs of this warp's share of the tiles of a pass, for the panel that begins at row
 * group `group`. leave(lane) writes the outputs of a tile. Tiles of the same rows belong to one
 * warp, because they add to the same row statistics. */
template <class WRITE>
static __device__ __forceinline__ void write_tiles(const machine &m, int group, bool last,
                                                   int number, const WRITE &leave)
{
    const panel_shape s = shape_at(m, group);
    const panel_part part = panel_part_of(m, s);
    const panel_pass pass = pass_number(last, number);
    const int rows = panel_rows(m);
    if (!part.works)
        return;
    for (int n = 0; n < pass.count; n++) {
        const int k = pass.first + n, tile = row_of_tile(s, part, k);
        if (k / weight_tiles(part) % s.shares != part.share || tile >= rows)
            continue;
        panel_lane p = fetch_tile(m, pass, s, n);
        p.group = group + part.first + k % weight_tiles(part) * 2;
        p.tile = tile;
        p.row = tile + (m.lane & 3) * 2;
        p.column = part.column;
        p.last = true;
        p.rows = rows;
        leave(p);
    }
}

/* Processes the sums of the panel that begins at row group `group`, pass by pass.
 * leave(group, last, pass) writes outputs from the sums that the pass stored in shared memory. */
template <class WRITE>
static __device__ __forceinline__ void write_panel(int group, bool last, const panel_sums &sums,
                                                   const WRITE &leave)
{
    if (last)
        consumer_barrier(); /* all warps have freed the activation tiles */
#pragma unroll 1
    for (int number = 0;; number++) {
        const machine m = machine_now();
        const panel_shape s = shape_at(m, group);
        const int wide = s.groups > 2 ? 2 : 1;
        const int tiles = (panel_rows(m) + PANEL_TILE * s.halves - 1) / (PANEL_TILE * s.halves);
        if (pass_number(last, number).first >= tiles * wide)
            return;
        const panel_part part = panel_part_of(m, s);
        if (part.works)
            write_pass(m, pass_number(last, number), s, part, panel_rows(m), sums);
        consumer_barrier();
        leave(group, last, number);
        consumer_barrier();
    }
}

/* Multiplies a panel with format F. */
template <class F>
static __device__ __forceinline__ void
multiply_with(machine &m, const machine &now, const panel_shape &s, int group, panel_sums &sums)
{
    if (panel_part_of(now, s).second)
        multiply_panel<F, 2, TEAM_HALVES>(m, s, group, sums);
    else if (TEAM_HALVES == 2 && s.halves == 2)
        multiply_panel<F, 1, 2>(m, s, group, sums);
    else
        multiply_panel<F, 1, 1>(m, s, group, sums);
}

/* Runs the panel that begins at row group `group`: its products and outputs. */
template <class WRITE>
static __device__ __forceinline__ void run_panel(machine &m, int group, bool last,
                                                 const WRITE &leave)
{
    panel_sums sums = {};
    const machine now = machine_now();
    const panel_shape s = shape_at(now, group);
#if MGL_SCALED
    if (format_of(now) > 0)
        with_format(format_of(now),
                    [&](auto f) { multiply_with<decltype(f)>(m, now, s, group, sums); });
    else
#endif
        multiply_with<unscaled_weights>(m, now, s, group, sums);
    write_panel(group, last, sums, leave);
}

#endif

#endif

/*
 * Small-N panels: products with few row groups, in epochs with more rows than small-M panels take,
 * in kernels whose other panels use warpgroup instructions (warpgroups.cuh). A warpgroup
 * instruction multiplies 64 weight rows. A small-N panel would fill a quarter or a half of them,
 * and the instruction would take the same time. Therefore each warp multiplies by itself with MMA
 * instructions: two row groups (a pair) are the A operand (16 rows), and eight activation rows are
 * the B operand (8 columns).
 *
 * Pages and activation tiles are as in other panels. The warpgroups take the activation tiles in
 * turn. A part is one k block and 64 rows of an activation tile. Two warps of the warpgroup
 * multiply the same k block, one part each. While a warp multiplies half of a part, it loads the
 * other half, or the first half of its part of the next tile (double buffering). A tile is freed
 * when its second half is loaded.
 *
 * Lane l loads the 16 bytes of quarter l % 4 of row l / 4 of a block, for weights and activations.
 * Words 0 and 1 are the operands of one MMA, words 2 and 3 of another, with the same k on both
 * sides.
 *
 * At the end, the warps store their sums as in small-M panels (small_m.cuh).
 */
#ifndef MGL_DEVICE_LINEAR_SMALL_N_CUH
#define MGL_DEVICE_LINEAR_SMALL_N_CUH

#include "vm/cuda/device/linear/small_m.cuh"

#if MGL_PANELS && MGL_WARPGROUPS

/* Whether a product consists of one small-N panel. Products of scaled weights never do. */
static __device__ __forceinline__ bool is_small_n(const machine &m)
{
    const int groups = segment(m, 0).groups;
    return format_of(m) == 0 && has_small_n(groups, task_of(m)->op == OP_RMS_HEAD) &&
           panel_shape_of(groups).pages == 1;
}

/* Operands of half of a part: the activations of half of its row tiles, and the weights of PAIRS
 * pairs of row groups, which both halves use. */
enum { HALF_TILES = SMALL_N_TILES / 2, HALF_BYTES = HALF_TILES * PANEL_TILE * MGL_PANEL_ROW_BYTES };

template <int PAIRS> struct small_n_operand {
    uint4 x[HALF_TILES], w[2 * PAIRS];
};

/* The weights of a k block as MMA operands. */
template <int PAIRS> struct small_n_weights {
    weight_pair of[PAIRS];
};

/* Iterator of a warp over a panel. */
struct small_n_walk {
    small_m_walk pages;
    act_tile_walk act_tiles;
    bool ready;     /* this lane has seen that the next activation tile is loaded */
    u32 full;       /* the full barrier of activation tile 0 */
    u32 x, w;       /* addresses of this lane's bytes in activation tile 0 and in page slot 0 */
    u32 page;       /* byte offset of the current page */
    int piece, end; /* k blocks of a page; the first k block after the current page */
    int groups;     /* row groups */
    int block;      /* the warp's k block in the next activation tile */
    int step;       /* increment of `block` from tile to tile */
};

/* Advances to the page that contains k block `block`. */
static __device__ __forceinline__ void go_to_page(machine &m, small_n_walk &walk, int block)
{
    while (block >= walk.end) {
        if (walk.end > 0)
            free_page(walk.pages, walk.page);
        walk.page = claim_page(m, walk.pages);
        walk.end += walk.piece;
    }
}

static __device__ __forceinline__ void wait_next_act_tile(small_n_walk &walk)
{
    if (__all_sync(0xFFFFFFFFu, walk.ready))
        return;
    const u32 since = trace_clock();
    walk.pages.first &=
        wait_phase(walk.full + (u32)walk.act_tiles.place * 8, parity_of(walk.act_tiles));
    trace_act_tile(since);
}

/* Frees the current activation tile and advances to the next one. `last` is 0. It is computed from
 * the last value loaded from the tile, so the tile is not freed before this load has completed. */
static __device__ __forceinline__ void release_act_tile(small_n_walk &walk, u32 last, int arrivals)
{
    const u32 empty = (u32)((u8 *)own().act_tile_empty - (u8 *)own().act_tile_full);
    __syncwarp();
    if (walk.pages.first)
        barrier_arrive_times(walk.full + empty + (u32)walk.act_tiles.place * 8 + last, arrivals);
    advance(walk.act_tiles);
    walk.ready =
        barrier_tested_at(walk.full + (u32)walk.act_tiles.place * 8, parity_of(walk.act_tiles));
}

static __device__ __forceinline__ void load_half(uint4 (&to)[HALF_TILES], u32 from)
{
#pragma unroll
    for (int n = 0; n < HALF_TILES; n++)
        load_shared_vector_at(&to[n], from + (u32)(n * PANEL_TILE * MGL_PANEL_ROW_BYTES));
}

/* Loads the first half of the part in the next activation tile, and its weights. If there is no
 * next tile (`more` is false), arbitrary bytes are loaded, because the compiler would keep
 * conditional loads in local memory. */
template <int PAIRS>
static __device__ __forceinline__ void load_first(machine &m, small_n_walk &walk, bool more,
                                                  small_n_operand<PAIRS> &to)
{
    if (more) {
        wait_next_act_tile(walk);
        go_to_page(m, walk, walk.block);
    }
    const u32 piece = (u32)walk.piece * MGL_BLOCK_BYTES;
    const u32 w =
        walk.w + walk.page + (u32)(min(walk.block - walk.end, -1) + walk.piece) * MGL_BLOCK_BYTES;
#pragma unroll
    for (int g = 0; g < 2 * PAIRS; g++)
        load_shared_vector_at(&to.w[g], w + (u32)min(g, walk.groups - 1) * piece);
    load_half(to.x, walk.x + (u32)walk.act_tiles.place * ACT_TILE_BYTES);
}

template <int PAIRS>
static __device__ __forceinline__ small_n_weights<PAIRS>
weights_of(const small_n_operand<PAIRS> &from, u32 zero)
{
    small_n_weights<PAIRS> to;
#pragma unroll
    for (int p = 0; p < PAIRS; p++)
        to.of[p] = weight_pair_of(from.w[2 * p], from.w[2 * p + 1], zero);
    return to;
}

/* The sums of a lane: four for each pair of row groups and each tile of activation rows, in the
 * order of multiply_add. */
template <int PAIRS> struct small_n_sums {
    float of[PAIRS][SMALL_N_TILES][4];
};

/* Adds the products of half of a part: of the row tiles from `tile` on. */
template <int PAIRS>
static __device__ __forceinline__ void multiply_half(const small_n_weights<PAIRS> &w,
                                                     const uint4 (&x)[HALF_TILES], int tile,
                                                     small_n_sums<PAIRS> &sums)
{
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int p = 0; p < PAIRS; p++)
#pragma unroll
            for (int n = 0; n < HALF_TILES; n++)
                multiply_add<MGL_WEIGHT>(sums.of[p][tile + n], w.of[p].a[h].x, w.of[p].a[h].y,
                                         w.of[p].a[h].z, w.of[p].a[h].w, h ? x[n].z : x[n].x,
                                         h ? x[n].w : x[n].y);
}

/* Multiplies the warp's parts of `left` activation tiles. */
template <int PAIRS>
static __device__ __forceinline__ void multiply_parts(machine &m, small_n_walk &walk, int left,
                                                      int arrivals, u32 zero,
                                                      small_n_sums<PAIRS> &sums)
{
    small_n_operand<PAIRS> first;
    uint4 second[HALF_TILES];
    load_first<PAIRS>(m, walk, left > 0, first);
#pragma unroll 1
    for (; left > 0; left--) {
        const small_n_weights<PAIRS> w = weights_of<PAIRS>(first, zero);
        load_half(second, walk.x + (u32)walk.act_tiles.place * ACT_TILE_BYTES + HALF_BYTES);
        multiply_half<PAIRS>(w, first.x, 0, sums);
        release_act_tile(walk, second[HALF_TILES - 1].w & zero, arrivals);
        walk.block += walk.step;
        load_first<PAIRS>(m, walk, left > 1, first);
        multiply_half<PAIRS>(w, second, HALF_TILES, sums);
    }
}

/* Multiplies all k blocks of a panel. */
template <int PAIRS>
static __device__ __forceinline__ void multiply_small_n(machine &m, small_n_sums<PAIRS> &sums)
{
    const int warp = warp_now(), lane = lane_now(), member = warp % MGL_WARPGROUP_WARPS;
    const int kblocks = segment(m, 0).kblocks, share = warp / MGL_WARPGROUP_WARPS;
    const panel_shape s = panel_shape_of(segment(m, 0).groups);
    const act_tile_shape act_tile = act_tile_shape_of(rows_of(m));
    const int arrivals = arrivals_of(MGL_WARPS, MGL_WARPGROUP_WARPS, member);
    const int act_tiles = share < s.shares ? act_tiles_of(kblocks, act_tile.blocks) : 0;
    const u32 phases = own().act_tile_used[warp], number = own().page_at[warp];
    const u32 zero = (u32)own().stop & 2; /* always 0: stop is 0 or 1 */
    small_n_walk walk;
    walk.pages = small_m_walk_of(number);
    walk.act_tiles = act_tile_walk_of(s.shares, share < s.shares ? share : 0, phases);
    walk.full = kept(shared_address(own().act_tile_full));
    walk.ready =
        barrier_tested_at(walk.full + (u32)walk.act_tiles.place * 8, parity_of(walk.act_tiles));
    walk.x = kept(shared_address(act_tile_memory()) + (u32)(member / 2) * act_tile.stride +
                  (u32)((member % 2 * SMALL_N_ROWS + lane / 4) * MGL_PANEL_ROW_BYTES) +
                  (u32)((lane & 3) ^ (lane / 8 & 3)) * MGL_PAGE_QUARTER_BYTES);
    walk.w = kept(shared_address(page_memory()) + (u32)lane * 16);
    walk.page = 0;
    walk.piece = s.piece;
    walk.end = 0;
    walk.groups = s.groups;
    walk.block = share * act_tile.blocks + member / 2;
    walk.step = s.shares * act_tile.blocks;
    /* activation tiles of the warpgroup; this warp may have no part in the last one */
    const int mine = small_quotient(act_tiles - share + s.shares - 1, s.shares);
    const int left = mine > 0 && walk.block < kblocks
                         ? small_quotient(kblocks - walk.block + walk.step - 1, walk.step)
                         : 0;
    __syncwarp();
    own().page_at[warp] = number + (u32)parts_of(kblocks, s.piece); /* by every lane */
    own().act_tile_used[warp] =
        phases_behind(phases, lane, act_tiles_of(kblocks, act_tile.blocks), s.shares);
    multiply_parts<PAIRS>(m, walk, left, arrivals, zero, sums);
    if (left < mine) {
        wait_next_act_tile(walk);
        release_act_tile(walk, 0, arrivals);
    }
    go_to_page(m, walk, kblocks - 1);
    free_page(walk.pages, walk.page);
}

/* Runs a task with one small-N panel up to its sums, which are stored in the memory of the
 * activation tiles. */
template <int PAIRS> static __device__ __forceinline__ void add_small_n(machine &m)
{
    small_n_sums<PAIRS> sums = {};
    if (thread_of(m) == 0)
        own().pending = 1; /* until the first activation tile is loaded */
    if (task_of(m)->op != OP_LINEAR_ADD_GAMMA)
        compute_row_scales<8>(operand(m, MGL_PRODUCT_SQUARES), rows_of(m), m.warp, MGL_WARPS);
    if (m.warp == 0) /* activation tile 0 belongs to the warpgroup of warp 0 */
        wait_act_tile(act_tile_walk_of(1, 0, own().act_tile_used[0]));
    if (thread_of(m) == 0)
        own().pending = 0;
    trace_input(m);
    multiply_small_n<PAIRS>(m, sums);
    consumer_barrier(); /* all warps have freed the activation tiles */
#pragma unroll
    for (int p = 0; p < PAIRS; p++)
        keep_rows_of_weights(sums.of[p], 2 * p, true);
}

#endif

#endif

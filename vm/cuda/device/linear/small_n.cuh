/*
 * Narrow panels: those of few row groups, in epochs of more rows than slim panels have, of kernels
 * whose other panels are warpgroups' (warpgroups.cuh). Of the 64 weight rows that an instruction of
 * a warpgroup multiplies they would have a quarter or a half, and what it multiplies beside them
 * takes as long. So each warp multiplies by itself: two row groups, a pair, are the 16 rows of an
 * MMA, and eight activation rows its columns.
 *
 * Pages and trays are those of any panel, and trays are for the warpgroups in turn. Two warps of
 * the warpgroup have a k block of each tray together, 64 of its rows each: a part. While a warp
 * multiplies half of a part it loads the other half, or the first half of the next tray's; a tray
 * is let go of when its second half is there.
 *
 * Lane l has of a block the 16 bytes of row l / 4 and quarter l % 4, of weights and activations
 * alike: words 0 and 1 make one MMA, words 2 and 3 another, of the same k on both sides.
 *
 * At the end the warps leave their sums as those of slim panels do (small_m.cuh).
 */
#ifndef MGL_DEVICE_LINEAR_SMALL_N_CUH
#define MGL_DEVICE_LINEAR_SMALL_N_CUH

#include "vm/cuda/device/linear/small_m.cuh"

#if MGL_PANELS && MGL_WARPGROUPS

/* Whether a product has one narrow panel. */
static __device__ __forceinline__ bool is_small_n(const machine &m)
{
    const int groups = segment(m, 0).groups;
    return has_small_n(groups, task_of(m)->op == OP_RMS_HEAD) && panel_shape_of(groups).pages == 1;
}

/* Half of a part: of half of its tiles the activations, and the weights of PAIRS, which both have.
 */
enum { HALF_TILES = SMALL_N_TILES / 2, HALF_BYTES = HALF_TILES * PANEL_TILE * MGL_PANEL_ROW_BYTES };

template <int PAIRS> struct small_n_operand {
    uint4 x[HALF_TILES], w[2 * PAIRS];
};

/* The weights of a k block as operands. */
template <int PAIRS> struct small_n_weights {
    weight_pair of[PAIRS];
};

/* A warp's way through a panel. */
struct small_n_walk {
    small_m_walk pages;
    act_tile_walk act_tiles;
    bool ready;     /* the next tray has been seen to have landed, by this lane */
    u32 full;       /* the first tray's barrier */
    u32 x, w;       /* where this lane's bytes would be of the first tray, and of the first page */
    u32 page;       /* the page at hand: its first byte, */
    int piece, end; /* k blocks of a page, and the one behind those of the page at hand */
    int groups;     /* row groups */
    int block;      /* the warp's first k block of the next tray, and how many further it is then */
    int step;
};

/* Goes on to the page that has k block `block`. */
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

/* Lets go of the tray at hand, when `last` is there, which has been loaded from it behind all else,
 * and goes on to the next one. */
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

/* The first half of the next tray's part, and its weights; if there is none, of any: on a condition
 * the compiler would keep all of it in local memory. */
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

/* Sums of a lane: of each pair of row groups and tile of activation rows four, as multiply_add
 * has them. */
template <int PAIRS> struct small_n_sums {
    float of[PAIRS][SMALL_N_TILES][4];
};

/* Adds the products of a half, of tiles from number `tile` on. */
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

/* The products of the warp's parts of `left` trays. */
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

/* All k blocks of a panel. */
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
    const u32 zero = (u32)own().stop & 2; /* a flag, 0 or 1 */
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
    /* trays of the warpgroup, the last of which may have no part of this warp's */
    const int mine = small_quotient(act_tiles - share + s.shares - 1, s.shares);
    const int left = mine > 0 && walk.block < kblocks
                         ? small_quotient(kblocks - walk.block + walk.step - 1, walk.step)
                         : 0;
    __syncwarp();
    own().page_at[warp] = number + (u32)parts_of(kblocks, s.piece); /* every lane, and */
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

/* A task of one narrow panel, up to its sums, which stand where trays were. */
template <int PAIRS> static __device__ __forceinline__ void add_small_n(machine &m)
{
    small_n_sums<PAIRS> sums = {};
    if (thread_of(m) == 0)
        own().pending = 1; /* up to the first tray */
    if (task_of(m)->op != OP_LINEAR_ADD_GAMMA)
        compute_row_scales<8>(operand(m, MGL_PRODUCT_SQUARES), rows_of(m), m.warp, MGL_WARPS);
    if (m.warp == 0) /* the first tray is its own: it may not be another's */
        wait_act_tile(act_tile_walk_of(1, 0, own().act_tile_used[0]));
    if (thread_of(m) == 0)
        own().pending = 0;
    trace_input(m);
    multiply_small_n<PAIRS>(m, sums);
    consumer_barrier(); /* all warps have let go of the trays */
#pragma unroll
    for (int p = 0; p < PAIRS; p++)
        keep_rows_of_weights(sums.of[p], 2 * p, true);
}

#endif

#endif

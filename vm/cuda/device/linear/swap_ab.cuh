/*
 * swap_ab: small-M panels of SMALL_M_ROWS + 1 to SMALL_N_ROWS rows, for tasks with few row groups.
 * Pages, copies and the storage of sums are as in small_m.cuh.
 *
 * Here the weights of two row groups are the A operand of the MMA (16 rows), and eight activation
 * rows are the B operand (8 columns). Therefore the activations, which are most of the loaded data,
 * need no rearrangement; only the weights do. Lane l loads, for each tile of eight activation rows,
 * the 16 bytes of quarter l % 4 of row l / 4.
 */
#ifndef MGL_DEVICE_LINEAR_SWAP_AB_CUH
#define MGL_DEVICE_LINEAR_SWAP_AB_CUH

#include "vm/cuda/device/linear/small_m.cuh"

#if MGL_PANELS

enum {
    SWAP_AB_MOST = (int)SMALL_N_GROUPS < 1 ? 1 : (int)SMALL_N_GROUPS,
    SWAP_AB_GROUPS = SWAP_AB_MOST < (int)SMALL_M_PAGE_GROUPS
                         ? SWAP_AB_MOST
                         : (int)SMALL_M_PAGE_GROUPS, /* row groups of a page */
    SWAP_AB_PAIRS =
        (SWAP_AB_GROUPS + 1) / 2, /* pairs of row groups; a single one counts as a pair */
    SWAP_AB_PAGES = (SWAP_AB_MOST + SMALL_M_PAGE_GROUPS - 1) / SMALL_M_PAGE_GROUPS,
    SWAP_AB_BYTES = SMALL_N_ROWS * MGL_PANEL_ROW_BYTES, /* bytes of a k block */
    SWAP_AB_DEPTH =
        SMALL_M_FITS ? SMALL_M_AREA / SWAP_AB_BYTES : 1, /* k blocks of a warp in flight */
    /* whether rows past the end may be read; their sums are discarded */
    SWAP_AB_WHOLE = MGL_ROWS >= SMALL_N_ROWS
};

/* The sums of lane l: four for each pair of row groups of a page and each tile of activation rows.
 * The first two are for weight row l / 4 of the lower row group and activation rows l % 4 * 2 and
 * l % 4 * 2 + 1. The other two are for the upper row group. */
struct swap_ab_sums {
    float of[SWAP_AB_PAGES][SWAP_AB_PAIRS][SMALL_N_TILES][4];
};

/* Starts the copies of the warp's k block `number`, if number < count. Commits a group in any case.
 * `from` is the address of the lane's bytes of row l / 4 in the warp's first k block. */
static __device__ __forceinline__ void copy_swap_ab(const machine &m, u32 to, const u8 *from,
                                                    int number, int count, int kblocks)
{
    const int next = mgl_page_rows(MGL_ROWS, SMALL_N_ROWS) * MGL_PANEL_ROW_BYTES;
    if (number < count) {
        /* if the warp has no such k block, the last k block of all, even if it precedes `from` */
        const int most = SMALL_M_EVEN ? number * MGL_WARPS : kblocks - 1 - warp_now();
        const u8 *const block = from + (long long)min(number * MGL_WARPS, most) * next;
#pragma unroll
        for (int n = 0; n < SMALL_N_TILES; n++) {
            const int row = min(n * PANEL_TILE + lane_now() / 4, rows_of(m) - 1);
            const u32 behind = SWAP_AB_WHOLE ? (u32)(n * PANEL_TILE * MGL_PANEL_ROW_BYTES)
                                             : lane_place(row) - lane_place(lane_now() / 4);
            copy_16(to + (u32)(n * 512), block + (int)behind);
        }
    }
    copy_16_group();
}

/* Adds the products of a pair of row groups and a k block. */
static __device__ __forceinline__ void multiply_swap_ab(const weight_pair &w,
                                                        const uint4 (&x)[SMALL_N_TILES],
                                                        float (&sums)[SMALL_N_TILES][4])
{
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int n = 0; n < SMALL_N_TILES; n++)
            multiply_add<MGL_WEIGHT>(sums[n], w.a[h].x, w.a[h].y, w.a[h].z, w.a[h].w,
                                     h ? x[n].z : x[n].x, h ? x[n].w : x[n].y);
}

/* Multiplies all k blocks of the task's only panel, which has at least one. False: the wait for the
 * start was given up. */
static __device__ __forceinline__ bool multiply_swap_ab_pages(machine &m, const panel_shape &s,
                                                              swap_ab_sums &sums)
{
    static_assert(!SMALL_M_FITS || (int)SMALL_M_TURNS == 1 ||
                      (int)SWAP_AB_PAGES <= (int)PANEL_PAGES,
                  "a step's pages are there at once");
    const int warp = warp_now(), kblocks = same_in_all(segment(m, 0).kblocks);
    const int steps = (kblocks + MGL_WARPS * SMALL_M_TURNS - 1) / (MGL_WARPS * SMALL_M_TURNS);
    const int count = steps * SMALL_M_TURNS;
    const u32 number = own().page_at[warp],
              zero = (u32)own().stop & 2; /* always 0: stop is 0 or 1 */
    const u8 *const from =
        address_of(m, operand(m, MGL_PRODUCT_INPUT)) + lane_place(lane_now() / 4) +
        (u32)(warp * mgl_page_rows(MGL_ROWS, SMALL_N_ROWS) * MGL_PANEL_ROW_BYTES);
    const u32 stage = kept(shared_address(small_m_sums_at(warp, 0, 0, 0)) + (u32)lane_now() * 16);
    const u8 *const w = page_memory() + warp * MGL_BLOCK_BYTES + lane_now() * 16;
    small_m_walk walk = small_m_walk_of(number);
    __syncwarp();
    own().page_at[warp] = number + (u32)(steps * s.pages); /* by every lane */
    if (!begin_products(m))
        return false;
#pragma unroll 1
    for (int d = 0; d < SWAP_AB_DEPTH; d++)
        copy_swap_ab(m, stage + (u32)(d * SWAP_AB_BYTES), from, d, count, kblocks);
    fetch_scales<SMALL_N_ROWS>(m); /* while the first copies are in flight */
    sums = {};
    u32 place = 0; /* of the current k block */
    int step = 0;
#pragma unroll 1
    do {
        const u32 first = walk.at; /* the step's first page */
#pragma unroll
        for (int turn = 0; turn < SMALL_M_TURNS; turn++) {
            const int at = step * SMALL_M_TURNS + turn;
            uint4 x[SMALL_N_TILES];
            copy_16_wait_groups<SWAP_AB_DEPTH - 1>();
#pragma unroll
            for (int n = 0; n < SMALL_N_TILES; n++)
                load_shared_vector_at(&x[n], stage + place + (u32)(n * 512));
            copy_swap_ab(m, stage + place, from, at + SWAP_AB_DEPTH, count, kblocks);
            place =
                place + SWAP_AB_BYTES == SWAP_AB_DEPTH * SWAP_AB_BYTES ? 0 : place + SWAP_AB_BYTES;
#pragma unroll
            for (int p = 0; p < SWAP_AB_PAGES; p++) {
                if (p > 0 && p * SMALL_M_PAGE_GROUPS >= s.groups)
                    break;
                small_m_blocks<1> blocks;
                const u32 page = turn == 0 ? claim_page(m, walk) : page_behind(first, p);
                load_blocks(blocks, w + page, turn);
                if (SMALL_M_EVEN || at * MGL_WARPS + warp < kblocks)
#pragma unroll
                    for (int q = 0; q < SWAP_AB_PAIRS; q++)
                        multiply_swap_ab(
                            weight_pair_of(blocks.of[0][2 * q],
                                           blocks.of[0][min(2 * q + 1, SWAP_AB_GROUPS - 1)], zero),
                            x, sums.of[p][q]);
                if (turn == SMALL_M_TURNS - 1)
                    free_page(walk, page);
            }
        }
    } while (++step < steps);
    return true;
}

/* Stores the warp's sums in the memory that small_m.cuh uses. */
static __device__ __forceinline__ void keep_swap_ab(const swap_ab_sums &sums, int groups)
{
#pragma unroll
    for (int p = 0; p < SWAP_AB_PAGES; p++)
#pragma unroll
        for (int q = 0; q < SWAP_AB_PAIRS; q++) {
            const int group = p * SMALL_M_PAGE_GROUPS + 2 * q;
            if (group >= groups)
                break;
            keep_rows_of_weights(sums.of[p][q], group, SWAP_AB_GROUPS > 1 && group % 2 == 0);
        }
}

/* Computes and stores the sums of a task with one panel. False: the block exits. */
static __device__ __forceinline__ bool add_swap_ab(machine &m)
{
    const panel_shape s = small_m_shape_of(segment(m, 0).groups, SMALL_N_GROUPS);
    swap_ab_sums sums;
    if (!multiply_swap_ab_pages(m, s, sums))
        return false;
    __syncwarp(); /* the sums overwrite the staged activations of all lanes */
    keep_swap_ab(sums, s.groups);
    return true;
}

#endif

#endif

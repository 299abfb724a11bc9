/*
 * Slim panels of SLIM_ROWS + 1 to NARROW_ROWS rows, which tasks of few row groups have: pages,
 * copies and sums are those of slim.cuh.
 *
 * Here weights are the MMA's rows, those of two row groups, and eight activation rows its columns:
 * so most of what is loaded, activations, is an operand as it lies, and what is not is the weights.
 * Lane l has of each tile of eight activation rows the 16 bytes of row l / 4 and quarter l % 4.
 */
#ifndef MGL_DEVICE_LINEAR_TURNED_CUH
#define MGL_DEVICE_LINEAR_TURNED_CUH

#include "vm/cuda/device/linear/slim.cuh"

#if MGL_PANELS

enum {
    TURNED_MOST = (int)NARROW_GROUPS < 1 ? 1 : (int)NARROW_GROUPS,
    TURNED_GROUPS =
        TURNED_MOST < (int)SLIM_PAGE_GROUPS ? TURNED_MOST : (int)SLIM_PAGE_GROUPS, /* of a page */
    TURNED_PAIRS = (TURNED_GROUPS + 1) / 2, /* of them; one alone is a pair too */
    TURNED_PAGES = (TURNED_MOST + SLIM_PAGE_GROUPS - 1) / SLIM_PAGE_GROUPS,
    TURNED_BYTES = NARROW_ROWS * MGL_PANEL_ROW_BYTES,        /* of a k block */
    TURNED_DEPTH = SLIM_FITS ? SLIM_AREA / TURNED_BYTES : 1, /* k blocks of a warp on their way */
    /* whether rows behind the last one may be read: nobody takes their sums */
    TURNED_WHOLE = MGL_ROWS >= NARROW_ROWS
};

/* Sums of a lane: of each page's pairs and tile of activation rows four: of weight row l / 4 of the
 * lower row group those of rows l % 4 * 2 and the next, then the same of the upper one. */
struct turned_sums {
    float of[TURNED_PAGES][TURNED_PAIRS][NARROW_TILES][4];
};

/* Starts the copies of the warp's k block number `number`, if it has so many; a group either way.
 * `from`: where the lane's bytes of the warp's first one are, of row l / 4. */
static __device__ __forceinline__ void copy_turned(const machine &m, u32 to, const u8 *from,
                                                   int number, int count, int kblocks)
{
    const int next = mgl_page_rows(MGL_ROWS, NARROW_ROWS) * MGL_PANEL_ROW_BYTES;
    if (number < count) {
        /* where the warp has no such k block, the last of all, which may be before its first */
        const int most = SLIM_EVEN ? number * MGL_WARPS : kblocks - 1 - warp_now();
        const u8 *const block = from + (long long)min(number * MGL_WARPS, most) * next;
#pragma unroll
        for (int n = 0; n < NARROW_TILES; n++) {
            const int row = min(n * PANEL_TILE + lane_now() / 4, rows_of(m) - 1);
            const u32 behind = TURNED_WHOLE ? (u32)(n * PANEL_TILE * MGL_PANEL_ROW_BYTES)
                                            : lane_place(row) - lane_place(lane_now() / 4);
            copy_16(to + (u32)(n * 512), block + (int)behind);
        }
    }
    copy_16_group();
}

/* Adds the products of a pair and a k block. */
static __device__ __forceinline__ void multiply_turned(const weight_pair &w,
                                                       const uint4 (&x)[NARROW_TILES],
                                                       float (&sums)[NARROW_TILES][4])
{
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int n = 0; n < NARROW_TILES; n++)
            multiply_add<MGL_WEIGHT>(sums[n], w.a[h].x, w.a[h].y, w.a[h].z, w.a[h].w,
                                     h ? x[n].z : x[n].x, h ? x[n].w : x[n].y);
}

/* All k blocks of the task's one panel, which has some. */
static __device__ __forceinline__ bool multiply_turned_pages(machine &m, const panel_shape &s,
                                                             turned_sums &sums)
{
    static_assert(!SLIM_FITS || (int)SLIM_TURNS == 1 || (int)TURNED_PAGES <= (int)PANEL_PAGES,
                  "a step's pages are there at once");
    const int warp = warp_now(), kblocks = same_in_all(segment(m, 0).kblocks);
    const int steps = (kblocks + MGL_WARPS * SLIM_TURNS - 1) / (MGL_WARPS * SLIM_TURNS);
    const int count = steps * SLIM_TURNS;
    const u32 number = own().page_at[warp], zero = (u32)own().stop & 2; /* a flag, 0 or 1 */
    const u8 *const from = address_of(m, operand(m, MGL_PRODUCT_INPUT)) +
                           lane_place(lane_now() / 4) +
                           (u32)(warp * mgl_page_rows(MGL_ROWS, NARROW_ROWS) * MGL_PANEL_ROW_BYTES);
    const u32 stage = kept(shared_address(slim_sums_at(warp, 0, 0, 0)) + (u32)lane_now() * 16);
    const u8 *const w = page_memory() + warp * MGL_BLOCK_BYTES + lane_now() * 16;
    slim_walk walk = slim_walk_of(number);
    __syncwarp();
    own().page_at[warp] = number + (u32)(steps * s.pages); /* every lane */
    if (!begin_products(m))
        return false;
#pragma unroll 1
    for (int d = 0; d < TURNED_DEPTH; d++)
        copy_turned(m, stage + (u32)(d * TURNED_BYTES), from, d, count, kblocks);
    bring_scales<NARROW_ROWS>(m); /* while the first activations are on their way */
    sums = {};
    u32 place = 0; /* of the k block at hand */
    int step = 0;
#pragma unroll 1
    do {
        const u32 first = walk.at; /* the step's first page */
#pragma unroll
        for (int turn = 0; turn < SLIM_TURNS; turn++) {
            const int at = step * SLIM_TURNS + turn;
            uint4 x[NARROW_TILES];
            copy_16_wait_groups<TURNED_DEPTH - 1>();
#pragma unroll
            for (int n = 0; n < NARROW_TILES; n++)
                load_shared_vector_at(&x[n], stage + place + (u32)(n * 512));
            copy_turned(m, stage + place, from, at + TURNED_DEPTH, count, kblocks);
            place = place + TURNED_BYTES == TURNED_DEPTH * TURNED_BYTES ? 0 : place + TURNED_BYTES;
#pragma unroll
            for (int p = 0; p < TURNED_PAGES; p++) {
                if (p > 0 && p * SLIM_PAGE_GROUPS >= s.groups)
                    break;
                slim_blocks<1> blocks;
                const u32 page = turn == 0 ? take_page(m, walk) : page_behind(first, p);
                load_blocks(blocks, w + page, turn);
                if (SLIM_EVEN || at * MGL_WARPS + warp < kblocks)
#pragma unroll
                    for (int q = 0; q < TURNED_PAIRS; q++)
                        multiply_turned(
                            weight_pair_of(blocks.of[0][2 * q],
                                           blocks.of[0][min(2 * q + 1, TURNED_GROUPS - 1)], zero),
                            x, sums.of[p][q]);
                if (turn == SLIM_TURNS - 1)
                    leave_page(walk, page);
            }
        }
    } while (++step < steps);
    return true;
}

/* Stores the warp's sums where those of slim panels are. */
static __device__ __forceinline__ void keep_turned(const turned_sums &sums, int groups)
{
#pragma unroll
    for (int p = 0; p < TURNED_PAGES; p++)
#pragma unroll
        for (int q = 0; q < TURNED_PAIRS; q++) {
            const int group = p * SLIM_PAGE_GROUPS + 2 * q;
            if (group >= groups)
                break;
            keep_rows_of_weights(sums.of[p][q], group, TURNED_GROUPS > 1 && group % 2 == 0);
        }
}

/* The sums of a task of one panel. False: the block leaves. */
static __device__ __forceinline__ bool add_turned(machine &m)
{
    const panel_shape s = slim_shape_of(segment(m, 0).groups, NARROW_GROUPS);
    turned_sums sums;
    if (!multiply_turned_pages(m, s, sums))
        return false;
    __syncwarp(); /* the sums come where activations were, of any lane */
    keep_turned(sums, s.groups);
    return true;
}

#endif

#endif

/*
 * Small-M panels: warp-level split-K products. Used in epochs with few activation rows, and in
 * epochs of up to SMALL_N_ROWS rows by tasks with few row groups (products in swap_ab.cuh).
 *
 * The k blocks of the tape are distributed over the warps in turn. A warp multiplies its k blocks
 * of all row groups of the panel by all activation rows. Each lane copies the activations that it
 * multiplies from global into its own shared memory, some k blocks ahead, so a warp waits neither
 * for an activation tile nor for another warp. All warps read the same pages of weights in the same
 * order. A page contains the same number of k blocks (one or more) for each warp.
 *
 * Each warp computes the RMS scales of some rows while its first activations are loaded.
 *
 * Up to SMALL_M_ROWS rows, the activations are the A operand of the MMA (16 rows), and the weights
 * are the B operand (8 columns), so the weights need no rearrangement. Lane l loads the 16 bytes of
 * quarter l % 4 of row l / 4 of a row group, and of activation rows l / 4 and l / 4 + 8. Words 0
 * and 1 are the operands of one MMA, words 2 and 3 of another. The order of k within a block is
 * arbitrary, because it is the same for both operands.
 *
 * At the end of a panel, each warp stores its partial sums in the memory of the activation tiles.
 * The sums are added in the order of the warps (split-K reduction).
 */
#ifndef MGL_DEVICE_LINEAR_SMALL_M_CUH
#define MGL_DEVICE_LINEAR_SMALL_M_CUH

#include "vm/cuda/device/linear/panels.cuh"

#if MGL_PANELS

/* ---- activations -------------------------------------------------------------------------------
 */

enum {
    SMALL_M_TURN =
        MGL_WARPS * SMALL_M_TURNS * MGL_PAGE_BLOCK_COLUMNS, /* columns of a page's k blocks */
    /* whether each product has as many k blocks for each warp, and whole pages of them */
    SMALL_M_EVEN = MGL_HIDDEN % SMALL_M_TURN == 0 && MGL_ATTENDED % SMALL_M_TURN == 0 &&
                   MGL_FFN % SMALL_M_TURN == 0
};

/* Byte offset of a lane's 16 bytes of a row within a k block. */
static __device__ __forceinline__ u32 lane_place(int row)
{
    return (u32)(row * MGL_PANEL_ROW_BYTES +
                 ((lane_now() & 3) ^ (row / 2 & 3)) * MGL_PAGE_QUARTER_BYTES);
}

/* Addresses of a lane's activations in k block 0: two rows of each of TILES tiles of 16 rows. */
template <int TILES> struct small_m_rows {
    const u8 *at[2 * TILES];
    int warp, kblocks;
};

/* Rows past the end repeat the last row. Their sums are discarded. */
template <int TILES>
static __device__ __forceinline__ small_m_rows<TILES> small_m_rows_of(const machine &m, int kblocks)
{
    small_m_rows<TILES> r;
    const bool heads = task_of(m)->op == OP_RMS_HEAD;
    const u8 *input = address_of(m, operand(m, MGL_PRODUCT_INPUT));
    r.warp = warp_now();
    r.kblocks = kblocks;
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
        int row = i * PANEL_TILE + lane_now() / 4;
        if (heads)
            row = own().tiles[min(i, own().tile_count - 1)] * PANEL_TILE + lane_now() / 4;
        r.at[i] = input + lane_place(min(row, rows_of(m) - 1));
    }
    return r;
}

/* The activations of a k block as MMA operands, in separate registers (see warp_teams.cuh): the
 * first 16 columns, then the other 16. */
template <int TILES> struct small_m_operand {
    uint4 a[2][TILES];
};

template <int TILES>
static __device__ __forceinline__ small_m_operand<TILES>
small_m_operand_of(const uint4 (&x)[2 * TILES], u32 zero)
{
    small_m_operand<TILES> o;
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

/* Iterator of a warp over the pages. */
struct small_m_walk {
    u32 at, parity; /* of the next page: its slot, and the parity of the barrier's phase */
    bool landed;    /* this lane has seen that the next page is loaded */
    bool first;     /* lane 0, which frees pages. False in all lanes after a wait was given up: a
                       slot must not be freed before its page is loaded */
    u32 full;       /* the full barrier of slot 0 */
};

static __device__ __forceinline__ small_m_walk small_m_walk_of(u32 number)
{
    small_m_walk walk = {number % PANEL_PAGES, number / PANEL_PAGES & 1, false,
                         lane_now() == 0 && !own().lost, kept(shared_address(own().page_full))};
    walk.landed = barrier_tested_at(walk.full + walk.at * 8, walk.parity);
    return walk;
}

/* Waits for the next page and returns its offset from page_memory(). Then polls the barrier of the
 * page after it once; the result is needed only at the next call. */
static __device__ __forceinline__ u32 claim_page(machine &m, small_m_walk &walk)
{
    const u32 taken = walk.at;
    if (!__all_sync(0xFFFFFFFFu, walk.landed)) {
        const u32 since = trace_clock();
        walk.first &= wait_phase(walk.full + taken * 8, walk.parity);
        trace_starved(m, since);
    }
    const bool turns = taken + 1 == PANEL_PAGES;
    walk.at = turns ? 0 : taken + 1;
    walk.parity ^= turns ? 1 : 0;
    walk.landed = barrier_tested_at(walk.full + walk.at * 8, walk.parity);
    return taken * MGL_PAGE;
}

/* Offset of the page that is `count` slots after slot `place`. The page has been claimed. */
static __device__ __forceinline__ u32 page_behind(u32 place, int count)
{
    const u32 behind = place + (u32)count;
    return (behind < PANEL_PAGES ? behind : behind - PANEL_PAGES) * MGL_PAGE;
}

/* Frees the page at offset `byte`. */
static __device__ __forceinline__ void free_page(const small_m_walk &walk, u32 byte)
{
    const u32 empty = (u32)((u8 *)own().page_empty - (u8 *)own().page_full);
    __syncwarp();
    if (walk.first)
        barrier_arrive_at(walk.full + empty + byte / MGL_PAGE * 8);
}

/* ---- sums -------------------------------------------------------------------------------------
 *
 * At the end of a panel, each warp stores its sums in the memory of the activation tiles, as an
 * array (warp, pair of row groups, tile of SMALL_M_TILE rows, SMALL_M_SUMS).
 */

enum { SMALL_M_SUMS = SMALL_M_TILE * 2 * MGL_ROW_GROUP }; /* of a tile and two row groups */

/* Index of the sum of a row of the tile and a column of the pair of row groups (swizzled shared
 * memory). Two consecutive rows are 32 words. Neither the stores nor the loads of a warp have bank
 * conflicts. */
static __device__ __forceinline__ int small_m_place(int row, int column)
{
    return (row ^ (row >> 2 & 1)) * (2 * MGL_ROW_GROUP) + (column ^ (row >> 1 & 1) * MGL_ROW_GROUP);
}

/* The sums of a warp for tile `tile` of a pair of row groups. A pair has room for `tiles` tiles. */
static __device__ __forceinline__ float *small_m_sums_at(int warp, int pair, int tiles, int tile)
{
    return (float *)act_tile_memory() + warp * (SMALL_M_AREA / 4) +
           (pair * tiles + tile) * SMALL_M_SUMS;
}

/* Stores the warp's sums of row group `group` and, if `pair`, of the next one, if the weights were
 * the A operand (swap_ab). A lane has, for each tile of PANEL_TILE activation rows, the sums of two
 * rows and one column of the row group, then the same for the next row group. Sums of rows and row
 * groups past the end are discarded. */
static __device__ __forceinline__ void keep_rows_of_weights(const float (&sums)[SMALL_N_TILES][4],
                                                            int group, bool pair)
{
#pragma unroll
    for (int n = 0; n < SMALL_N_TILES; n++) {
        float *const to =
            small_m_sums_at(warp_now(), group / 2, SMALL_N_ROWS / SMALL_M_TILE, n / 2);
        const int row = n % 2 * PANEL_TILE + lane_now() % 4 * 2;
#pragma unroll
        for (int i = 0; i < (pair ? 4 : 2); i++)
            to[small_m_place(row + i % 2, (group % 2 + i / 2) * MGL_ROW_GROUP + lane_now() / 4)] =
                sums[n][i];
    }
}

/* The sums of the tile that contains row `row`, of the first warp that multiplied this row. */
static __device__ __forceinline__ const float *small_m_sums_of(int row, int pair, int tiles)
{
    return small_m_sums_at(row / SMALL_N_ROWS, pair, tiles, row % SMALL_N_ROWS / SMALL_M_TILE);
}

/* Adds the sums of all warps that multiplied the row, in the order of the warps: of all warps, or,
 * if `halves` is 2, of every second warp (small_n.cuh). */
static __device__ __forceinline__ float small_m_total(const float *first, int halves)
{
    float total = 0.0f;
#pragma unroll
    for (int warp = 0; warp < MGL_WARPS; warp++)
        if (warp % 2 == 0 || halves == 1)
            total += first[warp * (SMALL_M_AREA / 4)];
    return total;
}

/* Number of row tiles for which a warp stores sums, in a task with small-M or small-N panels. The
 * tiles share room for SMALL_M_GROUPS row groups. */
static __device__ __forceinline__ int written_tiles(int rows)
{
    return rows <= SMALL_M_TILE ? 1 : rows <= 2 * SMALL_M_TILE ? 2 : SMALL_N_ROWS / SMALL_M_TILE;
}

/* Number of pairs of row groups in the panel that begins at row group `group`. */
static __device__ __forceinline__ int small_m_pairs(const machine &m, int group, int tiles)
{
    const int most = tiles == 1   ? SMALL_M_GROUPS
                     : tiles == 2 ? SMALL_M_GROUPS / 2
                                  : (int)SMALL_N_GROUPS;
    return (min(segment(m, 0).groups - group, most) + 1) / 2;
}

/* Two row groups of weights as A operands of MMAs, in separate registers (see warp_teams.cuh): the
 * first 16 columns of a k block, then the other 16. */
struct weight_pair {
    uint4 a[2];
};

static __device__ __forceinline__ weight_pair weight_pair_of(const uint4 &lower, const uint4 &upper,
                                                             u32 zero)
{
    return {{make_uint4(lower.x ^ zero, upper.x ^ zero, lower.y ^ zero, upper.y ^ zero),
             make_uint4(lower.z ^ zero, upper.z ^ zero, lower.w ^ zero, upper.w ^ zero)}};
}

/* ---- outputs ----------------------------------------------------------------------------------
 */

/* Waits for the sums of all warps and for the row scales. Callers compute addresses and load
 * inputs of the outputs before. */
static __device__ __forceinline__ void wait_sums()
{
    consumer_barrier();
}

/* Writes the outputs of the panel that begins at row group `group`. leave(lane) writes the outputs
 * of a tile of PANEL_TILE rows. The items (tile of eight activation rows, column of the panel) are
 * distributed over the warps in turn. If the op does not reduce over a column, the items are (tile,
 * pair of row groups). */
template <class WRITE>
static __device__ __forceinline__ void write_small_m(const machine &m, int group,
                                                     const WRITE &leave)
{
    const int rows = panel_rows(m), tiles = written_tiles(rows_of(m));
    const int pairs = small_m_pairs(m, group, tiles);
    const int each = task_of(m)->op == OP_RMS_HEAD ? COLUMN_GROUPS / 2 : 1;
    const int parts = (pairs + each - 1) / each;
    const int halves = small_n_halves(rows);
    const int items = parts * ((rows + PANEL_TILE - 1) / PANEL_TILE);
#pragma unroll 1
    for (int i = m.warp; i < items; i += MGL_WARPS) {
        const int tile = small_quotient(i, parts), part = i - tile * parts;
        panel_lane p = {};
        p.tile = tile * PANEL_TILE;
        p.row = p.tile + (m.lane & 3) * 2;
        p.rows = rows;
#pragma unroll 1
        for (int pair = part * each; pair < min(part * each + each, pairs); pair++) {
            const float *from = small_m_sums_of(p.tile, pair, tiles);
#pragma unroll
            for (int n = 0; n < 4; n++)
                p.sums[n / 2][n % 2] =
                    small_m_total(from + small_m_place(p.row % SMALL_M_TILE + n % 2,
                                                       n / 2 * MGL_ROW_GROUP + (m.lane >> 2)),
                                  halves);
            p.group = group + pair * 2;
            p.column = pair / (COLUMN_GROUPS / 2);
            p.last = pair + 1 == min(part * each + each, pairs);
            leave(p);
        }
    }
}

/* If each output needs one sum, a warp writes two of every SMALL_M_STEP rows, 16 columns at a time.
 * The rows of a lane are SMALL_M_STEP apart, which is a multiple of 8 with four or more warps.
 * Therefore their addresses in pages, and in the stored sums, differ by a constant. */
enum {
    SMALL_M_STEP = MGL_WARPS >= 16  ? 32
                   : MGL_WARPS >= 8 ? 16
                   : MGL_WARPS >= 4 ? 8
                                    : 2 * MGL_WARPS,
    SMALL_M_STEP_SUMS =
        SMALL_M_STEP * 2 * MGL_ROW_GROUP /* from a lane's sum to the sum of its next row */
};

/* Number of rows that a lane processes at once, in epochs of up to ROWS rows, so that the loads of
 * one row do not wait for the stores of another. */
template <int ROWS>
inline constexpr int small_m_at_once = SMALL_M_STEP % MGL_ROW_GROUP != 0 || SMALL_M_STEP > ROWS ? 1
                                       : ROWS / SMALL_M_STEP > 4                                ? 4
                                                                 : ROWS / SMALL_M_STEP;

/* Writes the outputs of the panel that begins at row group `group`, with three functions:
 *   ask(row, column, count)       loads the inputs of `count` outputs of a lane, from row `row` on,
 *                                 and returns them with the output addresses
 *   leave(asked, i, sum, real)    writes output i, if `real`, and returns a value to be summed
 *   end(row, sums)                gets the sums of these values over the columns of the panel, for
 *                                 AT_ONCE rows from `row` on; called by the whole warp
 * Waits for the sums of the warps after the first call of `ask`. */
template <int AT_ONCE, class ASK, class WRITE, class END>
static __device__ __forceinline__ void
write_small_m_rows(const machine &m, int group, const ASK &ask, const WRITE &leave, const END &end)
{
    enum { LANES = 2 * MGL_ROW_GROUP, /* for a row */ OF_ROUND = AT_ONCE * SMALL_M_STEP };
    static_assert(AT_ONCE == 1 || SMALL_N_ROWS % OF_ROUND == 0,
                  "rows of a round are a warp's or two's");
    const int rows = rows_of(m), tiles = written_tiles(rows),
              pairs = small_m_pairs(m, group, tiles);
    const int width = segment(m, 0).rows, lane = m.lane % LANES, halves = small_n_halves(rows);
    const int first = group * MGL_ROW_GROUP + lane;
    const auto count_of = [&](int row) {
        return max(0, min((rows - row + SMALL_M_STEP - 1) / SMALL_M_STEP, (int)AT_ONCE));
    };
    /* warps past the end of a step have no rows */
    int of_warp = m.warp * 2 < SMALL_M_STEP ? m.warp * 2 : rows;
    auto asked =
        ask(of_warp + m.lane / LANES, min(first, width - 1), count_of(of_warp + m.lane / LANES));
    wait_sums();
#pragma unroll 1
    for (; of_warp < rows; of_warp += OF_ROUND) {
        const int row = of_warp + m.lane / LANES, count = count_of(row), most = count_of(of_warp);
        const float *from =
            small_m_sums_of(row, 0, tiles) + small_m_place(row % SMALL_M_TILE, lane);
        float sums[AT_ONCE] = {};
#pragma unroll 1
        for (int pair = 0; pair < pairs; pair++) {
            const int column = first + pair * LANES;
            const auto now = asked; /* the next inputs are loaded meanwhile */
            const bool last = pair + 1 == pairs;
            const int next = last ? of_warp + OF_ROUND : of_warp;
            if (next < rows)
                asked = ask(next + m.lane / LANES, min(last ? first : column + LANES, width - 1),
                            count_of(next + m.lane / LANES));
            float totals[AT_ONCE] = {};
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                if (AT_ONCE > 2 ||
                    i < most) /* with many rows, unused totals cost less than a branch */
                    totals[i] = small_m_total(from + pair * tiles * SMALL_M_SUMS +
                                                  min(i, most - 1) * SMALL_M_STEP_SUMS,
                                              halves);
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                if (AT_ONCE <= 2 && i >= most)
                    break;
                const bool real = i < count && column < width;
                const float value = leave(now, i, totals[i], real);
                sums[i] += real ? value : 0.0f;
            }
        }
        end(row, sums);
    }
}

/* Sums a value over the lanes of a row. */
static __device__ __forceinline__ float small_m_row_sum(float sum)
{
#pragma unroll
    for (int offset = MGL_ROW_GROUP; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    return sum;
}

/* ---- products ---------------------------------------------------------------------------------
 */

/* The sums of lane l for row group g and tile t: columns l % 4 * 2 and l % 4 * 2 + 1 of activation
 * row l / 4, then the same columns of row l / 4 + 8. */
template <int TILES> struct small_m_sums {
    enum {
        GROUPS = SMALL_M_GROUPS / TILES,
        PAGES =
            (GROUPS + SMALL_M_PAGE_GROUPS - 1) / SMALL_M_PAGE_GROUPS /* with the same k blocks */
    };
    float of[PAGES * SMALL_M_PAGE_GROUPS][TILES][4];
};

/* The weight blocks of this warp in a page, of one or more k blocks. */
template <int TURNS> struct small_m_blocks {
    uint4 of[TURNS][SMALL_M_PAGE_GROUPS];
};

/* Loads the blocks of TURNS k blocks of a page, from k block `first` on. */
template <int TURNS>
static __device__ __forceinline__ void load_blocks(small_m_blocks<TURNS> &to, const u8 *from,
                                                   int first)
{
#pragma unroll
    for (int u = 0; u < TURNS; u++)
#pragma unroll
        for (int g = 0; g < SMALL_M_PAGE_GROUPS; g++)
            to.of[u][g] = *(const uint4 *)(from + (g * SMALL_M_TURNS + first + u) *
                                                      (MGL_WARPS * MGL_BLOCK_BYTES));
}

/* Multiplies k block `u` and adds the products to the sums. */
template <int TILES, int TURNS>
static __device__ __forceinline__ void multiply_blocks(const small_m_blocks<TURNS> &w, int u,
                                                       const small_m_operand<TILES> &x,
                                                       float (*sums)[TILES][4])
{
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int g = 0; g < SMALL_M_PAGE_GROUPS; g++)
#pragma unroll
            for (int t = 0; t < TILES; t++)
                multiply_add<MGL_WEIGHT>(sums[g][t], x.a[h][t].x, x.a[h][t].y, x.a[h][t].z,
                                         x.a[h][t].w, h ? w.of[u][g].z : w.of[u][g].x,
                                         h ? w.of[u][g].w : w.of[u][g].y);
}

/* Shared memory in which a lane's activations are staged. Each lane copies and loads only its own
 * bytes, so no barrier is needed, and many copies can be in flight without registers. The k blocks
 * of the warp in one step are one commit group. The warp's sums use the same memory at the end of
 * the panel. */
template <int TILES> struct small_m_stage {
    enum {
        BLOCKS = SMALL_M_TURNS,                                    /* k blocks of a group */
        BYTES = TILES * 1024,                                      /* bytes of a k block */
        DEPTH = SMALL_M_FITS ? SMALL_M_NEED / (BLOCKS * BYTES) : 1 /* groups; more are slower */
    };
    u32 at; /* this lane's first 16 bytes */
};

/* Starts the copies of the warp's group `number`, if number < count. Commits a group in any case.
 */
template <int TILES>
static __device__ __forceinline__ void copy_rows(const small_m_stage<TILES> &stage, u32 place,
                                                 const small_m_rows<TILES> &rows, int number,
                                                 int count)
{
    enum { BLOCKS = small_m_stage<TILES>::BLOCKS };
    if (number < count) {
#pragma unroll
        for (int u = 0; u < BLOCKS; u++) {
            const int block = min((number * BLOCKS + u) * MGL_WARPS + rows.warp, rows.kblocks - 1);
            const size_t offset =
                (size_t)(u32)block *
                (mgl_page_rows(MGL_ROWS, TILES * SMALL_M_TILE) * MGL_PANEL_ROW_BYTES);
#pragma unroll
            for (int i = 0; i < 2 * TILES; i++)
                copy_16(stage.at + place + (u32)((u * 2 * TILES + i) * 512), rows.at[i] + offset);
        }
    }
    copy_16_group();
}

/* Loads the activations of a k block from the stage. */
template <int TILES>
static __device__ __forceinline__ void load_rows(uint4 (&to)[2 * TILES],
                                                 const small_m_stage<TILES> &stage, u32 place)
{
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++)
        load_shared_vector_at(&to[i], stage.at + place + (u32)(i * 512));
}

/* Waits until the task's products may begin. False: the wait was given up; the block exits. */
static __device__ __forceinline__ bool begin_products(const machine &m)
{
    if (!wait_preissued_start(m))
        return false;
    if (thread_index() == 0)
        own().pending = 0;
    trace_input(m);
    wait_switched(); /* if this wait is given up, the results of the task are not used */
    return true;
}

/* Computes the RMS scales of the task's rows, at most ROWS. Each warp computes the scales of some
 * rows before its products. All scales are complete after wait_sums; no warp reads one before. */
template <int ROWS> static __device__ __forceinline__ void fetch_scales(const machine &m)
{
    enum { EACH = (ROWS + MGL_WARPS - 1) / MGL_WARPS, AT_ONCE = EACH < 8 ? 4 : 8 };
    if (task_of(m)->op != OP_LINEAR_ADD_GAMMA)
        compute_row_scales<AT_ONCE>(operand(m, MGL_PRODUCT_SQUARES), rows_of(m), warp_now(),
                                    MGL_WARPS);
}

/* Multiplies all k blocks of a panel. False: the wait for the start was given up. */
template <int TILES>
static __device__ __forceinline__ bool multiply_pages(machine &m, const panel_shape &s, int group,
                                                      small_m_sums<TILES> &sums)
{
    enum {
        TURNS = SMALL_M_TURNS,
        PAGES = small_m_sums<TILES>::PAGES,
        /* passes over the pages of a step: with more tiles, the registers have room for the
         * operands of one k block only */
        PASSES = TILES > 1 ? TURNS : 1,
        EACH = TURNS / PASSES,
        BLOCKS = small_m_stage<TILES>::BLOCKS,
        BYTES = small_m_stage<TILES>::BYTES,
        DEPTH = small_m_stage<TILES>::DEPTH /* groups in flight */
    };
    static_assert(!SMALL_M_FITS || PASSES == 1 || (int)PAGES <= (int)PANEL_PAGES,
                  "a step's pages are there at once");
    static_assert(DEPTH >= 1, "a step's k blocks are on their way");
    const int warp = warp_now(), kblocks = segment(m, 0).kblocks;
    const int steps = (kblocks + MGL_WARPS * TURNS - 1) / (MGL_WARPS * TURNS);
    const u32 number = own().page_at[warp],
              zero = (u32)own().stop & 2; /* always 0: stop is 0 or 1 */
    const small_m_rows<TILES> rows = small_m_rows_of<TILES>(m, kblocks);
    const small_m_stage<TILES> stage = {
        kept(shared_address(small_m_sums_at(warp, 0, 0, 0)) + (u32)lane_now() * 16)};
    const u8 *const w = page_memory() + warp * MGL_BLOCK_BYTES + lane_now() * 16;
    small_m_walk walk = small_m_walk_of(number);
    __syncwarp();
    own().page_at[warp] = number + (u32)(steps * s.pages); /* by every lane */
    if (group == 0) {
        if (!begin_products(m))
            return false;
    } else {
        consumer_barrier(); /* the sums of the previous panel have been read */
    }
#pragma unroll 1
    for (int d = 0; d < DEPTH; d++)
        copy_rows<TILES>(stage, (u32)(d * BLOCKS * BYTES), rows, d, steps);
    if (group == 0)
        fetch_scales<TILES * SMALL_M_TILE>(m); /* while the copies are in flight */
    u32 place = 0;                             /* of the current group */
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        const u32 first = walk.at; /* the step's first page */
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++) {
            uint4 x[EACH][2 * TILES];
            small_m_operand<TILES> operand[EACH];
            if (pass == 0)
                copy_16_wait_groups<DEPTH - 1>();
#pragma unroll
            for (int u = 0; u < EACH; u++)
                load_rows<TILES>(x[u], stage, place + (u32)((pass * EACH + u) * BYTES));
#pragma unroll
            for (int u = 0; u < EACH; u++)
                operand[u] = small_m_operand_of<TILES>(x[u], zero);
            if (pass == PASSES - 1) {
                copy_rows<TILES>(stage, place, rows, step + DEPTH, steps);
                place += BLOCKS * BYTES;
                if (place == DEPTH * BLOCKS * BYTES)
                    place = 0;
            }
#pragma unroll
            for (int p = 0; p < PAGES; p++) {
                if (p > 0 && p * SMALL_M_PAGE_GROUPS >= s.groups)
                    break;
                small_m_blocks<EACH> blocks;
                const u32 page = pass == 0 ? claim_page(m, walk) : page_behind(first, p);
                load_blocks(blocks, w + page, pass * EACH);
#pragma unroll
                for (int u = 0; u < EACH; u++)
                    if (SMALL_M_EVEN ||
                        (step * TURNS + pass * EACH + u) * MGL_WARPS + warp < kblocks)
                        multiply_blocks<TILES>(blocks, u, operand[u],
                                               sums.of + p * SMALL_M_PAGE_GROUPS);
                if (pass == PASSES - 1)
                    free_page(walk, page);
            }
        }
    }
    return true;
}

/* Stores the warp's sums of `groups` row groups, rounded up to pairs. Sums of rows and row groups
 * past the end are discarded. */
template <int TILES>
static __device__ __forceinline__ void keep_sums(const small_m_sums<TILES> &sums, int groups)
{
    const int row = lane_now() / 4, column = lane_now() % 4 * 2;
    float *const first = small_m_sums_at(warp_now(), 0, TILES, 0);
    float *const of[2] = {first + small_m_place(row, column),
                          first + small_m_place(row, column + MGL_ROW_GROUP)};
#pragma unroll
    for (int g = 0; g < small_m_sums<TILES>::GROUPS; g++) {
        if (g % 2 == 0 && g >= groups)
            break;
#pragma unroll
        for (int t = 0; t < 2 * TILES; t++)
            *(float2 *)(of[g % 2] + (g / 2 * 2 * TILES + t) * (SMALL_M_SUMS / 2)) =
                make_float2(sums.of[g][t / 2][t % 2 * 2], sums.of[g][t / 2][t % 2 * 2 + 1]);
    }
}

/* ---- a panel ----------------------------------------------------------------------------------
 */

/* Computes and stores the sums of the panel that begins at row group `group`. False: the block
 * exits. */
template <int TILES> static __device__ __forceinline__ bool add_small_m(machine &m, int group)
{
    const panel_shape s =
        small_m_shape_of(segment(m, 0).groups - group, small_m_sums<TILES>::GROUPS);
    small_m_sums<TILES> sums = {};
    if (!multiply_pages<TILES>(m, s, group, sums))
        return false;
    __syncwarp(); /* the sums overwrite the staged activations of all lanes */
    keep_sums<TILES>(sums, s.groups);
    return true;
}

/* Runs all panels of a task of up to SMALL_M_ROWS rows. leave(group, last, starved) writes the
 * outputs of a panel, and ends the task after the last one. False: the block exits. */
template <class WRITE>
static __device__ __forceinline__ bool run_small_m(machine &m, const WRITE &leave)
{
    for (int group = 0;;) {
        own().group_at[warp_now()] = group; /* by every lane */
        if (!(rows_of(m) <= SMALL_M_TILE ? add_small_m<1>(m, group) : add_small_m<2>(m, group)))
            return false;
        group = own().group_at[warp_now()];
        __syncwarp(); /* group_at is overwritten next */
        const int next = group + small_m_groups(rows_of(m), false);
        const bool last = next >= segment(machine_now(), 0).groups;
        leave(group, last, trace_starved_of(m));
        if (last)
            return true;
        group = next;
    }
}

#endif

#endif

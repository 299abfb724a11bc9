/*
 * Panels: matrix products of the second list on tensor cores. A panel is a number of row groups of
 * the weights, multiplied by all activation rows of the epoch.
 *
 * A task processes its row groups panel by panel, and the k blocks of a panel in the order of the
 * tape. The kernel path depends on the target and the shape:
 *
 *   warp teams (warp_teams.cuh) or warpgroups (warpgroups.cuh)       most panels
 *   single warps (small_m.cuh, swap_ab.cuh, small_n.cuh)             few rows or few row groups
 *
 * If a panel has fewer row groups than all teams or warpgroups can multiply, several of them share
 * its k blocks (split-K), and the activation tiles are assigned to them in turn (panel_shape.cuh).
 *
 * Sums stay in registers until the end of the panel. If a sum is complete and the op combines no
 * sums of other warps, each warp writes the outputs of its own sums. Otherwise the sums are stored
 * in shared memory, all at once or in several passes. Partial sums are added in the order of the
 * shares, and the op computes outputs from the totals: a lane gets four, of two columns and two
 * rows. The order of summation depends only on the number of rows of the epoch.
 *
 * A task keeps statistics of its rows (panel_row_stats): the RMS scale of each row, and for each
 * column of four row groups the sum of squares of the gamma-scaled outputs, or the best logit.
 */
#ifndef MGL_DEVICE_LINEAR_PANELS_CUH
#define MGL_DEVICE_LINEAR_PANELS_CUH

#include "vm/cuda/device/linear/finish.cuh"
#include "vm/cuda/device/linear/panel_shape.cuh"

#if MGL_PANELS

/* ---- row statistics ---------------------------------------------------------------------------
 */

/* Statistic of one row and one column of row groups. */
struct panel_row_stat {
    float value; /* the sum of squares, or the best logit */
    int id;      /* the token of the best logit */
};

static __device__ __forceinline__ float *panel_scales() /* (PANEL_ROWS) */
{
    return (float *)activation_buffer();
}

static __device__ __forceinline__ panel_row_stat *panel_row_stats() /* (PANEL_PARTS, PANEL_ROWS) */
{
    return (panel_row_stat *)(activation_buffer() + PANEL_ROWS * sizeof(float));
}

static __device__ __forceinline__ void clear_row_stats(const machine &m)
{
    for (int i = thread_of(m); i < PANEL_PARTS * PANEL_ROWS; i += (int)THREADS)
        panel_row_stats()[i] = {0.0f, 0};
}

/* SQUARES_AT_ONCE: partial sums of squares of a row that a warp loads at once, 16 bytes a lane.
 * SQUARES_BEYOND: if this many remain after whole loads, one lane of each row loads them at the
 * same time as the rest, so that 132 partial sums (128 + 4) need one round of loads. */
enum { SQUARES_AT_ONCE = 32 * 4, SQUARES_BEYOND = 4 };

static __device__ __forceinline__ float sum_of(float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

/* Reduces N values over the lanes of a warp (butterfly reduction). In each step, the lanes of a
 * pair OFFSET apart exchange half of their values and keep the sums of the other half. OFFSET is
 * halved from step to step, down to 1. */
template <int N, int OFFSET> static __device__ __forceinline__ void halve_sums(float *values)
{
    const bool upper = (thread_index() & OFFSET) != 0;
    if constexpr (N > 1) {
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            const float mine = upper ? values[i + N / 2] : values[i];
            const float other = upper ? values[i] : values[i + N / 2];
            values[i] = mine + __shfl_xor_sync(0xFFFFFFFFu, other, OFFSET);
        }
    } else {
        values[0] += __shfl_xor_sync(0xFFFFFFFFu, values[0], OFFSET);
    }
    if constexpr (OFFSET > 1)
        halve_sums<(N > 1 ? N / 2 : 1), OFFSET / 2>(values);
}

/* Computes warp_sum of each of N values, in the same order of summation. Lane l gets the sum of
 * value l / (32 / N). */
template <int N> static __device__ __forceinline__ float warp_sums(float (&values)[N])
{
    halve_sums<N, 16>(values);
    return values[0];
}

/* Sums of squares of rows [first, first + AT_ONCE). Lane l gets the sum of row
 * first + l / (32 / AT_ONCE). Rows past the end repeat the last row. `whole`: the rows are aligned
 * to 16 bytes, and the loads of all rows are issued together. */
template <int AT_ONCE>
static __device__ __forceinline__ float sum_squares(const mgl_device_operand &s, int first,
                                                    int rows, bool whole)
{
    const int parts = s.count[1], lane = (int)(thread_index() % 32);
    const int beyond = parts % SQUARES_AT_ONCE;
    const bool apart = whole && beyond == SQUARES_BEYOND;
    const int end = apart ? parts - SQUARES_BEYOND : parts;
    float sums[AT_ONCE] = {};
    float4 last = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (apart)
        last = *(const float4 *)(row_of(s, min(first + lane / (32 / AT_ONCE), rows - 1)) + end);
    if (whole) {
#pragma unroll 1
        for (int i = lane * 4; i < end; i += SQUARES_AT_ONCE)
#pragma unroll
            for (int r = 0; r < AT_ONCE; r++)
                sums[r] += sum_of(*(const float4 *)(row_of(s, min(first + r, rows - 1)) + i));
    } else {
#pragma unroll 1
        for (int r = 0; r < AT_ONCE; r++) {
            const float *row = row_of(s, min(first + r, rows - 1));
            float sum = 0.0f;
#pragma unroll 1
            for (int i = lane; i < parts; i += 32)
                sum += row[i];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) /* registers cannot be indexed */
                sums[k] = k == r ? sum : sums[k];
        }
    }
    return warp_sums(sums) + sum_of(last);
}

/* Computes the RMS scale of each row: 1 / sqrt(sum(s) / hidden + eps). `warps` warps share the
 * rows; this one is number `warp`. A warp computes AT_ONCE rows at a time. */
template <int AT_ONCE>
static __device__ __forceinline__ void compute_row_scales(const mgl_device_operand &s, int rows,
                                                          int warp, int warps)
{
    enum { LANES = 32 / AT_ONCE }; /* for a row */
    const int lane = (int)(thread_index() % 32);
    const bool whole =
        (((size_t)s.at | (size_t)(s.stride0 * 4) | (size_t)(s.count[1] * 4)) & 15) == 0;
#pragma unroll 1
    for (int first = warp * AT_ONCE; first < rows; first += warps * AT_ONCE) {
        const float sum = sum_squares<AT_ONCE>(s, first, rows, whole);
        const int row = first + lane / LANES;
        if (lane % LANES == 0 && row < rows)
            panel_scales()[row] = rsqrtf(sum * (1.0f / MGL_HIDDEN) + __uint_as_float(MGL_EPS_BITS));
    }
}

/* ---- pages and activation tiles ---------------------------------------------------------------
 *
 * The positions of a warp in the pages and activation tiles of the second list are counted over all
 * epochs. They are stored in shared memory, and thread indices are read again when needed. In
 * registers, next to the sums of a panel, they would be spilled to local memory, which is about ten
 * times as slow.
 */

static __device__ __forceinline__ int lane_now()
{
    return (int)(thread_index() % 32);
}

static __device__ __forceinline__ int warp_now()
{
    return (int)(thread_index() / 32);
}

/* Makes a value that is the same in all lanes known to the compiler as warp-uniform. Warpgroup
 * instructions must not be in code in which lanes could diverge. */
static __device__ __forceinline__ int same_in_all(int value)
{
    return MGL_WARPGROUPS ? __shfl_sync(0xFFFFFFFFu, value, 0) : value;
}

/* Whether the phases that the lanes of a warp wait for are complete. Lanes with `mine` false wait
 * for none. All lanes get the same answer, so the compiler knows that they do not diverge. */
static __device__ __forceinline__ bool has_passed(u32 barrier, u32 parity, bool mine = true)
{
    return __all_sync(0xFFFFFFFFu, !mine || barrier_tested_at(barrier, parity));
}

/* Waits for these phases. Only the loader's waits have a deadline. False in all lanes: the loader
 * has given up. */
static __device__ __forceinline__ bool wait_phase(u32 barrier, u32 parity, bool mine = true)
{
    while (!__all_sync(0xFFFFFFFFu, !mine || barrier_passed_at(barrier, parity)))
        if (__any_sync(0xFFFFFFFFu, own().lost))
            return false;
    return true;
}

/* Iterator of a warp over the pages of a panel, piece by piece. Lane l handles page l of each
 * piece. After a wait for a page was given up, in this panel or in a previous one, the warp frees
 * no page: a slot must not be freed before its page is loaded. */
struct page_walk {
    int end;         /* first k block after the current piece, in units of TURN_BLOCKS */
    int at;          /* slot of the lane's page */
    u32 parity;      /* parity of the phase of that page */
    int pages, step; /* pages of a piece; k blocks of a piece, in units of TURN_BLOCKS */
    bool mine;       /* the lane has a page in each piece */
    bool ready;      /* the lane has no page in the next piece, or has seen that it is loaded */
    bool gone;       /* a wait for a page was, or may have been, given up */
    u32 full, empty; /* the barriers of slot 0 */
};

static __device__ __forceinline__ page_walk page_walk_of(const panel_shape &s, u32 page)
{
    const u32 number = page + (u32)lane_now();
    return {0,
            (int)(number % PANEL_PAGES),
            number / PANEL_PAGES & 1,
            same_in_all(s.pages),
            same_in_all(s.piece / TURN_BLOCKS),
            lane_now() < s.pages,
            false,
            own().lost != 0,
            kept(shared_address(own().page_full)),
            kept(shared_address(own().page_empty))};
}

/* Frees the pages of the current piece, if there is one. */
static __device__ __forceinline__ void free_pages(page_walk &walk)
{
    if (walk.end == 0)
        return;
    __syncwarp();
    if (!walk.gone && walk.mine)
        barrier_arrive_at(walk.empty + (u32)walk.at * 8);
    walk.at += walk.pages;
    if (walk.at >= PANEL_PAGES) {
        walk.at -= PANEL_PAGES;
        walk.parity ^= 1;
    }
}

/* Advances to the piece that contains k block `block`, in units of TURN_BLOCKS. */
static __device__ __forceinline__ void turn_pages(machine &m, page_walk &walk, int block)
{
    do {
        free_pages(walk);
        walk.end += walk.step;
        const u32 full = walk.full + (u32)walk.at * 8;
        const bool ready = __all_sync(0xFFFFFFFFu, walk.ready);
        walk.ready = false;
        if (ready || (MGL_TRACE && has_passed(full, walk.parity, walk.mine)))
            continue; /* reading the clock would take longer */
        const u32 since = trace_clock();
        walk.gone |= !wait_phase(full, walk.parity, walk.mine);
        trace_starved(m, since);
    } while (walk.end <= block);
    __syncwarp(); /* all lanes read the pages that single lanes waited for */
}

/* Polls the barriers of the pages of the next piece while other operations are in flight. Polling
 * takes as long as waiting for a page that is already loaded. */
static __device__ __forceinline__ void look_ahead(page_walk &walk)
{
    const int at = walk.at + walk.pages;
    const bool wraps = at >= PANEL_PAGES;
    walk.ready =
        !walk.mine || barrier_tested_at(walk.full + (u32)(wraps ? at - PANEL_PAGES : at) * 8,
                                        wraps ? walk.parity ^ 1 : walk.parity);
}

/* Advances to the end of the panel, which has `blocks` k blocks, in units of TURN_BLOCKS. */
static __device__ __forceinline__ void end_pages(machine &m, page_walk &walk, int blocks, u32 page)
{
    if (walk.end < blocks)
        turn_pages(m, walk, blocks - 1);
    free_pages(walk);
    __syncwarp();
    own().page_at[warp_now()] =
        page + (u32)(parts_of(blocks, walk.step) * walk.pages); /* by every lane */
}

/* Waits for an activation tile and returns its offset from act_tile_memory(). */
static __device__ __forceinline__ u32 wait_act_tile(const act_tile_walk &t)
{
    const u32 full = shared_address(&own().act_tile_full[t.place]),
              at = (u32)(t.place * ACT_TILE_BYTES);
    if (MGL_TRACE && has_passed(full, parity_of(t)))
        return at;
    const u32 since = trace_clock();
    wait_phase(full, parity_of(t));
    trace_act_tile(since);
    return at;
}

/* Frees the activation tile with the arrivals of `warps` warps, and advances to the next tile of
 * the team. */
static __device__ __forceinline__ void free_act_tile(act_tile_walk &t, int warps)
{
    __syncwarp();
    if (lane_now() == 0 &&
        !own().lost) /* if lost, other warps of the team may be several tiles behind */
        barrier_arrive_times(shared_address(&own().act_tile_empty[t.place]), warps);
    advance(t);
}

/* Number of arrivals at a barrier that warp `i` of `users` warps makes, of `all` arrivals. */
static __device__ __forceinline__ int arrivals_of(int all, int users, int i)
{
    const int each = small_quotient(all, users);
    return each + (i == 0 ? all - each * users : 0);
}

/* ---- shape of the current panel ---------------------------------------------------------------
 */

/* The shape of the current task's panel that begins at row group `group`; and below, the number of
 * activation rows. Both are computed again when needed, since in registers they would be spilled.
 */
static __device__ __forceinline__ panel_shape shape_at(const machine &m, int group)
{
    return panel_shape_of(segment(m, 0).groups - group);
}

static __device__ __forceinline__ int panel_rows(const machine &m)
{
    return task_of(m)->op == OP_RMS_HEAD ? own().tile_count * PANEL_TILE : rows_of(m);
}

/* ---- outputs ----------------------------------------------------------------------------------
 */

/* The four sums of lane l in a tile, as the op gets them: row groups `group` and `group` + 1,
 * column l / 4 of each, and activation rows `row` and `row` + 1. */
struct panel_lane {
    float sums[2][2]; /* (row group, row) */
    int group;        /* within the task */
    int row;
    int tile;    /* the first row of the tile */
    int column;  /* number of the column of COLUMN_GROUPS row groups */
    bool last;   /* the last two row groups of the column; the others were processed just before */
    int rows;    /* rows of the epoch */
    u64 best[2]; /* head: best logit of the column for each row, kept from pair to pair */
};

/* The column of the task's output for a lane and its row group h. */
static __device__ __forceinline__ int column_of(const machine &m, const panel_lane &p, int h)
{
    return (p.group + h) * MGL_ROW_GROUP + (m.lane >> 2);
}

/* Sums a value over the lanes with the same rows and other columns. */
static __device__ __forceinline__ float sum_of_columns(float value)
{
#pragma unroll
    for (int offset = 4; offset < 32; offset *= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
    return value;
}

/* Stores one value in a region that is not flagged. */
static __device__ __forceinline__ void store_at(u8 *at, int dtype, float value)
{
    if (dtype == DTYPE_F32)
        *(float *)at = value;
    else
        *(u16 *)at = (u16)pack_pair(dtype, value, 0.0f);
    delay();
}

/* Same, if `real`, without a branch. */
static __device__ __forceinline__ void store_if(bool real, u8 *at, int dtype, float value)
{
    const u16 bits = (u16)pack_pair(dtype, value, 0.0f);
    if (real && dtype == DTYPE_F32)
        *(float *)at = value;
    if (real && dtype != DTYPE_F32)
        *(u16 *)at = bits;
    delay();
}

static __device__ __forceinline__ void store_element(const view &v, int r, int column, float value)
{
    store_at(element_of(v, r, column), v.dtype, value);
}

/* Stores values of two adjacent rows and the columns of one row group in a region of 16-bit values.
 * The warp transposes them first, so that lane l stores two adjacent columns of row l / 4 of the
 * tile. Called by the whole warp. */
static __device__ __forceinline__ void store_swapped(const machine &m, const paged_view &v,
                                                     const panel_lane &p, int first, float value,
                                                     float below)
{
    __syncwarp();
    const u32 word = transposed(pack_pair(v.dtype, value, below));
    const int row = p.tile + (m.lane >> 2);
    if (row < p.rows)
        *(u32 *)element_of(v, row, first + (m.lane & 3) * 2) = word;
    delay();
}

/* The sums of a warp are tiles, in the order of activation rows. If a warp of a team has two tiles
 * of weight rows, their tiles alternate. The tiles are stored in shared memory in passes. After the
 * last panel of a task, the memory of the activation tiles is free and is used; if all tiles fit,
 * one pass is enough. Otherwise own().partial is used. */
enum {
    TILE_SUMS = 4 * 32, /* floats in a tile */
    ALL_TILES = MGL_WARPGROUPS || TEAM_HALVES == 2 ? ROW_TILES : 2 * ROW_TILES,
    PARTIAL_FIT = PARTIALS / (MGL_WARPS * TILE_SUMS),
    ACT_TILES_FIT = ACT_TILES * ACT_TILE_BYTES / (MGL_WARPS * TILE_SUMS * 4),
    PARTIAL_TILES = PARTIAL_FIT < ALL_TILES ? PARTIAL_FIT : ALL_TILES,
    LAST_TILES = ACT_TILES_FIT < ALL_TILES ? ACT_TILES_FIT : ALL_TILES
};
static_assert(PARTIAL_FIT >= 1 && ACT_TILES_FIT >= 1, "a pass has a tile at least");

/* A pass: tiles [first, first + count) of each warp, stored at byte `at` of the block's shared
 * memory as an array of floats (warp, tile, TILE_SUMS). */
struct panel_pass {
    u32 at;
    int first, count;
};

static __device__ __forceinline__ panel_pass pass_number(bool last, int pass)
{
    if (last)
        return {(u32)(act_tile_memory() - block_memory), pass * LAST_TILES, LAST_TILES};
    return {(u32)((u8 *)own().partial - block_memory), pass * PARTIAL_TILES, PARTIAL_TILES};
}

static __device__ __forceinline__ float *tile_memory(const panel_pass &pass, int warp, int n)
{
    return (float *)(block_memory + pass.at) + (warp * pass.count + n) * TILE_SUMS;
}

/* Adds the stored sums of a warp for tile n of a pass to the sums of a lane. */
static __device__ __forceinline__ void add_tile(const machine &m, const panel_pass &pass, int warp,
                                                int n, panel_lane &p)
{
    const float *from = tile_memory(pass, warp, n) + m.lane;
#pragma unroll
    for (int i = 0; i < 4; i++)
        p.sums[i / 2][i % 2] += from[i * 32];
}

#endif

#endif

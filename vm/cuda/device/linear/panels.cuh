/*
 * Panels: products of the second list. Weights and activations are both whole operands of tensor
 * cores.
 *
 * A task goes through its row groups panel by panel, and through a panel in the order of the tape's
 * k blocks. Who multiplies is either teams of warps (warp_teams.cuh) or warpgroups
 * (warpgroups.cuh); in epochs of few rows, in both cases, and in tasks of few row groups, warps by
 * themselves (small_m.cuh, swap_ab.cuh, small_n.cuh). Where a panel has fewer row groups than they
 * have room for, some share its k blocks, and trays are for these in turn (panel_shape.cuh).
 *
 * Sums stay in registers until the panel's end. Where they are whole and the op knows no others, a
 * warp makes outputs of its own. Else they stand in shared memory, all at once or pass by pass,
 * where those that share k blocks are added up, the first first, and the op makes outputs of them:
 * a lane has four, of two columns and two rows. So all sums are made in one order,
 * which depends on how many rows the epoch has, and on nothing that is in them.
 *
 * What a task keeps of its rows (panel_row_stats): what scales them, and of each column of four row
 * groups the squares of what it weighed, or the best of its logits.
 */
#ifndef MGL_DEVICE_LINEAR_PANELS_CUH
#define MGL_DEVICE_LINEAR_PANELS_CUH

#include "vm/cuda/device/linear/finish.cuh"
#include "vm/cuda/device/linear/panel_shape.cuh"

#if MGL_PANELS

/* ---- notes of a task --------------------------------------------------------------------------
 */

/* Of one row and one column of row groups. */
struct panel_row_stat {
    float value; /* the sum of squares, or the best logit, */
    int id;      /* and its token */
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

/* Parts of a row's squares that lanes load together, 16 bytes each; and how many beyond whole such
 * loads a lane loads for a row of its own at the same time, where they are as many: of 132 parts
 * nobody waits twice. */
enum { SQUARES_AT_ONCE = 32 * 4, SQUARES_BEYOND = 4 };

static __device__ __forceinline__ float sum_of(float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

/* Adds up N values over pairs of lanes OFFSET apart, each of which has half of them then; and so on
 * to one value, and to the lane next to it. */
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

/* warp_sum of each of N values, which are added up in the same order: of value l / (32 / N) in lane
 * l. */
template <int N> static __device__ __forceinline__ float warp_sums(float (&values)[N])
{
    halve_sums<N, 16>(values);
    return values[0];
}

/* Sums of squares of rows [first, first + AT_ONCE), of those that there are: of row `first` + l /
 * (32 / AT_ONCE) in lane l. Their loads are on their way together, where all rows have `whole` 16
 * bytes. */
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
            for (int k = 0; k < AT_ONCE; k++) /* no register has a number */
                sums[k] = k == r ? sum : sums[k];
        }
    }
    return warp_sums(sums) + sum_of(last);
}

/* What scales each row: 1 / sqrt(sum(s) / hidden + eps), by `warps` warps, of which this is number
 * `warp`: a warp's rows, some at a time. */
template <int AT_ONCE>
static __device__ __forceinline__ void compute_row_scales(const mgl_device_operand &s, int rows,
                                                          int warp, int warps)
{
    enum { LANES = 32 / AT_ONCE }; /* of a row */
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

/* ---- pages and trays --------------------------------------------------------------------------
 *
 * Where a warp stands in the second list's pages and trays, counted over all epochs, is in shared
 * memory, and which thread this is is asked anew: what lived in registers beside the sums of a
 * panel would be kept in local memory, which is ten times as far.
 */

static __device__ __forceinline__ int lane_now()
{
    return (int)(thread_index() % 32);
}

static __device__ __forceinline__ int warp_now()
{
    return (int)(thread_index() / 32);
}

/* A number that all lanes have alike, and that the compiler then knows to be so: products of a
 * warpgroup stand on no path that lanes might take apart. */
static __device__ __forceinline__ int same_in_all(int value)
{
    return MGL_WARPGROUPS ? __shfl_sync(0xFFFFFFFFu, value, 0) : value;
}

/* A value that the compiler keeps in a register, where it would make it anew each time. */
static __device__ __forceinline__ u32 kept(u32 value)
{
    asm volatile("" : "+r"(value));
    return value;
}

/* Whether a phase that the whole warp waits for is complete: lanes of which `mine` is false for
 * none. All have the same answer, so that the compiler knows that they stay together. */
static __device__ __forceinline__ bool has_passed(u32 barrier, u32 parity, bool mine = true)
{
    return __all_sync(0xFFFFFFFFu, !mine || barrier_tested_at(barrier, parity));
}

/* Waits for it. The loader has a clock in its waits: false, in all lanes, where it has given up. */
static __device__ __forceinline__ bool wait_phase(u32 barrier, u32 parity, bool mine = true)
{
    while (!__all_sync(0xFFFFFFFFu, !mine || barrier_passed_at(barrier, parity)))
        if (__any_sync(0xFFFFFFFFu, own().lost))
            return false;
    return true;
}

/* A warp's way through the pages of a panel, piece by piece: lane l has page l of each. Once the
 * warp has passed by a page that will not land, in this panel or in one before, it lets go of no
 * page any more: a place is not let go of before its page is there. */
struct page_walk {
    int end;         /* k block behind those of the piece at hand, in TURN_BLOCKS */
    int at;          /* the lane's page: its place, */
    u32 parity;      /* and of its phase */
    int pages, step; /* pages of a piece, and k blocks, in TURN_BLOCKS */
    bool mine;       /* the lane has a page of each piece */
    bool ready;      /* its page of the next piece, if it has one, has been seen to have landed */
    bool gone;       /* the warp has passed by such a page, or may have */
    u32 full, empty; /* the first places' barriers */
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

/* Leaves the pages at hand, if there are some. */
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

/* Goes on to the pages that have k block `block`, in TURN_BLOCKS. */
static __device__ __forceinline__ void turn_pages(machine &m, page_walk &walk, int block)
{
    do {
        free_pages(walk);
        walk.end += walk.step;
        const u32 full = walk.full + (u32)walk.at * 8;
        const bool ready = __all_sync(0xFFFFFFFFu, walk.ready);
        walk.ready = false;
        if (ready || (MGL_TRACE && has_passed(full, walk.parity, walk.mine)))
            continue; /* a look at the clock takes longer than this */
        const u32 since = trace_clock();
        walk.gone |= !wait_phase(full, walk.parity, walk.mine);
        trace_starved(m, since);
    } while (walk.end <= block);
    __syncwarp(); /* what one lane has waited for, all read */
}

/* Looks for the pages behind those at hand, while something else is on its way: to look takes as
 * long as to wait for what has landed. */
static __device__ __forceinline__ void look_ahead(page_walk &walk)
{
    const int at = walk.at + walk.pages;
    const bool wraps = at >= PANEL_PAGES;
    walk.ready =
        !walk.mine || barrier_tested_at(walk.full + (u32)(wraps ? at - PANEL_PAGES : at) * 8,
                                        wraps ? walk.parity ^ 1 : walk.parity);
}

/* To the panel's end, which has so many k blocks, in TURN_BLOCKS. */
static __device__ __forceinline__ void end_pages(machine &m, page_walk &walk, int blocks, u32 page)
{
    if (walk.end < blocks)
        turn_pages(m, walk, blocks - 1);
    free_pages(walk);
    __syncwarp();
    own().page_at[warp_now()] =
        page + (u32)(parts_of(blocks, walk.step) * walk.pages); /* every lane */
}

/* Waits until a tray is there: its bytes from act_tile_memory() on. */
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

/* Lets go of it, as so many warps, and goes on to the team's next one. */
static __device__ __forceinline__ void free_act_tile(act_tile_walk &t, int warps)
{
    __syncwarp();
    if (lane_now() == 0 && !own().lost) /* or its mates might be trays behind */
        barrier_arrive_times(shared_address(&own().act_tile_empty[t.place]), warps);
    advance(t);
}

/* Share of `all` arrivals at a barrier that one of `users` warps makes, of which it is number `i`.
 */
static __device__ __forceinline__ int arrivals_of(int all, int users, int i)
{
    const int each = small_quotient(all, users);
    return each + (i == 0 ? all - each * users : 0);
}

/* ---- a warp's part ----------------------------------------------------------------------------
 */

/* The panel of row groups from `group` on of the task at hand, and activation rows. Both are found
 * anew where they are wanted: what lived beside the sums would be kept in local memory. */
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

/* A lane's four sums of a tile, as the op gets them: of row groups `group` and the next, column
 * l / 4 of each, and of activation rows `row` and the next. */
struct panel_lane {
    float sums[2][2]; /* (row group, row) */
    int group;        /* of the task */
    int row;
    int tile;    /* the first row of the tile */
    int column;  /* of COLUMN_GROUPS row groups */
    bool last;   /* these two row groups are the column's last; its others came just before */
    int rows;    /* of the epoch */
    u64 best[2]; /* of its column, of each row: the head's, kept from one pair to the next */
};

/* The column of the task's output that a lane has of its row group h. */
static __device__ __forceinline__ int column_of(const machine &m, const panel_lane &p, int h)
{
    return (p.group + h) * MGL_ROW_GROUP + (m.lane >> 2);
}

/* The sum over the lanes that have other columns of the same rows. */
static __device__ __forceinline__ float sum_of_columns(float value)
{
#pragma unroll
    for (int offset = 4; offset < 32; offset *= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
    return value;
}

/* One value of a region that is not flagged. */
static __device__ __forceinline__ void store_at(u8 *at, int dtype, float value)
{
    if (dtype == DTYPE_F32)
        *(float *)at = value;
    else
        *(u16 *)at = (u16)pack_pair(dtype, value, 0.0f);
    delay();
}

/* The same where there is such an element (`real`), without a branch. */
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

/* Values of two neighbouring rows, of one row group's columns, to a region of 16 bits: turned, so
 * that a lane has two neighbouring columns of row l / 4 of the tile. The whole warp. */
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

/* Tiles of a warp's sums, in the order of activation rows, of a team's warp that has two tiles of
 * weight rows those of both in turn. Some of them at a time stand in shared memory: behind the last
 * panel of a task in the trays, which nobody needs any more, all of them if they have room; else in
 * own().partial, pass by pass. */
enum {
    TILE_SUMS = 4 * 32, /* floats of a tile */
    ALL_TILES = MGL_WARPGROUPS || TEAM_HALVES == 2 ? ROW_TILES : 2 * ROW_TILES,
    PARTIAL_FIT = PARTIALS / (MGL_WARPS * TILE_SUMS),
    ACT_TILES_FIT = ACT_TILES * ACT_TILE_BYTES / (MGL_WARPS * TILE_SUMS * 4),
    PARTIAL_TILES = PARTIAL_FIT < ALL_TILES ? PARTIAL_FIT : ALL_TILES,
    LAST_TILES = ACT_TILES_FIT < ALL_TILES ? ACT_TILES_FIT : ALL_TILES
};
static_assert(PARTIAL_FIT >= 1 && ACT_TILES_FIT >= 1, "a pass has a tile at least");

/* Some of the tiles: of each warp `count` from number `first` on, at byte `at` of the block's
 * memory: (warp, tile, TILE_SUMS) floats. */
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

/* Adds to a lane's sums what a warp has left of tile n of a pass. */
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

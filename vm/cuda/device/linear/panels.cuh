/*
 * Panels: products of the second list. Weights and activations are both whole operands of tensor
 * cores.
 *
 * A task goes through its row groups panel by panel, and through a panel in the order of the tape's
 * k blocks, which is that of the trays. Who multiplies is either teams of warps (teams.cuh) or
 * warpgroups (warpgroups.cuh). Where a panel has fewer row groups than they have room for, some
 * share their k blocks, in turn.
 *
 * Sums stay in registers until the panel's end. Then they stand in shared memory, all at once or
 * pass by pass, where those that share k blocks are added up, the first first, and the op makes
 * outputs of them: a lane has four, of two columns and two rows. So all sums are made in one order,
 * and a row's does not depend on the other rows.
 *
 * What a task keeps of its rows (panel_notes): what scales them, and of each column of four row
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
struct panel_note {
    float value; /* the sum of squares, or the best logit, */
    int id;      /* and its token */
};

static __device__ __forceinline__ float *panel_scales() /* (PANEL_ROWS) */
{
    return (float *)activation_buffer();
}

static __device__ __forceinline__ panel_note *panel_notes() /* (PANEL_PARTS, PANEL_ROWS) */
{
    return (panel_note *)(activation_buffer() + PANEL_ROWS * sizeof(float));
}

static __device__ __forceinline__ void clear_notes(const machine &m, panel_note nothing)
{
    for (int i = thread_of(m); i < PANEL_PARTS * PANEL_ROWS; i += (int)THREADS)
        panel_notes()[i] = nothing;
}

/* What scales each row: 1 / sqrt(sum(s) / hidden + eps). A warp's rows, some at a time, so that
 * their loads are on their way together: 16 bytes each, where all rows have whole ones. */
static __device__ __forceinline__ void note_scales(const machine &m, const mgl_device_operand &s,
                                                   int rows)
{
    enum { AT_ONCE = 8 };
    const int parts = s.count[1];
    const bool whole = (((size_t)s.at | (size_t)(s.stride0 * 4) | (size_t)(parts * 4)) & 15) == 0;
#pragma unroll 1
    for (int first = m.warp * AT_ONCE; first < rows; first += MGL_WARPS * AT_ONCE) {
        float sums[AT_ONCE] = {};
        if (whole) {
#pragma unroll 1
            for (int i = m.lane * 4; i < parts; i += 128)
#pragma unroll
                for (int r = 0; r < AT_ONCE; r++) {
                    const float4 four = *(const float4 *)(row_of(s, min(first + r, rows - 1)) + i);
                    sums[r] += (four.x + four.y) + (four.z + four.w);
                }
        } else {
#pragma unroll 1
            for (int i = m.lane; i < parts; i += 32)
#pragma unroll
                for (int r = 0; r < AT_ONCE; r++)
                    sums[r] += row_of(s, min(first + r, rows - 1))[i];
        }
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            const float sum = warp_sum(sums[r]);
            if (m.lane == 0 && first + r < rows)
                panel_scales()[first + r] =
                    rsqrtf(sum * (1.0f / MGL_HIDDEN) + __uint_as_float(MGL_EPS_BITS));
        }
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

/* Waits for a phase of a barrier that others complete soon, without the sleep of barrier_passed. */
static __device__ __forceinline__ void wait_phase(u64 *barrier, u32 parity)
{
    while (!barrier_tested(barrier, parity) && !own().lost)
        ; /* the loader has a clock in its waits */
}

/* The same of all lanes alike, so that the compiler knows that they stay together. */
static __device__ __forceinline__ void wait_phase_alike(u64 *barrier, u32 parity)
{
    while (!__all_sync(0xFFFFFFFFu, barrier_tested(barrier, parity)))
        if (__any_sync(0xFFFFFFFFu, own().lost))
            break;
}

/* Waits until so many pages from `page` on have landed: a lane for each. */
static __device__ __forceinline__ void wait_pages(machine &m, u32 page, int count)
{
    const u32 since = trace_clock();
#pragma unroll 1
    for (int i = lane_now(); i < count; i += 32)
        wait_phase(&own().page_full[(page + (u32)i) % PANEL_PAGES],
                   (page + (u32)i) / PANEL_PAGES & 1);
    __syncwarp();
    trace_starved(m, since);
}

/* The warp lets go of so many pages from `page` on, when they have landed. */
static __device__ __forceinline__ void free_pages(machine &m, u32 page, int count)
{
    wait_pages(m, page, count);
#pragma unroll 1
    for (int i = lane_now(); i < count; i += 32)
        barrier_arrive(&own().page_empty[(page + (u32)i) % PANEL_PAGES]);
}

/* Waits until a tray is there: its bytes from tray_memory() on. */
static __device__ __forceinline__ u32 wait_tray(const tray_walk &t)
{
    const u32 since = trace_clock();
    wait_phase_alike(&own().tray_full[t.place], parity_of(t));
    trace_tray(since);
    return (u32)(t.place * TRAY_BYTES);
}

/* Lets go of it, as so many warps, and goes on to the team's next one. */
static __device__ __forceinline__ void free_tray(tray_walk &t, int warps)
{
    __syncwarp();
    if (is_first_lane())
        barrier_arrive_times(&own().tray_empty[t.place], warps);
    advance(t);
}

/* ---- a warp's part ----------------------------------------------------------------------------
 */

/* A number that all lanes have alike, and that the compiler then knows to be so: products of a
 * warpgroup stand on no path that lanes might take apart. */
static __device__ __forceinline__ int same_in_all(int value)
{
    return MGL_WARPGROUPS ? __shfl_sync(0xFFFFFFFFu, value, 0) : value;
}

/* The panel of row groups from `group` on of the task at hand, and activation rows. Both are found
 * anew where they are wanted: what lived beside the sums would be kept in local memory. */
static __device__ __forceinline__ panel_shape shape_at(const machine &m, int group)
{
    return panel_shape_of(segment(m, 0).groups - group);
}

static __device__ __forceinline__ int panel_rows(const machine &m)
{
    return task_of(m)->op == OP_SCALED_HEAD ? own().tile_count * PANEL_TILE : rows_of(m);
}

/* ---- outputs ----------------------------------------------------------------------------------
 */

/* A lane's four sums of a tile, as the op gets them: of row groups `group` and the next, column
 * l / 4 of each, and of activation rows `row` and the next. */
struct panel_lane {
    float sums[2][2]; /* (row group, row) */
    int group;        /* of the task */
    int row;
    int tile;   /* the first row of the tile */
    int column; /* of COLUMN_GROUPS row groups */
    int rows;   /* of the epoch */
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
static __device__ __forceinline__ void store_element(const view &v, int r, int column, float value)
{
    u8 *at = element_of(v, r, column);
    if (v.dtype == DTYPE_F32)
        *(float *)at = value;
    else
        *(u16 *)at = (u16)pack_pair(v.dtype, value, 0.0f);
    delay();
}

/* Values of two neighbouring rows, of one row group's columns, to a region of 16 bits: turned, so
 * that a lane has two neighbouring columns of row l / 4 of the tile. The whole warp. */
static __device__ __forceinline__ void store_turned(const machine &m, const paged_view &v,
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
    TRAYS_FIT = TRAYS * TRAY_BYTES / (MGL_WARPS * TILE_SUMS * 4),
    PARTIAL_TILES = PARTIAL_FIT < ALL_TILES ? PARTIAL_FIT : ALL_TILES,
    LAST_TILES = TRAYS_FIT < ALL_TILES ? TRAYS_FIT : ALL_TILES
};
static_assert(PARTIAL_FIT >= 1 && TRAYS_FIT >= 1, "a pass has a tile at least");

/* Some of the tiles: of each warp `count` from number `first` on, at byte `at` of the block's
 * memory: (warp, tile, TILE_SUMS) floats. */
struct panel_pass {
    u32 at;
    int first, count;
};

static __device__ __forceinline__ panel_pass pass_number(bool last, int pass)
{
    if (last)
        return {(u32)(tray_memory() - block_memory), pass * LAST_TILES, LAST_TILES};
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

/*
 * Panels: products of the second list. Weights and activations are both whole operands of tensor
 * cores: 16 weight rows, which are two row groups, by 8 activation rows.
 *
 * A task goes through its row groups panel by panel, and through a panel in the order of the tape's
 * k blocks, which is that of the trays. Warps go in pairs. A pair has four row groups of the panel,
 * two tiles of 16 rows; its first warp has the activation rows of even tiles of 8, its second one
 * those of odd tiles. Where a panel has fewer row groups than the pairs have, some pairs share
 * their k blocks, in turn.
 *
 * In lane l an MMA's operands are words of the 16 bytes that stand at row l / 4 and quarter l % 4
 * of a block, of the weights and of the activations alike: words 0 and 1 make one MMA, words 2 and
 * 3 another. Which k that is does not matter, since both sides have the same.
 *
 * Sums stay in registers until the panel's end. Then they stand in shared memory, all at once or
 * pass by pass, where the pairs that share k blocks add them up, first pair first, and the op makes
 * outputs of them: a lane has four, of two columns and two rows. So all sums are made in one order,
 * and a row's does not depend on the other rows.
 *
 * What a task keeps of its rows (panel_notes): what scales them, and of each column of pairs the
 * squares of what it weighed, or the best of its logits.
 */
#ifndef MGL_DEVICE_LINEAR_PANELS_CUH
#define MGL_DEVICE_LINEAR_PANELS_CUH

#include "vm/cuda/device/linear/finish.cuh"
#include "vm/cuda/device/linear/panel_shape.cuh"

#if MGL_PANELS

/* ---- notes of a task --------------------------------------------------------------------------
 */

/* Of one row and one column of pairs. */
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

/* Waits until pages [first, end) of those from the warp's on have landed: a lane for each. */
static __device__ __forceinline__ void wait_pages(machine &m, int first, int end)
{
    const u32 since = trace_clock(), page = own().page_at[warp_now()];
#pragma unroll 1
    for (int i = first + lane_now(); i < end; i += 32) {
        const u32 n = page + (u32)i;
        wait_phase(&own().page_full[n % PANEL_PAGES], n / PANEL_PAGES & 1);
    }
    __syncwarp();
    trace_starved(m, since);
}

/* Lets go of the warp's next so many pages, which have landed. */
static __device__ __forceinline__ void free_pages(int count)
{
    const int warp = warp_now();
    const u32 page = own().page_at[warp];
    __syncwarp();
#pragma unroll 1
    for (int i = lane_now(); i < count; i += 32)
        barrier_arrive(&own().page_empty[(page + (u32)i) % PANEL_PAGES]);
    own().page_at[warp] = page + (u32)count; /* every lane: whoever reads it next has written it */
    __syncwarp();
}

/* Waits until a tray is there: its bytes from tray_memory() on. */
static __device__ __forceinline__ u32 wait_tray(u32 tray)
{
    const u32 at = tray % TRAYS;
    wait_phase(&own().tray_full[at], tray / TRAYS & 1);
    __syncwarp();
    return at * TRAY_BYTES;
}

static __device__ __forceinline__ void free_tray(u32 tray)
{
    __syncwarp();
    if (is_first_lane())
        barrier_arrive(&own().tray_empty[tray % TRAYS]);
}

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

static __device__ __forceinline__ volatile panel_plan &plan_of(int warp)
{
    return own().plan[warp];
}

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

/* Notes where the warp's row groups stand, at the first of the k blocks at hand. */
static __device__ __forceinline__ void find_weights()
{
    const int warp = warp_now(), lane = lane_now();
    volatile panel_plan &plan = plan_of(warp);
    __syncwarp();
    if (lane < MGL_PANEL_OWN_GROUPS)
        plan.at[lane] =
            (int)((own().page_at[warp] + (u32)plan.page[lane]) % PANEL_PAGES * MGL_PAGE) +
            plan.byte[lane];
    __syncwarp();
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

/* A lane's four sums of a tile, as the op gets them: of row groups `group` and the next, column
 * l / 4 of each, and of activation rows `row` and the next. */
struct panel_lane {
    float sums[2][2]; /* (row group, row) */
    int group;        /* of the task */
    int row;
    int tile;   /* the first row of the tile */
    int column; /* of pairs */
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

/* Tiles of a warp: those of its first tile of weight rows, then those of its second. Some of them
 * at a time stand in shared memory: behind the last panel of a task in the trays, which nobody
 * needs any more, all of them if they have room; else in own().partial, pass by pass. */
enum {
    TILE_SUMS = 4 * 32, /* floats of a tile */
    ALL_TILES = 2 * PANEL_TILES,
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
    for (int k = 0; k < s.shares; k++) {
        const int warp = (k * s.columns + part.column) * 2 + part.half;
        const float *from = tile_memory(pass, warp, n) + m.lane;
#pragma unroll
        for (int i = 0; i < 4; i++)
            p.sums[i / 2][i % 2] += from[i * 32];
    }
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

/* ---- a task -----------------------------------------------------------------------------------
 */

/* All panels of a task, whose notes are ready. Behind it all warps' outputs and notes are there. */
template <class LEAVE>
static __device__ __forceinline__ void run_panels(machine &m, const LEAVE &leave)
{
    wait_tray(own().tray_at[m.warp]);
    if (thread_of(m) == 0)
        own().pending = 0;
    trace_input(m);
#pragma unroll 1
    for (int group = 0;; group += PANEL_GROUPS) {
        panel_sums sums = {};
        if (begin_panel(group))
            multiply_panel<true>(m, sums);
        else
            multiply_panel<false>(m, sums);
        const bool last = group + PANEL_GROUPS >= segment(machine_now(), 0).groups;
        leave_panel(group, last, sums, leave);
        if (last)
            break;
        consumer_barrier(); /* the next panel's notes may be another warp's */
    }
    fence_bulk_writes(); /* the next task's activations come where sums stood */
    consumer_barrier();
}

#endif

#endif

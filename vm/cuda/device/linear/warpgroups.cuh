/*
 * Panels by warpgroups (panels.cuh), which sm_90a has: 64 weight rows by 16, 32 or 64 activation
 * rows an instruction, which reads the activations from shared memory, where the copies left them,
 * while the warps do something else (PTX ISA, asynchronous warpgroup level matrix instructions).
 *
 * A warpgroup has eight row groups of the panel, a warp two of them: 16 weight rows, in registers,
 * and all activation rows. So a panel of up to eight row groups is one warpgroup's; the others have
 * their share of its k blocks, in turn, a few at a time.
 *
 * Activations lie as the instruction wants them: rows of 64 bytes, of which eight are an atom whose
 * quarters are swizzled (schedule/pages.h). A lane needs of its weight rows l / 4 and l / 4 + 8 the
 * word l % 4 of each quarter, while a block has its quarters one behind the other. It loads the
 * four matrices of a row group by one instruction, each row from another quarter, so that no two
 * rows read from the same banks, and then puts the quarters in order.
 *
 * Rows are as many as an instruction takes: what is multiplied beyond the task's rows, or by a warp
 * beyond the panel's row groups, is whatever lies there, and nobody takes its sums.
 */
#ifndef MGL_DEVICE_LINEAR_WARPGROUPS_CUH
#define MGL_DEVICE_LINEAR_WARPGROUPS_CUH

#include "vm/cuda/device/linear/panels.cuh"

#if MGL_PANELS && MGL_WARPGROUPS

static_assert(MGL_WEIGHT == DTYPE_BF16, "the instructions are those of bf16");

/* ---- products ---------------------------------------------------------------------------------
 */

/* This warp's part of a panel. */
struct panel_part {
    bool works; /* it has one */
    int pair;   /* of row groups of the panel: two, or the last one alone, or none */
    int share;  /* of the warpgroups that share its k blocks */
};

static __device__ __forceinline__ panel_part panel_part_of(const machine &m, const panel_shape &s)
{
    const int group = m.warp / MGL_WARPGROUP_WARPS, share = small_quotient(group, s.columns);
    return {share < s.shares,
            (group - share * s.columns) * MGL_WARPGROUP_WARPS + m.warp % MGL_WARPGROUP_WARPS,
            share};
}

/* The warp whose sums are those of a pair of row groups and a share of the k blocks. */
static __device__ __forceinline__ int warp_of_sums(const panel_shape &s, int pair, int share)
{
    return share * s.columns * MGL_WARPGROUP_WARPS + pair;
}

/* Blocks of the warp's two row groups as they come from shared memory. */
struct loaded_block {
    u32 words[WARP_GROUPS][4];
};

/* Unit `unit` of a page, of row groups that stand `next` bytes behind one another. */
static __device__ __forceinline__ void load_unit(loaded_block (&to)[MGL_WARPGROUP_BLOCKS], u32 from,
                                                 u32 next, int unit)
{
    const u32 first = from + (u32)(unit * MGL_WARPGROUP_BLOCKS * MGL_BLOCK_BYTES);
#pragma unroll
    for (int i = 0; i < MGL_WARPGROUP_BLOCKS; i++)
#pragma unroll
        for (int g = 0; g < WARP_GROUPS; g++)
            load_matrices(to[i].words[g], first + (u32)(i * MGL_BLOCK_BYTES) + (u32)g * next);
}

/* Where a lane's row of the matrices is in a block: matrix l / 8 has row l % 8 of another quarter
 * for each two rows. */
static __device__ __forceinline__ u32 matrix_row(int lane)
{
    return (u32)(lane % 8 * MGL_BLOCK_ROW_BYTES +
                 ((lane / 8) ^ (lane % 8 / 2)) * MGL_PAGE_QUARTER_BYTES);
}

/* A block as operands: of the first 16 columns, and of the others. */
struct weight_block {
    u32 a[2][4];
};

/* Word i of a row is that of quarter i ^ (l / 8). */
static __device__ __forceinline__ void arrange(const loaded_block &from, int lane, weight_block &to)
{
    const bool odd = lane / 8 & 1, high = lane / 16 & 1;
#pragma unroll
    for (int g = 0; g < WARP_GROUPS; g++) {
        const u32(&w)[4] = from.words[g];
        const u32 first = odd ? w[1] : w[0], second = odd ? w[0] : w[1];
        const u32 third = odd ? w[3] : w[2], fourth = odd ? w[2] : w[3];
        to.a[0][g] = high ? third : first;
        to.a[0][2 + g] = high ? fourth : second;
        to.a[1][g] = high ? first : third;
        to.a[1][2 + g] = high ? second : fourth;
    }
}

/* Adds one k block to the sums of ROWS rows. `x`: see operand_word. */
template <int ROWS>
static __device__ __forceinline__ void multiply_block(const weight_block &w, u32 x,
                                                      float (&sums)[ROWS / 2])
{
    enum { AT_ONCE = ROWS < 64 ? ROWS : 64, HALF = MGL_PANEL_ROW_BYTES / 2 };
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int row = 0; row < ROWS; row += AT_ONCE)
            warpgroup_multiply<AT_ONCE>(
                sums + row / 2, w.a[half],
                x + (u32)((row * MGL_PANEL_ROW_BYTES + half * HALF) / MGL_GRANULE_BYTES));
}

enum { UNIT = MGL_WARPGROUP_BLOCKS }; /* k blocks */
static_assert(ACT_TILE_BLOCKS % UNIT == 0 && TURN_BLOCKS == UNIT,
              "trays and turns have whole units");

/* Loads the weights of unit `unit`. `from`: where the warp's row groups begin on the pages at hand,
 * on page `on_page` of the piece; found anew when pages are turned. `rows`: where they would begin
 * on the first place. */
static __device__ __forceinline__ void load_next(machine &m, page_walk &walk,
                                                 loaded_block (&to)[UNIT], u32 rows, u32 next_group,
                                                 int unit, int on_page, u32 &from)
{
    if (unit >= walk.end) {
        turn_pages(m, walk, unit);
        from = rows + (u32)(__shfl_sync(0xFFFFFFFFu, walk.at, on_page) * MGL_PAGE);
    }
    load_unit(to, from, next_group, unit - walk.end + walk.step);
    if (unit + 1 >= walk.end)
        look_ahead(walk);
}

/* What a warp keeps of its way through trays, so that it makes none of it anew at each. */
struct act_tile_wait {
    u32 memory, full, empty; /* the first place's bytes and barriers */
    bool frees; /* the lane does, of trays: one lane; none once a tray has not come, since the
                     loader has given up: its mates might be trays behind */
    bool ready; /* the next tray has been seen to have landed */
};

static __device__ __forceinline__ act_tile_wait act_tile_wait_of(const act_tile_walk &t, bool frees)
{
    const u32 full = kept(shared_address(own().act_tile_full));
    const u32 empty = (u32)((u8 *)own().act_tile_empty - (u8 *)own().act_tile_full);
    return {kept(shared_address(act_tile_memory())), full, full + empty, frees && !own().lost,
            barrier_tested_at(full + (u32)t.place * 8, parity_of(t))};
}

static __device__ __forceinline__ void wait_ready_act_tile(act_tile_wait &way,
                                                           const act_tile_walk &t)
{
    const u32 full = way.full + (u32)t.place * 8;
    if (__all_sync(0xFFFFFFFFu, way.ready) || (MGL_TRACE && has_passed(full, parity_of(t))))
        return; /* a look at the clock takes longer than this */
    const u32 since = trace_clock();
    way.frees &= wait_phase(full, parity_of(t));
    trace_act_tile(since);
}

/* Looks for the tray behind the one at hand, while something else is on its way. */
static __device__ __forceinline__ void look_for_act_tile(act_tile_wait &way, act_tile_walk t)
{
    advance(t);
    way.ready = barrier_tested_at(way.full + (u32)t.place * 8, parity_of(t));
}

static __device__ __forceinline__ void free_ready_act_tile(const act_tile_wait &way,
                                                           act_tile_walk &t, int arrivals)
{
    __syncwarp();
    if (way.frees)
        barrier_arrive_times(way.empty + (u32)t.place * 8, arrivals);
    advance(t);
}

/* All k blocks of a panel, in units; a panel has whole ones, and so have pieces and trays, which
 * are powers of 2 besides. While a warp's products are on their way it loads the next unit's
 * weights, and looks for what it will wait for next. A warp that has no row groups multiplies the
 * panel's last one, whose sums nobody takes: its warpgroup multiplies as one.
 *
 * Products that not all lanes of a warp come to at once never end, and no watchdog sees it. A lane
 * that has waited or arrived alone may be behind the others. The assembler joins the lanes before a
 * wait for products; it does not before products, and leaves out __syncwarp() where it holds the
 * lanes to be together. So a wait stands before the first products of each tray. */
template <int ROWS>
static __device__ __forceinline__ void multiply_panel(machine &m, const panel_shape &s,
                                                      float (&sums)[ROWS / 2])
{
    const panel_part part = panel_part_of(m, s);
    const int warp = warp_now(), lane = lane_now(), turns = same_in_all(s.shares);
    const act_tile_shape act_tile = act_tile_shape_of(panel_rows(m));
    const int kblocks = same_in_all(segment(m, 0).kblocks), units = kblocks / UNIT;
    const int most = same_in_all(act_tile.blocks) / UNIT;
    const int users = s.columns * MGL_WARPGROUP_WARPS;
    const int arrivals = arrivals_of(MGL_WARPS, users, warp - small_quotient(warp, users) * users);
    const u32 stride = (u32)same_in_all((int)act_tile.stride) / MGL_GRANULE_BYTES;
    const u32 phases = own().act_tile_used[warp], page = own().page_at[warp];
    /* its row groups, or the panel's last one: on which page of a piece, and where on that */
    const int first = min(part.pair * WARP_GROUPS, s.groups - 1), piece = s.piece * MGL_BLOCK_BYTES;
    const int before = small_quotient(first, s.per);
    const u32 rows =
        shared_address(page_memory()) + (u32)((first - before * s.per) * piece) + matrix_row(lane);
    const u32 next_group = first + 1 < s.groups ? (u32)piece : 0;
    const int on_page = same_in_all(before); /* of a piece */
    page_walk walk = page_walk_of(s, page);
    act_tile_walk act_tiles =
        act_tile_walk_of(turns, same_in_all(part.works ? part.share : 0), phases);
    act_tile_wait way = act_tile_wait_of(act_tiles, lane == 0);
    loaded_block next[UNIT] = {};
    u32 from = 0;
    int unit = same_in_all(part.works ? part.share * most : units);
    if (unit < units)
        load_next(m, walk, next, rows, next_group, unit, on_page, from);
#pragma unroll 1
    while (unit < units) {
        wait_ready_act_tile(way, act_tiles);
        const u32 x = operand_word(way.memory + (u32)(act_tiles.place * ACT_TILE_BYTES));
        warpgroup_wait(); /* for none: it joins the lanes */
        const int end = min(unit + most, units);
#pragma unroll 1
        for (u32 at = x; unit < end; at += UNIT * stride) {
            weight_block w[UNIT];
#pragma unroll
            for (int i = 0; i < UNIT; i++) {
                arrange(next[i], lane, w[i]);
#pragma unroll
                for (int n = 0; n < 8; n++)
                    warpgroup_ready(w[i].a[n / 4][n % 4]);
            }
            warpgroup_fence();
#pragma unroll
            for (int i = 0; i < UNIT; i++)
                multiply_block<ROWS>(w[i], at + (u32)i * stride, sums);
            warpgroup_commit();
            unit++;
            const int coming = unit < end ? unit : unit + (turns - 1) * most;
            if (coming < units)
                load_next(m, walk, next, rows, next_group, coming, on_page, from);
            if (unit == end)
                look_for_act_tile(way, act_tiles);
            warpgroup_wait();
        }
        unit += (turns - 1) * most;
        free_ready_act_tile(way, act_tiles, arrivals);
    }
#pragma unroll
    for (int i = 0; i < ROWS / 2; i++)
        warpgroup_settled(sums[i]);
    end_pages(m, walk, units, page);
    own().act_tile_used[warp] =
        phases_behind(phases, lane, act_tiles_of(kblocks, act_tile.blocks), turns);
}

/* ---- outputs ----------------------------------------------------------------------------------
 */

/* Stores the warp's tiles of a pass where others find them. */
template <int ROWS>
static __device__ __forceinline__ void write_pass(const machine &m, const panel_pass &pass,
                                                  int rows, const float (&sums)[ROWS / 2])
{
#pragma unroll
    for (int k = 0; k < ROWS / PANEL_TILE; k++) {
        const int n = k - pass.first;
        if (n < 0 || n >= pass.count || k * PANEL_TILE >= rows)
            continue;
        float *to = tile_memory(pass, m.warp, n) + m.lane;
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[i * 32] = sums[k * 4 + i];
    }
}

/* Adds up what the warpgroups that share k blocks have of tile n of a pass. */
static __device__ __forceinline__ void fetch_tile(const machine &m, const panel_pass &pass,
                                                  const panel_shape &s, int pair, int n,
                                                  panel_lane &p)
{
    p.sums[0][0] = p.sums[0][1] = p.sums[1][0] = p.sums[1][1] = 0.0f;
    for (int share = 0; share < s.shares; share++)
        add_tile(m, pass, warp_of_sums(s, pair, share), n, p);
}

/* Outputs of the tiles of a pass, of the panel from row group `group` on: leave(lane) makes those
 * of one. A warp has the tiles of one column and eight activation rows, and then those of others.
 */
template <class WRITE>
static __device__ __forceinline__ void write_tiles(const machine &m, int group, bool last,
                                                   int number, const WRITE &leave)
{
    const panel_shape s = shape_at(m, group);
    const panel_pass pass = pass_number(last, number);
    const int rows = panel_rows(m), columns = (s.groups + COLUMN_GROUPS - 1) / COLUMN_GROUPS;
    const int tiles = min(pass.count, (rows + PANEL_TILE - 1) / PANEL_TILE - pass.first);
    static_assert(COLUMN_GROUPS == 2 * WARP_GROUPS, "a warp goes through both pairs of a column");
    panel_lane p = {};
#pragma unroll 1
    for (int i = m.warp * 2; i < columns * tiles * 2; i += i % 2 ? 2 * MGL_WARPS - 1 : 1) {
        const int n = small_quotient(i / 2, columns), column = i / 2 - n * columns;
        const int pair = column * 2 + i % 2;
        if (pair * WARP_GROUPS >= s.groups)
            continue;
        fetch_tile(m, pass, s, pair, n, p);
        p.group = group + pair * WARP_GROUPS;
        p.tile = (pass.first + n) * PANEL_TILE;
        p.row = p.tile + (m.lane & 3) * 2;
        p.column = column;
        p.last = i % 2 == 1 || (pair + 1) * WARP_GROUPS >= s.groups;
        p.rows = rows;
        leave(p);
    }
}

/* Whether each warp makes outputs of its own sums: they are whole, and the op knows no others. */
static __device__ __forceinline__ bool writes_own(const machine &m, int group)
{
    return task_of(m)->op == OP_RMS_SWIGLU && shape_at(m, group).shares == 1;
}

/* The sums of the panel from row group `group` on. A warp's own: leave.own<ROWS>(group, sums) makes
 * outputs of them, and none waits for another. Else pass by pass: leave(group, last, pass) makes
 * outputs of what stands in shared memory. */
template <int ROWS, class WRITE>
static __device__ __forceinline__ void
write_panel(int group, bool last, const float (&sums)[ROWS / 2], const WRITE &leave)
{
    if (same_in_all(writes_own(machine_now(), group))) {
        const machine m = machine_now();
        const panel_shape s = shape_at(m, group);
        const panel_part part = panel_part_of(m, s);
        if (part.works && part.pair * WARP_GROUPS < s.groups)
            leave.template own<ROWS>(m, group + part.pair * WARP_GROUPS, sums);
        __syncwarp();
        return;
    }
    if (last)
        consumer_barrier(); /* all warps have let go of the trays */
#pragma unroll 1
    for (int number = 0;; number++) {
        const machine m = machine_now();
        const int rows = panel_rows(m);
        const panel_pass pass = pass_number(last, number);
        if (pass.first * PANEL_TILE >= rows)
            return;
        write_pass<ROWS>(m, pass, rows, sums);
        consumer_barrier();
        leave(group, last, number);
        consumer_barrier();
    }
}

/* ---- a panel ----------------------------------------------------------------------------------
 */

template <int ROWS, class WRITE>
static __device__ __forceinline__ void run_panel_of(machine &m, int group, bool last,
                                                    const WRITE &leave)
{
    float sums[ROWS / 2] = {};
    multiply_panel<ROWS>(m, shape_at(machine_now(), group), sums);
    write_panel<ROWS>(group, last, sums, leave);
}

/* The panel from row group `group` on: its products and outputs. */
template <class WRITE>
static __device__ __forceinline__ void run_panel(machine &m, int group, bool last,
                                                 const WRITE &leave)
{
    const int rows = same_in_all(panel_rows(machine_now()));
    if (rows <= 16)
        run_panel_of<16>(m, group, last, leave);
    else if (PANEL_ROWS == 32 || rows <= 32)
        run_panel_of<32>(m, group, last, leave);
    else if (PANEL_ROWS == 64 || rows <= 64)
        run_panel_of<64>(m, group, last, leave);
    else
        run_panel_of<128>(m, group, last, leave);
}

#endif

#endif

/*
 * Panels by warpgroups (panels.cuh) with wgmma, the asynchronous warpgroup-level matrix
 * instructions of sm_90a (PTX ISA). An instruction multiplies 64 weight rows by 16, 32 or 64
 * activation rows. It reads the activations from shared memory, where bulk copies have written
 * them, while the warps continue.
 *
 * A warpgroup multiplies eight row groups of the panel. Each of its warps has two of them (16
 * weight rows, in registers) and all activation rows. A panel of up to eight row groups needs one
 * warpgroup; the other warpgroups then share its k blocks in turn, a few at a time (split-K).
 *
 * Activations have the layout that the instruction requires: rows of 64 bytes; eight rows are an
 * atom with swizzled quarters (schedule/pages.h). Lane l needs word l % 4 of each quarter of weight
 * rows l / 4 and l / 4 + 8, but in a block the quarters are stored one after the other. ldmatrix
 * loads the four matrices of a row group. Each row is taken from another quarter, which avoids bank
 * conflicts; `arrange` then restores the order of the quarters.
 *
 * Scaled weights: the 16 bytes of a lane hold one quarter of each part. The lane dequantizes its
 * codes (panel_weights.cuh). Then the four lanes of a row transpose their words (quads_transposed):
 * each lane gets its word of each quarter. A warp does this after the products of the previous
 * unit. Another warpgroup, if there is one, can multiply meanwhile.
 *
 * An instruction always multiplies its full number of rows. Products of rows past the end of the
 * task, or of warps past the last row group of the panel, use arbitrary data. Their sums are
 * discarded.
 */
#ifndef MGL_DEVICE_LINEAR_WARPGROUPS_CUH
#define MGL_DEVICE_LINEAR_WARPGROUPS_CUH

#include "vm/cuda/device/linear/panel_weights.cuh"

#if MGL_PANELS && MGL_WARPGROUPS

static_assert(MGL_WEIGHT == DTYPE_BF16, "the instructions are those of bf16");

/* ---- products ---------------------------------------------------------------------------------
 */

/* This warp's part of a panel. */
struct panel_part {
    bool works; /* the warp has a part */
    int pair;   /* number of the pair of row groups; may be incomplete or past the end */
    int share;  /* number of the warpgroup among those that share the k blocks */
};

static __device__ __forceinline__ panel_part panel_part_of(const machine &m, const panel_shape &s)
{
    const int group = m.warp / MGL_WARPGROUP_WARPS, share = small_quotient(group, s.columns);
    return {share < s.shares,
            (group - share * s.columns) * MGL_WARPGROUP_WARPS + m.warp % MGL_WARPGROUP_WARPS,
            share};
}

/* The warp that computes the sums of a pair of row groups for a share of the k blocks. */
static __device__ __forceinline__ int warp_of_sums(const panel_shape &s, int pair, int share)
{
    return share * s.columns * MGL_WARPGROUP_WARPS + pair;
}

/* Blocks of the warp's two row groups, as loaded from shared memory. */
struct loaded_block {
    u32 words[WARP_GROUPS][4];
};

/* Byte offset in a block of the row that a lane loads for ldmatrix. Matrix l / 8 takes row l % 8;
 * the quarter changes every two rows. */
static __device__ __forceinline__ u32 matrix_row(int lane)
{
    return (u32)(lane % 8 * MGL_BLOCK_ROW_BYTES +
                 ((lane / 8) ^ (lane % 8 / 2)) * MGL_PAGE_QUARTER_BYTES);
}

/* A block as MMA operands: the first 16 columns, then the other 16. */
struct weight_block {
    u32 a[2][4];
};

/* Restores the order of the quarters: word i of a row comes from quarter i ^ (l / 8). */
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

/* Multiplies one k block by ROWS activation rows and adds the products to the sums. `x`: see
 * operand_word. */
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

enum { UNIT = MGL_WARPGROUP_BLOCKS }; /* k blocks of activations */
static_assert(ACT_TILE_BLOCKS % UNIT == 0 && TURN_BLOCKS == UNIT,
              "activation tiles and turns consist of whole units");

/* Loads the weights of a warp, of format F, unit by unit. `loaded`: the words that load() reads for
 * one k block. arranged() converts these words to MMA operands. */
template <class F> struct unit_source;

/* Unscaled weights are arranged after the products of the previous unit. */
template <> struct unit_source<unscaled_weights> {
    typedef loaded_block loaded;
    enum { CONVERTS = 0 }; /* load() converts the weights */

    __device__ __forceinline__ unit_source(const machine &, int, int, int) {}

    /* The address of this lane's bytes of the first block of page slot 0. */
    static __device__ __forceinline__ u32 begin(int lane)
    {
        return shared_address(page_memory()) + matrix_row(lane);
    }

    /* Loads unit `unit`. `from`: this lane's bytes of the unit's first block. The row groups are
     * `next` bytes apart. `coming`: the unit that is loaded next. */
    __device__ __forceinline__ void load(loaded (&to)[UNIT], u32 from, u32 next, int unit,
                                         int coming) const
    {
#pragma unroll
        for (int i = 0; i < UNIT; i++)
#pragma unroll
            for (int g = 0; g < WARP_GROUPS; g++)
                load_matrices(to[i].words[g], from + (u32)(i * MGL_BLOCK_BYTES) + (u32)g * next);
    }

    static __device__ __forceinline__ void arranged(const loaded &from, int lane, weight_block &to)
    {
        arrange(from, lane, to);
    }
};

#if MGL_SCALED

/* Transposes words among the four lanes of a row: word i of lane j becomes word j of lane i. */
static __device__ __forceinline__ uint4 quads_transposed(uint4 v, int lane)
{
    const bool odd = lane & 1, high = lane & 2;
    const u32 x = __shfl_xor_sync(0xFFFFFFFFu, odd ? v.x : v.y, 1);
    const u32 z = __shfl_xor_sync(0xFFFFFFFFu, odd ? v.z : v.w, 1);
    v = odd ? make_uint4(x, v.y, z, v.w) : make_uint4(v.x, x, v.z, z);
    const u32 a = __shfl_xor_sync(0xFFFFFFFFu, high ? v.x : v.z, 2);
    const u32 b = __shfl_xor_sync(0xFFFFFFFFu, high ? v.y : v.w, 2);
    return high ? make_uint4(a, b, v.z, v.w) : make_uint4(v.x, v.y, a, b);
}

/* load() converts scaled weights to MMA operands. */
template <class F> struct unit_source {
    typedef weight_block loaded;
    enum { CONVERTS = 1 };
    /* groups of the columns of a unit */
    enum { GROUPS = F::GROUP_COLUMNS % (UNIT * MGL_PART_COLUMNS) == 0 ? 1 : UNIT };

    weight_scales scales;
    int first, end; /* row groups of the task: the warp's first one, and the end of the panel */
    group_scale of[GROUPS][WARP_GROUPS]; /* of the unit that is loaded next */

    __device__ __forceinline__ unit_source(const machine &m, int first, int end, int unit)
        : scales(weight_scales_of<F>(m)), first(first), end(end)
    {
        ask(unit);
    }

    static __device__ __forceinline__ u32 begin(int lane)
    {
        return (u32)lane * 16; /* from page_memory() */
    }

    __device__ __forceinline__ void ask(int unit)
    {
#pragma unroll
        for (int i = 0; i < GROUPS; i++)
            ask_scales<F>(scales, unit * UNIT + i, first, end, of[i]);
    }

    __device__ __forceinline__ void load(loaded (&to)[UNIT], u32 from, u32 next, int unit,
                                         int coming)
    {
        const int part = unit * UNIT % F::PARTS;
#pragma unroll
        for (int i = 0; i < UNIT; i++)
#pragma unroll
            for (int g = 0; g < WARP_GROUPS; g++) {
                const uint4 words =
                    quads_transposed(dequantized<F>(page_memory() + from + (u32)g * next, part + i,
                                                    of[i % GROUPS][g]),
                                     lane_now());
                to[i].a[0][g] = words.x;
                to[i].a[0][2 + g] = words.y;
                to[i].a[1][g] = words.z;
                to[i].a[1][2 + g] = words.w;
            }
        if (F::ON_TAPE)
            ask(coming);
    }

    static __device__ __forceinline__ void arranged(const loaded &from, int, weight_block &to)
    {
        to = from;
    }
};

#endif

/* Loads the weights of unit `unit`; `coming`: the unit that is loaded next. `from` is the address
 * of the warp's row groups in the current piece, on its page `on_page`; it is updated when the
 * piece changes. `rows` is the same address for page slot 0. */
template <class F>
static __device__ __forceinline__ void
load_next(machine &m, page_walk &walk, unit_source<F> &source,
          typename unit_source<F>::loaded (&to)[UNIT], u32 rows, u32 next_group, int unit,
          int coming, int on_page, u32 &from)
{
    /* a turn of the walk is UNIT blocks of weights, each of F::PARTS k blocks */
    const int turn = unit / F::PARTS;
    if (turn >= walk.end) {
        turn_pages(m, walk, turn);
        from = rows + (u32)(__shfl_sync(0xFFFFFFFFu, walk.at, on_page) * MGL_PAGE);
    }
    const int block = unit * UNIT / F::PARTS - (walk.end - walk.step) * UNIT;
    source.load(to, from + (u32)(block * MGL_BLOCK_BYTES), next_group, unit, coming);
    if ((unit + 1) / F::PARTS >= walk.end)
        look_ahead(walk);
}

/* Values that a warp keeps while it iterates over activation tiles, so that it does not compute
 * them for each tile. */
struct act_tile_wait {
    u32 memory, full, empty; /* bytes and barriers of slot 0 */
    bool frees; /* this lane frees tiles: one lane, or none after the loader has given up, since
                     then other warps may be several tiles behind */
    bool ready; /* this lane has seen that the next tile is loaded */
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
        return; /* reading the clock would take longer */
    const u32 since = trace_clock();
    way.frees &= wait_phase(full, parity_of(t));
    trace_act_tile(since);
}

/* Polls the barrier of the next activation tile while other operations are in flight. */
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

/* Multiplies all k blocks of a panel, in units. A panel, a piece and an activation tile consist of
 * whole units; the last two are powers of 2. After it issues products, a warp loads the weights of
 * the next unit and polls the barriers that it will wait for next: while the products are in
 * flight, or after them if it converts the weights. A warp without row groups multiplies the last
 * row group of the panel, because all warps of a warpgroup must execute the instruction. Its sums
 * are discarded.
 *
 * Products in flight still read the weights from their registers (PTX ISA, wgmma.wait_group), but
 * ptxas of CUDA 13.0 considers these registers free. If weights were converted at that time, ptxas
 * would put intermediate values there, and the sums would be wrong. Loads of unscaled weights were
 * found to use other registers. After a change of this loop or of the compiler, check the machine
 * code with tests/tools/product_registers.py.
 *
 * All lanes of a warp must execute a wgmma together. Otherwise it never ends, and no watchdog
 * detects that. A lane that has waited or arrived alone may be behind the others. The assembler
 * reconverges the lanes before a wgmma wait, but not before a wgmma, and it removes __syncwarp() if
 * it assumes that the lanes are converged. Therefore a wait precedes the first products of each
 * tile. */
template <class F, int ROWS>
static __device__ __forceinline__ void multiply_panel(machine &m, const panel_shape &s, int group,
                                                      float (&sums)[ROWS / 2])
{
    const panel_part part = panel_part_of(m, s);
    const int warp = warp_now(), lane = lane_now(), turns = same_in_all(s.shares);
    const act_tile_shape act_tile = act_tile_shape_of(panel_rows(m));
    const int kblocks = same_in_all(segment(m, 0).kblocks) * F::PARTS, units = kblocks / UNIT;
    const int most = same_in_all(act_tile.blocks) / UNIT;
    const int users = s.columns * MGL_WARPGROUP_WARPS;
    const int arrivals = arrivals_of(MGL_WARPS, users, warp - small_quotient(warp, users) * users);
    const u32 stride = (u32)same_in_all((int)act_tile.stride) / MGL_GRANULE_BYTES;
    const u32 phases = own().act_tile_used[warp], page = own().page_at[warp];
    /* the warp's row groups, or the last one of the panel: the page in a piece, and the byte on it
     */
    const int first = min(part.pair * WARP_GROUPS, s.groups - 1), piece = s.piece * MGL_BLOCK_BYTES;
    const int before = small_quotient(first, s.per);
    const u32 rows = unit_source<F>::begin(lane) + (u32)((first - before * s.per) * piece);
    const u32 next_group = first + 1 < s.groups ? (u32)piece : 0;
    const int on_page = same_in_all(before); /* page within a piece */
    page_walk walk = page_walk_of(s, page);
    act_tile_walk act_tiles =
        act_tile_walk_of(turns, same_in_all(part.works ? part.share : 0), phases);
    act_tile_wait way = act_tile_wait_of(act_tiles, lane == 0);
    typename unit_source<F>::loaded next[UNIT] = {};
    u32 from = 0;
    int unit = same_in_all(part.works ? part.share * most : units);
    unit_source<F> source(m, group + first, group + s.groups, min(unit, units - 1));
    /* the unit that this warpgroup loads after unit i */
    const auto behind = [&](int i) { return (i + 1) % most ? i + 1 : i + 1 + (turns - 1) * most; };
    if (unit < units)
        load_next<F>(m, walk, source, next, rows, next_group, unit, min(behind(unit), units - 1),
                     on_page, from);
#pragma unroll 1
    while (unit < units) {
        wait_ready_act_tile(way, act_tiles);
        const u32 x = operand_word(way.memory + (u32)(act_tiles.place * ACT_TILE_BYTES));
        warpgroup_wait(); /* nothing is in flight: reconverges the lanes */
        const int end = min(unit + most, units);
#pragma unroll 1
        for (u32 at = x; unit < end; at += UNIT * stride) {
            weight_block w[UNIT];
#pragma unroll
            for (int i = 0; i < UNIT; i++) {
                source.arranged(next[i], lane, w[i]);
#pragma unroll
                for (int n = 0; n < 8; n++)
                    warpgroup_ready(w[i].a[n / 4][n % 4]);
            }
            warpgroup_fence();
#pragma unroll
            for (int i = 0; i < UNIT; i++)
                multiply_block<ROWS>(w[i], at + (u32)i * stride, sums);
            warpgroup_commit();
            if (unit_source<F>::CONVERTS)
                warpgroup_wait();
            unit++;
            const int coming = unit < end ? unit : unit + (turns - 1) * most;
            if (coming < units)
                load_next<F>(m, walk, source, next, rows, next_group, coming,
                             min(behind(coming), units - 1), on_page, from);
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
    end_pages(m, walk, units / F::PARTS, page);
    own().act_tile_used[warp] =
        phases_behind(phases, lane, act_tiles_of(kblocks, act_tile.blocks), turns);
}

/* ---- outputs ----------------------------------------------------------------------------------
 */

/* Stores the warp's tiles of a pass in shared memory. */
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

/* Adds the partial sums of the warpgroups that share the k blocks, for tile n of a pass (split-K
 * reduction). */
static __device__ __forceinline__ void fetch_tile(const machine &m, const panel_pass &pass,
                                                  const panel_shape &s, int pair, int n,
                                                  panel_lane &p)
{
    p.sums[0][0] = p.sums[0][1] = p.sums[1][0] = p.sums[1][1] = 0.0f;
    for (int share = 0; share < s.shares; share++)
        add_tile(m, pass, warp_of_sums(s, pair, share), n, p);
}

/* Writes the outputs of the tiles of a pass, for the panel that begins at row group `group`.
 * leave(lane) writes the outputs of a tile. The items (column, eight activation rows) are
 * distributed over the warps in turn. */
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

/* Whether each warp writes outputs from its own sums: they are complete, and the op combines no
 * sums of other warps. */
static __device__ __forceinline__ bool writes_own(const machine &m, int group)
{
    return task_of(m)->op == OP_RMS_SWIGLU && shape_at(m, group).shares == 1;
}

/* Processes the sums of the panel that begins at row group `group`. If writes_own, each warp calls
 * leave.own<ROWS>(m, group, sums) for its own sums, and no warp waits for another. Otherwise, pass
 * by pass, leave(group, last, pass) writes outputs from the sums that the pass stored in shared
 * memory. */
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
        consumer_barrier(); /* all warps have freed the activation tiles */
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

/* Multiplies the warp's sums by the row factors of the weights. */
template <int ROWS>
static __device__ __forceinline__ void multiply_factors(const machine &m, const panel_shape &s,
                                                        int group, float (&sums)[ROWS / 2])
{
#if MGL_SCALED
    float factor[WARP_GROUPS];
    ask_factors(m, group + panel_part_of(m, s).pair * WARP_GROUPS, factor);
#pragma unroll
    for (int i = 0; i < ROWS / 2; i++)
        sums[i] *= factor[i / 2 % WARP_GROUPS];
#endif
}

/* Runs a panel with weights of format F. */
template <class F, int ROWS, class WRITE>
static __device__ __forceinline__ void run_panel_with(machine &m, int group, bool last,
                                                      const WRITE &leave)
{
    float sums[ROWS / 2] = {};
    const panel_shape s = shape_at(machine_now(), group);
    multiply_panel<F, ROWS>(m, s, group, sums);
    if (F::HAS_FACTORS)
        multiply_factors<ROWS>(machine_now(), s, group, sums);
    write_panel<ROWS>(group, last, sums, leave);
}

template <int ROWS, class WRITE>
static __device__ __forceinline__ void run_panel_of(machine &m, int group, bool last,
                                                    const WRITE &leave)
{
#if MGL_SCALED
    const int format = same_in_all(format_of(machine_now()));
    if (format > 0)
        return with_format(
            format, [&](auto f) { run_panel_with<decltype(f), ROWS>(m, group, last, leave); });
#endif
    run_panel_with<unscaled_weights, ROWS>(m, group, last, leave);
}

/* Runs the panel that begins at row group `group`: its products and outputs. */
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

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

static __device__ __forceinline__ volatile panel_plan &plan_of(int warp)
{
    return own().plan[warp];
}

/* Notes where the warp's row groups stand, at the first of the k blocks at hand. */
static __device__ __forceinline__ void find_weights()
{
    const int warp = warp_now(), lane = lane_now();
    volatile panel_plan &plan = plan_of(warp);
    __syncwarp();
    if (lane < WARP_GROUPS)
        plan.at[lane] =
            (int)((own().page_at[warp] + (u32)plan.page[lane]) % PANEL_PAGES * MGL_PAGE) +
            plan.byte[lane];
    __syncwarp();
}

/* This warp's part of a panel. */
struct panel_part {
    bool works; /* it has one */
    int pair;   /* of row groups of the panel: two, or the last one alone, or none */
    int share;  /* of the warpgroups that share its k blocks */
};

static __device__ __forceinline__ panel_part panel_part_of(const machine &m, const panel_shape &s)
{
    const int group = m.warp / MGL_WARPGROUP_WARPS, share = group / s.columns;
    return {share < s.shares,
            group % s.columns * MGL_WARPGROUP_WARPS + m.warp % MGL_WARPGROUP_WARPS, share};
}

/* The warp whose sums are those of a pair of row groups and a share of the k blocks. */
static __device__ __forceinline__ int warp_of_sums(const panel_shape &s, int pair, int share)
{
    return share * s.columns * MGL_WARPGROUP_WARPS + pair;
}

/* Writes the warp's plan; all lanes come here. Of row groups that the panel does not have it has
 * the last one's place. */
static __device__ __forceinline__ void make_plan(const machine &m, int group)
{
    const panel_shape s = shape_at(m, group);
    const panel_part part = panel_part_of(m, s);
    volatile panel_plan &plan = plan_of(m.warp);
    const tray_shape tray = tray_shape_of(panel_rows(m));
    const int first = min(part.pair * WARP_GROUPS, s.groups - 1);
    if (m.lane < WARP_GROUPS) {
        const int mine = min(first + m.lane, s.groups - 1);
        plan.page[m.lane] = mine / s.per;
        plan.byte[m.lane] = mine % s.per * s.piece * MGL_BLOCK_BYTES;
    }
    if (m.lane == 0) {
        plan.kblocks = segment(m, 0).kblocks;
        plan.piece = s.piece;
        plan.count = s.pages;
        plan.first = first / s.per;
        plan.end = part.works ? min(first + 1, s.groups - 1) / s.per + 1 : first / s.per;
        plan.tray = tray.blocks;
        plan.stride = (int)tray.stride;
        plan.share = part.works ? part.share : -1;
        plan.shares = s.shares;
    }
    __syncwarp();
}

/* Blocks of the warp's two row groups as they come from shared memory. */
struct loaded_block {
    u32 words[WARP_GROUPS][4];
};

static __device__ __forceinline__ void load_weights(loaded_block &to,
                                                    const u32 (&from)[WARP_GROUPS], int block)
{
#pragma unroll
    for (int g = 0; g < WARP_GROUPS; g++)
        load_matrices(to.words[g], from[g] + (u32)(block * MGL_BLOCK_BYTES));
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

/* All k blocks of a panel, which are a multiple of UNIT, as those of pieces and trays are, which
 * are powers of 2 besides. A warp multiplies UNIT of them at a time, and loads the next ones'
 * weights meanwhile. */
template <int ROWS>
static __device__ __forceinline__ void multiply_panel(machine &m, float (&sums)[ROWS / 2])
{
    enum { UNIT = MGL_WARPGROUP_BLOCKS };
    static_assert(TRAY_BLOCKS % UNIT == 0, "a tray has whole units");
    const int warp = warp_now(), lane = lane_now();
    const volatile panel_plan &plan = plan_of(warp);
    const int kblocks = same_in_all(plan.kblocks), share = same_in_all(plan.share);
    const int in_piece = same_in_all(plan.piece) - 1, in_tray = same_in_all(plan.tray) - 1;
    const int step = UNIT * same_in_all(plan.shares);
    const u32 stride = (u32)same_in_all(plan.stride) / MGL_GRANULE_BYTES;
    const u32 phases = own().tray_used[warp];
    tray_walk tray = {1, 0, phases, 0};
    u32 x = 0, from[WARP_GROUPS] = {};
    int mine = share < 0 ? kblocks : share * UNIT; /* the next that this warp multiplies */
    bool ahead = false;                            /* their weights are loaded */
    loaded_block next[UNIT];
#pragma unroll 1
    for (int at = 0; at < kblocks;) {
        const int to = min(at + min(in_piece, in_tray) + 1, kblocks);
        if ((at & in_piece) == 0) {
            wait_pages(m, own().page_at[warp] + (u32)plan.first, plan.end - plan.first);
            find_weights();
#pragma unroll
            for (int g = 0; g < WARP_GROUPS; g++)
                from[g] = shared_address(page_memory()) + (u32)plan.at[g] + matrix_row(lane);
        }
        if ((at & in_tray) == 0)
            x = operand_word(shared_address(tray_memory()) + wait_tray(tray));
#pragma unroll 1
        for (; mine < to; mine += step) {
            weight_block w[UNIT];
#pragma unroll
            for (int i = 0; i < UNIT; i++) {
                if (!ahead)
                    load_weights(next[i], from, (mine + i) & in_piece);
                arrange(next[i], lane, w[i]);
#pragma unroll
                for (int n = 0; n < 8; n++)
                    warpgroup_ready(w[i].a[n / 4][n % 4]);
            }
            warpgroup_fence();
#pragma unroll
            for (int i = 0; i < UNIT; i++)
                multiply_block<ROWS>(w[i], x + (u32)((mine + i) & in_tray) * stride, sums);
            warpgroup_commit();
            ahead = mine + step < min((mine | in_piece) + 1, kblocks);
            if (ahead)
#pragma unroll
                for (int i = 0; i < UNIT; i++)
                    load_weights(next[i], from, (mine + step + i) & in_piece);
            warpgroup_wait();
        }
        at = to;
        if ((to & in_tray) == 0 || to == kblocks)
            free_tray(tray, 1);
        if ((to & in_piece) == 0 || to == kblocks) {
            __syncwarp();
            const u32 page = own().page_at[warp];
            free_pages(m, page, plan.count);
            own().page_at[warp] = page + (u32)plan.count; /* every lane */
            __syncwarp();
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS / 2; i++)
        warpgroup_settled(sums[i]);
    __syncwarp();
    own().tray_used[warp] =
        phases_behind(phases, lane, trays_of(kblocks, 1, in_tray + 1), 1); /* every lane */
}

/* ---- outputs ----------------------------------------------------------------------------------
 */

/* Stores the warp's tiles of a pass where others find them. */
template <int ROWS>
static __device__ __forceinline__ void leave_pass(const machine &m, const panel_pass &pass,
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
static __device__ __forceinline__ panel_lane take_tile(const machine &m, const panel_pass &pass,
                                                       const panel_shape &s, int pair, int n)
{
    panel_lane p = {};
    for (int share = 0; share < s.shares; share++)
        add_tile(m, pass, warp_of_sums(s, pair, share), n, p);
    return p;
}

/* Outputs of the tiles of a pass, of the panel from row group `group` on: leave(lane) makes those
 * of one. A warp has the tiles of one column and eight activation rows, and then those of others.
 */
template <class LEAVE>
static __device__ __forceinline__ void leave_tiles(const machine &m, int group, bool last,
                                                   int number, const LEAVE &leave)
{
    const panel_shape s = shape_at(m, group);
    const panel_pass pass = pass_number(last, number);
    const int rows = panel_rows(m), columns = (s.groups + COLUMN_GROUPS - 1) / COLUMN_GROUPS;
    const int tiles = min(pass.count, (rows + PANEL_TILE - 1) / PANEL_TILE - pass.first);
    static_assert(COLUMN_GROUPS == 2 * WARP_GROUPS, "a warp goes through both pairs of a column");
#pragma unroll 1
    for (int i = m.warp * 2; i < columns * tiles * 2; i += i % 2 ? 2 * MGL_WARPS - 1 : 1) {
        const int column = i / 2 % columns, n = i / 2 / columns, pair = column * 2 + i % 2;
        if (pair * WARP_GROUPS >= s.groups)
            continue;
        panel_lane p = take_tile(m, pass, s, pair, n);
        p.group = group + pair * WARP_GROUPS;
        p.tile = (pass.first + n) * PANEL_TILE;
        p.row = p.tile + (m.lane & 3) * 2;
        p.column = column;
        p.rows = rows;
        leave(p);
    }
}

/* The sums of the panel from row group `group` on, pass by pass: leave(group, last, pass) makes
 * outputs of what stands in shared memory. */
template <int ROWS, class LEAVE>
static __device__ __forceinline__ void
leave_panel(int group, bool last, const float (&sums)[ROWS / 2], const LEAVE &leave)
{
    if (last)
        consumer_barrier(); /* all warps have let go of the trays */
#pragma unroll 1
    for (int number = 0;; number++) {
        const machine m = machine_now();
        const int rows = panel_rows(m);
        const panel_pass pass = pass_number(last, number);
        if (pass.first * PANEL_TILE >= rows)
            return;
        leave_pass<ROWS>(m, pass, rows, sums);
        consumer_barrier();
        leave(group, last, number);
        consumer_barrier();
    }
}

/* ---- a panel ----------------------------------------------------------------------------------
 */

template <int ROWS, class LEAVE>
static __device__ __forceinline__ void run_panel_of(machine &m, int group, bool last,
                                                    const LEAVE &leave)
{
    float sums[ROWS / 2] = {};
    make_plan(machine_now(), group);
    multiply_panel<ROWS>(m, sums);
    leave_panel<ROWS>(group, last, sums, leave);
}

/* The panel from row group `group` on: its products and outputs. */
template <class LEAVE>
static __device__ __forceinline__ void run_panel(machine &m, int group, bool last,
                                                 const LEAVE &leave)
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

/*
 * The shape of a panel, shared by loader, epilogue and consumers: the layout of its row groups on
 * pages, its division among the warps, and the contents of an activation tile.
 */
#ifndef MGL_DEVICE_LINEAR_PANEL_SHAPE_CUH
#define MGL_DEVICE_LINEAR_PANEL_SHAPE_CUH

#include "vm/cuda/device/ring.cuh"

#if MGL_PANELS

/* i / n for i < 65,536 and n < 32; fewer instructions than a division. */
static __device__ __forceinline__ int small_quotient(int i, int n)
{
    return n == 1 ? i : (int)(((float)i + 0.5f) * __fdividef(1.0f, (float)n));
}

/* i / n rounded up, for n a power of 2. */
static __device__ __forceinline__ int parts_of(int i, int n)
{
    return (i + n - 1) >> (31 - __clz(n));
}

struct panel_shape {
    int groups;  /* row groups of the panel */
    int piece;   /* k blocks of a row group that are contiguous on a page; the last piece may have
                    fewer */
    int per;     /* row groups on a page */
    int pages;   /* pages with the same k blocks */
    int columns; /* columns of OWN_GROUPS row groups; each has one warp of a team, or a warpgroup */
    int halves;  /* 2: a column has two warps of a team, each for half of the activation rows */
    int shares;  /* teams or warpgroups that share the k blocks (split-K), each with its own
                    activation tiles */
};

/* The shape of a panel of `groups` row groups. */
static __device__ __forceinline__ panel_shape make_panel_shape(int groups)
{
    panel_shape s;
    s.groups = groups;
    s.piece = mgl_panel_piece(s.groups, PAGE_BLOCKS, ACT_TILE_BLOCKS, PANEL_PAGES, MGL_WARPGROUPS);
    s.per = mgl_panel_per(s.piece, PAGE_BLOCKS, MGL_WARPGROUPS);
    s.pages = mgl_panel_pages(s.groups, s.piece, PAGE_BLOCKS, MGL_WARPGROUPS);
    s.columns = (s.groups + OWN_GROUPS - 1) / OWN_GROUPS;
    s.halves = s.groups > 2 ? (int)TEAM_HALVES : 1;
    s.shares = min(MGL_WARPGROUPS ? PANEL_GROUPS / OWN_GROUPS / s.columns
                                  : MGL_WARPS / (s.columns * s.halves),
                   (int)ACT_TILES);
    return s;
}

static_assert(PAGE_BLOCKS < 256, "a noted shape has bytes");

/* Stores the shapes of all sizes in shared memory, because computing one takes a microsecond. */
static __device__ __forceinline__ void cache_panel_shapes(int thread)
{
    if (thread >= PANEL_GROUPS)
        return;
    const panel_shape s = make_panel_shape(thread + 1);
    own().shapes[thread] = {(u8)s.groups,  (u8)s.piece,  (u8)s.per,   (u8)s.pages,
                            (u8)s.columns, (u8)s.halves, (u8)s.shares};
}

/* The next panel of a task with `left` row groups left. */
static __device__ __forceinline__ panel_shape panel_shape_of(int left)
{
    const cached_shape s = own().shapes[min(left, (int)PANEL_GROUPS) - 1];
    return {s.groups, s.piece, s.per, s.pages, s.columns, s.halves, s.shares};
}

/* Row groups of a small-M panel (small_m.cuh) for `rows` activation rows; 0: too many rows.
 * `small_n`: the task has few row groups and is not of the head. */
static __device__ __forceinline__ int small_m_groups(int rows, bool small_n)
{
    if (MGL_ROWS > SMALL_M_ROWS && rows > SMALL_M_ROWS)
        return small_n && rows <= SMALL_N_ROWS ? (int)SMALL_N_GROUPS : 0;
    return rows <= SMALL_M_TILE ? SMALL_M_GROUPS : SMALL_M_GROUPS / 2;
}

/* Whether a task has few row groups. Tasks of the head never count as such. */
static __device__ __forceinline__ bool has_small_n(int groups, bool heads)
{
    return groups <= SMALL_N_GROUPS && !heads;
}

/* Row groups of the small-M panels of the current task, or 0: scaled weights have none. */
static __device__ __forceinline__ int small_m_groups_of(const machine &m)
{
    if (format_of(m) > 0)
        return 0;
    const int rows = rows_of(m);
    return small_m_groups(rows, rows > SMALL_M_ROWS && has_small_n(segment(m, 0).groups,
                                                                   task_of(m)->op == OP_RMS_HEAD));
}

/* Number of warps over which the activation rows of a k block of a small-N panel are divided
 * (small_n.cuh): 1 (a warp multiplies all rows) or 2 (half of them). */
static __device__ __forceinline__ int small_n_halves(int rows)
{
    return MGL_ROWS > SMALL_N_ROWS && rows > SMALL_N_ROWS ? 2 : 1;
}

/* The next small-M panel of a task with `left` row groups left; it has at most `most` row groups. A
 * page contains SMALL_M_TURNS k blocks of each warp, of SMALL_M_PAGE_GROUPS row groups. */
static __device__ __forceinline__ panel_shape small_m_shape_of(int left, int most)
{
    panel_shape s = {};
    s.groups = min(left, most);
    s.per = SMALL_M_PAGE_GROUPS;
    s.piece = MGL_WARPS * SMALL_M_TURNS;
    s.pages = (s.groups + SMALL_M_PAGE_GROUPS - 1) / SMALL_M_PAGE_GROUPS;
    return s;
}

/* Shape of an activation tile: k blocks, and bytes from one to the next. */
struct act_tile_shape {
    int blocks;
    u32 stride;
};

static __device__ __forceinline__ act_tile_shape act_tile_shape_of(int rows)
{
    return {mgl_panel_act_tile_blocks(MGL_ROWS, rows, MGL_WARPGROUPS),
            (u32)(MGL_PANEL_ROOM(rows, MGL_WARPGROUPS) * MGL_PANEL_ROW_BYTES)};
}

/* Number of activation tiles of a panel. Each has `blocks` consecutive k blocks in the order of the
 * tape; the last one may have fewer. The tiles are assigned to the teams or warpgroups in turn. */
static __device__ __forceinline__ int act_tiles_of(int kblocks, int blocks)
{
    return parts_of(kblocks, blocks);
}

/* Iterator over the slots of a team's activation tiles and the phases of their barriers. Teams are
 * not synchronized with each other, so in one panel a slot belongs to one team: team t uses every
 * turns-th slot from slot t on. The producer and the consumers of the tiles each keep a word with
 * the parity of the phase of each slot's next tile, in bit ACT_TILE_LANES * slot. */
struct act_tile_walk {
    int turns, place, end; /* `place`: the slot; `end`: number of slots in use */
    u32 phases, flipped;   /* `flipped`: 1 after an odd number of rounds over the slots */
};

static __device__ __forceinline__ act_tile_walk act_tile_walk_of(int turns, int place, u32 phases)
{
    return {turns, place, small_quotient(ACT_TILES, turns) * turns, phases, 0};
}

static __device__ __forceinline__ u32 parity_of(const act_tile_walk &t)
{
    return (t.phases >> (t.place * ACT_TILE_LANES) & 1) ^ t.flipped;
}

/* Advances to the team's next slot. */
static __device__ __forceinline__ void advance(act_tile_walk &t)
{
    t.place += t.turns;
    if (t.place >= t.end) {
        t.place -= t.end;
        t.flipped ^= 1;
    }
}

/* The phases after a panel of `act_tiles` tiles. Called by all lanes. */
static __device__ __forceinline__ u32 phases_behind(u32 phases, int lane, int act_tiles, int turns)
{
    const int place = lane / ACT_TILE_LANES, rounds = small_quotient(ACT_TILES, turns);
    const int first = small_quotient(place, turns), team = place - first * turns;
    const int mine = small_quotient(act_tiles - team + turns - 1, turns); /* tiles of the team */
    const int used = mine > first ? small_quotient(mine - first + rounds - 1, rounds) : 0;
    return phases ^ __ballot_sync(0xFFFFFFFFu, lane % ACT_TILE_LANES == 0 && first < rounds &&
                                                   place < ACT_TILES && used % 2 == 1);
}

#endif

#endif

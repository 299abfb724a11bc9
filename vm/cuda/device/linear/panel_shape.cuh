/*
 * What loader, epilogue and consumers know alike of a panel: how its row groups lie on pages, how
 * it is shared among the warps, and what a tray has of the activations.
 */
#ifndef MGL_DEVICE_LINEAR_PANEL_SHAPE_CUH
#define MGL_DEVICE_LINEAR_PANEL_SHAPE_CUH

#include "vm/cuda/device/ring.cuh"

#if MGL_PANELS

/* i / n, of numbers below 65,536 and 32; fewer instructions than a division. */
static __device__ __forceinline__ int small_quotient(int i, int n)
{
    return n == 1 ? i : (int)(((float)i + 0.5f) * __fdividef(1.0f, (float)n));
}

/* The same, of a power of 2, rounded up. */
static __device__ __forceinline__ int parts_of(int i, int n)
{
    return (i + n - 1) >> (31 - __clz(n));
}

struct panel_shape {
    int groups;  /* row groups of the panel */
    int piece;   /* k blocks of one of them that lie together on a page; the last may be fewer */
    int per;     /* row groups of a page, */
    int pages;   /* and pages of the same k blocks */
    int columns; /* of OWN_GROUPS row groups: a team has a warp for each, or a warpgroup has one, */
    int halves;  /* or, of a team, two, for half of the activation rows each */
    int shares;  /* so many share the k blocks, and have trays of their own, in turn */
};

/* The shape of a panel of so many row groups. */
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

/* Shapes of all sizes stand in shared memory: to make one takes a microsecond. */
static __device__ __forceinline__ void cache_panel_shapes(int thread)
{
    if (thread >= PANEL_GROUPS)
        return;
    const panel_shape s = make_panel_shape(thread + 1);
    own().shapes[thread] = {(u8)s.groups,  (u8)s.piece,  (u8)s.per,   (u8)s.pages,
                            (u8)s.columns, (u8)s.halves, (u8)s.shares};
}

/* The panel of a task with so many row groups left. */
static __device__ __forceinline__ panel_shape panel_shape_of(int left)
{
    const cached_shape s = own().shapes[min(left, (int)PANEL_GROUPS) - 1];
    return {s.groups, s.piece, s.per, s.pages, s.columns, s.halves, s.shares};
}

/* Row groups of a slim panel (small_m.cuh) where so many rows are multiplied; 0: they are too many.
 * `narrow`: of tasks that have few row groups, and are not of the head. */
static __device__ __forceinline__ int small_m_groups(int rows, bool small_n)
{
    if (MGL_ROWS > SMALL_M_ROWS && rows > SMALL_M_ROWS)
        return small_n && rows <= SMALL_N_ROWS ? (int)SMALL_N_GROUPS : 0;
    return rows <= SMALL_M_TILE ? SMALL_M_GROUPS : SMALL_M_GROUPS / 2;
}

/* Whether a task of so many row groups, of the head or not, is one of few. */
static __device__ __forceinline__ bool has_small_n(int groups, bool heads)
{
    return groups <= SMALL_N_GROUPS && !heads;
}

/* Row groups of the slim panels of the task at hand, or 0. */
static __device__ __forceinline__ int small_m_groups_of(const machine &m)
{
    const int rows = rows_of(m);
    return small_m_groups(rows, rows > SMALL_M_ROWS && has_small_n(segment(m, 0).groups,
                                                                   task_of(m)->op == OP_RMS_HEAD));
}

/* Of how many warps of a warpgroup each has the rows of a k block of a narrow panel (small_n.cuh):
 * 1, all; 2, half of them. */
static __device__ __forceinline__ int small_n_halves(int rows)
{
    return MGL_ROWS > SMALL_N_ROWS && rows > SMALL_N_ROWS ? 2 : 1;
}

/* The slim panel of a task with so many row groups left, of `most` at most. On a page are k blocks
 * of all warps: SMALL_M_TURNS each of SMALL_M_PAGE_GROUPS row groups. */
static __device__ __forceinline__ panel_shape small_m_shape_of(int left, int most)
{
    panel_shape s = {};
    s.groups = min(left, most);
    s.per = SMALL_M_PAGE_GROUPS;
    s.piece = MGL_WARPS * SMALL_M_TURNS;
    s.pages = (s.groups + SMALL_M_PAGE_GROUPS - 1) / SMALL_M_PAGE_GROUPS;
    return s;
}

/* k blocks of a tray, and bytes from one to the next, where so many rows are multiplied. */
struct act_tile_shape {
    int blocks;
    u32 stride;
};

static __device__ __forceinline__ act_tile_shape act_tile_shape_of(int rows)
{
    return {mgl_panel_act_tile_blocks(MGL_ROWS, rows, MGL_WARPGROUPS),
            (u32)(MGL_PANEL_ROOM(rows, MGL_WARPGROUPS) * MGL_PANEL_ROW_BYTES)};
}

/* A panel's trays are for the teams, or warpgroups, in turn. Each has `blocks` k blocks that follow
 * one another in the tape's order, the last one perhaps fewer. */
static __device__ __forceinline__ int act_tiles_of(int kblocks, int blocks)
{
    return parts_of(kblocks, blocks);
}

/* The places of a team's trays, and the phases of their barriers. Teams run apart, so a place is
 * one team's in a panel: team t has every turns-th from place t on, one after another. Who fills
 * trays and who uses them both keep a word with the phase, even or odd, that each place's next tray
 * is: bit ACT_TILE_LANES * place. */
struct act_tile_walk {
    int turns, place, end; /* `end`: places that are used, behind the last */
    u32 phases, flipped;   /* 1: of places that have had an odd number of trays in this panel */
};

static __device__ __forceinline__ act_tile_walk act_tile_walk_of(int turns, int place, u32 phases)
{
    return {turns, place, small_quotient(ACT_TILES, turns) * turns, phases, 0};
}

static __device__ __forceinline__ u32 parity_of(const act_tile_walk &t)
{
    return (t.phases >> (t.place * ACT_TILE_LANES) & 1) ^ t.flipped;
}

/* To the team's next place. */
static __device__ __forceinline__ void advance(act_tile_walk &t)
{
    t.place += t.turns;
    if (t.place >= t.end) {
        t.place -= t.end;
        t.flipped ^= 1;
    }
}

/* The phases behind a panel of so many trays; all lanes. */
static __device__ __forceinline__ u32 phases_behind(u32 phases, int lane, int act_tiles, int turns)
{
    const int place = lane / ACT_TILE_LANES, rounds = small_quotient(ACT_TILES, turns);
    const int first = small_quotient(place, turns), team = place - first * turns;
    const int mine = small_quotient(act_tiles - team + turns - 1, turns); /* the team's */
    const int used = mine > first ? small_quotient(mine - first + rounds - 1, rounds) : 0;
    return phases ^ __ballot_sync(0xFFFFFFFFu, lane % ACT_TILE_LANES == 0 && first < rounds &&
                                                   place < ACT_TILES && used % 2 == 1);
}

#endif

#endif

/*
 * Shape constants and formulas of the kernel variants: splits, row shares, KV layout, panels and
 * pages. Shared by lowering, variants, the cost model, the CUDA host and the kernel. Plain C that
 * NVRTC compiles too.
 */
#ifndef MGL_SCHEDULE_VARIANT_SHAPES_H
#define MGL_SCHEDULE_VARIANT_SHAPES_H

#include "schedule/tape.h"

#ifndef MGL_VARIANT_SHAPES_FN
#define MGL_VARIANT_SHAPES_FN static inline
#endif

enum {
    MGL_OTHER_WARPS = 4,       /* warps of a block besides the consumers: see device/shared.cuh */
    MGL_PARTIAL_BYTES = 16384, /* shared memory for partial sums: see device/shared.cuh */
    MGL_PSUM_GROUPS = 4,       /* maximum row groups in a partial-sum buffer of one row */
    MGL_MERGE_DIMS = 32,       /* dimensions that a warp merges */
    MGL_BATCH_ROWS = 8         /* maximum rows of the batch variant
                                  (vm/cuda/device/linear/batch.cuh) */
};

/* Minimum rows of the batch variant. Fewer rows use the skinny variant, which takes one row if the
 * weights are scaled, and else two rows. */
#define MGL_BATCH_LEAST(scaled) ((scaled) ? 2 : 3)

/* Blocks of a warp's run with input in `parts` parts: loads in flight at once, in 64 registers
 * of a lane, and blocks that stay in registers. An input in one part keeps two more blocks,
 * because it needs half as many sums. */
#define MGL_BATCH_ASKED(parts) (16 / (parts))
#define MGL_BATCH_HELD(parts)  (MGL_BATCH_ASKED(parts) + ((parts) == 1 ? 2 : 0))

/* Registers of a lane for the activations of a warp's run of columns. */
#define MGL_RUN_REGISTERS 72

/* Number of attention splits in use for n earlier positions: all splits, or with `share` above 0
 * one for each `share` positions. The last split is always in use, because it also attends to
 * the rows of this epoch. */
MGL_VARIANT_SHAPES_FN int mgl_splits_used(int n, int splits, int share)
{
    const int wanted = share > 0 ? n / share + (n % share > 0) : splits;
    return wanted < 1 ? 1 : wanted < splits ? wanted : splits;
}

/* The positions [*lo, *hi) of split i. The splits in use divide the n positions evenly, in
 * order. */
MGL_VARIANT_SHAPES_FN void mgl_split_positions(int n, int i, int splits, int share, int *lo,
                                               int *hi)
{
    if (share <= 0) {
        *lo = (int)((unsigned)n * (unsigned)i / (unsigned)splits);
        *hi = (int)((unsigned)n * (unsigned)(i + 1) / (unsigned)splits);
        return;
    }
    const unsigned used = (unsigned)mgl_splits_used(n, splits, share);
    const unsigned place = i == splits - 1 ? used - 1 : (unsigned)i;
    const int has = i == splits - 1 || place + 1 < used;
    *lo = has ? (int)((unsigned)n * place / used) : 0;
    *hi = has ? (int)((unsigned)n * (place + 1) / used) : 0;
}

/* Share i of n of an epoch's rows: [*lo, *hi), possibly empty. */
MGL_VARIANT_SHAPES_FN void mgl_row_share(int rows, int i, int n, int *lo, int *hi)
{
    *lo = (int)((unsigned)rows * (unsigned)i / (unsigned)n);
    *hi = (int)((unsigned)rows * (unsigned)(i + 1) / (unsigned)n);
}

/* KV_SPAN: positions that a warp processes at once when keys and values come through the ring.
 * KV_PAGE_POSITIONS: positions whose keys, or whose values, fit on a page; 0 if not even KV_SPAN
 * do. */
#define MGL_KV_SPAN(head_dim) ((head_dim) <= 64 ? 64 : 32)
#define MGL_KV_PAGE_POSITIONS(head_dim, page_bytes)                                                \
    ((page_bytes) / (2 * (head_dim)*MGL_KV_SPAN(head_dim)) * MGL_KV_SPAN(head_dim))

/* With at most this many earlier positions, a warp has a single batch, which it loads into
 * registers before the queries arrive. */
#define MGL_KV_REGISTERS(head_dim, warps) ((warps)*MGL_KV_SPAN(head_dim) / 2 - 1)

/* Swizzled KV cache, for keys and values that come through the ring, if the 16-byte chunks of a
 * position come in whole groups of eight. Chunk `chunk` of a position is stored at the returned
 * index, so that eight lanes reading together from shared memory use all banks. They read keys
 * of two adjacent positions, and values of every second of eight positions. */
#define MGL_KV_SWIZZLED(head_dim) ((head_dim) % 64 == 0)
MGL_VARIANT_SHAPES_FN int mgl_kv_chunk(int value, int position, int chunk)
{
    return chunk ^ (value ? (position >> 1 & 3) << 1 : (position & 1) << 2);
}

/* Panels: products of the second list in which weights and activations are both full tensor-core
 * operands (vm/cuda/device/linear/panels.cuh). Warp teams (linear/warp_teams.cuh): a warp
 * computes four row groups for all activation rows or half of them, and the teams share the k
 * blocks of a panel (split-K). Warpgroups of 4 warps (linear/warpgroups.cuh): a warp computes
 * two row groups for all activation rows, and the warpgroups divide a panel's row groups, or its
 * k blocks. */
enum {
    MGL_PANEL_OWN_GROUPS = 4, /* row groups of a warp of a team: two MMA tiles of 16 weight rows */
    MGL_PANEL_ROW_STEP = 16,  /* activation rows are padded to this: two MMA tiles of 8 */
    MGL_PANEL_PIECE = 8, /* minimum k blocks of a row group in one copy, if they fit on a page */
    MGL_PANEL_MOST_ACT_TILES = 32, /* activation tiles in shared memory: each is filled by one lane
                                      or more */
    MGL_PANEL_MOST_BLOCKS = 8,     /* maximum k blocks of an activation tile */
    MGL_PANEL_ROW_BYTES = 64,      /* bytes of a row in a k block of activations */
    MGL_WARPGROUP_WARPS = 4,       /* warps of a warpgroup (sm_90a) */
    MGL_WARPGROUP_GROUPS = 8,      /* row groups of a warpgroup */
    MGL_WARPGROUP_BLOCKS = 2       /* k blocks that a warpgroup multiplies at once */
};

/* PANEL_GROUPS: row groups of a panel. PANEL_ROOM: activation rows with storage, for warp teams
 * and for warpgroups (`grouped`). PANEL_ACT_TILE_BLOCKS: k blocks of an activation tile at the
 * list's maximum of rows. PANEL_PAGES: ring pages that hold weights of the second list. The
 * memory of the other pages and the stage holds activation tiles. */
#define MGL_PANEL_GROUPS(warps) ((warps) / 2 * MGL_PANEL_OWN_GROUPS)
#define MGL_PANEL_ROWS(rows)                                                                       \
    (((rows) + MGL_PANEL_ROW_STEP - 1) / MGL_PANEL_ROW_STEP * MGL_PANEL_ROW_STEP)
#define MGL_WARPGROUP_ROWS(rows) ((rows) <= 16 ? 16 : (rows) <= 32 ? 32 : (rows) <= 64 ? 64 : 128)

#define MGL_PANEL_ROOM(rows, grouped) ((grouped) ? MGL_WARPGROUP_ROWS(rows) : MGL_PANEL_ROWS(rows))
#define MGL_PANEL_ACT_TILE_BLOCKS(rows, grouped)                                                   \
    ((grouped) ? (rows) <= 64 ? 4 : 2 : (rows) <= 16 ? 4 : (rows) <= 32 ? 2 : 1)
#define MGL_PANEL_PAGES(ring_pages, rows) ((ring_pages) - (ring_pages) / ((rows) <= 64 ? 3 : 2))

/* Small-M panels (warp-level split-K), in epochs of up to MGL_SMALL_M_ROWS rows: each warp loads
 * its own activations (linear/small_m.cuh), and a page holds `per` k blocks of each warp. Tasks
 * with few row groups use small-N panels in epochs of up to MGL_SMALL_N_ROWS rows. */
enum { MGL_SMALL_M_TILE = 16, MGL_SMALL_M_ROWS = 2 * MGL_SMALL_M_TILE, MGL_SMALL_N_ROWS = 64 };

/* Maximum row groups of a small-M panel of up to MGL_SMALL_M_TILE rows. A panel of more rows has
 * half as many. With 16 row groups a lane has 64 sums, and the partial sums of 8 warps take 64
 * KB. */
MGL_VARIANT_SHAPES_FN int mgl_small_m_groups(int warps)
{
    const int most = MGL_PANEL_GROUPS(warps);
    return warps > 8 || most < 16 ? (most < 8 ? 4 : 8) : 16;
}

/* k blocks of each warp on a page, each with `per / turns` row groups. More k blocks on a page
 * need fewer copies. */
MGL_VARIANT_SHAPES_FN int mgl_small_m_turns(int per)
{
    return per >= 4 ? 2 : 1;
}

/* k blocks of an activation tile in an epoch of `rows` rows, in a list of up to `most` rows.
 * Fewer rows leave space for more k blocks, in powers of 2. `grouped`: warpgroups instead of
 * warp teams. */
MGL_VARIANT_SHAPES_FN int mgl_panel_act_tile_blocks(int most, int rows, int grouped)
{
    const int least = MGL_PANEL_ACT_TILE_BLOCKS(most, grouped);
    const int room = least * MGL_PANEL_ROOM(most, grouped);
    int blocks = least;
    while (blocks < MGL_PANEL_MOST_BLOCKS && 2 * blocks * MGL_PANEL_ROOM(rows, grouped) <= room)
        blocks *= 2;
    return blocks;
}

/* Row groups that have a piece of `piece` blocks on one page. With warpgroups the number is
 * even, because two adjacent row groups belong to one warp. */
MGL_VARIANT_SHAPES_FN int mgl_panel_per(int piece, int page_blocks, int grouped)
{
    const int per = page_blocks / piece;
    return grouped && per > 1 ? per / 2 * 2 : per;
}

/* Pages that pieces of `groups` row groups take. */
MGL_VARIANT_SHAPES_FN int mgl_panel_pages(int groups, int piece, int page_blocks, int grouped)
{
    const int per = mgl_panel_per(piece, page_blocks, grouped);
    return (groups + per - 1) / per;
}

/* Piece size of a panel of `groups` row groups: the k blocks of a row group that are contiguous
 * on a page. The size starts with the k blocks of an activation tile. It doubles while all row
 * groups fit on one page. A short piece also doubles while its row groups fit in less than
 * `pages` pages: one page stays free, because a warp holds a page while it waits for other
 * warps. With warpgroups, which compute faster than their weights arrive, pieces are half as
 * long: more pieces are in flight while one is held. */
MGL_VARIANT_SHAPES_FN int mgl_panel_piece(int groups, int page_blocks, int act_tile_blocks,
                                          int pages, int grouped)
{
    const int least = grouped ? MGL_PANEL_PIECE / 2 : MGL_PANEL_PIECE;
    int piece = act_tile_blocks;
    while (2 * piece <= page_blocks) {
        const int wanted = mgl_panel_pages(groups, 2 * piece, page_blocks, grouped);
        if (wanted > 1 && (2 * piece > least || wanted >= pages))
            break;
        if (grouped && groups > 1 && page_blocks < 4 * piece) /* keeps two row groups on one page */
            break;
        piece *= 2;
    }
    return piece;
}

#endif

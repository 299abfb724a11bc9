/*
 * Numbers that lowering, variants, the cost model, the host and the kernel all know of the ways
 * that products and attention go. Plain C that NVRTC compiles too.
 */
#ifndef MGL_SCHEDULE_VARIANT_SHAPES_H
#define MGL_SCHEDULE_VARIANT_SHAPES_H

#include "schedule/tape.h"

#ifndef MGL_VARIANT_SHAPES_FN
#define MGL_VARIANT_SHAPES_FN static inline
#endif

enum {
    MGL_OTHER_WARPS = 4,       /* of a block, beside its consumers: see device/shared.cuh */
    MGL_PARTIAL_BYTES = 16384, /* shared memory for partial sums: see device/shared.cuh */
    MGL_PSUM_GROUPS = 4,       /* row groups of one row in a slot of sums, at most */
    MGL_MERGE_DIMS = 32,       /* dimensions that a warp merges */
    MGL_BATCH_LEAST = 3,       /* rows that go the batch way (vm/cuda/device/linear/batch.cuh), */
    MGL_BATCH_ROWS = 8         /* to so many */
};

/* Of an input in `parts` parts: blocks of a warp's run that are on their way at once, in 64
 * registers of a lane, and those that stay there: of whole input two more, since its sums are half
 * as many. */
#define MGL_BATCH_ASKED(parts) (16 / (parts))
#define MGL_BATCH_HELD(parts)  (MGL_BATCH_ASKED(parts) + ((parts) == 1 ? 2 : 0))

/* Splits of attention that have some of n earlier positions: all, or with a `share`, above 0, one
 * for each `share` of them. The last split always is among them: it has this epoch's rows as well.
 */
MGL_VARIANT_SHAPES_FN int mgl_splits_used(int n, int splits, int share)
{
    const int wanted = share > 0 ? n / share + (n % share > 0) : splits;
    return wanted < 1 ? 1 : wanted < splits ? wanted : splits;
}

/* The positions of split i, [*lo, *hi): the splits that are used, in order, have as many each. */
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

/* Share i of n of an epoch's rows, [*lo, *hi): may be empty. */
MGL_VARIANT_SHAPES_FN void mgl_row_share(int rows, int i, int n, int *lo, int *hi)
{
    *lo = (int)((unsigned)rows * (unsigned)i / (unsigned)n);
    *hi = (int)((unsigned)rows * (unsigned)(i + 1) / (unsigned)n);
}

/* Positions that a warp attends to at once where keys and values come through the ring, and of how
 * many a page has the keys, or the values: 0 where it has no room for so many. */
#define MGL_KV_SPAN(head_dim) ((head_dim) <= 64 ? 64 : 32)
#define MGL_KV_PAGE_POSITIONS(head_dim, page_bytes)                                                \
    ((page_bytes) / (2 * (head_dim)*MGL_KV_SPAN(head_dim)) * MGL_KV_SPAN(head_dim))

/* So many earlier positions, or fewer, are in registers before the queries are there: a warp's only
 * batch. */
#define MGL_KV_REGISTERS(head_dim, warps) ((warps)*MGL_KV_SPAN(head_dim) / 2 - 1)

/* In that case, where chunk `chunk` of a position's keys or values, 16 bytes, stands among the
 * position's chunks in the cache, if there are whole eights of them: so that eight lanes that read
 * together, as they do from shared memory, read from all banks. Keys are read of two positions that
 * follow one another, values of every second of eight. */
#define MGL_KV_SWIZZLED(head_dim) ((head_dim) % 64 == 0)
MGL_VARIANT_SHAPES_FN int mgl_kv_chunk(int value, int position, int chunk)
{
    return chunk ^ (value ? (position >> 1 & 3) << 1 : (position & 1) << 2);
}

/* Panels: products of the second list whose weights and activations are both whole operands of
 * tensor cores (vm/cuda/device/linear/panels.cuh). By teams of warps (linear/warp_teams.cuh): a
 * warp has four row groups, and all activation rows or half of them, and teams share a panel's k
 * blocks. Or by warpgroups of 4 warps (linear/warpgroups.cuh): a warp has two row groups and all
 * activation rows, and warpgroups have row groups of a panel, or a share of its k blocks. */
enum {
    MGL_PANEL_OWN_GROUPS = 4, /* row groups of a warp of a team: two tiles of 16 rows */
    MGL_PANEL_ROW_STEP = 16,  /* activation rows: two tiles of 8 */
    MGL_PANEL_PIECE = 8, /* k blocks of a row group that are copied at once, at least, if a page
                            has room for them */
    MGL_PANEL_MOST_ACT_TILES =
        32,                    /* places for activations in shared memory: a lane, or more, each, */
    MGL_PANEL_MOST_BLOCKS = 8, /* and k blocks of one */
    MGL_PANEL_ROW_BYTES = 64,  /* of a row, in a k block of activations */
    MGL_WARPGROUP_WARPS = 4,   /* of sm_90a */
    MGL_WARPGROUP_GROUPS = 8,  /* row groups of a warpgroup, */
    MGL_WARPGROUP_BLOCKS = 2   /* and k blocks that it multiplies at once */
};

/* Row groups of a panel; activation rows that there is room for, by teams and by warpgroups; k
 * blocks of a tray, where as many rows are multiplied as a list may have; and of a ring's pages
 * those that the second list has weights in. The others' memory, with the stage, is trays. */
#define MGL_PANEL_GROUPS(warps) ((warps) / 2 * MGL_PANEL_OWN_GROUPS)
#define MGL_PANEL_ROWS(rows)                                                                       \
    (((rows) + MGL_PANEL_ROW_STEP - 1) / MGL_PANEL_ROW_STEP * MGL_PANEL_ROW_STEP)
#define MGL_WARPGROUP_ROWS(rows)      ((rows) <= 16 ? 16 : (rows) <= 32 ? 32 : (rows) <= 64 ? 64 : 128)
#define MGL_PANEL_ROOM(rows, grouped) ((grouped) ? MGL_WARPGROUP_ROWS(rows) : MGL_PANEL_ROWS(rows))
#define MGL_PANEL_ACT_TILE_BLOCKS(rows, grouped)                                                   \
    ((grouped) ? (rows) <= 64 ? 4 : 2 : (rows) <= 16 ? 4 : (rows) <= 32 ? 2 : 1)
#define MGL_PANEL_PAGES(ring_pages, rows) ((ring_pages) - (ring_pages) / ((rows) <= 64 ? 3 : 2))

/* Slim panels: of epochs with up to MGL_SMALL_M_ROWS rows, whose activations each warp loads by
 * itself (linear/small_m.cuh), if a page has room for a k block of each warp, `per` times. Up to
 * MGL_SMALL_N_ROWS rows those of tasks with few row groups. */
enum { MGL_SMALL_M_TILE = 16, MGL_SMALL_M_ROWS = 2 * MGL_SMALL_M_TILE, MGL_SMALL_N_ROWS = 64 };

/* Row groups of a slim panel of up to MGL_SMALL_M_TILE rows, at most; one of more rows has half as
 * many. A lane has 64 sums of 16, and what all warps leave of them takes 64 KB. */
MGL_VARIANT_SHAPES_FN int mgl_small_m_groups(int warps)
{
    const int most = MGL_PANEL_GROUPS(warps);
    return warps > 8 || most < 16 ? (most < 8 ? 4 : 8) : 16;
}

/* k blocks of each warp that are on a page together, of `per / turns` row groups: the more, the
 * fewer copies make a page. */
MGL_VARIANT_SHAPES_FN int mgl_small_m_turns(int per)
{
    return per >= 4 ? 2 : 1;
}

/* k blocks of a tray where `rows` rows are multiplied, of the `most` that the list may have: the
 * fewer rows, the more k blocks, in powers of 2. `grouped`: by warpgroups. */
MGL_VARIANT_SHAPES_FN int mgl_panel_act_tile_blocks(int most, int rows, int grouped)
{
    const int least = MGL_PANEL_ACT_TILE_BLOCKS(most, grouped);
    const int room = least * MGL_PANEL_ROOM(most, grouped);
    int blocks = least;
    while (blocks < MGL_PANEL_MOST_BLOCKS && 2 * blocks * MGL_PANEL_ROOM(rows, grouped) <= room)
        blocks *= 2;
    return blocks;
}

/* Row groups that a page has pieces of, of so many blocks. Two that follow one another are a warp's
 * of a warpgroup: they are on one page. */
MGL_VARIANT_SHAPES_FN int mgl_panel_per(int piece, int page_blocks, int grouped)
{
    const int per = page_blocks / piece;
    return grouped && per > 1 ? per / 2 * 2 : per;
}

/* Pages that row groups take whose pieces have so many blocks. */
MGL_VARIANT_SHAPES_FN int mgl_panel_pages(int groups, int piece, int page_blocks, int grouped)
{
    const int per = mgl_panel_per(piece, page_blocks, grouped);
    return (groups + per - 1) / per;
}

/* k blocks of a row group that lie together on a page, of a panel of so many row groups: a tray's,
 * doubled as long as all row groups have room on one page; or pieces are short, and `pages`, of
 * which one stays free, have room. A warp holds a page of its own while it waits for others. With
 * warpgroups, which take less time than their weights, pieces are half as long: more of them are on
 * their way while one is held. */
MGL_VARIANT_SHAPES_FN int mgl_panel_piece(int groups, int page_blocks, int act_tile_blocks,
                                          int pages, int grouped)
{
    const int least = grouped ? MGL_PANEL_PIECE / 2 : MGL_PANEL_PIECE;
    int piece = act_tile_blocks;
    while (2 * piece <= page_blocks) {
        const int wanted = mgl_panel_pages(groups, 2 * piece, page_blocks, grouped);
        if (wanted > 1 && (2 * piece > least || wanted >= pages))
            break;
        if (grouped && groups > 1 && page_blocks < 4 * piece) /* two of them are on one page */
            break;
        piece *= 2;
    }
    return piece;
}

#endif

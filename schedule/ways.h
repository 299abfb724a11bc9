/*
 * Numbers that lowering, variants, the cost model, the host and the kernel all know of the ways
 * that products and attention go. Plain C that NVRTC compiles too.
 */
#ifndef MGL_SCHEDULE_WAYS_H
#define MGL_SCHEDULE_WAYS_H

#include "schedule/tape.h"

#ifndef MGL_WAYS_FN
#define MGL_WAYS_FN static inline
#endif

enum {
    MGL_OTHER_WARPS = 4,       /* of a block, beside its consumers: see device/shared.cuh */
    MGL_PARTIAL_BYTES = 16384, /* shared memory for partial sums: see device/shared.cuh */
    MGL_SLOT_GROUPS = 4,       /* row groups of one row in a slot of sums, at most */
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
MGL_WAYS_FN int mgl_splits_used(int n, int splits, int share)
{
    const int wanted = share > 0 ? n / share + (n % share > 0) : splits;
    return wanted < 1 ? 1 : wanted < splits ? wanted : splits;
}

/* The positions of split i, [*lo, *hi): the splits that are used, in order, have as many each. */
MGL_WAYS_FN void mgl_split_positions(int n, int i, int splits, int share, int *lo, int *hi)
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
MGL_WAYS_FN int mgl_kv_chunk(int value, int position, int chunk)
{
    return chunk ^ (value ? (position >> 1 & 3) << 1 : (position & 1) << 2);
}

#endif

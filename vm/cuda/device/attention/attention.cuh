/*
 * Attention of the queue's rows over one kv head, for attend, attend_tail and attend_past.
 *
 * Row r of a sequence with n earlier positions looks at [lo, hi), its split's share of them, and,
 * where this task is the one that appends, at [n, position(r)]. This epoch's keys and values count
 * as they are stored in the cache: a position has one value, whichever epoch it came with.
 *
 * Both ways keep online softmaxes of parts of the positions, which are then merged in a fixed
 * order. (Online softmax: Milakov and Gimelshein, arXiv 1805.02867; its use for partial attention:
 * Dao et al., arXiv 2205.14135.)
 */
#ifndef MGL_DEVICE_ATTENTION_ATTENTION_CUH
#define MGL_DEVICE_ATTENTION_ATTENTION_CUH

#include "vm/cuda/device/attention/lanes.cuh"
#include "vm/cuda/device/attention/ring.cuh"
#include "vm/cuda/device/attention/short.cuh"

/* The rows of the mask, all heads of the q region; of scalar products, all rows. */
static __device__ __forceinline__ void attend_rows(const machine &m, u32 rows)
{
    if (TILED)
        attend_tiles(m, rows);
    else
        attend_lanes(m);
}

/* Out of line: their registers are not those of the loop. */
static __device__ __noinline__ void attend_apart(machine m, u32 rows)
{
    attend_rows(m, rows);
}

static __device__ __noinline__ u32 attend_short_apart(machine m)
{
    return attend_short(m);
}

/* One row in one pass, which waits for `go` itself; of several those that warps do by themselves,
 * then what is left. */
static __device__ __forceinline__ void consume_attention(machine &m)
{
    if (KV_RING)
        return consume_ring(m);
    if (MGL_PLAIN ? rows_of(m) == 1 : is_single_pass(m))
        return attend_single_apart(m);
    wait_go(m);
    if (MGL_PLAIN)
        return;
    u32 rows = SHORT && rows_of(m) > 1 ? attend_short_apart(m) : ~0u;
    if (rows)
        attend_apart(m, rows);
}

#endif

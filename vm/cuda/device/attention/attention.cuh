/*
 * Attention of the queue's rows over one kv head, for attend, attend_tail and attend_past.
 *
 * Row r of a sequence with n earlier positions looks at [lo, hi), its split's share of them, and,
 * where this task is the one that appends, at [n, position(r)]. This epoch's keys and values count
 * as they are stored in the cache: a position has one value, whichever epoch it came with.
 *
 *   way         function          for
 *   registers   attend_registers  one row by flags, a split of few positions (KV_REGISTERS): a warp
 *                                 has its only strip in registers before the queries are there
 *   ring        attend_ring       the same row, more positions: keys and values come through the
 * ring wave        attend_wave       one row by flags in a kernel without KV_RING, positions of one
 *                                 wave: two strips a warp
 *   waves       attend_waves      the same row, more positions
 *   short       attend_short      several rows with few positions: a warp does a row by itself
 *   tiles       attend_tiles      any rows, caches in 16 bits: row after row
 *   lanes       attend_lanes      any rows, caches in f32, and heads that tensor cores do not suit
 *
 * Every way keeps online softmaxes of parts of the positions, which are then merged in a fixed
 * order. (Online softmax: Milakov and Gimelshein, arXiv 1805.02867; its use for partial attention:
 * Dao et al., arXiv 2205.14135.)
 */
#ifndef MGL_DEVICE_ATTENTION_ATTENTION_CUH
#define MGL_DEVICE_ATTENTION_ATTENTION_CUH

#include "vm/cuda/device/attention/lanes.cuh"
#include "vm/cuda/device/attention/ring.cuh"
#include "vm/cuda/device/attention/short.cuh"

/* The rows of the mask, all heads of the q region; by lanes, all rows. Out of line: its registers
 * are not those of the products' loop. */
static __device__ __noinline__ void attend_rows(machine m, u32 rows)
{
    if (TILED)
        attend_tiles(m, rows);
    else
        attend_lanes(m);
}

/* The consumers' part of attention. The ways of one row wait for `go` themselves. */
static __device__ __forceinline__ void consume_attention(machine &m)
{
    if (KV_RING) {
        if (own().kv_bytes <= KV_REGISTERS * POSITION_BYTES)
            return attend_registers(m);
        const ring_news news = attend_ring(m);
        m.known = m.freed = news.end;
        trace_set_starved(m, news.starved);
        return;
    }
    if (MGL_PLAIN ? rows_of(m) == 1 : is_single_pass(m)) {
        if (own_count() <= wave<true>::LENGTH)
            return attend_wave(m);
        return attend_waves(m);
    }
    wait_go(m);
    if (MGL_PLAIN)
        return;
    u32 rows = SHORT && rows_of(m) > 1 ? attend_short(m) : ~0u;
    if (rows)
        attend_rows(m, rows);
}

#endif

/*
 * Choice of the kernel variant of attention, for attend, attend_tail and attend_past: a task
 * attends with its rows over one kv head. Its rows are all rows of the epoch, or the unsplit or the
 * split rows. The consumers call consume_attention; the controller has filled own().att.
 *
 * Row r of a sequence with n earlier positions attends to [lo, hi), its split's share of them. In a
 * task that appends it also attends to [n, position(r)]. This epoch's keys and values are used as
 * the cache stores them, rounded: a position has one value, whichever epoch it came with.
 *
 *   variant   function          runs
 *   ring      attend_registers  one row, few positions: a warp's only KV tile is loaded early
 *   ring      attend_ring       one row, more positions: keys and values come through the ring
 *   kv_rounds attend_kv_round   one row, positions of one KV round: two KV tiles per warp
 *   kv_rounds attend_kv_rounds  one row, more positions
 *   short     attend_short      several rows of few positions: each row is done by one warp
 *   tiles     attend_tiles      any rows, caches in 16 bits: row after row
 *   general   attend_lanes      any rows, any cache, any heads
 *
 * The variants short and tiles run an epoch of one row by KV rounds if two conditions hold: a kv
 * head has at most 4 query heads, and q, k, v and the result are flagged f32. Rows that are not
 * short go by tiles.
 *
 * Every variant computes online softmaxes over parts of the positions and merges them in a fixed
 * order. (Online softmax: Milakov and Gimelshein, arXiv 1805.02867; its use for partial attention:
 * Dao et al., arXiv 2205.14135.)
 */
#ifndef MGL_DEVICE_ATTENTION_ATTENTION_CUH
#define MGL_DEVICE_ATTENTION_ATTENTION_CUH

#include "vm/cuda/device/attention/lanes.cuh"
#include "vm/cuda/device/attention/partials.cuh"
#include "vm/cuda/device/attention/ring.cuh"
#include "vm/cuda/device/attention/short.cuh"
#include "vm/cuda/device/ops.cuh"

/* The paths that some task may take: those of the variants that the program names. */
enum {
    TILES_PATH = HAS_TILES || HAS_SHORT,
    KV_ROUNDS_PATH = HAS_KV_ROUNDS || (TILES_PATH && PASSES == 1),
    ONLY_KV_ROUNDS = HAS_KV_ROUNDS && !TILES_PATH && !HAS_GENERAL_ATTENTION
};
static_assert(TILED || !(TILES_PATH || HAS_KV_ROUNDS || HAS_RING), "tiles do not suit the heads");
static_assert(!HAS_KV_ROUNDS || PASSES == 1, "waves have one pass");

/* The paths, in two objects of a kernel. Out of line, because they need more registers than the
 * products' loop. */
NEAR_OR_INLINE void attend_rows(machine m, u32 rows)
{
    attend_tiles(m, rows);
}

NEAR_OR_INLINE void attend_by_lanes(machine m)
{
    attend_lanes(m);
}

FAR_OR_INLINE void do_rows(machine m, u32 rows); /* the rows of the mask, all heads of the q
                                                    region */
FAR_OR_INLINE void do_lanes(machine m);
FAR_OR_INLINE u32 do_short(machine m);
FAR_OR_INLINE void do_registers(machine m);
FAR_OR_INLINE ring_news do_ring(machine m);
FAR_OR_INLINE void do_nothing(machine m);
FAR_OR_INLINE void do_kv_round(machine m);
FAR_OR_INLINE void do_kv_rounds(machine m);

#if IN_OBJECT(ATTENTION)

FAR_OR_INLINE void do_rows(machine m, u32 rows)
{
    attend_rows(m, rows);
}

FAR_OR_INLINE void do_lanes(machine m)
{
    attend_by_lanes(m);
}

FAR_OR_INLINE u32 do_short(machine m)
{
    return attend_short(m);
}

FAR_OR_INLINE void do_registers(machine m)
{
    attend_registers(m);
}

FAR_OR_INLINE ring_news do_ring(machine m)
{
    return attend_ring(m);
}

#endif

#if IN_OBJECT(KV_ROUNDS)

FAR_OR_INLINE void do_nothing(machine m)
{
    write_empty(m);
}

FAR_OR_INLINE void do_kv_round(machine m)
{
    attend_kv_round(m);
}

FAR_OR_INLINE void do_kv_rounds(machine m)
{
    attend_kv_rounds(m);
}

#endif

/* Whether the task is one row that runs by KV rounds. If no task takes another path, a task with
 * one row always does. */
static __device__ __forceinline__ bool has_kv_rounds(const machine &m, int variant)
{
    return KV_ROUNDS_PATH && rows_of(m) == 1 &&
           (ONLY_KV_ROUNDS || (variant != VARIANT_GENERAL && is_plain(m)));
}

/* The consumers' part of attention. The paths for one row wait for `start` themselves. If the epoch
 * has no rows of the task's kind, there is nothing to do. */
static __device__ __forceinline__ void consume_attention(machine &m)
{
    if (HAS_RING)
        load_ring_place(m);
    if (!has_rows_of(own().att.rows))
        return;
    if (HAS_RING && MERGES && attends_to_nothing(m)) {
        do_nothing(m);
        return input_is_there(m, m.freed);
    }
    if (HAS_RING) {
        if (own().kv_bytes <= KV_REGISTERS * POSITION_BYTES)
            return do_registers(m);
        const ring_news news = do_ring(m);
        m.known = m.freed = news.end;
        save_ring_place(m);
        trace_set_starved(m, news.starved);
        return;
    }
    const int variant = task_of(m)->variant;
    if (has_kv_rounds(m, variant)) {
        if (MERGES && attends_to_nothing(m))
            return do_nothing(m);
        if (own_count() <= kv_round<true>::LENGTH)
            return do_kv_round(m);
        return do_kv_rounds(m);
    }
    wait_start(m);
    if (HAS_GENERAL_ATTENTION && variant == VARIANT_GENERAL)
        return do_lanes(m);
    u32 rows =
        HAS_SHORT && variant == VARIANT_SHORT && rows_of(m) > 1 ? do_short(m) : attended_rows(m);
    if (TILES_PATH && rows)
        do_rows(m, rows);
}

#endif

/*
 * Decode attention on tensor cores with keys and values from global memory: one row in one KV round
 * or in several, and any rows, one after the other. softmax.cuh describes how a tile is processed.
 * All consumer warps share a row (split-KV), and merge.cuh merges their results.
 *
 * Threads load groups of four elements of q, k or v and their RoPE partners, and write them to
 * shared memory as operands; a consumer barrier follows. Warp w processes positions [S w, S w + S),
 * [S (w + W), ...) from the first one on, S being KV_TILE, two KV tiles at a time (a KV round).
 * Before the queries are there, the warp loads the keys of both KV tiles, or the keys and values if
 * it has only one KV tile: none of them depends on this epoch. Used registers are refilled with the
 * next round, which the loader has prefetched into L2. If one round is all, the first KV tile's
 * values are also loaded before the queries, in the registers that a loop over rounds would need.
 * The results of the warps are merged in shared memory. If there is only one KV tile, its warp
 * writes the result directly.
 *
 * PLAIN is the case of decoding: a single row whose q, k, v and result are flagged f32. Its path
 * from the queries to the result has no tests that such a task does not need. In other cases a warp
 * has one KV tile at a time, whose values are loaded later: the same sums with fewer registers.
 */
#ifndef MGL_DEVICE_ATTENTION_KV_ROUNDS_CUH
#define MGL_DEVICE_ATTENTION_KV_ROUNDS_CUH

#include "vm/cuda/device/attention/merge.cuh"
#include "vm/cuda/device/trace.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
/* region: device */
/* Number of the row's own position in the round's last KV tile; KV_TILE if it is not there. */
template <bool PLAIN> static __device__ __forceinline__ int own_number(const tile_share &w)
{
    return w.left == w.stored ? (int)KV_TILE : has_second<PLAIN>(w) ? w.stored - STRIDE : w.stored;
}

/* Computes the scores of the round's KV tiles (a single tile is treated as the last) and the
 * maximum of each. Then loads their values into the registers of the keys. */
template <bool PLAIN>
static __device__ __forceinline__ void
score_kv_round(const machine &m, const tile_pass &p, const tile_share &w, kv_round_vectors &v,
               float (*first)[2], float (*last)[2], float *tops)
{
    if (!has_second<PLAIN>(w)) {
        if (own_number<PLAIN>(w) < KV_TILE)
            add_own_key(w.l, p.row, own_number<PLAIN>(w), v.first);
        score_tiles(m, p, v.first, w.left - w.l.key, last);
        if (!PLAIN)
            load_values(w.l, 0, w.stored, v.last);
        tops[1] = head_max(lane_max(-INFINITY, last));
        return;
    }
    score_tiles(m, p, v.first, KV_TILE, first);
    load_values(w.l, 0, KV_TILE, v.first);
    if (own_number<PLAIN>(w) < KV_TILE)
        add_own_key(w.l, p.row, own_number<PLAIN>(w), v.last);
    score_tiles(m, p, v.last, w.left - STRIDE - w.l.key, last);
    load_values(w.l, STRIDE, w.stored, v.last);
    tops[0] = head_max(lane_max(-INFINITY, first));
    tops[1] = head_max(lane_max(-INFINITY, last));
}

/* Processes the warp's KV tiles, two at a time. The loads of the first ones have been issued for
 * positions in the cache. Without tiles the state remains the neutral element. */
template <bool PLAIN>
static __device__ __forceinline__ void attend_kv_tiles(const machine &m, const tile_pass &p,
                                                       tile_share w, kv_round_vectors &v,
                                                       tile_state &s)
{
    constexpr int LENGTH = kv_round<PLAIN>::LENGTH;
    u32 stretches = 1;
    for (; w.left > 0; advance<PLAIN>(w)) {
        float first[TILES][2], last[TILES][2], tops[2];
        score_kv_round<PLAIN>(m, p, w, v, first, last, tops);
        if (has_second<PLAIN>(w)) {
            raise_state(s, fmaxf(s.max, tops[0]));
            add_values(s, first, v.first);
        }
        if (w.left > LENGTH)
            load_keys(w.l, LENGTH, w.stored, v.first);
        if (own_number<PLAIN>(w) < KV_TILE)
            add_own_value(w.l, p.row, own_number<PLAIN>(w), v.last);
        raise_state(s, fmaxf(s.max, tops[1]));
        add_values(s, last, v.last);
        if (w.left > LENGTH) {
            if (PLAIN)
                load_last<PLAIN>(w, LENGTH, v);
            if (PLAIN)
                tell_used(m, stretches += 2);
            if (kv_round<PLAIN>::WARPS_ASK)
                prefetch_kv_round<PLAIN>(m, w, 2);
        }
    }
}

/* Adds a KV tile's values. `number` is the row's own position in the tile, or KV_TILE if it is not
 * there. */
static __device__ __forceinline__ void add_kv_tile(const tile_pass &p, const tile_share &w,
                                                   int number, tile_vectors &values,
                                                   float (*scores)[2], tile_state &s)
{
    if (number < KV_TILE)
        add_own_value(w.l, p.row, number, values);
    add_values(s, scores, values);
}

/* Processes a warp's only KV tile, whose keys and values are in registers. */
static __device__ __forceinline__ tile_state attend_kv_tile(const machine &m, const tile_pass &p,
                                                            const tile_share &w, tile_one &v)
{
    const int number = own_number<true>(w);
    tile_state s = empty_state();
    float scores[TILES][2];
    if (number < KV_TILE)
        add_own_key(w.l, p.row, number, v.first);
    score_tiles(m, p, v.first, w.left - w.l.key, scores);
    s.max = head_max(lane_max(-INFINITY, scores));
    add_kv_tile(p, w, number, v.values, scores, s);
    return s;
}

/* Processes a warp's only KV round. All is in registers except the second KV tile's values, which
 * are loaded while the first tile is processed. */
static __device__ __forceinline__ tile_state attend_one(const machine &m, const tile_pass &p,
                                                        const tile_share &w, tile_one &v)
{
    const int number = own_number<true>(w);
    tile_state s = empty_state();
    float first[TILES][2], last[TILES][2];
    tile_vectors values;
    if (w.left <= 0)
        return s;
    if (!has_second<true>(w))
        return attend_kv_tile(m, p, w, v);
    score_tiles(m, p, v.first, KV_TILE, first);
    load_values(w.l, STRIDE, w.stored, values);
    if (number < KV_TILE)
        add_own_key(w.l, p.row, number, v.last);
    score_tiles(m, p, v.last, w.left - STRIDE - w.l.key, last);
    s.max = head_max(lane_max(-INFINITY, first));
    const float top = head_max(lane_max(-INFINITY, last));
    add_kv_tile(p, w, KV_TILE, v.values, first, s);
    raise_state(s, fmaxf(s.max, top));
    add_kv_tile(p, w, number, values, last, s);
    return s;
}

/* Reads the thread's indices and task again, as run_consumer does. The compiler would keep values
 * that live through a pass in local memory, which keys and values evict from L1. */
static __device__ __forceinline__ void know_anew(machine &m)
{
    know_thread(m);
    const instruction_slot task =
        own().instruction[(own().begun[m.warp] + 1) & 1]; /* of the last task that the warp began */
    m.record = task.record;
    m.epoch = task.epoch;
}

/* Positions of a task of one row, also read again. */
static __device__ __forceinline__ int own_count()
{
    return (int)(own().kv_bytes / POSITION_BYTES) + own().att.now;
}

/* Whether a task of one row attends to no position: its split is empty, and the task does not
 * append. */
static __device__ __forceinline__ bool attends_to_nothing(const machine &m)
{
    return own().att.part != 0 && own_count() == 0;
}

/* Writes the partial of such a task, which does not depend on the queries. */
NEAR_OR_INLINE void write_empty(machine m)
{
    wait_start(m);
    if (m.warp == 0)
        store_plain(plain_output_of(m, pass_at(0)), m.lane, result_of(empty_state()),
                    keep_policy());
}

/* Processes one pass. Loads that do not depend on this epoch are issued first. The destination of
 * the result is computed at the end: kept through the pass, it would cost registers that the
 * products' loop needs. Returns false if a wait gave up. */
template <bool PLAIN, bool ONE>
static __device__ __forceinline__ bool attend_pass_tiles(machine &m, const tile_pass &p, u64 policy)
{
    positions at = positions_of(m, p.row);
    if (own().att.now && at.hi < at.last) {
        consumer_barrier(); /* after this barrier the cache has the sequence's rows before this
                               one */
        at.hi = at.last;
    }
    const int count = at.end - at.lo;
    quad quads[ROUNDS];
    kv_round_vectors v;
    tile_one one;
    plain_output to = {};
    load_quads<PLAIN>(m, p, quads, policy);
    tile_share w = share_of(m, p, at);
    if (ONE)
        begin_one(m, w, one);
    else
        begin_tiles<PLAIN>(m, w, v);
    bool written = await_quads<PLAIN>(m, p, quads, policy);
    if (PLAIN)
        wait_start(m);
    write_quads<PLAIN>(m, p, quads);
    consumer_barrier();
    know_thread(m);
    place_lane(m, w.l);
    trace_input(m);
    tile_state s;
    if (ONE) {
        s = attend_one(m, p, w, one);
    } else {
        s = empty_state();
        attend_kv_tiles<PLAIN>(m, p, w, v, s);
    }
    tile_result result = result_of(s);
    know_anew(m);
    policy = keep_policy();
    if (PLAIN)
        to = plain_output_of(m, p);
    finish_pass<PLAIN>(m, p, to, active_warps(PLAIN ? own_count() : count), result, policy);
    append_quads(m, p);
    return written;
}

/* Reports a wait that gave up. Called at the end: an earlier call would cost the registers that
 * hold keys and values. */
static __device__ __forceinline__ void report_missing(const machine &m)
{
    report_flags(m, operand_of(vector_of(max(item_of(m, 0), 0))));
}

/* A plain task of one row and one pass in one KV round. Out of line, because its registers differ
 * from those of the loop over passes, and those of one round from those of several. */
NEAR_OR_INLINE void attend_kv_round(machine m)
{
    if (TILED && !attend_pass_tiles<true, true>(m, pass_at(0), keep_policy()))
        report_missing(m);
}

NEAR_OR_INLINE void attend_kv_rounds(machine m)
{
    if (TILED && !attend_pass_tiles<true, false>(m, pass_at(0), keep_policy()))
        report_missing(m);
}

/* Processes the rows of the mask, with all heads of the q region. Adjacent passes use different
 * halves of the buffers of query_column and own_vector, and the barrier within a pass separates it
 * from the pass before the previous one. If rows between two passes are not in the mask, both may
 * use the same half. Then another barrier separates them. */
static __device__ __forceinline__ void attend_tiles(const machine &m, u32 rows)
{
    const u64 policy = keep_policy();
    machine now = m;
    bool written = true;
    int last = -1; /* the last pass */
    for (int item = 0; item < rows_of(m) * PASSES; item++) {
        if (!(rows >> item / PASSES & 1))
            continue;
        if (last >= 0 && item / PASSES - last / PASSES > 1)
            consumer_barrier();
        written = attend_pass_tiles<false, false>(now, pass_at(item), policy) && written;
        last = item;
    }
    if (!written)
        report_missing(m);
}

/* region: end */

#endif

/*
 * Attention by tensor cores with keys and values from memory: one row in one wave or in several,
 * and any rows, one after the other. softmax.cuh says how a tile is worked on.
 *
 * Threads fetch four and four elements of q, k or v that are rotated together, and leave them in
 * shared memory as operands. Warp w takes positions [S w, S w + S), [S (w + W), ...) from the first
 * one on, S being STRIP, two strips at a time (a wave). The keys of both strips are in registers
 * before the queries are there, or, where the warp has only one strip, its keys and values: none of
 * them depends on this epoch. Whatever has been used makes room for what comes next, which the
 * loader has asked L2 for. Where a wave is all, the first strip's values are there before the
 * queries as well: they have the registers that a loop over waves needs. What the warps have is
 * merged in shared memory; where one strip is all, its warp writes the result.
 *
 * That is for a single row whose q, k, v and result are flagged f32 (`PLAIN`), which is what
 * decoding does: the way from the queries to the result asks nothing that such a task need not ask.
 * Of several rows, or others, a warp has one strip at a time, whose values come later: the same
 * sums, with fewer registers.
 */
#ifndef MGL_DEVICE_ATTENTION_KV_ROUNDS_CUH
#define MGL_DEVICE_ATTENTION_KV_ROUNDS_CUH

#include "vm/cuda/device/attention/merge.cuh"
#include "vm/cuda/device/trace.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
/* region: device */
/* Number of the row's own position in the wave's last strip; none of its if it is not there. */
template <bool PLAIN> static __device__ __forceinline__ int own_number(const tile_share &w)
{
    return w.left == w.stored ? (int)KV_TILE : has_second<PLAIN>(w) ? w.stored - STRIDE : w.stored;
}

/* Scores of the wave's strips, of one alone as of the last, and the largest of each; then their
 * values are asked for where the keys have been. */
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

/* The warp's strips, two at a time, the first of which are at hand as far as they are in the
 * cache; none leaves the neutral element. */
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

/* Adds a strip's values, where `number` is the row's own position in it, or none of its. */
static __device__ __forceinline__ void add_kv_tile(const tile_pass &p, const tile_share &w,
                                                   int number, tile_vectors &values,
                                                   float (*scores)[2], tile_state &s)
{
    if (number < KV_TILE)
        add_own_value(w.l, p.row, number, values);
    add_values(s, scores, values);
}

/* A warp's only strip: keys and values are at hand. */
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

/* A warp's only wave: all but the second strip's values is at hand, which come while the first is
 * worked on. */
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

/* Asks anew who this thread is and what it does, as consume() has: values that lived through a pass
 * would be kept in local memory, which keys and values drive out of L1. */
static __device__ __forceinline__ void know_anew(machine &m)
{
    know_thread(m);
    const instruction_slot task =
        own().instruction[(own().begun[m.warp] + 1) & 1]; /* of the last task that it began */
    m.record = task.record;
    m.epoch = task.epoch;
}

/* Positions of a task of one row, likewise. */
static __device__ __forceinline__ int own_count()
{
    return (int)(own().kv_bytes / POSITION_BYTES) + own().att.now;
}

/* Whether a task of one row attends to nothing: its split has no positions, and it does not append.
 */
static __device__ __forceinline__ bool attends_to_nothing(const machine &m)
{
    return own().att.part != 0 && own_count() == 0;
}

/* Then its partial is known before the queries are. */
NEAR_OR_INLINE void write_empty(machine m)
{
    wait_start(m);
    if (m.warp == 0)
        store_plain(plain_output_of(m, pass_at(0)), m.lane, result_of(empty_state()),
                    keep_policy());
}

/* One pass. What does not depend on this epoch is asked for first; where the result goes, only at
 * the end: kept through the pass, it would cost registers that the products' loop needs. False when
 * a wait gave up. */
template <bool PLAIN, bool ONE>
static __device__ __forceinline__ bool attend_pass_tiles(machine &m, const tile_pass &p, u64 policy)
{
    positions at = positions_of(m, p.row);
    if (own().att.now && at.hi < at.last) {
        consumer_barrier(); /* behind which the cache has the sequence's rows before this one */
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

/* A wait that gave up is reported at the end: a call in between would cost the registers that hold
 * keys and values. */
static __device__ __forceinline__ void report_missing(const machine &m)
{
    report_flags(m, operand_of(vector_of(max(item_of(m, 0), 0))));
}

/* A task of one row, of one pass, and plain, in one wave. Out of line, since its registers are not
 * those of the loop over passes; nor are those of one wave those of several. */
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

/* The rows of the mask, with all heads of the q region. */
static __device__ __forceinline__ void attend_tiles(const machine &m, u32 rows)
{
    const u64 policy = keep_policy();
    machine now = m;
    bool written = true;
    for (int item = 0; item < rows_of(m) * PASSES; item++)
        if (rows >> item / PASSES & 1)
            written = attend_pass_tiles<false, false>(now, pass_at(item), policy) && written;
    if (!written)
        report_missing(m);
}

/* region: end */

#endif

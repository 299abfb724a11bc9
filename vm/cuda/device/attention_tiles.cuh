/*
 * Attention by tensor cores: for caches in 16 bits. All heads of a kv head at once (HEAD_COLUMNS /
 * 2 of them; of more, as many in another pass), so that a key or a value is read once.
 *
 * A tile is 16 positions. Scores are K q^T: the keys are the A operand as they lie in memory, 16
 * bytes a lane (the order of the dimensions within an MMA is free, since q's is the same); the B
 * operand has two columns a head, the rotated q rounded to 16 bits and what rounding left. So a
 * lane has the scores of two positions for one head, l % 4. Their weights, again in two parts,
 * become the B operand of V^T p by two 8 x 8 transpositions; V^T is made from pairs of positions by
 * byte permutations. Its sums lie as the scores do: the lanes of a head have that head's maximum
 * and sum as well.
 *
 * The block works on one row after the other. Threads fetch four and four elements of q, k or v
 * that are rotated together, and leave them in shared memory as operands. Warp w takes positions [B
 * w, B w + B), [B (w + W), ...) from the first one on, B being BATCH, two batches at a time (a
 * wave): the keys of both are in registers before the queries are there, or, where the warp has
 * only one, its keys and values, since none of them depends on this epoch; whatever has been used
 * makes room for what comes next, which the loader has asked L2 for. Where a wave is all, the first
 * batch's values are there before the queries as well: the registers that a loop over waves needs
 * hold them. What the warps have is merged in shared memory; where one batch is all, its warp
 * writes the result.
 *
 * That is for a single row whose q, k, v and result are flagged f32 (`PLAIN`), which is what
 * decoding does: all that such a task need not ask is left out of the way from the queries to the
 * result. Of several rows, or others, a warp has one batch at a time, whose values come later: the
 * same sums, with fewer registers.
 */
#ifndef MGL_DEVICE_ATTENTION_TILES_CUH
#define MGL_DEVICE_ATTENTION_TILES_CUH

#include "vm/cuda/device/attention_vectors.cuh"

/* ---- softmax ----------------------------------------------------------------------------------
 */

/* A warp's softmax so far, of head l % 4 in lane l. Maximum and scores are powers of 2. */
struct tile_state {
    float max;
    float sum;           /* this lane's positions */
    float sums[SUMS][4]; /* dimension 64 (i / 4) + 8 (l / 4) + 2 (i % 4), two parts, and the next */
};

/* The lane's part of the q operand, chunk c. Asked for in each batch: registers are scarce. */
static __device__ __forceinline__ uint4 load_query(const machine &m, const tile_pass &p, int c)
{
    const u32 *at = query_column(p.item, m.lane / 4) + 16 * c + m.lane % 4 * 4;
    uint4 words = make_uint4(0, 0, 0, 0);
    if (m.lane / 8 < p.heads && (32 * c + 32 <= HEAD_DIM || 32 * c + m.lane % 4 * 8 < HEAD_DIM))
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                     : "r"(shared_address(at)));
    return words;
}

/* Sums of products: as many chains of MMAs as keep the tensor cores at work, two of a tile if that
 * is alone. */
enum { CHAINS = TILES == 1 ? 2 : 1 };
struct tile_products {
    float sums[TILES][CHAINS][4];
};

/* Adds those of chunk c. */
static __device__ __forceinline__ void add_products(const tile_vectors &keys, int c, const uint4 &q,
                                                    tile_products &sums)
{
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        const uint4 x = keys.at[key_number(t, 0, c)], y = keys.at[key_number(t, 1, c)];
        mma_tile(sums.sums[t][0], x.x, y.x, x.y, y.y, q.x, q.y);
        mma_tile(sums.sums[t][CHAINS - 1], x.z, y.z, x.w, y.w, q.z, q.w);
    }
}

/* Scores of this lane's two positions of each tile; of the batch's, those before `left` count. */
static __device__ __forceinline__ void scores_of(const tile_products &sums, int left,
                                                 float (*scores)[2])
{
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
        const float *x = sums.sums[i / 2][0] + i % 2 * 2,
                    *y = sums.sums[i / 2][CHAINS - 1] + i % 2 * 2;
        float score = CHAINS == 1 ? x[0] + x[1] : (x[0] + y[0]) + (x[1] + y[1]);
        scores[i / 2][i % 2] = i * 8 < left ? score : -INFINITY;
    }
}

static __device__ __forceinline__ void score_tiles(const machine &m, const tile_pass &p,
                                                   const tile_vectors &keys, int left,
                                                   float (*scores)[2])
{
    tile_products sums = {};
#pragma unroll
    for (int c = 0; c < KEY_CHUNKS; c++)
        add_products(keys, c, load_query(m, p, c), sums);
    scores_of(sums, left, scores);
}

/* The largest of a head's lanes. */
static __device__ __forceinline__ float head_max(float value)
{
#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, offset));
    return value;
}

/* The largest of `top` and of this lane's scores of a batch. */
static __device__ __forceinline__ float lane_max(float top, float (*scores)[2])
{
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++)
        top = fmaxf(top, scores[i / 2][i % 2]);
    return top;
}

/* Makes all relative to maximum `top`. */
static __device__ __forceinline__ void raise_state(tile_state &s, float top)
{
    float keep = power_of_2(s.max - top);
    s.max = top;
    s.sum *= keep;
#pragma unroll
    for (int i = 0; i < 4 * SUMS; i++)
        s.sums[i / 4][i % 4] *= keep;
}

/* Weights of the batch's scores, as the B operands of the values: two words a tile. */
static __device__ __forceinline__ void weigh(tile_state &s, float (*scores)[2], u32 (*weights)[2])
{
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
        float weight = power_of_2(scores[i / 2][i % 2] - s.max);
        u32 word = pack_pair(MGL_CACHE, weight, 0.0f);
        s.sum += weight;
        weights[i / 2][i % 2] =
            transposed(pack_pair(MGL_CACHE, low_half(word), weight - low_half(word)));
    }
}

/* Adds the values of tile t by weight. */
static __device__ __forceinline__ void add_tile(tile_state &s, const tile_vectors &values, int t,
                                                const u32 *weights)
{
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        u32 words[4];
#pragma unroll
        for (int p = 0; p < 4; p++) {
            const uint4 raw = values.at[value_number(t, p, i / 4)];
            words[p] = i % 4 == 0 ? raw.x : i % 4 == 1 ? raw.y : i % 4 == 2 ? raw.z : raw.w;
        }
        mma_tile(s.sums[i], __byte_perm(words[0], words[1], 0x5410),
                 __byte_perm(words[0], words[1], 0x7632), __byte_perm(words[2], words[3], 0x5410),
                 __byte_perm(words[2], words[3], 0x7632), weights[0], weights[1]);
    }
}

/* Adds a batch's values by their positions' scores. */
static __device__ __forceinline__ void add_values(tile_state &s, float (*scores)[2],
                                                  const tile_vectors &values)
{
    u32 weights[TILES][2];
    weigh(s, scores, weights);
#pragma unroll
    for (int t = 0; t < TILES; t++)
        add_tile(s, values, t, weights[t]);
}

/* Number of the row's own position in the wave's last batch; none of its if it is not there. */
template <bool PLAIN> static __device__ __forceinline__ int own_number(const tile_share &w)
{
    return w.left == w.stored ? (int)BATCH : has_second<PLAIN>(w) ? w.stored - STRIDE : w.stored;
}

/* Scores of the wave's batches, of one alone as of the last, and the largest of each; then their
 * values are asked for where the keys have been. */
template <bool PLAIN>
static __device__ __forceinline__ void score_wave(const machine &m, const tile_pass &p,
                                                  const tile_share &w, tile_wave &v,
                                                  float (*first)[2], float (*last)[2], float *tops)
{
    if (!has_second<PLAIN>(w)) {
        if (own_number<PLAIN>(w) < BATCH)
            add_own_key(w.l, p.row, own_number<PLAIN>(w), v.first);
        score_tiles(m, p, v.first, w.left - w.l.key, last);
        if (!PLAIN)
            load_values(w.l, 0, w.stored, v.last);
        tops[1] = head_max(lane_max(-INFINITY, last));
        return;
    }
    score_tiles(m, p, v.first, BATCH, first);
    load_values(w.l, 0, BATCH, v.first);
    if (own_number<PLAIN>(w) < BATCH)
        add_own_key(w.l, p.row, own_number<PLAIN>(w), v.last);
    score_tiles(m, p, v.last, w.left - STRIDE - w.l.key, last);
    load_values(w.l, STRIDE, w.stored, v.last);
    tops[0] = head_max(lane_max(-INFINITY, first));
    tops[1] = head_max(lane_max(-INFINITY, last));
}

/* The warp's batches, two at a time, the first of which are at hand as far as they are in the
 * cache; none leaves the neutral element. */
template <bool PLAIN>
static __device__ __forceinline__ void attend_batches(const machine &m, const tile_pass &p,
                                                      tile_share w, tile_wave &v, tile_state &s)
{
    constexpr int LENGTH = wave<PLAIN>::LENGTH;
    u32 runs = 1;
    for (; w.left > 0; advance<PLAIN>(w)) {
        float first[TILES][2], last[TILES][2], tops[2];
        score_wave<PLAIN>(m, p, w, v, first, last, tops);
        if (has_second<PLAIN>(w)) {
            raise_state(s, fmaxf(s.max, tops[0]));
            add_values(s, first, v.first);
        }
        if (w.left > LENGTH)
            load_keys(w.l, LENGTH, w.stored, v.first);
        if (own_number<PLAIN>(w) < BATCH)
            add_own_value(w.l, p.row, own_number<PLAIN>(w), v.last);
        raise_state(s, fmaxf(s.max, tops[1]));
        add_values(s, last, v.last);
        if (w.left > LENGTH) {
            if (PLAIN)
                load_last<PLAIN>(w, LENGTH, v);
            if (PLAIN)
                tell_used(m, runs += 2);
            if (wave<PLAIN>::WARPS_ASK)
                prefetch_wave<PLAIN>(m, w, 2);
        }
    }
}

/* ---- one wave ---------------------------------------------------------------------------------
 */

static __device__ __forceinline__ tile_state empty_state()
{
    tile_state s;
    s.max = -INFINITY;
    s.sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 4 * SUMS; i++)
        s.sums[i / 4][i % 4] = 0.0f;
    return s;
}

/* Adds a batch's values, where `number` is the row's own position in it, or none of its. */
static __device__ __forceinline__ void add_batch(const tile_pass &p, const tile_share &w,
                                                 int number, tile_vectors &values,
                                                 float (*scores)[2], tile_state &s)
{
    if (number < BATCH)
        add_own_value(w.l, p.row, number, values);
    add_values(s, scores, values);
}

/* A warp's only batch: keys and values are at hand. */
static __device__ __forceinline__ tile_state attend_batch(const machine &m, const tile_pass &p,
                                                          const tile_share &w, tile_one &v)
{
    const int number = own_number<true>(w);
    tile_state s = empty_state();
    float scores[TILES][2];
    if (number < BATCH)
        add_own_key(w.l, p.row, number, v.first);
    score_tiles(m, p, v.first, w.left - w.l.key, scores);
    s.max = head_max(lane_max(-INFINITY, scores));
    add_batch(p, w, number, v.values, scores, s);
    return s;
}

/* A warp's only wave: all but the second batch's values is at hand, which come while the first is
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
        return attend_batch(m, p, w, v);
    score_tiles(m, p, v.first, BATCH, first);
    load_values(w.l, STRIDE, w.stored, values);
    if (number < BATCH)
        add_own_key(w.l, p.row, number, v.last);
    score_tiles(m, p, v.last, w.left - STRIDE - w.l.key, last);
    s.max = head_max(lane_max(-INFINITY, first));
    const float top = head_max(lane_max(-INFINITY, last));
    add_batch(p, w, BATCH, v.values, first, s);
    raise_state(s, fmaxf(s.max, top));
    add_batch(p, w, number, values, last, s);
    return s;
}

/* ---- results ----------------------------------------------------------------------------------
 */

/* A warp's result: its lane's pairs of dimensions of head l % 4. */
struct tile_result {
    float max, sum;
    float2 value[SUMS];
};

static __device__ __forceinline__ tile_result result_of(const tile_state &s)
{
    tile_result result;
    result.max = s.max;
    result.sum = s.sum;
#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1)
        result.sum += __shfl_xor_sync(0xFFFFFFFFu, result.sum, offset);
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        result.value[i] = make_float2(s.sums[i][0] + s.sums[i][1], s.sums[i][2] + s.sums[i][3]);
    return result;
}

/* Dimension of value i of a lane. */
static __device__ __forceinline__ int result_dim(int lane, int i)
{
    return i / 4 * 64 + lane / 4 * 8 + i % 4 * 2;
}

/* A partial's maximum is the score's, not its power's. */
static __device__ __forceinline__ void store_value(const head_output &to, int lane, int i,
                                                   float2 value, float max, float sum, u64 policy)
{
    int d = result_dim(lane, i);
    if (d < HEAD_DIM)
        store_result(to, d, value, max * 0.6931471805599453f, sum, policy);
}

/* Where the result of head l % 4 of a pass goes, if that is flagged f32, padded where it is a
 * partial. */
struct plain_output {
    float *at; /* dimension 0; NULL: the pass has no such head */
    bool part;
};

static __device__ __forceinline__ plain_output plain_output_of(const machine &m, const tile_pass &p)
{
    plain_output to = {NULL, own().att.part != 0};
    if (m.lane % 4 < p.heads) {
        const head_output o = output_of(m, p.row, p.head + m.lane % 4);
        to.at = o.part ? o.part : (float *)element_of(o.y, o.row, o.column);
    }
    return to;
}

/* What the sums of a result are multiplied by, on their way there. */
static __device__ __forceinline__ float plain_scale(const plain_output &to, float sum)
{
    return to.part ? 1.0f : reciprocal(sum);
}

/* What stands behind a partial's dimensions: the maximum is the score's, not its power's. */
static __device__ __forceinline__ void store_weight(const plain_output &to, int lane, float max,
                                                    float sum, u64 policy)
{
    const float words[4] = {max * 0.6931471805599453f, sum, 0.0f, 0.0f};
    if (to.part && lane < 4)
        store_four_floats(to.at + HEAD_DIM, words, policy);
}

/* A warp's result where it is all. */
static __device__ __forceinline__ void store_plain(const plain_output &to, int lane,
                                                   const tile_result &result, u64 policy)
{
    const float scale = plain_scale(to, result.sum);
    if (!to.at)
        return;
#pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        const float2 x = result.value[i], y = result.value[i + 1];
        const float words[4] = {x.x * scale, x.y * scale, y.x * scale, y.y * scale};
        if (VALUE_CHUNKS * 64 == HEAD_DIM || result_dim(lane, i) < HEAD_DIM)
            store_four_floats(to.at + result_dim(lane, i), words, policy);
    }
    store_weight(to, lane, result.max, result.sum, policy);
}

static __device__ __forceinline__ void store_alone(const machine &m, const tile_pass &p,
                                                   const tile_result &result, u64 policy)
{
    if (m.lane % 4 >= p.heads)
        return;
    const head_output to = output_of(m, p.row, p.head + m.lane % 4);
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        store_value(to, m.lane, i, result.value[i], result.max, result.sum, policy);
}

static __device__ __forceinline__ void leave_result(int slot, int lane, const tile_result &result)
{
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        left_sums(slot)[i * 32 + lane] = result.value[i];
    if (lane < 4)
        *left_weight(slot, lane) = make_float2(result.max, result.sum);
}

/* Merges what another warp has left in the slot. */
static __device__ __forceinline__ void take_result(int slot, int lane, tile_result &result)
{
    float2 other = *left_weight(slot, lane % 4);
    float top = fmaxf(result.max, other.x);
    float mine = power_of_2(result.max - top), theirs = power_of_2(other.x - top);
    result.max = top;
    result.sum = result.sum * mine + other.y * theirs;
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        float2 value = left_sums(slot)[i * 32 + lane];
        result.value[i].x = result.value[i].x * mine + value.x * theirs;
        result.value[i].y = result.value[i].y * mine + value.y * theirs;
    }
    __syncwarp(); /* the slot may be left to anew: all lanes have its weight */
}

/* Brings the results of `active` warps to the first LEAVES of them, LEAVES at a time. */
static __device__ __forceinline__ void fold_results(const machine &m, int active,
                                                    tile_result &result)
{
#pragma unroll
    for (int first = (MGL_WARPS - 1) / LEAVES * LEAVES; first > 0; first -= LEAVES) {
        if (first >= active)
            continue;
        if (m.warp >= first && m.warp < min(active, first + LEAVES))
            leave_result(m.warp - first, m.lane, result);
        consumer_barrier();
        if (m.warp < LEAVES && m.warp + first < active)
            take_result(m.warp, m.lane, result);
        if (first > LEAVES)
            consumer_barrier();
    }
    if (m.warp < min(active, (int)LEAVES))
        leave_result(m.warp, m.lane, result);
    consumer_barrier();
}

/* A pair of dimensions merged, and max and sum of their head. */
struct folded {
    float2 value;
    float max, sum;
};

/* Merges what the first `slots` warps have left of pairs i of this lane: one of its head's. */
static __device__ __forceinline__ folded fold_pair(int slots, int lane, int i)
{
    folded all = {{0.0f, 0.0f}, -INFINITY, 0.0f};
    float2 weights[LEAVES], values[LEAVES];
#pragma unroll
    for (int u = 0; u < LEAVES; u++) {
        weights[u] = make_float2(-INFINITY, 0.0f);
        values[u] = make_float2(0.0f, 0.0f);
        if (u < slots) {
            weights[u] = *left_weight(u, lane % 4);
            values[u] = left_sums(u)[i * 32 + lane];
        }
    }
#pragma unroll
    for (int u = 0; u < LEAVES; u++)
        all.max = fmaxf(all.max, weights[u].x);
#pragma unroll
    for (int u = 0; u < LEAVES; u++) {
        const float weight = power_of_2(weights[u].x - all.max);
        all.sum = fmaf(weights[u].y, weight, all.sum);
        all.value.x = fmaf(values[u].x, weight, all.value.x);
        all.value.y = fmaf(values[u].y, weight, all.value.y);
    }
    return all;
}

/* Merges and writes what the first `slots` warps have left, a pair of dimensions a thread. */
static __device__ __forceinline__ void store_folded(const machine &m, const tile_pass &p, int slots,
                                                    u64 policy)
{
    if (m.lane % 4 >= p.heads)
        return;
    const head_output to = output_of(m, p.row, p.head + m.lane % 4);
    for (int i = m.warp; i < SUMS; i += MGL_WARPS) {
        const folded all = fold_pair(slots, m.lane, i);
        store_value(to, m.lane, i, all.value, all.max, all.sum, policy);
    }
}

/* The same to a plain output. */
static __device__ __forceinline__ void store_folded_plain(const machine &m, const plain_output &to,
                                                          int slots, u64 policy)
{
#pragma unroll
    for (int u = 0; u < (SUMS + MGL_WARPS - 1) / MGL_WARPS; u++) {
        const int i = m.warp + u * MGL_WARPS;
        if (!to.at || i >= SUMS)
            return;
        const folded all = fold_pair(slots, m.lane, i);
        const float scale = plain_scale(to, all.sum);
        const int d = result_dim(m.lane, i);
        if (VALUE_CHUNKS * 64 == HEAD_DIM || d < HEAD_DIM)
            store_two_words(to.at + d, flag_bits(all.value.x * scale),
                            flag_bits(all.value.y * scale), policy);
        if (i == 0)
            store_weight(to, m.lane, all.max, all.sum, policy);
    }
}

/* ---- all rows ---------------------------------------------------------------------------------
 */

/* What the warps have of a pass, `active` of them, to where it goes. */
template <bool PLAIN>
static __device__ __forceinline__ void finish_pass(const machine &m, const tile_pass &p,
                                                   const plain_output &to, int active,
                                                   tile_result &result, u64 policy)
{
    if (active > 1) {
        fold_results(m, active, result);
        if (PLAIN)
            store_folded_plain(m, to, min(active, (int)LEAVES), policy);
        else
            store_folded(m, p, min(active, (int)LEAVES), policy);
    } else if (m.warp == 0) {
        if (PLAIN)
            store_plain(to, m.lane, result, policy);
        else
            store_alone(m, p, result, policy);
    }
}

/* Whether q, k, v and the result are flagged f32, and a partial padded. */
static __device__ __forceinline__ bool is_plain(const machine &m)
{
    const attention &a = own().att;
    bool plain = a.q.flag && a.q.dtype == DTYPE_F32;
    if (a.now)
        plain = plain && a.k_new.flag && a.k_new.dtype == DTYPE_F32 && a.v_new.flag &&
                a.v_new.dtype == DTYPE_F32;
    if (a.part)
        return plain && operand(m, a.part).flag && operand(m, a.part).stride2 == HEAD_DIM + 4;
    return plain && a.y.flag && a.y.dtype == DTYPE_F32;
}

/* Warps that have some of so many positions. */
static __device__ __forceinline__ int active_warps(int count)
{
    return min((count + BATCH - 1) / BATCH, MGL_WARPS);
}

/* Asks anew who this thread is and what it does, as consume() has: values that lived through a pass
 * would be kept in local memory, which keys and values drive out of L1. */
static __device__ __forceinline__ void know_anew(machine &m)
{
    know_thread(m);
    const start task = own().task[(own().turns[m.warp] + 1) & 1]; /* the turn before the next */
    m.record = task.record;
    m.epoch = task.epoch;
}

/* Positions of a task of one row, likewise. */
static __device__ __forceinline__ int own_count()
{
    return (int)(own().past_bytes / ROW_BYTES) + own().att.now;
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
    tile_wave v;
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
        wait_go(m);
    leave_quads<PLAIN>(m, p, quads);
    consumer_barrier();
    know_thread(m);
    place_lane(m, w.l);
#if MGL_TRACE
    if (thread_of(m) == 0)
        own().input = time_ns();
#endif
    tile_state s;
    if (ONE) {
        s = attend_one(m, p, w, one);
    } else {
        s = empty_state();
        attend_batches<PLAIN>(m, p, w, v, s);
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
    const u64 long_ago = 1;
    look_at_clock(long_ago, MGL_REPORT_FLAG, task_of(m)->task, m.epoch,
                  (u32)operand_of(vector_of(thread_of(m))), 1, 0);
}

/* Whether a task is one pass, and a plain one: decoding for one sequence. */
static __device__ __forceinline__ bool is_single_pass(const machine &m)
{
    return TILED && PASSES == 1 && rows_of(m) == 1 && is_plain(m);
}

/* Such a task. Out of line, since its registers are not those of the loop over passes; nor are
 * those of one wave those of several. */
static __device__ __noinline__ void attend_one_apart(machine m)
{
    if (TILED && !attend_pass_tiles<true, true>(m, pass_at(0), keep_policy()))
        report_missing(m);
}

static __device__ __noinline__ void attend_waves_apart(machine m)
{
    if (TILED && !attend_pass_tiles<true, false>(m, pass_at(0), keep_policy()))
        report_missing(m);
}

static __device__ __forceinline__ void attend_single_apart(const machine &m)
{
    if (own_count() <= wave<true>::LENGTH)
        attend_one_apart(m);
    else
        attend_waves_apart(m);
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

#endif

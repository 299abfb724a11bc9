/*
 * Merge of the warps' partial softmaxes of a row: a reduction through shared memory
 * (warp_values, warp_weight) in a fixed order, and the store of the result. Consumer barriers order
 * the exchange. kv_rounds.cuh and ring.cuh call finish_pass; short.cuh stores the result of a
 * single warp.
 */
#ifndef MGL_DEVICE_ATTENTION_MERGE_CUH
#define MGL_DEVICE_ATTENTION_MERGE_CUH

#include "vm/cuda/device/attention/output.cuh"
#include "vm/cuda/device/attention/softmax.cuh"

/* A warp's result: the lane's pairs of dimensions of head l % 4. */
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

/* Stores value i of a lane. The maximum of a partial is in units of the score, not of the exponent
 * of 2. */
static __device__ __forceinline__ void store_value(const head_output &to, int lane, int i,
                                                   float2 value, float max, float sum, u64 policy)
{
    int d = result_dim(lane, i);
    if (d < HEAD_DIM)
        store_result(to, d, value, max * 0.6931471805599453f, sum, policy);
}

/* Destination of the result of head l % 4 of a pass if that is flagged f32, and padded if it is a
 * partial. */
struct plain_output {
    float *at; /* address of dimension 0; NULL: the pass has no such head */
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

/* The factor of a result's sums when they are stored. */
static __device__ __forceinline__ float plain_scale(const plain_output &to, float sum)
{
    return to.part ? 1.0f : reciprocal(sum);
}

/* Stores the words after a partial's dimensions. The maximum is in units of the score, not of the
 * exponent of 2. */
static __device__ __forceinline__ void store_weight(const plain_output &to, int lane, float max,
                                                    float sum, u64 policy)
{
    const float words[4] = {max * 0.6931471805599453f, sum, 0.0f, 0.0f};
    if (to.part && lane < 4)
        store_four_floats(to.at + HEAD_DIM, words, policy);
}

/* Stores a warp's result that needs no merge. */
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

static __device__ __forceinline__ void write_result(int slot, int lane, const tile_result &result)
{
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        warp_values(slot)[i * 32 + lane] = result.value[i];
    if (lane < 4)
        *warp_weight(slot, lane) = make_float2(result.max, result.sum);
}

/* Merges the result that another warp has written to the slot. */
static __device__ __forceinline__ void fetch_result(int slot, int lane, tile_result &result)
{
    float2 other = *warp_weight(slot, lane % 4);
    float top = fmaxf(result.max, other.x);
    float mine = power_of_2(result.max - top), theirs = power_of_2(other.x - top);
    result.max = top;
    result.sum = result.sum * mine + other.y * theirs;
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        float2 value = warp_values(slot)[i * 32 + lane];
        result.value[i].x = result.value[i].x * mine + value.x * theirs;
        result.value[i].y = result.value[i].y * mine + value.y * theirs;
    }
    __syncwarp(); /* the slot may be overwritten: all lanes have read its weight */
}

/* Reduces the results of `active` warps to results of the first WRITES warps, WRITES at a time. */
static __device__ __forceinline__ void fold_results(const machine &m, int active,
                                                    tile_result &result)
{
#pragma unroll
    for (int first = (MGL_WARPS - 1) / WRITES * WRITES; first > 0; first -= WRITES) {
        if (first >= active)
            continue;
        if (m.warp >= first && m.warp < min(active, first + WRITES))
            write_result(m.warp - first, m.lane, result);
        consumer_barrier();
        if (m.warp < WRITES && m.warp + first < active)
            fetch_result(m.warp, m.lane, result);
        if (first > WRITES)
            consumer_barrier();
    }
    if (m.warp < min(active, (int)WRITES))
        write_result(m.warp, m.lane, result);
    consumer_barrier();
}

/* A merged pair of dimensions, and the maximum and sum of its head. */
struct folded {
    float2 value;
    float max, sum;
};

/* Merges pair i of this lane's head over the results of the first `slots` warps. */
static __device__ __forceinline__ folded fold_pair(int slots, int lane, int i)
{
    folded all = {{0.0f, 0.0f}, -INFINITY, 0.0f};
    float2 weights[WRITES], values[WRITES];
#pragma unroll
    for (int u = 0; u < WRITES; u++) {
        weights[u] = make_float2(-INFINITY, 0.0f);
        values[u] = make_float2(0.0f, 0.0f);
        if (u < slots) {
            weights[u] = *warp_weight(u, lane % 4);
            values[u] = warp_values(u)[i * 32 + lane];
        }
    }
#pragma unroll
    for (int u = 0; u < WRITES; u++)
        all.max = fmaxf(all.max, weights[u].x);
#pragma unroll
    for (int u = 0; u < WRITES; u++) {
        const float weight = power_of_2(weights[u].x - all.max);
        all.sum = fmaf(weights[u].y, weight, all.sum);
        all.value.x = fmaf(values[u].x, weight, all.value.x);
        all.value.y = fmaf(values[u].y, weight, all.value.y);
    }
    return all;
}

/* Merges and stores the results of the first `slots` warps, a pair of dimensions per thread. */
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

/* The same for a plain output. */
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

/* Merges and stores the results of a pass, which `active` warps have. */
template <bool PLAIN>
static __device__ __forceinline__ void finish_pass(const machine &m, const tile_pass &p,
                                                   const plain_output &to, int active,
                                                   tile_result &result, u64 policy)
{
    if (active > 1) {
        fold_results(m, active, result);
        if (PLAIN)
            store_folded_plain(m, to, min(active, (int)WRITES), policy);
        else
            store_folded(m, p, min(active, (int)WRITES), policy);
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

/* The number of warps that have positions, out of `count` positions. */
static __device__ __forceinline__ int active_warps(int count)
{
    return min((count + KV_TILE - 1) / KV_TILE, MGL_WARPS);
}

#endif

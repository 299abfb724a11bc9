/*
 * Partial results of a row's warps, merged in shared memory in a fixed order, and written.
 */
#ifndef MGL_DEVICE_ATTENTION_MERGE_CUH
#define MGL_DEVICE_ATTENTION_MERGE_CUH

#include "vm/cuda/device/attention/output.cuh"
#include "vm/cuda/device/attention/softmax.cuh"

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

static __device__ __forceinline__ void write_result(int slot, int lane, const tile_result &result)
{
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        warp_values(slot)[i * 32 + lane] = result.value[i];
    if (lane < 4)
        *warp_weight(slot, lane) = make_float2(result.max, result.sum);
}

/* Merges what another warp has left in the slot. */
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
    __syncwarp(); /* the slot may be left to anew: all lanes have its weight */
}

/* Brings the results of `active` warps to the first LEAVES of them, LEAVES at a time. */
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

/* A pair of dimensions merged, and max and sum of their head. */
struct folded {
    float2 value;
    float max, sum;
};

/* Merges what the first `slots` warps have left of pairs i of this lane: one of its head's. */
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

/* What the warps have of a pass, `active` of them, to where it goes. */
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

/* Warps that have some of so many positions. */
static __device__ __forceinline__ int active_warps(int count)
{
    return min((count + KV_TILE - 1) / KV_TILE, MGL_WARPS);
}

#endif

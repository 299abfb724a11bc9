/*
 * The epilogue's part of a product: it adds the partial sums of the warps (split-K reduction) and
 * writes the outputs. This file has the functions for one row (decoding); finish_rows.cuh has those
 * for several rows. Values go from the partial-sum buffer to memory through registers: each lane
 * has a column, and even lanes store it with the next column.
 */
#ifndef MGL_DEVICE_LINEAR_FINISH_CUH
#define MGL_DEVICE_LINEAR_FINISH_CUH

#include "vm/cuda/device/linear/linear.cuh"

/* Adds sum i of all warps; the sums of two warps are `stride` floats apart. The order is
 * ((w0 + w4 + ...) + (w1 + w5 + ...)) + ((w2 + w6 + ...) + (w3 + w7 + ...)). */
static __device__ __forceinline__ float total_of(const float *psum, int i, int stride)
{
    const float *from = psum + i;
    float part[4] = {};
#pragma unroll
    for (int w = 0; w < MGL_WARPS; w++)
        part[w & 3] = w < 4 ? from[w * stride] : part[w & 3] + from[w * stride];
    return (part[0] + part[1]) + (part[2] + part[3]);
}

/* The RMS scale of row r, 1 / sqrt(mean(x^2) + eps), from the sums of the warps in order. 1 if
 * there is no norm (columns = 0). */
static __device__ __forceinline__ float scale_of(int r, int columns)
{
    if (columns == 0)
        return 1.0f;
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < MGL_WARPS; w++)
        sum += own().sums[r * MGL_WARPS + w];
    return rsqrtf(sum * (1.0f / (float)columns) + __uint_as_float(MGL_EPS_BITS));
}

/* Waits for the sums of squares of the only row and returns its scale. */
static __device__ __forceinline__ float only_scale(const machine &m, int columns)
{
    if (columns == 0)
        return 1.0f;
    if (!own().in[m.instruction].early) {
        wait_psum(m);
    } else {
        const u32 use = own().early;
        while (!barrier_tested(&own().squares_full, use & 1))
            ; /* each wait of the consumers has a deadline */
        __syncwarp();
        own().early = use + 1; /* every lane stores, so each lane reads its own store later */
    }
    return scale_of(0, columns);
}

/* The biases of a task; empty in a kernel without biases. */
struct bias_list {
#if MGL_BIAS
    const machine *m;
#endif
};

static __device__ __forceinline__ bias_list biases_of(const machine &m)
{
    bias_list list;
#if MGL_BIAS
    list.m = &m;
#endif
    return list;
}

#if MGL_BIAS
/* The bias of a column of the task's output; 0: none. */
static __device__ __forceinline__ float bias_of(const bias_list &list, int column)
{
    const machine &m = *list.m;
    const int count = task_of(m)->biases;
    for (int i = 0; i < count; i++)
        if (column < bias(m, i).end)
            return ((const float *)bias(m, i).at)[column];
    return 0.0f;
}

/* The biases of a column of a task with two tensors whose row groups alternate. */
static __device__ __forceinline__ float2 biases_of_pair(const bias_list &list, int column)
{
    const machine &m = *list.m;
    if (task_of(m)->biases == 0 || column >= bias(m, 0).end)
        return make_float2(0.0f, 0.0f);
    return make_float2(((const float *)bias(m, 0).at)[column],
                       ((const float *)bias(m, 1).at)[column]);
}
#else
static __device__ __forceinline__ float bias_of(const bias_list &, int)
{
    return 0.0f;
}

static __device__ __forceinline__ float2 biases_of_pair(const bias_list &, int)
{
    return make_float2(0.0f, 0.0f);
}
#endif

/* The row factor of a column of the task's output; 1 if the weights have no row factors. The host
 * ends the list of vectors with an address of 0. */
static __device__ __forceinline__ float factor_of(const machine &m, int column)
{
#if MGL_SCALED
    if (has_factors(format_of(m)))
        for (int i = 0; row_factors(m, i).at; i++)
            if (column < row_factors(m, i).end)
                return ((const float *)row_factors(m, i).at)[column];
#endif
    return 1.0f;
}

/* The row factor of a column of tensor `tensor`, of a task with two tensors whose row groups
 * alternate. */
static __device__ __forceinline__ float factor_of_pair(const machine &m, int tensor, int column)
{
#if MGL_SCALED
    if (has_factors(format_of(m)) && column < row_factors(m, tensor).end)
        return ((const float *)row_factors(m, tensor).at)[column];
#endif
    return 1.0f;
}

/* Multiplies a sum by its row factor. */
static __device__ __forceinline__ float times(float sum, float factor)
{
    return MGL_SCALED ? sum * factor : sum;
}

static __device__ __forceinline__ float2 times(float2 sums, float2 factor)
{
    return make_float2(times(sums.x, factor.x), times(sums.y, factor.y));
}

/* Applies the RMS scale and the bias to a sum. */
static __device__ __forceinline__ float scaled(float scale, float sum, float bias)
{
    return MGL_BIAS ? fmaf(sum, scale, bias) : sum * scale;
}

/* The destination of the outputs of one row, written two columns at a time. Computed before the
 * sums are complete, so that no branches follow the last sum. */
struct row_output {
    u8 *at;               /* column 0 */
    int size;             /* bytes of an element */
    bool flag, f32, bf16; /* whether it is flagged; its format, f16 if neither */
};

static __device__ __forceinline__ row_output row_output_of(const view &v)
{
    const bool f32 = v.dtype == DTYPE_F32;
    return {v.at, f32 ? 4 : 2, v.flag, f32, v.dtype == DTYPE_BF16};
}

/* If `mine`, writes column `column` and, if `both`, the next one. A flagged region has both. */
static __device__ __forceinline__ void store_output(const row_output &to, int column, float first,
                                                    float second, bool mine, bool both, u64 policy)
{
    u8 *at = to.at + column * to.size;
    const u32 bits[2] = {flag_bits(first), flag_bits(second)};
    const u32 bf16 = pack_pair(DTYPE_BF16, first, second);
    const u32 word = to.bf16 ? bf16 : pack_pair(DTYPE_F16, first, second);
    const bool plain = mine && !to.flag;
    if (mine && to.flag && to.f32)
        store_two_words(at, bits[0], bits[1], policy);
    if (mine && to.flag && !to.f32)
        store_word(at, word, policy);
    if (plain && to.f32)
        ((float *)at)[0] = first;
    if (plain && to.f32 && both)
        ((float *)at)[1] = second;
    if (plain && !to.f32)
        ((u16 *)at)[0] = (u16)word;
    if (plain && !to.f32 && both)
        ((u16 *)at)[1] = (u16)(word >> 16);
    delay();
}

/* The epilogue of a linear task of one row, two columns at a time. `columns` is the width of the
 * norm, 0: no norm. The functions: ask(column)                                loads further inputs
 * of an output, before the wait for its sum ready(scale, value, asked)                 computes the
 * output from the sum store(column, first, second, mine, both)   if `mine`, writes column `column`
 * and, if `both`, the next one */
template <class ASK, class READY, class STORE>
static __device__ __forceinline__ void finish_row(machine &m, int columns, const ASK &ask,
                                                  const READY &ready, const STORE &store)
{
    const int each = psum_groups(1), segments = task_of(m)->segments;
    const bool even = (m.lane & 1) == 0;
    int column = m.lane;
    float asked = ask(column), factor = factor_of(m, column);
    const float scale = only_scale(m, columns);
    for (int i = 0; i < segments; i++) {
        const int groups = segment(m, i).groups, rows = segment(m, i).rows;
        for (int g = 0; g < groups; g += each) {
            const int n = min(each, groups - g) * MGL_ROW_GROUP, left = rows - g * MGL_ROW_GROUP;
            const int here = column + g * MGL_ROW_GROUP, in_psum = min(m.lane, n - 1);
            const bool mine = even && m.lane < min(left, n), both = m.lane + 1 < left;
            const float total =
                times(total_of(wait_psum(m), in_psum, each * MGL_ROW_GROUP), factor);
            const float first = ready(scale, total, asked);
            const float second = __shfl_xor_sync(0xFFFFFFFFu, first, 1);
            store(here, first, second, mine, both);
            free_psum(m);
            const int next = g + each < groups ? here + each * MGL_ROW_GROUP : column + rows;
            asked = ask(next);
            factor = factor_of(m, next);
        }
        column += rows;
    }
}

/* Same for a task with two tensors whose row groups alternate: ready(scale, first, second, asked).
 */
template <class ASK, class READY, class STORE>
static __device__ __forceinline__ void finish_pair_row(machine &m, int columns, const ASK &ask,
                                                       const READY &ready, const STORE &store)
{
    const int each = psum_groups(1), groups = segment(m, 0).groups, rows = segment(m, 0).rows;
    const int column = m.lane / (2 * MGL_ROW_GROUP) * MGL_ROW_GROUP + m.lane % MGL_ROW_GROUP;
    const bool even = (m.lane & 1) == 0 && m.lane / MGL_ROW_GROUP % 2 == 0;
    const float scale = only_scale(m, columns);
    for (int g = 0; g < groups; g += each) {
        const int n = min(each, groups - g) * MGL_ROW_GROUP, here = column + g / 2 * MGL_ROW_GROUP;
        const bool mine = even && m.lane < n && here < rows;
        const float2 asked = ask(here);
        const float factor = factor_of_pair(m, m.lane / MGL_ROW_GROUP % 2, here);
        const float value =
            times(total_of(wait_psum(m), min(m.lane, n - 1), each * MGL_ROW_GROUP), factor);
        const float other = __shfl_xor_sync(0xFFFFFFFFu, value, MGL_ROW_GROUP);
        const float first = ready(scale, value, other, asked);
        const float second = __shfl_xor_sync(0xFFFFFFFFu, first, 1);
        store(here, first, second, mine, here + 1 < rows);
        free_psum(m);
    }
}

#endif

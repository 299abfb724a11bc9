/*
 * The f32 reference: a straightforward decoder, for all rows of a launch at once. Weights and
 * cached keys and values are computed where they are used. The reference thus shares no memory,
 * layout or code with the code under test. Activations are f32 throughout. eval/reference.c
 * launches these kernels.
 */
#ifndef MGL_EVAL_CUDA_REFERENCE_CUH
#define MGL_EVAL_CUDA_REFERENCE_CUH

#include "eval/cuda/fill.cuh"
#include "eval/cuda/number.cuh"

enum {
    REFERENCE_THREADS = 256,
    REFERENCE_ROWS = 8,                                 /* rows that share a loaded weight */
    REFERENCE_SLICES = REFERENCE_THREADS / MGL_HEAD_DIM /* threads per dimension */
};

/* One block per row. */
extern "C" __global__ void reference_embed(mgl_block_reference_embed b)
{
    int row = blockIdx.x;
    u64 first = (u64)((const int *)b.token)[row] * (u64)b.hidden;
    for (int i = threadIdx.x; i < b.hidden; i += blockDim.x)
        ((float *)b.x)[(long long)row * b.hidden + i] = mgl_synthetic_value(&b.rule, first + i);
}

/* One block per row, or per head of a row. A thread rereads only what it wrote itself. */
extern "C" __global__ void reference_norm(mgl_block_reference_norm b)
{
    const float *x = (const float *)b.x + (long long)blockIdx.x * b.width;
    float *out = (float *)b.out + (long long)blockIdx.x * b.width, sum = 0;
    for (int i = threadIdx.x; i < b.width; i += blockDim.x)
        sum += x[i] * x[i];
    float scale = 1 / sqrtf(block_sum(sum) / (float)b.width + b.eps);
    for (int i = threadIdx.x; i < b.width; i += blockDim.x)
        out[i] = x[i] * scale * mgl_synthetic_value(&b.rule, (u64)i);
}

/* One warp per output column; grid (columns, tiles of REFERENCE_ROWS rows). */
extern "C" __global__ void reference_linear(mgl_block_reference_linear b)
{
    int lane = threadIdx.x % 32, column = (int)((blockIdx.x * blockDim.x + threadIdx.x) / 32);
    int first = blockIdx.y * REFERENCE_ROWS, rows = min(REFERENCE_ROWS, b.rows - first);
    const float *x = (const float *)b.x + (long long)first * b.inner;
    float *y = (float *)b.y + (long long)first * b.outer;
    float sum[REFERENCE_ROWS] = {0};
    if (column >= b.outer)
        return;
    for (int i = lane; i < b.inner; i += 32) {
        float weight = mgl_synthetic_value(&b.rule, (u64)column * (u64)b.inner + (u64)i);
#pragma unroll
        for (int r = 0; r < REFERENCE_ROWS; r++)
            if (r < rows)
                sum[r] += weight * x[(long long)r * b.inner + i];
    }
#pragma unroll
    for (int r = 0; r < REFERENCE_ROWS; r++) {
        for (int i = 16; i > 0; i >>= 1)
            sum[r] += __shfl_xor_sync(0xFFFFFFFFu, sum[r], i);
        if (b.biased)
            sum[r] += mgl_synthetic_value(&b.bias, (u64)column);
        float *to = y + (long long)r * b.outer + column;
        if (r < rows && lane == 0)
            *to = b.add ? *to + sum[r] : sum[r];
    }
}

/* Grid (row, head), one thread per pair of dimensions. */
extern "C" __global__ void reference_rope(mgl_block_reference_rope b)
{
    enum { HALF = MGL_HEAD_DIM / 2 };
    int row = blockIdx.x, i = threadIdx.x, position = b.context + row % b.tokens;
    float *x = (float *)b.x + (long long)(row * b.heads + (int)blockIdx.y) * MGL_HEAD_DIM;
    const float *table = (const float *)b.table + (long long)position * MGL_HEAD_DIM;
    float first = x[i], second = x[i + HALF], cosine = table[i], sine = table[HALF + i];
    x[i] = first * cosine - second * sine;
    x[i + HALF] = second * cosine + first * sine;
}

/* Element `dim` of a cached position: before `context` by the rule, otherwise from the rows of this
 * launch. */
static __device__ float cached(const mgl_block_reference_attend *b, const mgl_synthetic_rule *rule,
                               const float *rows, int sequence, int kv, int position, int dim)
{
    if (position < b->context)
        return mgl_synthetic_value(
            rule, mgl_synthetic_cached(sequence, kv, b->kv_heads, position, MGL_HEAD_DIM, dim));
    int row = sequence * b->tokens + position - b->context;
    return rows[(long long)(row * b->kv_heads + kv) * MGL_HEAD_DIM + dim];
}

/* Online softmax attention, grid (row, head), in tiles of REFERENCE_THREADS positions. A thread
 * first scores one position, then accumulates its dimension over every REFERENCE_SLICES-th
 * position. */
extern "C" __global__ void __launch_bounds__(REFERENCE_THREADS)
    reference_attend(mgl_block_reference_attend b)
{
    __shared__ float q[MGL_HEAD_DIM], weights[REFERENCE_THREADS], values[REFERENCE_THREADS];
    int row = blockIdx.x, head = blockIdx.y, kv = head / MGL_GROUP, heads = b.kv_heads * MGL_GROUP;
    int sequence = row / b.tokens, length = b.context + row % b.tokens + 1;
    int dim = threadIdx.x % MGL_HEAD_DIM, slice = threadIdx.x / MGL_HEAD_DIM;
    long long at = (long long)(row * heads + head) * MGL_HEAD_DIM;
    float maximum = -1e30f, sum = 0, value = 0;
    if (threadIdx.x < MGL_HEAD_DIM)
        q[dim] = ((const float *)b.q)[at + dim] * rsqrtf((float)MGL_HEAD_DIM);
    __syncthreads();
    for (int base = 0; base < length; base += REFERENCE_THREADS) {
        int position = base + threadIdx.x;
        float score = -1e30f;
        if (position < length) {
            score = 0;
            for (int d = 0; d < MGL_HEAD_DIM; d++)
                score += q[d] * cached(&b, &b.keys, (const float *)b.k, sequence, kv, position, d);
        }
        float next = fmaxf(maximum, block_max(score)), keep = expf(maximum - next);
        weights[threadIdx.x] = position < length ? expf(score - next) : 0;
        maximum = next;
        sum = sum * keep + block_sum(weights[threadIdx.x]);
        value *= keep;
        for (int i = slice; i < min(REFERENCE_THREADS, length - base); i += REFERENCE_SLICES)
            value +=
                weights[i] * cached(&b, &b.values, (const float *)b.v, sequence, kv, base + i, dim);
        __syncthreads();
    }
    values[threadIdx.x] = value;
    __syncthreads();
    if (slice > 0)
        return;
    for (int s = 1; s < REFERENCE_SLICES; s++)
        value += values[s * MGL_HEAD_DIM + dim];
    ((float *)b.out)[at + dim] = value / sum;
}

extern "C" __global__ void reference_swiglu(mgl_block_reference_swiglu b)
{
    float *gate = (float *)b.gate;
    for (long long i = first_index(); i < b.count; i += index_stride())
        gate[i] = gate[i] / (1 + expf(-gate[i])) * ((const float *)b.up)[i];
}

/* One block per row. */
extern "C" __global__ void reference_look(mgl_block_reference_look b)
{
    int row = blockIdx.x;
    const float *logits = (const float *)b.logits + (long long)row * b.vocab;
    float *seen = (float *)b.seen + 3 * row, squares = 0;
    best found = block_best(scan_best(logits, 0, b.vocab));
    for (int i = threadIdx.x; i < b.vocab; i += blockDim.x)
        squares += logits[i] * logits[i];
    squares = block_sum(squares);
    if (threadIdx.x == 0) {
        ((int *)b.id)[row] = found.id;
        seen[0] = found.value;
        seen[1] = logits[((const int *)b.made)[row]];
        seen[2] = sqrtf(squares);
    }
}

#endif

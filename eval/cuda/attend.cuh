/*
 * Flash decoding: the baseline's attention over the KV cache (Dao, Haziza, Massa and Sizov,
 * "Flash-Decoding for long-context inference", 2023). The positions of a sequence are cut into
 * splits, one block each. A block reads every key and value once for all query heads that share
 * them. `baseline_merge` combines the splits.
 *
 * A cache row has MGL_HEAD_DIM bf16 values; each of LANES lanes holds 16 bytes of it. A warp
 * processes ROWS positions at once, and loads UNROLL times as many before it uses the first, to
 * keep that many loads in flight. Every lane keeps an online softmax of the positions that it
 * processes (equal in the lanes of a row) and its eight dimensions of the weighted sum.
 */
#ifndef MGL_EVAL_CUDA_ATTEND_CUH
#define MGL_EVAL_CUDA_ATTEND_CUH

#include "eval/cuda/number.cuh"

enum {
    DIMS = 8, /* per lane: 16 bytes */
    LANES = MGL_HEAD_DIM / DIMS,
    ROWS = 32 / LANES, /* positions of a warp at once */
    WARPS = 4,
    ATTEND_THREADS = WARPS * 32,
    UNROLL = 4,
    STEP = WARPS * ROWS * UNROLL /* positions of a block per iteration */
};

/* Online softmax state of one query head, as held by a lane. */
struct running {
    float maximum, sum; /* of scores, exponents of 2; sum of 2^(score - maximum) */
    float value[DIMS];  /* sum of 2^(score - maximum) v */
};

/* Less than any score, and finite, to avoid infinity minus infinity. */
static __device__ float lowest()
{
    return -1e30f;
}

static __device__ void join(running *a, const running *b)
{
    float maximum = fmaxf(a->maximum, b->maximum);
    float keep = exp2f(a->maximum - maximum), take = exp2f(b->maximum - maximum);
    a->maximum = maximum;
    a->sum = a->sum * keep + b->sum * take;
#pragma unroll
    for (int i = 0; i < DIMS; i++)
        a->value[i] = a->value[i] * keep + b->value[i] * take;
}

/* Adds UNROLL positions: their scores (-inf: past the end) and values. */
static __device__ void take(running *r, const float *score, const uint4 *values)
{
    float maximum = r->maximum;
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
        maximum = fmaxf(maximum, score[u]);
    float keep = exp2f(r->maximum - maximum);
    r->maximum = maximum;
    r->sum *= keep;
#pragma unroll
    for (int i = 0; i < DIMS; i++)
        r->value[i] *= keep;
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        float weight = exp2f(score[u] - maximum), v[DIMS];
        unpack(values[u], v);
        r->sum += weight;
#pragma unroll
        for (int i = 0; i < DIMS; i++)
            r->value[i] += weight * v[i];
    }
}

/* Score of a position for one query head; equal in all lanes of the row. */
static __device__ float dot(const float *q, uint4 key)
{
    float k[DIMS], sum = 0;
    unpack(key, k);
#pragma unroll
    for (int i = 0; i < DIMS; i++)
        sum += q[i] * k[i];
#pragma unroll
    for (int i = LANES / 2; i > 0; i >>= 1)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, i);
    return sum;
}

/* Combines the rows of a warp: afterwards the lanes of every row hold the warp's result. */
static __device__ void join_rows(running *r)
{
#pragma unroll
    for (int step = LANES; step < 32; step <<= 1) {
        running other;
        other.maximum = __shfl_xor_sync(0xFFFFFFFFu, r->maximum, step);
        other.sum = __shfl_xor_sync(0xFFFFFFFFu, r->sum, step);
#pragma unroll
        for (int i = 0; i < DIMS; i++)
            other.value[i] = __shfl_xor_sync(0xFFFFFFFFu, r->value[i], step);
        join(r, &other);
    }
}

/* Writes a block's result for one query head: a partial result, or the final output if there is one
 * split. `head` counts over sequences and heads. */
static __device__ void write_result(const mgl_block_attend *b, const running *r, int head,
                                    int split, int part)
{
    if (b->splits == 1) {
        u16 *out = (u16 *)b->out + (long long)head * MGL_HEAD_DIM + part * DIMS;
        for (int i = 0; i < DIMS; i++)
            out[i] = to_bf16(r->value[i] / r->sum);
        return;
    }
    float *to = (float *)b->part + ((long long)head * b->splits + split) * (MGL_HEAD_DIM + 2);
    if (part == 0) {
        to[0] = r->maximum;
        to[1] = r->sum;
    }
    for (int i = 0; i < DIMS; i++)
        to[2 + part * DIMS + i] = r->value[i];
}

/* Grid (split, kv head, sequence). */
extern "C" __global__ void __launch_bounds__(ATTEND_THREADS) baseline_attend(mgl_block_attend b)
{
    __shared__ running parts[WARPS][MGL_GROUP][LANES];
    int split = blockIdx.x, kv = blockIdx.y, sequence = blockIdx.z;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = lane % LANES, row = lane / LANES;
    int length = ((const int *)b.position)[sequence] + 1, heads = b.kv_heads * MGL_GROUP;
    int lo = (int)((long long)length * split / b.splits);
    int hi = (int)((long long)length * (split + 1) / b.splits);
    long long cache = (long long)(sequence * b.kv_heads + kv) * b.capacity * LANES + part;
    const uint4 *keys = (const uint4 *)b.keys + cache, *values = (const uint4 *)b.values + cache;
    const uint4 *query = (const uint4 *)b.qkv +
                         (long long)(sequence * (heads + 2 * b.kv_heads) + kv * MGL_GROUP) * LANES;
    float q[MGL_GROUP][DIMS];
    running found[MGL_GROUP];
#pragma unroll
    for (int g = 0; g < MGL_GROUP; g++) {
        unpack(query[g * LANES + part], q[g]);
        found[g].maximum = lowest();
        found[g].sum = 0;
#pragma unroll
        for (int i = 0; i < DIMS; i++) {
            q[g][i] *= b.scale;
            found[g].value[i] = 0;
        }
    }
    for (int base = lo + warp * ROWS + row; base - warp * ROWS - row < hi; base += STEP) {
        uint4 k[UNROLL], v[UNROLL];
        const uint4 none = {0, 0, 0, 0};
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            int position = base + u * WARPS * ROWS;
            k[u] = position < hi ? keys[(long long)position * LANES] : none;
            v[u] = position < hi ? values[(long long)position * LANES] : none;
        }
#pragma unroll
        for (int g = 0; g < MGL_GROUP; g++) {
            float score[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                score[u] = dot(q[g], k[u]);
                if (base + u * WARPS * ROWS >= hi)
                    score[u] = __int_as_float(0xFF800000);
            }
            take(&found[g], score, v);
        }
    }
#pragma unroll
    for (int g = 0; g < MGL_GROUP; g++) {
        join_rows(&found[g]);
        if (row == 0)
            parts[warp][g][part] = found[g];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < MGL_GROUP * LANES; i += ATTEND_THREADS) {
        running whole = parts[0][i / LANES][i % LANES];
        for (int w = 1; w < WARPS; w++)
            join(&whole, &parts[w][i / LANES][i % LANES]);
        write_result(&b, &whole, sequence * heads + kv * MGL_GROUP + i / LANES, split, i % LANES);
    }
}

/* One block per head of a sequence, one thread per dimension. */
extern "C" __global__ void baseline_merge(mgl_block_merge b)
{
    const float *part =
        (const float *)b.part + (long long)blockIdx.x * b.splits * (MGL_HEAD_DIM + 2);
    float maximum = lowest(), sum = 0, value = 0;
    for (int s = 0; s < b.splits; s++)
        maximum = fmaxf(maximum, part[s * (MGL_HEAD_DIM + 2)]);
    for (int s = 0; s < b.splits; s++, part += MGL_HEAD_DIM + 2) {
        float weight = exp2f(part[0] - maximum);
        sum += weight * part[1];
        value += weight * part[2 + threadIdx.x];
    }
    ((u16 *)b.out)[(long long)blockIdx.x * MGL_HEAD_DIM + threadIdx.x] = to_bf16(value / sum);
}

#endif

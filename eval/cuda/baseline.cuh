/*
 * Kernels of the baseline between its matrix products: norm, rope with cache write, SwiGLU, argmax
 * and advance, each fused into one launch as in a hand-written decode step. The residual stream is
 * f32; inputs of matrix products are bf16.
 */
#ifndef MGL_EVAL_CUDA_BASELINE_CUH
#define MGL_EVAL_CUDA_BASELINE_CUH

#include "eval/cuda/number.cuh"

/* Residual add and RMSNorm, one block per sequence. Adds the product's output and bias to the
 * residual stream, or starts the stream with the token's embedding, and normalizes. A thread
 * rereads only what it wrote itself. */
extern "C" __global__ void baseline_norm(mgl_block_norm b)
{
    int sequence = blockIdx.x;
    float *x = (float *)b.x + (long long)sequence * b.hidden;
    int row = b.token ? ((const int *)b.token)[sequence] : sequence;
    const u16 *add = (const u16 *)b.add + (long long)row * b.hidden;
    const float *weight = (const float *)b.weight, *bias = (const float *)b.bias;
    u16 *out = (u16 *)b.out + (long long)sequence * b.hidden;
    float sum = 0;
    for (int i = threadIdx.x; i < b.hidden; i += blockDim.x) {
        float value = from_bf16(add[i]) + (b.token ? 0 : x[i]) + (bias ? bias[i] : 0);
        x[i] = value;
        sum += value * value;
    }
    float scale = rsqrtf(block_sum(sum) / (float)b.hidden + b.eps);
    for (int i = threadIdx.x; i < b.hidden; i += blockDim.x)
        out[i] = to_bf16(x[i] * scale * weight[i]);
}

/* Sum over the MGL_HEAD_DIM / 2 threads of a head, returned to each of them. All threads of the
 * block must call it. */
static __device__ float head_sum(float value)
{
    enum { HALF = MGL_HEAD_DIM / 2, WARPS_OF_HEAD = HALF / 32 };
    __shared__ float parts[32];
    for (int i = (HALF < 32 ? HALF : 32) / 2; i > 0; i >>= 1)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, i);
    if (HALF <= 32)
        return value;
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (int i = 0; i < WARPS_OF_HEAD; i++)
        value += parts[threadIdx.x / HALF * WARPS_OF_HEAD + i];
    return value;
}

/* Rope and cache write, one thread per pair of dimensions (i, i + D/2) of a head of one row. Adds
 * biases and normalizes the heads of q and k if the model does; rotates q in place, and writes the
 * rotated k, and v, to the cache. Threads past the last head repeat the first head without
 * writing. */
extern "C" __global__ void baseline_rope(mgl_block_rope b)
{
    enum { HALF = MGL_HEAD_DIM / 2 };
    int all = b.heads + 2 * b.kv_heads, index = blockIdx.x * blockDim.x + threadIdx.x;
    bool there = index < b.sequences * all * HALF;
    int pair = there ? index : index % HALF;
    int i = pair % HALF, head = pair / HALF % all, row = pair / HALF / all;
    int position = ((const int *)b.position)[row], sequence = row / b.tokens;
    u16 *from = (u16 *)b.qkv + (long long)(row * all + head) * MGL_HEAD_DIM;
    const float *table = (const float *)b.table + (long long)position * MGL_HEAD_DIM;
    float first = from_bf16(from[i]), second = from_bf16(from[i + HALF]);
    bool turn = head < b.heads + b.kv_heads;
    if (b.bias) {
        const float *bias = (const float *)b.bias + head * MGL_HEAD_DIM;
        first += bias[i];
        second += bias[i + HALF];
    }
    if (b.norm) {
        float mean = head_sum(first * first + second * second) / MGL_HEAD_DIM;
        const float *weight = (const float *)b.norm + (head < b.heads ? 0 : MGL_HEAD_DIM);
        float scale = rsqrtf(mean + b.eps);
        first *= turn ? scale * weight[i] : 1;
        second *= turn ? scale * weight[i + HALF] : 1;
    }
    u16 *to = from;
    if (head >= b.heads) {
        int kv = (head - b.heads) % b.kv_heads;
        to = (u16 *)(turn ? b.keys : b.values) +
             ((long long)(sequence * b.kv_heads + kv) * b.capacity + position) * MGL_HEAD_DIM;
    }
    if (!there)
        return;
    float cosine = turn ? table[i] : 1, sine = turn ? table[HALF + i] : 0;
    to[i] = to_bf16(first * cosine - second * sine);
    to[i + HALF] = to_bf16(second * cosine + first * sine);
}

extern "C" __global__ void baseline_silu(mgl_block_silu b)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= b.sequences * b.ffn)
        return;
    int sequence = index / b.ffn, i = index % b.ffn;
    const u16 *gate = (const u16 *)b.gate_up + (long long)sequence * 2 * b.ffn;
    const float *bias = (const float *)b.bias;
    float g = from_bf16(gate[i]) + (bias ? bias[i] : 0);
    float u = from_bf16(gate[b.ffn + i]) + (bias ? bias[b.ffn + i] : 0);
    ((u16 *)b.out)[index] = to_bf16(g / (1 + __expf(-g)) * u);
}

/* Grid (part, sequence). */
extern "C" __global__ void baseline_argmax(mgl_block_argmax b)
{
    int part = blockIdx.x, sequence = blockIdx.y;
    int first = (int)((long long)b.vocab * part / b.parts);
    int end = (int)((long long)b.vocab * (part + 1) / b.parts);
    best found =
        block_best(scan_best((const float *)b.logits + (long long)sequence * b.vocab, first, end));
    if (threadIdx.x == 0) {
        ((float *)b.value)[sequence * b.parts + part] = found.value;
        ((int *)b.id)[sequence * b.parts + part] = found.id;
    }
}

/* One warp per sequence: selects the best of all parts and writes the next input. */
extern "C" __global__ void baseline_advance(mgl_block_advance b)
{
    int sequence = blockIdx.x;
    int *position = (int *)b.position + sequence;
    const int *forced = (const int *)b.forced;
    best mine = {__int_as_float(0xFF800000), 0x7FFFFFFF};
    for (int i = threadIdx.x; i < b.parts; i += blockDim.x) {
        best next = {((const float *)b.value)[sequence * b.parts + i],
                     ((const int *)b.id)[sequence * b.parts + i]};
        mine = better(mine, next);
    }
    mine = block_best(mine);
    if (threadIdx.x != 0)
        return;
    int at = sequence * b.tokens + *position - b.context;
    ((int *)b.output)[at] = mine.id;
    ((int *)b.token)[sequence] = forced[0] ? forced[1 + at] : mine.id;
    *position += 1;
}

#endif

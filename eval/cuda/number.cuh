/* Definitions shared by the kernels of the benchmarks (eval/cuda/): argument blocks, number
 * conversions, and reductions over a thread block (sum, maximum, argmax). */
#ifndef MGL_EVAL_CUDA_NUMBER_CUH
#define MGL_EVAL_CUDA_NUMBER_CUH

#define MGL_SYNTHETIC_FN      static __device__
#define MGL_SYNTHETIC_BITS    __float_as_uint
#define MGL_VARIANT_SHAPES_FN static __device__
#define MGL_TAPE_FN           static __device__ __forceinline__ constexpr

#include "eval/cuda/blocks.h"

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

static __device__ float from_bf16(u32 bits)
{
    return __uint_as_float(bits << 16);
}

/* Rounds to nearest, ties to even. Does not preserve NaN: 0x7FFFFFFF becomes -0. */
static __device__ u16 to_bf16(float value)
{
    u32 u = __float_as_uint(value);
    return (u16)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

/* Converts eight bf16 values of one 16-byte load. */
static __device__ void unpack(uint4 words, float *to)
{
    const u32 w[4] = {words.x, words.y, words.z, words.w};
    for (int i = 0; i < 4; i++) {
        to[2 * i] = __uint_as_float(w[i] << 16);
        to[2 * i + 1] = __uint_as_float(w[i] & 0xFFFF0000u);
    }
}

/* Block-wide sum, returned to every thread. */
static __device__ float block_sum(float value)
{
    __shared__ float parts[32];
    for (int i = 16; i > 0; i >>= 1)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, i);
    __syncthreads(); /* all threads have read the previous sum */
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (int i = 0; i < (int)(blockDim.x + 31) / 32; i++)
        value += parts[i];
    return value;
}

static __device__ float block_max(float value)
{
    __shared__ float parts[32];
    for (int i = 16; i > 0; i >>= 1)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, i));
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < (int)(blockDim.x + 31) / 32; i++)
        value = fmaxf(value, parts[i]);
    return value;
}

/* Candidate of an argmax; the lower id wins among equal values. */
struct best {
    float value;
    int id;
};

static __device__ best better(best a, best b)
{
    return b.value > a.value || (b.value == a.value && b.id < a.id) ? b : a;
}

/* Block-wide argmax; valid in thread 0. */
static __device__ best block_best(best mine)
{
    __shared__ best parts[32];
    for (int i = 16; i > 0; i >>= 1) {
        best other = {__shfl_xor_sync(0xFFFFFFFFu, mine.value, i),
                      __shfl_xor_sync(0xFFFFFFFFu, mine.id, i)};
        mine = better(mine, other);
    }
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = mine;
    __syncthreads();
    for (int i = 0; threadIdx.x == 0 && i < (int)(blockDim.x + 31) / 32; i++)
        mine = better(mine, parts[i]);
    return mine;
}

/* The best of values [first, count), for this thread's share: every `blockDim.x`-th. */
static __device__ best scan_best(const float *values, int first, int count)
{
    best mine = {__int_as_float(0xFF800000), 0x7FFFFFFF};
    for (int i = first + (int)threadIdx.x; i < count; i += (int)blockDim.x) {
        best next = {values[i], i};
        mine = better(mine, next);
    }
    return mine;
}

#endif

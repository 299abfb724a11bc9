/* Kernels that write synthetic weights (synthetic.h) to tapes, tables and KV caches, with
 * grid-stride loops. eval/filler.c and eval/device.c launch them. */
#ifndef MGL_EVAL_CUDA_FILL_CUH
#define MGL_EVAL_CUDA_FILL_CUH

#include "eval/cuda/number.cuh"
#include "schedule/variant_shapes.h"

static __device__ long long first_index()
{
    return (long long)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ long long index_stride()
{
    return (long long)gridDim.x * blockDim.x;
}

extern "C" __global__ void fill_tape(mgl_synthetic_segment segment)
{
    u32 *to = (u32 *)segment.to;
    for (long long i = first_index(); i < segment.elements / 2; i += index_stride())
        to[i] = mgl_synthetic_word(&segment, i);
}

extern "C" __global__ void fill_rows(mgl_block_fill_rows b)
{
    for (long long i = first_index(); i < b.count; i += index_stride())
        if (b.factors)
            ((float *)b.to)[i] = mgl_synthetic_scale(&b.rule, (int)i, 0);
        else if (b.wide)
            ((float *)b.to)[i] = mgl_synthetic_value(&b.rule, (u64)i);
        else
            ((u16 *)b.to)[i] = mgl_synthetic_16(&b.rule, (u64)i);
}

extern "C" __global__ void fill_cache(mgl_block_fill_cache b)
{
    u16 *to = (u16 *)b.to;
    long long count = (long long)b.sequences * b.kv_heads * b.positions * MGL_HEAD_DIM;
    for (long long i = first_index(); i < count; i += index_stride()) {
        int dim = (int)(i % MGL_HEAD_DIM), position = (int)(i / MGL_HEAD_DIM % b.positions);
        int row = (int)(i / MGL_HEAD_DIM / b.positions);
        u64 element = mgl_synthetic_cached(row / b.kv_heads, row % b.kv_heads, b.kv_heads, position,
                                           MGL_HEAD_DIM, dim);
        int chunk = b.swizzled ? mgl_kv_chunk(b.value, position, dim / 8) : dim / 8;
        to[((long long)row * b.capacity + position) * MGL_HEAD_DIM + chunk * 8 + dim % 8] =
            mgl_synthetic_16(&b.rule, element);
    }
}

#endif

/*
 * Read-bandwidth kernel: measures how fast the device reads bytes. It uses two blocks of 1,024
 * threads per multiprocessor. Each thread has four coalesced 16-byte loads in flight. The sum keeps
 * the compiler from removing the loads; it is written only if it equals one specific number.
 * eval/stream.c launches it.
 */
#ifndef MGL_EVAL_CUDA_STREAM_CUH
#define MGL_EVAL_CUDA_STREAM_CUH

#include "eval/cuda/number.cuh"

enum { STREAM_THREADS = 1024, STREAM_LOADS = 4 };

extern "C" __global__ void __launch_bounds__(STREAM_THREADS, 2) read_stream(mgl_block_stream b)
{
    const uint4 *from = (const uint4 *)b.from;
    u32 step = gridDim.x * STREAM_THREADS * STREAM_LOADS;
    u32 i = blockIdx.x * STREAM_THREADS * STREAM_LOADS + threadIdx.x;
    u32 sum = 0;
    for (; i + (STREAM_LOADS - 1) * STREAM_THREADS < b.chunks; i += step) {
        uint4 loaded[STREAM_LOADS];
#pragma unroll
        for (int j = 0; j < STREAM_LOADS; j++)
            loaded[j] = from[i + j * STREAM_THREADS];
#pragma unroll
        for (int j = 0; j < STREAM_LOADS; j++)
            sum += loaded[j].x ^ loaded[j].y ^ loaded[j].z ^ loaded[j].w;
    }
    for (; i < b.chunks; i += STREAM_THREADS) {
        uint4 last = from[i];
        sum += last.x ^ last.y ^ last.z ^ last.w;
    }
    if (sum == 0x9E3779B9u)
        *(u32 *)b.sum = sum;
}

#endif

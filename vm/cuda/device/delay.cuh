/*
 * Random delays for concurrency tests (schedule fuzzing); without MGL_DELAYS the functions are
 * empty. Threads sleep at random before they read what other warps write, after they store for
 * other warps, and on both sides of signals and barrier arrivals. Every order that the edges permit
 * may then occur, and only the run time may change. The calls are inside the access functions of
 * ptx.cuh, so every wait has one.
 *
 * The length of a delay is log-uniform from 10 ns to 50 us. Philox draws whether a call sleeps, and
 * how long: the key is the launch's seed and the warp, the counter the number of the warp's call.
 */
#ifndef MGL_DEVICE_DELAY_CUH
#define MGL_DEVICE_DELAY_CUH

#include "vm/cuda/device/shared.cuh"

#if MGL_DELAYS

enum { DELAY_ONE_IN = 32 /* calls */ };
constexpr float DELAY_SHORTEST_NS = 10.0f, DELAY_OCTAVES = 12.2877f;

/* Called by one thread before a block barrier. */
static __device__ __forceinline__ void delay_init()
{
    own().delay_seed = own().launch.delay_seed;
    for (int w = 0; w < BLOCK_THREADS / 32; w++)
        own().delays[w] = 0;
}

/* Called by any threads of a warp. Threads that call together are delayed together. */
static __device__ __noinline__ void delay()
{
    const u32 warp = threadIdx.x / 32, number = own().delays[warp];
    own().delays[warp] = number + 1;
    const u32 key[2] = {own().delay_seed, blockIdx.x * 32 + warp};
    u32 drawn[4] = {number, 0, 0, 0};
    mgl_philox(drawn, key, drawn);
    if (drawn[0] % DELAY_ONE_IN != 0)
        return;
    const float octaves = DELAY_OCTAVES / 16777216.0f * (float)(drawn[1] >> 8);
    sleep_ns((u32)(DELAY_SHORTEST_NS * exp2f(octaves)));
}

#else

static __device__ __forceinline__ void delay_init() {}

static __device__ __forceinline__ void delay() {}

#endif

#endif

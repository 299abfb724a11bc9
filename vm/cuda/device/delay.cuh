/*
 * Random delays, for tests; without MGL_DELAYS there is no code of them. A thread sleeps now and
 * then before it looks at what others write, behind what it stores for them, and on either side of
 * what it signals or arrives at: every order that the edges leave open may then happen, and nothing
 * may change but the time. The calls stand in the accesses themselves (ptx.cuh), so that no
 * wait is without.
 *
 * A delay is log-uniform from 10 ns to 50 us. Whether there is one, and which, are draws of Philox:
 * the key is the launch's seed and the warp, the counter the number of the warp's call.
 */
#ifndef MGL_DEVICE_DELAY_CUH
#define MGL_DEVICE_DELAY_CUH

#include "vm/cuda/device/shared.cuh"

#if MGL_DELAYS

enum { DELAY_ONE_IN = 32 /* calls */ };
constexpr float DELAY_SHORTEST_NS = 10.0f, DELAY_OCTAVES = 12.2877f;

/* By one thread, before a barrier of the block. */
static __device__ __forceinline__ void delay_init()
{
    own().delay_seed = own().launch.delay_seed;
    for (int w = 0; w < BLOCK_THREADS / 32; w++)
        own().delays[w] = 0;
}

/* By any threads of a warp: those that come together are delayed together. */
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

/*
 * What the benchmark's kernels (eval/cuda) use of CUDA beyond device/ptx.h: grids of three
 * dimensions, and static shared memory, which is the module's: blocks run one after the other.
 */
#ifndef MGL_TESTS_EMULATOR_DEVICE_PLAIN_H
#define MGL_TESTS_EMULATOR_DEVICE_PLAIN_H

#include "device/ptx.h"

static emu_grid emu_the_grid;

struct emu_place {
    unsigned x, y, z;
};

static inline emu_place emu_place_of(const unsigned *at)
{
    return {at[0], at[1], at[2]};
}

#undef blockIdx
#define blockIdx (emu_place_of(emu_the_grid.block))
#define gridDim  (emu_place_of(emu_the_grid.blocks))
#define blockDim (emu_index{emu_the_grid.threads})
#undef __shared__
#define __shared__ static
#undef __syncthreads
#define __syncthreads() emu_bar_sync(0, (int)emu_the_grid.threads)

static inline float __expf(float value)
{
    return expf(value);
}

#endif

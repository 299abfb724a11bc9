/*
 * The CUDA features that the benchmark's kernels (eval/cuda) use beyond device/ptx.h:
 * three-dimensional grids, and static shared memory, which belongs to the module, because blocks
 * run one after another.
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

/*
 * What the ways of products with 16-bit weights share: which column of an MMA a lane has, and the
 * sums of a row group.
 */
#ifndef MGL_DEVICE_LINEAR_PRODUCTS_CUH
#define MGL_DEVICE_LINEAR_PRODUCTS_CUH

#include "vm/cuda/device/linear/activations.cuh"

static __device__ __forceinline__ void mma(float *c, uint4 a, uint2 b)
{
    multiply_add<MGL_WEIGHT>(c, a.x, a.y, a.z, a.w, b.x, b.y);
}

/* Which column of the B operand this lane has: of what row, which words, and whether the low parts.
 */
struct column {
    int row; /* within the MMA's */
    int odd; /* 0, 1 */
    bool low;
};

static __device__ __forceinline__ column column_of(int lane, bool low)
{
    int n = lane >> 2;
    column c = {low ? n >> 2 : n >> 1, n & 1, low && (n & 2) != 0};
    return c;
}

/* Sums of one row group and one MMA's rows: of even blocks of the run and of odd ones apart, so
 * that they do not wait for each other. */
struct sums {
    float c[2][4];
};

/* Leaves the sums of rows `first` and on. With low parts two neighbouring lanes have a row's. */
static __device__ __forceinline__ void store_sums(int lane, bool low, int count, const sums &s,
                                                  int first, float *to)
{
    float total = (s.c[0][0] + s.c[1][0]) + (s.c[0][3] + s.c[1][3]);
    int row = lane & 3;
    if (low) {
        total += __shfl_xor_sync(0xFFFFFFFFu, total, 1);
        row = (lane & 1) ? count : row >> 1; /* once is enough */
    }
    if (first + row < count)
        to[(first + row) * MGL_ROW_GROUP + (lane >> 2)] = total;
}

/* Adds block number i of a run. */
static __device__ __forceinline__ void add_to(sums &s, int i, uint4 w, uint2 x)
{
    if (i & 1)
        mma(s.c[1], w, x);
    else
        mma(s.c[0], w, x);
}

/* Leaves the sums of all MMAs of a row group. */
template <int N>
static __device__ __forceinline__ void store_all(const machine &m, const input &in, const sums *s,
                                                 float *to)
{
#pragma unroll
    for (int n = 0; n < N; n++)
        if (n * mma_rows(in.low) < in.count)
            store_sums(m.lane, in.low, in.count, s[n], n * mma_rows(in.low), to);
}

#endif

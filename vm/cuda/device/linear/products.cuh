/*
 * Functions that the kernel variants of products with 16-bit weights share: the columns of the B
 * operand of an MMA, and the sums of a row group.
 */
#ifndef MGL_DEVICE_LINEAR_PRODUCTS_CUH
#define MGL_DEVICE_LINEAR_PRODUCTS_CUH

#include "vm/cuda/device/linear/activations.cuh"

static __device__ __forceinline__ void mma(float *c, uint4 a, uint2 b)
{
    multiply_add<MGL_WEIGHT>(c, a.x, a.y, a.z, a.w, b.x, b.y);
}

/* The column of the B operand of a lane: its row, its words, and whether it has the low parts. */
struct column {
    int row; /* within the rows of the MMA */
    int odd; /* 0: even words, 1: odd words */
    bool low;
};

static __device__ __forceinline__ column column_of(int lane, bool low)
{
    int n = lane >> 2;
    column c = {low ? n >> 2 : n >> 1, n & 1, low && (n & 2) != 0};
    return c;
}

/* The sums of one row group and the rows of one MMA. Even and odd blocks of the run have separate
 * sums, so that consecutive MMAs do not depend on each other. */
struct sums {
    float c[2][4];
};

/* Stores the sums of the rows from `first` on. With low parts, two adjacent lanes have the sum of a
 * row. */
static __device__ __forceinline__ void store_sums(int lane, bool low, int count, const sums &s,
                                                  int first, float *to)
{
    float total = (s.c[0][0] + s.c[1][0]) + (s.c[0][3] + s.c[1][3]);
    int row = lane & 3;
    if (low) {
        total += __shfl_xor_sync(0xFFFFFFFFu, total, 1);
        row = (lane & 1) ? count : row >> 1; /* only one of the two lanes stores */
    }
    if (first + row < count)
        to[(first + row) * MGL_ROW_GROUP + (lane >> 2)] = total;
}

/* Multiplies block i of a run and adds the products. */
static __device__ __forceinline__ void add_to(sums &s, int i, uint4 w, uint2 x)
{
    if (i & 1)
        mma(s.c[1], w, x);
    else
        mma(s.c[0], w, x);
}

/* Stores the sums of all MMAs of a row group. */
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

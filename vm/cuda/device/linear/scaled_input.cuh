/*
 * Block scaling of the input of a product with scaled weights (linear/formats.cuh). The activations
 * are f16 numbers, which have a small range. Therefore each warp finds the largest absolute value
 * of its run of columns of a row. The warp multiplies the run by the power of two that brings this
 * value to at least 2^14 and below 2^15. Later the sums of the run are divided by the same power of
 * two. Both steps are exact in f32. Values that need more than 16 bits are split into high and low
 * parts, as for 16-bit weights (linear/activations.cuh).
 */
#ifndef MGL_DEVICE_LINEAR_SCALED_INPUT_CUH
#define MGL_DEVICE_LINEAR_SCALED_INPUT_CUH

#include "vm/cuda/device/linear/activations.cuh"

#if MGL_SCALED

enum {
    CHUNK_COLUMNS = 8, /* columns in 16 bytes of f16 */
    PART_CHUNKS = MGL_PART_COLUMNS / CHUNK_COLUMNS
};

/* The power of two that multiplies the sums of warp w for row j: reducing() of its run. */
static __device__ __forceinline__ float &range_of(const machine &m, int j, int w)
{
    return ((float *)(activation_buffer() + MGL_ACTIVATION_BYTES - RANGE_BYTES))[j * MGL_WARPS + w];
}

/* The power of two that multiplies a run. `most`: the bits of the largest absolute value of the
 * run; values below 2^-95 are treated like 2^-95. */
static __device__ __forceinline__ float enlarging(u32 most)
{
    const u32 exponent = min(max(most >> 23, 32u), 254u);
    return __uint_as_float((268 - exponent) << 23);
}

/* 1 / enlarging(most). */
static __device__ __forceinline__ float reducing(u32 most)
{
    const u32 exponent = min(max(most >> 23, 32u), 254u);
    return __uint_as_float((exponent - 14) << 23);
}

/* Reads one column of row j. */
static __device__ __noinline__ float read_column(const machine m, int j, int column)
{
    const input &in = own().in[m.instruction];
    float v[VECTOR], value = 0.0f;
    read_chunk(m, in, j, column / VECTOR * VECTOR, keep_policy(), v);
#pragma unroll
    for (int i = 0; i < VECTOR; i++)
        value = column % VECTOR == i ? v[i] : value;
    return value;
}

/* read_scaled for an input with a column map. */
static __device__ __forceinline__ float read_mapped(const machine &m, const input &in, int j, int n,
                                                    float *v)
{
    float squares = 0.0f;
    for (int i = 0; i < CHUNK_COLUMNS; i++) {
        const bool real = n * CHUNK_COLUMNS + i < in.columns;
        const int column = real ? in.column_map[n * CHUNK_COLUMNS + i] : 0;
        v[i] = real ? read_column(m, j, column) : 0.0f;
        if (in.g) {
            squares = fmaf(v[i], v[i], squares);
            v[i] *= in.g[column];
        }
    }
    return squares;
}

/* Reads chunk n of row j and multiplies it by the weights of the norm, if there is a norm. Returns
 * the sum of squares of the values before this multiplication; without a norm 0. */
static __device__ __forceinline__ float read_scaled(const machine &m, const input &in, int j, int n,
                                                    float *v)
{
    if (in.column_map)
        return read_mapped(m, in, j, n, v);
    const u64 policy = keep_policy();
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < CHUNK_COLUMNS; i += VECTOR) {
        read_chunk(m, in, j, n * CHUNK_COLUMNS + i, policy, v + i);
        if (in.g)
            squares += weigh(in, n * CHUNK_COLUMNS + i, v + i);
    }
    return squares;
}

/* Converts eight values to words of f16, the even words first. */
static __device__ __forceinline__ uint4 pack_f16(const float *v)
{
    return make_uint4(pack_pair(DTYPE_F16, v[0], v[1]), pack_pair(DTYPE_F16, v[4], v[5]),
                      pack_pair(DTYPE_F16, v[2], v[3]), pack_pair(DTYPE_F16, v[6], v[7]));
}

/* Multiplies eight values by a power of two and converts them to f16, with low parts if `low`. */
static __device__ __forceinline__ chunk scaled_chunk(const float *v, float factor, bool low)
{
    float large[CHUNK_COLUMNS], rest[CHUNK_COLUMNS];
#pragma unroll
    for (int i = 0; i < CHUNK_COLUMNS; i++)
        large[i] = v[i] * factor;
    chunk c = {pack_f16(large), make_uint4(0, 0, 0, 0)};
    if (low) {
        format<DTYPE_F16>::unpack(middle_swapped(c.high), rest);
#pragma unroll
        for (int i = 0; i < CHUNK_COLUMNS; i++)
            rest[i] = large[i] - rest[i];
        c.low = pack_f16(rest);
    }
    return c;
}

/* Prepares this warp's run of row j, which has n chunks from chunk `first` on. Writes its power of
 * two, its part of the activation buffer if the rows fit, and its sum of squares. The run is read
 * twice unless each lane has at most one chunk. */
static __device__ __forceinline__ void gather_scaled_row(const machine &m, const input &in, int j,
                                                         int first, int n)
{
    float v[CHUNK_COLUMNS], squares = 0.0f;
    u32 most = 0;
    for (int c = m.lane; c < n; c += 32) {
        squares += read_scaled(m, in, j, first + c, v);
#pragma unroll
        for (int i = 0; i < CHUNK_COLUMNS; i++)
            most = max(most, __float_as_uint(v[i]) & 0x7FFFFFFFu);
    }
    most = __reduce_max_sync(0xFFFFFFFFu, most);
    const float factor = enlarging(most);
    if (m.lane == 0)
        range_of(m, j, m.warp) = reducing(most);
    for (int c = m.lane; in.buffered && c < n; c += 32) {
        if (n > 32)
            read_scaled(m, in, j, first + c, v);
        buffer_chunk(m, in, j, first + c, scaled_chunk(v, factor, in.low));
    }
    if (in.g)
        write_squares(m, j, squares);
}

/* gather_run for scaled weights. */
static __device__ __forceinline__ void gather_scaled(const machine &m, const input &in)
{
    int blocks, first = run_of(in.kblocks, m.warp, &blocks);
    for (int j = 0; j < in.count; j++)
        gather_scaled_row(m, in, j, first * in.parts * PART_CHUNKS,
                          blocks * in.parts * PART_CHUNKS);
}

/* Reads and converts chunk n of row j. Used if the rows do not fit in the activation buffer, after
 * gather_scaled. */
static __device__ __noinline__ chunk direct_scaled_chunk(const machine m, int j, int n)
{
    const input &in = own().in[m.instruction];
    float v[CHUNK_COLUMNS];
    read_scaled(m, in, j, n, v);
    return scaled_chunk(v, 1.0f / range_of(m, j, m.warp), in.low);
}

#endif

#endif

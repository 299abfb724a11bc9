/*
 * The epilogue's part of a product of several rows. A lane has one row and two adjacent columns of
 * each row group; with 16 rows it repeats this for a second row (LOOKS = 2). Values stay in the
 * registers of the lane from the partial-sum buffer to memory. Four lanes write the 8 columns of a
 * row together. All divisors are constants.
 *
 * Other queues wait for the outputs, so the time after the last partial sum is critical. Therefore
 * the properties of the output region are read once, before the first buffer. The regions of
 * decoding have a path without branches (pair_rows).
 */
#ifndef MGL_DEVICE_LINEAR_FINISH_ROWS_CUH
#define MGL_DEVICE_LINEAR_FINISH_ROWS_CUH

#include "vm/cuda/device/linear/finish.cuh"

enum {
    LANES_OF_ROW = MGL_ROW_GROUP / 2,
    LOOK_ROWS = 32 / LANES_OF_ROW,
    LOOKS = (MOST_ROWS + LOOK_ROWS - 1) / LOOK_ROWS,
    PSUM_HAS_TWO = PSUM / (MGL_WARPS * MGL_ROW_GROUP) / MOST_ROWS >=
                   2 /* a buffer has two row groups, for any number of rows */
};

/* Whether a task of `count` rows has several rows. */
static __device__ __forceinline__ bool has_rows(int count)
{
    return PRODUCT_ROWS > 1 && count > 1;
}

/* Position of the epilogue in the partial-sum buffers of a task, and this lane's part of a row
 * group.
 */
struct reader {
    const float *psum; /* the current buffer */
    int each;          /* row groups in a buffer */
    int stride;        /* floats from one row group to the next */
    int warp_stride;   /* floats from one warp to the next */
    int at[LOOKS];     /* floats from the start of a row group to this lane's two columns */
    int row[LOOKS];    /* the row; if it is past the end, the sums of the last row are read */
    float scale[LOOKS];
    bool begun; /* the first buffer is full, so the scales are known */
};

static __device__ __forceinline__ reader begin_reading(const machine &m, int count)
{
    reader r = {nullptr, psum_groups(count), MGL_ROW_GROUP * psum_rows(count)};
    r.warp_stride = r.each * r.stride;
#pragma unroll
    for (int k = 0; k < LOOKS; k++) {
        r.row[k] = k * LOOK_ROWS + m.lane / LANES_OF_ROW;
        r.at[k] = min(r.row[k], count - 1) * MGL_ROW_GROUP + m.lane % LANES_OF_ROW * 2;
        r.scale[k] = 1.0f;
    }
    r.begun = false;
    return r;
}

/* total_of for two adjacent columns. */
static __device__ __forceinline__ float2 totals_of(const float *from, int stride)
{
    float2 part[4] = {};
#pragma unroll
    for (int w = 0; w < MGL_WARPS; w++) {
        const float2 v = *(const float2 *)(from + w * stride);
        part[w & 3].x = w < 4 ? v.x : part[w & 3].x + v.x;
        part[w & 3].y = w < 4 ? v.y : part[w & 3].y + v.y;
    }
    return make_float2((part[0].x + part[1].x) + (part[2].x + part[3].x),
                       (part[0].y + part[1].y) + (part[2].y + part[3].y));
}

/* Reads the scales, which are known when the first buffer is full. `columns` is the width of the
 * norm, 0: no norm. */
static __device__ __forceinline__ void read_scales(reader &r, int count, int columns)
{
    if (!r.begun && columns > 0) {
#pragma unroll
        for (int k = 0; k < LOOKS; k++)
            r.scale[k] = scale_of(min(r.row[k], count - 1), columns);
    }
    r.begun = true;
}

/* Reads this lane's sums of row group `number` of the current buffer. */
static __device__ __forceinline__ void read_sums(const reader &r, int number, float2 *sums)
{
#pragma unroll
    for (int k = 0; k < LOOKS; k++)
        sums[k] = totals_of(r.psum + number * r.stride + r.at[k], r.warp_stride);
}

/* Reads this lane's sums of row groups g and g + 1 of a segment of `groups` row groups. If g is the
 * last one, it is read twice. Waits for the buffer if g is the first row group in it. */
static __device__ __forceinline__ void read_groups(machine &m, reader &r, int count, int columns,
                                                   int g, int groups, float2 *sums)
{
    const int number = g & (r.each - 1);
    if (number == 0)
        r.psum = wait_psum(m);
    read_scales(r, count, columns);
    read_sums(r, number, sums);
    if (!PSUM_HAS_TWO && r.each == 1 && g + 1 < groups) {
        free_psum(m);
        r.psum = wait_psum(m);
        return read_sums(r, 0, sums + LOOKS);
    }
    read_sums(r, g + 1 < groups ? number + 1 : number, sums + LOOKS);
}

/* Frees the buffer after its last row groups. */
static __device__ __forceinline__ void write_groups(machine &m, const reader &r, int g, int groups)
{
    if (((g + 2) & (r.each - 1)) == 0 || g + 2 >= groups)
        free_psum(m);
}

/* Two adjacent outputs of a task. */
struct pair {
    int row, column;
    bool real; /* the row and the column exist */
    bool both; /* the next column exists too */
};

/* This lane's pair in row group g of a segment with columns [first, first + columns) of the task.
 */
static __device__ __forceinline__ pair pair_of(const machine &m, int count, int look, int g,
                                               int first, int columns)
{
    const int row = look * LOOK_ROWS + m.lane / LANES_OF_ROW;
    const int column = g * MGL_ROW_GROUP + m.lane % LANES_OF_ROW * 2;
    return {row, first + column, row < count && column < columns, column + 1 < columns};
}

/* The biases of a pair. */
static __device__ __forceinline__ float2 bias_of(const bias_list &biases, const pair &p)
{
    return make_float2(bias_of(biases, p.column), p.both ? bias_of(biases, p.column + 1) : 0.0f);
}

/* The row factors of the two columns of a pair. */
static __device__ __forceinline__ float2 factor_of(const machine &m, const pair &p)
{
    return make_float2(factor_of(m, p.column), p.both ? factor_of(m, p.column + 1) : 1.0f);
}

static __device__ __forceinline__ float2 factor_of_pair(const machine &m, int tensor, const pair &p)
{
    return make_float2(factor_of_pair(m, tensor, p.column),
                       factor_of_pair(m, tensor, p.both ? p.column + 1 : p.column));
}

/* A region of DTYPE in which a pair is one load or store: the addresses of this lane's rows. Rows
 * past the end repeat the last row, which may be read. */
template <int DTYPE> struct pair_rows {
    u8 *at[LOOKS];
};

/* Whether a region has DTYPE and aligned pairs. A flagged region is a multiple of 16 bytes. */
template <int DTYPE> static __device__ __forceinline__ bool has_pairs(const view &v, bool flag)
{
    const size_t bytes = format<DTYPE>::SIZE * 2;
    return v.dtype == DTYPE && v.flag == flag &&
           (((size_t)v.at | (size_t)v.stride) & (bytes - 1)) == 0;
}

template <int DTYPE>
static __device__ __forceinline__ pair_rows<DTYPE> pair_rows_of(const machine &m, const view &v,
                                                                int count)
{
    pair_rows<DTYPE> rows;
#pragma unroll
    for (int k = 0; k < LOOKS; k++)
        rows.at[k] = v.at + min(k * LOOK_ROWS + m.lane / LANES_OF_ROW, count - 1) * v.stride;
    return rows;
}

template <int DTYPE>
static __device__ __forceinline__ u8 *pair_at(const pair_rows<DTYPE> &rows, int look, const pair &p)
{
    return rows.at[look] + p.column * format<DTYPE>::SIZE;
}

/* Writes a pair of a flagged region. */
template <int DTYPE>
static __device__ __forceinline__ void store_flagged(const pair_rows<DTYPE> &rows, int look,
                                                     const pair &p, float first, float second,
                                                     u64 policy)
{
    if (DTYPE == DTYPE_F32)
        store_two_words(pair_at(rows, look, p), flag_bits(first), flag_bits(second), policy);
    else
        store_word(pair_at(rows, look, p), pack_pair(DTYPE, first, second), policy);
}

/* The epilogue of a linear task of several rows, two row groups at a time. ask(look, pair) loads
 * further inputs of a pair before the wait for its sums. store(look, pair, scale, sums, asked) gets
 * them and writes the outputs. */
template <class ASK, class STORE>
static __device__ __forceinline__ void finish_rows(machine &m, int count, int columns,
                                                   const ASK &ask, const STORE &store)
{
    reader r = begin_reading(m, count);
    const int segments = task_of(m)->segments;
    int first = 0;
    for (int i = 0; i < segments; i++) {
        const int groups = segment(m, i).groups, rows = segment(m, i).rows;
        for (int g = 0; g < groups; g += 2) {
            float2 sums[2 * LOOKS], asked[2 * LOOKS], factor[2 * LOOKS];
            pair p[2 * LOOKS];
#pragma unroll
            for (int u = 0; u < 2 * LOOKS; u++) {
                p[u] = pair_of(m, count, u % LOOKS, g + u / LOOKS, first, rows);
                asked[u] = p[u].real ? ask(u % LOOKS, p[u]) : make_float2(0.0f, 0.0f);
                factor[u] = p[u].real ? factor_of(m, p[u]) : make_float2(1.0f, 1.0f);
            }
            read_groups(m, r, count, columns, g, groups, sums);
#pragma unroll
            for (int u = 0; u < 2 * LOOKS; u++)
                if (p[u].real)
                    store(u % LOOKS, p[u], r.scale[u % LOOKS], times(sums[u], factor[u]), asked[u]);
            write_groups(m, r, g, groups);
        }
        first += rows;
    }
}

/* Same for a task with two tensors whose row groups alternate: store(look, pair, scale, first,
 * second). */
template <class STORE>
static __device__ __forceinline__ void finish_pair_rows(machine &m, int count, int columns,
                                                        const STORE &store)
{
    reader r = begin_reading(m, count);
    const int groups = segment(m, 0).groups, rows = segment(m, 0).rows;
    for (int g = 0; g < groups; g += 2) {
        float2 sums[2 * LOOKS];
        read_groups(m, r, count, columns, g, groups, sums);
#pragma unroll
        for (int k = 0; k < LOOKS; k++) {
            const pair p = pair_of(m, count, k, g / 2, 0, rows);
            if (p.real)
                store(k, p, r.scale[k], times(sums[k], factor_of_pair(m, 0, p)),
                      times(sums[LOOKS + k], factor_of_pair(m, 1, p)));
        }
        write_groups(m, r, g, groups);
    }
}

#endif

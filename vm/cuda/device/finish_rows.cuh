/*
 * The epilogue's part of a product of several rows. A lane has a row and two neighbouring columns of each row
 * group: 8 rows are one look, 16 are two. From slot to memory everything stays in the lane's registers, four
 * lanes write a row's 8 columns together, and nothing is divided by a number that is not a constant.
 */
#ifndef MGL_DEVICE_FINISH_ROWS_CUH
#define MGL_DEVICE_FINISH_ROWS_CUH

#include "vm/cuda/device/finish.cuh"

enum {
    LANES_OF_ROW = GROUP_ROWS / 2,
    LOOK_ROWS = 32 / LANES_OF_ROW,
    LOOKS = (MOST_ROWS + LOOK_ROWS - 1) / LOOK_ROWS
};

/* Whether a task of `count` rows is one of several. */
static __device__ __forceinline__ bool has_rows(int count)
{
    return MGL_ROWS > 1 && count > 1;
}

/* Where the epilogue stands in the slots of a task, and this lane's part of a row group. */
struct reader {
    const float *slot; /* the one at hand */
    int each;          /* row groups of a slot */
    int stride;        /* floats from one row group to the next, */
    int warp_stride;   /* and from one warp's to the next warp's */
    int at[LOOKS];     /* floats from a row group's start to this lane's two columns */
    int row[LOOKS];    /* theirs; may be past the last row, whose sums it then reads */
    float scale[LOOKS];
    bool begun; /* the first slot is there, and so the scales are known */
};

static __device__ __forceinline__ reader begin_reading(const machine &m, int count)
{
    reader r = {nullptr, slot_groups(count), GROUP_ROWS * slot_rows(count)};
    r.warp_stride = r.each * r.stride;
#pragma unroll
    for (int k = 0; k < LOOKS; k++) {
        r.row[k] = k * LOOK_ROWS + m.lane / LANES_OF_ROW;
        r.at[k] = min(r.row[k], count - 1) * GROUP_ROWS + m.lane % LANES_OF_ROW * 2;
        r.scale[k] = 1.0f;
    }
    r.begun = false;
    return r;
}

/* total_of for two neighbours. */
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

/* This lane's sums of row group g of a segment of `groups`. Waits for the slot if it is the first in it, and
 * lets go of it behind the last. `columns`: the norm's width, 0 without one. */
static __device__ __forceinline__ void read_group(machine &m, reader &r, int count, int columns,
                                                  int g, int groups, float2 *sums)
{
    const int in_slot = g & (r.each - 1);
    if (in_slot == 0)
        r.slot = wait_slot(m);
    if (!r.begun && columns > 0) {
#pragma unroll
        for (int k = 0; k < LOOKS; k++)
            r.scale[k] = scale_of(min(r.row[k], count - 1), columns);
    }
    r.begun = true;
#pragma unroll
    for (int k = 0; k < LOOKS; k++)
        sums[k] = totals_of(r.slot + in_slot * r.stride + r.at[k], r.warp_stride);
    if (in_slot + 1 == r.each || g + 1 == groups)
        free_slot(m);
}

/* Two neighbouring outputs of a task. */
struct pair {
    int row, column;
    bool real; /* there is such a row, and such a column; */
    bool both; /* and the next column */
};

/* This lane's of row group g of a segment whose columns are [first, first + columns) of the task. */
static __device__ __forceinline__ pair pair_of(const machine &m, int count, int look, int g,
                                               int first, int columns)
{
    const int row = look * LOOK_ROWS + m.lane / LANES_OF_ROW;
    const int column = g * GROUP_ROWS + m.lane % LANES_OF_ROW * 2;
    return {row, first + column, row < count && column < columns, column + 1 < columns};
}

/* The epilogue of a linear task of several rows, two row groups at a time. ask(pair) is called before a pair's
 * sums are waited for; store(look, pair, scale, sums, asked) takes what it gave. */
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
            float2 sums[2 * LOOKS], asked[2 * LOOKS];
            pair p[2 * LOOKS];
#pragma unroll
            for (int u = 0; u < 2 * LOOKS; u++) {
                p[u] = pair_of(m, count, u % LOOKS, g + u / LOOKS, first, rows);
                asked[u] = p[u].real ? ask(p[u]) : make_float2(0.0f, 0.0f);
            }
            read_group(m, r, count, columns, g, groups, sums);
            if (g + 1 < groups)
                read_group(m, r, count, columns, g + 1, groups, sums + LOOKS);
#pragma unroll
            for (int u = 0; u < 2 * LOOKS; u++)
                if (p[u].real)
                    store(u % LOOKS, p[u], r.scale[u % LOOKS], sums[u], asked[u]);
        }
        first += rows;
    }
}

/* The same of a task with two tensors whose row groups stand in turn: store(pair, scale, first, second). */
template <class STORE>
static __device__ __forceinline__ void finish_pair_rows(machine &m, int count, int columns,
                                                        const STORE &store)
{
    reader r = begin_reading(m, count);
    const int groups = segment(m, 0).groups, rows = segment(m, 0).rows;
    for (int g = 0; g < groups; g += 2) {
        float2 first[LOOKS], second[LOOKS];
        read_group(m, r, count, columns, g, groups, first);
        read_group(m, r, count, columns, g + 1, groups, second);
#pragma unroll
        for (int k = 0; k < LOOKS; k++) {
            const pair p = pair_of(m, count, k, g / 2, 0, rows);
            if (p.real)
                store(p, r.scale[k], first[k], second[k]);
        }
    }
}

#endif

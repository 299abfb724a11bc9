/*
 * The epilogue's part of a product: it adds up the warps' sums of a slot and makes outputs of them. What
 * one row needs, which is what decoding does, goes from slot to memory through registers: each lane has
 * a column, and stores it with its neighbour's.
 */
#ifndef MGL_DEVICE_FINISH_CUH
#define MGL_DEVICE_FINISH_CUH

#include "vm/cuda/device/linear.cuh"

/* The sum over warps of number i of their sums, `stride` floats apart: ((0 + 4 + ..) + (1 + 5 + ..)) +
 * ((2 + 6 + ..) + (3 + 7 + ..)). */
static __device__ __forceinline__ float total_of(const float *slot, int i, int stride)
{
    const float *from = slot + i;
    float part[4] = {};
#pragma unroll
    for (int w = 0; w < MGL_WARPS; w++)
        part[w & 3] = w < 4 ? from[w * stride] : part[w & 3] + from[w * stride];
    return (part[0] + part[1]) + (part[2] + part[3]);
}

/* Waits until all warps have left their sums of the next row groups. */
static __device__ __forceinline__ const float *wait_slot(const machine &m)
{
    u32 slot = m.slot % SLOTS, use = m.slot / SLOTS;
    while (!barrier_tested(&own().slot_full[slot], use & 1))
        ; /* the consumers have a clock in each of their waits */
    __syncwarp();
    return own().partial + slot * SLOT;
}

static __device__ __forceinline__ void free_slot(machine &m)
{
    __syncwarp();
    if (is_first_lane())
        barrier_arrive(&own().slot_empty[m.slot % SLOTS]);
    m.slot++;
}

/* 1 / sqrt(mean(x^2) + eps) of row r, from the warps' sums in order; 1 without a norm (no columns). */
static __device__ __forceinline__ float scale_of(int r, int columns)
{
    if (columns == 0)
        return 1.0f;
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < MGL_WARPS; w++)
        sum += own().sums[r * MGL_WARPS + w];
    return rsqrtf(sum * (1.0f / (float)columns) + __uint_as_float(MGL_EPS_BITS));
}

/* The scale of the only row, as soon as it can be known. */
static __device__ __forceinline__ float only_scale(const machine &m, int columns)
{
    if (columns == 0)
        return 1.0f;
    if (!own().in[m.which].early) {
        wait_slot(m);
    } else {
        const u32 turn = own().early;
        while (!barrier_tested(&own().squares_full, turn & 1))
            ; /* the consumers have a clock in each of their waits */
        __syncwarp();
        own().early = turn + 1; /* every lane: whoever reads it next has written it */
    }
    return scale_of(0, columns);
}

/* The epilogue of a linear task of one row, two columns at a time: ready(scale, value, column) makes a sum an
 * output, store(0, column, first, second, both) writes column `column` and, if `both`, the next. `columns`:
 * the norm's width, 0 without one. */
template <class READY, class STORE>
static __device__ __forceinline__ void finish_row(machine &m, int columns, const READY &ready,
                                                  const STORE &store)
{
    const int each = slot_groups(1), segments = task_of(m)->segments;
    const float scale = only_scale(m, columns);
    int column = m.lane;
    for (int i = 0; i < segments; i++) {
        const int groups = segment(m, i).groups, rows = segment(m, i).rows;
        for (int g = 0; g < groups; g += each) {
            const int n = min(each, groups - g) * GROUP_ROWS, left = rows - g * GROUP_ROWS;
            const float *slot = wait_slot(m);
            const float total = total_of(slot, min(m.lane, n - 1), each * GROUP_ROWS);
            const float first = ready(scale, total, column + g * GROUP_ROWS);
            const float second = __shfl_xor_sync(0xFFFFFFFFu, first, 1);
            if ((m.lane & 1) == 0 && m.lane < min(left, n))
                store(0, column + g * GROUP_ROWS, first, second, m.lane + 1 < left);
            free_slot(m);
        }
        column += rows;
    }
}

/* A task with two tensors whose row groups stand in turn: ready(scale, first, second). */
template <class READY, class STORE>
static __device__ __forceinline__ void finish_pair_row(machine &m, int columns, const READY &ready,
                                                       const STORE &store)
{
    const int each = slot_groups(1), groups = segment(m, 0).groups, rows = segment(m, 0).rows;
    const int mine = m.lane / (2 * GROUP_ROWS) * GROUP_ROWS + m.lane % GROUP_ROWS;
    const bool has = m.lane / GROUP_ROWS % 2 == 0;
    const float scale = only_scale(m, columns);
    for (int g = 0; g < groups; g += each) {
        const int n = min(each, groups - g) * GROUP_ROWS, from = g / 2 * GROUP_ROWS;
        const float *slot = wait_slot(m);
        float value = total_of(slot, min(m.lane, n - 1), each * GROUP_ROWS);
        float first = ready(scale, value, __shfl_xor_sync(0xFFFFFFFFu, value, GROUP_ROWS));
        float second = __shfl_xor_sync(0xFFFFFFFFu, first, 1);
        if (has && (m.lane & 1) == 0 && m.lane < n && from + mine < rows)
            store(0, from + mine, first, second, from + mine + 1 < rows);
        free_slot(m);
    }
}

#endif

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

/* The same of all rows, into own().scale. */
static __device__ __forceinline__ void find_scales(const machine &m, int count, int columns)
{
    if (m.lane < count)
        own().scale[m.lane] = scale_of(m.lane, columns);
    __syncwarp();
}

/* Writes n finished columns from own().out, the first of them `column`: each lane two of a row at a time. */
template <class STORE>
static __device__ __forceinline__ void flush(const machine &m, int count, int column, int n,
                                             const STORE &store)
{
    __syncwarp();
    int i = (m.lane & 15) * 2;
    for (int r = m.lane >> 4; r < count && i < n; r += 2) {
        float2 v = *(const float2 *)(own().out + r * CHUNK + i);
        store(r, column + i, v.x, v.y, i + 1 < n);
    }
    __syncwarp();
}

/* Makes the columns of every slot of every segment, ready(scale, value), in own().out, and has
 * write(column, n) take columns [column, column + n) of the task from there. `columns`: the norm's width,
 * 0 without one. */
template <class READY, class WRITE>
static __device__ __forceinline__ void finish_chunks(machine &m, int count, int columns,
                                                     const READY &ready, const WRITE &write)
{
    const int rows = slot_rows(count), each = slot_groups(count), row_group = GROUP_ROWS * rows;
    int column = 0;
    for (int i = 0; i < task_of(m)->segments; i++) {
        const mgl_device_segment &seg = segment(m, i);
        for (int g = 0; g < seg.groups && count > 0; g += each) {
            const float *slot = wait_slot(m);
            if (i == 0 && g == 0)
                find_scales(m, count, columns);
            const int n = min(each, seg.groups - g) * GROUP_ROWS;
            for (int e = m.lane; e < n * count; e += 32) {
                int r = e / n, c = e % n; /* column c: of row group c / 8 */
                int at = c / GROUP_ROWS * row_group + r * GROUP_ROWS + c % GROUP_ROWS;
                own().out[r * CHUNK + c] =
                    ready(own().scale[r], total_of(slot, at, each * row_group));
            }
            free_slot(m);
            write(column + g * GROUP_ROWS, min(n, seg.rows - g * GROUP_ROWS));
        }
        column += seg.rows;
    }
}

/* The same of one row, two columns at a time: store(0, column, first, second, both). */
template <class READY, class STORE>
static __device__ __forceinline__ void finish_row(machine &m, int columns, const READY &ready,
                                                  const STORE &store)
{
    const int each = slot_groups(1);
    int column = m.lane;
    float scale = 1.0f;
    for (int i = 0; i < task_of(m)->segments; i++) {
        const int groups = segment(m, i).groups, rows = segment(m, i).rows;
        for (int g = 0; g < groups; g += each) {
            const float *slot = wait_slot(m);
            if (i == 0 && g == 0)
                scale = scale_of(0, columns);
            const int n = min(each, groups - g) * GROUP_ROWS, left = rows - g * GROUP_ROWS;
            float first = ready(scale, total_of(slot, min(m.lane, n - 1), each * GROUP_ROWS));
            float second = __shfl_xor_sync(0xFFFFFFFFu, first, 1);
            if ((m.lane & 1) == 0 && m.lane < left && m.lane < n)
                store(0, column + g * GROUP_ROWS, first, second, m.lane + 1 < left);
            free_slot(m);
        }
        column += rows;
    }
}

/* The epilogue of a linear task: ready(scale, value) makes a sum an output, store(r, column, first,
 * second, both) writes column `column` and, if `both`, the next of row r. */
template <class READY, class STORE>
static __device__ __forceinline__ void finish_linear(machine &m, int count, int columns,
                                                     const READY &ready, const STORE &store)
{
    if (count == 1)
        return finish_row(m, columns, ready, store);
    finish_chunks(m, count, columns, ready,
                  [&](int column, int n) { flush(m, count, column, n, store); });
}

/* A task with two tensors whose row groups stand in turn: ready(scale, first, second). One row. */
template <class READY, class STORE>
static __device__ __forceinline__ void finish_pair_row(machine &m, int columns, const READY &ready,
                                                       const STORE &store)
{
    const int each = slot_groups(1), groups = segment(m, 0).groups, rows = segment(m, 0).rows;
    const int mine = m.lane / (2 * GROUP_ROWS) * GROUP_ROWS + m.lane % GROUP_ROWS;
    const bool has = m.lane / GROUP_ROWS % 2 == 0;
    float scale = 1.0f;
    for (int g = 0; g < groups; g += each) {
        const float *slot = wait_slot(m);
        if (g == 0)
            scale = scale_of(0, columns);
        const int n = min(each, groups - g) * GROUP_ROWS, from = g / 2 * GROUP_ROWS;
        float value = total_of(slot, min(m.lane, n - 1), each * GROUP_ROWS);
        float first = ready(scale, value, __shfl_xor_sync(0xFFFFFFFFu, value, GROUP_ROWS));
        float second = __shfl_xor_sync(0xFFFFFFFFu, first, 1);
        if (has && (m.lane & 1) == 0 && m.lane < n && from + mine < rows)
            store(0, from + mine, first, second, from + mine + 1 < rows);
        free_slot(m);
    }
}

/* The same of any number of rows. */
template <class READY, class STORE>
static __device__ __forceinline__ void finish_pair(machine &m, int count, int columns,
                                                   const READY &ready, const STORE &store)
{
    const int rows = slot_rows(count), each = slot_groups(count), row_group = GROUP_ROWS * rows;
    const mgl_device_segment &seg = segment(m, 0);
    if (count == 1 && each > 1)
        return finish_pair_row(m, columns, ready, store);
    for (int g = 0; g < seg.groups && count > 0; g += each) {
        const float *slot = wait_slot(m);
        if (g == 0)
            find_scales(m, count, columns);
        const bool apart = each == 1, holds = apart && g % 2 == 0;
        const int n = apart ? GROUP_ROWS : min(each, seg.groups - g) / 2 * GROUP_ROWS;
        for (int e = m.lane; e < n * count; e += 32) {
            int r = e / n, c = e % n;
            int at = c / GROUP_ROWS * 2 * row_group + r * GROUP_ROWS + c % GROUP_ROWS;
            float value = total_of(slot, at, each * row_group);
            if (holds) {
                own().held[r * GROUP_ROWS + c] = value;
            } else {
                float before = apart ? own().held[r * GROUP_ROWS + c] : value;
                float second = apart ? value : total_of(slot, at + row_group, each * row_group);
                own().out[r * CHUNK + c] = ready(own().scale[r], before, second);
            }
        }
        free_slot(m);
        int from = g / 2 * GROUP_ROWS;
        if (!holds)
            flush(m, count, from, min(n, seg.rows - from), store);
    }
}

#endif

/*
 * Slots: where the consumer warps leave their partial sums of a row group, or of some, and where
 * the epilogue takes them from: (warp, row group, row, 8) floats. A slot is a stage of a pipeline
 * with a `full` and an `empty` mbarrier.
 */
#ifndef MGL_DEVICE_LINEAR_SLOTS_CUH
#define MGL_DEVICE_LINEAR_SLOTS_CUH

#include "vm/cuda/device/ring.cuh"
#include "vm/cuda/device/task.cuh"

/* Rows that a row group's sums have room for in a slot. */
static __device__ __forceinline__ int slot_rows(int count)
{
    return count <= 1 ? 1 : count <= 2 ? 2 : count <= 4 ? 4 : count <= 8 ? 8 : 16;
}

/* Row groups of a slot: 1, 2 or 4, whose columns of one row are as many as a warp has lanes. */
static __device__ __forceinline__ int slot_groups(int count)
{
    const int fit = SLOT / (MGL_WARPS * MGL_ROW_GROUP) / slot_rows(count);
    return fit >= MGL_SLOT_GROUPS ? MGL_SLOT_GROUPS : fit >= 2 ? 2 : 1;
}

/* Where this warp's sums of row group g of a segment go, in the slot of g and its neighbours, once
 * that is empty. */
static __device__ __forceinline__ float *take_slot(const machine &m, int g, int groups, int rows)
{
    u32 slot = m.slots % SLOTS, use = m.slots / SLOTS;
    if (g % groups == 0)
        while (use > 0 && !barrier_passed(&own().slot_empty[slot], (use - 1) & 1))
            ; /* the epilogue has a clock in each of its waits */
    return own().partial + slot * SLOT + (m.warp * groups + g % groups) * MGL_ROW_GROUP * rows;
}

/* This warp's sums of row group g are in the slot; `last`: of the segment. */
static __device__ __forceinline__ void leave_slot(machine &m, int g, int groups, bool last)
{
    if (g % groups != groups - 1 && !last)
        return;
    __syncwarp();
    if (m.lane == 0)
        barrier_arrive(&own().slot_full[m.slots % SLOTS]);
    m.slots++;
}

/* A warp without blocks lets the pages go by as it goes through the row groups: a task's tape may
 * be longer than the ring. Its sums are zeros. The segment by value: behind the last slot the
 * record may be gone. */
static __device__ __forceinline__ void skip_groups(machine &m, const input &in,
                                                   const mgl_device_segment seg)
{
    const int count = in.count, rows = slot_rows(count), groups = slot_groups(count);
    for (int g = 0; g < seg.groups; g++) {
        float *to = take_slot(m, g, groups, rows);
        for (int i = m.lane; i < MGL_ROW_GROUP * rows; i += 32)
            to[i] = 0.0f;
        ring_done(m, m.base + (seg.block + (g + 1) * seg.kblocks) / PAGE_BLOCKS);
        leave_slot(m, g, groups, g + 1 == seg.groups);
    }
}

/* Waits until all warps have left their sums of the next row groups. */
static __device__ __forceinline__ const float *wait_slot(const machine &m)
{
    u32 slot = m.slots % SLOTS, use = m.slots / SLOTS;
    while (!barrier_tested(&own().slot_full[slot], use & 1))
        ; /* the consumers have a clock in each of their waits */
    __syncwarp();
    return own().partial + slot * SLOT;
}

static __device__ __forceinline__ void free_slot(machine &m)
{
    __syncwarp();
    if (is_first_lane())
        barrier_arrive(&own().slot_empty[m.slots % SLOTS]);
    m.slots++;
}

#endif

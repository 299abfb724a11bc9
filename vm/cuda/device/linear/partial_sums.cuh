/*
 * Slots: where the consumer warps leave their partial sums of a row group, or of some, and where
 * the epilogue takes them from: (warp, row group, row, 8) floats. A slot is a stage of a pipeline
 * with a `full` and an `empty` mbarrier.
 */
#ifndef MGL_DEVICE_LINEAR_PARTIAL_SUMS_CUH
#define MGL_DEVICE_LINEAR_PARTIAL_SUMS_CUH

#include "vm/cuda/device/ring.cuh"
#include "vm/cuda/device/task.cuh"

/* Rows that a row group's sums have room for in a slot. */
static __device__ __forceinline__ int psum_rows(int count)
{
    return count <= 1 ? 1 : count <= 2 ? 2 : count <= 4 ? 4 : count <= 8 ? 8 : 16;
}

/* Row groups of a slot: 1, 2 or 4, whose columns of one row are as many as a warp has lanes. */
static __device__ __forceinline__ int psum_groups(int count)
{
    const int fit = PSUM / (MGL_WARPS * MGL_ROW_GROUP) / psum_rows(count);
    return fit >= MGL_PSUM_GROUPS ? MGL_PSUM_GROUPS : fit >= 2 ? 2 : 1;
}

/* Where this warp's sums of row group g of a segment go, in the slot of g and its neighbours, once
 * that is empty. */
static __device__ __forceinline__ float *claim_psum(const machine &m, int g, int groups, int rows)
{
    u32 psum = m.psums % PSUM_COUNT, use = m.psums / PSUM_COUNT;
    if (g % groups == 0)
        while (use > 0 && !barrier_passed(&own().psum_empty[psum], (use - 1) & 1))
            ; /* the epilogue has a clock in each of its waits */
    return own().partial + psum * PSUM + (m.warp * groups + g % groups) * MGL_ROW_GROUP * rows;
}

/* This warp's sums of row group g are in the slot; `last`: of the segment. */
static __device__ __forceinline__ void write_psum(machine &m, int g, int groups, bool last)
{
    if (g % groups != groups - 1 && !last)
        return;
    __syncwarp();
    if (m.lane == 0)
        barrier_arrive(&own().psum_full[m.psums % PSUM_COUNT]);
    m.psums++;
}

/* A warp without blocks lets the pages go by as it goes through the row groups: a task's tape may
 * be longer than the ring. Its sums are zeros. The segment by value: behind the last slot the
 * record may be gone. */
static __device__ __forceinline__ void skip_groups(machine &m, const input &in,
                                                   const mgl_device_segment seg)
{
    const int count = in.count, rows = psum_rows(count), groups = psum_groups(count);
    for (int g = 0; g < seg.groups; g++) {
        float *to = claim_psum(m, g, groups, rows);
        for (int i = m.lane; i < MGL_ROW_GROUP * rows; i += 32)
            to[i] = 0.0f;
        ring_done(m, m.base + (seg.block + (g + 1) * seg.kblocks) / PAGE_BLOCKS);
        write_psum(m, g, groups, g + 1 == seg.groups);
    }
}

/* Waits until all warps have left their sums of the next row groups. */
static __device__ __forceinline__ const float *wait_psum(const machine &m)
{
    u32 psum = m.psums % PSUM_COUNT, use = m.psums / PSUM_COUNT;
    while (!barrier_tested(&own().psum_full[psum], use & 1))
        ; /* the consumers have a clock in each of their waits */
    __syncwarp();
    return own().partial + psum * PSUM;
}

static __device__ __forceinline__ void free_psum(machine &m)
{
    __syncwarp();
    if (is_first_lane())
        barrier_arrive(&own().psum_empty[m.psums % PSUM_COUNT]);
    m.psums++;
}

#endif

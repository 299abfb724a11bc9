/*
 * Partial-sum buffers of split-K products. A buffer holds the partial sums of one or more row
 * groups: floats (warp, row group, row, 8). The consumer warps write them, and the epilogue adds
 * them. The buffers form a pipeline: each has a `full` and an `empty` mbarrier.
 */
#ifndef MGL_DEVICE_LINEAR_PARTIAL_SUMS_CUH
#define MGL_DEVICE_LINEAR_PARTIAL_SUMS_CUH

#include "vm/cuda/device/ring.cuh"
#include "vm/cuda/device/task.cuh"

/* Rows of a row group in a buffer, for `count` activation rows. */
static __device__ __forceinline__ int psum_rows(int count)
{
    return count <= 1 ? 1 : count <= 2 ? 2 : count <= 4 ? 4 : count <= 8 ? 8 : 16;
}

/* Row groups of a buffer: 1, 2 or 4. With 4, the columns of one row match the lanes of a warp. */
static __device__ __forceinline__ int psum_groups(int count)
{
    const int fit = PSUM / (MGL_WARPS * MGL_ROW_GROUP) / psum_rows(count);
    return fit >= MGL_PSUM_GROUPS ? MGL_PSUM_GROUPS : fit >= 2 ? 2 : 1;
}

/* Waits until the buffer of row group g is empty, and returns the address of this warp's sums of g
 * in it. `groups` consecutive row groups of a segment share the buffer. */
static __device__ __forceinline__ float *claim_psum(const machine &m, int g, int groups, int rows)
{
    u32 psum = m.psums % PSUM_COUNT, use = m.psums / PSUM_COUNT;
    if (g % groups == 0)
        while (use > 0 && !barrier_passed(&own().psum_empty[psum], (use - 1) & 1))
            ; /* each wait of the epilogue has a deadline */
    return own().partial + psum * PSUM + (m.warp * groups + g % groups) * MGL_ROW_GROUP * rows;
}

/* Marks this warp's sums of row group g as written. Passes the buffer to the epilogue after its
 * last row group, or after the `last` of the segment. */
static __device__ __forceinline__ void write_psum(machine &m, int g, int groups, bool last)
{
    if (g % groups != groups - 1 && !last)
        return;
    __syncwarp();
    if (m.lane == 0)
        barrier_arrive(&own().psum_full[m.psums % PSUM_COUNT]);
    m.psums++;
}

/* Whether the current partial-sum buffer is empty. Does not wait. */
static __device__ __forceinline__ bool has_room(const machine &m)
{
    return barrier_tested(&own().psum_empty[m.psums % PSUM_COUNT], (m.psums / PSUM_COUNT + 1) & 1);
}

#if MGL_SCALED
static __device__ int row_group_blocks(const machine &m, const mgl_device_segment &seg);
#else
/* Blocks of a row group of a segment. */
static __device__ __forceinline__ int row_group_blocks(const machine &,
                                                       const mgl_device_segment &seg)
{
    return seg.kblocks;
}
#endif

/* Processes a segment in a warp without blocks: writes zeros as its sums, and frees the pages row
 * group by row group, because the tape of a task may be longer than the ring. The segment is passed
 * by value: after the last sums are written, the record may be overwritten. */
static __device__ __forceinline__ void skip_groups(machine &m, const input &in,
                                                   const mgl_device_segment seg)
{
    const int count = in.count, rows = psum_rows(count), groups = psum_groups(count);
    for (int g = 0; g < seg.groups; g++) {
        float *to = claim_psum(m, g, groups, rows);
        for (int i = m.lane; i < MGL_ROW_GROUP * rows; i += 32)
            to[i] = 0.0f;
        ring_done(m, m.base + (seg.block + (g + 1) * row_group_blocks(m, seg)) / PAGE_BLOCKS);
        write_psum(m, g, groups, g + 1 == seg.groups);
    }
}

/* Waits until all warps have written their sums of the next row groups. */
static __device__ __forceinline__ const float *wait_psum(const machine &m)
{
    u32 psum = m.psums % PSUM_COUNT, use = m.psums / PSUM_COUNT;
    while (!barrier_tested(&own().psum_full[psum], use & 1))
        ; /* each wait of the consumers has a deadline */
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

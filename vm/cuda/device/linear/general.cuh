/*
 * The general variant of products: any shape, any number of rows, f32 or 16-bit weights, with or
 * without the activation buffer.
 */
#ifndef MGL_DEVICE_LINEAR_GENERAL_CUH
#define MGL_DEVICE_LINEAR_GENERAL_CUH

#include "vm/cuda/device/linear/products.cuh"
#include "vm/cuda/device/linear/scaled.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
/* region: device */
/* Number of blocks of a run that may be loaded at once. Those of all warps must fit in half of the
 * ring. */
static __device__ __forceinline__ constexpr int blocks_at_once()
{
    int blocks = LOADED;
    while (blocks > 1 &&
           (blocks * MGL_WARPS + PAGE_BLOCKS - 2) / PAGE_BLOCKS + 1 > (MGL_RING + 1) / 2)
        blocks /= 2;
    return blocks;
}

/* Computes all row groups of a segment for rows in the activation buffer, with up to N MMAs for
 * each block. */
template <int N> NEAR_OR_INLINE machine sum_general(machine m, const mgl_device_segment seg)
{
    const input in = own().in[m.instruction];
    constexpr int EACH = blocks_at_once();
    const int groups = seg.groups, kblocks = seg.kblocks;
    const int rows = psum_rows(in.count), each = psum_groups(in.count);
    const column mine = column_of(m.lane, in.low);
    const mgl_tape_order p = mgl_tape_order_of(kblocks, MGL_WARPS);
    int blocks, first = run_of(kblocks, m.warp, &blocks);
    const uint2 *x[N]; /* addresses of this lane's column of each MMA in block 0 of the run */
#pragma unroll
    for (int n = 0; n < N; n++) {
        int row = min(n * mma_rows(in.low) + mine.row, in.count - 1) + (mine.low ? in.count : 0);
        x[n] = (const uint2 *)(activation_buffer() + row * in.row_bytes) +
               (first * 4 + (m.lane & 3)) * 2 + mine.odd;
    }
    for (int g = 0; g < groups; g++) {
        const u32 group = seg.block + g * kblocks;
        u32 spot = ring_spot(m, group + m.warp);
        sums s[N] = {};
        for (int i = 0; i < blocks; i += EACH) {
            const int count = min(EACH, blocks - i);
            ring_done(m, m.base + (group + mgl_tape_place(p, m.warp, i)) / PAGE_BLOCKS);
            ring_wait(m, m.base + (group + mgl_tape_place(p, m.warp, i + count - 1)) / PAGE_BLOCKS +
                             1);
            uint4 w[EACH] = {};
#pragma unroll
            for (int k = 0; k < EACH; k++)
                if (k < count) {
                    w[k] = load_block(spot, m.lane);
                    spot += i + k < p.of_last ? p.warps : p.warps - 1;
                    spot = RING_BLOCKS < MGL_WARPS ? spot % RING_BLOCKS
                                                   : min(spot, spot - RING_BLOCKS);
                }
#pragma unroll
            for (int k = 0; k < EACH; k++)
                if (k < count)
#pragma unroll
                    for (int n = 0; n < N; n++)
                        if (n == 0 || n * mma_rows(in.low) < in.count)
                            add_to(s[n], EACH > 1 ? k : i, w[k], x[n][(i + k) * 8]);
        }
        ring_done(m, m.base + (group + kblocks) / PAGE_BLOCKS);
        store_all<N>(m, in, s, claim_psum(m, g, each, rows));
        write_psum(m, g, each, g + 1 == groups);
    }
    return m;
}

/* Same for rows that do not fit in the activation buffer. The input is read from memory, block by
 * block. */
template <int N> NEAR_OR_INLINE machine sum_unbuffered(machine m, const mgl_device_segment seg)
{
    const input &in = own().in[m.instruction];
    const int groups = seg.groups, kblocks = seg.kblocks;
    const int rows = psum_rows(in.count), each = psum_groups(in.count);
    const column mine = column_of(m.lane, in.low);
    const mgl_tape_order p = mgl_tape_order_of(kblocks, MGL_WARPS);
    int blocks, first = run_of(kblocks, m.warp, &blocks);
    for (int g = 0; g < groups; g++) {
        sums s[N] = {};
        for (int i = 0; i < blocks; i++) {
            u32 block = seg.block + g * kblocks + mgl_tape_place(p, m.warp, i);
            u32 page = m.base + block / PAGE_BLOCKS;
            ring_done(m, page);
            ring_wait(m, page + 1);
            uint4 w = load_block(ring_spot(m, block), m.lane);
#pragma unroll
            for (int n = 0; n < N; n++) {
                if (n * mma_rows(in.low) >= in.count)
                    continue;
                int row = min(n * mma_rows(in.low) + mine.row, in.count - 1);
                chunk c = direct_chunk(m, row, (first + i) * 4 + (m.lane & 3));
                uint4 words = mine.low ? c.low : c.high;
                uint2 x = mine.odd ? make_uint2(words.z, words.w) : make_uint2(words.x, words.y);
                add_to(s[n], i, w, x);
            }
        }
        store_all<N>(m, in, s, claim_psum(m, g, each, rows));
        write_psum(m, g, each, g + 1 == groups);
    }
    return m;
}

/* ---- f32 weights ------------------------------------------------------------------------------
 */

/* Four values of row j in this lane's quarter of block b. Rows past the end repeat the last row. */
static __device__ __forceinline__ uint4 floats_of(const machine &m, const input &in, int j, int b)
{
    int row = min(j, in.count - 1), n = b * 4 + (m.lane & 3);
    return in.buffered ? *buffered_at(m, in, row, n) : direct_chunk(m, row, n).high;
}

/* Computes all row groups of a segment for R activation rows. Rows past in.count repeat the last
 * row.
 */
template <int R> NEAR_OR_INLINE machine sum_floats(machine m, const mgl_device_segment seg)
{
    const input &in = own().in[m.instruction];
    const int groups = seg.groups, kblocks = seg.kblocks, quarter = m.lane & 3;
    const int rows = psum_rows(in.count), each = psum_groups(in.count);
    const mgl_tape_order p = mgl_tape_order_of(kblocks, MGL_WARPS);
    int blocks, first = run_of(kblocks, m.warp, &blocks);
    for (int g = 0; g < groups; g++) {
        float s[R] = {};
        for (int i = 0; i < blocks; i++) {
            u32 block = seg.block + g * kblocks + mgl_tape_place(p, m.warp, i);
            u32 page = m.base + block / PAGE_BLOCKS;
            ring_done(m, page);
            ring_wait(m, page + 1);
            float w[4], x[4];
            format<DTYPE_F32>::unpack(load_block(ring_spot(m, block), m.lane), w);
#pragma unroll
            for (int r = 0; r < R; r++) {
                format<DTYPE_F32>::unpack(floats_of(m, in, r, first + i), x);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    s[r] = fmaf(w[k], x[k], s[r]);
            }
        }
        float *to = claim_psum(m, g, each, rows) + (m.lane >> 2);
#pragma unroll
        for (int r = 0; r < R; r++) {
            s[r] += __shfl_xor_sync(0xFFFFFFFFu, s[r], 1);
            s[r] += __shfl_xor_sync(0xFFFFFFFFu, s[r], 2);
            if (quarter == r % 4 && r < in.count)
                to[r * MGL_ROW_GROUP] = s[r];
        }
        write_psum(m, g, each, g + 1 == groups);
    }
    return m;
}

/* ---- any input --------------------------------------------------------------------------------
 */

/* MMAs for each block with the maximum number of rows. */
enum { MOST_MMAS = MOST_ROWS <= 1 ? 1 : MOST_ROWS / 2 };

static __device__ __forceinline__ machine sum_segment(const machine &m, const input &in,
                                                      const mgl_device_segment &seg)
{
#if MGL_SCALED
    if (in.format > 0)
        return sum_scaled_segment<MOST_MMAS>(m, in, seg);
#endif
    if (MGL_WEIGHT != DTYPE_F32) {
        int mmas = (in.count + mma_rows(in.low) - 1) / mma_rows(in.low);
        return !in.buffered                 ? sum_unbuffered<MOST_MMAS>(m, seg)
               : mmas <= 1                  ? sum_general<1>(m, seg)
               : MOST_MMAS > 2 && mmas <= 2 ? sum_general<(MOST_MMAS > 2 ? 2 : 1)>(m, seg)
               : MOST_MMAS > 4 && mmas <= 4 ? sum_general<(MOST_MMAS > 4 ? 4 : 1)>(m, seg)
                                            : sum_general<MOST_MMAS>(m, seg);
    }
    return in.count <= 1                    ? sum_floats<1>(m, seg)
           : MOST_ROWS > 1 && in.count <= 4 ? sum_floats<(MOST_ROWS > 1 ? 4 : 1)>(m, seg)
                                            : sum_floats<MOST_ROWS>(m, seg);
}

/* Prepares this warp's run of the input for the task's weight format. */
static __device__ __forceinline__ void gather_any(const machine &m, const input &in)
{
#if MGL_SCALED
    if (in.format > 0)
        return gather_scaled(m, in);
#endif
    gather_run(m, in);
}

/* Runs the task with any input. */
NEAR_OR_INLINE machine consume_general(machine m)
{
    const input &in = own().in[m.instruction];
    const int segments = task_of(m)->segments;
    for (int i = 0; i < segments; i++) {
        const mgl_device_segment &seg = segment(m, i);
        if (m.warp < mgl_tape_order_of(seg.kblocks, MGL_WARPS).warps)
            m = sum_segment(m, in, seg);
        else
            skip_groups(m, in, seg);
    }
    return m;
}

/* region: end */

#endif

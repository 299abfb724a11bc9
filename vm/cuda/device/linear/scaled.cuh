/*
 * Group-wise dequantized matrix multiplication: the general variant for scaled weights
 * (linear/formats.cuh). It supports any number of rows, with or without the activation buffer. MMAs
 * add the units of a group. Then the zero point or minimum of the group is applied, and its scale
 * multiplies the sum. If a group extends over the runs of several warps, each warp adds and scales
 * its own units of the group. The sums and their order are those of the skinny variant
 * (linear/scaled_skinny.cuh). If activations are digits (linear/scaled_input.cuh), each sum is the
 * sum of one digit. The sums of the four digits are added at the end of a row group.
 */
#ifndef MGL_DEVICE_LINEAR_SCALED_CUH
#define MGL_DEVICE_LINEAR_SCALED_CUH

#include "vm/cuda/device/linear/products.cuh"
#include "vm/cuda/device/linear/scaled_input.cuh"

#if MGL_SCALED

/* The sums of one MMA's rows of activations for a row group. */
struct scaled_sums {
    float group[4]; /* of the current group, without its scale */
    float ones[4];  /* of the current group, if all its codes were 1 */
    float total;    /* of the finished groups, with their scales */
};

/* Applies the zero point or minimum and the scale to the sums of a group, adds the results to the
 * totals, and begins a new group. */
template <class F, int N>
static __device__ __forceinline__ void end_group(scaled_sums *s, const group_scale &of)
{
#pragma unroll
    for (int n = 0; n < N; n++) {
        const float sum = F::sum_of(s[n].group[0], s[n].group[3]);
        const float ones = F::sum_of(s[n].ones[0], s[n].ones[3]);
        s[n].total = F::add_group(s[n].total, of, sum, ones);
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[n].group[i] = s[n].ones[i] = 0.0f;
    }
}

/* store_sums for scaled weights: first divides the sums by the powers of two of the codes and of
 * the run. */
template <class F>
static __device__ __forceinline__ void store_scaled(const machine &m, const input &in, float total,
                                                    int first, float *to)
{
    const int row = first + (in.low ? (m.lane & 3) >> 1 : m.lane & 3);
    total *= F::decoded_factor();
    total *= range_of(m, min(row, in.count - 1), m.warp);
    if (in.low)
        total += __shfl_xor_sync(0xFFFFFFFFu, total, 1);
    if (row < in.count && !(in.low && (m.lane & 1)))
        to[row * MGL_ROW_GROUP + (m.lane >> 2)] = total;
}

/* The B operand of part `part` of this lane's row: from the activation buffer at x, or converted
 * from the input. `first`: the first part of this warp's run. */
template <class F, bool BUFFERED>
static __device__ __forceinline__ uint2 activations_of(const machine &m, const uint2 *x, int row,
                                                       const column &mine, int first, int part)
{
    if (BUFFERED)
        return x[part * PART_CHUNKS * 2];
    const chunk c = direct_scaled_chunk<F>(m, row, (first + part) * PART_CHUNKS + (m.lane & 3));
    const uint4 words = mine.low ? c.low : c.high;
    return mine.odd ? make_uint2(words.z, words.w) : make_uint2(words.x, words.y);
}

/* Address in the ring of the byte at `offset` from the start of block `block` of the epoch's
 * tape. */
static __device__ __forceinline__ const u8 *in_ring(const machine &m, u32 block, int offset)
{
    return ring_memory() + ring_spot(m, block + offset / MGL_BLOCK_BYTES) * MGL_BLOCK_BYTES +
           offset % MGL_BLOCK_BYTES;
}

/* Reads the scale and the zero point or minimum of a group and a row. at(offset): address of a byte
 * of the scales of the row group. `groups`: groups of a row. */
template <class F, class AT>
static __device__ __forceinline__ group_scale read_scale_at(const AT &at, int groups, int group,
                                                            int row)
{
    group_scale of = F::default_scale();
    if (F::ON_TAPE)
        of.scale = format<F::SCALE_DTYPE>::load(at(F::scale_at(group, row)), 0);
    if (F::HAS_MINIMUMS)
        of.zero = format<F::SCALE_DTYPE>::load(at(F::zero_at(groups, group, row)), 0);
    if (F::STORED_ZEROS)
        of.zero = (float)*at(F::zero_at(groups, group, row));
    return of;
}

/* The same, from the scales at block `scales` of the epoch's tape. */
template <class F>
static __device__ __forceinline__ group_scale read_scale(const machine &m, u32 scales, int groups,
                                                         int group, int row)
{
    return read_scale_at<F>([&](int offset) { return in_ring(m, scales, offset); }, groups, group,
                            row);
}

/* Computes all row groups of a segment with format F, with up to N MMAs for each part. */
template <class F, int N, bool BUFFERED>
NEAR_OR_INLINE machine sum_scaled(machine m, const mgl_device_segment seg)
{
    const input in = own().in[m.instruction];
    const int rows = psum_rows(in.count), each = psum_groups(in.count), row = m.lane >> 2;
    const int scale_blocks = F::scale_blocks(seg.columns), scale_groups = F::groups(seg.columns);
    const column mine = column_of(m.lane, in.low);
    const mgl_tape_order p = mgl_tape_order_of(seg.kblocks, MGL_WARPS);
    int blocks, first = run_of(seg.kblocks, m.warp, &blocks);
    const uint2 *x[N]; /* addresses of this lane's column of each MMA in part 0 of the run */
    int line[N];       /* row of activations of this lane's column of each MMA */
#pragma unroll
    for (int n = 0; n < N; n++) {
        line[n] = min(n * mma_rows(in.low) + mine.row, in.count - 1);
        x[n] = (const uint2 *)(activation_buffer() +
                               (line[n] + (mine.low ? in.count : 0)) * in.row_bytes) +
               (first * F::PARTS * PART_CHUNKS + (m.lane & 3)) * 2 + mine.odd;
    }
    for (int g = 0; g < seg.groups; g++) {
        const u32 scales = seg.block + g * (scale_blocks + seg.kblocks);
        const u32 codes = scales + scale_blocks;
        scaled_sums s[N] = {};
        group_scale of = F::default_scale();
        int group = -1;
        for (int i = 0; i < blocks; i++) {
            const u32 block = codes + mgl_tape_place(p, m.warp, i);
            /* the pages of the scales are freed only after the row group */
            ring_done(m, m.base + (F::ON_TAPE ? scales : block) / PAGE_BLOCKS);
            ring_wait(m, m.base + block / PAGE_BLOCKS + 1);
            const uint4 raw = load_block(ring_spot(m, block), m.lane);
#pragma unroll
            for (int unit = 0; unit < F::UNITS; unit++) {
                const int number = (first + i) * F::UNITS + unit, part = unit / F::SPLIT;
                const int here = F::ON_TAPE ? min(F::group_of(number), scale_groups - 1) : 0;
                if (F::ON_TAPE && here != group) {
                    if (group >= 0)
                        end_group<F, N>(s, of);
                    group = here;
                    of = read_scale<F>(m, scales, scale_groups, group, row);
                }
                const uint4 w = F::decode(raw, part), one = F::decoded_ones();
#pragma unroll
                for (int n = 0; n < N; n++)
                    if (n == 0 || n * mma_rows(in.low) < in.count) {
                        const uint2 whole = activations_of<F, BUFFERED>(
                            m, x[n], line[n], mine, first * F::PARTS, i * F::PARTS + part);
                        const uint2 b = F::in_unit(whole, unit, m.lane);
                        multiply_add<DTYPE_F16>(s[n].group, w.x, w.y, w.z, w.w, b.x, b.y);
                        if (F::HAS_OFFSET)
                            multiply_add<DTYPE_F16>(s[n].ones, one.x, one.y, one.z, one.w, b.x,
                                                    b.y);
                    }
            }
        }
        end_group<F, N>(s, of);
        ring_done(m, m.base + (codes + seg.kblocks) / PAGE_BLOCKS);
        float *to = claim_psum(m, g, each, rows);
#pragma unroll
        for (int n = 0; n < N; n++)
            if (n * mma_rows(in.low) < in.count)
                store_scaled<F>(m, in, s[n].total, n * mma_rows(in.low), to);
        write_psum(m, g, each, g + 1 == seg.groups);
    }
    return m;
}

/* The B operand of pair `pair` of the run: the words of this lane's digit (digit_column_of) of row
 * `row`, from the activation buffer at x, or converted from the input. `first`: the first part of
 * this warp's run. */
template <class F, bool BUFFERED>
static __device__ __forceinline__ uint2 digits_at(const machine &m, const uint2 *x, int row,
                                                  int first, int pair)
{
    if (BUFFERED)
        return x[pair * PAIR_WORDS];
    const digit_column mine = digit_column_of(m.lane);
    const int part = first + 2 * pair + mine.second;
    const chunk c = direct_scaled_chunk<F>(m, row, part * PART_CHUNKS + (m.lane & 3));
    const uint4 words = mine.digit >= 2 ? c.high : c.low;
    return mine.digit & 1 ? make_uint2(words.x, words.y) : make_uint2(words.z, words.w);
}

/* The sums of one digit of a row of activations for a row group. */
struct integer_sums {
    int group;   /* of the current group */
    int base;    /* of the current group if all its codes were F::BASE */
    float total; /* of the finished groups, multiplied by their scales */
};

template <class F, int N>
static __device__ __forceinline__ void end_integers(integer_sums *s, const group_scale &of)
{
#pragma unroll
    for (int n = 0; n < N; n++)
        s[n] = {0, 0, F::add_integers(s[n].total, of, s[n].group, s[n].base)};
}

/* Like sum_scaled, for integer codes and for activations of up to N rows as digits. */
template <class F, int N, bool BUFFERED>
NEAR_OR_INLINE machine sum_integers(machine m, const mgl_device_segment seg)
{
    const input in = own().in[m.instruction];
    const int rows = psum_rows(in.count), each = psum_groups(in.count), row = m.lane >> 2;
    const int scale_blocks = F::scale_blocks(seg.columns), scale_groups = F::groups(seg.columns);
    const mgl_tape_order p = mgl_tape_order_of(seg.kblocks, MGL_WARPS);
    int blocks, first = run_of(seg.kblocks, m.warp, &blocks);
    const uint2 *x =
        (const uint2 *)(activation_buffer() +
                        (digit_column_of(m.lane).digit < 2 ? in.count : 0) * in.row_bytes) +
        digit_place(m.lane, first * F::PARTS);
    for (int g = 0; g < seg.groups; g++) {
        const u32 scales = seg.block + g * (scale_blocks + seg.kblocks);
        const u32 codes = scales + scale_blocks;
        integer_sums s[N] = {};
        group_scale of = F::default_scale();
        int group = -1;
        for (int i = 0; i < blocks; i++) {
            const u32 block = codes + mgl_tape_place(p, m.warp, i);
            /* the pages of the scales are freed only after the row group */
            ring_done(m, m.base + (F::ON_TAPE ? scales : block) / PAGE_BLOCKS);
            ring_wait(m, m.base + block / PAGE_BLOCKS + 1);
            const uint4 raw = load_block(ring_spot(m, block), m.lane);
#pragma unroll
            for (int pair = 0; pair < F::PARTS / 2; pair++) {
                int sums[N][F::PAIR_UNITS], base[N][F::PAIR_UNITS];
#pragma unroll
                for (int n = 0; n < N; n++) {
                    const int line = min(n, in.count - 1);
                    const uint2 b = digits_at<F, BUFFERED>(
                        m, (const uint2 *)((const u8 *)x + line * in.row_bytes), line,
                        first * F::PARTS, i * F::PARTS / 2 + pair);
                    multiply_pair<F>(F::integers(raw, pair), b, m.lane, sums[n]);
                    multiply_pair<F>(base_pair<F>(), b, m.lane, base[n]);
                }
#pragma unroll
                for (int unit = 0; unit < F::PAIR_UNITS; unit++) {
                    const int number = (first + i) * F::UNITS + pair * F::PAIR_UNITS + unit;
                    const int here = F::ON_TAPE ? min(F::group_of(number), scale_groups - 1) : 0;
                    if (F::ON_TAPE && here != group) {
                        if (group >= 0)
                            end_integers<F, N>(s, of);
                        group = here;
                        of = read_scale<F>(m, scales, scale_groups, group, row);
                    }
#pragma unroll
                    for (int n = 0; n < N; n++) {
                        s[n].group += sums[n][unit];
                        s[n].base += base[n][unit];
                    }
                }
            }
        }
        end_integers<F, N>(s, of);
        ring_done(m, m.base + (codes + seg.kblocks) / PAGE_BLOCKS);
        float *to = claim_psum(m, g, each, rows);
#pragma unroll
        for (int n = 0; n < N; n++) {
            const float result = sum_digits<F>(m, s[n].total);
            if (n < in.count && (m.lane & 3) == 0)
                to[n * MGL_ROW_GROUP + row] = result * range_of(m, n, m.warp);
        }
        write_psum(m, g, each, g + 1 == seg.groups);
    }
    return m;
}

/* Blocks of a row group of a segment, with its scales. */
static __device__ __forceinline__ int row_group_blocks(const machine &m,
                                                       const mgl_device_segment &seg)
{
    const int number = own().in[m.instruction].format;
    return number == 0 ? seg.kblocks : seg.kblocks + with_format(number, [&](auto f) {
                                           return decltype(f)::scale_blocks(seg.columns);
                                       });
}

/* Computes a segment of scaled weights with up to MOST MMAs for each part. */
template <int MOST>
static __device__ __forceinline__ machine sum_scaled_segment(const machine &m, const input &in,
                                                             const mgl_device_segment &seg)
{
    const int mmas = (in.count + mma_rows(in.low) - 1) / mma_rows(in.low);
    return with_format(in.format, [&](auto f) {
        typedef decltype(f) F;
        if constexpr (F::INTEGERS)
            if (in.low)
                return !in.buffered    ? sum_integers<F, MOST_ROWS, false>(m, seg)
                       : in.count <= 1 ? sum_integers<F, 1, true>(m, seg)
                                       : sum_integers<F, MOST_ROWS, true>(m, seg);
        return !in.buffered ? sum_scaled<F, MOST, false>(m, seg)
               : mmas <= 1  ? sum_scaled<F, 1, true>(m, seg)
                            : sum_scaled<F, MOST, true>(m, seg);
    });
}

#endif

#endif

/*
 * Group-wise dequantized matrix multiplication of 2 to 8 rows of flagged input: the batch variant
 * of products of scaled weights (linear/formats.cuh). As in linear/batch.cuh, each lane loads its
 * own operands, which stay in registers if they fit. A run of a row is first gathered as it is, and
 * its largest absolute value is determined. Then each lane multiplies its values by the power of
 * two of their run and converts them to f16. The sums and their order are the sums and the order of
 * the general variant (linear/scaled.cuh).
 *
 * If the codes are integers and the input is f32, lanes convert their values to digits instead, and
 * exchange the digits. Then each lane has one digit of all rows (linear/scaled_input.cuh): two
 * words for each row and pair of parts. One MMA multiplies one row.
 */
#ifndef MGL_DEVICE_LINEAR_SCALED_BATCH_CUH
#define MGL_DEVICE_LINEAR_SCALED_BATCH_CUH

#include "vm/cuda/device/linear/batch.cuh"
#include "vm/cuda/device/linear/scaled_skinny.cuh"

#if MGL_SCALED

/* How a warp processes row groups of KB blocks with format F. LOW: the input is f32. */
template <class F, int KB, bool LOW>
struct scaled_batch_path
    : batch_run<scaled_path<F, KB * F::BLOCK, false>::PARTS * MGL_WARPS, LOW, true> {
    enum { MOST_REGISTERS = 112 /* registers of a lane for activations, blocks and scales */ };
    typedef scaled_path<F, KB * F::BLOCK, F::INTEGERS && LOW> W;
    typedef batch_run<W::PARTS * MGL_WARPS, LOW, true> input_run;
    /* Registers for the run, and for the sums that its groups would have if all codes were 1
     * (batch_ones) or BASE (batch_bases). */
    static constexpr int RUN_REGISTERS =
        4 * input_run::HELD * input_run::PARTS + (W::DIGITS ? 1 : 2 * input_run::PARTS) * W::ONES;
    /* blocks that registers have room for, and blocks that are loaded at once */
    static constexpr int ROOM = (MOST_REGISTERS - RUN_REGISTERS) / W::BLOCK_REGISTERS;
    static constexpr int EACH = batch_steps < W::RUN,
                         ROOM < 2 ? 2 : ROOM<BATCH_BLOCKS ? ROOM : BATCH_BLOCKS>::EACH;
    /* all warps with blocks have the same number of blocks */
    static constexpr bool FITS = BATCH_PATH && W::FULL && W::ALIGNED &&
                                 input_run::BYTES * W::P.warps <= MGL_ACTIVATION_BYTES;
};

/* The results of the MMAs of a group: c[2 part + i]. The MMAs of each part of the input are those
 * of add_batch. */
template <class C> struct group_sums {
    float c[2 * C::PARTS][4];
};

/* The sum of a group for this lane's row h (row_of_sums) and part `part` of the input. */
template <class F, class C>
static __device__ __forceinline__ float group_sum(const group_sums<C> &s, int part, int h)
{
    return C::LOW ? F::sum_of(s.c[2 * part + h][0], s.c[2 * part + h][3])
                  : F::sum_of(s.c[0][h], s.c[1][2 + h]);
}

/* ---- the input --------------------------------------------------------------------------------
 */

/* Converts this lane's values of a block to operands: in place, from what make_operands wrote. */
template <class C>
static __device__ __forceinline__ void scale_block(const lane_rows &x, const float *factor,
                                                   uint4 *block)
{
    if constexpr (C::LOW) {
        uint2 high[2], low[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float v[4];
            format<DTYPE_F32>::unpack(block[h], v);
#pragma unroll
            for (int i = 0; i < 4; i++)
                v[i] *= factor[h];
            split_row<DTYPE_F16>(x.odd, v, high[h], low[h]);
        }
        block[0] = of_both_rows(high);
        block[C::PARTS - 1] = of_both_rows(low);
    } else {
        float v[8];
        unpack_half(block[0], v);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] *= factor[0];
        block[0] = make_uint4(pack_pair(DTYPE_F16, v[0], v[1]), pack_pair(DTYPE_F16, v[2], v[3]),
                              pack_pair(DTYPE_F16, v[4], v[5]), pack_pair(DTYPE_F16, v[6], v[7]));
    }
}

/* Converts values of four rows of a pair of parts to operands. v (8): this lane's values of one
 * row, four columns of the first part, then four of the second. factor: the power of two of the
 * row. odd: the lane has the second half of its chunks. to (2): this lane's digit
 * (digit_column_of) of each of the four rows, two words a row. Called by the whole warp. */
template <class F>
static __device__ __forceinline__ void digit_operands(const machine &m, bool odd, float factor,
                                                      const float *v, uint4 *to)
{
    u32 t[8], own[4], other[4], words[DIGITS][2];
    digits_of<F::FOUR_BITS>(v, factor, t);
    digits_of<F::FOUR_BITS>(v + 4, factor, t + 4);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        own[i] = odd ? t[4 + i] : t[i];
        other[i] = __shfl_xor_sync(0xFFFFFFFFu, odd ? t[i] : t[4 + i], 4);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) { /* the eight columns of this lane's part */
        t[i] = odd ? other[i] : own[i];
        t[4 + i] = odd ? own[i] : other[i];
    }
    digit_words<F::FOUR_BITS>(t, words);
    /* four lanes with four digits of a row each exchange them: a digit of four rows each */
#pragma unroll
    for (int bit = 1; bit < DIGITS; bit *= 2) {
        const bool set = m.lane & bit * 8;
#pragma unroll
        for (int d = 0; d < DIGITS; d++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                if (d & bit)
                    continue;
                const u32 got =
                    __shfl_xor_sync(0xFFFFFFFFu, set ? words[d][i] : words[d | bit][i], bit * 8);
                words[d][i] = set ? got : words[d][i];
                words[d | bit][i] = set ? words[d | bit][i] : got;
            }
    }
    to[0] = make_uint4(words[0][0], words[0][1], words[1][0], words[1][1]);
    to[1] = make_uint4(words[2][0], words[2][1], words[3][0], words[3][1]);
}

/* Converts the run to digits, in place. Part b (0 or 1) of a pair then holds the operands of rows
 * 4 b to 4 b + 3: the first two rows in operand 0, the last two rows in operand 1. factor (2): the
 * powers of two of this lane's rows. */
template <class F, class C>
static __device__ __forceinline__ void digit_rows(const machine &m, const float *factor,
                                                  uint4 *held)
{
    static_assert(C::BUFFERED % 2 == 0, "a pair of parts is in one place");
    const bool odd = m.lane & 4;
    const auto convert = [&](uint4 *pair) { /* (part, row) */
                                            uint4 made[4];
#pragma unroll
                                            for (int h = 0; h < 2; h++) {
                                                float v[8];
                                                format<DTYPE_F32>::unpack(pair[h], v);
                                                format<DTYPE_F32>::unpack(pair[2 + h], v + 4);
                                                digit_operands<F>(m, odd, factor[h], v,
                                                                  made + 2 * h);
                                            }
#pragma unroll
                                            for (int i = 0; i < 4; i++)
                                                pair[i] = made[i];
    };
#pragma unroll 1
    for (int b = 0; b < C::BUFFERED; b += 2) {
        uint4 pair[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            pair[i] = *buffered_operand<C>(m, b + i / 2, i % 2);
        convert(pair);
#pragma unroll
        for (int i = 0; i < 4; i++)
            *buffered_operand<C>(m, b + i / 2, i % 2) = pair[i];
    }
#pragma unroll
    for (int b = 0; b < C::HELD; b += 2)
        convert(held + b * 2);
}

/* Multiplies each row of the run by its power of two and converts it to f16, or to digits. reduce
 * (2): the reciprocals of the powers, for the rows of this lane's sums. */
template <class F, class C>
static __device__ __forceinline__ void scale_rows(const machine &m, const lane_rows &x, uint4 *held,
                                                  float *reduce)
{
    constexpr int TOP = C::W::DIGITS ? digits_top(F::FOUR_BITS) : F16_TOP;
    float factor[2];
    u32 most[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        most[h] = x.most[h];
#pragma unroll
        for (int offset = 1; offset < (C::LOW ? 8 : 4); offset *= 2)
            most[h] = max(most[h], __shfl_xor_sync(0xFFFFFFFFu, most[h], offset));
        factor[h] = enlarging(most[h], TOP);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int quarter =
            m.lane & 3; /* the input of these rows is in lanes n = 2 q, or 2 q + h */
        reduce[h] = reducing(C::LOW ? __shfl_sync(0xFFFFFFFFu, most[h], quarter * 8)
                                    : __shfl_sync(0xFFFFFFFFu, most[0], (2 * quarter + h) * 4),
                             TOP);
    }
    if constexpr (C::W::DIGITS)
        return digit_rows<F, C>(m, factor, held);
#pragma unroll 2
    for (int b = 0; b < C::BUFFERED; b++) {
        uint4 block[C::PARTS];
#pragma unroll
        for (int k = 0; k < C::PARTS; k++)
            block[k] = *buffered_operand<C>(m, b, k);
        scale_block<C>(x, factor, block);
#pragma unroll
        for (int k = 0; k < C::PARTS; k++)
            *buffered_operand<C>(m, b, k) = block[k];
    }
#pragma unroll
    for (int b = 0; b < C::HELD; b++)
        scale_block<C>(x, factor, held + b * C::PARTS);
}

/* ---- products ---------------------------------------------------------------------------------
 */

/* Multiplies the weights of unit `unit` of the run, decoded to f16, by all rows. */
template <class F, class C>
static __device__ __forceinline__ void add_unit(const machine &m, const uint4 *held, int unit,
                                                uint4 w, group_sums<C> &s)
{
    const int b = unit / F::SPLIT;
#pragma unroll
    for (int k = 0; k < C::PARTS; k++) {
        const uint4 x = b < C::BUFFERED
                            ? *buffered_operand<C>(m, b, k)
                            : held[(b < C::BUFFERED ? 0 : b - C::BUFFERED) * C::PARTS + k];
        const uint2 first = F::in_unit(make_uint2(x.x, x.y), unit, m.lane);
        const uint2 second = F::in_unit(make_uint2(x.z, x.w), unit, m.lane);
        multiply_add<DTYPE_F16>(s.c[2 * k], w.x, w.y, w.z, w.w, first.x, first.y);
        multiply_add<DTYPE_F16>(s.c[2 * k + 1], w.x, w.y, w.z, w.w, second.x, second.y);
    }
}

/* The sums that the groups of the run would have if all codes were 1. */
template <class F, class C> struct batch_ones {
    enum { GROUPS = F::HAS_OFFSET ? C::W::GROUPS : 1 };
    float of[GROUPS][C::PARTS][2];
};

template <class F, class C>
static __device__ __forceinline__ void sum_ones(const machine &m, const uint4 *held,
                                                batch_ones<F, C> &ones)
{
    typedef typename C::W W;
#pragma unroll
    for (int group = 0; group < batch_ones<F, C>::GROUPS; group++) {
        group_sums<C> s = {};
#pragma unroll
        for (int i = group * W::GROUP; i < (group + 1) * W::GROUP; i++)
            if (F::HAS_OFFSET && i < W::UNITS)
                add_unit<F, C>(m, held, i, F::decoded_ones(), s);
#pragma unroll
        for (int k = 0; k < C::PARTS; k++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                ones.of[group][k][h] = group_sum<F, C>(s, k, h);
    }
}

/* The sums of all rows for one digit. */
enum { BATCH_ROWS = 8 };
struct batch_integers {
    bool many;               /* more than four rows */
    int group[BATCH_ROWS];   /* of the current group */
    float total[BATCH_ROWS]; /* of the finished groups, multiplied by their scales */
};

/* B operands of rows 2 k (x, y) and 2 k + 1 (z, w) for parts b and b + 1 of the run. */
template <class C>
static __device__ __forceinline__ uint4 pair_operand(const machine &m, const uint4 *held, int b,
                                                     int k)
{
    return b < C::BUFFERED ? *buffered_operand<C>(m, b + k / 2, k % 2)
                           : held[(b < C::BUFFERED ? 0 : b - C::BUFFERED) * 2 + k];
}

/* The sums that the groups of the run would have if all codes were F::BASE. A lane has the sums of
 * row lane / 4 for digit lane % 4. */
template <class C> struct batch_bases {
    int of[C::W::GROUPS];
};

template <class F, class C>
static __device__ __forceinline__ batch_bases<C> bases_of(const machine &m, const uint4 *held,
                                                          bool many)
{
    typedef typename C::W W;
    batch_bases<C> bases = {};
#pragma unroll
    for (int b = 0; b < W::PARTS; b += 2)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (k >= 2 && !many)
                break;
            const uint4 x = pair_operand<C>(m, held, b, k);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int sums[F::PAIR_UNITS];
                multiply_pair<F>(base_pair<F>(), h ? make_uint2(x.z, x.w) : make_uint2(x.x, x.y),
                                 m.lane, sums);
#pragma unroll
                for (int u = 0; u < F::PAIR_UNITS; u++)
                    bases.of[(b * F::SPLIT + u) / W::GROUP] +=
                        m.lane >> 2 == 2 * k + h ? sums[u] : 0;
            }
        }
    return bases;
}

/* Multiplies parts 2 pair and 2 pair + 1 of block i of the run by all rows. raw: this lane's 16
 * bytes of the block. of: the scales of the groups from group g0 on. */
template <class F, class C>
static __device__ __forceinline__ void
add_pair(const machine &m, const uint4 *held, const batch_bases<C> &bases, int i, int pair,
         uint4 raw, const group_scale *of, int g0, batch_integers &s)
{
    typedef typename C::W W;
    const uint4 integers = F::integers(raw, pair);
    const int b = i * F::PARTS + 2 * pair;
#pragma unroll
    for (int k = 0; k < 4; k++) { /* two rows */
        if (k >= 2 && !s.many)
            break;
        const uint4 x = pair_operand<C>(m, held, b, k);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint2 word = h ? make_uint2(x.z, x.w) : make_uint2(x.x, x.y);
            const int row = 2 * k + h;
            int sums[F::PAIR_UNITS];
            multiply_pair<F>(integers, word, m.lane, sums);
#pragma unroll
            for (int u = 0; u < F::PAIR_UNITS; u++) {
                const int unit = i * F::UNITS + pair * F::PAIR_UNITS + u, group = unit / W::GROUP;
                s.group[row] += sums[u];
                if ((unit + 1) % W::GROUP != 0 && unit + 1 != W::UNITS)
                    continue;
                const int base = __shfl_sync(0xFFFFFFFFu, bases.of[group], row * 4 + (m.lane & 3));
                s.total[row] = F::add_integers(s.total[row], of[group - g0], s.group[row], base);
                s.group[row] = 0;
            }
        }
    }
}

/* Multiplies the blocks of a row group from block FROM of the run on, EACH at a time, when their
 * pages have landed. Adds the groups that end to total (PARTS, 2). Without scales on the tape,
 * pages are freed as soon as their blocks are in registers; else the caller frees them after the
 * row group. */
template <class F, class C, int FROM = 0>
static __device__ __forceinline__ void
add_scaled_batch(machine &m, position &p, const uint4 *held, const batch_ones<F, C> &ones,
                 const batch_bases<C> &bases, group_sums<C> &s, batch_integers &digits,
                 float (*total)[2])
{
    typedef typename C::W W;
    constexpr int N = W::RUN - FROM < C::EACH ? W::RUN - FROM : C::EACH;
    constexpr int BLOCKS = N * W::P.warps, END = W::SCALE_BLOCKS + FROM * W::P.warps + BLOCKS;
    /* the groups that end in this step */
    constexpr int G0 = FROM * F::UNITS / W::GROUP;
    constexpr int G1 = FROM + N == W::RUN ? W::GROUPS : (FROM + N) * F::UNITS / W::GROUP;
    await_pages(m, p, m.base + (p.block + END + PAGE_BLOCKS - 1) / PAGE_BLOCKS);
    uint4 w[N];
    group_scale of[G1 > G0 ? G1 - G0 : 1];
#pragma unroll
    for (int i = 0; i < N; i++)
        w[i] =
            *(const uint4 *)(ring_memory() + within_ring(p.at + i * W::P.warps * MGL_BLOCK_BYTES));
#pragma unroll
    for (int i = 0; i < G1 - G0; i++)
        of[i] = read_scale<F>(m, p.block, W::ROW_SCALES,
                              min(F::group_of(m.warp * W::UNITS) + G0 + i, W::ROW_SCALES - 1),
                              m.lane >> 2);
    p.seen = load_shared_acquire(&own().landed);
    p.at = within_ring(p.at + BLOCKS * MGL_BLOCK_BYTES);
    if (!F::ON_TAPE)
        ring_free(m, m.base + (p.block + END) / PAGE_BLOCKS);
#pragma unroll
    for (int i = 0; W::DIGITS && i < N * F::PARTS / 2; i++)
        add_pair<F, C>(m, held, bases, FROM + i / (F::PARTS / 2), i % (F::PARTS / 2),
                       w[i / (F::PARTS / 2)], of, G0, digits);
#pragma unroll
    for (int i = 0; !W::DIGITS && i < N * F::UNITS; i++) {
        const int unit = FROM * F::UNITS + i, group = unit / W::GROUP;
        add_unit<F, C>(m, held, unit, F::decode(w[i / F::UNITS], i % F::UNITS / F::SPLIT), s);
        if ((unit + 1) % W::GROUP != 0 && unit + 1 != W::UNITS)
            continue;
#pragma unroll
        for (int k = 0; k < C::PARTS; k++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                total[k][h] = F::add_group(total[k][h], of[group - G0], group_sum<F, C>(s, k, h),
                                           ones.of[F::HAS_OFFSET ? group : 0][k][h]);
        s = {};
    }
    if constexpr (FROM + N < W::RUN)
        add_scaled_batch<F, C, FROM + N>(m, p, held, ones, bases, s, digits, total);
}

/* Computes all row groups of a task with format F. The record of the task may be overwritten after
 * the last sums are written. */
template <class F, class C> NEAR_OR_INLINE machine sum_scaled_batch(machine m)
{
    typedef typename C::W W;
    const input &in = own().in[m.instruction];
    uint4 held[C::HELD * C::PARTS];
    float reduce[2];
    scale_rows<F, C>(m, gather_batch<C>(m, in, held), held, reduce);
    batch_ones<F, C> ones;
    batch_bases<C> bases;
    const int segments = in.segments;
    const bool many = __any_sync(0xFFFFFFFFu, in.count > BATCH_ROWS / 2);
    if constexpr (C::W::DIGITS)
        bases = bases_of<F, C>(m, held, many);
    else
        sum_ones<F, C>(m, held, ones);
    position p = begin_batch<C::LOW>(m, in.count);
    input_is_there(m, m.base + in.end);
    for (int i = 0; i < segments; i++) {
        const int groups = segment(m, i).groups;
        p.block = segment(m, i).block;
        for (int g = 0; g < groups; g++) {
            group_sums<C> s = {};
            batch_integers digits = {many};
            float total[C::PARTS][2] = {}, result[2];
            p.at = ring_spot(m, p.block + W::SCALE_BLOCKS + m.warp) * MGL_BLOCK_BYTES + m.lane * 16;
            add_scaled_batch<F, C>(m, p, held, ones, bases, s, digits, total);
            p.block += W::ROW_GROUP_BLOCKS;
            if (F::ON_TAPE)
                ring_free(m, m.base + p.block / PAGE_BLOCKS);
            if constexpr (W::DIGITS)
                for (int h = 0; h < 2; h++) /* rows q and q + 4 */
                    result[h] = sum_four<F>(m, digits.total + 4 * h);
            write_batch<C::LOW>(
                m, p,
                [&](int h) {
                    if (W::DIGITS)
                        return result[h] * reduce[h];
                    float sum[C::PARTS];
#pragma unroll
                    for (int k = 0; k < C::PARTS; k++) {
                        sum[k] = total[k][h] * F::decoded_factor();
                        sum[k] *= reduce[h];
                    }
                    return C::LOW ? sum[0] + sum[C::PARTS - 1] : sum[0];
                },
                g + 1 == groups);
        }
    }
    return m;
}

/* Runs the task if it has row groups of KB blocks and input of this kind. The host accepts only
 * rows of whole blocks. */
template <class F, int KB, bool LOW>
static __device__ __forceinline__ void try_scaled_batch(machine &m, const input &in)
{
    typedef scaled_batch_path<F, KB, LOW> C;
    constexpr int KIND = LOW ? MGL_INPUT_PARTS : MGL_INPUT_HALF;
    constexpr bool USED =
        (F::blocks(MGL_HIDDEN) == KB && has_input(F::INPUTS, MGL_HIDDEN, KIND)) ||
        (F::blocks(MGL_ATTENDED) == KB && has_input(F::INPUTS, MGL_ATTENDED, KIND)) ||
        (F::blocks(MGL_FFN) == KB && has_input(F::INPUTS, MGL_FFN, KIND));
    if constexpr (C::FITS && USED)
        if (in.kblocks == KB && in.low == LOW && LOW == (in.x.dtype == DTYPE_F32))
            m = m.warp < C::W::P.warps ? sum_scaled_batch<F, C>(m) : skip_batch(m);
}

/* Runs the task if it uses the batch variant. */
static __device__ __forceinline__ void consume_scaled_batch(machine &m, const input in)
{
    with_format(in.format, [&](auto f) {
        typedef decltype(f) F;
        constexpr int HIDDEN = F::blocks(MGL_HIDDEN), ATTENDED = F::blocks(MGL_ATTENDED),
                      FFN = F::blocks(MGL_FFN);
        try_scaled_batch<F, HIDDEN, true>(m, in);
        if constexpr (ATTENDED != HIDDEN)
            try_scaled_batch<F, ATTENDED, true>(m, in);
        try_scaled_batch<F, ATTENDED, false>(m, in);
        if constexpr (FFN != ATTENDED)
            try_scaled_batch<F, FFN, false>(m, in);
    });
}

#endif

#endif

/*
 * Group-wise dequantized matrix-vector multiplication with warp-level split-K: the skinny variant
 * of products of scaled weights (linear/formats.cuh), for one row of activations, as in decoding.
 * As in linear/skinny.cuh, sizes are compile-time constants, the activations of a run stay in
 * registers if they fit, and the loads of many blocks are in flight at once. The input is flagged.
 * The sums and their order are those of the general variant (linear/scaled.cuh).
 */
#ifndef MGL_DEVICE_LINEAR_SCALED_SKINNY_CUH
#define MGL_DEVICE_LINEAR_SCALED_SKINNY_CUH

#include "vm/cuda/device/linear/scaled_run.cuh"

#if MGL_SCALED

/* Returns `value`, which is the same in all lanes. The reduction lets the compiler treat the result
 * as uniform, so branches on it need no reconvergence. */
static __device__ __forceinline__ u32 uniform(u32 value)
{
    return __reduce_max_sync(0xFFFFFFFFu, value);
}

/* Loads blocks [FROM, FROM + N) of this warp's run in each of G row groups to w (G, N). The blocks
 * have landed. `blocks`: blocks of the run. `last`: the last row group; it is loaded in place
 * of later row groups. */
template <class W, int G, int FROM, int N>
static __device__ __forceinline__ void load_codes(const machine &m, const scaled_state &st,
                                                  int blocks, int last, uint4 (*w)[N])
{
    constexpr int START = mgl_tape_place(W::P, 0, FROM);
    const u32 first =
        within_ring(st.at + (W::SCALE_BLOCKS + START) % RING_BLOCKS * MGL_BLOCK_BYTES) +
        kept(m.warp * MGL_BLOCK_BYTES + m.lane * 16);
#pragma unroll
    for (int u = 0; u < G; u++) {
        const u32 at = first + min(u, last) * W::ROW_GROUP_BLOCKS * MGL_BLOCK_BYTES;
#pragma unroll
        for (int i = 0; i < N; i++)
            if (W::FULL || FROM + i < blocks)
                w[u][i] =
                    *(const uint4 *)(ring_memory() +
                                     within_ring(at + (mgl_tape_place(W::P, 0, FROM + i) - START) *
                                                          MGL_BLOCK_BYTES));
    }
}

/* Loads the scales of groups [from, from + N) of this warp's run to `to` (N). Row group u is
 * counted from st.block. */
template <class F, class W, int N>
static __device__ __forceinline__ void load_scales(const machine &m, const scaled_state &st, int u,
                                                   int from, group_scale *to)
{
    const int first = (int)kept(F::group_of(m.warp * W::UNITS));
    const u32 at = st.at + u * (W::ROW_GROUP_BLOCKS * MGL_BLOCK_BYTES);
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int group = first + from + i;
        to[i] = read_scale_at<F>(
            [&](int offset) { return ring_memory() + within_ring(at + offset); }, W::ROW_SCALES,
            W::ALL_SCALES ? group : min(group, W::ROW_SCALES - 1), m.lane >> 2);
    }
}

/* Operand i of the run: from registers (`held`), or from the activation buffer. */
template <class F, class W>
static __device__ __forceinline__ uint2 operand_of_run(const scaled_state &st, const uint2 *held,
                                                       int i)
{
    return W::HOLD ? held[W::HOLD ? i : 0] : loaded_operand<F, W>(st, i);
}

/* The activations of unit i of the run. */
template <class F, class W>
static __device__ __forceinline__ uint2 unit_of_run(const machine &m, const scaled_state &st,
                                                    const uint2 *held, int i)
{
    return F::in_unit(operand_of_run<F, W>(st, held, i / F::SPLIT), i, m.lane);
}

/* The sums of the current group, for G row groups. If groups consist of whole blocks (W::WHOLE),
 * the integer MMAs of a row group form CHAINS independent chains: block i is in chain
 * i % CHAINS. */
template <class W, int G> struct group_state {
    enum { CHAINS = G < 4 ? 4 / G : 1 };
    float c[W::DIGITS ? 1 : G][4];             /* f16 products: results of the MMAs */
    int integers[W::WHOLE ? G : 1][CHAINS][4]; /* integer products, W::WHOLE: the same */
    int sum[G];                                /* integer products, otherwise: the sum */
};

/* The sums of the groups of the run for constant codes. of: f16 products, all codes are 1. bases:
 * integer products, all codes are F::BASE. */
template <class W> struct run_ones {
    float of[W::GROUPS];
    int bases[W::GROUPS];
};

/* Like add_codes, for integer products whose groups consist of whole blocks (W::WHOLE). */
template <class F, class W, int G, int FROM, int N>
static __device__ __forceinline__ void
add_whole_blocks(const scaled_state &st, const uint2 *held, const run_ones<W> &ones, int blocks,
                 const uint4 (*w)[N], const group_scale (*of)[W::GROUPS], group_state<W, G> &s,
                 float *total)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int block = FROM + i, end = (block + 1) * F::UNITS, group = (end - 1) / W::GROUP;
#pragma unroll
        for (int n = 0; n < F::MMAS; n++) {
            const uint2 x = operand_of_run<F, W>(st, held, block * F::MMAS + n);
#pragma unroll
            for (int u = 0; u < G; u++)
                if (W::FULL || block < blocks)
                    multiply_integers(s.integers[u][block % s.CHAINS],
                                      F::block_integers(w[u][i], n), x);
        }
        if (end % W::GROUP != 0 && end != W::UNITS)
            continue;
#pragma unroll
        for (int u = 0; u < G; u++) {
            int sum = 0;
#pragma unroll
            for (int chain = 0; chain < s.CHAINS; chain++) {
                sum += s.integers[u][chain][0] + s.integers[u][chain][3];
#pragma unroll
                for (int k = 0; k < 4; k++)
                    s.integers[u][chain][k] = 0;
            }
            total[u] = F::add_integers(total[u], of[u][group], sum, ones.bases[group]);
        }
    }
}

/* Like add_codes, for integer products. */
template <class F, class W, int G, int FROM, int N>
static __device__ __forceinline__ void
add_integer_codes(const machine &m, const scaled_state &st, const uint2 *held,
                  const run_ones<W> &ones, int blocks, const uint4 (*w)[N],
                  const group_scale (*of)[W::GROUPS], group_state<W, G> &s, float *total)
{
    if constexpr (W::WHOLE)
        return add_whole_blocks<F, W, G, FROM, N>(st, held, ones, blocks, w, of, s, total);
    constexpr int PAIRS = F::PARTS / 2;
#pragma unroll
    for (int i = 0; i < N * PAIRS; i++) {
        const int pair = FROM * PAIRS + i;
        const uint2 x = operand_of_run<F, W>(st, held, pair);
        int sums[G][F::PAIR_UNITS] = {};
#pragma unroll
        for (int u = 0; u < G; u++)
            if (W::FULL || FROM + i / PAIRS < blocks)
                multiply_pair<F>(F::integers(w[u][i / PAIRS], i % PAIRS), x, m.lane, sums[u]);
#pragma unroll
        for (int k = 0; k < F::PAIR_UNITS; k++) {
            const int unit = pair * F::PAIR_UNITS + k, group = unit / W::GROUP;
            const bool ends = (unit + 1) % W::GROUP == 0 || unit + 1 == W::UNITS;
#pragma unroll
            for (int u = 0; u < G; u++) {
                s.sum[u] += sums[u][k];
                if (!ends)
                    continue;
                total[u] = F::add_integers(total[u], of[u][group], s.sum[u], ones.bases[group]);
                s.sum[u] = 0;
            }
        }
    }
}

/* Multiplies blocks [FROM, FROM + N) of G row groups by the run. At the end of each group, adds its
 * sum, with the zero point and scale of `of`, to total (G). */
template <class F, class W, int G, int FROM, int N>
static __device__ __forceinline__ void
add_codes(const machine &m, const scaled_state &st, const uint2 *held, const run_ones<W> &ones,
          int blocks, const uint4 (*w)[N], const group_scale (*of)[W::GROUPS], group_state<W, G> &s,
          float *total)
{
    if constexpr (W::DIGITS)
        return add_integer_codes<F, W, G, FROM, N>(m, st, held, ones, blocks, w, of, s, total);
    float(*c)[4] = s.c;
#pragma unroll
    for (int i = 0; i < N * F::UNITS; i++) {
        const int unit = FROM * F::UNITS + i, group = unit / W::GROUP;
        const uint2 x = unit_of_run<F, W>(m, st, held, unit);
#pragma unroll
        for (int u = 0; u < G; u++)
            if (W::FULL || FROM + i / F::UNITS < blocks) {
                const uint4 words = F::decode(w[u][i / F::UNITS], i % F::UNITS / F::SPLIT);
                multiply_add<DTYPE_F16>(c[u], words.x, words.y, words.z, words.w, x.x, x.y);
            }
        if ((unit + 1) % W::GROUP != 0 && unit + 1 != W::UNITS)
            continue;
#pragma unroll
        for (int u = 0; u < G; u++) {
            total[u] =
                F::add_group(total[u], of[u][group], F::sum_of(c[u][0], c[u][3]), ones.of[group]);
#pragma unroll
            for (int k = 0; k < 4; k++)
                c[u][k] = 0.0f;
        }
    }
}

/* Adds the blocks of one row group in steps. Each step waits until its blocks have landed. Without
 * scales on the tape, pages are freed as soon as their blocks are in registers. With scales on the
 * tape, the caller frees the pages after the row group, because later steps read the scales. */
template <class F, class W, int STEP = 0>
static __device__ __forceinline__ void
add_steps(machine &m, const scaled_state &st, const uint2 *held, const run_ones<W> &ones,
          int blocks, group_scale (*of)[W::GROUPS], group_state<W, 1> &s, float *total)
{
    constexpr int FROM = STEP * W::EACH, N = W::RUN - FROM < W::EACH ? W::RUN - FROM : W::EACH;
    constexpr int END = FROM + N == W::RUN ? W::KB : mgl_tape_place(W::P, 0, FROM + N);
    /* the groups that end in this step */
    constexpr int G0 = FROM * F::UNITS / W::GROUP;
    constexpr int G1 = FROM + N == W::RUN ? W::GROUPS : (FROM + N) * F::UNITS / W::GROUP;
    const u32 end = st.block + W::SCALE_BLOCKS + END;
    ring_wait(m, m.base + (end + PAGE_BLOCKS - 1) / PAGE_BLOCKS);
    uint4 w[1][N] = {};
    load_codes<W, 1, FROM, N>(m, st, blocks, 0, w);
    if constexpr (G1 > G0)
        load_scales<F, W, G1 - G0>(m, st, 0, G0, of[0] + G0);
    if (!F::ON_TAPE)
        ring_done(m, m.base + end / PAGE_BLOCKS);
    add_codes<F, W, 1, FROM, N>(m, st, held, ones, blocks, w, of, s, total);
    if constexpr (FROM + N < W::RUN)
        add_steps<F, W, STEP + 1>(m, st, held, ones, blocks, of, s, total);
}

/* Adds the blocks of the first `count` of G row groups in steps. Their pages have landed. The last
 * step advances past the row groups and, if `free`, frees all pages up to there. */
template <class F, class W, int G, int STEP = 0>
static __device__ __forceinline__ void
add_steps_of_groups(machine &m, scaled_state &st, const uint2 *held, const run_ones<W> &ones,
                    int blocks, int count, bool free, group_scale (*of)[W::GROUPS],
                    group_state<W, G> &s, float *total)
{
    constexpr int FROM = STEP * W::EACH_OF_GROUPS;
    constexpr int N = W::RUN - FROM < W::EACH_OF_GROUPS ? W::RUN - FROM : W::EACH_OF_GROUPS;
    /* the groups of weights that end in this step */
    constexpr int G0 = FROM * F::UNITS / W::GROUP;
    constexpr int G1 = FROM + N == W::RUN ? W::GROUPS : (FROM + N) * F::UNITS / W::GROUP;
    uint4 w[G][N];
    load_codes<W, G, FROM, N>(m, st, W::RUN, count - 1, w);
#pragma unroll
    for (int u = 0; u < G; u++)
        if constexpr (G1 > G0)
            load_scales<F, W, G1 - G0>(m, st, min(u, count - 1), G0, of[u] + G0);
    if constexpr (FROM + N == W::RUN) {
        advance(st, count * W::ROW_GROUP_BLOCKS);
        if (free)
            ring_free(m, m.base + st.block / PAGE_BLOCKS);
    }
    add_codes<F, W, G, FROM, N>(m, st, held, ones, blocks, w, of, s, total);
    if constexpr (FROM + N < W::RUN)
        add_steps_of_groups<F, W, G, STEP + 1>(m, st, held, ones, blocks, count, free, of, s,
                                               total);
}

/* Adds the blocks of the first `count` of G row groups, W::ROW_GROUPS at once. The pages have
 * landed. The last iteration frees them. */
template <class F, class W, int G>
static __device__ __forceinline__ void add_iterations(machine &m, scaled_state &st,
                                                      const uint2 *held, const run_ones<W> &ones,
                                                      int blocks, int count, float *total)
{
    constexpr int N = W::ROW_GROUPS;
    group_scale of[N][W::GROUPS];
    group_state<W, N> s = {};
    add_steps_of_groups<F, W, N>(m, st, held, ones, blocks, min(count, N), G == N || count <= N, of,
                                 s, total);
    if constexpr (G > N)
        if (count > N)
            add_iterations<F, W, G - N>(m, st, held, ones, blocks, count - N, total + N);
}

/* Writes the sums of the first `count` of G row groups to the current partial-sum buffer, like
 * write_sums (skinny.cuh). `room`: whether the buffer is known to be empty. */
template <class F, class W, int G>
static __device__ __forceinline__ void write_totals(machine &m, scaled_state &st, float *total,
                                                    int count, int each, bool last, bool room)
{
    const u32 psum = m.psums % PSUM_COUNT;
    constexpr bool FOUR = W::DIGITS && G == 4; /* each lane gets the result of one row group */
    float *to = own().partial + psum * PSUM + (m.warp * each + st.stored) * MGL_ROW_GROUP;
    if constexpr (FOUR)
        total[0] = sum_four<F>(m, total) * st.reducing;
#pragma unroll
    for (int u = 0; u < G && !FOUR; u++) {
        if constexpr (W::DIGITS) {
            total[u] = sum_digits<F>(m, total[u]) * st.reducing;
            continue;
        }
        total[u] *= F::decoded_factor();
        total[u] *= st.reducing;
        const float other = __shfl_xor_sync(0xFFFFFFFFu, total[u], 1);
        total[u] = st.low ? total[u] + other : total[u];
    }
    while (!room)
        room = has_room(m); /* each wait of the epilogue has a deadline */
    if (FOUR) {
        if ((m.lane & 3) < count)
            to[(m.lane & 3) * MGL_ROW_GROUP + (m.lane >> 2)] = total[0];
    } else if ((m.lane & 3) == 0) {
#pragma unroll
        for (int u = 0; u < G; u++)
            if (u < count)
                to[u * MGL_ROW_GROUP + (m.lane >> 2)] = total[u];
    }
    st.stored += count;
    const bool full = st.stored == each || last;
    __syncwarp();
    if (full && m.lane == 0)
        barrier_arrive(&own().psum_full[psum]);
    m.psums += full;
    st.stored = full ? 0 : st.stored;
}

/* Computes the next `count` row groups of a segment, 1 to G. Each iteration takes the time of
 * W::ROW_GROUPS row groups at once, even if fewer remain. This time is shorter than the time of two
 * row groups one after the other. */
template <class F, class W, int G>
static __device__ __forceinline__ void add_row_groups(machine &m, scaled_state &st,
                                                      const uint2 *held, const run_ones<W> &ones,
                                                      int blocks, int count, int each, bool last)
{
    float total[G] = {};
    bool room = has_room(m);
    if constexpr (G > 1) {
        const u32 end = st.block + count * W::ROW_GROUP_BLOCKS;
        ring_wait(m, m.base + (end + PAGE_BLOCKS - 1) / PAGE_BLOCKS);
        add_iterations<F, W, G>(m, st, held, ones, blocks, count, total);
    } else {
        group_scale of[1][W::GROUPS];
        group_state<W, 1> s = {};
        add_steps<F, W>(m, st, held, ones, blocks, of, s, total);
        st.block += W::ROW_GROUP_BLOCKS;
        st.at = within_ring(st.at + W::ROW_GROUP_BLOCKS % RING_BLOCKS * MGL_BLOCK_BYTES);
        ring_done(m, m.base + st.block / PAGE_BLOCKS);
    }
    write_totals<F, W, G>(m, st, total, count, each, last, room);
}

/* Runs the task in a warp without blocks. Its sums and its sum of squares are zero. */
static __device__ __forceinline__ void skip_scaled(machine &m, const input &in)
{
    wait_start(m);
    if (in.g)
        write_squares(m, 0, 0.0f);
    if (in.early && m.lane == 0)
        barrier_arrive(&own().squares_full);
    for (int i = 0; i < in.segments; i++)
        skip_groups(m, in, segment(m, i));
}

/* The sums of the groups of a run of `blocks` blocks for constant codes. */
template <class F, class W>
static __device__ __forceinline__ run_ones<W> ones_of(const machine &m, const scaled_state &st,
                                                      const uint2 *held, int blocks)
{
    run_ones<W> ones = {};
    const u32 codes = F::base_codes();
    if (!F::HAS_OFFSET)
        return ones;
    if constexpr (W::WHOLE) {
        enum { CHAINS = W::GROUPS < 4 ? 4 : 1 }; /* independent chains of MMAs for each group */
        int sums[W::GROUPS][CHAINS][4] = {};
#pragma unroll
        for (int i = 0; i < W::OPERANDS; i++)
            if (W::FULL || i / F::MMAS < blocks)
                multiply_integers(
                    sums[i / F::MMAS * F::UNITS / W::GROUP][i % CHAINS],
                    F::block_integers(make_uint4(codes, codes, codes, codes), i % F::MMAS),
                    operand_of_run<F, W>(st, held, i));
#pragma unroll
        for (int i = 0; i < W::GROUPS * CHAINS; i++)
            ones.bases[i / CHAINS] +=
                sums[i / CHAINS][i % CHAINS][0] + sums[i / CHAINS][i % CHAINS][3];
        return ones;
    }
#pragma unroll
    for (int i = 0; W::DIGITS && i < W::OPERANDS; i++) {
        int sums[F::PAIR_UNITS] = {};
        if (W::FULL || i / (F::PARTS / 2) < blocks)
            multiply_pair<F>(base_pair<F>(), operand_of_run<F, W>(st, held, i), m.lane, sums);
#pragma unroll
        for (int k = 0; k < F::PAIR_UNITS; k++)
            ones.bases[(i * F::PAIR_UNITS + k) / W::GROUP] += sums[k];
    }
    const uint4 one = F::decoded_ones();
#pragma unroll
    for (int group = 0; !W::DIGITS && group < W::GROUPS; group++) {
        float c[4] = {};
#pragma unroll
        for (int i = group * W::GROUP; i < (group + 1) * W::GROUP; i++)
            if (i < W::UNITS && (W::FULL || i / F::UNITS < blocks)) {
                const uint2 x = unit_of_run<F, W>(m, st, held, i);
                multiply_add<DTYPE_F16>(c, one.x, one.y, one.z, one.w, x.x, x.y);
            }
        ones.of[group] = F::sum_of(c[0], c[3]);
    }
    return ones;
}

/* Runs the whole task with format F and an input of COLUMNS columns and of kind KIND
 * (MGL_INPUT_...). */
template <class F, int COLUMNS, int KIND>
static __device__ __forceinline__ void consume_scaled(machine &m, const input &in)
{
    typedef scaled_path<F, COLUMNS, F::INTEGERS && KIND != MGL_INPUT_HALF> W;
    constexpr int G = W::ROW_GROUPS * W::ITERATIONS;
    if (m.warp >= W::P.warps)
        return skip_scaled(m, in);
    const int blocks = W::FULL || m.warp + 1 < W::P.warps ? W::RUN : W::P.of_last;
    const int each = psum_groups(1);
    scaled_state st;
    int groups = 0;
    m.freed = uniform(m.freed);
    m.known = uniform(max(m.known, m.freed)); /* freed pages have landed */
    const auto meanwhile = [&] {
        move_to(m, st, uniform(segment(m, 0).block));
        st.x = operands_of<F, W>(m, in);
        st.low = in.low;
        st.stored = 0;
        groups = (int)uniform((u32)segment(m, 0).groups);
    };
    float squares = 0.0f;
    uint2 held[W::HOLD ? W::OPERANDS : 1];
    constexpr bool NORM = COLUMNS == MGL_HIDDEN;
    if constexpr (KIND == MGL_INPUT_DIGITS) {
        st.reducing =
            hold_digits(m, read_scaled_run<F, W, false, true>(m, in, &squares, meanwhile), held);
    } else {
        const auto store = [&](const auto &run) {
            if (NORM) /* the shuffles overlap the conversion */
                squares = warp_sum(squares);
            st.reducing = store_run(m, in, run);
        };
        if (MERGES && COLUMNS == MGL_ATTENDED && in.merges)
            store(merge_scaled_run<F, W>(m, in, meanwhile));
        else if (in.x.dtype == DTYPE_F32)
            store(read_scaled_run<F, W, NORM, false>(m, in, &squares, meanwhile));
        else
            store(read_scaled_run<F, W, NORM, true>(m, in, &squares, meanwhile));
        __syncwarp();
        load_held<F, W>(st, blocks, held);
    }
    if (in.g && m.lane == 0)
        own().sums[m.warp] = squares;
    if (in.early && m.lane == 0)
        barrier_arrive(&own().squares_full);
    input_is_there(m, m.base + in.end);
    const run_ones<W> ones = ones_of<F, W>(m, st, held, blocks);
    const int segments = (int)uniform((u32)in.segments);
    for (int i = 0;; groups = (int)uniform((u32)segment(m, i).groups)) {
        while (groups > 0) {
            const int count = min(groups, min(each - st.stored, G));
            groups -= count;
            if constexpr (G == 2) /* a single row group is computed alone */
                if (count == 1) {
                    add_row_groups<F, W, 1>(m, st, held, ones, blocks, count, each, groups == 0);
                    continue;
                }
            add_row_groups<F, W, G>(m, st, held, ones, blocks, count, each, groups == 0);
        }
        if (++i == segments)
            return;
        move_to(m, st, uniform(segment(m, i).block));
    }
}

/* The same. Compiles nothing if no task has such an input. */
template <class F, int COLUMNS, int KIND>
static __device__ __forceinline__ void consume_if_used(machine &m, const input &in)
{
    if constexpr (has_input(F::INPUTS, COLUMNS, KIND))
        consume_scaled<F, COLUMNS, KIND>(m, in);
}

/* The same for an input of any kind. Compiles nothing if the variant does not support the format
 * with COLUMNS columns: the host then rejects the variant. */
template <class F, int COLUMNS>
static __device__ __forceinline__ void consume_if_aligned(machine &m, const input &in)
{
    if constexpr (scaled_path<F, COLUMNS, false>::ALIGNED) {
        if (!in.low)
            consume_if_used<F, COLUMNS, MGL_INPUT_HALF>(m, in);
        else if (in.g == nullptr && in.x.dtype != DTYPE_F32 && !(MERGES && in.merges))
            consume_if_used<F, COLUMNS, MGL_INPUT_DIGITS>(m, in);
        else
            consume_if_used<F, COLUMNS, MGL_INPUT_PARTS>(m, in);
    }
}

/* Runs a task of one row as the skinny variant. */
static __device__ __forceinline__ void consume_scaled_skinny(machine &m, const input &in)
{
    with_format(in.format, [&](auto f) {
        typedef decltype(f) F;
        if (in.columns == MGL_HIDDEN)
            consume_if_aligned<F, MGL_HIDDEN>(m, in);
        else if (MGL_ATTENDED != MGL_HIDDEN && in.columns == MGL_ATTENDED)
            consume_if_aligned<F, MGL_ATTENDED>(m, in);
        else if (MGL_FFN != MGL_HIDDEN && MGL_FFN != MGL_ATTENDED)
            consume_if_aligned<F, MGL_FFN>(m, in);
    });
}

#endif

#endif

/*
 * Group-wise dequantized matrix-vector multiplication with warp-level split-K: the skinny variant
 * of products of scaled weights (linear/formats.cuh), for one row of activations, as in decoding.
 * As in linear/skinny.cuh, sizes are compile-time constants, the activations of a run stay in
 * registers if they fit, and the loads of many blocks are in flight at once. The input is flagged.
 * The sums and their order are those of the general variant (linear/scaled.cuh).
 */
#ifndef MGL_DEVICE_LINEAR_SCALED_SKINNY_CUH
#define MGL_DEVICE_LINEAR_SCALED_SKINNY_CUH

#include "vm/cuda/device/linear/scaled.cuh"

#if MGL_SCALED

/* How a warp processes row groups of COLUMNS columns with format F. DIGIT: the integers of the
 * codes are multiplied by digits of the activations. */
template <class F, int COLUMNS, bool DIGIT> struct scaled_path {
    enum {
        MOST_HELD = 72,       /* registers of a lane for the activations of a run */
        MOST_REGISTERS = 104, /* registers of a lane for activations, blocks and scales */
        MOST_OF_GROUPS = 64,  /* registers of a lane for row groups that are loaded at once */
        MOST_LOADED = 16,     /* blocks that a warp loads at once */
        MOST_ROW_GROUPS = 4   /* row groups that a warp loads at once */
    };
    static constexpr bool DIGITS = DIGIT;
    static constexpr int KB = F::blocks(COLUMNS);
    static constexpr int RUN = (KB + MGL_WARPS - 1) / MGL_WARPS, PARTS = RUN * F::PARTS;
    static constexpr mgl_tape_order P = mgl_tape_order_of(KB, MGL_WARPS);
    /* all warps with blocks have the same number of blocks */
    static constexpr bool FULL = P.of_last == RUN;
    /* groups of a row with scales on the tape, and the blocks of these scales */
    static constexpr int ROW_SCALES = F::groups(COLUMNS), SCALE_BLOCKS = F::scale_blocks(COLUMNS);
    static constexpr int ROW_GROUP_BLOCKS = SCALE_BLOCKS + KB;
    /* units of the run, units of the run in a group, and groups of the run */
    static constexpr int UNITS = RUN * F::UNITS;
    static constexpr int GROUP =
        F::ON_TAPE && F::GROUP_UNITS > 0 && F::GROUP_UNITS < UNITS ? F::GROUP_UNITS : UNITS;
    static constexpr int GROUPS = (UNITS + GROUP - 1) / GROUP;
    /* Whether a group has whole runs, or a run has whole groups (schedule/variants.def). */
    static constexpr bool ALIGNED = !F::ON_TAPE || F::group_of(1 << 20) == 0 ||
                                    F::group_of(UNITS) * GROUP == UNITS ||
                                    F::GROUP_UNITS % UNITS == 0;
    /* ONES: registers for the sums of groups of codes 1. OPERANDS: B operands of the run, of two
     * words each. OPERAND_WORDS: their distance in the activation buffer, in uint2. HOLD: the
     * operands stay in registers. SCALES, BLOCK_REGISTERS: scales of a block in registers, and
     * registers for a block with its scales. */
    static constexpr bool HAS_ONES = DIGIT ? F::HAS_ONES : F::HAS_OFFSET;
    static constexpr int ONES = HAS_ONES ? GROUPS : 0;
    static constexpr int OPERANDS = DIGIT ? PARTS / 2 : PARTS;
    static constexpr int OPERAND_WORDS = DIGIT ? PAIR_WORDS : 2 * PART_CHUNKS;
    static constexpr bool HOLD = 2 * OPERANDS + ONES <= MOST_HELD;
    static constexpr int SCALES = F::ON_TAPE ? (F::UNITS + GROUP - 1) / GROUP : 0;
    static constexpr int BLOCK_REGISTERS =
        4 + SCALES * (F::STORED_ZEROS || F::HAS_MINIMUMS ? 2 : 1);
    /* blocks that registers have room for */
    static constexpr int ROOM =
        (MOST_REGISTERS - ONES - (HOLD ? 2 * OPERANDS : 0)) / BLOCK_REGISTERS;
    static constexpr int AT_ONCE = ROOM < 2 ? 2 : ROOM < MOST_LOADED ? ROOM : MOST_LOADED;
    /* a run is divided into steps of about equal size, each at most half a ring */
    static constexpr int HALF_RING = RING_BLOCKS / 2, IN_HALF = HALF_RING / MGL_WARPS;
    static constexpr int MOST = IN_HALF < AT_ONCE ? IN_HALF : AT_ONCE;
    static constexpr int STEPS = MOST < 1 ? RUN : (RUN + MOST - 1) / MOST;
    static constexpr int EACH = (RUN + STEPS - 1) / STEPS;

    /* Whether `count` row groups can be loaded at once. */
    static constexpr bool fit(int count)
    {
        return FULL && RUN * count <= AT_ONCE && RUN * count * BLOCK_REGISTERS <= MOST_OF_GROUPS &&
               ROW_GROUP_BLOCKS * count <= HALF_RING;
    }
    static constexpr int ROW_GROUPS = fit(MOST_ROW_GROUPS) ? MOST_ROW_GROUPS : fit(2) ? 2 : 1;
};

/* Position of a warp on the tape and in the partial-sum buffers, and constants of a task. */
struct scaled_state {
    u32 block;      /* first block of the next row group, in the tape of the epoch */
    int stored;     /* row groups already stored in the current buffer */
    float reducing; /* reciprocal of the run's power of two; multiplies its sums */
    bool low;       /* 16 bits do not hold the input: it has high and low parts, or digits */
    const uint2 *x; /* this lane's first operand of the run in the activation buffer */
};

/* ---- the input --------------------------------------------------------------------------------
 */

/* The run of the only row: a lane has every 32nd word of 16 bytes. A word has 8 columns if the row
 * has 16-bit values (HALF), or 4 columns of f32. */
template <class F, class W, bool HALF> struct scaled_run {
    enum { COLUMNS = HALF ? 8 : 4, WORDS = (W::PARTS * (MGL_PART_COLUMNS / COLUMNS) + 31) / 32 };
    float v[WORDS][COLUMNS];

    /* The number of this lane's first word in the row. */
    static __device__ __forceinline__ int first(const machine &m)
    {
        return m.warp * W::PARTS * (MGL_PART_COLUMNS / COLUMNS) + m.lane;
    }

    /* The number of the word after the last word of the run. */
    static __device__ __forceinline__ int end(const machine &m)
    {
        return min((m.warp + 1) * W::RUN, W::KB) * F::PARTS * (MGL_PART_COLUMNS / COLUMNS);
    }
};

/* Waits until words [0, N) of this lane are written. Missing words are loaded again, all at once;
 * load(i) loads word i. */
template <int N, class LOAD>
static __device__ __forceinline__ void poll_scaled(const machine &m, uint4 *words, const LOAD &load)
{
    await_flags<WHOLE_WARP>(m, MGL_PRODUCT_INPUT, [&] {
        bool missing = false;
#pragma unroll
        for (int i = 0; i < N; i++)
            missing = missing || !is_written(words[i]);
        if (!__any_sync(0xFFFFFFFFu, missing))
            return true;
#pragma unroll
        for (int i = 0; i < N; i++)
            if (!is_written(words[i]))
                words[i] = load(i);
        return false;
    });
}

/* Adds the squares of this lane's word j to `sums`, in the order of the general variant, where a
 * lane has every 32nd chunk of eight columns. If words have number columns, even lanes begin the
 * sum of a chunk and odd lanes complete it. Words j and j + 1 then belong to chunks that two lanes
 * of the general variant, 16 apart, have: each has its own element of `sums` (2). */
template <bool HALF>
static __device__ __forceinline__ void add_squares(const float *v, int j, float *sums)
{
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < (HALF ? 8 : 4); k++)
        sum = fmaf(v[k], v[k], sum);
    if (!HALF) {
        sum = __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
#pragma unroll
        for (int k = 0; k < 4; k++)
            sum = fmaf(v[k], v[k], sum);
    }
    sums[HALF ? 0 : j & 1] += sum;
}

/* Reads the run of a flagged row and multiplies it by the weights of the norm, if there is a norm.
 * meanwhile() runs while the loads are in flight. *squares: this lane's part of the sum of squares
 * before that multiplication. */
template <class F, class W, bool NORM, bool HALF, class MEANWHILE>
static __device__ __forceinline__ scaled_run<F, W, HALF>
read_scaled_run(machine &m, const input &in, float *squares, const MEANWHILE &meanwhile)
{
    typedef scaled_run<F, W, HALF> row;
    constexpr int FOURS = row::COLUMNS / 4;
    const int first = row::first(m), end = min(row::end(m), in.columns / row::COLUMNS);
    const u8 *from = in.x.at + mapped(in, 0) * in.x.stride + first * 16;
    const u64 policy = keep_policy();
    row run;
    uint4 words[row::WORDS];
    float4 g[NORM ? row::WORDS * FOURS : 1];
#pragma unroll
    for (int j = 0; j < row::WORDS; j++) {
        const bool real = first + 32 * j < end;
#pragma unroll
        for (int i = 0; NORM && i < FOURS; i++) {
            g[NORM ? j * FOURS + i : 0] = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
            if (in.g && real)
                g[NORM ? j * FOURS + i : 0] = ((const float4 *)in.g)[(first + 32 * j) * FOURS + i];
        }
        words[j] = make_uint4(0, 0, 0, 0);
        if (real)
            words[j] = load_words(from + j * 512, policy);
    }
    meanwhile();
    poll_scaled<row::WORDS>(m, words, [&](int i) { return load_words(from + i * 512, policy); });
    wait_start(m);
    float sums[2] = {};
#pragma unroll
    for (int j = 0; j < row::WORDS; j++) {
        if (HALF)
            unpack_half(words[j], run.v[j]);
        else
            format<DTYPE_F32>::unpack(words[j], run.v[j]);
        if (NORM)
            add_squares<HALF>(run.v[j], j, sums);
#pragma unroll
        for (int i = 0; NORM && i < FOURS; i++) {
            const float4 weight = g[NORM ? j * FOURS + i : 0];
            float *v = run.v[j] + i * 4;
            v[0] *= weight.x;
            v[1] *= weight.y;
            v[2] *= weight.z;
            v[3] *= weight.w;
        }
    }
    *squares = HALF || (m.lane & 1) ? sums[0] + sums[1] : 0.0f;
    return run;
}

/* The same for the input of merge_add: merges the partials of each word. */
template <class F, class W, class MEANWHILE>
static __device__ __forceinline__ scaled_run<F, W, false>
merge_scaled_run(machine &m, const input &in, const MEANWHILE &meanwhile)
{
    typedef scaled_run<F, W, false> row;
    const int first = row::first(m), end = min(row::end(m), in.columns / row::COLUMNS);
    const part_row from = parts_of(m, 0);
    const u64 policy = keep_policy();
    row run;
    merged all[row::WORDS];
    int place[row::WORDS]; /* index of a word in the partials of a split; -1: past the row's end */
#pragma unroll
    for (int n = 0; n < row::WORDS; n++) {
        const int word = first + 32 * n, column = word * 4;
        place[n] = word < end ? column / HEAD_DIM * (HEAD_DIM + 4) + column % HEAD_DIM : -1;
        all[n] = nothing_merged();
    }
    for (int i = 0; i < from.used; i += PARTS_AHEAD) {
        uint4
            words[row::WORDS * PARTS_AHEAD * 2]; /* values, and maximum and sum, of each partial */
        const auto load = [&](int at) {
            const int n = at / 2 / PARTS_AHEAD, j = at / 2 % PARTS_AHEAD;
            const float *of = part_at(from, i + j) + (at % 2 ? weight_place(place[n]) : place[n]);
            const uint4 loaded = load_words(of, policy);
            return at % 2 ? make_uint4(loaded.x, loaded.y, 0, 0) : loaded;
        };
#pragma unroll
        for (int at = 0; at < row::WORDS * PARTS_AHEAD * 2; at++) {
            words[at] = make_uint4(at % 2 ? __float_as_uint(-INFINITY) : 0, 0, 0, 0);
            if (i + at / 2 % PARTS_AHEAD < from.used && place[at / 2 / PARTS_AHEAD] >= 0)
                words[at] = load(at);
        }
        poll_scaled<row::WORDS * PARTS_AHEAD * 2>(m, words, load);
#pragma unroll
        for (int n = 0; n < row::WORDS; n++) {
            next_parts parts;
#pragma unroll
            for (int j = 0; j < PARTS_AHEAD; j++) {
                parts.value[j][0] = words[(n * PARTS_AHEAD + j) * 2];
                parts.weight[j] = words[(n * PARTS_AHEAD + j) * 2 + 1];
            }
            add_next(all[n], parts);
        }
    }
    meanwhile();
    wait_start(m);
#pragma unroll
    for (int n = 0; n < row::WORDS; n++) {
        const float inverse = place[n] < 0 ? 0.0f : reciprocal(all[n].sum);
#pragma unroll
        for (int k = 0; k < 4; k++)
            run.v[n][k] = all[n].value[0][k] * inverse;
    }
    return run;
}

/* The bits of the largest absolute value of the run. */
template <class F, class W, bool HALF>
static __device__ __forceinline__ u32 largest_of(const scaled_run<F, W, HALF> &run)
{
    typedef scaled_run<F, W, HALF> row;
    u32 most = 0;
#pragma unroll
    for (int j = 0; j < row::WORDS; j++)
#pragma unroll
        for (int k = 0; k < row::COLUMNS; k++)
            most = max(most, __float_as_uint(run.v[j][k]) & 0x7FFFFFFFu);
    return __reduce_max_sync(0xFFFFFFFFu, most);
}

/* Converts four columns to words of digits. An even lane and the next lane have the two halves of a
 * chunk of eight columns. t (4): digits_of this lane's columns. words (4): for each digit, the
 * first word of the chunk in even lanes, the second word in odd lanes. Called by the whole warp. */
template <bool FOUR_BITS>
static __device__ __forceinline__ void half_words(const machine &m, u32 *t, u32 *words)
{
    if (FOUR_BITS) {
        const bool odd = m.lane & 1;
        /* even lanes keep columns 0 and 1, odd lanes columns 6 and 7 */
        const u32 other[2] = {__shfl_xor_sync(0xFFFFFFFFu, odd ? t[0] : t[2], 1),
                              __shfl_xor_sync(0xFFFFFFFFu, odd ? t[1] : t[3], 1)};
        transpose_bytes(odd ? other[0] : t[0], odd ? t[2] : other[0], odd ? other[1] : t[1],
                        odd ? t[3] : other[1], words);
    } else {
        transpose_bytes(t[0], t[1], t[2], t[3], words);
    }
}

/* Multiplies the run by its power of two and stores its digits in the activation buffer. Returns
 * the reciprocal of the power, which multiplies the sums of the run. */
template <class F, class W, bool HALF>
static __device__ __forceinline__ float store_digits(const machine &m, const input &in,
                                                     const scaled_run<F, W, HALF> &run)
{
    typedef scaled_run<F, W, HALF> row;
    const int first = row::first(m), end = row::end(m);
    const u32 most = largest_of(run);
    const float factor = enlarging(most, DIGITS_TOP);
#pragma unroll
    for (int j = 0; j < row::WORDS; j++) {
        const int number = first + 32 * j;
        u32 t[8], words[DIGITS][2];
#pragma unroll
        for (int k = 0; k < row::COLUMNS; k++)
            t[k] = digits_of(run.v[j][k] * factor);
        u8 *to = activation_buffer() + (HALF ? number * 16 : number / 2 * 16 + (number & 1) * 4);
        if (HALF) {
            digit_words<F::FOUR_BITS>(t, words);
        } else {
            u32 half[DIGITS];
            half_words<F::FOUR_BITS>(m, t, half);
#pragma unroll
            for (int d = 0; d < DIGITS; d++)
                words[d][0] = words[d][1] = half[d];
        }
#pragma unroll
        for (int d = 0; d < DIGITS; d++) {
            u32 *at = (u32 *)(to + (d < 2 ? in.row_bytes : 0) + (d & 1 ? 0 : 8));
            if (number < end)
                at[0] = words[d][0];
            if (HALF && number < end)
                at[1] = words[d][1];
        }
    }
    return reducing(most, DIGITS_TOP);
}

/* Multiplies the run by its power of two and stores it in the activation buffer as f16, with low
 * parts if the row is split. Returns the reciprocal of the power, which multiplies the sums of the
 * run. */
template <class F, class W, bool HALF>
static __device__ __forceinline__ float store_run(const machine &m, const input &in,
                                                  const scaled_run<F, W, HALF> &run)
{
    typedef scaled_run<F, W, HALF> row;
    if constexpr (W::DIGITS)
        return store_digits(m, in, run);
    const int first = row::first(m), end = row::end(m);
    const u32 most = largest_of(run);
    const float factor = enlarging(most, F16_TOP);
#pragma unroll
    for (int j = 0; j < row::WORDS * row::COLUMNS / 4; j++) {
        const int i = j / (row::COLUMNS / 4), k = j % (row::COLUMNS / 4);
        const int number =
            (first + 32 * i) * (row::COLUMNS / 4) + k; /* these 4 columns in the row */
        float v[4], rest[8];
#pragma unroll
        for (int l = 0; l < 4; l++)
            v[l] = run.v[i][k * 4 + l] * factor;
        const u32 high[2] = {pack_pair(DTYPE_F16, v[0], v[1]), pack_pair(DTYPE_F16, v[2], v[3])};
        format<DTYPE_F16>::unpack(make_uint4(high[0], high[1], 0, 0), rest);
        const u32 low[2] = {pack_pair(DTYPE_F16, v[0] - rest[0], v[1] - rest[1]),
                            pack_pair(DTYPE_F16, v[2] - rest[2], v[3] - rest[3])};
        /* in a chunk, the even pairs come first, then the odd pairs */
        u32 *to = (u32 *)activation_buffer() + number / 2 * 4 + (number & 1);
        if (first + 32 * i < end) {
            to[0] = high[0];
            to[2] = high[1];
            to = (u32 *)((u8 *)to + in.row_bytes);
            if (!HALF || in.low) {
                to[0] = low[0];
                to[2] = low[1];
            }
        }
    }
    return reducing(most, F16_TOP);
}

/* ---- products ---------------------------------------------------------------------------------
 */

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
        ring_spot(m, st.block + W::SCALE_BLOCKS + START + m.warp) * MGL_BLOCK_BYTES + m.lane * 16;
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
    const int first = F::group_of(m.warp * W::UNITS);
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = read_scale<F>(m, st.block + u * W::ROW_GROUP_BLOCKS, W::ROW_SCALES,
                              min(first + from + i, W::ROW_SCALES - 1), m.lane >> 2);
}

/* Operand i of the run: from registers (`held`), or from the activation buffer. */
template <class W>
static __device__ __forceinline__ uint2 operand_of_run(const scaled_state &st, const uint2 *held,
                                                       int i)
{
    return W::HOLD ? held[W::HOLD ? i : 0] : st.x[i * W::OPERAND_WORDS];
}

/* The activations of unit i of the run. */
template <class F, class W>
static __device__ __forceinline__ uint2 unit_of_run(const machine &m, const scaled_state &st,
                                                    const uint2 *held, int i)
{
    return F::in_unit(operand_of_run<W>(st, held, i / F::SPLIT), i, m.lane);
}

/* The sums of the current group, for G row groups. */
template <class W, int G> struct group_state {
    float c[W::DIGITS ? 1 : G][4]; /* the results of the MMAs */
    int sum[G];                    /* of integers */
};
/* The sums that the groups of the run would have if all codes were 1. */
template <class W> struct run_ones {
    float of[W::GROUPS];
    int digits[W::GROUPS];
};

/* Like add_codes, for activations as digits. */
template <class F, class W, int G, int FROM, int N>
static __device__ __forceinline__ void
add_integer_codes(const machine &m, const scaled_state &st, const uint2 *held,
                  const run_ones<W> &ones, int blocks, const uint4 (*w)[N],
                  const group_scale (*of)[W::GROUPS], group_state<W, G> &s, float *total)
{
    constexpr int PAIRS = F::PARTS / 2;
#pragma unroll
    for (int i = 0; i < N * PAIRS; i++) {
        const int pair = FROM * PAIRS + i;
        const uint2 x = operand_of_run<W>(st, held, pair);
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
                total[u] = F::add_integers(total[u], of[u][group], s.sum[u], ones.digits[group]);
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

/* Writes the sums of the first `count` of G row groups to the current partial-sum buffer, like
 * write_sums (skinny.cuh). */
template <class F, class W, int G>
static __device__ __forceinline__ void write_totals(machine &m, scaled_state &st, float *total,
                                                    int count, int each, bool last)
{
    const u32 psum = m.psums % PSUM_COUNT, use = m.psums / PSUM_COUNT;
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
    while (use > 0 && !barrier_passed(&own().psum_empty[psum], (use - 1) & 1))
        ; /* each wait of the epilogue has a deadline */
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

/* Computes the next `count` row groups of a segment, 1 to G. The time is the time of G row groups
 * at once, which is shorter than the time of two row groups one after the other. */
template <class F, class W, int G>
static __device__ __forceinline__ void add_row_groups(machine &m, scaled_state &st,
                                                      const uint2 *held, const run_ones<W> &ones,
                                                      int blocks, int count, int each, bool last)
{
    group_scale of[G][W::GROUPS];
    group_state<W, G> s = {};
    float total[G] = {};
    if constexpr (G > 1) {
        uint4 w[G][W::RUN];
        const u32 end = st.block + count * W::ROW_GROUP_BLOCKS;
        ring_wait(m, m.base + (end + PAGE_BLOCKS - 1) / PAGE_BLOCKS);
        load_codes<W, G, 0, W::RUN>(m, st, W::RUN, count - 1, w);
#pragma unroll
        for (int u = 0; u < G; u++)
            load_scales<F, W, W::GROUPS>(m, st, min(u, count - 1), 0, of[u]);
        st.block = end;
        ring_free(m, m.base + st.block / PAGE_BLOCKS);
        add_codes<F, W, G, 0, W::RUN>(m, st, held, ones, blocks, w, of, s, total);
    } else {
        add_steps<F, W>(m, st, held, ones, blocks, of, s, total);
        st.block += W::ROW_GROUP_BLOCKS;
        ring_done(m, m.base + st.block / PAGE_BLOCKS);
    }
    write_totals<F, W, G>(m, st, total, count, each, last);
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

/* This lane's first operand of the run in the activation buffer. */
template <class W>
static __device__ __forceinline__ const uint2 *operands_of(const machine &m, const input &in)
{
    const int part = m.warp * W::PARTS;
    if (W::DIGITS)
        return (const uint2 *)(activation_buffer() +
                               (digit_column_of(m.lane).digit < 2 ? in.row_bytes : 0)) +
               digit_place(m.lane, part);
    const column mine = column_of(m.lane, in.low);
    return (const uint2 *)(activation_buffer() + (mine.low ? in.row_bytes : 0)) +
           (part * PART_CHUNKS + (m.lane & 3)) * 2 + mine.odd;
}

/* The sums that the groups of the run would have if all codes were 1. */
template <class F, class W>
static __device__ __forceinline__ run_ones<W> ones_of(const machine &m, const scaled_state &st,
                                                      const uint2 *held, int blocks)
{
    run_ones<W> ones = {};
    if (!W::HAS_ONES)
        return ones;
#pragma unroll
    for (int i = 0; W::DIGITS && i < W::OPERANDS; i++) {
        int sums[F::PAIR_UNITS] = {};
        if (W::FULL || i / (F::PARTS / 2) < blocks)
            multiply_pair<F>(make_uint4(0x01010101u, 0x01010101u, 0x01010101u, 0x01010101u),
                             operand_of_run<W>(st, held, i), m.lane, sums);
#pragma unroll
        for (int k = 0; k < F::PAIR_UNITS; k++)
            ones.digits[(i * F::PAIR_UNITS + k) / W::GROUP] += sums[k];
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

/* Runs the whole task with format F. */
template <class F, int COLUMNS, bool DIGIT>
static __device__ __forceinline__ void consume_scaled(machine &m, const input &in)
{
    typedef scaled_path<F, COLUMNS, DIGIT> W;
    constexpr int G = W::ROW_GROUPS;
    if (m.warp >= W::P.warps)
        return skip_scaled(m, in);
    const int blocks = W::FULL || m.warp + 1 < W::P.warps ? W::RUN : W::P.of_last;
    const int each = psum_groups(1);
    scaled_state st;
    int groups = 0;
    m.freed = uniform(m.freed);
    m.known = uniform(max(m.known, m.freed)); /* freed pages have landed */
    const auto meanwhile = [&] {
        st.block = uniform(segment(m, 0).block);
        st.x = operands_of<W>(m, in);
        st.low = in.low;
        st.stored = 0;
        groups = (int)uniform((u32)segment(m, 0).groups);
    };
    float squares = 0.0f;
    constexpr bool NORM = COLUMNS == MGL_HIDDEN;
    if (MERGES && COLUMNS == MGL_ATTENDED && in.merges)
        st.reducing = store_run(m, in, merge_scaled_run<F, W>(m, in, meanwhile));
    else if (in.x.dtype == DTYPE_F32)
        st.reducing =
            store_run(m, in, read_scaled_run<F, W, NORM, false>(m, in, &squares, meanwhile));
    else
        st.reducing =
            store_run(m, in, read_scaled_run<F, W, NORM, true>(m, in, &squares, meanwhile));
    __syncwarp();
    uint2 held[W::HOLD ? W::OPERANDS : 1];
    if (W::HOLD) {
        constexpr int EACH = W::OPERANDS / W::RUN; /* operands of a block */
#pragma unroll
        for (int i = 0; i < W::OPERANDS; i++)
            held[W::HOLD ? i : 0] = st.x[(W::FULL || i / EACH < blocks ? i : 0) * W::OPERAND_WORDS];
    }
    if (in.g)
        write_squares(m, 0, squares);
    if (in.early && m.lane == 0)
        barrier_arrive(&own().squares_full);
    input_is_there(m, m.base + in.end);
    const run_ones<W> ones = ones_of<F, W>(m, st, held, blocks);
    const int segments = (int)uniform((u32)in.segments);
    for (int i = 0;; groups = (int)uniform((u32)segment(m, i).groups)) {
        while (groups > 0) {
            const int count = min(groups, min(each - st.stored, G));
            groups -= count;
            add_row_groups<F, W, G>(m, st, held, ones, blocks, count, each, groups == 0);
        }
        if (++i == segments)
            return;
        st.block = uniform(segment(m, i).block);
    }
}

/* The same. Compiles nothing for a format and columns that the variant does not support: the host
 * rejects the variant for these. */
template <class F, int COLUMNS>
static __device__ __forceinline__ void consume_if_aligned(machine &m, const input &in)
{
    if constexpr (scaled_path<F, COLUMNS, false>::ALIGNED) {
        if constexpr (F::INTEGERS && has_input(F::INPUTS, COLUMNS, true))
            if (in.low)
                return consume_scaled<F, COLUMNS, true>(m, in);
        if constexpr (has_input(F::INPUTS, COLUMNS, false) ||
                      (!F::INTEGERS && has_input(F::INPUTS, COLUMNS, true)))
            consume_scaled<F, COLUMNS, false>(m, in);
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

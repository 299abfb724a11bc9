/*
 * The input of the skinny variant of products of scaled weights (linear/scaled_skinny.cuh), and the
 * compile-time sizes of the variant (scaled_path). Each warp reads the activations of its run and
 * converts them to f16 or to digits (linear/scaled_input.cuh). The lanes of the warp exchange the
 * results through the activation buffer. If the input is 16-bit values that become digits, they use
 * shuffles instead (hold_digits).
 */
#ifndef MGL_DEVICE_LINEAR_SCALED_RUN_CUH
#define MGL_DEVICE_LINEAR_SCALED_RUN_CUH

#include "vm/cuda/device/linear/scaled.cuh"

#if MGL_SCALED

/* How a warp processes row groups of COLUMNS columns with format F. DIGIT: the integers of the
 * codes are multiplied by digits of the activations. */
template <class F, int COLUMNS, bool DIGIT> struct scaled_path {
    enum {
        MOST_HELD = MGL_RUN_REGISTERS, /* registers of a lane for the activations of a run */
        MOST_REGISTERS = 112,          /* registers of a lane for activations, blocks and scales */
        /* The same if a warp processes several row groups at once. The registers for operands count
         * twice (blocks_of_each). */
        MOST_ROW_GROUP_REGISTERS = 116,
        MOST_LOADED = 16,   /* blocks that a warp loads at once */
        MOST_ROW_GROUPS = 4 /* row groups that a warp processes at once */
    };
    static constexpr bool DIGITS = DIGIT;
    static constexpr int KB = F::blocks(COLUMNS);
    static constexpr int RUN = (KB + MGL_WARPS - 1) / MGL_WARPS, PARTS = RUN * F::PARTS;
    static constexpr mgl_tape_order P = mgl_tape_order_of(KB, MGL_WARPS);
    /* all warps with blocks have the same number of blocks */
    static constexpr bool FULL = P.of_last == RUN;
    /* no block has columns past the row's end */
    static constexpr bool UNPADDED = KB * F::BLOCK == COLUMNS;
    /* groups of a row with scales on the tape, and the blocks of these scales */
    static constexpr int ROW_SCALES = F::groups(COLUMNS), SCALE_BLOCKS = F::scale_blocks(COLUMNS);
    static constexpr int ROW_GROUP_BLOCKS = SCALE_BLOCKS + KB;
    /* units of the run, units of a group in the run, and groups of the run */
    static constexpr int UNITS = RUN * F::UNITS;
    static constexpr int GROUP =
        F::ON_TAPE && F::GROUP_UNITS > 0 && F::GROUP_UNITS < UNITS ? F::GROUP_UNITS : UNITS;
    static constexpr int GROUPS = (UNITS + GROUP - 1) / GROUP;
    /* Whether the tape has the scales of all groups of all runs. If not, the last run has groups
     * past the row's end, or the format has row factors. */
    static constexpr bool ALL_SCALES = F::group_of((P.warps - 1) * UNITS) + GROUPS <= ROW_SCALES;
    /* Whether a group consists of whole runs, or a run of whole groups (schedule/variants.def). */
    static constexpr bool ALIGNED = !F::ON_TAPE || F::group_of(1 << 20) == 0 ||
                                    F::group_of(UNITS) * GROUP == UNITS ||
                                    F::GROUP_UNITS % UNITS == 0;
    /* Whether the product is an integer product and each group consists of whole blocks. The A
     * operands are then F::block_integers(), and MMAs accumulate the sum of a group. */
    static constexpr bool WHOLE = DIGIT && F::SPLIT == 1 && GROUP % F::UNITS == 0;
    /* ONES: registers for the sums that groups would have if all codes were 1 or BASE (run_ones).
     * OPERANDS: B operands of the run, of two registers each. HOLD: the operands stay in registers.
     * SCALES: groups of a block with a scale. BLOCK_REGISTERS: registers for a block and its
     * scales. */
    static constexpr int ONES = F::HAS_OFFSET ? GROUPS : 0;
    static constexpr int OPERANDS = DIGIT ? PARTS / 2 : PARTS;
    static constexpr bool HOLD = 2 * OPERANDS + ONES <= MOST_HELD;
    static constexpr int SCALES = F::ON_TAPE ? (F::UNITS + GROUP - 1) / GROUP : 0;
    static constexpr int BLOCK_REGISTERS =
        4 + SCALES * (F::STORED_ZEROS || F::HAS_MINIMUMS ? 2 : 1);
    /* registers for the sums of a group of several blocks (group_state::integers) */
    static constexpr int SUMS = WHOLE && GROUP > F::UNITS ? 16 : 0;
    /* blocks that registers have room for */
    static constexpr int ROOM =
        (MOST_REGISTERS - ONES - SUMS - (HOLD ? 2 * OPERANDS : 0)) / BLOCK_REGISTERS;
    static constexpr int AT_ONCE = ROOM < 2 ? 2 : ROOM < MOST_LOADED ? ROOM : MOST_LOADED;
    /* a run is divided into steps of about equal size, each at most half a ring */
    static constexpr int HALF_RING = RING_BLOCKS / 2, IN_HALF = HALF_RING / MGL_WARPS;
    static constexpr int MOST = IN_HALF < AT_ONCE ? IN_HALF : AT_ONCE;
    static constexpr int STEPS = MOST < 1 ? RUN : (RUN + MOST - 1) / MOST;
    static constexpr int EACH = (RUN + STEPS - 1) / STEPS;

    /* Blocks that a warp loads at once from each of `count` row groups: as many as registers have
     * room for. */
    static constexpr int blocks_of_each(int count)
    {
        const int most =
            (MOST_ROW_GROUP_REGISTERS - ONES - (HOLD ? 4 * OPERANDS : 0)) / BLOCK_REGISTERS;
        const int all = (most < AT_ONCE ? most : AT_ONCE) / count;
        return all < RUN ? all : RUN;
    }
    /* Whether `count` row groups can be processed at once. Registers must have room for a block of
     * each row group. Four row groups at once must fit in a third of the ring, two row groups in
     * half of the ring. If they took more of the ring, the pages of the tape would be freed too
     * late. */
    static constexpr bool fit(int count)
    {
        return FULL && blocks_of_each(count) > 0 &&
               ROW_GROUP_BLOCKS * count <= RING_BLOCKS / (count > 2 ? 3 : 2);
    }
    static constexpr int ROW_GROUPS = fit(MOST_ROW_GROUPS) ? MOST_ROW_GROUPS : fit(2) ? 2 : 1;
    /* Iterations of ROW_GROUPS row groups that share a wait for pages, the freeing of these pages
     * and a partial-sum buffer. Two iterations if four row groups fit in half of the ring. */
    static constexpr int ITERATIONS =
        ROW_GROUPS == 2 && ROW_GROUP_BLOCKS * 4 <= RING_BLOCKS / 2 ? 2 : 1;
    static constexpr int STEPS_OF_GROUPS =
        ROW_GROUPS == 1 ? 1 : (RUN + blocks_of_each(ROW_GROUPS) - 1) / blocks_of_each(ROW_GROUPS);
    static constexpr int EACH_OF_GROUPS = (RUN + STEPS_OF_GROUPS - 1) / STEPS_OF_GROUPS;
};

/* Position of a warp on the tape and in the partial-sum buffers, and constants of a task. */
struct scaled_state {
    u32 block;      /* first block of the next row group, in the tape of the epoch */
    u32 at;         /* byte offset of this block in the ring */
    int stored;     /* row groups already stored in the current buffer */
    float reducing; /* reciprocal of the run's power of two; multiplies its sums */
    bool low;       /* the input has high and low parts, or digits */
    const u32 *x;   /* this lane's first operand of the run in the activation buffer */
};

/* Sets the position to block `block` of the tape. */
static __device__ __forceinline__ void move_to(const machine &m, scaled_state &st, u32 block)
{
    st.block = block;
    st.at = ring_spot(m, block) * MGL_BLOCK_BYTES;
}

/* Advances by `blocks` blocks, at most RING_BLOCKS. */
static __device__ __forceinline__ void advance(scaled_state &st, int blocks)
{
    st.block += blocks;
    st.at = within_ring(st.at + blocks * MGL_BLOCK_BYTES);
}

/* Address of this lane's first operand of the run in the activation buffer (loaded_operand). */
template <class F, class W>
static __device__ __forceinline__ const u32 *operands_of(const machine &m, const input &in)
{
    const int part = m.warp * W::PARTS;
    const column mine = column_of(m.lane, in.low);
    const digit_column digits = digit_column_of(m.lane);
    const bool second_row = W::DIGITS ? digits.digit < 2 : mine.low;
    const u32 *x = (const u32 *)(activation_buffer() + (second_row ? in.row_bytes : 0));
    if (!W::DIGITS)
        return x + (part * PART_CHUNKS + (m.lane & 3)) * 4 + 2 * mine.odd;
    if (!W::WHOLE || F::FOUR_BITS)
        return x + 2 * digit_place(m.lane, part);
    /* whole blocks of 8-bit codes: all lanes begin with the first part of the pair, even columns of
     * B with its first word, odd columns (`second`) with its second word */
    return x + 2 * digit_place(m.lane, part - digits.second) + digits.second;
}

/* Operand i of the run in the activation buffer. If groups consist of whole blocks (W::WHOLE), the
 * operands match F::block_integers(): an operand has a word of part p and the same word of part
 * p + F::PARTS / 2. Even columns of B are for rows 0 to 7 of A. Odd columns (digit_column::second)
 * are for rows 8 to 15: they have the next part (4-bit codes) or the next word (8-bit codes). */
template <class F, class W>
static __device__ __forceinline__ uint2 loaded_operand(const scaled_state &st, int i)
{
    if (!W::DIGITS)
        return *(const uint2 *)(st.x + i * (PART_CHUNKS * 4));
    if (!W::WHOLE)
        return *(const uint2 *)(st.x + i * (2 * PAIR_WORDS));
    constexpr int WORDS = F::PARTS * PART_CHUNKS * 4; /* of a block, in a row of the buffer */
    const u32 *block = st.x + i / F::MMAS * WORDS;
    const int word = F::FOUR_BITS && i % F::MMAS == 0 ? 1 : 0;
    return make_uint2(block[word], block[word + WORDS / 2]);
}

/* Loads the operands of a run of `blocks` blocks to `held`, if they stay in registers (W::HOLD). */
template <class F, class W>
static __device__ __forceinline__ void load_held(const scaled_state &st, int blocks, uint2 *held)
{
    constexpr int EACH = W::OPERANDS / W::RUN; /* operands of a block */
#pragma unroll
    for (int i = 0; W::HOLD && i < W::OPERANDS; i++)
        held[i] = loaded_operand<F, W>(st, W::FULL || i / EACH < blocks ? i : 0);
}

/* ---- the input --------------------------------------------------------------------------------
 */

/* The run of the only row: a lane has every 32nd word of 16 bytes. A word has 8 columns if the row
 * has 16-bit values (HALF), or 4 columns of f32. */
template <class F, class W, bool HALF> struct scaled_run {
    enum { COLUMNS = HALF ? 8 : 4, WORDS = (W::PARTS * (MGL_PART_COLUMNS / COLUMNS) + 31) / 32 };
    /* all lanes have WORDS words in all runs */
    static constexpr bool EVEN = W::FULL && W::PARTS * (MGL_PART_COLUMNS / COLUMNS) % 32 == 0;
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

/* Adds the squares of this lane's word j to `sums` (2), in the order of the general variant. There,
 * a lane has every 32nd chunk of eight columns. If words have four columns, an even lane begins the
 * sum of a chunk, and the next lane completes it. In the general variant, the chunks of words j and
 * j + 1 then belong to two lanes, so each of these words has its own element of `sums`. */
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
        const bool real = (row::EVEN && W::UNPADDED) || first + 32 * j < end;
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

/* Like read_scaled_run, for the input of merge_add: merges the partial results of the splits for
 * each word. meanwhile() runs after the loads. */
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
    int place[row::WORDS]; /* of a word in the partial results of a split; -1: past the row's end */
#pragma unroll
    for (int n = 0; n < row::WORDS; n++) {
        const int word = first + 32 * n, column = word * 4;
        place[n] = word < end ? column / HEAD_DIM * (HEAD_DIM + 4) + column % HEAD_DIM : -1;
        all[n] = nothing_merged();
    }
    for (int i = 0; i < from.used; i += PARTS_AHEAD) {
        /* for each partial result: a word of values, then a word with its maximum and its sum */
        uint4 words[row::WORDS * PARTS_AHEAD * 2];
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

/* Like digit_words, for four columns in each lane: an even lane and the next lane have the two
 * halves of a chunk of eight columns. t (4): the results of digits_of for this lane's columns.
 * words (4): for each digit, the first word of the chunk in even lanes, the second word in odd
 * lanes. Called by the whole warp. */
template <bool FOUR_BITS>
static __device__ __forceinline__ void paired_digit_words(const machine &m, u32 *t, u32 *words)
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
    constexpr int TOP = digits_top(F::FOUR_BITS);
    const u32 most = largest_of(run);
    const float factor = enlarging(most, TOP);
#pragma unroll
    for (int j = 0; j < row::WORDS; j++) {
        const int number = first + 32 * j;
        if constexpr (HALF) {
            const chunk c = digits_chunk<F::FOUR_BITS>(run.v[j], factor);
            uint4 *to = (uint4 *)(activation_buffer() + number * 16);
            if (row::EVEN || number < end) {
                to[0] = c.high;
                *(uint4 *)((u8 *)to + in.row_bytes) = c.low;
            }
        } else {
            u32 t[4], words[DIGITS];
            digits_of<F::FOUR_BITS>(run.v[j], factor, t);
            paired_digit_words<F::FOUR_BITS>(m, t, words);
            u8 *to = activation_buffer() + number / 2 * 16 + (number & 1) * 4;
#pragma unroll
            for (int d = 0; d < DIGITS; d++)
                if (row::EVEN || number < end)
                    *(u32 *)(to + (d < 2 ? in.row_bytes : 0) + (d & 1 ? 0 : 8)) = words[d];
        }
    }
    return reducing(most, TOP);
}

/* Stores two words of this lane's digit in its operands (loaded_operand): the words of chunk
 * lane % 4 of part 2 n + `second` of the run (digit_column). Called by the whole warp. */
template <class F, class W>
static __device__ __forceinline__ void hold_words(int lane, int n, const u32 *words, uint2 *held)
{
    if constexpr (W::WHOLE && F::FOUR_BITS) {
        uint2 *to = held + n / 2 * 2;
        (n % 2 ? to[0].y : to[0].x) = words[1];
        (n % 2 ? to[1].y : to[1].x) = words[0];
    } else if constexpr (W::WHOLE) {
        /* the operand of a lane has one word of each part of a block */
        const bool second = digit_column_of(lane).second;
        const u32 mine = second ? words[1] : words[0];
        const u32 other = __shfl_xor_sync(0xFFFFFFFFu, second ? words[0] : words[1], 4);
        held[n] = make_uint2(second ? other : mine, second ? mine : other);
    } else {
        held[n] = make_uint2(words[0], words[1]);
    }
}

/* Converts a run of 16-bit values without a norm to digits, and stores this lane's operands in
 * `held`. The lanes exchange the digits by shuffles, because the activation buffer may be too
 * small: its size is chosen for 16-bit values. Returns the reciprocal of the run's power of two. */
template <class F, class W>
static __device__ __forceinline__ float hold_digits(const machine &m,
                                                    const scaled_run<F, W, true> &run, uint2 *held)
{
    static_assert(W::HOLD, "registers hold the digits");
    constexpr int TOP = digits_top(F::FOUR_BITS);
    const u32 most = largest_of(run);
    const float factor = enlarging(most, TOP);
#pragma unroll
    for (int j = 0; j < scaled_run<F, W, true>::WORDS; j++) {
        u32 t[CHUNK_COLUMNS], words[4][2];
        digits_of<F::FOUR_BITS>(run.v[j], factor, t);
        digits_of<F::FOUR_BITS>(run.v[j] + 4, factor, t + 4);
        exchange_digits<F::FOUR_BITS>(m.lane, t, words);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (4 * j + i < W::PARTS / 2)
                hold_words<F, W>(m.lane, 4 * j + i, words[i], held);
    }
    return reducing(most, TOP);
}

/* Multiplies the run by its power of two and stores it in the activation buffer as digits or as
 * f16, with low parts if in.low. Returns the reciprocal of the power, which multiplies the sums of
 * the run. */
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
        /* these four columns begin at column 4 number of the row */
        const int number = (first + 32 * i) * (row::COLUMNS / 4) + k;
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
        if (row::EVEN || first + 32 * i < end) {
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

#endif

#endif

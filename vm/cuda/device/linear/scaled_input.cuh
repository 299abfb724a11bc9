/*
 * Block scaling of the input of a product with scaled weights (linear/formats.cuh). Each warp finds
 * the largest absolute value of its run of columns of a row, and multiplies the run by a power of
 * two. Later the sums of the run are divided by the same power of two. Both steps are exact in f32.
 *
 *   f16 numbers: the power of two brings the largest value to at least 2^14 and below 2^15, because
 *   f16 numbers have a small range. Values that need more than 16 bits are split into high and low
 *   parts, as for 16-bit weights (linear/activations.cuh).
 *
 *   Fixed point, for integer products (linear/formats.cuh): each value, times the power of two, is
 *   rounded to an integer. The four signed digits of the integer to the base 256 are 8-bit
 *   integers.
 *     8-bit codes: the largest value is brought to at least 2^29 and below 2^30. The rounding error
 *     is at most 2^-30 times the largest value.
 *     4-bit codes: the largest value is brought to at least 2^25 and below 2^26. The rounding error
 *     is at most 2^-26 times the largest value. In half of the columns, the digits are the digits
 *     of 16 x - y: x is the integer of the column, and y is the integer of the column whose code is
 *     in the same byte.
 *   The four digits need as many bytes as the high and low parts. In the activation buffer, a
 *   quarter of a part (eight columns) has 16 bytes in the row of the high parts, for digits 3 and 2
 *   of its columns, and 16 bytes in the row of the low parts, for digits 1 and 0.
 */
#ifndef MGL_DEVICE_LINEAR_SCALED_INPUT_CUH
#define MGL_DEVICE_LINEAR_SCALED_INPUT_CUH

#include "vm/cuda/device/linear/activations.cuh"

#if MGL_SCALED

enum {
    CHUNK_COLUMNS = 8, /* columns in 16 bytes of f16 */
    PART_CHUNKS = MGL_PART_COLUMNS / CHUNK_COLUMNS
};

/* The power of two that multiplies the sums of warp w for row j: reducing() of its run. */
static __device__ __forceinline__ float &range_of(const machine &m, int j, int w)
{
    return ((float *)(activation_buffer() + MGL_ACTIVATION_BYTES - RANGE_BYTES))[j * MGL_WARPS + w];
}

enum { F16_TOP = 14, DIGITS = 4 };

/* The `top` of enlarging() for a run that is converted to digits: the largest absolute value then
 * is at least 2^top and below 2^(top + 1). */
static __device__ __forceinline__ constexpr int digits_top(bool four_bits)
{
    return four_bits ? 25 : 29;
}

/* The power of two that multiplies a run: it brings the largest absolute value to at least 2^top
 * and below 2^(top + 1). `most`: the bits of the largest value; values below 2^-95 are treated like
 * 2^-95. */
static __device__ __forceinline__ float enlarging(u32 most, int top)
{
    const u32 exponent = min(max(most >> 23, 32u), 254u);
    return __uint_as_float((254 + top - exponent) << 23);
}

/* Returns 1 / enlarging(most, top). For digits, returns NaN if the run has an infinity or a NaN,
 * because digits cannot hold these values. */
static __device__ __forceinline__ float reducing(u32 most, int top)
{
    const u32 exponent = min(max(most >> 23, 32u), 254u);
    return __uint_as_float(top != F16_TOP && most >> 23 == 255 ? 0x7FC00000u
                                                               : (exponent - top) << 23);
}

/* Whether a task with format F multiplies the integers of the codes by digits of its input. */
template <class F> static __device__ __forceinline__ bool takes_digits(const input &in)
{
    return F::INTEGERS && in.low;
}

/* Converts the values v (4) of four neighboring columns to digits. Integer i is v[i] * factor,
 * rounded. For 4-bit codes, columns i and i + 2 have their codes in the same byte, for i = 0 and 1:
 * integer i is replaced by 16 times integer i minus integer i + 2. Byte d of to[i] is digit d of
 * integer i, from -128 to 127: integer i is the sum over d of digit d times 256^d. */
template <bool FOUR_BITS>
static __device__ __forceinline__ void digits_of(const float *v, float factor, u32 *to)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = (u32)__float2int_rn(v[i] * factor);
    if (FOUR_BITS) {
        to[0] = 16 * to[0] - to[2];
        to[1] = 16 * to[1] - to[3];
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = (to[i] + 0x00808080u) ^ 0x00808080u;
}

/* Transposes bytes: byte i of result d is byte d of word i. */
static __device__ __forceinline__ void transpose_bytes(u32 a, u32 b, u32 c, u32 d, u32 *to)
{
    const u32 low[2] = {__byte_perm(a, b, 0x5140), __byte_perm(c, d, 0x5140)};
    const u32 high[2] = {__byte_perm(a, b, 0x7362), __byte_perm(c, d, 0x7362)};
    to[0] = __byte_perm(low[0], low[1], 0x5410);
    to[1] = __byte_perm(low[0], low[1], 0x7632);
    to[2] = __byte_perm(high[0], high[1], 0x5410);
    to[3] = __byte_perm(high[0], high[1], 0x7632);
}

/* The words of each digit of eight columns, from their digits_of: to[digit][0] and to[digit][1], in
 * the order of the format's integers. */
template <bool FOUR_BITS>
static __device__ __forceinline__ void digit_words(const u32 *t, u32 (*to)[2])
{
    u32 first[DIGITS], second[DIGITS];
    if (FOUR_BITS) {
        transpose_bytes(t[0], t[4], t[1], t[5], first);
        transpose_bytes(t[2], t[6], t[3], t[7], second);
    } else {
        transpose_bytes(t[0], t[1], t[2], t[3], first);
        transpose_bytes(t[4], t[5], t[6], t[7], second);
    }
#pragma unroll
    for (int d = 0; d < DIGITS; d++) {
        to[d][0] = first[d];
        to[d][1] = second[d];
    }
}

/* Transposes digits between four lanes by butterfly shuffles. The lanes differ only in bits 3 and 4
 * of their numbers. t (8): digits_of for this lane's eight columns. words[i]: the two words of
 * digit lane / 8 (digit_words) of lane 8 i + lane % 8. Called by the whole warp. */
template <bool FOUR_BITS>
static __device__ __forceinline__ void exchange_digits(int lane, const u32 *t, u32 (*words)[2])
{
    const bool odd = lane & 8, high = lane & 16;
    const u32 halves = high ? 0x7632 : 0x5410, other_halves = high ? 0x5410 : 0x7632;
    const u32 bytes = odd ? 0x7531 : 0x6420, other_bytes = odd ? 0x6420 : 0x7531;
#pragma unroll
    for (int w = 0; w < 2; w++) {
        /* digits 0 and 1, or 2 and 3, of two columns: of this lane, and of lane ^ 16 */
        u32 mine[2], far[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const u32 a = t[FOUR_BITS ? 2 * w + i : 4 * w + 2 * i];
            const u32 b = t[FOUR_BITS ? 2 * w + i + 4 : 4 * w + 2 * i + 1];
            mine[i] = __byte_perm(a, b, halves);
            far[i] = __shfl_xor_sync(0xFFFFFFFFu, __byte_perm(a, b, other_halves), 16);
        }
        /* of lanes lane, lane ^ 8, lane ^ 16 and lane ^ 24 */
        const u32 of[4] = {
            __byte_perm(mine[0], mine[1], bytes),
            __shfl_xor_sync(0xFFFFFFFFu, __byte_perm(mine[0], mine[1], other_bytes), 8),
            __byte_perm(far[0], far[1], bytes),
            __shfl_xor_sync(0xFFFFFFFFu, __byte_perm(far[0], far[1], other_bytes), 8)};
        const u32 near_pair[2] = {odd ? of[1] : of[0], odd ? of[0] : of[1]};
        const u32 far_pair[2] = {odd ? of[3] : of[2], odd ? of[2] : of[3]};
#pragma unroll
        for (int i = 0; i < 2; i++) {
            words[i][w] = high ? far_pair[i] : near_pair[i];
            words[2 + i][w] = high ? near_pair[i] : far_pair[i];
        }
    }
}

/* Multiplies eight values by a power of two and converts them to digits. */
template <bool FOUR_BITS>
static __device__ __forceinline__ chunk digits_chunk(const float *v, float factor)
{
    u32 t[CHUNK_COLUMNS], words[DIGITS][2];
    digits_of<FOUR_BITS>(v, factor, t);
    digits_of<FOUR_BITS>(v + 4, factor, t + 4);
    digit_words<FOUR_BITS>(t, words);
    return {make_uint4(words[3][0], words[3][1], words[2][0], words[2][1]),
            make_uint4(words[1][0], words[1][1], words[0][0], words[0][1])};
}

/* A lane's column of the B operand of multiply_integers(): one digit of the first or of the second
 * part of a pair. */
struct digit_column {
    int digit;
    bool second;
};

static __device__ __forceinline__ digit_column digit_column_of(int lane)
{
    return {lane >> 3, (lane >> 2 & 1) != 0};
}

/* Offset, in uint2, of a lane's B operand of pair 0 of a run whose first part is `part`. Digits 3
 * and 2 are in the row of the high parts, digits 1 and 0 in the row of the low parts. The distance
 * of two pairs is PAIR_WORDS, in uint2. */
enum { PAIR_WORDS = 2 * PART_CHUNKS * 2 };

static __device__ __forceinline__ int digit_place(int lane, int part)
{
    const digit_column mine = digit_column_of(lane);
    return ((part + mine.second) * PART_CHUNKS + (lane & 3)) * 2 + 1 - (mine.digit & 1);
}

/* Multiplies two parts of the codes by one row of digits. integers: F::integers() of the two parts.
 * x: the lane's B operand. sums (PAIR_UNITS): the sum of each unit for digit lane % 4, in the order
 * of the columns. */
template <class F>
static __device__ __forceinline__ void multiply_pair(uint4 integers, uint2 x, int lane, int *sums)
{
#pragma unroll
    for (int h = 0; h < F::SPLIT; h++) {
        int d[4] = {};
        multiply_integers(d, integers, F::in_unit(x, h, lane));
        sums[h] = d[0];
        sums[F::SPLIT + h] = d[3];
    }
}

/* F::integers() of two parts whose codes are all F::BASE. */
template <class F> static __device__ __forceinline__ uint4 base_pair()
{
    const u32 codes = F::base_codes();
    return F::integers(make_uint4(codes, codes, codes, codes), 0);
}

/* Adds the digits of four sets of sums. Four neighboring lanes have one digit each of total (4).
 * Lane q of the four gets the result of set q, with the same bits as from sum_digits. */
template <class F>
static __device__ __forceinline__ float sum_four(const machine &m, const float *total)
{
    const float factor = F::digit_factor(m.lane & 3);
    const bool odd = m.lane & 1, second = m.lane & 2;
    float half[2];
#pragma unroll
    for (int j = 0; j < 2; j++) { /* sets 2 j and 2 j + 1 */
        const float even = total[2 * j] * factor, next = total[2 * j + 1] * factor;
        half[j] = (odd ? next : even) + __shfl_xor_sync(0xFFFFFFFFu, odd ? even : next, 1);
    }
    return (second ? half[1] : half[0]) +
           __shfl_xor_sync(0xFFFFFFFFu, second ? half[0] : half[1], 2);
}

/* Adds the sums of the four digits, one in each of four neighboring lanes. All four lanes get the
 * result. */
template <class F> static __device__ __forceinline__ float sum_digits(const machine &m, float total)
{
    total *= F::digit_factor(m.lane & 3);
    total += __shfl_xor_sync(0xFFFFFFFFu, total, 1);
    total += __shfl_xor_sync(0xFFFFFFFFu, total, 2);
    return total;
}

/* Reads one column of row j. */
static __device__ __noinline__ float read_column(const machine m, int j, int column)
{
    const input &in = own().in[m.instruction];
    float v[VECTOR], value = 0.0f;
    read_chunk(m, in, j, column / VECTOR * VECTOR, keep_policy(), v);
#pragma unroll
    for (int i = 0; i < VECTOR; i++)
        value = column % VECTOR == i ? v[i] : value;
    return value;
}

/* read_scaled for an input with a column map. */
static __device__ __forceinline__ float read_mapped(const machine &m, const input &in, int j, int n,
                                                    float *v)
{
    float squares = 0.0f;
    for (int i = 0; i < CHUNK_COLUMNS; i++) {
        const bool real = n * CHUNK_COLUMNS + i < in.columns;
        const int column = real ? in.column_map[n * CHUNK_COLUMNS + i] : 0;
        v[i] = real ? read_column(m, j, column) : 0.0f;
        if (in.g) {
            squares = fmaf(v[i], v[i], squares);
            v[i] *= in.g[column];
        }
    }
    return squares;
}

/* Reads chunk n of row j and multiplies it by the weights of the norm, if there is a norm. Returns
 * the sum of squares of the values before this multiplication; without a norm 0. */
static __device__ __forceinline__ float read_scaled(const machine &m, const input &in, int j, int n,
                                                    float *v)
{
    if (in.column_map)
        return read_mapped(m, in, j, n, v);
    const u64 policy = keep_policy();
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < CHUNK_COLUMNS; i += VECTOR) {
        read_chunk(m, in, j, n * CHUNK_COLUMNS + i, policy, v + i);
        if (in.g)
            squares += weigh(in, n * CHUNK_COLUMNS + i, v + i);
    }
    return squares;
}

/* Converts eight values to words of f16, the even words first. */
static __device__ __forceinline__ uint4 pack_f16(const float *v)
{
    return make_uint4(pack_pair(DTYPE_F16, v[0], v[1]), pack_pair(DTYPE_F16, v[4], v[5]),
                      pack_pair(DTYPE_F16, v[2], v[3]), pack_pair(DTYPE_F16, v[6], v[7]));
}

/* Multiplies eight values by a power of two and converts them to f16, with low parts if `low`. */
static __device__ __forceinline__ chunk scaled_chunk(const float *v, float factor, bool low)
{
    float large[CHUNK_COLUMNS], rest[CHUNK_COLUMNS];
#pragma unroll
    for (int i = 0; i < CHUNK_COLUMNS; i++)
        large[i] = v[i] * factor;
    chunk c = {pack_f16(large), make_uint4(0, 0, 0, 0)};
    if (low) {
        format<DTYPE_F16>::unpack(middle_swapped(c.high), rest);
#pragma unroll
        for (int i = 0; i < CHUNK_COLUMNS; i++)
            rest[i] = large[i] - rest[i];
        c.low = pack_f16(rest);
    }
    return c;
}

/* Converts a chunk of the input of weights of format F. */
template <class F>
static __device__ __forceinline__ chunk converted_chunk(const input &in, const float *v,
                                                        float factor)
{
    return takes_digits<F>(in) ? digits_chunk<F::FOUR_BITS>(v, factor)
                               : scaled_chunk(v, factor, in.low);
}

/* Prepares this warp's run of row j, which has n chunks from chunk `first` on. Writes its power of
 * two, its part of the activation buffer if the rows fit, and its sum of squares. The run is read
 * twice unless each lane has at most one chunk. */
template <class F>
static __device__ __forceinline__ void gather_scaled_row(const machine &m, const input &in, int j,
                                                         int first, int n)
{
    const int top = takes_digits<F>(in) ? digits_top(F::FOUR_BITS) : F16_TOP;
    float v[CHUNK_COLUMNS], squares = 0.0f;
    u32 most = 0;
    for (int c = m.lane; c < n; c += 32) {
        squares += read_scaled(m, in, j, first + c, v);
#pragma unroll
        for (int i = 0; i < CHUNK_COLUMNS; i++)
            most = max(most, __float_as_uint(v[i]) & 0x7FFFFFFFu);
    }
    most = __reduce_max_sync(0xFFFFFFFFu, most);
    const float factor = enlarging(most, top);
    if (m.lane == 0)
        range_of(m, j, m.warp) = reducing(most, top);
    for (int c = m.lane; in.buffered && c < n; c += 32) {
        if (n > 32)
            read_scaled(m, in, j, first + c, v);
        buffer_chunk(m, in, j, first + c, converted_chunk<F>(in, v, factor));
    }
    if (in.g)
        write_squares(m, j, squares);
}

/* gather_run for scaled weights. */
static __device__ __forceinline__ void gather_scaled(const machine &m, const input &in)
{
    int blocks, first = run_of(in.kblocks, m.warp, &blocks);
    with_format(in.format, [&](auto f) {
        for (int j = 0; j < in.count; j++)
            gather_scaled_row<decltype(f)>(m, in, j, first * in.parts * PART_CHUNKS,
                                           blocks * in.parts * PART_CHUNKS);
    });
}

/* Reads and converts chunk n of row j. Used if the rows do not fit in the activation buffer, after
 * gather_scaled. */
template <class F>
static __device__ __noinline__ chunk direct_scaled_chunk(const machine m, int j, int n)
{
    const input &in = own().in[m.instruction];
    float v[CHUNK_COLUMNS];
    read_scaled(m, in, j, n, v);
    return converted_chunk<F>(in, v, 1.0f / range_of(m, j, m.warp));
}

#endif

#endif

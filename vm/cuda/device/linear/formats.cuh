/*
 * Dequantization of scaled weight formats: where the codes, scales and zero points of a task are on
 * the tape (schedule/formats.h), and how codes become the A operand of MMAs. Format 0 of a task is
 * unscaled: its dtype is MGL_WEIGHT. Formats 1 to MGL_SCALED are scaled. For each of them, the host
 * defines MGL_FORMAT_n as the template arguments of scaled_weights.
 *
 * A block has 64 bytes of each row: 2 or 4 parts of 32 columns. The 16 bytes of a lane hold 8 codes
 * of each part. There are three paths of arithmetic:
 *
 *   f16 products, for e4m3 codes, and for integer codes if `low` of the input is false:
 *   decode() converts the codes to four words of f16, exactly for all codes. The words have the
 *   order of a block of 16-bit weights, so each part takes one MMA with f16 activations. An
 *   integer code u needs only a mask or a byte permutation: the low bits of an f16 number with an
 *   exponent of 0 are the subnormal number u 2^-24.
 *
 *   Integer products, for integer codes if `low` of the input is true: the activations need more
 *   than 16 bits, or half_takes_digits() is true. MMAs of 8-bit integers multiply the codes by four
 *   digits of each activation (linear/scaled_input.cuh). Integer sums are exact in any order. 8-bit
 *   codes are operands without conversion. A byte of 4-bit codes has a low code a and a high code
 *   b, for the activations x and y. Two products of bytes give the sum without shifts:
 *   (16 b + a) y + a (16 x - y) = 16 (a x + b y).
 *
 *   Panels (linear/panel_weights.cuh): rounded() dequantizes each weight to the 16-bit dtype of the
 *   program.
 *
 * The first two paths subtract zero points once for each group: sum((u - zero) x) = sum(u x) -
 * zero sum(x). The scale of a group multiplies the sum of the group in f32.
 */
#ifndef MGL_DEVICE_LINEAR_FORMATS_CUH
#define MGL_DEVICE_LINEAR_FORMATS_CUH

#include "vm/cuda/device/numbers.cuh"

/* Weight codes, numbered like mgl_weight_code. */
enum {
#define MGL_WEIGHT_CODE(id, ...) CODE_##id,
#include "base/weight_codes.def"
};

/* The scale of a group, and its zero point or minimum. */
struct group_scale {
    float scale, zero;
};

/* Whether a task has an input of `columns` columns and of kind `kind` (MGL_INPUT_...). `inputs`: a
 * bit set of MGL_CUDA_INPUT (record.h). */
static __device__ __forceinline__ constexpr bool has_input(unsigned inputs, int columns, int kind)
{
    return inputs >> MGL_CUDA_INPUT(columns == MGL_HIDDEN     ? 0
                                    : columns == MGL_ATTENDED ? 1
                                                              : 2,
                                    kind) &
           1;
}

/* CODE: code of the weights. SCALES: dtype of the scales. GROUP: columns that share a scale; 0: all
 * columns. SHARED: 1: all rows of a row group share a scale. ZEROS: 1: each scale has a zero point.
 * FACTORS: 1: the scales are row factors: the epilogue multiplies by them, and the tape has no
 * scales. USED: the inputs of tasks with this format (has_input). */
template <int CODE, int SCALES, int GROUP, int SHARED, int ZEROS, int FACTORS, int USED>
struct scaled_weights {
    static_assert(CODE == CODE_INT8 || CODE == CODE_INT4 || CODE == CODE_UINT4 || CODE == CODE_E4M3,
                  "decode() does not support it");
    enum {
        FOUR_BITS = CODE == CODE_INT4 || CODE == CODE_UINT4,
        PARTS = FOUR_BITS ? 4 : 2,        /* parts of a block */
        BLOCK = PARTS * MGL_PART_COLUMNS, /* columns of a block */
        /* A unit is the columns that one MMA adds: a part, or half a part if groups have 16
         * columns. */
        SPLIT = GROUP == MGL_PART_COLUMNS / 2 ? 2 : 1,
        UNITS = PARTS * SPLIT,                          /* units of a block */
        GROUP_UNITS = GROUP * SPLIT / MGL_PART_COLUMNS, /* units of a group; 0: all columns */
        SCALE_DTYPE = SCALES,
        GROUP_COLUMNS = GROUP, /* 0: all columns */
        ON_TAPE = !FACTORS,
        STORED_ZEROS = ZEROS,
        HAS_FACTORS = FACTORS,
        SCALE_ROWS = SHARED ? 1 : MGL_ROW_GROUP,
        HAS_MINIMUMS = CODE == CODE_UINT4, /* each scale has a minimum, of the same dtype */
        HAS_OFFSET = CODE != CODE_E4M3,    /* codes are integers with a zero point or a minimum */
        INTEGERS = HAS_OFFSET,
        INPUTS = USED,
        PAIR_UNITS = 2 * SPLIT,   /* units of two parts */
        MMAS = FOUR_BITS ? 2 : 1, /* integer MMAs of a block (block_integers) */
        /* The code of base sums (add_integers): the zero point if all groups have the same zero
         * point, else 1. */
        BASE = ZEROS || HAS_MINIMUMS ? 1
               : FOUR_BITS           ? 8
                                     : 128
    };

    /* Blocks of a row. */
    static __device__ __forceinline__ constexpr int blocks(int columns)
    {
        return (columns + BLOCK - 1) / BLOCK;
    }

    /* Groups of a row that have scales on the tape. */
    static __device__ __forceinline__ constexpr int groups(int columns)
    {
        return FACTORS ? 0 : GROUP ? (columns + GROUP - 1) / (GROUP ? GROUP : 1) : 1;
    }

    /* Blocks of scales and zero points before the k blocks of a row group. */
    static __device__ __forceinline__ constexpr int scale_blocks(int columns)
    {
        const int scale = format<SCALES>::SIZE * (HAS_MINIMUMS ? 2 : 1) + (ZEROS ? 1 : 0);
        const int bytes = groups(columns) * SCALE_ROWS * scale;
        return (bytes + MGL_BLOCK_BYTES - 1) / MGL_BLOCK_BYTES;
    }

    /* The group of unit `unit` of a row. */
    static __device__ __forceinline__ constexpr int group_of(int unit)
    {
        return unit / (GROUP ? GROUP_UNITS : unit + 1);
    }

    /* The activations of a lane in unit `unit` of a row, from its activations `x` in the whole
     * part. If a unit is half a part, it has two of the four quarters: other lanes get zeros. */
    static __device__ __forceinline__ uint2 in_unit(uint2 x, int unit, int lane)
    {
        const bool in = SPLIT == 1 || (lane >> 1 & 1) == unit % 2;
        return make_uint2(in ? x.x : 0, in ? x.y : 0);
    }

    /* The scale 1, and the zero point of codes without stored zero points. */
    static __device__ __forceinline__ constexpr group_scale default_scale()
    {
        return {1.0f, CODE == CODE_INT8 ? 128.0f : CODE == CODE_INT4 ? 8.0f : 0.0f};
    }

    /* The number of a code is this factor times the result of decode(). */
    static __device__ __forceinline__ constexpr float decoded_factor()
    {
        return CODE != CODE_E4M3 ? 16777216.0f : CONVERTS_E4M3 ? 1.0f : 256.0f;
    }

    /* The words of part `part` of a lane's 16 bytes: columns 0 and 1, 2 and 3, 4 and 5, 6 and 7 of
     * its quarter, as f16. An integer u becomes u 2^-24; in the second and the fourth word of 4-bit
     * codes, it becomes u 2^-20. Without an instruction that converts e4m3 numbers: the bits of an
     * e4m3 number, shifted, are an f16 number that is 2^8 times smaller; this also holds for
     * subnormal numbers. */
    static __device__ __forceinline__ uint4 decode(uint4 raw, int part)
    {
        u32 words[4];
        if (FOUR_BITS) {
            const u32 bits = part == 0 ? raw.x : part == 1 ? raw.y : part == 2 ? raw.z : raw.w;
#pragma unroll
            for (int i = 0; i < 4; i++)
                words[i] = bits >> i / 2 * 8 & (i % 2 ? 0x00F000F0u : 0x000F000Fu);
        } else {
            const u32 bits[2] = {part ? raw.z : raw.x, part ? raw.w : raw.y};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const u32 pair = bits[i / 2];
                if (CODE == CODE_INT8) {
                    words[i] = __byte_perm(pair, 0, i % 2 ? 0x4342 : 0x4140);
                } else if (CONVERTS_E4M3) {
                    words[i] = f16_of_e4m3((u16)(i % 2 ? pair >> 16 : pair));
                } else {
                    const u32 high = __byte_perm(pair, 0, i % 2 ? 0x3424 : 0x1404);
                    words[i] = (high & 0x80008000u) | (high >> 1 & 0x3F803F80u);
                }
            }
        }
        return make_uint4(words[0], words[1], words[2], words[3]);
    }

    /* Parts 2 pair and 2 pair + 1 of a lane's 16 bytes, as the A operand of multiply_integers().
     * Rows 0 to 7 of the operand are the first part, rows 8 to 15 the second part. A lane has two
     * words of a quarter of each part, in the order of digit_words(). 8-bit codes: columns 0 to 3,
     * then columns 4 to 7. 4-bit codes: the low codes (columns 0, 4, 1 and 5), then the whole
     * bytes. */
    static __device__ __forceinline__ uint4 integers(uint4 raw, int pair)
    {
        if (!FOUR_BITS)
            return make_uint4(raw.x, raw.z, raw.y, raw.w);
        const u32 first = pair ? raw.z : raw.x, second = pair ? raw.w : raw.y;
        return make_uint4(first & 0x0F0F0F0Fu, second & 0x0F0F0F0Fu, first, second);
    }

    /* The A operand of MMA `n` of a block, from a lane's 16 bytes, if each group consists of whole
     * blocks. The words keep their order, so no register is moved: words 0 and 2 are in rows 0 to
     * 7, words 1 and 3 in rows 8 to 15. 4-bit codes: MMA 0 has the whole bytes, MMA 1 the low
     * codes. */
    static __device__ __forceinline__ uint4 block_integers(uint4 raw, int n)
    {
        const u32 mask = n == 0 ? 0xFFFFFFFFu : 0x0F0F0F0Fu;
        return make_uint4(raw.x & mask, raw.y & mask, raw.z & mask, raw.w & mask);
    }

    /* Four bytes in which all codes are BASE. */
    static __device__ __forceinline__ constexpr u32 base_codes()
    {
        return BASE * (FOUR_BITS ? 0x11111111u : 0x01010101u);
    }

    /* Adds the products of a group to `total`, for one digit of the activations. `sum`: the sum of
     * the products of codes and digits. `base`: the value of this sum if all codes of the group
     * were BASE. For 4-bit codes, the result is 16 times too large; digit_factor() divides it by
     * 16. */
    static __device__ __forceinline__ float add_integers(float total, group_scale of, int sum,
                                                         int base)
    {
        if (HAS_MINIMUMS)
            return fmaf(of.zero, (float)base, fmaf(of.scale, (float)sum, total));
        sum -= STORED_ZEROS ? (int)of.zero * base : base;
        return ON_TAPE ? fmaf(of.scale, (float)sum, total) : (float)sum;
    }

    /* The factor of the sums of digit `digit`: 2^(8 digit), divided by 16 for 4-bit codes. */
    static __device__ __forceinline__ float digit_factor(int digit)
    {
        return __uint_as_float((127 + 8 * digit - (FOUR_BITS ? 4 : 0)) << 23);
    }

    /* The words of a part whose codes are all 1. */
    static __device__ __forceinline__ uint4 decoded_ones()
    {
        const u32 ones = FOUR_BITS ? 0x11111111u : 0x01010101u;
        return decode(make_uint4(ones, ones, ones, ones), 0);
    }

    /* The weights of a part from its words, (code - zero) * scale, rounded to 16 bits. */
    template <int DTYPE>
    static __device__ __forceinline__ uint4 rounded(uint4 words, group_scale of)
    {
        float v[8];
        u32 to[4];
        format<DTYPE_F16>::unpack(words, v);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float factor = decoded_factor() * (FOUR_BITS && i / 2 % 2 ? 0.0625f : 1.0f);
            v[i] = HAS_MINIMUMS ? fmaf(v[i] * factor, of.scale, of.zero)
                                : fmaf(v[i], factor, HAS_OFFSET ? -of.zero : 0.0f) * of.scale;
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[i] = pack_pair(DTYPE, v[2 * i], v[2 * i + 1]);
        return make_uint4(to[0], to[1], to[2], to[3]);
    }

    /* The sum of a group, from two sums of its MMAs: `even` is the sum of the first and the third
     * words of the parts, `odd` the sum of the second and the fourth words. */
    static __device__ __forceinline__ float sum_of(float even, float odd)
    {
        return FOUR_BITS ? fmaf(odd, 0.0625f, even) : even + odd;
    }

    /* Adds the products of a group to `total`. `sum`: the sum of the group. `ones`: the sum that
     * the group would have if all its codes were 1. */
    static __device__ __forceinline__ float add_group(float total, group_scale of, float sum,
                                                      float ones)
    {
        if (HAS_MINIMUMS)
            return fmaf(of.zero, ones, fmaf(of.scale, sum, total));
        const float group = HAS_OFFSET ? fmaf(-of.zero, ones, sum) : sum;
        return ON_TAPE ? fmaf(of.scale, group, total) : group;
    }

    /* Byte offsets of the scale and the zero point or minimum of a row in the scales of its row
     * group. */
    static __device__ __forceinline__ constexpr int scale_at(int group, int row)
    {
        return (group * SCALE_ROWS + (SHARED ? 0 : row)) * format<SCALES>::SIZE;
    }

    static __device__ __forceinline__ constexpr int zero_at(int groups, int group, int row)
    {
        const int at =
            HAS_MINIMUMS ? scale_at(group, row) : group * SCALE_ROWS + (SHARED ? 0 : row);
        return scale_at(groups, 0) + at;
    }
};

/* The scaled format with the number N. */
template <int N> struct scaled_format;
#if MGL_SCALED >= 1
template <> struct scaled_format<1> : scaled_weights<MGL_FORMAT_1> {
};
#endif
#if MGL_SCALED >= 2
template <> struct scaled_format<2> : scaled_weights<MGL_FORMAT_2> {
};
#endif
#if MGL_SCALED >= 3
template <> struct scaled_format<3> : scaled_weights<MGL_FORMAT_3> {
};
#endif
#if MGL_SCALED >= 4
template <> struct scaled_format<4> : scaled_weights<MGL_FORMAT_4> {
};
#endif

#if MGL_SCALED
/* Calls use(F()), where F is the scaled format with this number. */
template <int N = 1, class USE>
static __device__ __forceinline__ auto with_format(int number, const USE &use)
{
    if constexpr (N < MGL_SCALED)
        if (number != N)
            return with_format<N + 1>(number, use);
    return use(scaled_format<N>());
}

/* Whether a format has row factors. */
static __device__ __forceinline__ bool has_factors(int number)
{
    return number > 0 && with_format(number, [](auto f) { return (bool)decltype(f)::HAS_FACTORS; });
}
#endif

/* Whether products with format `number` and an input of `columns` columns of 16 bits convert the
 * input to digits, unless they have a column map (mgl_product_takes_digits). */
static __device__ __forceinline__ bool half_takes_digits(int number, int columns)
{
#if MGL_SCALED
    if (number > 0)
        return with_format(number, [&](auto f) {
            return has_input(decltype(f)::INPUTS, columns, MGL_INPUT_DIGITS);
        });
#endif
    return false;
}

/* Parts of 32 columns in a block of a format; 1 for format 0. */
static __device__ __forceinline__ int parts_of_block(int number)
{
#if MGL_SCALED
    if (number > 0)
        return with_format(number, [](auto f) { return (int)decltype(f)::PARTS; });
#endif
    return 1;
}

/* Bytes at the end of the activation buffer for range_of() of scaled_input.cuh. */
enum { RANGE_BYTES = MGL_CUDA_RANGE_BYTES(MGL_ROWS, MGL_WARPS) };

#endif

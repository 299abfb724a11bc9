/*
 * Dequantization of scaled weight formats: where the codes, scales and zero points of a task are on
 * the tape (schedule/formats.h), and how codes become the A operand of MMAs. Format 0 of a task is
 * unscaled: its dtype is MGL_WEIGHT. Formats 1 to MGL_SCALED are scaled. For each of them, the host
 * defines MGL_FORMAT_n as the template arguments of scaled_weights.
 *
 * A block has 64 bytes of each row: 2 or 4 parts of 32 columns. The 16 bytes of a lane hold 8 codes
 * of each part. decode() converts these codes to four words of f16, exactly for all codes, and
 * subtracts zero points in f16, exactly too. The words have the order of a block of 16-bit weights,
 * so each part takes one MMA with f16 activations. The scale of a group multiplies the f32 sums of
 * the group.
 */
#ifndef MGL_DEVICE_LINEAR_FORMATS_CUH
#define MGL_DEVICE_LINEAR_FORMATS_CUH

#include "vm/cuda/device/numbers.cuh"

/* Weight codes, numbered like mgl_weight_code. */
enum {
#define MGL_WEIGHT_CODE(id, ...) CODE_##id,
#include "base/weight_codes.def"
};

/* CODE: code of the weights. SCALES: dtype of the scales. GROUP: columns that share a scale; 0: all
 * columns. SHARED: 1: all rows of a row group share a scale. ZEROS: 1: each scale has a zero point.
 * FACTORS: 1: the scales are row factors: the epilogue multiplies by them, and the tape has no
 * scales. */
template <int CODE, int SCALES, int GROUP, int SHARED, int ZEROS, int FACTORS>
struct scaled_weights {
    static_assert(CODE == CODE_INT8 || CODE == CODE_INT4 || CODE == CODE_E4M3, "decode() lacks it");
    enum {
        PARTS = CODE == CODE_INT4 ? 4 : 2, /* parts of a block */
        GROUP_PARTS = GROUP / MGL_PART_COLUMNS,
        SCALE_DTYPE = SCALES,
        ON_TAPE = !FACTORS,
        STORED_ZEROS = ZEROS,
        HAS_FACTORS = FACTORS,
        SCALE_ROWS = SHARED ? 1 : MGL_ROW_GROUP
    };

    /* Groups of a row that have scales on the tape. */
    static __device__ __forceinline__ int groups(int columns)
    {
        return FACTORS ? 0 : GROUP ? (columns + GROUP - 1) / (GROUP ? GROUP : 1) : 1;
    }

    /* Blocks of scales and zero points before the k blocks of a row group. */
    static __device__ __forceinline__ int scale_blocks(int columns)
    {
        const int bytes = groups(columns) * SCALE_ROWS * (format<SCALES>::SIZE + (ZEROS ? 1 : 0));
        return (bytes + MGL_BLOCK_BYTES - 1) / MGL_BLOCK_BYTES;
    }

    /* The group of part `part` of a row. */
    static __device__ __forceinline__ int group_of(int part)
    {
        return GROUP ? part / (GROUP ? GROUP_PARTS : 1) : 0;
    }

    /* 1024 + zero point, twice, as the two f16 numbers that decode() subtracts. */
    static __device__ __forceinline__ u32 zero_words(u32 zero)
    {
        return (0x6400u + zero) * 0x10001u; /* 0x6400: 1024 in f16 */
    }

    /* zero_words of a format without stored zero points. */
    static __device__ __forceinline__ u32 usual_zero()
    {
        return zero_words(CODE == CODE_INT4 ? 8 : 128);
    }

    /* The number of a code is this factor times the result of decode(). */
    static __device__ __forceinline__ constexpr float decoded_factor()
    {
        return CODE == CODE_E4M3 ? 256.0f : 1.0f;
    }

    /* The words of part `part` of a lane's 16 bytes: columns 0 and 1, 2 and 3, 4 and 5, 6 and 7 of
     * its quarter, as f16. An integer u becomes the low bits of the f16 number 1024 + u. The bits
     * of an e4m3 number, shifted, are an f16 number that is 2^8 times smaller; this also holds for
     * subnormal numbers. */
    static __device__ __forceinline__ uint4 decode(uint4 raw, int part, u32 zero)
    {
        u32 words[4];
        if (CODE == CODE_INT4) {
            const u32 bits = part == 0 ? raw.x : part == 1 ? raw.y : part == 2 ? raw.z : raw.w;
#pragma unroll
            for (int i = 0; i < 4; i++)
                words[i] = subtract_halves((bits >> 4 * i & 0x000F000Fu) | 0x64006400u, zero);
        } else {
            const u32 bits[2] = {part ? raw.z : raw.x, part ? raw.w : raw.y};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const u32 pair = bits[i / 2];
                if (CODE == CODE_INT8) {
                    words[i] = subtract_halves(
                        __byte_perm(pair, 0x64646464u, i % 2 ? 0x4342 : 0x4140), zero);
                } else {
                    const u32 high = __byte_perm(pair, 0, i % 2 ? 0x3424 : 0x1404);
                    words[i] = (high & 0x80008000u) | (high >> 1 & 0x3F803F80u);
                }
            }
        }
        return make_uint4(words[0], words[1], words[2], words[3]);
    }

    /* Byte offsets of the scale and the zero point of a row in the scales of its row group. */
    static __device__ __forceinline__ int scale_at(int group, int row)
    {
        return (group * SCALE_ROWS + (SHARED ? 0 : row)) * format<SCALES>::SIZE;
    }

    static __device__ __forceinline__ int zero_at(int groups, int group, int row)
    {
        return scale_at(groups, 0) + group * SCALE_ROWS + (SHARED ? 0 : row);
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

/*
 * Round to nearest. See round.h. The formulas are those of uniform quantization with scales of
 * the largest magnitude (Nagel et al., "A White Paper on Neural Network Quantization", 2021,
 * section 2):
 *
 *     integers, symmetric     s = max|w| / (2^(b-1) - 1)         q = clamp(round(w / s), +-limit)
 *     integers, asymmetric    s = (max w - min w) / (2^b - 1)    z = round(-min w / s)
 *                             with min w <= 0 <= max w           u = clamp(round(w / s) + z)
 *     e4m3                    s = max|w| / 448                   q = round to e4m3(w / s)
 *
 * The scale is first rounded to its dtype, and the codes follow from the rounded scale. If the
 * rounded scale is so small that clamping would change a weight by more than half a step, the next
 * larger scale is used. Ties are rounded to even. A group of zeros has the scale 1.
 */
#include "quantize/round.h"

#include <string.h>

#define LARGEST_E4M3 448.0f

/* The largest f32 that the dtype holds is finite; a larger value becomes infinite. */
static float to_dtype(float value, mgl_dtype dtype)
{
    uint32_t stored = 0;
    mgl_convert(&stored, dtype, &value, MGL_F32, 1);
    mgl_convert(&value, MGL_F32, &stored, dtype, 1);
    return value;
}

/* The next larger number of the dtype. `value` is a number of the dtype, and is not negative. */
static float next_above(float value, mgl_dtype dtype)
{
    uint32_t stored = 0;
    mgl_convert(&stored, dtype, &value, MGL_F32, 1);
    stored++;
    mgl_convert(&value, MGL_F32, &stored, dtype, 1);
    return value;
}

/* Rounds a scale to a number of its dtype that is not below `least` and not 0. */
static float round_scale(float exact, float least, mgl_dtype dtype)
{
    float scale = to_dtype(exact, dtype);
    while (scale < least || scale == 0)
        scale = next_above(scale, dtype);
    return scale;
}

static bool is_finite(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return (bits & 0x7FFFFFFF) < 0x7F800000;
}

/* Rounds to an integer, ties to even, for magnitudes below 2^22: at 1.5 x 2^23 the last bit of an
 * f32 is 1. */
static int round_integer(float value)
{
    const float magic = 12582912.0f;
    return (int)((value + magic) - magic);
}

static int clamp(int value, int least, int most)
{
    return value < least ? least : value > most ? most : value;
}

uint8_t mgl_round_e4m3(float value)
{
    const float least_normal = 0.015625f; /* 2^-6 */
    uint32_t bits;
    memcpy(&bits, &value, 4);
    const uint8_t sign = (uint8_t)(bits >> 24 & 0x80);
    float magnitude = value < 0 ? -value : value;
    if (magnitude > LARGEST_E4M3)
        magnitude = LARGEST_E4M3;
    if (magnitude < least_normal) /* multiples of 2^-9; 8 of them are the least normal number */
        return sign | (uint8_t)round_integer(magnitude * 512);
    memcpy(&bits, &magnitude, 4);
    bits += 0x7FFFF + (bits >> 20 & 1); /* 20 of 23 mantissa bits are dropped */
    return sign | (uint8_t)((bits >> 20) - ((127 - 7) << 3));
}

/* The least and the largest weight of a group, and 0. */
typedef struct range {
    float least, most;
} range;

static range find_range(const float *weights, int64_t count)
{
    range r = {0, 0};
    for (int64_t i = 0; i < count; i++) {
        r.least = weights[i] < r.least ? weights[i] : r.least;
        r.most = weights[i] > r.most ? weights[i] : r.most;
    }
    return r;
}

/* Integers without zero points: q + 2^(bits - 1). Returns the scale. */
static float round_symmetric(const float *weights, int64_t count, mgl_weight_format format,
                             float largest, uint8_t *codes)
{
    const int zero = mgl_weight_code_zero(format.code), limit = zero - 1;
    const float exact = largest / (float)limit, least = largest / ((float)limit + 0.5f);
    const float scale = round_scale(exact, least, format.scales);
    for (int64_t i = 0; i < count; i++)
        codes[i] = (uint8_t)(clamp(round_integer(weights[i] / scale), -limit, limit) + zero);
    return scale;
}

static float round_asymmetric(const float *weights, int64_t count, mgl_weight_format format,
                              range r, uint8_t *codes, uint8_t *zero)
{
    const int most = 2 * mgl_weight_code_zero(format.code) - 1;
    const float exact = r.most / (float)most - r.least / (float)most; /* without overflow */
    const float scale = round_scale(exact, exact, format.scales);
    const int z = clamp(round_integer(-r.least / scale), 0, most);
    for (int64_t i = 0; i < count; i++)
        codes[i] = (uint8_t)clamp(round_integer(weights[i] / scale) + z, 0, most);
    *zero = (uint8_t)z;
    return scale;
}

static float round_float(const float *weights, int64_t count, mgl_dtype dtype, float largest,
                         uint8_t *codes)
{
    const float half_step = 16; /* half the distance of 448 to the number below */
    const float least = largest / (LARGEST_E4M3 + half_step);
    const float scale = round_scale(largest / LARGEST_E4M3, least, dtype);
    for (int64_t i = 0; i < count; i++)
        codes[i] = mgl_round_e4m3(weights[i] / scale);
    return scale;
}

/* A group of zeros. */
static float round_zeros(int64_t count, mgl_weight_format format, uint8_t *codes, uint8_t *zero)
{
    const bool is_middle = format.code != MGL_CODE_E4M3 && !format.zeros;
    memset(codes, is_middle ? mgl_weight_code_zero(format.code) : 0, (size_t)count);
    if (format.zeros)
        *zero = 0;
    return 1;
}

mgl_rounded mgl_round_row(const float *weights, int64_t columns, mgl_weight_format format,
                          uint8_t *codes, float *scales, uint8_t *zeros, int64_t *column)
{
    const int64_t group = format.group == MGL_GROUP_ALL ? columns : format.group;
    for (int64_t i = 0; i < columns; i++)
        if (!is_finite(weights[i]))
            return *column = i, MGL_ROUND_NOT_FINITE;
    for (int64_t at = 0, g = 0; at < columns; at += group, g++) {
        const int64_t count = columns - at < group ? columns - at : group;
        const range r = find_range(weights + at, count);
        const float largest = -r.least > r.most ? -r.least : r.most;
        uint8_t *const zero = format.zeros ? &zeros[g] : NULL;
        if (largest == 0)
            scales[g] = round_zeros(count, format, codes + at, zero);
        else if (format.code == MGL_CODE_E4M3)
            scales[g] = round_float(weights + at, count, format.scales, largest, codes + at);
        else if (format.zeros)
            scales[g] = round_asymmetric(weights + at, count, format, r, codes + at, zero);
        else
            scales[g] = round_symmetric(weights + at, count, format, largest, codes + at);
        if (!is_finite(scales[g]))
            return *column = at, MGL_ROUND_TOO_LARGE;
    }
    return MGL_ROUNDED;
}

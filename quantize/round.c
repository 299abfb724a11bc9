/*
 * Round to nearest, and clipping search. See round.h. The formulas are those of uniform
 * quantization with scales of the largest magnitude (Nagel et al., "A White Paper on Neural Network
 * Quantization", 2021, section 2):
 *
 *     integers, symmetric     s = max|w| / (2^(b-1) - 1)         q = clamp(round(w / s), +-limit)
 *     integers, asymmetric    s = (max w - min w) / (2^b - 1)    z = round(-min w / s)
 *                             with min w <= 0 <= max w           u = clamp(round(w / s) + z)
 *     e4m3                    s = max|w| / 448                   q = round to e4m3(w / s)
 *
 * The scale is first rounded to its dtype, and the codes follow from the rounded scale. If the
 * rounded scale is so small that clamping would change a weight by more than half a step, the next
 * larger scale is used. Ties are rounded to even. A group of zeros has the scale 1.
 *
 * Clipping search: the range is multiplied by ratios from 1 down, and the grid with the least
 * squared error is taken ("MSE range setting" in section 3.1 of the same paper). Symmetric integers
 * then use the code -2^(b-1) too.
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

/* ---- grids ----------------------------------------------------------------------------------- */

/* Integers without zero points: q + 2^(bits - 1). The scale is `ratio` times max|w| / limit. */
static mgl_grid fit_symmetric(mgl_weight_format format, range r, float ratio, bool search)
{
    const int zero = mgl_weight_code_zero(format.code), limit = zero - 1;
    const float largest = -r.least > r.most ? -r.least : r.most;
    const float exact = largest / (float)limit, least = largest / ((float)limit + 0.5f);
    const float scale = round_scale(ratio * exact, ratio < 1 ? 0 : least, format.scales);
    return (mgl_grid){.code = format.code,
                      .scale = scale,
                      .zero = zero,
                      .least = search ? 0 : 1,
                      .most = 2 * zero - 1};
}

static mgl_grid fit_asymmetric(mgl_weight_format format, range r, float ratio)
{
    const int most = 2 * mgl_weight_code_zero(format.code) - 1;
    const float exact = ratio * r.most / (float)most - ratio * r.least / (float)most;
    const float scale = round_scale(exact, ratio < 1 ? 0 : exact, format.scales);
    const int zero = clamp(round_integer(-ratio * r.least / scale), 0, most);
    return (mgl_grid){.code = format.code, .scale = scale, .zero = zero, .least = 0, .most = most};
}

static mgl_grid fit_float(mgl_weight_format format, range r, float ratio)
{
    const float half_step = 16; /* half the distance of 448 to the number below */
    const float largest = -r.least > r.most ? -r.least : r.most;
    const float least = ratio < 1 ? 0 : largest / (LARGEST_E4M3 + half_step);
    return (mgl_grid){.code = format.code,
                      .scale = round_scale(ratio * largest / LARGEST_E4M3, least, format.scales)};
}

static mgl_grid fit_range(mgl_weight_format format, range r, float ratio, bool search)
{
    return format.code == MGL_CODE_E4M3 ? fit_float(format, r, ratio)
           : format.zeros               ? fit_asymmetric(format, r, ratio)
                                        : fit_symmetric(format, r, ratio, search);
}

/* The grid of a group of zeros. */
static mgl_grid fit_zeros(mgl_weight_format format)
{
    const int zero =
        format.code == MGL_CODE_E4M3 || format.zeros ? 0 : mgl_weight_code_zero(format.code);
    return (mgl_grid){.code = format.code, .scale = 1, .zero = zero, .least = zero, .most = zero};
}

uint8_t mgl_grid_code(const mgl_grid *grid, float weight)
{
    if (grid->code == MGL_CODE_E4M3)
        return mgl_round_e4m3(weight / grid->scale);
    const float limit = 1 << 20; /* round_integer needs less than 2^22 */
    float q = weight / grid->scale;
    q = q < -limit ? -limit : q > limit ? limit : q;
    return (uint8_t)clamp(round_integer(q) + grid->zero, grid->least, grid->most);
}

float mgl_grid_weight(const mgl_grid *grid, uint8_t code)
{
    return mgl_weight_code_number(grid->code, code, grid->zero) * grid->scale;
}

/* ---- clipping search ------------------------------------------------------------------------- */

enum { LANES = 8 }; /* sums that are kept apart, so that the compiler can use vectors */

static float sum_lanes(const float lanes[LANES])
{
    float sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += lanes[i];
    return sum;
}

/* The squared error of integers. `count` is a multiple of LANES. */
static float measure_integers(const float *weights, int64_t count, const mgl_grid *grid,
                              const float *importance)
{
    const float magic = 12582912.0f, scale = grid->scale; /* see round_integer */
    const float inverse = 1 / scale;
    const float least = (float)(grid->least - grid->zero), most = (float)(grid->most - grid->zero);
    float lanes[LANES] = {0};
    for (int64_t at = 0; at < count; at += LANES) {
        float errors[LANES];
        for (int i = 0; i < LANES; i++) {
            float q = weights[at + i] * inverse;
            q = q < least ? least : q;
            q = q > most ? most : q;
            q = (q + magic) - magic;
            errors[i] = weights[at + i] - q * scale;
        }
        if (importance)
            for (int i = 0; i < LANES; i++)
                lanes[i] += errors[i] * errors[i] * importance[at + i];
        else
            for (int i = 0; i < LANES; i++)
                lanes[i] += errors[i] * errors[i];
    }
    return sum_lanes(lanes);
}

static float measure_grid(const float *weights, int64_t count, const mgl_grid *grid,
                          const float *importance)
{
    const bool is_float = grid->code == MGL_CODE_E4M3;
    const int64_t whole = is_float ? 0 : count / LANES * LANES;
    float sum = is_float ? 0 : measure_integers(weights, whole, grid, importance);
    for (int64_t i = whole; i < count; i++) {
        const float error = weights[i] - mgl_grid_weight(grid, mgl_grid_code(grid, weights[i]));
        sum += error * error * (importance ? importance[i] : 1);
    }
    return sum;
}

mgl_grid mgl_grid_fit(const float *weights, int64_t count, mgl_weight_format format, mgl_fit fit)
{
    enum { STEPS = 48, OF = 80 }; /* ratios 1, 79/80, ..., 33/80 */
    const range r = find_range(weights, count);
    if (r.least == 0 && r.most == 0)
        return fit_zeros(format);
    mgl_grid best = fit_range(format, r, 1, fit.search);
    if (!fit.search || !is_finite(best.scale))
        return best;
    float least = measure_grid(weights, count, &best, fit.importance);
    for (int i = 1; i < STEPS; i++) {
        const mgl_grid grid = fit_range(format, r, (float)(OF - i) / OF, true);
        const float error = measure_grid(weights, count, &grid, fit.importance);
        if (error < least) {
            least = error;
            best = grid;
        }
    }
    return best;
}

bool mgl_grid_is_finite(const mgl_grid *grid)
{
    return is_finite(grid->scale * 448); /* the largest code, of e4m3 */
}

/* ---- rows ------------------------------------------------------------------------------------ */

mgl_rounded mgl_round_row(const float *weights, int64_t columns, mgl_weight_format format,
                          mgl_fit fit, uint8_t *codes, float *scales, uint8_t *zeros,
                          int64_t *column)
{
    const int64_t group = format.group == MGL_GROUP_ALL ? columns : format.group;
    for (int64_t i = 0; i < columns; i++)
        if (!is_finite(weights[i]))
            return *column = i, MGL_ROUND_NOT_FINITE;
    for (int64_t at = 0, g = 0; at < columns; at += group, g++) {
        const int64_t count = columns - at < group ? columns - at : group;
        const mgl_fit own = {fit.search, fit.importance ? fit.importance + at : NULL};
        const mgl_grid grid = mgl_grid_fit(weights + at, count, format, own);
        if (!mgl_grid_is_finite(&grid))
            return *column = at, MGL_ROUND_TOO_LARGE;
        scales[g] = grid.scale;
        if (format.zeros)
            zeros[g] = (uint8_t)grid.zero;
        for (int64_t i = at; i < at + count; i++)
            codes[i] = mgl_grid_code(&grid, weights[i]);
    }
    return MGL_ROUNDED;
}

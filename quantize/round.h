/*
 * Round to nearest: the codes, scales and zero points of a row of weights. Called by write.c.
 */
#ifndef MGL_QUANTIZE_ROUND_H
#define MGL_QUANTIZE_ROUND_H

#include "base/weight_format.h"

typedef enum mgl_rounded {
    MGL_ROUNDED,          /* all weights have codes */
    MGL_ROUND_NOT_FINITE, /* a weight is NaN or infinite */
    MGL_ROUND_TOO_LARGE   /* the dtype of the scales cannot hold a scale */
} mgl_rounded;

/* Rounds a row of `columns` weights to codes of a scaled format whose scales are shared within a
 * row (group_rows 1).
 *
 *     codes    (columns) int8, int4: unsigned, q + 2^(bits - 1) if the format has no zero points;
 *              e4m3: the bits
 *     scales   (groups) values of the dtype format.scales
 *     zeros    (groups) zero points, counted as the codes; not written if the format has none
 *
 * On a failure, *column is the column of the weight, or the first column of the group. */
mgl_rounded mgl_round_row(const float *weights, int64_t columns, mgl_weight_format format,
                          uint8_t *codes, float *scales, uint8_t *zeros, int64_t *column);

/* Rounds to float8_e4m3fn, ties to even. A magnitude above 448, the largest number, becomes 448. */
uint8_t mgl_round_e4m3(float value);

#endif

/*
 * Round to nearest: the codes, scales and zero points of a row of weights. Called by write.c and
 * gptq.c.
 */
#ifndef MGL_QUANTIZE_ROUND_H
#define MGL_QUANTIZE_ROUND_H

#include "base/weight_format.h"

typedef enum mgl_rounded {
    MGL_ROUNDED,          /* all weights have codes */
    MGL_ROUND_NOT_FINITE, /* a weight is NaN or infinite */
    MGL_ROUND_TOO_LARGE   /* the dtype of the scales, or f32, cannot hold a scale or a number */
} mgl_rounded;

/* The numbers that a group of weights is rounded to: (u - zero) * scale for the integers u from
 * `least` to `most`, or e4m3 numbers times the scale. */
typedef struct mgl_grid {
    mgl_weight_code code;
    float scale; /* a number of the dtype of the scales; infinite: the dtype cannot hold it */
    int zero;    /* counted as the codes */
    int least, most;
} mgl_grid;

/* How the scale of a group is chosen. */
typedef struct mgl_fit {
    bool search;             /* false: from the largest magnitude. true: the clipping search, which
                              * takes the scale with the least squared error */
    const float *importance; /* (count) factors of the squared errors, or NULL: all are 1 */
} mgl_fit;

/* Chooses the grid of a group of `count` finite weights. */
mgl_grid mgl_grid_fit(const float *weights, int64_t count, mgl_weight_format format, mgl_fit fit);

/* Whether the numbers of a grid are finite, as the importer requires. */
bool mgl_grid_is_finite(const mgl_grid *grid);

/* Returns the code of the number next to the weight, and the number of a code. */
uint8_t mgl_grid_code(const mgl_grid *grid, float weight);
float mgl_grid_weight(const mgl_grid *grid, uint8_t code);

/* Rounds a row of `columns` weights to codes of a scaled format whose scales are shared within a
 * row (group_rows 1).
 *
 *     codes    (columns) int8, int4: unsigned, q + 2^(bits - 1) if the format has no zero points;
 *              e4m3: the bits
 *     scales   (groups) values of the dtype format.scales
 *     zeros    (groups) zero points, counted as the codes; not written if the format has none
 *
 * fit.importance has one factor a column. On a failure, *column is the column of the weight, or the
 * first column of the group. */
mgl_rounded mgl_round_row(const float *weights, int64_t columns, mgl_weight_format format,
                          mgl_fit fit, uint8_t *codes, float *scales, uint8_t *zeros,
                          int64_t *column);

/* Rounds to float8_e4m3fn, ties to even. A magnitude above 448, the largest number, becomes 448. */
uint8_t mgl_round_e4m3(float value);

#endif

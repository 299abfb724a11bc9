/*
 * GPTQ: codes of rows of a matrix that minimize the squared output error, column by column with
 * error compensation (Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative
 * Pre-trained Transformers", 2023). Called by layers.c.
 */
#ifndef MGL_QUANTIZE_CALIBRATE_GPTQ_H
#define MGL_QUANTIZE_CALIBRATE_GPTQ_H

#include "quantize/calibrate/blas.h"
#include "quantize/round.h"

/* Rows in progress. */
typedef struct mgl_gptq_rows {
    float *weights; /* (rows, columns) finite; become the numbers of the codes */
    int rows, columns;
    uint8_t *codes; /* (rows, columns) */
    float *scales;  /* (rows, groups) */
    uint8_t *zeros; /* (rows, groups), or NULL */
    float *scratch; /* mgl_gptq_scratch floats */
} mgl_gptq_rows;

size_t mgl_gptq_scratch(int rows, int columns, mgl_weight_format format);

/* Quantizes rows. `factor` (columns, columns): mgl_hessian_factor. `fit`: the search is used for
 * the scales; `importance` is ignored. On MGL_ROUND_TOO_LARGE, *row and *column are the place of
 * the group. */
mgl_rounded mgl_gptq_quantize(const mgl_blas *blas, const float *factor, mgl_weight_format format,
                              mgl_fit fit, const mgl_gptq_rows *rows, int64_t *row,
                              int64_t *column);

#endif

/*
 * The Hessian of a matrix's squared output error: H = X^T X over the inputs X (tokens, columns),
 * without the factor 2, which changes no result. Sums and factors are computed in tiles by several
 * threads, in an order that does not depend on the number of threads. Called by layers.c.
 */
#ifndef MGL_QUANTIZE_CALIBRATE_HESSIAN_H
#define MGL_QUANTIZE_CALIBRATE_HESSIAN_H

#include "quantize/calibrate/blas.h"

/* Adds the products of `rows` inputs (rows, n) to the upper triangle of H (n, n). */
mgl_status mgl_hessian_add(const mgl_blas *blas, int threads, float *h, int n, const float *inputs,
                           int rows, mgl_error *err);

/* Replaces H by H + damping and its factor: the upper triangle R with H = R R^T. The damping is
 * 10 % of the mean of the diagonal: with few samples of other texts, 1 % gives twice the divergence
 * on tales-5m. Without inputs H becomes the identity. Fails if the inputs are not finite. `name` is
 * for the message. */
mgl_status mgl_hessian_factor(const mgl_blas *blas, int threads, float *h, int n, const char *name,
                              mgl_error *err);

#endif

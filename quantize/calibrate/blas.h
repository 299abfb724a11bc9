/*
 * OpenBLAS and LAPACKE, opened at run time: matrix products, triangular solves and Cholesky factors
 * in f32. Used by the calibrated methods of quantize/ and, as an oracle, by tests. Matrices are
 * row-major.
 *
 * Each call runs on one thread, and callers run several calls in parallel. The work is divided
 * independently of the number of threads, so results are bitwise equal for any number of threads.
 * OpenBLAS itself divides a product by its number of threads, and its sums then depend on it.
 */
#ifndef MGL_QUANTIZE_CALIBRATE_BLAS_H
#define MGL_QUANTIZE_CALIBRATE_BLAS_H

#include "base/error.h"

/* The values of cblas.h and lapacke.h. */
enum {
    MGL_BLAS_ROWS = 101, /* row-major */
    MGL_BLAS_PLAIN = 111,
    MGL_BLAS_TRANSPOSED = 112,
    MGL_BLAS_UPPER = 121,
    MGL_BLAS_DIAGONAL = 131, /* the diagonal is stored */
    MGL_BLAS_RIGHT = 142
};

/*  member      result  symbol                      arguments */
#define MGL_BLAS_FUNCTIONS(X)                                                                      \
    X(sgemm, void, "cblas_sgemm",                                                                  \
      (int order, int a_form, int b_form, int m, int n, int k, float alpha, const float *a,        \
       int lda, const float *b, int ldb, float beta, float *c, int ldc))                           \
    X(sgemv, void, "cblas_sgemv",                                                                  \
      (int order, int form, int m, int n, float alpha, const float *a, int lda, const float *x,    \
       int incx, float beta, float *y, int incy))                                                  \
    X(ssyrk, void, "cblas_ssyrk",                                                                  \
      (int order, int half, int form, int n, int k, float alpha, const float *a, int lda,          \
       float beta, float *c, int ldc))                                                             \
    X(strsm, void, "cblas_strsm",                                                                  \
      (int order, int side, int half, int form, int diagonal, int m, int n, float alpha,           \
       const float *a, int lda, float *b, int ldb))                                                \
    X(set_threads, void, "openblas_set_num_threads", (int threads))                                \
    X(config, char *, "openblas_get_config", (void))

#define MGL_LAPACK_FUNCTIONS(X)                                                                    \
    X(spotrf, int, "LAPACKE_spotrf", (int order, char half, int n, float *a, int lda))

typedef struct mgl_blas {
#define MGL_X(member, result, symbol, arguments) result(*member) arguments;
    MGL_BLAS_FUNCTIONS(MGL_X)
    MGL_LAPACK_FUNCTIONS(MGL_X)
#undef MGL_X
} mgl_blas;

/* Opens the libraries once. *out is static. MGL_BAD_INPUT: a library is not installed. Call it from
 * one thread at a time. */
mgl_status mgl_blas_open(const mgl_blas **out, mgl_error *err);

#endif

/*
 * Matrix products of the fast path: OpenBLAS, opened at run time, for eight rows and more; mgl_dot
 * for fewer, and for all where there is no OpenBLAS. Measured on one core, 1024 x 1024: for 1 row
 * mgl_dot does 15 GFLOP/s and sgemv 8 to 15, for 4 rows 21 against sgemm's 16 to 18, for 16 rows 20
 * against 26 to 56 (kernels for Prescott, Haswell and SkylakeX). So a decode step has the sums of
 * the reference. One BLAS thread: their order must not depend on the machine's load.
 */
#ifndef MGL_VM_CPU_BLAS_H
#define MGL_VM_CPU_BLAS_H

#include <stdbool.h>

/* to (rows, outputs; row stride to_stride) = x (rows, inputs; x_stride) W^T, W (outputs, inputs)
 * row-major without gaps; `add`: += instead. */
typedef void mgl_matmul_fn(const float *x, int x_stride, const float *w, float *to, int to_stride,
                           int rows, int inputs, int outputs, bool add);

typedef struct mgl_blas {
    const char *name; /* "OpenBLAS" or "plain C"; static */
    mgl_matmul_fn *matmul;
} mgl_blas;

/* The library, opened at the first call and kept for the process. Thread safe. */
mgl_blas mgl_blas_get(void);
/* The plain functions: mgl_dot for every element. */
mgl_blas mgl_blas_plain(void);

#endif

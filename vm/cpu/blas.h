/*
 * OpenBLAS, opened at run time: where there is none, the same functions in plain C. One BLAS thread:
 * the order of its sums must not depend on the machine's load.
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

/*
 * Products: rows of activations times a matrix that lies packed on a tape, in f32, bf16 or f16.
 *
 * There is a set of functions for each instruction set (avx512, avx2, neon), and one in plain C;
 * which is used is decided at run time. Products and sums are f32. An output is computed by one
 * thread in one order, whatever part of the matrix and however many rows a call has: product k is
 * added to partial sum k mod 16, in increasing k, and the 16 partial sums are added pairwise, those
 * 8 apart, then 4, 2 and 1. The vector sets fuse a product with its addition, and so have the same
 * bits, but for what a NaN carries; the plain set does not, and has the bits of mgl_dot.
 */
#ifndef MGL_VM_CPU_PRODUCTS_H
#define MGL_VM_CPU_PRODUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schedule/formats.h"

/* A matrix on a tape: row groups of MGL_ROW_GROUP rows, each `blocks` k blocks of MGL_BLOCK_BYTES,
 * each 64 bytes of every row. Rows and columns beyond the matrix's edges are zeros. */
typedef struct mgl_matrix {
    const char *tape;    /* row group 0; aligned to 64 bytes */
    size_t group_stride; /* bytes from a row group to the next */
    const int32_t
        *place; /* (blocks) k block b is the place[b]-th of its row group; NULL: the b-th */
    int blocks; /* of a row group, in the order of k */
    mgl_weight_format format;
} mgl_matrix;

/* to[r * to_stride + i] = sum over k of x[r * x_stride + k] * w[i][k], for i in [8 group_lo,
 * 8 group_hi) below `outputs` and r in [0, rows). A row of x has as many readable floats as the
 * blocks have columns, those beyond the matrix's being zero. `scratch`: mgl_products_scratch floats
 * that are this thread's. */
typedef void mgl_multiply_fn(const mgl_matrix *w, int64_t group_lo, int64_t group_hi,
                             int64_t outputs, const float *x, int64_t x_stride, int rows, float *to,
                             int64_t to_stride, float *scratch);
/* The sum of a[i] * b[i], in the same order. */
typedef float mgl_products_dot_fn(const float *a, const float *b, int64_t n);
/* to[i] += scale * v[i] */
typedef void mgl_add_scaled_fn(float *to, float scale, const float *v, int64_t n);

typedef struct mgl_products {
    const char *name; /* "avx512", "avx2", "neon", "plain" */
    mgl_multiply_fn *multiply;
    mgl_products_dot_fn *dot;
    mgl_add_scaled_fn *add_scaled;
} mgl_products;

/* The best set that this CPU and its system can run. */
mgl_products mgl_products_get(void);
/* The set of that name; false when there is none, or this CPU can not run it. */
bool mgl_products_find(const char *name, mgl_products *out);

/* Floats of scratch that `multiply` needs, of any set, for a matrix of `blocks` k blocks. */
size_t mgl_products_scratch(int blocks, mgl_weight_format format);

#endif

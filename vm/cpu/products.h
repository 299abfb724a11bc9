/*
 * Matrix products of the CPU machine: rows of activations times a packed matrix on a tape, in f32,
 * bf16, f16 or a scaled format. fast.c calls them for the linear ops and attention.
 *
 * There is one set of functions for each instruction set (avx512, avx2, neon), and one in plain C;
 * the best supported set is selected at run time. Products and sums are f32. One thread computes an
 * output, in one order that does not depend on the part of the matrix or the number of rows in a
 * call. Product k is added to partial sum k mod 16, in increasing k. The 16 partial sums are then
 * added pairwise: those 8 apart, then 4, 2 and 1. The vector sets use fused multiply-add and agree
 * bitwise with each other, except for NaN payloads. The plain set does not fuse and agrees bitwise
 * with mgl_dot. Scaled weights are rounded to f32 before the product: (code - zero) * scale. Scales
 * of e4m3 codes must be below 2^120.
 */
#ifndef MGL_VM_CPU_PRODUCTS_H
#define MGL_VM_CPU_PRODUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schedule/formats.h"

/* A packed matrix on a tape: row groups of MGL_ROW_GROUP rows; each row group has `blocks` k blocks
 * of MGL_BLOCK_BYTES, and each block 64 bytes of every row. Rows and columns past the matrix's
 * edges are zero. */
typedef struct mgl_matrix {
    const char *tape;    /* the blocks of row group 0; aligned to 64 bytes */
    size_t group_stride; /* bytes from one row group to the next */
    const int32_t
        *place; /* (blocks) k block b is the place[b]-th of its row group; NULL: the b-th */
    int blocks; /* k blocks of a row group */
    mgl_weight_format format;
    ptrdiff_t scales; /* from `tape` to the scales of row group 0; 0: there are none on the tape */
    int64_t groups;   /* of a row, with scales on the tape (mgl_tape_scale_groups) */
} mgl_matrix;

/* to[r * to_stride + i] = sum over k of x[r * x_stride + k] * w[i][k], for i in [8 group_lo, 8
 * group_hi) below `outputs` and r in [0, rows). A row of x has as many readable floats as the
 * blocks have columns; those past the matrix's columns are zero. `scratch`: mgl_products_scratch
 * floats of the calling thread. */
typedef void mgl_multiply_fn(const mgl_matrix *w, int64_t group_lo, int64_t group_hi,
                             int64_t outputs, const float *x, int64_t x_stride, int rows, float *to,
                             int64_t to_stride, float *scratch);
/* The sum of a[i] * b[i], in the same order as `multiply`. */
typedef float mgl_products_dot_fn(const float *a, const float *b, int64_t n);
/* to[i] += scale * v[i] */
typedef void mgl_add_scaled_fn(float *to, float scale, const float *v, int64_t n);

typedef struct mgl_products {
    const char *name; /* "avx512vbmi", "avx512", "avx2", "neon", "plain" */
    mgl_multiply_fn *multiply;
    mgl_products_dot_fn *dot;
    mgl_add_scaled_fn *add_scaled;
} mgl_products;

/* The best set that this CPU and operating system support. */
mgl_products mgl_products_get(void);
/* Finds a set by name; false if it does not exist or this CPU cannot run it. */
bool mgl_products_find(const char *name, mgl_products *out);

/* Scratch floats that `multiply` of any set needs for a matrix of `blocks` k blocks. */
size_t mgl_products_scratch(int blocks, mgl_weight_format format);

#endif

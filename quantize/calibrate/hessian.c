/*
 * Implements hessian.h. The factor is a blocked right-looking Cholesky factorization from the last
 * block of columns to the first, so that the factor is upper triangular with H = R R^T. LAPACK
 * factors the blocks of the diagonal with both orders reversed.
 */
#include "quantize/calibrate/hessian.h"

#include "base/memory.h"
#include "base/parallel.h"

#include <math.h>

enum { TILE = 256 };

/* Work on tiles of the upper triangle. */
typedef struct tiles {
    const mgl_blas *blas;
    float *h;
    int n;
    const float *inputs; /* of a sum: (rows, n) */
    int rows;
    int block; /* of a factor: the current block of columns */
} tiles;

static int tile_count(int n)
{
    return (n + TILE - 1) / TILE;
}

static int tile_size(int n, int tile)
{
    return n - tile * TILE < TILE ? n - tile * TILE : TILE;
}

static float *tile_at(const tiles *t, int row, int column)
{
    return t->h + ((int64_t)row * t->n + column) * TILE;
}

/* Finds the tile with number `item` of the upper triangle, column by column. */
static void find_tile(size_t item, int *row, int *column)
{
    int j = 0;
    while ((size_t)(j + 1) * (size_t)(j + 2) / 2 <= item)
        j++;
    *column = j;
    *row = (int)(item - (size_t)j * (size_t)(j + 1) / 2);
}

static size_t triangle(int size)
{
    return (size_t)size * (size_t)(size + 1) / 2;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static mgl_status add_tile(void *user, int worker, size_t item, mgl_error *err)
{
    const tiles *t = user;
    int i, j;
    (void)worker, (void)err;
    find_tile(item, &i, &j);
    const float *a = t->inputs + (int64_t)i * TILE, *b = t->inputs + (int64_t)j * TILE;
    if (i == j)
        t->blas->ssyrk(MGL_BLAS_ROWS, MGL_BLAS_UPPER, MGL_BLAS_TRANSPOSED, tile_size(t->n, i),
                       t->rows, 1, a, t->n, 1, tile_at(t, i, i), t->n);
    else
        t->blas->sgemm(MGL_BLAS_ROWS, MGL_BLAS_TRANSPOSED, MGL_BLAS_PLAIN, tile_size(t->n, i),
                       tile_size(t->n, j), t->rows, 1, a, t->n, b, t->n, 1, tile_at(t, i, j), t->n);
    return MGL_OK;
}

mgl_status mgl_hessian_add(const mgl_blas *blas, int threads, float *h, int n, const float *inputs,
                           int rows, mgl_error *err)
{
    tiles t = {.blas = blas, .h = h, .n = n, .inputs = inputs, .rows = rows};
    return mgl_parallel(threads, triangle(tile_count(n)), add_tile, &t, err);
}

/* ---- the factor ------------------------------------------------------------------------------ */

/* Factors the block of the diagonal. `spare` has TILE * TILE floats. */
static bool factor_block(const tiles *t, float *spare)
{
    const int size = tile_size(t->n, t->block);
    float *h = tile_at(t, t->block, t->block);
    for (int i = 0; i < size; i++)
        for (int j = 0; j <= i; j++) /* the lower triangle of the reversed block */
            spare[i * size + j] = h[(int64_t)(size - 1 - i) * t->n + (size - 1 - j)];
    if (t->blas->spotrf(MGL_BLAS_ROWS, 'L', size, spare, size))
        return false;
    for (int i = 0; i < size; i++)
        for (int j = 0; j <= i; j++)
            h[(int64_t)(size - 1 - i) * t->n + (size - 1 - j)] = spare[i * size + j];
    return true;
}

/* Solves for a tile of the factor above the block. */
static mgl_status solve_tile(void *user, int worker, size_t item, mgl_error *err)
{
    const tiles *t = user;
    (void)worker, (void)err;
    t->blas->strsm(MGL_BLAS_ROWS, MGL_BLAS_RIGHT, MGL_BLAS_UPPER, MGL_BLAS_TRANSPOSED,
                   MGL_BLAS_DIAGONAL, TILE, tile_size(t->n, t->block), 1,
                   tile_at(t, t->block, t->block), t->n, tile_at(t, (int)item, t->block), t->n);
    return MGL_OK;
}

/* Subtracts the products of the block's factor from a tile before it. */
static mgl_status update_tile(void *user, int worker, size_t item, mgl_error *err)
{
    const tiles *t = user;
    const int size = tile_size(t->n, t->block);
    int i, j;
    (void)worker, (void)err;
    find_tile(item, &i, &j);
    if (i == j)
        t->blas->ssyrk(MGL_BLAS_ROWS, MGL_BLAS_UPPER, MGL_BLAS_PLAIN, TILE, size, -1,
                       tile_at(t, i, t->block), t->n, 1, tile_at(t, i, i), t->n);
    else
        t->blas->sgemm(MGL_BLAS_ROWS, MGL_BLAS_PLAIN, MGL_BLAS_TRANSPOSED, TILE, TILE, size, -1,
                       tile_at(t, i, t->block), t->n, tile_at(t, j, t->block), t->n, 1,
                       tile_at(t, i, j), t->n);
    return MGL_OK;
}

/* Adds the damping to the diagonal. Returns whether the diagonal is finite. */
static bool damp(float *h, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)h[(int64_t)i * n + i];
    const double damping = sum > 0 ? 0.1 * sum / n : 1;
    for (int i = 0; i < n; i++)
        h[(int64_t)i * n + i] += (float)damping;
    return isfinite(sum);
}

mgl_status mgl_hessian_factor(const mgl_blas *blas, int threads, float *h, int n, const char *name,
                              mgl_error *err)
{
    tiles t = {.blas = blas, .h = h, .n = n};
    float *spare = mgl_alloc_zero(TILE * TILE, sizeof *spare);
    mgl_status status = spare ? MGL_OK : mgl_fail_memory(err, TILE * TILE * sizeof *spare);
    bool good = damp(h, n);
    for (t.block = tile_count(n) - 1; t.block >= 0 && !status && good; t.block--) {
        good = factor_block(&t, spare);
        if (good)
            status = mgl_parallel(threads, (size_t)t.block, solve_tile, &t, err);
        if (good && !status)
            status = mgl_parallel(threads, triangle(t.block), update_tile, &t, err);
    }
    mgl_free(spare);
    if (status || good)
        return status;
    return mgl_fail(err, MGL_BAD_INPUT, name,
                    "the Hessian of this matrix has no Cholesky factor: its inputs are not finite, "
                    "or too large for f32; use --method clip without --texts, or other texts");
}

/*
 * Implements gptq.h. With the factor H = R R^T (R upper triangular) and the error E = W - Q, the
 * squared output error of a row is the sum over columns j of (E R)_j^2, and
 *
 *     (E R)_j = A_j + E_j R_jj      with A_j = sum over i < j of E_i R_ij
 *
 * depends on the columns up to j only. So columns are rounded in natural order, each to the number
 * next to W_j + A_j / R_jj, which is the weight that the compensation of GPTQ gives: its factor of
 * the inverse Hessian is the inverse of R. No inverse is needed here. At the start of a group g,
 * the updated weights of the group are W_g + A_g R_gg^-1, and its scale is found from them.
 *
 * A is kept for all later columns: within a block by adding each error, behind the block by one
 * product after the block.
 */
#include "quantize/calibrate/gptq.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 128 };

/* Columns of a block: whole groups. */
static int block_of(int columns, mgl_weight_format format)
{
    if (format.group == MGL_GROUP_ALL)
        return BLOCK < columns ? BLOCK : columns;
    return format.group > BLOCK ? format.group : BLOCK / format.group * format.group;
}

static int group_of(int columns, mgl_weight_format format)
{
    return format.group == MGL_GROUP_ALL ? columns : format.group;
}

size_t mgl_gptq_scratch(int rows, int columns, mgl_weight_format format)
{
    const size_t block = (size_t)block_of(columns, format),
                 group = (size_t)group_of(columns, format);
    return (size_t)rows * ((size_t)columns + block + group + sizeof(mgl_grid) / sizeof(float) + 1) +
           group;
}

/* A matrix in progress. */
typedef struct state {
    const mgl_blas *blas;
    const float *factor;
    const mgl_gptq_rows *r;
    mgl_weight_format format;
    mgl_fit fit;
    float *sums;       /* (rows, columns): A */
    float *errors;     /* (rows, block): E of the block */
    float *updates;    /* (rows, group) */
    float *importance; /* (group): the squares of R_jj */
    mgl_grid *grids;   /* (rows) of the current group */
    int block, group;
} state;

/* Chooses the grids of the group that starts at `column`. Returns the row that has none, or -1. */
static int fit_group(const state *s, int column)
{
    const mgl_gptq_rows *r = s->r;
    const int n = r->columns, count = n - column < s->group ? n - column : s->group;
    const int64_t groups = mgl_weight_format_groups(s->format, n), g = column / s->group;
    for (int i = 0; i < r->rows; i++)
        memcpy(s->updates + (int64_t)i * count, s->sums + (int64_t)i * n + column,
               (size_t)count * sizeof(float));
    if (column)
        s->blas->strsm(MGL_BLAS_ROWS, MGL_BLAS_RIGHT, MGL_BLAS_UPPER, MGL_BLAS_PLAIN,
                       MGL_BLAS_DIAGONAL, r->rows, count, 1,
                       s->factor + (int64_t)column * n + column, n, s->updates, count);
    for (int j = 0; j < count; j++) {
        const float d = s->factor[(int64_t)(column + j) * n + column + j];
        s->importance[j] = d * d;
    }
    for (int i = 0; i < r->rows; i++) {
        float *updated = s->updates + (int64_t)i * count;
        const float *weights = r->weights + (int64_t)i * n + column;
        for (int j = 0; j < count; j++)
            updated[j] += weights[j];
        s->grids[i] =
            mgl_grid_fit(updated, count, s->format, (mgl_fit){s->fit.search, s->importance});
        if (!mgl_grid_is_finite(&s->grids[i]))
            return i;
        r->scales[i * groups + g] = s->grids[i].scale;
        if (r->zeros)
            r->zeros[i * groups + g] = (uint8_t)s->grids[i].zero;
    }
    return -1;
}

/* Rounds columns [from, to) of a row and adds their errors to the sums of the columns up to `end`,
 * the end of the block, which starts at `begin`. */
static void round_columns(const state *s, int row, int begin, int from, int to, int end)
{
    const int n = s->r->columns;
    const mgl_grid grid = s->grids[row];
    float *weights = s->r->weights + (int64_t)row * n, *sums = s->sums + (int64_t)row * n;
    float *errors = s->errors + (int64_t)row * s->block - begin;
    uint8_t *codes = s->r->codes + (int64_t)row * n;
    for (int j = from; j < to; j++) {
        const float *factor = s->factor + (int64_t)j * n;
        codes[j] = mgl_grid_code(&grid, weights[j] + sums[j] / factor[j]);
        const float number = mgl_grid_weight(&grid, codes[j]), error = weights[j] - number;
        weights[j] = number;
        errors[j] = error;
        for (int k = j + 1; k < end; k++)
            sums[k] += error * factor[k];
    }
}

/* Rounds the columns of a block. Returns the row whose scale is too large, or -1. */
static int round_block(const state *s, int begin, int end, int64_t *column)
{
    for (int at = begin; at < end;) {
        const int to =
            s->format.group == MGL_GROUP_ALL || at + s->group > end ? end : at + s->group;
        if (at % s->group == 0) {
            const int row = fit_group(s, at);
            *column = at;
            if (row >= 0)
                return row;
        }
        for (int row = 0; row < s->r->rows; row++)
            round_columns(s, row, begin, at, to, end);
        at = to;
    }
    return -1;
}

mgl_rounded mgl_gptq_quantize(const mgl_blas *blas, const float *factor, mgl_weight_format format,
                              mgl_fit fit, const mgl_gptq_rows *rows, int64_t *row, int64_t *column)
{
    const int n = rows->columns;
    state s = {.blas = blas,
               .factor = factor,
               .r = rows,
               .format = format,
               .fit = fit,
               .block = block_of(n, format),
               .group = group_of(n, format),
               .sums = rows->scratch};
    s.errors = s.sums + (int64_t)rows->rows * n;
    s.updates = s.errors + (int64_t)rows->rows * s.block;
    s.importance = s.updates + (int64_t)rows->rows * s.group;
    s.grids = (mgl_grid *)(s.importance + s.group);
    memset(s.sums, 0, (size_t)rows->rows * (size_t)n * sizeof(float));
    for (int begin = 0; begin < n; begin += s.block) {
        const int end = n - begin < s.block ? n : begin + s.block;
        const int bad = round_block(&s, begin, end, column);
        if (bad >= 0)
            return *row = bad, MGL_ROUND_TOO_LARGE;
        if (end < n)
            blas->sgemm(MGL_BLAS_ROWS, MGL_BLAS_PLAIN, MGL_BLAS_PLAIN, rows->rows, n - end,
                        end - begin, 1, s.errors, s.block, factor + (int64_t)begin * n + end, n, 1,
                        s.sums + end, n);
    }
    return MGL_ROUNDED;
}

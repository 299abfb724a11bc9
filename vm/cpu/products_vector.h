/*
 * The algorithm of the vector sets, for a width of vectors that the including file defines with its
 * operations:
 *
 *     vector                      LANES floats
 *     zero() load(from) store(to, v) spread(value)
 *     add_product(a, b, c)                a * b + c, rounded once
 *     load_bf16(from) load_f16(from)      LANES weights, converted
 *     add_group(sums, to)         (8, 16) partial sums to 8 outputs
 *     add_one(sums)               (16 / LANES) vectors to one
 *     TILE_WEIGHTS(rows)          weight rows of a tile with so many rows of x
 *
 * The 16 partial sums of an output are 16 / LANES vectors. A tile is some weight rows by some rows
 * of x, whose sums of one vector each stay in registers over a run of columns; between runs they
 * are in memory. Weights are converted as they are loaded if there is one tile to use them, and else
 * once into a panel of f32 that stays in the L1 cache. A tape is walked in the order of k, which is
 * not the order of its bytes, so that prefetches have to say what comes next.
 */
#ifndef MGL_VM_CPU_PRODUCTS_VECTOR_H
#define MGL_VM_CPU_PRODUCTS_VECTOR_H

#include <stdint.h>
#include <string.h>

#include "schedule/program.h"
#include "vm/cpu/products_sets.h"

enum {
    SUMS = MGL_PRODUCTS_SUMS,
    LANES = sizeof(vector) / sizeof(float),
    PARTS = SUMS / LANES,
    GROUP = MGL_ROW_GROUP,
    LINE =
        MGL_BLOCK_BYTES / MGL_ROW_GROUP, /* bytes of a weight row in a block, and of a cache line */
    STEP = GROUP * SUMS,                 /* floats of a panel for SUMS columns */
    TILE_ROWS = 3
};

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* A run of k blocks of one row group, to be multiplied by rows of x. */
struct run {
    const char *blocks;   /* the row group, or a panel */
    const int32_t *place; /* of its blocks, or NULL */
    int lo, hi;           /* blocks */
    const float *x;       /* (rows, x_stride) from the columns of block 0 on */
    int64_t x_stride;
    float *sums; /* (rows, GROUP, SUMS) */
};

/* What is going to be read: block b + `ahead` in the order of k, in the group or the next one. */
struct ahead {
    const char *group, *next;
    const int32_t *place;
    int blocks, ahead;
};

ALWAYS_INLINE const char *block_at(const char *group, const int32_t *place, int b)
{
    return group + (int64_t)(place ? place[b] : b) * MGL_BLOCK_BYTES;
}

ALWAYS_INLINE const char *block_ahead(const struct ahead *a, int b)
{
    b += a->ahead;
    return b < a->blocks ? block_at(a->group, a->place, b)
                         : block_at(a->next, a->place, b - a->blocks);
}

/* LANES weights of a row of a block, from `column` on. */
ALWAYS_INLINE vector load_weights(const char *row, mgl_dtype format, int column)
{
    if (format == MGL_F32)
        return load((const float *)(const void *)row + column);
    const uint16_t *half = (const uint16_t *)(const void *)row + column;
    return format == MGL_BF16 ? load_bf16(half) : load_f16(half);
}

ALWAYS_INLINE int columns_of(mgl_dtype format)
{
    return format == MGL_F32 ? SUMS : 2 * SUMS;
}

/* One vector of the partial sums of `weights` outputs, from `first` on, for `rows` rows of x. */
ALWAYS_INLINE void tile_part(const struct run *run, const struct ahead *ahead, mgl_dtype format,
                             int first, int weights, int rows, int part)
{
    vector sums[GROUP][TILE_ROWS], x[TILE_ROWS];
    UNROLL for (int i = 0; i < weights; i++) UNROLL for (int r = 0; r < rows; r++) sums[i][r] =
        load(run->sums + (r * GROUP + first + i) * SUMS + part * LANES);
    for (int b = run->lo; b < run->hi; b++) {
        const char *block = block_at(run->blocks, run->place, b) + first * LINE;
        if (ahead && !first && !part) {
            const char *next = block_ahead(ahead, b);
            UNROLL for (int i = 0; i < GROUP; i++) __builtin_prefetch(next + i * LINE, 0, 3);
        }
        UNROLL for (int step = 0; step < columns_of(format); step += SUMS)
        {
            int64_t k = (int64_t)b * columns_of(format) + step + part * LANES;
            UNROLL for (int r = 0; r < rows; r++) x[r] = load(run->x + r * run->x_stride + k);
            UNROLL for (int i = 0; i < weights; i++)
            {
                vector w = load_weights(block + i * LINE, format, step + part * LANES);
                UNROLL for (int r = 0; r < rows; r++) sums[i][r] = add_product(w, x[r], sums[i][r]);
            }
        }
    }
    UNROLL for (int i = 0; i < weights; i++) UNROLL for (int r = 0; r < rows; r++)
        store(run->sums + (r * GROUP + first + i) * SUMS + part * LANES, sums[i][r]);
}

ALWAYS_INLINE void tile_rows(const struct run *run, const struct ahead *ahead, mgl_dtype format,
                             int rows)
{
    for (int first = 0; first < GROUP; first += TILE_WEIGHTS(rows))
        UNROLL for (int part = 0; part < PARTS; part++)
            tile_part(run, ahead, format, first, TILE_WEIGHTS(rows), rows, part);
}

ALWAYS_INLINE void tile_format(const struct run *run, const struct ahead *ahead, mgl_dtype format,
                               int rows)
{
    if (rows == 1)
        tile_rows(run, ahead, format, 1);
    else if (rows == 2)
        tile_rows(run, ahead, format, 2);
    else
        tile_rows(run, ahead, format, TILE_ROWS);
}

/* A tile that reads the tape, 1 to TILE_ROWS rows. */
static void tile_tape(const struct run *run, const struct ahead *ahead, mgl_dtype format, int rows)
{
    if (format == MGL_F32)
        tile_format(run, ahead, MGL_F32, rows);
    else if (format == MGL_BF16)
        tile_format(run, ahead, MGL_BF16, rows);
    else
        tile_format(run, ahead, MGL_F16, rows);
}

/* A tile that reads f32 and asks for nothing ahead. */
static void tile_panel(const struct run *run, int rows)
{
    tile_format(run, NULL, MGL_F32, rows);
}

ALWAYS_INLINE void convert_format(const struct run *run, mgl_dtype format, float *panel)
{
    for (int b = run->lo; b < run->hi; b++) {
        const char *block = block_at(run->blocks, run->place, b);
        for (int step = 0; step < columns_of(format); step += SUMS, panel += STEP)
            UNROLL for (int i = 0; i < GROUP; i++) UNROLL for (int at = 0; at < SUMS; at += LANES)
                store(panel + i * SUMS + at, load_weights(block + i * LINE, format, step + at));
    }
}

/* The run's blocks as f32, and the run over them instead. */
static struct run convert(const struct run *run, mgl_dtype format, float *panel)
{
    if (format == MGL_BF16)
        convert_format(run, MGL_BF16, panel);
    else
        convert_format(run, MGL_F16, panel);
    return (struct run){.blocks = (const char *)panel,
                        .hi = (run->hi - run->lo) * columns_of(format) / SUMS,
                        .x = run->x + (int64_t)run->lo * columns_of(format),
                        .x_stride = run->x_stride,
                        .sums = run->sums};
}

/* Asks for the share [lo, hi) of `of` of the lines that the next run reads. */
static void prefetch(const struct ahead *ahead, const struct run *run, int lo, int hi, int of)
{
    int lines = (run->hi - run->lo) * GROUP;
    for (int line = lines * lo / of; line < lines * hi / of; line++)
        __builtin_prefetch(block_ahead(ahead, run->lo + line / GROUP) + line % GROUP * LINE, 0, 3);
}

/* More rows than a tile has: a panel, and tile after tile. */
static void multiply_run(const struct run *run, const struct ahead *ahead, mgl_dtype format,
                         int rows, float *panel)
{
    struct run of_tile = format == MGL_F32 ? *run : convert(run, format, panel);
    for (int r = 0; r < rows; r += TILE_ROWS) {
        int count = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;
        prefetch(ahead, run, r, r + count, rows);
        tile_panel(&of_tile, count);
        of_tile.x += count * of_tile.x_stride;
        of_tile.sums += count * STEP;
    }
}

static void store_group(const float *sums, int64_t count, int rows, float *to, int64_t to_stride)
{
    float outputs[GROUP];
    for (int r = 0; r < rows; r++, sums += STEP, to += to_stride) {
        if (count >= GROUP) {
            add_group(sums, to);
        } else {
            add_group(sums, outputs);
            memcpy(to, outputs, (size_t)count * sizeof *to);
        }
    }
}

/* One row group by at most MGL_PRODUCTS_ROWS rows; `room`: a panel and the partial sums. */
static void multiply_group(const mgl_matrix *w, const struct ahead *ahead, const float *x,
                           int64_t x_stride, int rows, float *room)
{
    int step = MGL_PRODUCTS_RUN / columns_of(w->format);
    float *sums = room + MGL_PRODUCTS_RUN * GROUP;
    memset(sums, 0, (size_t)rows * STEP * sizeof *sums);
    for (int lo = 0; lo < w->blocks; lo += step) {
        struct run run = {.blocks = ahead->group,
                          .place = w->place,
                          .lo = lo,
                          .hi = lo + step < w->blocks ? lo + step : w->blocks,
                          .x = x,
                          .x_stride = x_stride,
                          .sums = sums};
        if (rows <= TILE_ROWS)
            tile_tape(&run, ahead, w->format, rows);
        else
            multiply_run(&run, ahead, w->format, rows, room);
    }
}

static float *align(float *at)
{
    return (float *)(((uintptr_t)at + LINE - 1) / LINE * LINE);
}

/* At most MGL_PRODUCTS_ROWS rows. */
static void multiply_rows(const mgl_matrix *w, int64_t group_lo, int64_t group_hi, int64_t outputs,
                          const float *x, int64_t x_stride, int rows, float *to, int64_t to_stride,
                          float *room)
{
    int step = MGL_PRODUCTS_RUN / columns_of(w->format);
    struct ahead ahead = {
        .place = w->place, .blocks = w->blocks, .ahead = step < w->blocks ? step : w->blocks};
    for (int64_t group = group_lo; group < group_hi; group++) {
        int64_t first = group * GROUP;
        ahead.group = w->tape + (size_t)group * w->group_stride;
        ahead.next = group + 1 < group_hi ? ahead.group + w->group_stride : ahead.group;
        multiply_group(w, &ahead, x, x_stride, rows, room);
        store_group(room + MGL_PRODUCTS_RUN * GROUP, outputs - first, rows, to + first, to_stride);
    }
}

static void multiply(const mgl_matrix *w, int64_t group_lo, int64_t group_hi, int64_t outputs,
                     const float *x, int64_t x_stride, int rows, float *to, int64_t to_stride,
                     float *scratch)
{
    for (int r = 0; r < rows; r += MGL_PRODUCTS_ROWS) {
        int count = rows - r < MGL_PRODUCTS_ROWS ? rows - r : MGL_PRODUCTS_ROWS;
        multiply_rows(w, group_lo, group_hi, outputs, x + r * x_stride, x_stride, count,
                      to + r * to_stride, to_stride, align(scratch));
    }
}

/* What is left of a vector's end, and zeros: in every set the same SUMS products. */
static void load_tail(const float *from, int64_t n, float *to)
{
    memset(to, 0, SUMS * sizeof *to);
    memcpy(to, from, (size_t)n * sizeof *to);
}

ALWAYS_INLINE void dot_step(const float *a, const float *b, vector *sums)
{
    UNROLL for (int part = 0; part < PARTS; part++) sums[part] =
        add_product(load(a + part * LANES), load(b + part * LANES), sums[part]);
}

static float dot(const float *a, const float *b, int64_t n)
{
    vector sums[PARTS];
    float last_a[SUMS], last_b[SUMS];
    int64_t i = 0;
    UNROLL for (int part = 0; part < PARTS; part++) sums[part] = zero();
    for (; i + SUMS <= n; i += SUMS)
        dot_step(a + i, b + i, sums);
    if (i < n) {
        load_tail(a + i, n - i, last_a);
        load_tail(b + i, n - i, last_b);
        dot_step(last_a, last_b, sums);
    }
    return add_one(sums);
}

static void add_scaled(float *to, float scale, const float *v, int64_t n)
{
    vector scales = spread(scale);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(to + i, add_product(scales, load(v + i), load(to + i)));
    for (; i < n; i++)
        to[i] = __builtin_fmaf(scale, v[i], to[i]);
}

#endif

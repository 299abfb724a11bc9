/*
 * Register-tiled matrix product for the vector sets, generic over the vector width.
 * products_avx2.c, products_avx512.h and products_neon.c define the operations below and include
 * this file:
 *
 *     vector                           LANES floats
 *     zero() spread(value)             a vector of zeros, of one value
 *     load(from) store(to, v)          unaligned, floats
 *     load_bf16(from) load_f16(from)   LANES weights as floats
 *     load_bytes(from)                 LANES unsigned bytes as floats, plus 2^23
 *     add_product(a, b, c)             fused multiply-add: a * b + c, rounded once
 *     add_group(sums, to)              (8, 16) partial sums to 8 outputs
 *     add_one(sums)                    (16 / LANES) vectors of partial sums to one output
 *     IN_REGISTER(v)                   keeps the compiler from reloading v for each use
 *     tape_tile(code, rows)            register tile of a pass over a tape, for `rows` rows of x
 *     panel_tile(rows)                 the same for a pass over a panel
 *     tape_rows(code)                  maximum rows of x for which weights are read from the tape
 *     tape_run(code, rows)             k blocks of a run that is read from the tape
 *
 * and for scaled codes:
 *
 *     load_scaled(code, row, step, part, table, group, i, ones)
 *         LANES weights of row i, at `row` in a block: vector `part` of columns 16 step .. + 15.
 *         ones: all scales are 1, and none is applied
 *     table_of(code, group, i)
 *         struct table: what load_scaled needs of a group of columns besides scale and zero point
 *
 * A row group is multiplied run by run; a run is several k blocks. In some sets the partial sums of
 * a run with up to TILE_ROWS rows of x exceed the registers. A tile therefore takes one or more
 * passes over the run. Between passes and between runs the sums are in memory. For few rows, a pass
 * reads the tape and converts the weights on the fly. For more rows, the run is converted once, to
 * an f32 panel that stays in the L1 cache.
 *
 * Runs follow the order of k. On a tape for several warps this is not the order of bytes, and
 * hardware prefetchers cannot predict it. A pass over the tape therefore prefetches blocks some
 * distance ahead, and passes over a panel prefetch the run that is converted next.
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
    LINE = MGL_BLOCK_ROW_BYTES, /* bytes of a weight row in a block; also a cache line */
    STEP = GROUP * SUMS,        /* floats of a panel for SUMS columns */
    RUN_STEPS = MGL_PRODUCTS_RUN / SUMS,
    TILE_ROWS = 3,
    AHEAD = 64, /* prefetch distance of a pass over a tape, in blocks: 32 KB */
    RATE = 256  /* fixed-point unit of feed.rate: one line per step of a tile */
};

/* Loops over arrays of vectors are unrolled completely, so that the vectors stay in registers. The
 * pragma needs a number above the iterations: GCC unrolls a loop with as many iterations too late.
 * UBSan checks the overflow of an int counter, and GCC does not unroll a loop with this check. A
 * counter narrower than int has no such check. The sanitizer build has ASan and UBSan together, so
 * the macro of ASan selects the type. */
#ifdef __SANITIZE_ADDRESS__
typedef uint8_t unrolled;
#else
typedef int unrolled;
#endif

#include "vm/cpu/products_scaled.h"

/* A run of k blocks of one row group, multiplied by rows of x. */
struct run {
    const char *blocks;   /* the row group or a panel */
    const int32_t *place; /* places of the blocks, or NULL */
    int lo, hi;           /* blocks */
    const float *x;       /* (rows, x_stride) from the columns of block 0 on */
    int64_t x_stride;
    float *sums;                 /* (rows, GROUP, SUMS) */
    const struct scales *scales; /* of a scaled code */
};

/* The blocks of a row group, followed by those of the next row group to read. */
struct tape {
    const mgl_matrix *matrix;
    const char *group, *next;
    const int32_t *place;
    int blocks;
    int step;  /* blocks per run; the last run may be shorter */
    int ahead; /* prefetch distance of a pass over the tape, in blocks */
};

/* Prefetch state: the cache lines of the tape's next run, prefetched at a constant rate while tiles
 * process a panel, so that memory is neither flooded nor idle. */
struct feed {
    const char *const *blocks;
    unsigned line; /* next line */
    unsigned due;  /* prefetch lines up to here, in 1 / RATE */
    unsigned rate; /* increment of `due` per step */
};

ALWAYS_INLINE int least(int a, int b)
{
    return a < b ? a : b;
}

ALWAYS_INLINE const char *block_at(const char *group, const int32_t *place, int b)
{
    return group + (int64_t)(place ? place[b] : b) * MGL_BLOCK_BYTES;
}

/* Address of block b of the current and the next row group, b < 2 * blocks. */
ALWAYS_INLINE const char *tape_block(const struct tape *tape, int b)
{
    return b < tape->blocks ? block_at(tape->group, tape->place, b)
                            : block_at(tape->next, tape->place, b - tape->blocks);
}

ALWAYS_INLINE bool is_scaled(mgl_weight_code code)
{
    return mgl_weight_code_get(code)->scaled;
}

/* Loads LANES weights of row i of a row group, at `row` in a block, from `column` on. `scales`: of
 * a scaled code, with the table of the row at `table`. */
ALWAYS_INLINE vector load_weights(const char *row, mgl_weight_code code, int column,
                                  const struct scale_cursor *scales, int table, int i, bool ones)
{
    if (is_scaled(code))
        return load_scaled(code, row, column / SUMS, column % SUMS / LANES, scales->tables[table],
                           scales->group, i, ones);
    const uint16_t *half = (const uint16_t *)(const void *)row + column;
    switch (mgl_weight_code_get(code)->numbers) {
    case MGL_BF16:
        return load_bf16(half);
    case MGL_F16:
        return load_f16(half);
    case MGL_F32:
    case MGL_I32: /* not used by any code */
    case MGL_DTYPE_COUNT:
        break;
    }
    return load((const float *)(const void *)row + column);
}

ALWAYS_INLINE int columns_of(mgl_weight_code code)
{
    return mgl_weight_code_columns(code);
}

/* Steps of SUMS columns in a block. */
ALWAYS_INLINE int steps_of(mgl_weight_code code)
{
    return columns_of(code) / SUMS;
}

/* Prefetches lines [lo, hi) of a block into the L2 cache. A core waits for few lines of memory at a
 * time in its L1 cache: prefetches into L1 limit a core of Zen 4 to half of its memory rate. */
ALWAYS_INLINE void ask_lines(const char *block, int lo, int hi)
{
#pragma GCC unroll 16
    for (int i = lo; i < hi; i++)
        __builtin_prefetch(block + i * LINE, 0, 2);
}

/* Prefetches the lines due at this step. */
ALWAYS_INLINE void ask_feed(struct feed *feed)
{
    feed->due += feed->rate;
    for (; feed->line < feed->due / RATE; feed->line++)
        __builtin_prefetch(feed->blocks[feed->line / GROUP] + feed->line % GROUP * LINE, 0, 3);
}

/* One pass over a run: multiplies `tile.weights` weight rows from `first` on, for the sum vectors
 * from `part` on. Reads the tape and prefetches ahead if `tape` is not NULL; else reads a panel and
 * advances `feed`. `ones`: all scales are 1, so no scale is applied. A group of columns begins only
 * at every `unit`-th step of a block. */
ALWAYS_INLINE void pass(const struct run *run, const struct tape *tape, struct feed *feed,
                        mgl_weight_code code, struct tile tile, int first, int part, bool ones,
                        int unit)
{
    vector sums[GROUP][TILE_ROWS][PARTS], x[TILE_ROWS][PARTS];
    float *in_memory = run->sums + first * SUMS + part * LANES;
    const int32_t *place = tape ? run->place : NULL; /* the blocks of a panel are in order */
    struct scale_cursor scales = {.group = NULL};
#pragma GCC unroll 16
    for (unrolled i = 0; i < tile.weights; i++)
#pragma GCC unroll 16
        for (unrolled r = 0; r < tile.rows; r++)
#pragma GCC unroll 16
            for (unrolled p = 0; p < tile.parts; p++)
                sums[i][r][p] = load(in_memory + r * STEP + i * SUMS + p * LANES);
    for (int b = run->lo; b < run->hi; b++) {
        const char *block = block_at(run->blocks, place, b) + first * LINE;
        const char *ahead = tape ? tape_block(tape, b + tape->ahead) + first * LINE : NULL;
        if (!tape)
            ask_feed(feed);
#pragma GCC unroll 16
        for (int step = 0; step < steps_of(code); step++) {
            const int column = step * SUMS + part * LANES;
            const float *columns = run->x + (int64_t)b * columns_of(code) + column;
            if (tape)
                ask_lines(ahead, step * tile.weights / steps_of(code),
                          (step + 1) * tile.weights / steps_of(code));
            if (is_scaled(code) && step % unit == 0)
                next_scales(run->scales, code, (int64_t)b * columns_of(code) + step * SUMS, first,
                            tile.weights, &scales);
#pragma GCC unroll 16
            for (unrolled r = 0; r < tile.rows; r++)
#pragma GCC unroll 16
                for (unrolled p = 0; p < tile.parts; p++)
                    x[r][p] = load(columns + r * run->x_stride + p * LANES);
#pragma GCC unroll 16
            for (unrolled i = 0; i < tile.weights; i++)
#pragma GCC unroll 16
                for (unrolled p = 0; p < tile.parts; p++) {
                    vector w = load_weights(block + i * LINE, code, column + p * LANES, &scales, i,
                                            first + i, ones);
                    IN_REGISTER(w);
#pragma GCC unroll 16
                    for (unrolled r = 0; r < tile.rows; r++)
                        sums[i][r][p] = add_product(w, x[r][p], sums[i][r][p]);
                }
        }
    }
#pragma GCC unroll 16
    for (unrolled i = 0; i < tile.weights; i++)
#pragma GCC unroll 16
        for (unrolled r = 0; r < tile.rows; r++)
#pragma GCC unroll 16
            for (unrolled p = 0; p < tile.parts; p++)
                store(in_memory + r * STEP + i * SUMS + p * LANES, sums[i][r][p]);
}

ALWAYS_INLINE int passes_of(struct tile tile)
{
    return GROUP / tile.weights * (PARTS / tile.parts);
}

ALWAYS_INLINE void tile_rows(const struct run *run, const struct tape *tape, struct feed *feed,
                             mgl_weight_code code, struct tile tile, bool ones, int unit)
{
#pragma GCC unroll 16
    for (int first = 0; first < GROUP; first += tile.weights)
#pragma GCC unroll 16
        for (int part = 0; part < PARTS; part += tile.parts)
            pass(run, tape, feed, code, tile, first, part, ones, unit);
}

/* Multiplies a tile of 1 to TILE_ROWS rows. */
ALWAYS_INLINE void tile_code(const struct run *run, const struct tape *tape, mgl_weight_code code,
                             int rows)
{
    if (rows == 1 && code == MGL_CODE_INT8 && !tape->matrix->groups)
        tile_rows(run, tape, NULL, code, tape_tile(code, 1), true, 1);
    else if (rows == 1 && is_nibble(code) && run->scales->size % (4 * SUMS) == 0)
        tile_rows(run, tape, NULL, code, tape_tile(code, 1), false, 4);
    else if (rows == 1)
        tile_rows(run, tape, NULL, code, tape_tile(code, 1), false, 1);
    else if (rows == 2)
        tile_rows(run, tape, NULL, code, tape_tile(code, 2), false, 1);
    else if (tape_rows(code) >= TILE_ROWS)
        tile_rows(run, tape, NULL, code, tape_tile(code, TILE_ROWS), false, 1);
}

static void tile_tape(const struct run *run, const struct tape *tape, mgl_weight_code code,
                      int rows)
{
    switch (code) {
#define MGL_WEIGHT_CODE(id, name, bits, scaled, numbers)                                           \
    case MGL_CODE_##id:                                                                            \
        tile_code(run, tape, MGL_CODE_##id, rows);                                                 \
        break;
#include "base/weight_codes.def"
    case MGL_CODE_COUNT:
        break;
    }
}

static void tile_panel(const struct run *run, struct feed *feed, int rows)
{
    struct feed local = *feed; /* a local copy, which stores to memory cannot alias */
    if (rows == 1)
        tile_rows(run, NULL, &local, MGL_CODE_F32, panel_tile(1), false, 1);
    else if (rows == 2)
        tile_rows(run, NULL, &local, MGL_CODE_F32, panel_tile(2), false, 1);
    else
        tile_rows(run, NULL, &local, MGL_CODE_F32, panel_tile(TILE_ROWS), false, 1);
    *feed = local;
}

ALWAYS_INLINE void convert_code(const struct run *run, mgl_weight_code code, float *panel)
{
    struct scale_cursor scales = {.group = NULL};
    for (int b = run->lo; b < run->hi; b++) {
        const char *block = block_at(run->blocks, run->place, b);
#pragma GCC unroll 16
        for (int step = 0; step < columns_of(code); step += SUMS, panel += STEP) {
            if (is_scaled(code))
                next_scales(run->scales, code, (int64_t)b * columns_of(code) + step, 0, GROUP,
                            &scales);
#pragma GCC unroll 16
            for (int i = 0; i < GROUP; i++)
#pragma GCC unroll 16
                for (int at = 0; at < SUMS; at += LANES)
                    store(panel + i * SUMS + at,
                          load_weights(block + i * LINE, code, step + at, &scales, i, i, false));
        }
    }
}

/* Converts the run's blocks to f32 in order. Returns the equivalent run over the panel. */
static struct run convert(const struct run *run, mgl_weight_code code, float *panel)
{
    switch (code) {
#define MGL_WEIGHT_CODE(id, name, bits, scaled, numbers)                                           \
    case MGL_CODE_##id:                                                                            \
        convert_code(run, MGL_CODE_##id, panel);                                                   \
        break;
#include "base/weight_codes.def"
    case MGL_CODE_COUNT:
        break;
    }
    return (struct run){.blocks = (const char *)panel,
                        .hi = (run->hi - run->lo) * columns_of(code) / SUMS,
                        .x = run->x + (int64_t)run->lo * columns_of(code),
                        .x_stride = run->x_stride,
                        .sums = run->sums};
}

/* Prefetch state for the run that follows `run`, spread over the tiles that multiply `rows` rows by
 * a panel of `steps` steps. Block addresses are written to `blocks`. */
static struct feed feed_of(const struct tape *tape, const struct run *run, int steps, int rows,
                           const char **blocks)
{
    int count = run->hi - run->lo, passes = rows / TILE_ROWS * passes_of(panel_tile(TILE_ROWS));
    if (rows % TILE_ROWS)
        passes += passes_of(panel_tile(rows % TILE_ROWS));
    for (int i = 0; i < count; i++)
        blocks[i] = tape_block(tape, run->lo + tape->step + i);
    return (struct feed){.blocks = blocks,
                         .rate = (unsigned)(count * GROUP * RATE / (passes * steps))};
}

static void multiply_tape(const struct run *run, const struct tape *tape, mgl_weight_code code,
                          int rows)
{
    struct run of_tile = *run;
    for (int r = 0; r < rows; r += TILE_ROWS) {
        tile_tape(&of_tile, tape, code, least(rows - r, TILE_ROWS));
        of_tile.x += TILE_ROWS * of_tile.x_stride;
        of_tile.sums += TILE_ROWS * STEP;
    }
}

static void multiply_panel(const struct run *run, const struct tape *tape, mgl_weight_code code,
                           int rows, float *panel)
{
    const char *blocks[RUN_STEPS];
    struct run of_tile = convert(run, code, panel);
    struct feed feed = feed_of(tape, run, of_tile.hi, rows, blocks);
    for (int r = 0; r < rows; r += TILE_ROWS) {
        tile_panel(&of_tile, &feed, least(rows - r, TILE_ROWS));
        of_tile.x += TILE_ROWS * of_tile.x_stride;
        of_tile.sums += TILE_ROWS * STEP;
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

/* Multiplies one row group by at most MGL_PRODUCTS_ROWS rows. `room`: a panel, then the partial
 * sums. */
static void multiply_group(const struct tape *tape, mgl_weight_code code, const float *x,
                           int64_t x_stride, int rows, float *room)
{
    float *sums = room + MGL_PRODUCTS_RUN * GROUP;
    struct scales scales;
    memset(sums, 0, (size_t)rows * STEP * sizeof *sums);
    for (int lo = 0; lo < tape->blocks; lo += tape->step) {
        struct run run = {.blocks = tape->group,
                          .place = tape->place,
                          .lo = lo,
                          .hi = least(lo + tape->step, tape->blocks),
                          .x = x,
                          .x_stride = x_stride,
                          .sums = sums,
                          .scales = &scales};
        if (is_scaled(code))
            convert_scales(tape->matrix, tape->group, tape->next,
                           (int64_t)run.lo * columns_of(code), (int64_t)run.hi * columns_of(code),
                           &scales);
        if (rows <= tape_rows(code))
            multiply_tape(&run, tape, code, rows);
        else
            multiply_panel(&run, tape, code, rows, room);
    }
}

/* Blocks per run of a panel, balanced over the runs. */
static int panel_run(const mgl_matrix *w)
{
    int most = MGL_PRODUCTS_RUN / columns_of(w->format.code), runs = (w->blocks + most - 1) / most;
    return (w->blocks + runs - 1) / runs;
}

static struct tape tape_of(const mgl_matrix *w, int rows)
{
    bool panel = rows > tape_rows(w->format.code);
    return (struct tape){.matrix = w,
                         .place = w->place,
                         .blocks = w->blocks,
                         .step = panel ? panel_run(w) : tape_run(w->format.code, rows),
                         .ahead = least(AHEAD, w->blocks)};
}

static float *align(float *at)
{
    return (float *)(((uintptr_t)at + LINE - 1) / LINE * LINE);
}

/* Multiplies at most MGL_PRODUCTS_ROWS rows. */
static void multiply_rows(const mgl_matrix *w, int64_t group_lo, int64_t group_hi, int64_t outputs,
                          const float *x, int64_t x_stride, int rows, float *to, int64_t to_stride,
                          float *room)
{
    struct tape tape = tape_of(w, rows);
    for (int64_t group = group_lo; group < group_hi; group++) {
        int64_t first = group * GROUP;
        tape.group = w->tape + (size_t)group * w->group_stride;
        tape.next = group + 1 < group_hi ? tape.group + w->group_stride : tape.group;
        multiply_group(&tape, w->format.code, x, x_stride, rows, room);
        store_group(room + MGL_PRODUCTS_RUN * GROUP, outputs - first, rows, to + first, to_stride);
    }
}

static void multiply(const mgl_matrix *w, int64_t group_lo, int64_t group_hi, int64_t outputs,
                     const float *x, int64_t x_stride, int rows, float *to, int64_t to_stride,
                     float *scratch)
{
    for (int r = 0; r < rows; r += MGL_PRODUCTS_ROWS) {
        int count = least(rows - r, MGL_PRODUCTS_ROWS);
        multiply_rows(w, group_lo, group_hi, outputs, x + r * x_stride, x_stride, count,
                      to + r * to_stride, to_stride, align(scratch));
    }
}

/* Copies the last n values and pads with zeros, so that every set computes the same SUMS
 * products. */
static void load_tail(const float *from, int64_t n, float *to)
{
    memset(to, 0, SUMS * sizeof *to);
    memcpy(to, from, (size_t)n * sizeof *to);
}

ALWAYS_INLINE void dot_step(const float *a, const float *b, vector *sums)
{
#pragma GCC unroll 16
    for (int part = 0; part < PARTS; part++)
        sums[part] = add_product(load(a + part * LANES), load(b + part * LANES), sums[part]);
}

static float dot(const float *a, const float *b, int64_t n)
{
    vector sums[PARTS];
    float last_a[SUMS], last_b[SUMS];
    int64_t i = 0;
#pragma GCC unroll 16
    for (int part = 0; part < PARTS; part++)
        sums[part] = zero();
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

/*
 * Tests of the CPU's products: every instruction set that this CPU supports, in every format,
 * against an oracle in f64, and word for word against the specified order of sums: with fused
 * multiply-add for the vector sets, and mgl_dot for the plain set. Also that the bits do not depend
 * on the division of row groups, the number of rows in a call, and the positions of k blocks. And
 * against an independent implementation: OpenBLAS on the dequantized matrix.
 */
#include "vm/cpu/products.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "fixture.h"
#include "instructions/reference/reference.h"
#include "quantize/calibrate/blas.h"

enum { MAX_SETS = 4, MAX_ROWS = 70, ANY_WARPS = 8, SUMS = 16 };

/* Unscaled formats, then scaled ones with each way to share scales. */
static const mgl_weight_format formats[] = {
    {.code = MGL_CODE_F32},
    {.code = MGL_CODE_BF16},
    {.code = MGL_CODE_F16},
    {.code = MGL_CODE_INT8, .scales = MGL_F32, .group_rows = 1},
    {.code = MGL_CODE_INT8, .scales = MGL_F16, .group = 32, .group_rows = 1},
    {.code = MGL_CODE_INT8, .scales = MGL_BF16, .group_rows = 1, .zeros = true},
    {.code = MGL_CODE_INT4, .scales = MGL_BF16, .group = 64, .group_rows = 1},
    {.code = MGL_CODE_INT4, .scales = MGL_F16, .group = 128, .group_rows = 1, .zeros = true},
    {.code = MGL_CODE_INT4, .scales = MGL_F32, .group = 48, .group_rows = 1, .zeros = true},
    {.code = MGL_CODE_INT4, .scales = MGL_F16, .group = 16, .group_rows = 1},
    {.code = MGL_CODE_INT4, .scales = MGL_F32, .group_rows = 1},
    {.code = MGL_CODE_INT8, .scales = MGL_F32, .group = 1024, .group_rows = 1, .zeros = true},
    {.code = MGL_CODE_INT8, .scales = MGL_BF16, .group = 32, .group_rows = 32, .zeros = true},
    {.code = MGL_CODE_UINT4, .scales = MGL_F16, .group = 32, .group_rows = 1},
    {.code = MGL_CODE_UINT4, .scales = MGL_F32, .group = 48, .group_rows = 1},
    {.code = MGL_CODE_UINT4, .scales = MGL_BF16, .group_rows = 1},
    {.code = MGL_CODE_UINT4, .scales = MGL_F16, .group = 32, .group_rows = 32},
    {.code = MGL_CODE_E4M3, .scales = MGL_BF16, .group = 80, .group_rows = 1},
    {.code = MGL_CODE_E4M3, .scales = MGL_F32, .group = 128, .group_rows = 128},
    {.code = MGL_CODE_E4M3, .scales = MGL_F32},
};
enum { FORMATS = sizeof formats / sizeof *formats, NUMBERS = 3 };

/* The sets of this CPU, the best first and the plain one last. */
static mgl_products sets[MAX_SETS];
static int set_count;

static void find_sets(void)
{
    static const char *const names[] = {"avx512vbmi", "avx512", "avx2", "neon", "plain"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (mgl_products_find(names[i], &sets[set_count]))
            set_count++;
        else
            printf("SKIPPED: the set %s, which this CPU cannot run\n", names[i]);
    }
}

/* ---- matrices -------------------------------------------------------------------------------- */

/* A matrix on a tape, and rows to multiply, in memory that ends exactly at their end. */
struct problem {
    mgl_matrix w;
    int64_t outputs, inputs, width; /* width: columns of all blocks */
    int64_t groups, scale_bytes;    /* of a row group */
    char *tape;
    int32_t *place;
    float *weights; /* (row groups * 8, width) values on the tape */
    float *x;       /* (rows, width) */
    int rows;
};

/* A function of seed and i in [-1, 1). */
static float value_of(uint32_t seed, int64_t i)
{
    uint64_t z = (uint64_t)i + seed * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (float)(z >> 40) * 0x1p-23f - 1.0f;
}

static int64_t groups_of(const struct problem *p)
{
    return (p->outputs + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
}

/* Where a row of a block lies: [row group][scales][place of its k block][8 rows][64 bytes]. */
static char *row_at(const struct problem *p, int64_t row, int64_t block)
{
    int64_t place = p->place ? p->place[block] : block;
    return p->tape + row / 8 * (int64_t)p->w.group_stride + p->scale_bytes + place * 512 +
           row % 8 * 64;
}

static int bits_of(const struct problem *p)
{
    return mgl_weight_code_get(p->w.format.code)->bits;
}

/* An unscaled weight. */
static char *weight_at(const struct problem *p, int64_t row, int64_t column)
{
    int64_t columns = 512 / bits_of(p);
    return row_at(p, row, column / columns) + column % columns * bits_of(p) / 8;
}

static void set_weight(struct problem *p, int64_t row, int64_t column, float value)
{
    mgl_weight_code_encode(p->w.format.code, weight_at(p, row, column), &value, MGL_F32, 1);
    mgl_weight_code_decode(p->w.format.code, p->weights + row * p->width + column,
                           weight_at(p, row, column), 1);
}

/* Clears the tape; `warps` 0: blocks in their order. */
static struct problem make_zeros(mgl_weight_format format, int64_t outputs, int64_t inputs,
                                 int rows, int warps)
{
    const int bits = mgl_weight_code_get(format.code)->bits;
    int64_t columns = 512 / bits;
    struct problem p = {.outputs = outputs, .inputs = inputs, .rows = rows};
    int64_t blocks = (inputs + columns - 1) / columns;
    const bool minimums = format.code == MGL_CODE_UINT4;
    const bool on_tape = bits < 16 && (format.group > 0 || format.zeros || minimums);
    p.groups = !on_tape ? 0 : format.group ? (inputs + format.group - 1) / format.group : 1;
    const int64_t size = (int64_t)mgl_dtype_size(format.scales);
    const int64_t each = size + (minimums ? size : format.zeros);
    p.scale_bytes = (p.groups * (format.group_rows == 1 ? 8 : 1) * each + 511) / 512 * 512;
    size_t stride = (size_t)blocks * MGL_BLOCK_BYTES + (size_t)p.scale_bytes;
    p.width = blocks * columns;
    p.tape = mgl_alloc_aligned(64, (size_t)groups_of(&p) * stride);
    memset(p.tape, 0, (size_t)groups_of(&p) * stride);
    if (warps) {
        p.place = mgl_alloc((size_t)blocks * sizeof *p.place);
        for (int64_t b = 0; b < blocks; b++)
            p.place[b] = mgl_tape_place_of_block((int)blocks, warps, (int)b);
    }
    p.w = (mgl_matrix){.tape = p.tape + p.scale_bytes,
                       .group_stride = stride,
                       .place = p.place,
                       .blocks = (int)blocks,
                       .format = format,
                       .scales = -(ptrdiff_t)p.scale_bytes,
                       .groups = p.groups};
    p.weights = mgl_alloc_zero((size_t)(groups_of(&p) * 8 * p.width), sizeof(float));
    p.x = mgl_alloc_zero((size_t)(rows * p.width), sizeof(float));
    return p;
}

/* The number of a code, from its definition. */
static float number_of(mgl_weight_code code, int bits, int zero)
{
    if (code != MGL_CODE_E4M3)
        return (float)(bits - zero);
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    const float magnitude =
        exponent ? ldexpf(1 + (float)mantissa / 8, exponent - 7) : ldexpf((float)mantissa, -9);
    return bits & 128 ? -magnitude : magnitude;
}

/* Sets scale, zero point and minimum of a group of a row. Rows that share them get those of the
 * first. */
static float set_scale(struct problem *p, int64_t row, int64_t group, int *zero, float *minimum)
{
    const mgl_weight_format f = p->w.format;
    const int64_t of = f.group_rows == 1 ? row : row / 8 * 8;
    const int64_t rows = f.group_rows == 1 ? 8 : 1, at = group * rows + (rows == 8 ? row % 8 : 0);
    const float drawn = 0.01f * (2 + value_of(5, of * 1000 + group));
    char *scales = p->tape + row / 8 * (int64_t)p->w.group_stride;
    float scale = 1;
    *zero = f.code == MGL_CODE_UINT4 ? 0 : bits_of(p) == 4 ? 8 : 128;
    *minimum = 0;
    if (p->groups == 0)
        return scale;
    mgl_convert(scales + at * (int64_t)mgl_dtype_size(f.scales), f.scales, &drawn, MGL_F32, 1);
    mgl_convert(&scale, MGL_F32, scales + at * (int64_t)mgl_dtype_size(f.scales), f.scales, 1);
    if (f.code == MGL_CODE_UINT4) {
        const float low = -8.3f * drawn;
        char *to = scales + (p->groups * rows + at) * (int64_t)mgl_dtype_size(f.scales);
        mgl_convert(to, f.scales, &low, MGL_F32, 1);
        mgl_convert(minimum, MGL_F32, to, f.scales, 1);
    }
    if (f.zeros) {
        *zero = (int)(of * 7 + group * 3) % (1 << bits_of(p));
        scales[p->groups * rows * (int64_t)mgl_dtype_size(f.scales) + at] = (char)*zero;
    }
    return scale;
}

/* Sets all weights of a scaled format, with the places of schedule/formats.h. */
static void set_scaled(struct problem *p)
{
    static const int nibbles[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    const mgl_weight_format f = p->w.format;
    const int columns = 512 / bits_of(p);
    for (int64_t row = 0; row < p->outputs; row++)
        for (int64_t k = 0; k < p->inputs; k++) {
            const int64_t group = f.group ? k / f.group : 0;
            int zero, in = (int)(k % columns), j = in / 32, q = in / 8 % 4, i = in % 8, nibble = 0;
            float minimum;
            const float scale = set_scale(p, row, group, &zero, &minimum);
            int code = (int)((value_of(1, row * p->inputs + k) + 1) / 2 * (float)(1 << bits_of(p)));
            if (f.code == MGL_CODE_E4M3 && (code & 127) == 127)
                code ^= 1; /* no NaN */
            unsigned char *at = (unsigned char *)row_at(p, row, k / columns);
            while (nibbles[nibble] != i)
                nibble++;
            if (bits_of(p) == 8)
                at[16 * q + 8 * j + i] = (unsigned char)code;
            else
                at[16 * q + 4 * j + nibble / 2] |= (unsigned char)(code << nibble % 2 * 4);
            p->weights[row * p->width + k] = number_of(f.code, code, zero) * scale;
            if (f.code == MGL_CODE_UINT4)
                p->weights[row * p->width + k] += minimum;
        }
}

static struct problem make(mgl_weight_format format, int64_t outputs, int64_t inputs, int rows,
                           int warps)
{
    struct problem p = make_zeros(format, outputs, inputs, rows, warps);
    if (mgl_weight_format_is_scaled(format))
        set_scaled(&p);
    for (int64_t i = 0; i < outputs && !mgl_weight_format_is_scaled(format); i++)
        for (int64_t k = 0; k < inputs; k++)
            set_weight(&p, i, k, value_of(1, i * inputs + k));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < inputs; k++)
            p.x[r * p.width + k] = value_of(2, r * inputs + k);
    return p;
}

static void release(struct problem *p)
{
    mgl_free(p->tape);
    mgl_free(p->place);
    mgl_free(p->weights);
    mgl_free(p->x);
}

/* All products (rows, outputs), released by mgl_free. */
static float *multiply(const mgl_products *set, const struct problem *p)
{
    float *to = mgl_alloc((size_t)(p->rows * p->outputs) * sizeof *to);
    float *scratch = mgl_alloc(mgl_products_scratch(p->w.blocks, p->w.format) * sizeof *scratch);
    set->multiply(&p->w, 0, groups_of(p), p->outputs, p->x, p->width, p->rows, to, p->outputs,
                  scratch);
    mgl_free(scratch);
    return to;
}

/* ---- oracles --------------------------------------------------------------------------------- */

/* The order of sums of products.h, bit for bit. */
static float dot_in_order(const float *a, const float *b, int64_t n)
{
    float sums[SUMS] = {0};
    for (int64_t k = 0; k < n; k++)
        sums[k % SUMS] = fmaf(a[k], b[k], sums[k % SUMS]);
    for (int apart = SUMS / 2; apart > 0; apart /= 2)
        for (int j = 0; j < apart; j++)
            sums[j] += sums[j + apart];
    return sums[0];
}

static bool is_plain(const mgl_products *set)
{
    return !strcmp(set->name, "plain");
}

static float wanted_bits(const mgl_products *set, const float *a, const float *b, int64_t n)
{
    return is_plain(set) ? mgl_dot(a, b, n) : dot_in_order(a, b, n);
}

/* Error bound: each of n / 16 additions to a partial sum rounds, and its product too unless fused,
 * then 4 additions of sums; each by at most 2^-24 of the sum of the absolute products. */
static void check_near(float found, const float *a, const float *b, int64_t n)
{
    double sum = 0, magnitude = 0;
    for (int64_t k = 0; k < n; k++) {
        sum += (double)a[k] * (double)b[k];
        magnitude += fabs((double)a[k] * (double)b[k]);
    }
    ck_assert_double_le(fabs((double)found - sum), (double)(n / SUMS + 7) * 0x1p-24 * magnitude);
}

/* Equal bits, or both NaN. */
static void check_bits(float found, float wanted)
{
    if (isnan(wanted))
        ck_assert_float_nan(found);
    else
        ck_assert_mem_eq(&found, &wanted, sizeof found);
}

/* ---- products -------------------------------------------------------------------------------- */

/* Outputs and inputs, with edges inside a row group, a block, 16 columns, and a run of columns. */
static const int64_t shapes[][2] = {{1, 1},   {7, 31},  {8, 32},    {9, 33},   {21, 100},
                                    {16, 48}, {24, 17}, {11, 1100}, {5, 2048}, {3, 1575}};

enum { SHAPES = sizeof shapes / sizeof *shapes };

static void check_problem(const mgl_products *set, const struct problem *p)
{
    float *to = multiply(set, p);
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t i = 0; i < p->outputs; i++) {
            const float *x = p->x + r * p->width, *w = p->weights + i * p->width;
            check_near(to[r * p->outputs + i], x, w, p->inputs);
            check_bits(to[r * p->outputs + i], wanted_bits(set, x, w, p->width));
        }
    mgl_free(to);
}

START_TEST(products_are_those_of_the_definition)
{
    static const int rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 33};
    mgl_weight_format format = formats[_i % FORMATS];
    int warps = _i / FORMATS % 2 ? ANY_WARPS : 0;
    for (int s = 0; s < SHAPES; s++) {
        struct problem p = make(format, shapes[s][0], shapes[s][1], MAX_ROWS, warps);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            p.rows = rows[i];
            check_problem(&sets[_i / FORMATS / 2], &p);
        }
        release(&p);
    }
}
END_TEST

/* sgemv (one row) and sgemm of OpenBLAS on the dequantized matrix. Each sum of n products in f32,
 * in any order, is within n 2^-24 of the sum of the absolute products, and so is the set's. */
static void compare_with_blas(const mgl_blas *blas, const mgl_products *set,
                              const struct problem *p)
{
    const int n = (int)p->inputs, width = (int)p->width, outputs = (int)p->outputs;
    float *found = multiply(set, p), *wanted = mgl_alloc((size_t)(p->rows * outputs) * 4);
    if (p->rows == 1)
        blas->sgemv(MGL_BLAS_ROWS, MGL_BLAS_PLAIN, outputs, n, 1, p->weights, width, p->x, 1, 0,
                    wanted, 1);
    else
        blas->sgemm(MGL_BLAS_ROWS, MGL_BLAS_PLAIN, MGL_BLAS_TRANSPOSED, p->rows, outputs, n, 1,
                    p->x, width, p->weights, width, 0, wanted, outputs);
    for (int i = 0; i < p->rows * outputs; i++) {
        double magnitude = 0;
        for (int k = 0; k < n; k++)
            magnitude += fabs((double)p->x[i / outputs * width + k] *
                              (double)p->weights[i % outputs * width + k]);
        ck_assert_double_le(fabs((double)found[i] - (double)wanted[i]),
                            2 * n * 0x1p-24 * magnitude);
    }
    mgl_free(found);
    mgl_free(wanted);
}

START_TEST(products_are_those_of_openblas)
{
    static const int64_t sizes[][2] = {{8, 32}, {21, 100}, {64, 512}, {40, 1100}};
    static const int rows[] = {1, 5, MAX_ROWS};
    const mgl_blas *blas;
    mgl_error err;
    if (mgl_blas_open(&blas, &err)) {
        printf("SKIPPED: %s: %s\n", err.where, err.message);
        return;
    }
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int r = 0; r < 3; r++) {
            struct problem p =
                make(formats[_i % FORMATS], sizes[s][0], sizes[s][1], rows[r], ANY_WARPS);
            compare_with_blas(blas, &sets[_i / FORMATS], &p);
            release(&p);
        }
}
END_TEST

/* Each row of a call with many rows equals that of a call with one. */
START_TEST(bits_do_not_depend_on_the_rows)
{
    for (int s = 0; s < SHAPES; s++) {
        const mgl_products *set = &sets[_i / FORMATS];
        struct problem p =
            make(formats[_i % FORMATS], shapes[s][0], shapes[s][1], MAX_ROWS, ANY_WARPS);
        float *all = multiply(set, &p);
        struct problem one = p;
        one.rows = 1;
        for (int r = 0; r < p.rows; r++, one.x += p.width) {
            float *row = multiply(set, &one);
            ck_assert_mem_eq(row, all + r * p.outputs, (size_t)p.outputs * sizeof *row);
            mgl_free(row);
        }
        mgl_free(all);
        release(&p);
    }
}
END_TEST

START_TEST(bits_do_not_depend_on_how_the_groups_are_cut)
{
    enum { ROWS = 5, OUTPUTS = 45 };
    const mgl_products *set = &sets[_i / FORMATS];
    struct problem p = make(formats[_i % FORMATS], OUTPUTS, 700, ROWS, ANY_WARPS);
    float *whole = multiply(set, &p), cut[ROWS * OUTPUTS];
    float *scratch = mgl_alloc(mgl_products_scratch(p.w.blocks, p.w.format) * sizeof *scratch);
    for (int64_t size = 1; size < groups_of(&p); size++) {
        memset(cut, 0, sizeof cut);
        for (int64_t lo = 0; lo < groups_of(&p); lo += size) {
            int64_t hi = lo + size < groups_of(&p) ? lo + size : groups_of(&p);
            set->multiply(&p.w, lo, hi, OUTPUTS, p.x, p.width, ROWS, cut, OUTPUTS, scratch);
        }
        ck_assert_mem_eq(cut, whole, sizeof cut);
    }
    mgl_free(scratch);
    mgl_free(whole);
    release(&p);
}
END_TEST

/* Every second row group, as for two interleaved tensors on a tape. */
START_TEST(a_matrix_may_have_gaps_between_its_groups)
{
    const mgl_products *set = &sets[_i / FORMATS];
    struct problem p = make(formats[_i % FORMATS], 40, 90, 4, ANY_WARPS), every_second = p;
    float *all = multiply(set, &p);
    every_second.w.group_stride *= 2;
    every_second.outputs = 24;
    float *half = multiply(set, &every_second);
    for (int64_t r = 0; r < p.rows; r++)
        for (int64_t i = 0; i < 24; i++)
            ck_assert_float_eq(half[r * 24 + i], all[r * 40 + i / 8 * 16 + i % 8]);
    mgl_free(all);
    mgl_free(half);
    release(&p);
}
END_TEST

/* Rows of x and scratch may have any float alignment. */
START_TEST(only_the_outputs_are_written)
{
    enum { ROWS = 4, OUTPUTS = 13, STRIDE = 20, CANARY = 77 };
    const mgl_products *set = &sets[_i / FORMATS];
    struct problem p = make(formats[_i % FORMATS], OUTPUTS, 70, ROWS, ANY_WARPS);
    float *x = mgl_alloc((size_t)(1 + ROWS * p.width) * sizeof *x), to[(ROWS + 1) * STRIDE];
    size_t room = mgl_products_scratch(p.w.blocks, p.w.format);
    float *scratch = mgl_alloc((1 + room) * sizeof *scratch);
    memcpy(x + 1, p.x, (size_t)(ROWS * p.width) * sizeof *x);
    for (int i = 0; i < (ROWS + 1) * STRIDE; i++)
        to[i] = CANARY;
    set->multiply(&p.w, 1, 2, OUTPUTS, x + 1, p.width, ROWS, to, STRIDE, scratch + 1);
    for (int i = 0; i < (ROWS + 1) * STRIDE; i++)
        if (i / STRIDE == ROWS || i % STRIDE < 8 || i % STRIDE >= OUTPUTS)
            ck_assert_float_eq(to[i], CANARY);
        else
            ck_assert_float_ne(to[i], CANARY);
    mgl_free(x);
    mgl_free(scratch);
    release(&p);
}
END_TEST

static double relative_error(const float *found, const float *wanted, int64_t n)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        difference += pow((double)found[i] - (double)wanted[i], 2);
        norm += pow((double)wanted[i], 2);
    }
    return sqrt(difference / norm);
}

START_TEST(plain_c_agrees_with_every_set)
{
    struct problem p = make(formats[_i % FORMATS], 33, 2048, 6, ANY_WARPS);
    float *plain = multiply(&sets[set_count - 1], &p), *found = multiply(&sets[_i / FORMATS], &p);
    ck_assert_double_le(relative_error(found, plain, p.rows * p.outputs), 1e-5);
    mgl_free(plain);
    mgl_free(found);
    release(&p);
}
END_TEST

/* ---- values ---------------------------------------------------------------------------------- */

/* Row i has pattern i between zeros, so that the product with ones is the weight. With 1 row and
 * with 7, which use different code. */
START_TEST(every_pattern_of_16_bits_is_converted_exactly)
{
    enum { PATTERNS = 1 << 16, ROWS = 7 };
    mgl_weight_code code = _i % 2 ? MGL_CODE_F16 : MGL_CODE_BF16;
    struct problem p = make_zeros((mgl_weight_format){.code = code}, PATTERNS, 32, ROWS, 0);
    for (int64_t i = 0; i < PATTERNS; i++) {
        uint16_t pattern = (uint16_t)i;
        memcpy(weight_at(&p, i, i % 32), &pattern, sizeof pattern);
    }
    for (int64_t k = 0; k < ROWS * p.width; k++)
        p.x[k] = 1;
    for (p.rows = 1; p.rows <= ROWS; p.rows += ROWS - 1) {
        float *to = multiply(&sets[_i / 2], &p);
        for (int64_t i = 0; i < p.rows * PATTERNS; i++) {
            uint16_t pattern = (uint16_t)(i % PATTERNS);
            float wanted =
                code == MGL_CODE_F16 ? mgl_f16_to_f32(pattern) : mgl_bf16_to_f32(pattern);
            check_bits(to[i], wanted + 0.0f); /* -0 becomes 0 in any sum */
        }
        mgl_free(to);
    }
    release(&p);
}
END_TEST

/* One special value among ordinary weights, and the same in x. */
START_TEST(special_values_are_those_of_the_definition)
{
    static const float specials[] = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 0x1p-24f, 0x1p-149f};
    enum { SPECIALS = sizeof specials / sizeof *specials, INPUTS = 90 };
    const mgl_products *set = &sets[_i / NUMBERS];
    for (int of_x = 0; of_x < 2; of_x++) {
        struct problem p = make(formats[_i % NUMBERS], SPECIALS, INPUTS, SPECIALS, ANY_WARPS);
        for (int64_t s = 0; s < SPECIALS; s++)
            if (of_x)
                p.x[s * p.width + 11 * s] = specials[s];
            else
                set_weight(&p, s, 11 * s, specials[s]);
        float *to = multiply(set, &p);
        for (int64_t r = 0; r < p.rows; r++)
            for (int64_t i = 0; i < p.outputs; i++)
                check_bits(to[r * p.outputs + i],
                           wanted_bits(set, p.x + r * p.width, p.weights + i * p.width, p.width));
        mgl_free(to);
        release(&p);
    }
}
END_TEST

/* Products below the least normal number are not flushed to zero. */
START_TEST(subnormal_products_are_kept)
{
    struct problem p = make_zeros(formats[_i % NUMBERS], 1, 32, 1, 0);
    set_weight(&p, 0, 3, 0x1p-14f);
    p.x[3] = 0x1p-120f;
    float *to = multiply(&sets[_i / NUMBERS], &p);
    ck_assert_float_eq(to[0], 0x1p-134f);
    mgl_free(to);
    release(&p);
}
END_TEST

/* ---- vectors --------------------------------------------------------------------------------- */

START_TEST(dot_is_that_of_the_definition)
{
    enum { LONGEST = 131 };
    for (int64_t n = 0; n <= LONGEST; n++) {
        float *a = mgl_alloc((size_t)(n + 1) * sizeof *a), *b = mgl_alloc((size_t)(n + 1) * 4);
        for (int64_t i = 0; i < n; i++) {
            a[i] = value_of(3, i);
            b[i] = value_of(4, i);
        }
        float found = sets[_i].dot(a, b, n);
        check_near(found, a, b, n);
        check_bits(found, wanted_bits(&sets[_i], a, b, n));
        mgl_free(a);
        mgl_free(b);
    }
}
END_TEST

START_TEST(add_scaled_adds_to_each)
{
    enum { LONGEST = 67 };
    const float scale = 0.37f;
    for (int64_t n = 0; n <= LONGEST; n++) {
        float *to = mgl_alloc((size_t)(n + 1) * sizeof *to), *v = mgl_alloc((size_t)(n + 1) * 4);
        for (int64_t i = 0; i <= n; i++) {
            to[i] = value_of(5, i);
            v[i] = value_of(6, i);
        }
        sets[_i].add_scaled(to, scale, v, n);
        for (int64_t i = 0; i < n; i++) {
            float product = scale * v[i], old = value_of(5, i);
            check_bits(to[i], is_plain(&sets[_i]) ? old + product : fmaf(scale, v[i], old));
        }
        ck_assert_float_eq(to[n], value_of(5, n));
        mgl_free(to);
        mgl_free(v);
    }
}
END_TEST

/* ---- the choice ------------------------------------------------------------------------------ */

START_TEST(the_best_set_is_the_first_that_the_cpu_can_run)
{
    ck_assert_str_eq(mgl_products_get().name, sets[0].name);
}
END_TEST

START_TEST(plain_c_runs_everywhere)
{
    ck_assert_str_eq(sets[set_count - 1].name, "plain");
}
END_TEST

START_TEST(an_unknown_name_is_no_set)
{
    mgl_products set;
    ck_assert(!mgl_products_find("sse9", &set));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("products");
    tcase_set_timeout(tests, 120);
    find_sets();
    int each = set_count * FORMATS;
    tcase_add_loop_test(tests, products_are_those_of_the_definition, 0, 2 * each);
    tcase_add_loop_test(tests, products_are_those_of_openblas, 0, each);
    tcase_add_loop_test(tests, bits_do_not_depend_on_the_rows, 0, each);
    tcase_add_loop_test(tests, bits_do_not_depend_on_how_the_groups_are_cut, 0, each);
    tcase_add_loop_test(tests, a_matrix_may_have_gaps_between_its_groups, 0, each);
    tcase_add_loop_test(tests, only_the_outputs_are_written, 0, each);
    tcase_add_loop_test(tests, plain_c_agrees_with_every_set, 0, each);
    tcase_add_loop_test(tests, every_pattern_of_16_bits_is_converted_exactly, 0, 2 * set_count);
    tcase_add_loop_test(tests, special_values_are_those_of_the_definition, 0, set_count * NUMBERS);
    tcase_add_loop_test(tests, subnormal_products_are_kept, 0, set_count * NUMBERS);
    tcase_add_loop_test(tests, dot_is_that_of_the_definition, 0, set_count);
    tcase_add_loop_test(tests, add_scaled_adds_to_each, 0, set_count);
    tcase_add_test(tests, the_best_set_is_the_first_that_the_cpu_can_run);
    tcase_add_test(tests, plain_c_runs_everywhere);
    tcase_add_test(tests, an_unknown_name_is_no_set);
    return fixture_main("products", tests);
}

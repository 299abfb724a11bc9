/* Tests of rounding to nearest: codes, scales and zero points of a row. */
#include "quantize/pack.h"
#include "quantize/round.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 96, GROUP = 32, GROUPS = COLUMNS / GROUP };

/* A rounded row. */
typedef struct row {
    uint8_t codes[COLUMNS], zeros[GROUPS];
    float scales[GROUPS];
    int64_t column;
} row;

static mgl_rounded round_by(const float *weights, mgl_weight_format format, mgl_fit fit, row *r)
{
    r->column = -1;
    return mgl_round_row(weights, COLUMNS, format, fit, r->codes, r->scales, r->zeros, &r->column);
}

static mgl_rounded round_to(const float *weights, mgl_weight_format format, row *r)
{
    return round_by(weights, format, (mgl_fit){0}, r);
}

static float weight_of(const row *r, mgl_weight_format f, int column)
{
    const int group = f.group ? column / f.group : 0;
    const int zero = f.zeros ? r->zeros[group] : f.code == MGL_CODE_INT4 ? 8 : 128;
    return mgl_weight_code_number(f.code, r->codes[column], zero) * r->scales[group];
}

/* Weights of several magnitudes and signs. */
static void fill(float *weights, float magnitude)
{
    uint32_t state = 12345;
    for (int i = 0; i < COLUMNS; i++) {
        state = state * 1664525u + 1013904223u;
        weights[i] = magnitude * ((float)(state >> 8) / (1 << 24) - 0.3f);
    }
}

static const mgl_weight_code codes[] = {MGL_CODE_INT8, MGL_CODE_INT4, MGL_CODE_E4M3};
static const mgl_dtype dtypes[] = {MGL_F32, MGL_BF16, MGL_F16};
/* The last ones need scales that are subnormal, or 0, in F16. */
static const float magnitudes[] = {1, 300, 1e-3f, 3e-5f, 1e-9f};

/* Half the distance between the numbers around a weight, in weights. */
static float half_step(mgl_weight_code code, float weight, float scale)
{
    int exponent;
    if (code != MGL_CODE_E4M3)
        return scale / 2;
    frexpf(weight / scale, &exponent); /* 2^(exponent - 1) <= number < 2^exponent; 3 bits follow */
    return ldexpf(scale, (exponent < -5 ? -5 : exponent) - 5);
}

START_TEST(each_weight_is_within_half_a_step)
{
    float weights[COLUMNS];
    row r;
    for (int i = 0; i < 3 * 3 * 5 * 2 * 2; i++) {
        const mgl_weight_format f = {.code = codes[i % 3],
                                     .scales = dtypes[i / 3 % 3],
                                     .group = i / 45 % 2 ? GROUP : MGL_GROUP_ALL,
                                     .group_rows = 1,
                                     .zeros = i / 90 && codes[i % 3] != MGL_CODE_E4M3};
        fill(weights, magnitudes[i / 9 % 5]);
        ck_assert_int_eq(round_to(weights, f, &r), MGL_ROUNDED);
        for (int c = 0; c < COLUMNS; c++) {
            const float scale = r.scales[f.group ? c / f.group : 0];
            const float limit = half_step(f.code, weights[c], scale);
            const float away = fabsf(weight_of(&r, f, c) - weights[c]);
            ck_assert_msg(away <= limit * 1.00001f, "case %d, column %d: %g of %g", i, c,
                          (double)away, (double)limit);
        }
    }
}
END_TEST

/* Codes follow from the scale in its own dtype, and ties go to the even code. */
START_TEST(values_of_a_group)
{
    const mgl_weight_format f = {MGL_CODE_INT8, MGL_BF16, MGL_GROUP_ALL, 1, false};
    float weights[COLUMNS] = {127, -127, 0.5f, 1.5f, -0.5f, -1.5f, 2.5f, 3.49f};
    static const uint8_t wanted[] = {255, 1, 128, 130, 128, 126, 130, 131};
    row r;
    ck_assert_int_eq(round_to(weights, f, &r), MGL_ROUNDED);
    ck_assert_float_eq(r.scales[0], 1);
    ck_assert_mem_eq(r.codes, wanted, sizeof wanted);
    weights[0] = 127.3f; /* the scale 1.0024 is 1 in bf16, and the code is clamped */
    ck_assert_int_eq(round_to(weights, f, &r), MGL_ROUNDED);
    ck_assert_float_eq(r.scales[0], 1);
    ck_assert_mem_eq(r.codes, wanted, sizeof wanted);
}
END_TEST

START_TEST(zero_points)
{
    const mgl_weight_format f = {MGL_CODE_INT4, MGL_F32, GROUP, 1, true};
    float weights[COLUMNS] = {-2, 13};
    row r;
    weights[GROUP] = 15; /* no weight is negative */
    weights[2 * GROUP] = -15;
    ck_assert_int_eq(round_to(weights, f, &r), MGL_ROUNDED);
    ck_assert_uint_eq(r.zeros[0], 2);
    ck_assert_uint_eq(r.codes[0], 0);
    ck_assert_uint_eq(r.codes[1], 15);
    ck_assert_uint_eq(r.zeros[1], 0);
    ck_assert_uint_eq(r.codes[GROUP], 15);
    ck_assert_uint_eq(r.zeros[2], 15);
    ck_assert_uint_eq(r.codes[2 * GROUP], 0);
    for (int i = 0; i < GROUPS; i++)
        ck_assert_float_eq(r.scales[i], 1);
}
END_TEST

START_TEST(a_group_of_zeros_has_the_scale_1)
{
    static const uint8_t wanted[] = {128, 8, 0};
    const float weights[COLUMNS] = {0};
    row r;
    for (int i = 0; i < 3; i++) {
        const mgl_weight_format f = {codes[i], MGL_F16, GROUP, 1, false};
        ck_assert_int_eq(round_to(weights, f, &r), MGL_ROUNDED);
        for (int c = 0; c < COLUMNS; c++)
            ck_assert_uint_eq(r.codes[c], wanted[i]);
        ck_assert_float_eq(r.scales[1], 1);
    }
}
END_TEST

START_TEST(numbers_without_a_code)
{
    const mgl_weight_format f = {MGL_CODE_INT8, MGL_F16, GROUP, 1, false};
    float weights[COLUMNS] = {0};
    row r;
    weights[40] = 1e9f; /* the scale is above 65504 */
    ck_assert_int_eq(round_to(weights, f, &r), MGL_ROUND_TOO_LARGE);
    ck_assert_int_eq(r.column, 32);
    weights[70] = -INFINITY;
    ck_assert_int_eq(round_to(weights, f, &r), MGL_ROUND_NOT_FINITE);
    ck_assert_int_eq(r.column, 70);
    weights[50] = NAN;
    ck_assert_int_eq(round_to(weights, f, &r), MGL_ROUND_NOT_FINITE);
    ck_assert_int_eq(r.column, 50);
}
END_TEST

/* The squared error of a row, weighted by `importance`, which may be NULL. */
static double squared_error(const float *weights, const row *r, mgl_weight_format f,
                            const float *importance)
{
    double sum = 0;
    for (int c = 0; c < COLUMNS; c++) {
        const double error = (double)weight_of(r, f, c) - (double)weights[c];
        sum += error * error * (importance ? (double)importance[c] : 1);
    }
    return sum;
}

/* The clipping search never has a larger squared error than rounding to nearest, and for 4 bits a
 * smaller one. */
START_TEST(the_clipping_search_lowers_the_error)
{
    float weights[COLUMNS], importance[COLUMNS];
    row nearest, searched;
    fill(weights, 1);
    for (int c = 0; c < COLUMNS; c++)
        importance[c] = c % 7 ? 1 : 40;
    weights[5] = 3; /* an outlier */
    for (int i = 0; i < 3 * 3 * 2 * 2; i++) {
        const mgl_weight_format f = {.code = codes[i % 3],
                                     .scales = dtypes[i / 3 % 3],
                                     .group = GROUP,
                                     .group_rows = 1,
                                     .zeros = i / 18 && codes[i % 3] != MGL_CODE_E4M3};
        const mgl_fit fit = {true, i / 9 % 2 ? importance : NULL};
        ck_assert_int_eq(round_by(weights, f, (mgl_fit){0}, &nearest), MGL_ROUNDED);
        ck_assert_int_eq(round_by(weights, f, fit, &searched), MGL_ROUNDED);
        const double before = squared_error(weights, &nearest, f, fit.importance);
        const double after = squared_error(weights, &searched, f, fit.importance);
        ck_assert_double_le(after, before * 1.00001);
        if (f.code == MGL_CODE_INT4)
            ck_assert_double_lt(after, before * 0.95);
    }
}
END_TEST

/* Symmetric integers use the code -2^(bits - 1), and important weights decide about the scale. */
START_TEST(scales_of_the_clipping_search)
{
    const mgl_weight_format f = {MGL_CODE_INT4, MGL_F32, MGL_GROUP_ALL, 1, false};
    float weights[COLUMNS], importance[COLUMNS];
    row r;
    for (int c = 0; c < COLUMNS; c++) {
        weights[c] = (float)(c % 16 - 8);
        importance[c] = 1e-6f;
    }
    ck_assert_int_eq(round_by(weights, f, (mgl_fit){true, NULL}, &r), MGL_ROUNDED);
    ck_assert_float_eq(r.scales[0], 1);
    ck_assert_uint_eq(r.codes[0], 0);
    ck_assert_uint_eq(r.codes[15], 15);
    weights[3] = 12; /* clamped: its weight is small */
    weights[4] = -4;
    importance[4] = 1;
    ck_assert_int_eq(round_by(weights, f, (mgl_fit){true, importance}, &r), MGL_ROUNDED);
    ck_assert_float_lt(fabsf(weight_of(&r, f, 4) + 4), 0.02f);
}
END_TEST

/* All e4m3 numbers are their own codes; between two numbers, the nearer one or the even code. */
START_TEST(e4m3)
{
    for (unsigned bits = 0; bits < 0x7E; bits++) {
        const float low = mgl_weight_code_number(MGL_CODE_E4M3, bits, 0);
        const float high = mgl_weight_code_number(MGL_CODE_E4M3, bits + 1, 0);
        const float middle = (low + high) / 2;
        ck_assert_uint_eq(mgl_round_e4m3(low), bits);
        ck_assert_uint_eq(mgl_round_e4m3(-high), 0x80 | (bits + 1));
        ck_assert_uint_eq(mgl_round_e4m3(middle), bits + (bits & 1));
        ck_assert_uint_eq(mgl_round_e4m3(nextafterf(middle, 0)), bits);
        ck_assert_uint_eq(mgl_round_e4m3(nextafterf(middle, 1000)), bits + 1);
    }
    ck_assert_uint_eq(mgl_round_e4m3(1000), 0x7E);
    ck_assert_uint_eq(mgl_round_e4m3(-460), 0xFE);
}
END_TEST

/* Zero points are packed along the rows; the last word is filled with zeros. */
START_TEST(packing)
{
    static const uint8_t nibbles[8] = {1, 2, 3, 4, 5, 6, 7, 15};
    static const uint8_t packed[4] = {0x21, 0x43, 0x65, 0xF7};
    uint8_t zeros[9 * 2], out[16];
    mgl_pack_codes(nibbles, 8, 4, out);
    ck_assert_mem_eq(out, packed, 4);
    for (int i = 0; i < 18; i++)
        zeros[i] = (uint8_t)(i % 16);
    ck_assert_int_eq(mgl_packed_zero_bytes(9, 2, 4), 16);
    mgl_pack_zeros(zeros, 9, 2, 4, out);
    static const uint8_t words[16] = {0x20, 0x64, 0xA8, 0xEC, 0x31, 0x75, 0xB9,
                                      0xFD, 0,    0,    0,    0,    1};
    ck_assert_mem_eq(out, words, 16);
    ck_assert_int_eq(mgl_packed_zero_bytes(5, 1, 8), 8);
    mgl_pack_zeros(zeros, 5, 1, 8, out);
    static const uint8_t bytes[8] = {0, 1, 2, 3, 4, 0, 0, 0};
    ck_assert_mem_eq(out, bytes, 8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantize round");
    TCase *tests = tcase_create("round");
    tcase_add_test(tests, each_weight_is_within_half_a_step);
    tcase_add_test(tests, values_of_a_group);
    tcase_add_test(tests, zero_points);
    tcase_add_test(tests, a_group_of_zeros_has_the_scale_1);
    tcase_add_test(tests, numbers_without_a_code);
    tcase_add_test(tests, the_clipping_search_lowers_the_error);
    tcase_add_test(tests, scales_of_the_clipping_search);
    tcase_add_test(tests, e4m3);
    tcase_add_test(tests, packing);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

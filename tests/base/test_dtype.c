/* Tests of number formats: every f16 and bf16 value converted to f32 and back,
 * round-to-nearest-even at every boundary, and names. */
#include "base/dtype.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

/* The value of an f16 by the definition of the format. */
static double f16_value(unsigned bits)
{
    int exponent = (int)(bits >> 10 & 31), mantissa = (int)(bits & 0x3FF);
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return mantissa ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24));
}

START_TEST(test_every_f16)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        float value = mgl_f16_to_f32((uint16_t)bits);
        double wanted = f16_value(bits);
        if (isnan(wanted)) {
            ck_assert(isnan(value));
            ck_assert(isnan(mgl_f16_to_f32(mgl_f32_to_f16(value))));
            continue;
        }
        ck_assert_msg((double)value == wanted && !signbit(value) == !signbit(wanted), "%04x", bits);
        ck_assert_uint_eq(mgl_f32_to_f16(value), bits);
    }
}
END_TEST

/* Between two neighbors: just below the midpoint, the midpoint, just above it. The f32 value is
 * exact. */
START_TEST(test_f16_rounding)
{
    for (unsigned bits = 0; bits < 0x7BFF; bits++) {
        float low = mgl_f16_to_f32((uint16_t)bits), high = mgl_f16_to_f32((uint16_t)(bits + 1));
        float middle = low + (high - low) / 2;
        ck_assert_uint_eq(mgl_f32_to_f16(nextafterf(middle, low)), bits);
        ck_assert_uint_eq(mgl_f32_to_f16(middle), bits % 2 ? bits + 1 : bits);
        ck_assert_uint_eq(mgl_f32_to_f16(nextafterf(middle, high)), bits + 1);
        ck_assert_uint_eq(mgl_f32_to_f16(-middle), 0x8000 | (bits % 2 ? bits + 1 : bits));
    }
    ck_assert_uint_eq(mgl_f32_to_f16(65519.996f), 0x7BFF);
    ck_assert_uint_eq(mgl_f32_to_f16(65520.0f), 0x7C00);
    ck_assert_uint_eq(mgl_f32_to_f16(-1e30f), 0xFC00);
    ck_assert_uint_eq(mgl_f32_to_f16(1e-30f), 0);
}
END_TEST

START_TEST(test_every_bf16)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        float value = mgl_bf16_to_f32((uint16_t)bits);
        if (isnan(value))
            ck_assert(isnan(mgl_bf16_to_f32(mgl_f32_to_bf16(value))));
        else
            ck_assert_uint_eq(mgl_f32_to_bf16(value), bits);
    }
}
END_TEST

START_TEST(test_bf16_rounding)
{
    for (unsigned bits = 0; bits < 0x7F7F; bits++) {
        float low = mgl_bf16_to_f32((uint16_t)bits), high = mgl_bf16_to_f32((uint16_t)(bits + 1));
        float middle = low + (high - low) / 2;
        ck_assert_uint_eq(mgl_f32_to_bf16(nextafterf(middle, low)), bits);
        ck_assert_uint_eq(mgl_f32_to_bf16(middle), bits % 2 ? bits + 1 : bits);
        ck_assert_uint_eq(mgl_f32_to_bf16(nextafterf(middle, high)), bits + 1);
    }
    ck_assert_uint_eq(mgl_f32_to_bf16(INFINITY), 0x7F80);
    ck_assert_uint_eq(mgl_f32_to_bf16(3.4028235e38f), 0x7F80); /* rounds up to infinity */
    ck_assert_uint_eq(mgl_f32_to_bf16(-NAN) & 0x7FC0, 0x7FC0);
}
END_TEST

/* mgl_convert equals the single conversions for every pair of formats, also on unaligned memory. */
START_TEST(test_convert)
{
    enum { COUNT = 37 };
    static const mgl_dtype kinds[] = {MGL_F32, MGL_BF16, MGL_F16};
    char from[COUNT * 4 + 1], to[COUNT * 4 + 3], back[COUNT * 4 + 1];
    mgl_dtype a = kinds[_i / 3], b = kinds[_i % 3];
    float values[COUNT], there[COUNT], wanted[COUNT];
    for (int i = 0; i < COUNT; i++) {
        values[i] = sinf((float)i) * 100;
        wanted[i] = a == MGL_F16    ? mgl_f16_to_f32(mgl_f32_to_f16(values[i]))
                    : a == MGL_BF16 ? mgl_bf16_to_f32(mgl_f32_to_bf16(values[i]))
                                    : values[i];
        wanted[i] = b == MGL_F16    ? mgl_f16_to_f32(mgl_f32_to_f16(wanted[i]))
                    : b == MGL_BF16 ? mgl_bf16_to_f32(mgl_f32_to_bf16(wanted[i]))
                                    : wanted[i];
    }
    mgl_convert(from + 1, a, values, MGL_F32, COUNT);
    mgl_convert(to + 3, b, from + 1, a, COUNT);
    mgl_convert(back + 1, MGL_F32, to + 3, b, COUNT);
    memcpy(there, back + 1, sizeof there);
    ck_assert_mem_eq(there, wanted, sizeof wanted);
}
END_TEST

START_TEST(test_names)
{
    mgl_dtype dtype;
    ck_assert(mgl_dtype_parse("bf16", &dtype) && dtype == MGL_BF16);
    ck_assert(mgl_dtype_parse_safetensors("F16", &dtype) && dtype == MGL_F16);
    ck_assert(!mgl_dtype_parse("BF16", &dtype) && !mgl_dtype_parse("", &dtype));
    ck_assert(!mgl_dtype_parse_safetensors("f16", &dtype));
    ck_assert_str_eq(mgl_dtype_name(MGL_F32), "f32");
    ck_assert_uint_eq(mgl_dtype_size(MGL_F32), 4);
    ck_assert_uint_eq(mgl_dtype_size(MGL_BF16), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dtype");
    TCase *cases = tcase_create("dtype");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, test_every_f16);
    tcase_add_test(cases, test_f16_rounding);
    tcase_add_test(cases, test_every_bf16);
    tcase_add_test(cases, test_bf16_rounding);
    tcase_add_loop_test(cases, test_convert, 0, 9);
    tcase_add_test(cases, test_names);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

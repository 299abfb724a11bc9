/* Tests of weight formats: names, sizes in bits, and the packed numbers. */
#include <check.h>
#include <stdlib.h>

#include "schedule/formats.h"

/* Text forms and digests contain them. */
START_TEST(names_and_numbers_stay)
{
    ck_assert_str_eq(mgl_weight_code_name((mgl_weight_code)0), "f32");
    ck_assert_str_eq(mgl_weight_code_name((mgl_weight_code)1), "bf16");
    ck_assert_str_eq(mgl_weight_code_name((mgl_weight_code)2), "f16");
}
END_TEST

START_TEST(a_name_finds_its_code)
{
    mgl_weight_code found;
    for (int i = 0; i < MGL_CODE_COUNT; i++) {
        ck_assert(mgl_weight_code_parse(mgl_weight_code_name((mgl_weight_code)i), &found));
        ck_assert_int_eq(found, i);
    }
    ck_assert(!mgl_weight_code_parse("i32", &found));
    ck_assert(!mgl_weight_code_parse("f3", &found));
}
END_TEST

START_TEST(numbers_have_the_format_of_their_name)
{
    char text[MGL_WEIGHT_FORMAT_TEXT];
    for (int i = 0; i < MGL_I32; i++) {
        const mgl_dtype dtype = (mgl_dtype)i;
        const mgl_weight_format format = mgl_weight_format_of(dtype);
        ck_assert(mgl_weight_format_valid(format));
        ck_assert_str_eq(mgl_weight_format_print(format, text), mgl_dtype_name(dtype));
        ck_assert(mgl_weight_format_is(format, dtype));
        ck_assert(!mgl_weight_format_is(format, MGL_I32));
    }
}
END_TEST

/* A row of a block is full of weights, whatever they are. */
START_TEST(a_block_has_its_bytes)
{
    for (int i = 0; i < MGL_CODE_COUNT; i++) {
        const mgl_weight_code code = (mgl_weight_code)i;
        const int columns = mgl_weight_code_columns(code);
        ck_assert_int_eq(mgl_weight_code_bytes(code, columns), MGL_BLOCK_ROW_BYTES);
        ck_assert_int_eq(columns, mgl_tape_columns(mgl_weight_code_get(code)->bits));
    }
}
END_TEST

/* Encoding rounds as a conversion does, and decoding is exact. */
START_TEST(packing_converts)
{
    static const float numbers[] = {0, -1.5f, 3.14159265f, 1e-7f, 60000};
    enum { COUNT = sizeof numbers / sizeof *numbers };
    for (int i = 0; i < MGL_I32; i++) {
        const mgl_dtype dtype = (mgl_dtype)i;
        const mgl_weight_code code = mgl_weight_format_of(dtype).code;
        char encoded[4 * COUNT], wanted[4 * COUNT];
        float decoded[COUNT], exact[COUNT];
        mgl_weight_code_encode(code, encoded, numbers, MGL_F32, COUNT);
        mgl_convert(wanted, dtype, numbers, MGL_F32, COUNT);
        ck_assert_mem_eq(encoded, wanted, (size_t)mgl_weight_code_bytes(code, COUNT));
        mgl_weight_code_decode(code, decoded, encoded, COUNT);
        mgl_convert(exact, MGL_F32, wanted, dtype, COUNT);
        ck_assert_mem_eq(decoded, exact, sizeof exact);
    }
}
END_TEST
int main(void)
{
    Suite *suite = suite_create("formats of weights");
    TCase *cases = tcase_create("formats");
    tcase_add_test(cases, names_and_numbers_stay);
    tcase_add_test(cases, a_name_finds_its_code);
    tcase_add_test(cases, numbers_have_the_format_of_their_name);
    tcase_add_test(cases, a_block_has_its_bytes);
    tcase_add_test(cases, packing_converts);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

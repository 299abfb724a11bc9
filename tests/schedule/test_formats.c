/* Tests of weight formats: names, sizes in bits, and the packed numbers. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/formats.h"

/* Text forms and digests contain them. */
START_TEST(names_and_numbers_stay)
{
    ck_assert_str_eq(mgl_weight_code_name((mgl_weight_code)0), "f32");
    ck_assert_str_eq(mgl_weight_code_name((mgl_weight_code)1), "bf16");
    ck_assert_str_eq(mgl_weight_code_name((mgl_weight_code)2), "f16");
    ck_assert_str_eq(mgl_weight_code_name((mgl_weight_code)5), "e4m3");
    ck_assert_str_eq(mgl_weight_code_name((mgl_weight_code)6), "uint4");
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

static const struct {
    const char *text;
    mgl_format_fault fault;
    int at; /* where reading ends */
} texts[] = {
    {"int4 group 128 f16 zeros", MGL_FORMAT_READ, 24},
    {" \tbf16 [0:8)", MGL_FORMAT_READ, 6},
    {"int8 row f32 zeros_of", MGL_FORMAT_READ, 12},
    {"int8 row f32[0:8)", MGL_FORMAT_READ, 12},
    {"e4m3 block 128 64 f32", MGL_FORMAT_READ, 21},
    {"", MGL_FORMAT_NO_CODE, 0},
    {"int9 row f32", MGL_FORMAT_NO_CODE, 0},
    {"int8-of-a-long-name row f32", MGL_FORMAT_NO_CODE, 0},
    {"int8 rows f32", MGL_FORMAT_NO_SHARING, 5},
    {"int8", MGL_FORMAT_NO_SHARING, 4},
    {"int8 group x f32", MGL_FORMAT_NO_GROUP, 11},
    {"int8 group -16 f32", MGL_FORMAT_NO_GROUP, 11},
    {"int8 group 2048 f32", MGL_FORMAT_NO_GROUP, 11},
    {"int8 group 99999999999999999999 f32", MGL_FORMAT_NO_GROUP, 11},
    {"int8 block 32 f32", MGL_FORMAT_NO_GROUP, 14},
    {"int8 row f64", MGL_FORMAT_NO_DTYPE, 9},
    {"int8 row", MGL_FORMAT_NO_DTYPE, 8},
    {"int8 row i32", MGL_FORMAT_NO_SUCH_ONE, 12},
    {"int8 group 24 f32", MGL_FORMAT_NO_SUCH_ONE, 17},
    {"e4m3 row f32 zeros", MGL_FORMAT_NO_SUCH_ONE, 18},
};

START_TEST(a_text_is_read_to_its_end_or_its_fault)
{
    mgl_weight_format format;
    const char *at = texts[_i].text;
    ck_assert_int_eq(mgl_weight_format_read(&at, at + strlen(at), &format), texts[_i].fault);
    ck_assert_int_eq(at - texts[_i].text, texts[_i].at);
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
    tcase_add_loop_test(cases, a_text_is_read_to_its_end_or_its_fault, 0,
                        sizeof texts / sizeof *texts);
    tcase_add_test(cases, a_block_has_its_bytes);
    tcase_add_test(cases, packing_converts);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

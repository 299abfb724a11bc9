/* Robustness tests of the parser: arbitrary bytes, failing allocations, limits, and linear time. */
#include "support.h"

#include "base/clock.h"
#include "tests/time_limit.h"

#include <stdio.h>

#define GOLDEN "tests/schedule/golden/two_queues.mls"
#define HEADER                                                                                     \
    "megalith 1\n"                                                                                 \
    "target cpu queues 1 shared 0\n"                                                               \
    "model hidden 64 layers 1 heads 4 kv_heads 2 head_dim 16 ffn 96 vocab 41 eps 1e-05\n"          \
    "limits rows 4 sequences 2 capacity 32\n"                                                      \
    "exec page 2048 ring 4 warps 8 stage 8192\n"                                                   \
    "types weights bf16 cache bf16\n"

/* Any bytes give a program that round trips, or one error with a position. The copy has the exact
 * length, so that a sanitizer detects a read past the end. */
static bool survives(const char *bytes, size_t length)
{
    char *copy = malloc(length ? length : 1);
    mgl_program *program = NULL;
    mgl_error err = {0};
    memcpy(copy, bytes, length);
    mgl_status status = mgl_schedule_parse(copy, length, "fuzz.mls", &program, &err);
    free(copy);
    if (status) {
        ck_assert_int_eq(status, MGL_BAD_INPUT);
        ck_assert_ptr_null(program);
        ck_assert_int_eq(strncmp(err.where, "fuzz.mls:", 9), 0);
        ck_assert_str_ne(err.message, "");
        return false;
    }
    mgl_text text = printed(program);
    mgl_program *again = parsed(text.bytes, text.length);
    ck_assert(mgl_program_equal(program, again));
    mgl_text second = printed(again);
    ck_assert_str_eq(second.bytes, text.bytes);
    mgl_text_clear(&text);
    mgl_text_clear(&second);
    mgl_program_free(program);
    mgl_program_free(again);
    return true;
}

START_TEST(every_prefix)
{
    mgl_text golden = fixture(GOLDEN);
    for (size_t n = 0; n <= golden.length; n++)
        survives(golden.bytes, n);
    mgl_text_clear(&golden);
}
END_TEST

START_TEST(one_byte_changed)
{
    static const char bytes[] = "\0\n\r\t \"\\#[]:,@+|>=0a-\x7f\x80\xff";
    mgl_text golden = fixture(GOLDEN);
    int good = 0;
    for (size_t i = 0; i < golden.length; i++) {
        char before = golden.bytes[i];
        golden.bytes[i] = bytes[i % (sizeof bytes - 1)];
        good += survives(golden.bytes, golden.length);
        golden.bytes[i] = before;
    }
    ck_assert_int_gt(good, 0);
    mgl_text_clear(&golden);
}
END_TEST

START_TEST(pieces_removed_and_doubled)
{
    mgl_text golden = fixture(GOLDEN);
    uint32_t seed = 7;
    for (int i = 0; i < 2000; i++) {
        mgl_text text = {0};
        seed = seed * 1664525 + 1013904223;
        size_t from = seed % golden.length, length = (seed >> 16) % 24;
        length = length < golden.length - from ? length : golden.length - from;
        mgl_text_append(&text, golden.bytes, from);
        if (i & 1) {
            mgl_text_append(&text, golden.bytes + from, length);
            mgl_text_append(&text, golden.bytes + from, length);
        }
        mgl_text_put(&text, golden.bytes + from + length);
        survives(text.bytes, text.length);
        mgl_text_clear(&text);
    }
    mgl_text_clear(&golden);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    mgl_text golden = fixture(GOLDEN);
    mgl_program *program = NULL;
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(mgl_schedule_parse(golden.bytes, golden.length, "x", &program, NULL), MGL_OK);
    uint64_t count = mgl_alloc_count();
    mgl_program_free(program);
    ck_assert_uint_gt(count, 50);
    for (uint64_t n = 1; n <= count; n++)
        for (int forever = 0; forever < 2; forever++) {
            mgl_error err = {0};
            program = NULL;
            mgl_alloc_fail_at(n, forever);
            mgl_status status =
                mgl_schedule_parse(golden.bytes, golden.length, "x", &program, &err);
            mgl_alloc_fail_at(0, false);
            ck_assert_int_eq(status, MGL_NO_MEMORY);
            ck_assert_int_eq(err.code, MGL_NO_MEMORY);
            ck_assert_ptr_null(program);
        }
    mgl_text_clear(&golden);
}
END_TEST

START_TEST(printing_without_memory_says_so)
{
    mgl_text golden = fixture(GOLDEN), text = {0};
    mgl_program *program = parsed(golden.bytes, golden.length);
    mgl_alloc_fail_at(3, true);
    mgl_schedule_print(program, &text);
    mgl_alloc_fail_at(0, false);
    ck_assert(text.failed);
    mgl_text_clear(&text);
    mgl_text_clear(&golden);
    mgl_program_free(program);
}
END_TEST

START_TEST(a_text_has_a_largest_size)
{
    mgl_program *program = NULL;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_schedule_parse("", (size_t)1 << 30, "big.mls", &program, &err),
                     MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "big.mls");
    ck_assert_ptr_nonnull(strstr(err.message, "67108864"));
}
END_TEST

START_TEST(names_have_128_bytes_at_most)
{
    char text[sizeof HEADER + 200];
    snprintf(text, sizeof text, HEADER "counter %0128d\n", 7);
    ck_assert(survives(text, strlen(text)));
    snprintf(text, sizeof text, HEADER "counter %0129d\n", 7);
    ck_assert(!survives(text, strlen(text)));
}
END_TEST

START_TEST(strings_have_1024_bytes_at_most)
{
    char text[sizeof HEADER + 2000];
    snprintf(text, sizeof text, HEADER "tensor w f32 [1] \"%01024d\"\n", 7);
    ck_assert(survives(text, strlen(text)));
    snprintf(text, sizeof text, HEADER "tensor w f32 [1] \"%01025d\"\n", 7);
    ck_assert(!survives(text, strlen(text)));
}
END_TEST

/* 100,000 counters, each named in a task: a parser with linear time needs a fraction of a
 * second. */
START_TEST(names_are_found_in_constant_time)
{
    mgl_text text = {0};
    mgl_text_put(&text, HEADER);
    for (int i = 0; i < 100000; i++)
        mgl_text_format(&text, "counter c%d\n", i);
    mgl_text_put(&text, "buffer h act f32 [rows,8]\nqueue 0 tape 0 pad 0\n");
    for (int i = 0; i < 100000; i++)
        mgl_text_format(&text, "clear out h[:rows,0:8] signal c%d\n", i);
    ck_assert(!text.failed);
    double start = mgl_clock_s();
    mgl_program *program = parsed(text.bytes, text.length);
    double seconds = mgl_clock_s() - start;
    ck_assert_int_eq(program->counter_count, 100000);
    ck_assert_int_eq(program->signals[99999], 99999);
    ck_assert_msg(seconds < time_limit(5), "%.2f s", seconds);
    mgl_program_free(program);
    mgl_text_clear(&text);
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    mgl_program *program = NULL;
    mgl_error err = {0};
    ck_assert_int_ne(mgl_schedule_read("/nonexistent/x.mls", &program, &err), MGL_OK);
    ck_assert_ptr_nonnull(strstr(err.where, "/nonexistent/x.mls"));
}
END_TEST

START_TEST(a_file_is_read)
{
    mgl_text golden = fixture(GOLDEN);
    mgl_program *a = parsed(golden.bytes, golden.length), *b = NULL;
    mgl_error err = {0};
    mgl_status status = mgl_schedule_read(MGL_SOURCE_DIR "/" GOLDEN, &b, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    ck_assert(mgl_program_equal(a, b));
    mgl_program_free(a);
    mgl_program_free(b);
    mgl_text_clear(&golden);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule parse");
    TCase *cases = tcase_create("parse");
    tcase_set_timeout(cases, 100);
    tcase_add_test(cases, every_prefix);
    tcase_add_test(cases, one_byte_changed);
    tcase_add_test(cases, pieces_removed_and_doubled);
    tcase_add_test(cases, every_allocation_may_fail);
    tcase_add_test(cases, printing_without_memory_says_so);
    tcase_add_test(cases, a_text_has_a_largest_size);
    tcase_add_test(cases, names_have_128_bytes_at_most);
    tcase_add_test(cases, strings_have_1024_bytes_at_most);
    tcase_add_test(cases, names_are_found_in_constant_time);
    tcase_add_test(cases, a_missing_file_is_named);
    tcase_add_test(cases, a_file_is_read);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}

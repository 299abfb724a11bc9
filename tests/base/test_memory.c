/* Tests of the allocator hook, growing arrays, growing texts, and errors: overflow and failure are
 * reported, and no data is lost. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

START_TEST(test_seam)
{
    mgl_alloc_fail_at(2, false);
    void *first = mgl_alloc(1), *second = mgl_alloc(1), *third = mgl_alloc_zero(1, 1);
    ck_assert(first && !second && third);
    ck_assert_uint_eq(mgl_alloc_count(), 3);
    mgl_free(first);
    mgl_free(third);
    mgl_alloc_fail_at(1, true);
    ck_assert(!mgl_alloc(1) && !mgl_strdup("x") && !mgl_alloc_aligned(64, 1));
    mgl_alloc_fail_at(0, false);
    mgl_free(NULL);
}
END_TEST

START_TEST(test_sizes)
{
    size_t size = 7;
    ck_assert(!mgl_mul(SIZE_MAX / 2, 3, &size) && size == 7);
    ck_assert(!mgl_add(SIZE_MAX, 1, &size) && size == 7);
    ck_assert(mgl_mul(6, 7, &size) && size == 42);
    ck_assert_ptr_null(mgl_alloc_zero(SIZE_MAX / 2, 3));
    void *aligned = mgl_alloc_aligned(4096, 10), *none = mgl_alloc(0);
    ck_assert_uint_eq((uintptr_t)aligned % 4096, 0);
    ck_assert_ptr_nonnull(none);
    mgl_free(aligned);
    mgl_free(none);
}
END_TEST

START_TEST(test_grow)
{
    void *items = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 1000; i++) {
        ck_assert(mgl_grow(&items, &capacity, i, sizeof(size_t)));
        ck_assert_uint_gt(capacity, i);
        ((size_t *)items)[i] = i;
    }
    for (size_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(((size_t *)items)[i], i);
    void *before = items;
    mgl_alloc_fail_at(1, false);
    ck_assert(!mgl_grow(&items, &capacity, capacity, sizeof(size_t)));
    mgl_alloc_fail_at(0, false);
    ck_assert_ptr_eq(items, before);
    size_t huge = SIZE_MAX / 2 + 1;
    ck_assert(!mgl_grow(&items, &huge, huge, sizeof(size_t)));
    mgl_free(items);
}
END_TEST

START_TEST(test_text)
{
    mgl_text text = {0};
    for (int i = 0; i < 300; i++)
        mgl_text_format(&text, "%d,", i % 10);
    mgl_text_append(&text, "a\0b", 3);
    mgl_text_put(&text, "end");
    ck_assert(!text.failed);
    ck_assert_uint_eq(text.length, 606);
    ck_assert_int_eq(strncmp(text.bytes, "0,1,2,3,4,5,6,7,8,9,0,", 22), 0);
    ck_assert_mem_eq(text.bytes + 600, "a\0bend", 7);
    mgl_text_clear(&text);
    ck_assert_ptr_null(text.bytes);
}
END_TEST

/* After the first failure, all appends fail; the earlier text stays. */
START_TEST(test_text_without_memory)
{
    mgl_text text = {0};
    char long_piece[1000] = {0};
    memset(long_piece, 'x', sizeof long_piece - 1);
    mgl_text_put(&text, "kept");
    mgl_alloc_fail_at(1, false);
    mgl_text_put(&text, long_piece);
    mgl_alloc_fail_at(0, false);
    mgl_text_put(&text, "!");
    ck_assert(text.failed);
    ck_assert_str_eq(text.bytes, "kept");
    mgl_text_clear(&text);
    ck_assert(!text.failed);
}
END_TEST

START_TEST(test_errors)
{
    mgl_error err;
    ck_assert_int_eq(mgl_fail(NULL, MGL_DEVICE, "x", "y"), MGL_DEVICE);
    ck_assert_int_eq(mgl_fail(&err, MGL_BAD_INPUT, NULL, "%d of %s", 3, "four"), MGL_BAD_INPUT);
    ck_assert_int_eq(err.code, MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "");
    ck_assert_str_eq(err.message, "3 of four");
    ck_assert_int_eq(mgl_fail_memory(&err, 77), MGL_NO_MEMORY);
    ck_assert_ptr_nonnull(strstr(err.message, "77 bytes"));
    errno = ENOSPC;
    ck_assert_int_eq(mgl_fail_errno(&err, "f", "cannot be written"), MGL_SYSTEM);
    ck_assert_str_eq(err.message, "cannot be written: No space left on device");
}
END_TEST

/* Texts of two-byte characters are shortened at a character boundary. */
START_TEST(test_errors_are_cut)
{
    mgl_error err;
    char text[4000] = "";
    for (size_t i = _i ? 1 : 0, at = i; at + 2 < sizeof text; at += 2)
        memcpy(text + at, "\xC3\xA9", 3);
    if (_i)
        text[0] = 'x';
    mgl_fail(&err, MGL_BAD_INPUT, text, "%s", text);
    for (int which = 0; which < 2; which++) {
        const char *cut = which ? err.where : err.message;
        size_t size = which ? sizeof err.where : sizeof err.message, length = strlen(cut);
        ck_assert_uint_ge(length, size - 3);
        ck_assert_uint_eq((length - (size_t)_i) % 2, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *cases = tcase_create("memory");
    tcase_add_test(cases, test_seam);
    tcase_add_test(cases, test_sizes);
    tcase_add_test(cases, test_grow);
    tcase_add_test(cases, test_text);
    tcase_add_test(cases, test_text_without_memory);
    tcase_add_test(cases, test_errors);
    tcase_add_loop_test(cases, test_errors_are_cut, 0, 2);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

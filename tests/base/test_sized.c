/* Tests of structs that begin with their size, from older and newer programs. */
#include "base/sized.h"

#include <check.h>
#include <stddef.h>
#include <string.h>

/* Versions of a struct: the library's, an older program's, and a newer program's. */
struct known {
    size_t size;
    int64_t a, b;
};
struct older {
    size_t size;
    int64_t a;
};
struct newer {
    size_t size;
    int64_t a, b, c;
};

static mgl_error err;

START_TEST(reads_its_own)
{
    struct known from = {sizeof from, 1, 2}, to;
    ck_assert_int_eq(mgl_sized_read(&to, sizeof to, &from, "known", &err), MGL_OK);
    ck_assert_int_eq(to.b, 2);
}
END_TEST

START_TEST(what_an_older_program_does_not_know_is_zero)
{
    struct older from = {sizeof from, 1};
    struct known to = {0, 7, 7};
    ck_assert_int_eq(mgl_sized_read(&to, sizeof to, &from, "known", &err), MGL_OK);
    ck_assert_int_eq(to.a, 1);
    ck_assert_int_eq(to.b, 0);
    ck_assert_uint_eq(to.size, sizeof to);
}
END_TEST

START_TEST(a_newer_program_may_leave_its_fields_zero)
{
    struct newer from = {sizeof from, 1, 2, 0};
    struct known to;
    ck_assert_int_eq(mgl_sized_read(&to, sizeof to, &from, "known", &err), MGL_OK);
    ck_assert_int_eq(to.b, 2);
}
END_TEST

START_TEST(a_newer_program_may_not_set_them)
{
    struct newer from = {sizeof from, 1, 2, 3};
    struct known to;
    ck_assert_int_eq(mgl_sized_read(&to, sizeof to, &from, "known", &err), MGL_USAGE);
    ck_assert_ptr_nonnull(strstr(err.message, "newer library"));
}
END_TEST

START_TEST(no_size_is_rejected)
{
    static const size_t sizes[] = {0, sizeof(size_t) - 1, MGL_SIZED_MOST + 1, (size_t)-1};
    struct known from = {sizes[_i], 1, 2}, to;
    ck_assert_int_eq(mgl_sized_read(&to, sizeof to, &from, "known", &err), MGL_USAGE);
    ck_assert_ptr_nonnull(strstr(err.message, "set it to sizeof(known)"));
    ck_assert_int_eq(mgl_sized_check(&from, sizeof from.size, "known", &err), MGL_USAGE);
}
END_TEST

START_TEST(writes_no_further_than_an_older_program_knows)
{
    struct known from = {0, 1, 2};
    struct newer to = {sizeof(struct older), 7, 7, 7};
    mgl_sized_write(&to, &from, sizeof from);
    ck_assert_int_eq(to.a, 1);
    ck_assert_int_eq(to.b, 7);
    ck_assert_uint_eq(to.size, sizeof(struct older));
}
END_TEST

START_TEST(writes_zero_where_a_newer_program_knows_more)
{
    struct known from = {0, 1, 2};
    struct newer to = {sizeof to, 7, 7, 7};
    mgl_sized_write(&to, &from, sizeof from);
    ck_assert_int_eq(to.b, 2);
    ck_assert_int_eq(to.c, 0);
    ck_assert_uint_eq(to.size, sizeof to);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sized");
    TCase *tests = tcase_create("sized");
    tcase_add_test(tests, reads_its_own);
    tcase_add_test(tests, what_an_older_program_does_not_know_is_zero);
    tcase_add_test(tests, a_newer_program_may_leave_its_fields_zero);
    tcase_add_test(tests, a_newer_program_may_not_set_them);
    tcase_add_loop_test(tests, no_size_is_rejected, 0, 4);
    tcase_add_test(tests, writes_no_further_than_an_older_program_knows);
    tcase_add_test(tests, writes_zero_where_a_newer_program_knows_more);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/*
 * Tests of the declarations in a prompt: exactly those of the kernel's other files that the text
 * uses.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/kernels/methods/declarations.h"
#include "base/memory.h"

/* The declarations of a unit's original text. Static storage until the next call. */
static const char *called(const mgl_kernel_unit *unit)
{
    static mgl_text out;
    size_t length;
    mgl_error err = {0};
    const char *text = mgl_kernel_unit_text(unit, &length);
    mgl_text_clear(&out);
    ck_assert_msg(!mgl_declarations_put(unit, text, length, &out, &err), "%s: %s", err.where,
                  err.message);
    return out.bytes ? out.bytes : "";
}

START_TEST(declarations_come_with_their_comments)
{
    const char *text = called(mgl_kernel_unit_find("merge"));
    ck_assert_ptr_nonnull(strstr(text, "\nuint4 load_words(const void *at, u64 policy);\n"));
    ck_assert_ptr_nonnull(strstr(text, "Every wait\n * for flagged words is this loop."));
    ck_assert_ptr_nonnull(strstr(text, "\ntemplate <int WHO, class LOOK> bool await_flags("));
    ck_assert_ptr_nonnull(strstr(text, "\nMERGE_AHEAD = 4\n"));
    ck_assert_ptr_nonnull(strstr(text, "\ntemplate <int BLOCKS> struct merged_blocks {\n"));
}
END_TEST

/* Left out: declarations of the text itself, compiler attributes, and function bodies. */
START_TEST(what_is_known_is_not_told)
{
    const char *text = called(mgl_kernel_unit_find("merge"));
    ck_assert_ptr_null(strstr(text, "largest_part("));
    ck_assert_ptr_null(strstr(text, "part_place"));
    ck_assert_ptr_null(strstr(text, "__forceinline__"));
    ck_assert_ptr_null(strstr(text, "return"));
}
END_TEST

START_TEST(every_unit_has_some)
{
    const size_t length = strlen(called(mgl_kernel_unit_get(_i)));
    ck_assert_uint_gt(length, 1000);
    ck_assert_uint_lt(length, 14000);
}
END_TEST

START_TEST(what_is_no_text_has_none)
{
    static const char *const texts[] = {"", "}", "\"", "int f( {", "#", "int a\\\nb;", "struct {"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mgl_text out = {0};
        ck_assert_int_eq(mgl_declarations_put(mgl_kernel_unit_find("merge"), texts[i],
                                              strlen(texts[i]), &out, NULL),
                         MGL_OK);
        ck_assert_uint_eq(out.length, 0);
        mgl_text_clear(&out);
    }
}
END_TEST

START_TEST(running_out_of_memory_is_told)
{
    size_t length;
    mgl_status status = MGL_NO_MEMORY;
    const mgl_kernel_unit *unit = mgl_kernel_unit_find("merge");
    const char *text = mgl_kernel_unit_text(unit, &length);
    for (uint64_t n = 1; status != MGL_OK; n++) {
        mgl_text out = {0};
        mgl_error err;
        mgl_alloc_fail_at(n, false);
        status = mgl_declarations_put(unit, text, length, &out, &err);
        mgl_alloc_fail_at(0, false);
        if (out.failed)
            status = MGL_NO_MEMORY;
        ck_assert(status == MGL_OK || status == MGL_NO_MEMORY);
        mgl_text_clear(&out);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("called");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 100);
    tcase_add_test(all, declarations_come_with_their_comments);
    tcase_add_test(all, what_is_known_is_not_told);
    tcase_add_loop_test(all, every_unit_has_some, 0, mgl_kernel_unit_count());
    tcase_add_test(all, what_is_no_text_has_none);
    tcase_add_test(all, running_out_of_memory_is_told);
    suite_add_tcase(suite, all);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

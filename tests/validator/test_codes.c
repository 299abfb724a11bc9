/*
 * Tests of the list of diagnostics: it is ordered and complete, and each code has a case that
 * produces it.
 */
#include "support.h"

#include "schedule/step.h"
#include "validator/check.h"

#include <dirent.h>
#include <stdio.h>

/* Codes that no text can cause, because the parser rejects it first (test_broken.c covers them), or
 * only a long text (test_bounded.c), or two texts (test_pair.c). */
static const int without_text[] = {101, 106, 121, 140, 205, 606, 712};

START_TEST(codes_ascend)
{
    int count;
    const mgl_code_info *codes = mgl_validator_codes(&count);
    ck_assert_int_gt(count, 0);
    for (int i = 1; i < count; i++)
        ck_assert_int_lt(codes[i - 1].code, codes[i].code);
}
END_TEST

START_TEST(codes_are_explained)
{
    int count;
    const mgl_code_info *codes = mgl_validator_codes(&count);
    for (int i = 0; i < count; i++) {
        const mgl_code_info *code = mgl_validator_explain(codes[i].code);
        ck_assert_ptr_eq(code, &codes[i]);
        ck_assert_int_gt((int)strlen(code->title), 5);
        ck_assert_int_gt((int)strlen(code->meaning), 20);
        ck_assert_int_gt((int)strlen(code->example), 5);
        ck_assert_int_gt((int)strlen(code->remedy), 10);
    }
}
END_TEST

START_TEST(unknown_codes_have_no_entry)
{
    ck_assert_ptr_null(mgl_validator_explain(0));
    ck_assert_ptr_null(mgl_validator_explain(199));
    ck_assert_ptr_null(mgl_validator_explain(-101));
}
END_TEST

/* Whether a file mgNNN_... is among the cases. */
static bool has_case(int code)
{
    char prefix[16];
    snprintf(prefix, sizeof prefix, "mg%d_", code);
    DIR *folder = opendir(MGL_SOURCE_DIR "/tests/validator/cases");
    ck_assert_ptr_nonnull(folder);
    bool found = false;
    for (struct dirent *entry; !found && (entry = readdir(folder));)
        found = strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(folder);
    return found;
}

START_TEST(every_code_has_a_case)
{
    int count;
    const mgl_code_info *codes = mgl_validator_codes(&count);
    for (int i = 0; i < count; i++) {
        bool found = has_case(codes[i].code);
        for (size_t j = 0; j < sizeof without_text / sizeof *without_text; j++)
            found = found || without_text[j] == codes[i].code;
        ck_assert_msg(found, "MG%d has no case", codes[i].code);
    }
}
END_TEST

/* The validator states the shapes of the io buffers independently; they must equal those of the
 * machines. */
START_TEST(io_shapes_are_the_machines)
{
    ck_assert_int_eq(MGL_CHECK_CONTROL_WORDS, MGL_CONTROL_WORDS);
    ck_assert_int_eq(MGL_CHECK_TABLE_WORDS, MGL_TABLE_WORDS);
    ck_assert_int_eq(MGL_CHECK_SEQUENCE_WORDS, MGL_SEQUENCE_WORDS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validator codes");
    TCase *cases = tcase_create("codes");
    tcase_add_test(cases, codes_ascend);
    tcase_add_test(cases, codes_are_explained);
    tcase_add_test(cases, unknown_codes_have_no_entry);
    tcase_add_test(cases, every_code_has_a_case);
    tcase_add_test(cases, io_shapes_are_the_machines);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}

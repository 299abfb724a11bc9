/*
 * Tests of the parser's messages. Each file of diagnostics/ begins with the expected message, each
 * line after `#|`: the position, the error, the source line and the caret.
 */
#include "support.h"

/* The lines after `#|` at the top of the text. */
static mgl_text expectation(const char *text)
{
    mgl_text out = {0};
    mgl_text_append(&out, "", 0);
    while (!strncmp(text, "#|", 2)) {
        size_t length = strcspn(text, "\n");
        size_t skip = length > 2 && text[2] == ' ' ? 3 : 2;
        mgl_text_append(&out, text + skip, length - skip);
        mgl_text_put(&out, "\n");
        text += length + 1;
    }
    return out;
}

static void check_message(const char *path, const char *name, void *user)
{
    (void)user;
    mgl_text text = fixture(path), wanted = expectation(text.bytes), got = {0};
    mgl_program *program = NULL;
    mgl_error err = {0};
    mgl_status status = mgl_schedule_parse(text.bytes, text.length, name, &program, &err);
    ck_assert_msg(status == MGL_BAD_INPUT, "%s: status %d", name, status);
    ck_assert_int_eq(err.code, MGL_BAD_INPUT);
    ck_assert_ptr_null(program);
    mgl_text_put(&got, err.where);
    mgl_text_put(&got, "\n");
    mgl_text_put(&got, err.message);
    mgl_text_put(&got, "\n");
    ck_assert_str_eq(got.bytes, wanted.bytes);
    mgl_text_clear(&text);
    mgl_text_clear(&wanted);
    mgl_text_clear(&got);
}

START_TEST(messages)
{
    ck_assert_int_ge(each_file("tests/schedule/diagnostics", check_message, NULL), 60);
}
END_TEST

START_TEST(no_error_to_fill_is_fine)
{
    mgl_program *program = NULL;
    ck_assert_int_eq(mgl_schedule_parse("megalith 2\n", 11, "x", &program, NULL), MGL_BAD_INPUT);
}
END_TEST

START_TEST(a_long_file_name_keeps_its_end_and_the_place)
{
    char name[600];
    mgl_program *program = NULL;
    mgl_error err = {0};
    memset(name, 'd', sizeof name);
    memcpy(name + sizeof name - 7, "/f.mls", 7);
    ck_assert_int_eq(mgl_schedule_parse("megalith 2\n", 11, name, &program, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.where, "d/f.mls:1:10"));
    ck_assert_int_eq(strncmp(err.where, "...ddd", 6), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule diagnostics");
    TCase *cases = tcase_create("diagnostics");
    tcase_add_test(cases, messages);
    tcase_add_test(cases, no_error_to_fill_is_fine);
    tcase_add_test(cases, a_long_file_name_keeps_its_end_and_the_place);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}

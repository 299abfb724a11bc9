/* Tests of the text form of workloads: valid texts, their order, and invalid texts. */
#include <check.h>
#include <string.h>

#include "autotune/store/record.h"

static mgl_workloads parse(const char *text)
{
    mgl_workloads out;
    mgl_error err = {0};
    ck_assert_msg(!mgl_workloads_parse(text, &out, &err), "%s: %s", text, err.message);
    return out;
}

START_TEST(every_context_goes_with_every_batch)
{
    mgl_workloads w = parse("ctx=0,8192;batch=1,8");
    ck_assert_int_eq(w.count, 4);
}
END_TEST

START_TEST(they_are_sorted_by_batch_and_then_by_context)
{
    mgl_workloads w = parse("batch=8,1;ctx=8192,0");
    ck_assert_int_eq(w.list[1].batch, 1);
    ck_assert_int_eq(w.list[1].context, 8192);
    ck_assert_int_eq(w.list[2].batch, 8);
    ck_assert_int_eq(w.list[2].context, 0);
}
END_TEST

START_TEST(numbers_that_stand_twice_are_one)
{
    ck_assert_int_eq(parse("ctx=5,5,0,5;batch=2,2").count, 2);
}
END_TEST

START_TEST(without_contexts_it_is_0)
{
    mgl_workloads w = parse("batch=8");
    ck_assert_int_eq(w.count, 1);
    ck_assert_int_eq(w.list[0].context, 0);
}
END_TEST

START_TEST(without_batches_it_is_1)
{
    mgl_workloads w = parse("ctx=7");
    ck_assert_int_eq(w.count, 1);
    ck_assert_int_eq(w.list[0].batch, 1);
}
END_TEST

START_TEST(sixteen_fit)
{
    ck_assert_int_eq(parse("ctx=0,1,2,3,4,5,6,7;batch=1,16").count, MGL_MAX_WORKLOADS);
}
END_TEST

static const char *const texts[][2] = {
    {"ctx=0,8192;batch=1,8", "ctx=0,8192;batch=1,8"},
    {"batch=8,1;ctx=8192,0", "ctx=0,8192;batch=1,8"},
    {"batch=4", "ctx=0;batch=4"},
    {"ctx=3,3", "ctx=3;batch=1"},
};

START_TEST(what_is_printed_is_canonical)
{
    mgl_text text = {0};
    mgl_workloads w = parse(texts[_i][0]);
    mgl_workloads_print(&w, &text);
    ck_assert_str_eq(text.bytes, texts[_i][1]);
    mgl_text_clear(&text);
}
END_TEST

/* Invalid texts, and a part of the message. */
static const char *const refused[][2] = {
    {"", "ctx=0,8192;batch=1,8"},
    {"0,8192", "ctx="},
    {"ctx", "ctx="},
    {"ctx=", "ctx="},
    {"ctx=,1", "`,1`"},
    {"ctx=1,", "ctx="},
    {"ctx=1,,2", "`,2`"},
    {"ctx=1 ", "`1 `"},
    {" ctx=1", "` ctx=1`"},
    {"ctx=-1", "`-1`"},
    {"ctx=1;", "ctx="},
    {"ctx=1;;batch=1", "`;batch=1`"},
    {"ctx=1;ctx=2", "twice"},
    {"ctx=0x10", "`0x10`"},
    {"context=1", "`context=1`"},
    {"batch=0", "batch=0 is not between 1 and 64"},
    {"batch=65", "batch=65 is not between 1 and 64"},
    {"ctx=1048576", "between 0 and 1048544"},
    {"ctx=99999999999999999999", "ctx=99999999999999999999 is not between"},
    {"ctx=0,1,2,3,4,5,6,7,8;batch=1,2", "18 workloads; at most 16"},
    {"ctx=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", "too many numbers; at most 16"},
};

START_TEST(what_is_wrong_is_rejected_and_named)
{
    mgl_workloads out;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_workloads_parse(refused[_i][0], &out, &err), MGL_USAGE);
    ck_assert_msg(strstr(err.message, refused[_i][1]) != NULL, "%s", err.message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("workloads");
    TCase *tests = tcase_create("workloads");
    tcase_add_test(tests, every_context_goes_with_every_batch);
    tcase_add_test(tests, they_are_sorted_by_batch_and_then_by_context);
    tcase_add_test(tests, numbers_that_stand_twice_are_one);
    tcase_add_test(tests, without_contexts_it_is_0);
    tcase_add_test(tests, without_batches_it_is_1);
    tcase_add_test(tests, sixteen_fit);
    tcase_add_loop_test(tests, what_is_printed_is_canonical, 0, sizeof texts / sizeof *texts);
    tcase_add_loop_test(tests, what_is_wrong_is_rejected_and_named, 0,
                        sizeof refused / sizeof *refused);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_set_fork_status(suite_runner, CK_NOFORK);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? 1 : 0;
}

/* Tests of verdicts: the text form, the JSON form, failed steps, and the hints of the table. */
#include "autotune/store/verdict.h"

#include <check.h>
#include <string.h>

static const struct {
    mgl_trial_verdict verdict;
    const char *line;
} lines[] = {{{.outcome = MGL_OUTCOME_OK}, "OK"},
             {{.outcome = MGL_OUTCOME_HANG, .diagnostic = "task 7 waits"}, "HANG: task 7 waits"},
             {{.outcome = MGL_OUTCOME_PARSE, .diagnostic = "PARSE at a.cuh:3: no brace"},
              "PARSE at a.cuh:3: no brace"}};

START_TEST(a_line_names_the_outcome_once)
{
    mgl_text text = {0};
    mgl_trial_verdict_print(&lines[_i].verdict, &text);
    ck_assert_str_eq(text.bytes, lines[_i].line);
    mgl_text_clear(&text);
}
END_TEST

static mgl_status read(const char *text, mgl_trial_verdict *out, mgl_error *err)
{
    mgl_json json = {0};
    ck_assert_int_eq(mgl_json_parse(text, strlen(text), 1 << 16, "a.json", &json, err), MGL_OK);
    mgl_status status = mgl_trial_verdict_read(&json, json.root, out, err);
    mgl_json_clear(&json);
    return status;
}

START_TEST(what_is_written_is_read_back)
{
    mgl_trial_verdict verdict = {0}, found = {0};
    mgl_json_out out = {0};
    mgl_trial_verdict_set(&verdict, MGL_OUTCOME_MISMATCH, "row %d", 7);
    mgl_text_put(&out.text, "{");
    mgl_trial_verdict_put(&out, &verdict);
    mgl_json_out_close(&out);
    ck_assert_str_eq(out.text.bytes, "{\"outcome\":\"MISMATCH\",\"diagnostic\":\"row 7\"}");
    ck_assert_int_eq(read(out.text.bytes, &found, NULL), MGL_OK);
    ck_assert_int_eq(found.outcome, MGL_OUTCOME_MISMATCH);
    ck_assert_str_eq(found.diagnostic, "row 7");
    mgl_text_clear(&out.text);
}
END_TEST

START_TEST(other_outcomes_are_rejected)
{
    mgl_trial_verdict found = {0};
    mgl_error err = {0};
    ck_assert_int_eq(read("{\"outcome\":\"FINE\",\"diagnostic\":\"\"}", &found, &err),
                     MGL_BAD_INPUT);
    ck_assert_str_eq(err.message, "there is no outcome 'FINE'");
    ck_assert_int_eq(read("{\"diagnostic\":\"\"}", &found, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(read("{\"outcome\":\"OK\",\"diagnostic\":7}", &found, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(read("{\"outcome\":\"OK\"}", &found, &err), MGL_OK);
    ck_assert_str_eq(found.diagnostic, "");
}
END_TEST

START_TEST(a_fault_of_the_candidate_is_no_error)
{
    mgl_trial_verdict verdict = {0};
    mgl_error why = {0}, err = {0};
    mgl_fail(&why, MGL_BAD_INPUT, "rows", "are %d", 9);
    ck_assert_int_eq(mgl_trial_verdict_of(&verdict, MGL_OK, MGL_OUTCOME_PARSE, &why, &err), MGL_OK);
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_OK);
    ck_assert_int_eq(mgl_trial_verdict_of(&verdict, MGL_INTERRUPTED, MGL_OUTCOME_PARSE, &why, &err),
                     MGL_INTERRUPTED);
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_OK);
    ck_assert_str_eq(err.message, "are 9");
    ck_assert_int_eq(mgl_trial_verdict_of(&verdict, MGL_BAD_INPUT, MGL_OUTCOME_PARSE, &why, NULL),
                     MGL_OK);
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_PARSE);
    ck_assert_str_eq(verdict.diagnostic, "rows: are 9");
}
END_TEST

START_TEST(a_long_diagnostic_keeps_its_ends)
{
    mgl_trial_verdict verdict = {0};
    mgl_trial_verdict_set(&verdict, MGL_OUTCOME_PARSE, "first %0500d last", 0);
    ck_assert_uint_le(strlen(verdict.diagnostic), MGL_MAX_DIAGNOSTIC);
    ck_assert_int_eq(strncmp(verdict.diagnostic, "first ", 6), 0);
    ck_assert_str_eq(verdict.diagnostic + strlen(verdict.diagnostic) - 5, " last");
}
END_TEST

START_TEST(each_outcome_has_hints)
{
    mgl_outcome found;
    ck_assert(mgl_outcome_parse(mgl_outcome_name((mgl_outcome)_i), &found));
    ck_assert_int_eq((int)found, _i);
    ck_assert_uint_gt(strlen(mgl_outcome_hint(found)), 0);
    ck_assert_uint_gt(strlen(mgl_outcome_kernel_hint(found)), 0);
}
END_TEST

START_TEST(authors_of_kernels_get_their_own_hints)
{
    ck_assert_ptr_nonnull(strstr(mgl_outcome_kernel_hint(MGL_OUTCOME_EXTRACT_NONE), "```cuda"));
    ck_assert_ptr_nonnull(strstr(mgl_outcome_hint(MGL_OUTCOME_EXTRACT_NONE), "```json"));
    ck_assert_ptr_eq(mgl_outcome_kernel_hint(MGL_OUTCOME_HANG), mgl_outcome_hint(MGL_OUTCOME_HANG));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verdict");
    TCase *tests = tcase_create("verdict");
    tcase_add_loop_test(tests, a_line_names_the_outcome_once, 0, sizeof lines / sizeof *lines);
    tcase_add_test(tests, what_is_written_is_read_back);
    tcase_add_test(tests, other_outcomes_are_rejected);
    tcase_add_test(tests, a_fault_of_the_candidate_is_no_error);
    tcase_add_test(tests, a_long_diagnostic_keeps_its_ends);
    tcase_add_loop_test(tests, each_outcome_has_hints, 0, MGL_OUTCOME_COUNT);
    tcase_add_test(tests, authors_of_kernels_get_their_own_hints);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

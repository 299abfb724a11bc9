/*
 * Tests of the experiment log: which op is next, when an op is abandoned, and what the log learns
 * about ideas.
 */
#include "autotune/kernels/versions/experiment_log.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char path[] = MGL_BINARY_DIR "/test_experiment_log.json";
static mgl_experiment_log experiment_log;
static mgl_shares shares;

static void setup(void)
{
    unlink(path);
    experiment_log = (mgl_experiment_log){0};
    shares = (mgl_shares){.ops = {{.op = "merge", .us = 10, .floor_us = 2},
                                  {.op = "norm_linear", .us = 80, .floor_us = 60},
                                  {.op = "head", .us = 10}},
                          .count = 3};
}

static void teardown(void)
{
    mgl_experiment_log_clear(&experiment_log);
}

static void add(const char *op, const char *idea, mgl_outcome outcome, double gain)
{
    mgl_experiment_log_row row = {.outcome = outcome, .gain = gain, .calls = 2, .tokens = 100};
    row.kept = outcome == MGL_OUTCOME_OK;
    strcpy(row.op, op);
    strcpy(row.idea, idea);
    ck_assert_int_eq(mgl_experiment_log_add(&experiment_log, &row, NULL), MGL_OK);
}

START_TEST(the_op_with_most_to_gain_comes_first)
{
    ck_assert(mgl_shares_order(&shares, &experiment_log));
    ck_assert_str_eq(shares.ops[0].op, "norm_linear");
    ck_assert_double_eq_tol(shares.ops[0].share, 0.8, 1e-9);
    ck_assert_double_eq_tol(shares.ops[0].gain, 0.2, 1e-9);
    ck_assert_str_eq(shares.ops[1].op, "merge");
    ck_assert_double_eq_tol(shares.ops[2].gain, 0.02, 1e-9);
}
END_TEST

START_TEST(five_reverts_leave_an_op)
{
    for (int i = 0; i < 4; i++)
        add("norm_linear", "split_k", MGL_OUTCOME_NO_GAIN, 0);
    mgl_shares_order(&shares, &experiment_log);
    ck_assert_str_eq(shares.ops[0].op, "norm_linear");
    add("norm_linear", "offset", MGL_OUTCOME_COMPILE_SYNTAX, NAN);
    mgl_shares_order(&shares, &experiment_log);
    ck_assert_str_eq(shares.ops[0].op, "merge");
    ck_assert_int_eq(shares.ops[2].state, MGL_OP_STATE_LEFT);
}
END_TEST

START_TEST(what_is_kept_counts_anew)
{
    for (int i = 0; i < 5; i++)
        add("norm_linear", "split_k", MGL_OUTCOME_NO_GAIN, 0);
    add("norm_linear", "offset", MGL_OUTCOME_OK, 0.03);
    add("merge", "offset", MGL_OUTCOME_NO_GAIN, 0);
    add("norm_linear", "offset", MGL_OUTCOME_NO_GAIN, 0);
    mgl_shares_order(&shares, &experiment_log);
    ck_assert_str_eq(shares.ops[0].op, "norm_linear");
    ck_assert_int_eq(shares.ops[0].reverts, 1);
}
END_TEST

START_TEST(ninety_percent_of_the_floor_leave_an_op)
{
    shares.ops[1].floor_us = 72;
    mgl_shares_order(&shares, &experiment_log);
    ck_assert_str_eq(shares.ops[0].op, "merge");
    ck_assert_int_eq(shares.ops[2].state, MGL_OP_STATE_NEAR);
}
END_TEST

START_TEST(there_may_be_none)
{
    shares.count = 1;
    shares.ops[0].floor_us = 10;
    ck_assert(!mgl_shares_order(&shares, &experiment_log));
    shares.count = 0;
    ck_assert(!mgl_shares_order(&shares, &experiment_log));
}
END_TEST

START_TEST(the_playbook_counts_failures)
{
    mgl_play plays[4];
    add("merge", "split_k", MGL_OUTCOME_OK, 0.06);
    add("merge", "split_k", MGL_OUTCOME_MISMATCH, 0.5);
    add("merge", "split_k", MGL_OUTCOME_NO_GAIN, 0);
    add("head", "offset", MGL_OUTCOME_OK, 0.03);
    ck_assert_int_eq(mgl_experiment_log_playbook(&experiment_log, NULL, plays, 4), 2);
    ck_assert_str_eq(plays[0].name, "offset");
    ck_assert_double_eq_tol(plays[1].mean_gain, 0.02, 1e-9);
    ck_assert_double_eq_tol(plays[1].best_gain, 0.06, 1e-9);
    ck_assert_int_eq(plays[1].tried, 3);
    ck_assert_int_eq(plays[1].correct, 2);
    ck_assert_int_eq(plays[1].kept, 1);
    ck_assert_int_eq(mgl_experiment_log_playbook(&experiment_log, "head", plays, 4), 1);
    ck_assert_int_eq(mgl_experiment_log_by_op(&experiment_log, plays, 4), 2);
    ck_assert_double_eq_tol(mgl_experiment_log_fast(&experiment_log, 0.05), 0.25, 1e-9);
}
END_TEST

START_TEST(a_file_comes_back)
{
    mgl_experiment_log read;
    add("merge", "split_k", MGL_OUTCOME_OK, 0.06);
    add("merge", "offset", MGL_OUTCOME_HANG, 0.5);
    ck_assert_int_eq(mgl_experiment_log_write(&experiment_log, path, NULL), MGL_OK);
    ck_assert_int_eq(mgl_experiment_log_read(path, &read, NULL), MGL_OK);
    ck_assert_uint_eq(read.count, 2);
    ck_assert_str_eq(read.rows[0].idea, "split_k");
    ck_assert_double_eq_tol(read.rows[0].gain, 0.06, 1e-12);
    ck_assert(read.rows[0].kept);
    ck_assert(isnan(read.rows[1].gain)); /* wrong results have no time */
    mgl_experiment_log_clear(&read);
}
END_TEST

/* A log of an earlier version is read, and rewritten with the current schema. */
START_TEST(the_old_schema_is_read)
{
    static const char old[] =
        "{\"schema\":\"megalith.ledger/1\",\"rows\":[{\"op\":\"merge\",\"idea\":\"split_k\","
        "\"outcome\":\"OK\",\"kept\":true,\"gain\":0.06}]}";
    mgl_experiment_log read;
    char *text;
    size_t length;
    ck_assert_int_eq(mgl_output_write_file(path, old, sizeof old - 1, NULL), MGL_OK);
    ck_assert_int_eq(mgl_experiment_log_read(path, &read, NULL), MGL_OK);
    ck_assert_uint_eq(read.count, 1);
    ck_assert_int_eq(mgl_experiment_log_write(&read, path, NULL), MGL_OK);
    ck_assert_int_eq(mgl_file_read(path, 1 << 20, &text, &length, NULL), MGL_OK);
    ck_assert_ptr_nonnull(strstr(text, "megalith.experiment_log/1"));
    mgl_free(text);
    mgl_experiment_log_clear(&read);
}
END_TEST

START_TEST(no_file_has_no_rows)
{
    mgl_experiment_log read;
    ck_assert_int_eq(mgl_experiment_log_read(path, &read, NULL), MGL_OK);
    ck_assert_uint_eq(read.count, 0);
}
END_TEST

static const char *const bad[] = {
    "[]",
    "{\"schema\":\"x\"}",
    "{\"schema\":\"megalith.ledger/1\"}",
    "{\"schema\":\"megalith.ledger/1\",\"rows\":[{}]}",
    "{\"schema\":\"megalith.ledger/1\",\"rows\":[{\"op\":\"a b\",\"idea\":\"c\",\"outcome\":\"OK\","
    "\"kept\":true}]}",
    "{\"schema\":\"megalith.ledger/1\",\"rows\":[{\"op\":\"a\",\"idea\":\"c\",\"outcome\":\"HANG\","
    "\"kept\":true}]}"};

START_TEST(a_bad_file_is_rejected)
{
    mgl_experiment_log read;
    mgl_output_write_file(path, bad[_i], strlen(bad[_i]), NULL);
    ck_assert_int_ne(mgl_experiment_log_read(path, &read, NULL), MGL_OK);
}
END_TEST

START_TEST(tables_are_printed)
{
    mgl_text csv = {0}, markdown = {0};
    add("merge", "split_k", MGL_OUTCOME_OK, 0.06);
    mgl_experiment_log_put_csv(&experiment_log, &csv);
    ck_assert_str_eq(csv.bytes, "number,op,idea,outcome,kept,gain_pct,calls,tokens\n"
                                "1,merge,split_k,OK,1,6.000,2,100\n");
    mgl_experiment_log_put_markdown(&experiment_log, &markdown);
    ck_assert_ptr_nonnull(
        strstr(markdown.bytes, "| split_k | 1 | 1 | 1 | +6.00 % | +6.00 % | 2 | 100 |"));
    ck_assert_ptr_nonnull(strstr(markdown.bytes, "1 tried; 100 % gained at least 1 %"));
    mgl_text_clear(&csv);
    mgl_text_clear(&markdown);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("experiment log");
    TCase *tests = tcase_create("experiment log");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, the_op_with_most_to_gain_comes_first);
    tcase_add_test(tests, five_reverts_leave_an_op);
    tcase_add_test(tests, what_is_kept_counts_anew);
    tcase_add_test(tests, ninety_percent_of_the_floor_leave_an_op);
    tcase_add_test(tests, there_may_be_none);
    tcase_add_test(tests, the_playbook_counts_failures);
    tcase_add_test(tests, a_file_comes_back);
    tcase_add_test(tests, the_old_schema_is_read);
    tcase_add_test(tests, no_file_has_no_rows);
    tcase_add_loop_test(tests, a_bad_file_is_rejected, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(tests, tables_are_printed);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

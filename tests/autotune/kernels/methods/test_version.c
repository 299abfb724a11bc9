/*
 * Tests of versions of a kernel text: the graph and its files, crashes and damaged files, and
 * differences.
 */
#include "autotune/kernels/methods/evaluator.h"
#include "autotune/kernels/versions/version.h"
#include "base/memory.h"
#include "base/output.h"
#include "tests/scratch.h"

#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = MGL_BINARY_DIR "/versions-XXXXXX";
static mgl_versions *points;

static void open_points(void)
{
    mgl_error err = {0};
    ck_assert_msg(mgl_versions_open(folder, false, &points, &err) == MGL_OK, "%s", err.message);
}

static void setup(void)
{
    scratch_make(folder);
    open_points();
}

static void teardown(void)
{
    mgl_versions_close(points);
    points = NULL;
    scratch_remove(folder);
}

/* Writes the line of a branch in the form of an earlier version. */
static void put_line(const char *branch, const char *line)
{
    char path[300];
    snprintf(path, sizeof path, "%s/branches/%s", folder, branch);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "%s\n", line);
    ck_assert_int_eq(fclose(file), 0);
}

static mgl_version_record record_of(const char *text)
{
    mgl_version_record r = {.unit = "merge",
                            .arch = "sm_90a",
                            .transformation = "refactor",
                            .note = "smaller functions",
                            .provides = "parts",
                            .text = text,
                            .values = {{"SPLIT_K", 4}},
                            .value_count = 1};
    r.verdict.outcome = MGL_OUTCOME_UNMEASURED;
    r.verdict.facts.time_us = 12.5;
    return r;
}

static mgl_digest add(const char *text)
{
    mgl_version_record r = record_of(text);
    mgl_error err = {0};
    mgl_digest id;
    ck_assert_msg(mgl_versions_add(points, &r, &err) == MGL_OK, "%s: %s", err.where, err.message);
    memcpy(id.hex, r.id, sizeof id.hex);
    return id;
}

static void check_text(const char *name, const char *text)
{
    mgl_version_record r;
    mgl_error err = {0};
    ck_assert_msg(mgl_versions_get(points, name, &r, &err) == MGL_OK, "%s", err.message);
    ck_assert_str_eq(r.text, text);
    mgl_version_clear(&r);
}

START_TEST(one_comes_back_as_it_was)
{
    mgl_version_record r;
    mgl_digest id = add("a \"text\"\n\twith\\ all");
    ck_assert_int_eq(mgl_versions_get(points, id.hex, &r, NULL), MGL_OK);
    ck_assert_str_eq(r.text, "a \"text\"\n\twith\\ all");
    ck_assert_str_eq(r.unit, "merge");
    ck_assert_str_eq(r.provides, "parts");
    ck_assert_int_eq(r.verdict.outcome, MGL_OUTCOME_UNMEASURED);
    ck_assert_double_eq_tol(r.verdict.facts.time_us, 12.5, 1e-9);
    ck_assert_double_eq(r.verdict.facts.gain, 0);
    ck_assert_int_eq(r.value_count, 1);
    ck_assert_str_eq(r.values[0].name, "SPLIT_K");
    ck_assert_int_eq(r.values[0].value, 4);
    ck_assert_int_eq(r.parent_count, 0);
    mgl_version_clear(&r);
}
END_TEST

START_TEST(eight_digits_stand_for_an_id)
{
    mgl_digest id = add("a");
    id.hex[8] = 0;
    check_text(id.hex, "a");
    id.hex[7] = 0;
    mgl_version_record r;
    ck_assert_int_eq(mgl_versions_get(points, id.hex, &r, NULL), MGL_BAD_INPUT);
}
END_TEST

static mgl_status tell(void *user, const mgl_version_record *r, mgl_error *err)
{
    (void)err;
    mgl_text_format(user, "%s ", r->text);
    return MGL_OK;
}

static void check_log(const char *name, const char *wanted)
{
    mgl_text log = {0};
    mgl_error err = {0};
    ck_assert_msg(mgl_versions_log(points, name, tell, &log, &err) == MGL_OK, "%s", err.message);
    ck_assert_str_eq(log.bytes, wanted);
    mgl_text_clear(&log);
}

START_TEST(branches_part_and_stay)
{
    mgl_digest first = add("a");
    add("b");
    ck_assert_int_eq(mgl_versions_make_branch(points, "other", first.hex, NULL), MGL_OK);
    ck_assert_str_eq(mgl_versions_branch(points), "other");
    add("c");
    check_log(NULL, "c a ");
    check_log("main", "b a ");
    ck_assert_int_eq(mgl_versions_make_branch(points, "main", NULL, NULL), MGL_OK);
    check_log(NULL, "b a ");
}
END_TEST

START_TEST(the_branch_is_remembered)
{
    add("a");
    ck_assert_int_eq(mgl_versions_make_branch(points, "other", NULL, NULL), MGL_OK);
    mgl_versions_close(points);
    open_points();
    ck_assert_str_eq(mgl_versions_branch(points), "other");
    check_log(NULL, "a ");
}
END_TEST

START_TEST(restoring_loses_nothing)
{
    mgl_digest first = add("a"), second = add("b");
    ck_assert_int_eq(mgl_versions_restore(points, first.hex, NULL), MGL_OK);
    check_log(NULL, "a ");
    check_text(second.hex, "b");
    add("c");
    check_log(NULL, "c a ");
}
END_TEST

START_TEST(own_is_the_text_that_was_lent)
{
    mgl_version_record r;
    ck_assert_int_eq(mgl_versions_get(points, "original", &r, NULL), MGL_BAD_INPUT);
    mgl_versions_lend_original(points, "merge", "own text");
    check_text("original", "own text");
    check_text("own", "own text"); /* its published name */
    check_text(NULL, "own text");
    add("a");
    ck_assert_int_eq(mgl_versions_make_branch(points, "anew", "original", NULL), MGL_OK);
    check_text(NULL, "own text");
    ck_assert_int_eq(mgl_versions_get(points, NULL, &r, NULL), MGL_OK);
    ck_assert(mgl_version_is_original(&r));
    add("b"); /* without a parent */
    check_log(NULL, "b ");
    ck_assert_int_eq(mgl_versions_restore(points, "original", NULL), MGL_OK);
    check_text("anew", "own text");
    ck_assert_int_eq(mgl_versions_log(points, NULL, tell, NULL, NULL), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_versions_make_branch(points, "own", NULL, NULL), MGL_USAGE);
    ck_assert_int_eq(mgl_versions_make_branch(points, "original", NULL, NULL), MGL_USAGE);
}
END_TEST

/* Earlier versions wrote `own`, and allowed a branch named `original`. */
START_TEST(folders_of_earlier_programs_are_read)
{
    mgl_version_record r;
    mgl_versions_lend_original(points, "merge", "own text");
    add("a");
    ck_assert_int_eq(mgl_versions_get(points, NULL, &r, NULL), MGL_OK);
    put_line("original", r.id);
    put_line("anew", "own");
    mgl_version_clear(&r);
    check_text("original", "a");
    check_text("own", "own text");
    ck_assert_int_eq(mgl_versions_get(points, "anew", &r, NULL), MGL_OK);
    ck_assert_str_eq(r.id, "original");
    mgl_version_clear(&r);
    ck_assert_int_eq(mgl_versions_make_branch(points, "anew", "original", NULL), MGL_USAGE);
    ck_assert_int_eq(mgl_versions_make_branch(points, "anew", "own", NULL), MGL_OK);
}
END_TEST

START_TEST(only_branches_that_stand_are_gone_to)
{
    mgl_error err = {0};
    add("a");
    ck_assert_int_eq(mgl_versions_make_branch(points, "other", NULL, NULL), MGL_OK);
    ck_assert_int_eq(mgl_versions_go_to(points, "main", NULL), MGL_OK);
    ck_assert_int_eq(mgl_versions_go_to(points, "nothing", &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "there are: main, other."));
    ck_assert_str_eq(mgl_versions_branch(points), "main");
}
END_TEST

START_TEST(each_is_told_but_for_those_that_are_damaged)
{
    mgl_text texts = {0}, path = {0};
    mgl_digest id = add("a");
    add("b");
    mgl_text_format(&path, "%s/objects/%s.json", folder, id.hex);
    ck_assert_int_eq(mgl_output_write_file(path.bytes, "{}", 2, NULL), MGL_OK);
    ck_assert_int_eq(mgl_versions_each(points, tell, &texts, NULL), MGL_OK);
    ck_assert_str_eq(texts.bytes, "b ");
    mgl_text_clear(&texts);
    mgl_text_clear(&path);
}
END_TEST

START_TEST(a_branch_that_stands_elsewhere_is_not_moved)
{
    mgl_digest first = add("a");
    add("b");
    ck_assert_int_eq(mgl_versions_make_branch(points, "main", first.hex, NULL), MGL_USAGE);
    check_log(NULL, "b a ");
}
END_TEST

static const char *const bad_names[] = {"", "../x", ".x", "-x", "a/b", "a b", "\xC3\xA4"};

START_TEST(names_that_are_none_are_rejected)
{
    add("a");
    ck_assert_int_eq(mgl_versions_make_branch(points, bad_names[_i], NULL, NULL), MGL_USAGE);
}
END_TEST

START_TEST(what_is_not_good_is_no_version)
{
    mgl_version_record r = record_of("a");
    r.verdict.outcome = MGL_OUTCOME_MISMATCH;
    ck_assert_int_eq(mgl_versions_add(points, &r, NULL), MGL_USAGE);
    ck_assert_int_eq(mgl_versions_get(points, NULL, &r, NULL), MGL_BAD_INPUT);
}
END_TEST

START_TEST(damage_is_told)
{
    char path[400];
    mgl_version_record r;
    mgl_error err = {0};
    mgl_digest id = add("a");
    snprintf(path, sizeof path, "%s/objects/%s.json", folder, id.hex);
    FILE *file = fopen(path, "r+");
    fseek(file, 40, SEEK_SET);
    fputc('X', file);
    fclose(file);
    ck_assert_int_eq(mgl_versions_get(points, NULL, &r, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "damaged"));
}
END_TEST

/* Every file operation fails once. The earlier contents remain. */
START_TEST(a_failing_disk_loses_nothing)
{
    add("a");
    for (uint64_t n = 1; n < 100; n++) {
        mgl_version_record r = record_of("b");
        mgl_file_fail_at(n);
        mgl_status status = mgl_versions_add(points, &r, NULL);
        mgl_file_fail_at(0);
        mgl_version_record now;
        ck_assert_int_eq(mgl_versions_get(points, NULL, &now, NULL), MGL_OK);
        ck_assert_msg(!strcmp(now.text, "b") || (status && !strcmp(now.text, "a")), "%s", now.text);
        mgl_version_clear(&now);
        if (!status)
            return;
    }
    ck_abort_msg("it never succeeded");
}
END_TEST

START_TEST(memory_may_run_out)
{
    mgl_status status = MGL_NO_MEMORY;
    add("a");
    for (uint64_t n = 1; status; n++) {
        mgl_version_record r = record_of("b"), got;
        mgl_alloc_fail_at(n, true);
        status = mgl_versions_add(points, &r, NULL);
        if (!status)
            status = mgl_versions_get(points, NULL, &got, NULL);
        if (!status)
            mgl_version_clear(&got);
        mgl_alloc_fail_at(0, false);
        ck_assert(!status || status == MGL_NO_MEMORY);
    }
    check_text(NULL, "b");
}
END_TEST

/* Writes until it is killed. */
static void write_for_ever(void)
{
    for (int i = 0;; i++) {
        char text[64];
        mgl_version_record r;
        snprintf(text, sizeof text, "text %d", i);
        r = record_of(text);
        if (mgl_versions_add(points, &r, NULL))
            _exit(1);
    }
}

static mgl_status count_one(void *user, const mgl_version_record *r, mgl_error *err)
{
    (void)r, (void)err;
    ++*(int *)user;
    return MGL_OK;
}

/* If nothing was written before a kill, the next kills come later, because a disk may be slow. */
START_TEST(a_kill_in_mid_write_loses_nothing)
{
    int before = 1;
    long later = 1;
    add("first");
    for (int round = 0; round < 12; round++) {
        const long us = later * (3000 + 1700 * round);
        const struct timespec moment = {us / 1000000, us % 1000000 * 1000};
        pid_t child = fork();
        if (!child)
            write_for_ever();
        nanosleep(&moment, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        int count = 0;
        mgl_error err = {0};
        mgl_versions_close(points);
        open_points();
        ck_assert_msg(mgl_versions_log(points, NULL, count_one, &count, &err) == MGL_OK, "%s: %s",
                      err.where, err.message);
        ck_assert_int_ge(count, before);
        before = count;
        if (count == 1 && later < 128)
            later *= 2;
    }
    ck_assert_int_gt(before, 1);
}
END_TEST

/* ---- differences ----------------------------------------------------------------------------- */

static const struct {
    const char *a, *b, *diff;
} diffs[] = {
    {"a\nb\n", "a\nb\n", ""},
    {"", "", ""},
    {"", "a\n", "+a\n"},
    {"a\n", "", "-a\n"},
    {"a\nb\nc\n", "a\nx\nc\n", " a\n-b\n+x\n c\n"},
    {"a\nb\nc", "a\nc", " a\n-b\n c\n"},
    {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\nx\n", "...\n 6\n 7\n 8\n-9\n+x\n"},
    {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "x\n2\n3\n4\n5\n6\n7\n8\ny\n",
     "-1\n+x\n 2\n 3\n 4\n...\n 6\n 7\n 8\n-9\n+y\n"},
    {"a\nb\nc\nd\n", "b\nd\ne\n", "-a\n b\n-c\n d\n+e\n"}};

START_TEST(differences_are_told_by_lines)
{
    mgl_text out = {0};
    ck_assert_int_eq(mgl_text_diff(diffs[_i].a, diffs[_i].b, &out, NULL), MGL_OK);
    ck_assert_str_eq(out.bytes ? out.bytes : "", diffs[_i].diff);
    mgl_text_clear(&out);
}
END_TEST

#define ADD(test)       tcase_add_test(tests, test)
#define ALL(test, rows) tcase_add_loop_test(tests, test, 0, (int)(sizeof(rows) / sizeof *(rows)))

int main(void)
{
    Suite *suite = suite_create("version");
    TCase *tests = tcase_create("version");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    ADD(one_comes_back_as_it_was);
    ADD(eight_digits_stand_for_an_id);
    ADD(branches_part_and_stay);
    ADD(the_branch_is_remembered);
    ADD(restoring_loses_nothing);
    ADD(own_is_the_text_that_was_lent);
    ADD(folders_of_earlier_programs_are_read);
    ADD(only_branches_that_stand_are_gone_to);
    ADD(each_is_told_but_for_those_that_are_damaged);
    ADD(a_branch_that_stands_elsewhere_is_not_moved);
    ALL(names_that_are_none_are_rejected, bad_names);
    ADD(what_is_not_good_is_no_version);
    ADD(damage_is_told);
    ADD(a_failing_disk_loses_nothing);
    ADD(memory_may_run_out);
    ADD(a_kill_in_mid_write_loses_nothing);
    ALL(differences_are_told_by_lines, diffs);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * Tests of `kernel guard`: the findings in each text trick of the corpus equal those of the gates
 * and ignore existing lines; the self-test detects an accepted trick.
 */
#include "autotune/kernels/gates/guard.h"
#include "tests/autotune/kernels/trick.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define FOLDER MGL_SOURCE_DIR "/tests/autotune/kernels/tricks"

static mgl_file_list files;
static mgl_guard_findings found;

static void scan(const mgl_kernel_unit *unit, const char *text, size_t length)
{
    mgl_error err = {0};
    ck_assert_msg(!mgl_guard_scan(unit, text, length, &found, &err), "%s: %s", err.where,
                  err.message);
}

static bool says(const char *because)
{
    for (int i = 0; i < found.count; i++)
        if (strstr(found.list[i].diagnostic, because))
            return true;
    return false;
}

static int count_lines(const char *text, size_t length)
{
    int lines = 0;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    return lines;
}

/* The range of lines in which a text differs from the unit's original. */
static void find_change(const mgl_kernel_unit *unit, const mgl_text *text, int *from, int *to)
{
    size_t length, first = 0, last = 0;
    const char *own = mgl_kernel_unit_text(unit, &length);
    while (first < length && own[first] == text->bytes[first])
        first++;
    while (last < length - first && own[length - 1 - last] == text->bytes[text->length - 1 - last])
        last++;
    *from = count_lines(text->bytes, first) + 1;
    *to = count_lines(text->bytes, text->length - last) + 1;
}

static void read_trick(int index, trick *out)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", FOLDER, files.names[index]);
    trick_read(path, out);
}

/* The guard reports the only finding at the same line as the scanner. */
START_TEST(tricks_have_findings_where_they_are)
{
    trick t;
    int from, to;
    read_trick(_i, &t);
    if (trick_expects(&t, MGL_OUTCOME_STATIC_FORBIDDEN) && !trick_is_of_ptx(&t)) {
        find_change(t.unit, &t.text, &from, &to);
        scan(t.unit, t.text.bytes, t.text.length);
        ck_assert_msg(says(t.because), "%s: `%s` is not said", files.names[_i], t.because);
        for (int i = 0; i < found.count && found.count > 1; i++)
            ck_assert_msg(found.list[i].line == 0 ||
                              (found.list[i].line >= from && found.list[i].line <= to),
                          "%s:%d: %s: the trick stands in %d to %d", files.names[_i],
                          found.list[i].line, found.list[i].diagnostic, from, to);
    }
    mgl_text_clear(&t.text);
}
END_TEST

START_TEST(units_are_clean)
{
    size_t length;
    const mgl_kernel_unit *unit = mgl_kernel_unit_get(_i);
    const char *text = mgl_kernel_unit_text(unit, &length);
    scan(unit, text, length);
    ck_assert_int_eq(found.count, 0);
    ck_assert(found.whole);
}
END_TEST

/* ---- texts of several findings --------------------------------------------------------------- */

static void scan_with(const char *added)
{
    size_t length;
    mgl_text text = {0};
    mgl_kernel_regions regions;
    const mgl_kernel_unit *unit = mgl_kernel_unit_find("merge");
    const char *own = mgl_kernel_unit_text(unit, &length);
    ck_assert_int_eq(mgl_kernel_regions_find(own, length, &regions, NULL), MGL_OK);
    const size_t at = regions.of[MGL_KERNEL_REGION_DEVICE].first;
    mgl_text_append(&text, own, at);
    mgl_text_put(&text, added);
    mgl_text_append(&text, own + at, length - at);
    scan(unit, text.bytes, text.length);
    const int before = count_lines(own, at);
    for (int i = 0; i < found.count; i++)
        found.list[i].line -= before;
    mgl_text_clear(&text);
}

START_TEST(each_line_has_its_finding)
{
    static const int lines[] = {1, 2, 3, 6, 7, 9, 10, 11, 12};
    scan_with("static __device__ int seen;\n"
              "#include \"/etc/passwd\"\n"
              "#define JOIN(a, b) a##b\n"
              "static __device__ int planted(int x)\n"
              "{\n"
              "    int y = clock64() + x;\n"
              "    asm volatile(\"exit;\"\n"
              "                 \" trap;\");\n"
              "    asm(\"trap;\");\n"
              "    static int calls;\n"
              "    return y + (x + blockIdx.x + gridDim.x +\n"
              "        threadIdx.x) + calls;\n"
              "}\n");
    ck_assert_int_eq(found.count, sizeof lines / sizeof *lines);
    for (int i = 0; i < found.count; i++) {
        ck_assert_int_eq(found.list[i].line, lines[i]);
        ck_assert_int_eq((int)found.list[i].outcome, MGL_OUTCOME_STATIC_FORBIDDEN);
        ck_assert_str_eq(mgl_outcome_kernel_hint(found.list[i].outcome),
                         "Leave out what the message names.");
    }
    ck_assert(found.whole);
}
END_TEST

/* The search ends at a byte that is not ASCII. */
START_TEST(a_search_that_ends_early_says_so)
{
    scan_with("enum { a_of_mine = clock };\nenum { caf\xC3\xA9 };\nenum { b_of_mine = clock };\n");
    ck_assert_int_eq(found.count, 1);
    ck_assert_int_eq(found.list[0].line, 2);
    ck_assert(!found.whole);
}
END_TEST

START_TEST(more_than_there_is_room_for_is_not_whole)
{
    mgl_text text = {0};
    for (int i = 0; i < MGL_GUARD_FINDINGS + 8; i++)
        mgl_text_format(&text, "static __device__ int seen_%d;\n", i);
    scan_with(text.bytes);
    ck_assert_int_eq(found.count, MGL_GUARD_FINDINGS);
    ck_assert(!found.whole);
    mgl_text_clear(&text);
}
END_TEST

START_TEST(a_frame_names_its_unit)
{
    size_t length;
    const mgl_kernel_unit *unit = mgl_kernel_unit_find("attend.waves");
    const char *text = mgl_kernel_unit_text(unit, &length);
    ck_assert_ptr_eq(mgl_guard_find_unit(text, length), unit);
    ck_assert_ptr_null(mgl_guard_find_unit(text, length - 1));
    ck_assert_ptr_null(mgl_guard_find_unit("", 0));
}
END_TEST

/* ---- the self-test --------------------------------------------------------------------------- */

static mgl_guard_test test;

START_TEST(the_guard_holds)
{
    mgl_error err = {0};
    ck_assert_msg(!mgl_guard_selftest(&test, &err), "%s: %s", err.where, err.message);
    ck_assert_msg(test.missed == 0, "%s: %s", test.misses[0].name, test.misses[0].got);
    ck_assert_int_eq(test.units, mgl_kernel_unit_count());
    ck_assert_int_ge(test.tricks, 100);
    ck_assert_int_ge(test.ptx_tricks, 50);
    ck_assert_int_ge(test.ptx_modules, 8);
}
END_TEST

static void plant(mgl_outcome outcome, const char *because, const char *text)
{
    const mgl_guard_plant one = {.name = "planted",
                                 .unit = "merge",
                                 .region = MGL_KERNEL_REGION_DEVICE,
                                 .outcome = outcome,
                                 .because = because,
                                 .text = text};
    test = (mgl_guard_test){0};
    ck_assert_int_eq(mgl_guard_try(&one, 1, &test, NULL), MGL_OK);
    ck_assert_int_eq(test.tricks, 1);
}

START_TEST(what_is_let_through_is_missed)
{
    plant(MGL_OUTCOME_STATIC_FORBIDDEN, "", "enum { HARMLESS_OF_MINE = 1 };\n");
    ck_assert_int_eq(test.missed, 1);
    ck_assert_str_eq(test.misses[0].name, "planted");
    ck_assert_str_eq(test.misses[0].got, "nothing is rejected");
}
END_TEST

START_TEST(what_is_rejected_for_something_else_is_missed)
{
    static const char reads_clock[] = "enum { MINE = clock };\n";
    plant(MGL_OUTCOME_STATIC_FORBIDDEN, "reads a clock", reads_clock);
    ck_assert_int_eq(test.missed, 0);
    plant(MGL_OUTCOME_STATIC_FORBIDDEN, "file scope", reads_clock);
    ck_assert_int_eq(test.missed, 1);
    plant(MGL_OUTCOME_PARSE, "reads a clock", reads_clock);
    ck_assert_int_eq(test.missed, 1);
    ck_assert_ptr_nonnull(strstr(test.misses[0].got, "STATIC_FORBIDDEN at"));
}
END_TEST

/* ---- the self-test of PTX -------------------------------------------------------------------- */

static void try_ptx(const char *what, const char *why, const char *module, const char *body)
{
    const mgl_guard_ptx one = {"planted", what, why, module, body};
    mgl_error err = {0};
    test = (mgl_guard_test){0};
    ck_assert_msg(!mgl_guard_try_ptx(&one, 1, &test, &err), "%s: %s", err.where, err.message);
    ck_assert_int_eq(test.ptx_tricks, what != NULL);
    ck_assert_int_eq(test.ptx_modules, what == NULL);
}

START_TEST(ptx_that_is_let_through_is_missed)
{
    try_ptx("exit", "it ends a thread", "", "mov.u32 %r2, 0;");
    ck_assert_int_eq(test.missed, 1);
    ck_assert_str_eq(test.misses[0].name, "planted");
    ck_assert_str_eq(test.misses[0].got, "nothing is rejected");
    try_ptx("exit", "it ends a thread", "", "exit;");
    ck_assert_int_eq(test.missed, 0);
}
END_TEST

START_TEST(ptx_that_is_rejected_for_something_else_is_missed)
{
    try_ptx("trap", "it stops the kernel", "", "exit;");
    ck_assert_int_eq(test.missed, 1);
    ck_assert_str_eq(test.misses[0].got, "STATIC_FORBIDDEN at line 15: exit: it ends a thread");
    try_ptx("exit", "it stops the kernel", "", "exit;");
    ck_assert_int_eq(test.missed, 1);
    /* not in the line of the trick */
    try_ptx("exit", "it ends a thread", ".func exit_of_mine() { ret; }", "exit;");
    ck_assert_int_eq(test.missed, 1);
}
END_TEST

START_TEST(clean_ptx_that_is_rejected_is_missed)
{
    try_ptx(NULL, NULL, "", "mov.u32 %r2, %clock;");
    ck_assert_int_eq(test.missed, 1);
    ck_assert_str_eq(test.misses[0].got, "STATIC_FORBIDDEN at line 15: %clock: a clock");
    try_ptx(NULL, NULL, "", "mov.u32 %r2, %tid.x;");
    ck_assert_int_eq(test.missed, 0);
}
END_TEST

START_TEST(what_is_no_ptx_fails)
{
    const mgl_guard_ptx one = {"planted", NULL, NULL, "", "}}"};
    mgl_error err = {0};
    ck_assert_int_eq(mgl_guard_try_ptx(&one, 1, &test, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.where, "planted"));
}
END_TEST

int main(void)
{
    mgl_error err = {0};
    if (mgl_folder_list(FOLDER, ".trick", &files, &err)) {
        fprintf(stderr, "%s: %s\n", err.where, err.message);
        return 1;
    }
    Suite *suite = suite_create("guard");
    TCase *all = tcase_create("guard");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, tricks_have_findings_where_they_are, 0, (int)files.count);
    tcase_add_loop_test(all, units_are_clean, 0, mgl_kernel_unit_count());
    tcase_add_test(all, each_line_has_its_finding);
    tcase_add_test(all, a_search_that_ends_early_says_so);
    tcase_add_test(all, more_than_there_is_room_for_is_not_whole);
    tcase_add_test(all, a_frame_names_its_unit);
    tcase_add_test(all, the_guard_holds);
    tcase_add_test(all, what_is_let_through_is_missed);
    tcase_add_test(all, what_is_rejected_for_something_else_is_missed);
    tcase_add_test(all, ptx_that_is_let_through_is_missed);
    tcase_add_test(all, ptx_that_is_rejected_for_something_else_is_missed);
    tcase_add_test(all, clean_ptx_that_is_rejected_is_missed);
    tcase_add_test(all, what_is_no_ptx_fails);
    suite_add_tcase(suite, all);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    mgl_file_list_clear(&files);
    return failed > 0;
}

/* Tests of scanning PTX for forbidden instructions. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/kernels/ptx/scan.h"
#include "base/memory.h"
#include "tests/autotune/kernels/ptx_support.h"

static mgl_ptx parse(const char *text)
{
    mgl_ptx ptx;
    mgl_error err = {0};
    ck_assert_msg(!mgl_ptx_parse(text, strlen(text), "test.ptx", &ptx, &err), "%s: %s", err.where,
                  err.message);
    return ptx;
}

/* Instructions that replace the barrier of ring.ptx, and the expected finding. */
static const struct trick {
    const char *instruction, *what;
} tricks[] = {
    {"mov.u32 %r20, %clock;", "%clock"},
    {"mov.u64 %rd7, %clock64;", "%clock64"},
    {"mov.u64 %rd7, %globaltimer;", "%globaltimer"},
    {"mov.u64 %rd7, %gridid;", "%gridid"},
    {"mov.u32 %r20, %nctaid.x;", "%nctaid.x"},
    {"mov.u32 %r20, %smid;", "%smid"},
    {"nanosleep.u32 100;", "nanosleep.u32"},
    {"exit;", "exit"},
    {"trap;", "trap"},
    {"atom.global.add.u32 %r20, [%rd4], 1;", "atom.global.add.u32"},
    {"red.global.add.u32 [%rd4], 1;", "red.global.add.u32"},
    {"st.global.u32 [%rd4], %r1;", "st.global.u32"},
    {"st.u32 [%rd4], %r1;", "st.u32"},
    {"call vprintf;", "call"},
};

static mgl_ptx_finding scan_by(const char *candidate, const char *incumbent, bool kinds)
{
    mgl_ptx_finding out;
    mgl_error err;
    mgl_ptx ours = parse(candidate), theirs = parse(incumbent);
    ck_assert(!mgl_ptx_scan(&ours, &theirs, kinds, &out, &err));
    mgl_ptx_clear(&ours);
    mgl_ptx_clear(&theirs);
    return out;
}

static mgl_ptx_finding scan(const char *candidate, const char *incumbent)
{
    return scan_by(candidate, incumbent, false);
}

START_TEST(a_trick_is_forbidden_with_its_line)
{
    char *base = read_ptx("ring.ptx");
    char *text = replace(read_ptx("ring.ptx"), "bar.sync 0;", tricks[_i].instruction);
    mgl_ptx_finding found = scan(text, base);
    ck_assert_int_eq(found.outcome, MGL_OUTCOME_STATIC_FORBIDDEN);
    ck_assert_str_eq(found.what, tricks[_i].what);
    ck_assert_int_eq(found.line, 29);
    ck_assert_int_eq(scan_by(text, base, true).outcome, MGL_OUTCOME_STATIC_FORBIDDEN);
    mgl_free(base);
    mgl_free(text);
}
END_TEST

/* If only kinds of instructions are compared, repeated instructions of the incumbent are
 * allowed. */
START_TEST(what_the_incumbent_does_once_is_allowed_twice)
{
    char twice[200];
    snprintf(twice, sizeof twice, "%s\n%s", tricks[_i].instruction, tricks[_i].instruction);
    char *base = replace(read_ptx("ring.ptx"), "bar.sync 0;", tricks[_i].instruction);
    char *text = replace(read_ptx("ring.ptx"), "bar.sync 0;", twice);
    ck_assert_int_eq(scan_by(text, base, true).outcome, MGL_OUTCOME_OK);
    const bool store = !strncmp(tricks[_i].what, "st.", 3); /* for stores, only kinds are
                                                               compared */
    ck_assert_int_eq(scan_by(text, base, false).outcome,
                     store ? MGL_OUTCOME_OK : MGL_OUTCOME_STATIC_FORBIDDEN);
    mgl_free(base);
    mgl_free(text);
}
END_TEST

/* The kind of a call includes the called function. */
START_TEST(another_function_is_another_kind)
{
    static const char functions[] = ".func one() { ret; }\n.func other() { ret; }\n.visible";
    char *base = replace(read_ptx("ring.ptx"), ".visible", functions);
    base = replace(base, "bar.sync 0;", "call.uni one;");
    char *text = replace(read_ptx("ring.ptx"), ".visible", functions);
    text = replace(text, "bar.sync 0;", "call.uni one;\ncall.uni other;");
    mgl_ptx_finding found = scan_by(text, base, true);
    ck_assert_int_eq(found.outcome, MGL_OUTCOME_STATIC_FORBIDDEN);
    ck_assert_str_eq(found.what, "other");
    ck_assert_str_eq(found.why, "a call");
    mgl_free(base);
    mgl_free(text);
}
END_TEST

START_TEST(what_the_incumbent_does_is_allowed)
{
    char *text = replace(read_ptx("ring.ptx"), "bar.sync 0;", tricks[_i].instruction);
    ck_assert_int_eq(scan(text, text).outcome, MGL_OUTCOME_OK);
    mgl_free(text);
}
END_TEST

START_TEST(a_variable_of_the_module_is_forbidden_once_it_is_used)
{
    char *base = read_ptx("ring.ptx");
    char *text = replace(read_ptx("ring.ptx"), ".visible", ".global .u32 state;\n.visible");
    ck_assert_int_eq(scan(text, base).outcome, MGL_OUTCOME_OK);
    text = replace(text, "mov.u32 %r7, 0;", "ld.global.u32 %r7, [state];");
    mgl_ptx_finding found = scan(text, base);
    ck_assert_str_eq(found.what, "state");
    mgl_free(base);
    mgl_free(text);
}
END_TEST

START_TEST(a_function_of_somebody_else_is_forbidden)
{
    char *base = read_ptx("ring.ptx");
    char *text = replace(read_ptx("ring.ptx"), ".visible",
                         ".extern .func (.param .b64 out) malloc(.param .b64 n);\n.visible");
    ck_assert_str_eq(scan(text, base).what, "malloc");
    mgl_free(base);
    mgl_free(text);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

int main(void)
{
    Suite *suite = suite_create("ptx_scan");
    TCase *tests = tcase_create("ptx_scan");
    tcase_add_loop_test(tests, a_trick_is_forbidden_with_its_line, 0, COUNT(tricks));
    tcase_add_loop_test(tests, what_the_incumbent_does_once_is_allowed_twice, 0, COUNT(tricks));
    tcase_add_test(tests, another_function_is_another_kind);
    tcase_add_loop_test(tests, what_the_incumbent_does_is_allowed, 0, COUNT(tricks));
    tcase_add_test(tests, a_variable_of_the_module_is_forbidden_once_it_is_used);
    tcase_add_test(tests, a_function_of_somebody_else_is_forbidden);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

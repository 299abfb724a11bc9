/*
 * Tests of scanning PTX for forbidden instructions, rewriting by rules, and assembling: a good edit
 * assembles, and an error names its line. Assembling is skipped with a message if nvJitLink is
 * missing.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/kernels/ptx/assemble.h"
#include "autotune/kernels/ptx/rewrite.h"
#include "autotune/kernels/ptx/scan.h"
#include "base/memory.h"
#include "tests/autotune/kernels/ptx_support.h"
#include "vm/cuda/driver.h"

static mgl_ptx parse(const char *text)
{
    mgl_ptx ptx;
    mgl_error err = {0};
    ck_assert_msg(!mgl_ptx_parse(text, strlen(text), "test.ptx", &ptx, &err), "%s: %s", err.where,
                  err.message);
    return ptx;
}

/* ---- the scan -------------------------------------------------------------------------------- */

/* What stands in place of the barrier of ring.ptx, and what is told of it. */
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

/* By kinds what the compiler repeats is none the worse. */
START_TEST(what_the_incumbent_does_once_is_allowed_twice)
{
    char twice[200];
    snprintf(twice, sizeof twice, "%s\n%s", tricks[_i].instruction, tricks[_i].instruction);
    char *base = replace(read_ptx("ring.ptx"), "bar.sync 0;", tricks[_i].instruction);
    char *text = replace(read_ptx("ring.ptx"), "bar.sync 0;", twice);
    ck_assert_int_eq(scan_by(text, base, true).outcome, MGL_OUTCOME_OK);
    const bool store = !strncmp(tricks[_i].what, "st.", 3); /* of which kinds alone count */
    ck_assert_int_eq(scan_by(text, base, false).outcome,
                     store ? MGL_OUTCOME_OK : MGL_OUTCOME_STATIC_FORBIDDEN);
    mgl_free(base);
    mgl_free(text);
}
END_TEST

/* A call is of the kind of what it calls. */
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

/* ---- rewrites -------------------------------------------------------------------------------- */

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
static const char simple[] =
    HEAD ".visible .entry simple(.param .u64 p)\n{\n.reg .b32 %r<8>;\n.reg .b64 %rd<3>;\n.reg "
         ".pred %q;\n"
         "ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r5, 0;\n"
         "LOOP:\nld.global.v2.u32 {%r1, %r2}, [%rd2];\nld.global.v2.u32 {%r3, %r4}, [%rd2+8];\n"
         "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %q, %r5, 9;\n@%q bra LOOP;\n"
         "st.global.v4.u32 [%rd2+16], {%r1, %r2, %r3, %r4};\nret;\n}\n";

static const struct edit {
    const char *rule, *holds;
    size_t count;
} edits[] = {
    {"load-no-allocate", "ld.global.L1::no_allocate.v2.u32 {%r1", 2},
    {"load-evict-first", "ld.global.L1::evict_first.v2.u32 {%r1", 2},
    {"load-prefetch-256", "ld.global.L2::256B.v2.u32 {%r1", 2},
    {"load-read-only", "ld.global.nc.v2.u32 {%r1", 2},
    {"store-streaming", "st.global.cs.v4.u32", 1},
    {"load-merge", "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2+0];", 1},
    {"loop-keep", "LOOP:\n\t.pragma \"nounroll\";", 1},
    {"loop-free", "LOOP:\nld", 0},
};

static char *rewrite(const char *rule, size_t *count)
{
    mgl_text out = {0};
    mgl_error err;
    mgl_ptx ptx = parse(simple);
    ck_assert(!mgl_ptx_rewrite(&ptx, rule, &out, count, &err));
    mgl_ptx_clear(&ptx);
    return out.bytes;
}

START_TEST(a_rule_rewrites_its_places)
{
    size_t count;
    char *text = rewrite(edits[_i].rule, &count);
    ck_assert_uint_eq(count, edits[_i].count);
    ck_assert_msg(strstr(text, edits[_i].holds) != NULL, "%s", text);
    mgl_free(text);
}
END_TEST

START_TEST(an_unknown_rule_is_refused)
{
    size_t count;
    mgl_text out = {0};
    mgl_error err;
    mgl_ptx ptx = parse(simple);
    ck_assert_int_eq(mgl_ptx_rewrite(&ptx, "load-faster", &out, &count, &err), MGL_USAGE);
    mgl_ptx_clear(&ptx);
}
END_TEST

/* ---- assembling ------------------------------------------------------------------------------ */

static bool can_assemble(const char *test)
{
    const mgl_jitlink *api;
    mgl_error err;
    if (!mgl_jitlink_open(&api, &err))
        return true;
    ck_assert_msg(!getenv("MEGALITH_REQUIRE_NVRTC"), "%s: %s", test, err.message);
    printf("SKIPPED %s: %s\n", test, err.message);
    return false;
}

static mgl_ptx_assembled assemble(const char *text)
{
    mgl_ptx_assembled out;
    mgl_error err = {0};
    ck_assert_msg(!mgl_ptx_assemble(text, strlen(text), "sm_80", &out, &err), "%s", err.message);
    return out;
}

START_TEST(a_good_edit_assembles)
{
    size_t count;
    if (!can_assemble(edits[_i].rule))
        return;
    char *text = rewrite(edits[_i].rule, &count);
    mgl_ptx_assembled out = assemble(text);
    ck_assert_msg(out.good, "line %d: %s", out.line, out.message);
    ck_assert_uint_gt(out.cubin_bytes, 0);
    mgl_ptx_assembled_clear(&out);
    mgl_free(text);
}
END_TEST

START_TEST(registers_are_told_without_a_device)
{
    if (!can_assemble("registers"))
        return;
    mgl_ptx_assembled out = assemble(simple);
    ck_assert_int_ge(out.registers, 4);
    ck_assert_int_le(out.registers, 64);
    mgl_ptx_assembled_clear(&out);
}
END_TEST

START_TEST(a_bad_edit_names_its_line)
{
    if (!can_assemble("a bad edit"))
        return;
    char *text = replace(mgl_strdup(simple), "add.u32 %r5, %r5, 1;", "add.q32 %r5, %r5, 1;");
    mgl_ptx_assembled out = assemble(text);
    ck_assert(!out.good);
    ck_assert_int_eq(out.line, 15);
    ck_assert(out.message[0]);
    mgl_ptx_assembled_clear(&out);
    mgl_free(text);
}
END_TEST

START_TEST(an_unknown_architecture_is_refused)
{
    mgl_ptx_assembled out;
    mgl_error err;
    if (!can_assemble("an architecture"))
        return;
    ck_assert_int_eq(mgl_ptx_assemble(simple, strlen(simple), "sm_hello", &out, &err),
                     MGL_BAD_INPUT);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

int main(void)
{
    Suite *suite = suite_create("ptx_edit");
    TCase *tests = tcase_create("ptx_edit");
    tcase_add_loop_test(tests, a_trick_is_forbidden_with_its_line, 0, COUNT(tricks));
    tcase_add_loop_test(tests, what_the_incumbent_does_once_is_allowed_twice, 0, COUNT(tricks));
    tcase_add_test(tests, another_function_is_another_kind);
    tcase_add_loop_test(tests, what_the_incumbent_does_is_allowed, 0, COUNT(tricks));
    tcase_add_test(tests, a_variable_of_the_module_is_forbidden_once_it_is_used);
    tcase_add_test(tests, a_function_of_somebody_else_is_forbidden);
    tcase_add_loop_test(tests, a_rule_rewrites_its_places, 0, COUNT(edits));
    tcase_add_test(tests, an_unknown_rule_is_refused);
    tcase_add_loop_test(tests, a_good_edit_assembles, 0, COUNT(edits));
    tcase_add_test(tests, registers_are_told_without_a_device);
    tcase_add_test(tests, a_bad_edit_names_its_line);
    tcase_add_test(tests, an_unknown_architecture_is_refused);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * Tests of the PTX parser and condenser: facts match labels set by hand, names do not matter, diffs
 * find planted changes, and invalid texts are rejected.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/kernels/ptx/diff.h"
#include "base/memory.h"
#include "tests/autotune/kernels/ptx_support.h"

static char *write(const char *text)
{
    mgl_text out = {0};
    mgl_ptx_condensed c = condense(text);
    mgl_ptx_condensed_write(&c, &out);
    mgl_ptx_condensed_clear(&c);
    return out.bytes;
}

/* The occurrences of a value in all functions; `value` is "" for a numeric feature. */
static int64_t count_fact(const mgl_ptx_condensed *c, const char *feature, const char *value)
{
    for (size_t i = 0; i < c->total_count; i++)
        if (!strcmp(c->totals[i].feature, feature) && !strcmp(c->totals[i].value, value))
            return c->totals[i].count;
    return 0;
}

static const mgl_ptx_difference *find_difference(const mgl_ptx_diff *diff, const char *feature)
{
    for (size_t i = 0; i < diff->count; i++)
        if (!strcmp(diff->rows[i].feature, feature))
            return &diff->rows[i];
    return NULL;
}

/* ---- facts ----------------------------------------------------------------------------------- */

static const struct fact {
    const char *file, *feature, *value;
    int64_t count;
} facts[] = {
    {"ring.ptx", "async.stages", "", 4},
    {"ring.ptx", "async.wait", "2", 1},
    {"ring.ptx", "async.groups", "cp.async", 1},
    {"ring.ptx", "async.copy", "16B cg", 1},
    {"ring.ptx", "matrix.shape", "mma m16n8k16 f32 bf16 bf16 f32", 1},
    {"ring.ptx", "matrix.load", "sync.aligned.m8n8.x4.shared.b16", 1},
    {"ring.ptx", "loops", "depth 1 trips 8", 1},
    {"ring.ptx", "global.store.vector", "v4", 1},
    {"ring.ptx", "global.store.bytes", "16", 1},
    {"ring.ptx", "global.store.address", "thread*16", 1},
    {"ring.ptx", "swizzle", "load", 1},
    {"ring.ptx", "swizzle", "copy", 1},
    {"ring.ptx", "roles", "warp lt 2", 1},
    {"ring.ptx", "shared.static", "", 1024},
    {"ring.ptx", "threads.most", "", 128},
    {"ring.ptx", "registers", "b32", 24},
    {"bulk.ptx", "mbarrier", "init.shared::cta.b64", 4},
    {"bulk.ptx", "mbarrier", "arrive.expect_tx.shared::cta.b64", 1},
    {"bulk.ptx", "mbarrier", "try_wait.parity.shared::cta.b64", 1},
    {"bulk.ptx", "async.bulk", "shared::cluster.global.mbarrier::complete_tx::bytes", 1},
    {"bulk.ptx", "matrix.shape", "wgmma m64n8k16 f32 bf16 bf16", 1},
    {"bulk.ptx", "setmaxnreg", "inc 232", 1},
    {"bulk.ptx", "setmaxnreg", "dec 40", 1},
    {"bulk.ptx", "roles", "warp ne 4", 1},
    {"bulk.ptx", "loops", "depth 1 trips ?", 1},
    {"bulk.ptx", "shared.static", "", 4128},
    {"attend_rows.ptx", "matrix.shape", "mma m16n8k16 f32 bf16 bf16 f32", 16},
    {"attend_rows.ptx", "async.bulk", "prefetch.L2.global", 5},
    {"sum_batch.ptx", "matrix.shape", "mma m16n8k16 f32 bf16 bf16 f32", 12},
};

START_TEST(facts_are_as_labelled)
{
    const struct fact *fact = &facts[_i];
    char *text = read_ptx(fact->file);
    mgl_ptx_condensed c = condense(text);
    int64_t count = count_fact(&c, fact->feature, fact->value);
    ck_assert_msg(count == fact->count, "%s: %s %s: %lld", fact->file, fact->feature, fact->value,
                  (long long)count);
    mgl_ptx_condensed_clear(&c);
    mgl_free(text);
}
END_TEST

/* ---- the form -------------------------------------------------------------------------------- */

static const char *const large[] = {"attend_rows.ptx", "sum_batch.ptx"};

START_TEST(large_ones_become_five_times_smaller)
{
    char *text = read_ptx(large[_i]), *out = write(text);
    ck_assert_uint_le(5 * strlen(out), strlen(text));
    mgl_free(out);
    mgl_free(text);
}
END_TEST

START_TEST(the_form_is_deterministic)
{
    char *text = read_ptx(large[_i]), *first = write(text), *second = write(text);
    ck_assert_str_eq(first, second);
    mgl_free(first);
    mgl_free(second);
    mgl_free(text);
}
END_TEST

START_TEST(names_do_not_matter)
{
    char *text = read_ptx(large[_i]), *first = write(text);
    text = replace(text, "%rd", "%wide");
    text = replace(text, "%r", "%narrow");
    text = replace(text, "$L__BB", "$place_");
    text = replace(text, "block_memory", "arena");
    text = replace(text, "_ZN8megalith", "renamed_");
    char *second = write(text);
    ck_assert_str_eq(first, second);
    mgl_free(first);
    mgl_free(second);
    mgl_free(text);
}
END_TEST

START_TEST(comments_and_line_tables_do_not_matter)
{
    char *text = read_ptx("ring.ptx"), *first = write(text);
    text = replace(text, "\tbar.sync 0;",
                   "\t.loc 1 12 7, function_name $L_info, inlined_at 1 2 3\n"
                   "/* two\nlines */ bar.sync 0; // here");
    char *second = write(text);
    ck_assert_str_eq(first, second);
    mgl_free(first);
    mgl_free(second);
    mgl_free(text);
}
END_TEST

/* ---- differences ----------------------------------------------------------------------------- */

static const struct plant {
    const char *from, *to, *feature, *after;
} plants[] = {
    {"st.global.v4.f32 [%rd4], {%f1, %f2, %f3, %f4}", "st.global.v2.f32 [%rd4], {%f1, %f2}",
     "global.store.vector", "v2: 1"},
    {"st.global.v4", "st.global.cs.v4", "global.store.hint", "cs: 1"},
    {"wait_group 2", "wait_group 3", "async.stages", "5"},
    {"xor.b32 %r5", "add.s32 %r5", "swizzle", ""},
    {"m16n8k16", "m16n8k8", "matrix.shape", "mma m16n8k8 f32 bf16 bf16 f32: 1"},
    {"%r7, 8", "%r7, 16", "loops", "depth 1 trips 16: 1"},
};

START_TEST(a_planted_idea_is_found)
{
    mgl_ptx_diff diff;
    mgl_error err;
    char *text = read_ptx("ring.ptx");
    mgl_ptx_condensed before = condense(text);
    text = replace(text, plants[_i].from, plants[_i].to);
    mgl_ptx_condensed after = condense(text);
    ck_assert(!mgl_ptx_diff_make(&before, &after, &diff, &err));
    const mgl_ptx_difference *row = find_difference(&diff, plants[_i].feature);
    ck_assert_ptr_nonnull(row);
    ck_assert_str_eq(row->after, plants[_i].after);
    mgl_ptx_diff_clear(&diff);
    mgl_ptx_condensed_clear(&before);
    mgl_ptx_condensed_clear(&after);
    mgl_free(text);
}
END_TEST

START_TEST(equal_modules_do_not_differ)
{
    mgl_ptx_diff diff;
    mgl_error err;
    char *text = read_ptx("bulk.ptx");
    mgl_ptx_condensed c = condense(text);
    ck_assert(!mgl_ptx_diff_make(&c, &c, &diff, &err));
    ck_assert_uint_eq(diff.count, 0);
    mgl_ptx_diff_clear(&diff);
    mgl_ptx_condensed_clear(&c);
    mgl_free(text);
}
END_TEST

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

/* ---- trip counts ----------------------------------------------------------------------------- */

/* The body of a loop whose induction variable %r1 starts at 0. The loop repeats while %p1 holds. */
static const struct loop {
    const char *body, *trips;
} loops[] = {
    {"add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 8;", "8"},
    {"add.s32 %r1, %r1, 3; setp.lt.u32 %p1, %r1, 8;", "3"},
    {"add.s32 %r1, %r1, 2; setp.le.s32 %p1, %r1, 8;", "5"},
    {"add.s32 %r1, %r1, 9; setp.lt.s32 %p1, %r1, 8;", "1"},
    {"add.s32 %r1, %r1, -1; setp.gt.s32 %p1, %r1, -8;", "8"},
    {"sub.s32 %r1, %r1, 2; setp.ge.s32 %p1, %r1, -8;", "5"},
    {"add.s32 %r1, %r1, -1; setp.ne.s32 %p1, %r1, -8;", "8"},
    /* the comparison reads the value before the addition */
    {"setp.lt.s32 %p1, %r1, 7; add.s32 %r1, %r1, 1;", "8"},
    {"setp.ne.s32 %p1, %r1, 7; add.s32 %r1, %r1, 1;", "8"},
    {"setp.eq.s32 %p1, %r1, 0; add.s32 %r1, %r1, 1;", "2"},
    {"add.s32 %r2, %r1, 1; setp.ne.s32 %p1, %r1, 7; mov.u32 %r1, %r2;", "8"},
    {"mov.u32 %r3, %r1; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r3, 7;", "8"},
    /* the value after it */
    {"add.s32 %r2, %r1, 1; setp.lt.s32 %p1, %r2, 8; mov.u32 %r1, %r2;", "8"},
    {"add.s32 %r2, %r1, 1; mov.u32 %r1, %r2; setp.lt.s32 %p1, %r1, 8;", "8"},
    {"add.s32 %r2, %r1, 4; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r2, 8;", "5"},
    {"add.s32 %r1, %r1, 1; add.s32 %r2, %r1, 4; setp.lt.s32 %p1, %r2, 8;", "4"},
    /* constants do not determine a trip count */
    {"add.s32 %r1, %r1, 1; setp.gt.s32 %p1, %r1, -1;", "?"},
    {"add.s32 %r1, %r1, -1; setp.ge.u32 %p1, %r1, 0;", "?"},
    {"add.s32 %r1, %r1, 3; setp.ne.s32 %p1, %r1, 8;", "?"},
    {"@%p2 add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 8;", "?"},
    {"@%p2 bra MORE; add.s32 %r1, %r1, 1; MORE: setp.lt.s32 %p1, %r1, 8;", "?"},
    {"add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 8; @%p2 bra END;", "?"},
    {"add.s32 %r1, %r1, 1; @%p2 ret; setp.lt.s32 %p1, %r1, 8;", "?"},
    {"@%p2 bra LOOP; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 8;", "?"},
    {"add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r4;", "?"},
    {"add.s32 %r1, %r1, 1; cvt.rn.f32.s32 %f1, %r1; setp.lt.f32 %p1, %f1, 0f41000000;", "?"},
};

START_TEST(trips_are_counted)
{
    char text[800], value[40];
    snprintf(text, sizeof text,
             HEAD ".visible .entry f()\n{\n.reg .b32 %%r<5>;\n.reg .f32 %%f<2>;\n.reg .pred "
                  "%%p<3>;\nmov.u32 %%r1, 0;\nLOOP:\n%s\n@%%p1 bra LOOP;\nEND:\nret;\n}\n",
             loops[_i].body);
    snprintf(value, sizeof value, "depth 1 trips %s", loops[_i].trips);
    mgl_ptx_condensed c = condense(text);
    ck_assert_msg(count_fact(&c, "loops", value) == 1, "%s: not %s", loops[_i].body, value);
    mgl_ptx_condensed_clear(&c);
}
END_TEST

/* The inner variable is initialized before the outer loop, so its second run has another trip
 * count. */
START_TEST(a_counter_that_is_not_set_again_has_no_trips)
{
    mgl_ptx_condensed c = condense(
        HEAD ".visible .entry f()\n{\n.reg .b32 %r<4>;\n.reg .pred %p<3>;\nmov.u32 %r1, 0;\n"
             "mov.u32 %r2, 0;\nOUT:\nIN:\nadd.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, 8;\n"
             "@%p1 bra IN;\nadd.s32 %r2, %r2, 1;\nsetp.lt.s32 %p2, %r2, 4;\n@%p2 bra OUT;\n"
             "ret;\n}\n");
    ck_assert_int_eq(count_fact(&c, "loops", "depth 1 trips 4"), 0); /* one header, one loop */
    ck_assert_int_eq(count_fact(&c, "loops", "depth 2 trips 8"), 0);
    mgl_ptx_condensed_clear(&c);
    c = condense(HEAD
                 ".visible .entry f()\n{\n.reg .b32 %r<4>;\n.reg .pred %p<3>;\nmov.u32 %r1, 0;\n"
                 "mov.u32 %r2, 0;\nOUT:\nmov.u32 %r3, 0;\nbar.sync 0;\nIN:\n"
                 "add.s32 %r1, %r1, 1;\nadd.s32 %r3, %r3, 1;\nsetp.lt.s32 %p1, %r3, 8;\n"
                 "@%p1 bra IN;\nadd.s32 %r2, %r2, 1;\nsetp.lt.s32 %p2, %r2, 4;\n@%p2 bra OUT;\n"
                 "ret;\n}\n");
    ck_assert_int_eq(count_fact(&c, "loops", "depth 1 trips 4"), 1);
    ck_assert_int_eq(count_fact(&c, "loops", "depth 2 trips 8"), 1);
    mgl_ptx_condensed_clear(&c);
}
END_TEST

/* ---- invalid PTX ----------------------------------------------------------------------------- */

static const struct bad {
    const char *text, *where;
} bad[] = {
    {"", "bad.ptx"},
    {"hello", "bad.ptx:1:1"},
    {HEAD ".entry f() { add.s32 %r1 }", "bad.ptx:4:"},
    {HEAD ".entry f() { @%p1 ret; }", "bad.ptx:4:"},
    {HEAD ".entry f()\n{ .reg .b32 %r<99999999>; ret; }", "bad.ptx:5:"},
    {HEAD ".entry f() { /* never ends", "bad.ptx:4:"},
    {HEAD ".entry f() { ret;", "bad.ptx:4:"},
    {HEAD ".global .b32 x[-1];", "bad.ptx:4:"},
    {HEAD ".global .b32 x = {1, 2;", "bad.ptx:4:"},
};

START_TEST(what_is_no_ptx_is_rejected_with_its_place)
{
    mgl_ptx ptx;
    mgl_error err = {0};
    const char *text = bad[_i].text;
    ck_assert_int_eq(mgl_ptx_parse(text, strlen(text), "bad.ptx", &ptx, &err), MGL_BAD_INPUT);
    ck_assert_msg(!strncmp(err.where, bad[_i].where, strlen(bad[_i].where)), "%s", err.where);
}
END_TEST

START_TEST(deep_blocks_are_rejected)
{
    mgl_text text = {0};
    mgl_ptx ptx;
    mgl_error err;
    mgl_text_put(&text, HEAD ".entry f() ");
    for (int i = 0; i < 100000; i++)
        mgl_text_put(&text, "{");
    ck_assert_int_eq(mgl_ptx_parse(text.bytes, text.length, "deep.ptx", &ptx, &err), MGL_BAD_INPUT);
    mgl_text_clear(&text);
}
END_TEST

START_TEST(a_text_that_is_cut_anywhere_never_crashes)
{
    char *text = read_ptx("bulk.ptx");
    mgl_ptx_condensed c;
    mgl_error err;
    for (size_t length = strlen(text); length--;)
        if (!mgl_ptx_condense_text(text, length, "cut.ptx", &c, &err))
            mgl_ptx_condensed_clear(&c);
    mgl_free(text);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    char *text = read_ptx("ring.ptx");
    mgl_ptx_condensed c;
    mgl_error err;
    mgl_status status = MGL_NO_MEMORY;
    for (uint64_t n = 1; status; n++) {
        mgl_alloc_fail_at(n, false);
        status = mgl_ptx_condense_text(text, strlen(text), "ring.ptx", &c, &err);
        ck_assert(!status || status == MGL_NO_MEMORY);
    }
    mgl_alloc_fail_at(0, false);
    mgl_ptx_condensed_clear(&c);
    mgl_free(text);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

int main(void)
{
    Suite *suite = suite_create("ptx");
    TCase *tests = tcase_create("ptx");
    tcase_add_loop_test(tests, facts_are_as_labelled, 0, COUNT(facts));
    tcase_add_loop_test(tests, large_ones_become_five_times_smaller, 0, COUNT(large));
    tcase_add_loop_test(tests, the_form_is_deterministic, 0, COUNT(large));
    tcase_add_loop_test(tests, names_do_not_matter, 0, COUNT(large));
    tcase_add_test(tests, comments_and_line_tables_do_not_matter);
    tcase_add_loop_test(tests, a_planted_idea_is_found, 0, COUNT(plants));
    tcase_add_test(tests, equal_modules_do_not_differ);
    tcase_add_loop_test(tests, trips_are_counted, 0, COUNT(loops));
    tcase_add_test(tests, a_counter_that_is_not_set_again_has_no_trips);
    tcase_add_loop_test(tests, what_is_no_ptx_is_rejected_with_its_place, 0, COUNT(bad));
    tcase_add_test(tests, deep_blocks_are_rejected);
    tcase_add_test(tests, a_text_that_is_cut_anywhere_never_crashes);
    tcase_add_test(tests, each_allocation_may_fail);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * Tests of PTX ideas: learning an idea from a pair of texts and its measurement, the strict file
 * reader, and prompts that enclose data in borders.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/kernels/ptx/ideas.h"
#include "base/memory.h"
#include "tests/autotune/kernels/ptx_support.h"

static mgl_ptx_condensed before, after;
static mgl_ptx_ideas ideas;

static void setup(void)
{
    char *text = read_ptx("ring.ptx");
    before = condense(text);
    text = replace(text, "st.global.v4", "st.global.cs.v4");
    after = condense(text);
    mgl_free(text);
    ideas = (mgl_ptx_ideas){0};
}

static void teardown(void)
{
    mgl_ptx_condensed_clear(&before);
    mgl_ptx_condensed_clear(&after);
    mgl_ptx_ideas_clear(&ideas);
}

static void learn(double gain)
{
    size_t learned;
    mgl_error err;
    mgl_ptx_pair pair = {&before, &after, "merge", "H100", gain};
    ck_assert(!mgl_ptx_learn(&pair, &ideas, &learned, &err));
    ck_assert_uint_eq(learned, 1);
}

START_TEST(a_planted_idea_is_learned)
{
    learn(0.06);
    ck_assert_uint_eq(ideas.count, 1);
    ck_assert_str_eq(ideas.rows[0].feature, "global.store.hint");
    ck_assert_str_eq(ideas.rows[0].after, "cs: 1");
    ck_assert_str_eq(ideas.rows[0].requires, "sm_80");
}
END_TEST

START_TEST(uses_and_successes_are_counted)
{
    learn(0.06);
    learn(0.01);
    ck_assert_uint_eq(ideas.count, 1);
    ck_assert_int_eq(ideas.rows[0].uses, 2);
    ck_assert_int_eq(ideas.rows[0].successes, 1);
}
END_TEST

START_TEST(the_latest_evidence_is_kept)
{
    for (int i = 0; i < MGL_PTX_MAX_EVIDENCE + 3; i++)
        learn(i * 0x1p-12);
    ck_assert_uint_eq(ideas.rows[0].evidence_count, MGL_PTX_MAX_EVIDENCE);
    ck_assert_double_eq(ideas.rows[0].evidence[0].gain, 3 * 0x1p-12);
}
END_TEST

START_TEST(a_gain_that_is_no_number_is_rejected)
{
    size_t learned;
    mgl_error err;
    mgl_ptx_pair pair = {&before, &after, "merge", "H100", strtod("nan", NULL)};
    ck_assert_int_eq(mgl_ptx_learn(&pair, &ideas, &learned, &err), MGL_BAD_INPUT);
    ck_assert_uint_eq(ideas.count, 0);
}
END_TEST

/* Op and device are parts of a line of prompts. */
START_TEST(names_of_a_measurement_are_lines)
{
    static const char *const names[] = {"", "a\nb", "a\tb", "\x7F"};
    size_t learned;
    mgl_error err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const mgl_ptx_pair pairs[] = {{&before, &after, names[i], "H100", 0.1},
                                      {&before, &after, "merge", names[i], 0.1}};
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(mgl_ptx_learn(&pairs[k], &ideas, &learned, &err), MGL_BAD_INPUT);
    }
    ck_assert_uint_eq(ideas.count, 0);
}
END_TEST

START_TEST(a_store_reads_back_as_written)
{
    mgl_json_out first = {0}, second = {0};
    mgl_ptx_ideas again;
    mgl_error err;
    learn(0.06);
    mgl_ptx_ideas_write(&ideas, &first);
    ck_assert(
        !mgl_ptx_ideas_parse(first.text.bytes, first.text.length, "ideas.json", &again, &err));
    mgl_ptx_ideas_write(&again, &second);
    ck_assert_str_eq(first.text.bytes, second.text.bytes);
    mgl_ptx_ideas_clear(&again);
    mgl_text_clear(&first.text);
    mgl_text_clear(&second.text);
}
END_TEST

#define START "{\"schema\":\"megalith.ptx_ideas/1\",\"ideas\":[{\"feature\":\"x\",\"before\":\"\","
static const char *const bad[] = {
    "[]",
    "{\"schema\":\"other/1\",\"ideas\":[]}",
    "{\"schema\":\"megalith.ptx_ideas/1\"}",
    "{\"schema\":\"megalith.ptx_ideas/1\",\"ideas\":[{}]}",
    START "\"after\":\"\",\"requires\":\"sm_80\",\"uses\":1,\"successes\":2,\"evidence\":[]}]}",
    START "\"after\":\"\",\"requires\":\"sm_80\",\"uses\":-1,\"successes\":0,\"evidence\":[]}]}",
    START "\"after\":\"\",\"requires\":\"sm_80\",\"uses\":1,\"successes\":0,\"evidence\":[3]}]}",
    START "\"after\":\"\",\"requires\":\"sm_80\",\"uses\":1,\"successes\":0,\"evidence\":[{\"op\":"
          "\"a\\nb\",\"device\":\"x\",\"gain\":0}]}]}",
    START
    "\"after\":\"a\\nb\",\"requires\":\"sm_80\",\"uses\":1,\"successes\":0,\"evidence\":[]}]}",
};

START_TEST(a_bad_store_is_rejected)
{
    mgl_error err;
    ck_assert_int_eq(mgl_ptx_ideas_parse(bad[_i], strlen(bad[_i]), "bad.json", &ideas, &err),
                     MGL_BAD_INPUT);
}
END_TEST

static char *combine(const char *target)
{
    mgl_text out = {0};
    mgl_error err = {0};
    mgl_ptx_source sources[] = {{"first", &before}, {"second", &after}};
    ck_assert_msg(!mgl_ptx_combine(sources, 2, &ideas, target, 0xABCDEF, &out, &err), "%s",
                  err.message);
    return out.bytes;
}

START_TEST(a_prompt_has_forms_and_ideas_between_borders)
{
    learn(0.06);
    char *prompt = combine("sm_90a");
    ck_assert_ptr_nonnull(strstr(prompt, "<<<0000000000abcdef condensed form\nof second"));
    ck_assert_ptr_nonnull(strstr(prompt, "global.store.hint: from [none: 1] to [cs: 1]"));
    ck_assert_ptr_nonnull(strstr(prompt, "setmaxnreg"));
    mgl_free(prompt);
}
END_TEST

START_TEST(what_the_target_has_not_is_left_out)
{
    learn(0.06);
    char *prompt = combine("sm_75");
    ck_assert_ptr_null(strstr(prompt, "global.store.hint: from"));
    ck_assert_ptr_null(strstr(prompt, "setmaxnreg"));
    mgl_free(prompt);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

int main(void)
{
    Suite *suite = suite_create("ptx_ideas");
    TCase *tests = tcase_create("ptx_ideas");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_planted_idea_is_learned);
    tcase_add_test(tests, uses_and_successes_are_counted);
    tcase_add_test(tests, the_latest_evidence_is_kept);
    tcase_add_test(tests, a_gain_that_is_no_number_is_rejected);
    tcase_add_test(tests, names_of_a_measurement_are_lines);
    tcase_add_test(tests, a_store_reads_back_as_written);
    tcase_add_loop_test(tests, a_bad_store_is_rejected, 0, COUNT(bad));
    tcase_add_test(tests, a_prompt_has_forms_and_ideas_between_borders);
    tcase_add_test(tests, what_the_target_has_not_is_left_out);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * Tests of hostile proposals at the gates. Each gets an outcome with a reason, and no program
 * passes unless the validator accepts it with its meaning checked. With MGL_SHOW set, prints the
 * table of outcomes.
 */
#include "tests/autotune/search/hostile.h"
#include "tests/autotune/search/subject.h"

#include "base/memory.h"
#include "validator/validator.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROPOSALS = 500 };

static mgl_subject subject;
static mgl_text lowered;
static int counts[HOSTILE_COUNT][MGL_OUTCOME_COUNT];

static void setup(void)
{
    mgl_proposal start = {0};
    mgl_candidate made;
    subject_make("ctx=0;batch=1", &subject);
    start.config = subject.start;
    ck_assert_int_eq(mgl_gate_make(&subject, &start, &made, NULL), MGL_OK);
    mgl_schedule_print(made.programs[0], &lowered);
    mgl_candidate_clear(&made);
    mgl_proposal_clear(&start);
}

static void teardown(void)
{
    mgl_text_clear(&lowered);
    subject_free(&subject);
}

/* Checks that there is a reason that is safe to print on a terminal. */
static void check_reason(const char *name, uint64_t number, const char *text)
{
    ck_assert_msg(text[0] != 0, "%s %d: no reason", name, (int)number);
    for (const char *i = text; *i; i++)
        ck_assert_msg((unsigned char)*i >= 32 || *i == '\n', "%s %d: byte %d in the reason", name,
                      (int)number, *i);
}

/* Validates again each program that passed the gates. */
static void check_sound(const char *name, uint64_t number, const mgl_candidate *c)
{
    ck_assert_int_gt(c->program_count, 0);
    for (int p = 0; p < c->program_count; p++) {
        mgl_verdict verdict = {0};
        ck_assert_int_eq(mgl_validator_check(c->programs[p], subject.graph, &verdict, NULL),
                         MGL_OK);
        ck_assert_msg(verdict.accepted && verdict.meaning_checked, "%s %d came through", name,
                      (int)number);
        mgl_verdict_clear(&verdict);
    }
}

static void check_candidate(const char *name, uint64_t number, const mgl_candidate *c)
{
    int ends = mgl_outcome_exit(c->verdict.outcome);
    ck_assert_msg(ends == 11 || ends == 13, "%s %d: exit %d", name, (int)number, ends);
    if (c->verdict.outcome == MGL_OUTCOME_UNMEASURED) {
        check_sound(name, number, c);
        return;
    }
    check_reason(name, number, c->verdict.diagnostic);
    if (c->verdict.outcome == MGL_OUTCOME_REJECTED)
        ck_assert_ptr_nonnull(mgl_validator_explain(c->verdict.code));
}

static mgl_outcome judge(hostile_kind kind, uint64_t number)
{
    mgl_text text = {0};
    mgl_proposal proposal;
    mgl_candidate c = {0};
    mgl_error err = {0};
    hostile_make(kind, number, lowered.bytes, &text);
    mgl_status status =
        mgl_proposal_parse(text.bytes, text.length, "proposal", &subject.start, &proposal, &err);
    mgl_text_clear(&text);
    if (status) {
        ck_assert_msg(status == MGL_BAD_INPUT, "%s %d: status %d", hostile_name(kind), (int)number,
                      (int)status);
        check_reason(hostile_name(kind), number, err.message);
        return MGL_OUTCOME_PARSE;
    }
    if (proposal.hypothesis)
        check_reason(hostile_name(kind), number, proposal.hypothesis);
    ck_assert_int_eq(mgl_gate_pass(&subject, &proposal, NULL, &c, &err), MGL_OK);
    check_candidate(hostile_name(kind), number, &c);
    mgl_outcome outcome = c.verdict.outcome;
    mgl_candidate_clear(&c);
    mgl_proposal_clear(&proposal);
    return outcome;
}

static void show(void)
{
    for (int k = 0; k < HOSTILE_COUNT && getenv("MGL_SHOW"); k++) {
        printf("%-24s", hostile_name((hostile_kind)k));
        for (int o = 0; o < MGL_OUTCOME_COUNT; o++)
            if (counts[k][o])
                printf(" %s %d", mgl_outcome_name((mgl_outcome)o), counts[k][o]);
        printf("\n");
    }
}

START_TEST(each_has_its_outcome_and_none_that_is_unsound_comes_through)
{
    memset(counts, 0, sizeof counts);
    for (int n = 0; n < PROPOSALS; n++) {
        hostile_kind kind = (hostile_kind)(n % HOSTILE_COUNT);
        counts[kind][judge(kind, (uint64_t)n / HOSTILE_COUNT)]++;
    }
    show();
}
END_TEST

/* Kinds that never give a valid proposal. */
static const hostile_kind never[] = {
    HOSTILE_wrong_schema, HOSTILE_strange_keys, HOSTILE_wrong_types,
    HOSTILE_deep_nesting, HOSTILE_other_model,  HOSTILE_validator_case,
    HOSTILE_lost_clear,   HOSTILE_lost_task,    HOSTILE_large};

START_TEST(none_of_these_comes_through)
{
    for (uint64_t number = 100; number < 110; number++) {
        mgl_outcome outcome = judge(never[_i], number);
        ck_assert_msg(outcome != MGL_OUTCOME_UNMEASURED, "%s %d came through",
                      hostile_name(never[_i]), (int)number);
    }
}
END_TEST

START_TEST(a_byte_0_ends_no_text)
{
    mgl_text text = {0};
    mgl_proposal proposal;
    mgl_error err = {0};
    mgl_text_append(&text, lowered.bytes, lowered.length);
    mgl_text_append(&text, "\0rest", 5);
    ck_assert_int_eq(
        mgl_proposal_parse(text.bytes, text.length, "proposal", &subject.start, &proposal, &err),
        MGL_BAD_INPUT);
    mgl_text_clear(&text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hostile");
    TCase *tests = tcase_create("hostile");
    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, each_has_its_outcome_and_none_that_is_unsound_comes_through);
    tcase_add_loop_test(tests, none_of_these_comes_through, 0, (int)(sizeof never / sizeof *never));
    tcase_add_test(tests, a_byte_0_ends_no_text);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

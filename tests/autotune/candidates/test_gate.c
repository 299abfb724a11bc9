/*
 * Tests of the gates before any device: the outcome of each kind of proposal, and how proposals are
 * parsed.
 */
#include "tests/autotune/search/subject.h"

#include "base/memory.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mgl_subject subject;

static void setup(void)
{
    subject_make("ctx=0;batch=1,2", &subject);
}

static void teardown(void)
{
    subject_free(&subject);
}

static mgl_proposal propose(const char *json)
{
    mgl_proposal proposal;
    mgl_error err = {0};
    mgl_status status =
        mgl_proposal_parse(json, strlen(json), "test", &subject.start, &proposal, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", json, err.message);
    return proposal;
}

static mgl_candidate pass(const char *json)
{
    mgl_proposal proposal = propose(json);
    mgl_candidate candidate;
    ck_assert_int_eq(mgl_gate_pass(&subject, &proposal, NULL, &candidate, NULL), MGL_OK);
    mgl_proposal_clear(&proposal);
    return candidate;
}

#define PROPOSAL(rest) "{\"schema\":\"megalith.proposal/1\"" rest "}"

START_TEST(the_default_passes)
{
    mgl_candidate c = pass(PROPOSAL(""));
    ck_assert_int_eq(c.verdict.outcome, MGL_OUTCOME_UNMEASURED);
    ck_assert_int_eq(c.program_count, 2);
    ck_assert_int_eq(c.program_of[0], 0);
    ck_assert_int_eq(c.program_of[1], 1);
    ck_assert_uint_eq(strlen(c.digest), 64);
    ck_assert_double_gt(c.predicted, 0);
    ck_assert_double_eq_tol(c.predicted, sqrt(c.predicted_us[0] * c.predicted_us[1]), 1e-6);
    mgl_candidate_clear(&c);
}
END_TEST

static const struct {
    const char *json;
    mgl_outcome outcome;
    const char *says;
} refused[] = {
    {PROPOSAL(",\"config\":{\"exchange_precision\":3}"), MGL_OUTCOME_INVALID_CONFIG, "space"},
    {PROPOSAL(",\"config\":{\"rows\":1}"), MGL_OUTCOME_INVALID_CONFIG, "rows"},
    {PROPOSAL(",\"config\":{\"queues\":{\"qkv\":{\"first\":15,\"count\":9}}}"),
     MGL_OUTCOME_INVALID_CONFIG, ""},
    {PROPOSAL(",\"moves\":[\"rows layer=999 step=o from=1 to=2 count=1\"]"),
     MGL_OUTCOME_INVALID_CONFIG, "999"},
    {PROPOSAL(",\"schedule\":\"megalith 1\""), MGL_OUTCOME_INVALID_CONFIG, "workloads"},
};

/* One program for each number of sequences. If the first list has too few rows, the second list
 * runs them and determines the price. */
START_TEST(more_sequences_than_rows_take_a_second_list)
{
    mgl_error err = {0};
    subject.start.rows = 4;
    subject.start.second_rows = 64;
    ck_assert_int_eq(mgl_workloads_parse("batch=4,5,64", &subject.workloads, &err), MGL_OK);
    mgl_candidate c = pass(PROPOSAL(""));
    ck_assert_msg(c.verdict.outcome == MGL_OUTCOME_UNMEASURED, "%s", c.verdict.diagnostic);
    ck_assert_int_eq(c.program_count, 3);
    for (int w = 0; w < 3; w++)
        ck_assert_double_gt(c.predicted_us[w], 0);
    ck_assert_double_gt(c.predicted_us[1], c.predicted_us[0]);
    mgl_candidate_clear(&c);
}
END_TEST

/* The error of a config with these rows for 32 sequences. */
static const struct {
    int rows, second_rows;
    const char *says;
} few[] = {{16, 0, "rows: 16 rows are too few"},
           {8, 0, "rows: 8 rows are too few"},
           {8, 16, "second_rows: 16 rows are"}};
enum { FEW = sizeof few / sizeof *few };

START_TEST(many_sequences_need_not_be_told_of_a_second_list)
{
    mgl_error err = {0};
    ck_assert_int_eq(mgl_workloads_parse("batch=32", &subject.workloads, &err), MGL_OK);
    mgl_candidate c = pass(PROPOSAL(""));
    ck_assert_int_ne(c.verdict.outcome, MGL_OUTCOME_INVALID_CONFIG);
    mgl_candidate_clear(&c);
}
END_TEST

START_TEST(sequences_without_rows_are_rejected)
{
    mgl_error err = {0};
    subject.start.rows = few[_i].rows;
    subject.start.second_rows = few[_i].second_rows;
    ck_assert_int_eq(mgl_workloads_parse("batch=32", &subject.workloads, &err), MGL_OK);
    mgl_candidate c = pass(PROPOSAL(""));
    ck_assert_int_eq(c.verdict.outcome, MGL_OUTCOME_INVALID_CONFIG);
    ck_assert_msg(strstr(c.verdict.diagnostic, few[_i].says) != NULL, "%s", c.verdict.diagnostic);
    mgl_candidate_clear(&c);
}
END_TEST

START_TEST(rejects_with_an_outcome)
{
    mgl_candidate c = pass(refused[_i].json);
    ck_assert_msg(c.verdict.outcome == refused[_i].outcome, "%s: %s: %s", refused[_i].json,
                  mgl_outcome_name(c.verdict.outcome), c.verdict.diagnostic);
    ck_assert_msg(strstr(c.verdict.diagnostic, refused[_i].says) != NULL, "%s",
                  c.verdict.diagnostic);
    mgl_candidate_clear(&c);
}
END_TEST

/* The schedule text of the default for one sequence, with one edit. */
static mgl_candidate pass_text(const char *from, const char *to)
{
    mgl_proposal start = propose(PROPOSAL("")), proposal = {.config = subject.start};
    mgl_candidate made, c;
    mgl_text text = {0};
    subject_free(&subject);
    subject_make("ctx=0;batch=1", &subject);
    ck_assert_int_eq(mgl_gate_make(&subject, &start, &made, NULL), MGL_OK);
    mgl_schedule_print(made.programs[0], &text);
    char *at = from ? strstr(text.bytes, from) : NULL;
    ck_assert_msg(!from || at, "the text has no %s", from);
    mgl_text edited = {0};
    mgl_text_append(&edited, text.bytes, at ? (size_t)(at - text.bytes) : text.length);
    if (at) {
        mgl_text_put(&edited, to);
        mgl_text_put(&edited, at + strlen(from));
    }
    proposal.schedule = mgl_strdup(edited.bytes);
    ck_assert_int_eq(mgl_gate_pass(&subject, &proposal, NULL, &c, NULL), MGL_OK);
    if (!from)
        ck_assert_str_ne(c.digest, "");
    mgl_candidate_clear(&made);
    mgl_proposal_clear(&proposal);
    mgl_proposal_clear(&start);
    mgl_text_clear(&text);
    mgl_text_clear(&edited);
    return c;
}

START_TEST(a_text_is_the_same_program)
{
    mgl_candidate c = pass_text(NULL, NULL);
    ck_assert_msg(c.verdict.outcome == MGL_OUTCOME_UNMEASURED, "%s", c.verdict.diagnostic);
    mgl_proposal start = propose(PROPOSAL(""));
    mgl_candidate made;
    ck_assert_int_eq(mgl_gate_pass(&subject, &start, NULL, &made, NULL), MGL_OK);
    ck_assert_str_eq(c.digest, made.digest);
    mgl_candidate_clear(&made);
    mgl_proposal_clear(&start);
    mgl_candidate_clear(&c);
}
END_TEST

/* A shortened diagnostic keeps its beginning (what is wrong) and its end (what to do). */
START_TEST(a_long_diagnostic_keeps_what_to_do)
{
    char found[MGL_MAX_DIAGNOSTIC + 1];
    mgl_error why = {0};
    char groups[400];
    memset(groups, '0', sizeof groups);
    mgl_fail(&why, MGL_BAD_INPUT, "layer 3, step o",
             "the row groups %.*s are not all there; deal them anew with "
             "the move `queues`",
             (int)sizeof groups, groups);
    mgl_diagnostic_of(&why, found);
    ck_assert_uint_le(strlen(found), MGL_MAX_DIAGNOSTIC);
    ck_assert_int_eq(strncmp(found, "layer 3, step o: the row groups 000", 35), 0);
    ck_assert_ptr_nonnull(strstr(found, " ... deal them anew with the move `queues`"));
}
END_TEST

/* A one-line diagnostic quotes the source line, without the line of carets. */
START_TEST(a_quoted_place_is_one_line)
{
    char found[MGL_MAX_DIAGNOSTIC + 1];
    mgl_error why = {0};
    mgl_fail(&why, MGL_BAD_INPUT, "moves:1:6", "expected `layer`");
    mgl_error_add_lines(&why, "\nrows lair=1\n     ^~~~");
    mgl_diagnostic_of(&why, found);
    ck_assert_str_eq(found, "moves:1:6: expected `layer` | rows lair=1");
}
END_TEST

/* The compiler's log follows the message, so only the log is cut. */
START_TEST(a_log_is_cut_at_its_end)
{
    char found[MGL_MAX_DIAGNOSTIC + 1];
    mgl_error why = {0};
    mgl_fail(&why, MGL_DEVICE, "nvrtc", "the kernel does not compile");
    for (int i = 0; i < 20; i++)
        mgl_error_add_lines(&why, "kernel.cu(12): error: identifier is undefined");
    mgl_diagnostic_of(&why, found);
    ck_assert_ptr_null(strstr(found, " ... "));
    ck_assert_uint_eq(strlen(found), MGL_MAX_DIAGNOSTIC);
}
END_TEST

static const struct {
    const char *from, *to;
    mgl_outcome outcome;
} edits[] = {{"clear ", "# clear ", MGL_OUTCOME_REJECTED},
             {"megalith 1", "megalith 9", MGL_OUTCOME_PARSE},
             {"head_dim 64", "head_dim 62", MGL_OUTCOME_INVALID_CONFIG},
             {"capacity 256", "capacity 255", MGL_OUTCOME_INVALID_CONFIG},
             {"sm_90a", "sm_80", MGL_OUTCOME_INVALID_CONFIG}};

START_TEST(an_edited_text_is_judged)
{
    mgl_candidate c = pass_text(edits[_i].from, edits[_i].to);
    ck_assert_msg(c.verdict.outcome == edits[_i].outcome, "%s -> %s: %s: %s", edits[_i].from,
                  edits[_i].to, mgl_outcome_name(c.verdict.outcome), c.verdict.diagnostic);
    ck_assert_uint_gt(strlen(c.verdict.diagnostic), 0);
    mgl_candidate_clear(&c);
}
END_TEST

static const char *const bad[] = {
    "",
    "{}",
    "[]",
    "{\"schema\":\"megalith.proposal/2\"}",
    PROPOSAL(",\"knobs\":{}"),
    PROPOSAL(",\"config\":{\"page_bytes\":NaN}"),
    PROPOSAL(",\"config\":{\"page_bytes\":1e99}"),
    PROPOSAL(",\"config\":{\"page_bytes\":8192,\"page_bytes\":8192}"),
    PROPOSAL(",\"config\":{\"path\":\"/etc/passwd\"}"),
    PROPOSAL(",\"config\":[]"),
    PROPOSAL(",\"moves\":[1]"),
    PROPOSAL(",\"moves\":[\"a\\nb\"]"),
    PROPOSAL(",\"moves\":[\"rm -rf /\"]"),
    PROPOSAL(",\"moves\":\"rows\""),
    PROPOSAL(",\"parent\":-1"),
    PROPOSAL(",\"schedule\":\"x\",\"config\":{}"),
    PROPOSAL("") " x",
};

START_TEST(strange_proposals_are_rejected)
{
    mgl_proposal proposal;
    mgl_error err = {0};
    mgl_status status =
        mgl_proposal_parse(bad[_i], strlen(bad[_i]), "test", &subject.start, &proposal, &err);
    if (!bad[_i][0] || bad[_i][0] != '{') { /* read as a schedule, which does not parse */
        ck_assert_int_eq(status, MGL_OK);
        mgl_proposal_clear(&proposal);
        return;
    }
    ck_assert_msg(status == MGL_BAD_INPUT, "%s was taken", bad[_i]);
    ck_assert_uint_gt(strlen(err.message), 0);
}
END_TEST

START_TEST(a_hypothesis_is_shown_and_cut)
{
    mgl_proposal p = propose(PROPOSAL(",\"hypothesis\":\"a\\u001b[31mb\\nc\\u202e\""));
    ck_assert_ptr_null(strpbrk(p.hypothesis, "\x1b\n"));
    mgl_proposal_clear(&p);
    char text[1000];
    memset(text, 'x', sizeof text);
    snprintf(text, 60, "{\"schema\":\"megalith.proposal/1\",\"hypothesis\":\"");
    text[strlen(text)] = 'x';
    strcpy(text + sizeof text - 3, "\"}");
    ck_assert_int_eq(mgl_proposal_parse(text, strlen(text), "test", &subject.start, &p, NULL),
                     MGL_BAD_INPUT);
}
END_TEST

START_TEST(a_proposal_comes_back_as_it_was_printed)
{
    mgl_text text = {0}, again = {0};
    mgl_proposal p = propose(PROPOSAL(",\"hypothesis\":\"why\",\"parent\":3,\"config\":{"
                                      "\"page_bytes\":8192},\"moves\":[\"sample to=1\"]"));
    mgl_proposal_print(&p, &text);
    mgl_proposal q = propose(text.bytes);
    mgl_proposal_print(&q, &again);
    ck_assert_str_eq(text.bytes, again.bytes);
    ck_assert_int_eq(q.config.page_bytes, 8192);
    ck_assert_int_eq(q.moves.count, 1);
    ck_assert_int_eq(q.parent, 3);
    mgl_proposal_clear(&p);
    mgl_proposal_clear(&q);
    mgl_text_clear(&text);
    mgl_text_clear(&again);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gate");
    TCase *tests = tcase_create("gate");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_default_passes);
    tcase_add_test(tests, more_sequences_than_rows_take_a_second_list);
    tcase_add_test(tests, many_sequences_need_not_be_told_of_a_second_list);
    tcase_add_loop_test(tests, sequences_without_rows_are_rejected, 0, FEW);
    tcase_add_loop_test(tests, rejects_with_an_outcome, 0, (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tests, a_text_is_the_same_program);
    tcase_add_test(tests, a_long_diagnostic_keeps_what_to_do);
    tcase_add_test(tests, a_log_is_cut_at_its_end);
    tcase_add_test(tests, a_quoted_place_is_one_line);
    tcase_add_loop_test(tests, an_edited_text_is_judged, 0, (int)(sizeof edits / sizeof *edits));
    tcase_add_loop_test(tests, strange_proposals_are_rejected, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(tests, a_hypothesis_is_shown_and_cut);
    tcase_add_test(tests, a_proposal_comes_back_as_it_was_printed);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

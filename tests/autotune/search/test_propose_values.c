/*
 * Tests of the values of trials for proposers: ranking, the chain of incumbents, quarantine,
 * corrected predictions, duplicates, controls, and credit for rejected changes.
 */
#include "tests/autotune/search/propose_fixture.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The smallest values come first, and of equal values the one that was added first. */
START_TEST(a_ranking_keeps_the_best)
{
    static const double values[] = {5, 3, 4, 3, 9, 1, 3};
    static const int best[] = {5, 1, 3};
    mgl_known known[sizeof values / sizeof *values];
    mgl_ranking ranking = {.room = 3};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        mgl_ranking_add(&ranking, &known[i], values[i]);
    ck_assert_int_eq(ranking.count, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_eq(ranking.known[i], &known[best[i]]);
        ck_assert_double_eq(ranking.values[i], values[best[i]]);
    }
}
END_TEST

/* The value of a single trial: the incumbent's time divided by the gain, or the prediction if
 * nothing was measured. A rejected or wrong trial has none. */
START_TEST(a_trial_scores_what_is_known_of_it)
{
    static const struct {
        mgl_outcome outcome;
        double incumbent, value;
    } rows[] = {{MGL_OUTCOME_NO_GAIN, 100, 60.653066},
                {MGL_OUTCOME_UNMEASURED, 0, 7},
                {MGL_OUTCOME_REJECTED, 0, 0},
                {MGL_OUTCOME_MISMATCH, 100, 0},
                {MGL_OUTCOME_INVALID_CONFIG, 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mgl_proposer *proposer = opened(RANDOM, &subject);
        mgl_trial trial = measured(rows[i].incumbent, 0.5);
        trial.number = 1;
        trial.verdict.outcome = rows[i].outcome;
        tell(proposer, &trial);
        const mgl_search *search = search_of(proposer);
        ck_assert_double_eq_tol(mgl_search_value(search, mgl_search_find(search, 1)), rows[i].value,
                                1e-5);
        proposer->close(proposer);
    }
}
END_TEST

static void tell_measured(mgl_proposer *proposer, int64_t number, mgl_outcome outcome,
                          double incumbent, double gain)
{
    mgl_trial trial = measured(incumbent, gain);
    trial.number = number;
    trial.verdict.outcome = outcome;
    trial.proposal.config = subject.start;
    trial.proposal.config.splits = (int)number;
    tell(proposer, &trial);
}

static double value_of(mgl_proposer *proposer, int64_t number)
{
    const mgl_known *known = mgl_search_find(search_of(proposer), number);
    ck_assert_ptr_nonnull(known);
    return mgl_search_value(search_of(proposer), known);
}

START_TEST(trials_stand_on_the_chain_of_incumbents)
{
    mgl_proposer *proposer = opened(EVOLVE, &subject);
    tell_measured(proposer, 1, MGL_OUTCOME_OK, 100, 0.1);
    /* the device has become slower: the same incumbent takes 120 us rather than 90.5 */
    tell_measured(proposer, 2, MGL_OUTCOME_NO_GAIN, 120, 0.05);
    ck_assert_double_eq_tol(value_of(proposer, 1), 100 * exp(-0.1), 1e-9);
    ck_assert_double_eq_tol(value_of(proposer, 2), 100 * exp(-0.15), 1e-9);
    ck_assert_double_eq_tol(mgl_search_start_value(search_of(proposer)), 100, 1e-9);
    proposer->close(proposer);
}
END_TEST

/* Trial 2 was the incumbent for trial 3, then it was quarantined. Trial 1 is the incumbent for
 * trial 4. */
START_TEST(a_quarantined_trial_was_the_incumbent_of_its_time_alone)
{
    mgl_proposer *proposer = opened(EVOLVE, &subject);
    static const struct {
        mgl_outcome outcome;
        double gain;
        int64_t quarantined, parent;
    } told[] = {{MGL_OUTCOME_OK, 0.1, 0, 0},
                {MGL_OUTCOME_MODEL_MISMATCH, 0.2, 13, 1},
                {MGL_OUTCOME_NO_GAIN, 0.05, 0, 2},
                {MGL_OUTCOME_NO_GAIN, 0.01, 0, 1}};
    for (int i = 0; i < 4; i++) {
        mgl_trial trial = measured(100, told[i].gain);
        trial.number = i + 1;
        trial.id = 11 + i;
        trial.verdict.outcome = told[i].outcome;
        trial.quarantined = told[i].quarantined;
        trial.proposal.parent = told[i].parent;
        trial.proposal.config = subject.start;
        trial.proposal.config.splits = i + 1;
        tell(proposer, &trial);
    }
    ck_assert_double_eq_tol(value_of(proposer, 4), 100 * exp(-0.11), 1e-9);
    ck_assert_int_eq(mgl_search_incumbent(search_of(proposer))->number, 1);
    ck_assert_double_eq_tol(mgl_search_find(search_of(proposer), 3)->measured, 100 * exp(-0.35),
                            1e-9);
    ck_assert_double_eq(value_of(proposer, 2), 0); /* neither is a parent of new proposals */
    ck_assert_double_eq(value_of(proposer, 3), 0);
    proposer->close(proposer);
}
END_TEST

START_TEST(predictions_are_corrected_by_what_was_measured)
{
    mgl_proposer *proposer = opened(EVOLVE, &subject);
    tell_measured(proposer, 1, MGL_OUTCOME_NO_GAIN, 14, 0); /* predicted: 7 */
    mgl_trial trial = {.number = 2, .verdict.outcome = MGL_OUTCOME_UNMEASURED, .predicted_us = 5};
    trial.proposal.config = subject.start;
    tell(proposer, &trial);
    ck_assert_double_eq_tol(value_of(proposer, 2), 10, 1e-9);
    proposer->close(proposer);
}
END_TEST

START_TEST(a_duplicate_has_the_score_of_its_program)
{
    mgl_proposer *proposer = opened(EVOLVE, &subject);
    tell_measured(proposer, 1, MGL_OUTCOME_NO_GAIN, 14, 0);
    mgl_trial trial = {.number = 2, .verdict.outcome = MGL_OUTCOME_DUPLICATE, .duplicate_of = 1};
    tell(proposer, &trial);
    ck_assert_double_eq_tol(value_of(proposer, 2), 14, 1e-9);
    proposer->close(proposer);
}
END_TEST

START_TEST(a_control_is_no_trial)
{
    mgl_proposer *proposer = opened(EVOLVE, &subject);
    mgl_trial trial = measured(14, 0);
    trial.number = 1;
    trial.control = true;
    tell(proposer, &trial);
    ck_assert_uint_eq(search_of(proposer)->known_count, 0);
    proposer->close(proposer);
}
END_TEST

START_TEST(rejections_are_credited_to_what_was_changed)
{
    mgl_proposer *proposer = opened(EVOLVE, &subject);
    mgl_move move = {.kind = MGL_MOVE_SHIFT, .layer = 1, .step = MGL_STEP_O, .count = 1};
    mgl_trial trial = {.number = 1,
                       .verdict.outcome = MGL_OUTCOME_REJECTED,
                       .verdict.diagnostic = "MG203: a race"};
    trial.proposal.config = subject.start;
    trial.proposal.config.page_bytes = 4096;
    ck_assert_int_eq(mgl_moves_add(&trial.proposal.moves, &move, NULL), MGL_OK);
    tell(proposer, &trial);
    const mgl_search *search = search_of(proposer);
    ck_assert_int_eq(search->knobs[mgl_knob_find("page_bytes")].refused, 1);
    ck_assert_int_eq(search->knobs[mgl_knob_find("warps")].tries, 0);
    ck_assert_int_eq(search->moves[MGL_MOVE_SHIFT].refused, 1);
    ck_assert_int_eq(search->moves[MGL_MOVE_SHIFT].code, 203);
    mgl_trial_clear(&trial);
    proposer->close(proposer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("propose_values");
    TCase *cases = tcase_create("values");
    tcase_add_test(cases, a_ranking_keeps_the_best);
    tcase_add_test(cases, a_trial_scores_what_is_known_of_it);
    tcase_add_test(cases, trials_stand_on_the_chain_of_incumbents);
    tcase_add_test(cases, a_quarantined_trial_was_the_incumbent_of_its_time_alone);
    tcase_add_test(cases, predictions_are_corrected_by_what_was_measured);
    tcase_add_test(cases, a_duplicate_has_the_score_of_its_program);
    tcase_add_test(cases, a_control_is_no_trial);
    tcase_add_test(cases, rejections_are_credited_to_what_was_changed);
    tcase_add_checked_fixture(cases, setup, teardown);
    suite_add_tcase(suite, cases);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

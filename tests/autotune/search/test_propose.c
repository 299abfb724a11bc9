/*
 * Tests of the properties of proposers. The same trials and seed give the same proposal, also after
 * reopening. No proposal is one that lowering rejects. From a bad starting point, a search comes
 * close to the shipped default on the cost model of a small shape.
 *
 *     test_propose             each property
 *     test_propose searches    properties of whole searches
 */
#include "tests/autotune/search/propose_fixture.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Sets the outcome and the prediction of the trial by the gates. */
static void judge(mgl_trial *trial)
{
    mgl_error err = {0};
    mgl_candidate candidate;
    mgl_status status = mgl_gate_pass(&subject, &trial->proposal, NULL, &candidate, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    trial->verdict.outcome = candidate.verdict.outcome;
    trial->predicted_us = candidate.predicted;
    trial->workload_count = subject.workloads.count;
    memcpy(trial->verdict.diagnostic, candidate.verdict.diagnostic,
           sizeof trial->verdict.diagnostic);
    mgl_candidate_clear(&candidate);
}

/* Asks for a proposal, runs the gates, and reports the trial, `count` times. */
static void run(mgl_proposer *proposer, uint64_t seed, mgl_trial *trials, int count)
{
    for (int i = 0; i < count; i++) {
        trials[i].number = i + 1;
        ck_assert_int_eq(ask(proposer, seed + (uint64_t)i, &trials[i].proposal), MGL_PROPOSED);
        judge(&trials[i]);
        tell(proposer, &trials[i]);
    }
}

static void clear(mgl_trial *trials, int count)
{
    for (int i = 0; i < count; i++)
        mgl_trial_clear(&trials[i]);
}

static bool same(const mgl_proposal *a, const mgl_proposal *b)
{
    mgl_text x = {0}, y = {0};
    mgl_proposal_print(a, &x);
    mgl_proposal_print(b, &y);
    bool equal = !strcmp(x.bytes, y.bytes) && !strcmp(a->proposer, b->proposer);
    mgl_text_clear(&x);
    mgl_text_clear(&y);
    return equal;
}

/* ---- every proposer -------------------------------------------------------------------------- */

enum { SHORT = 30 };

START_TEST(the_same_trials_give_the_same_proposal)
{
    mgl_trial trials[SHORT] = {0};
    mgl_proposer *first = opened(_i, &subject), *second = opened(_i, &subject);
    mgl_proposal a = {0}, b = {0}, c = {0};
    run(first, 11, trials, SHORT);
    for (int i = 0; i < SHORT; i++)
        tell(second, &trials[i]);
    ck_assert_int_eq(ask(first, 99, &a), MGL_PROPOSED);
    ck_assert_int_eq(ask(first, 99, &b), MGL_PROPOSED);
    ck_assert_int_eq(ask(second, 99, &c), MGL_PROPOSED);
    ck_assert(same(&a, &b));
    ck_assert(same(&a, &c));
    mgl_proposal_clear(&a);
    mgl_proposal_clear(&b);
    mgl_proposal_clear(&c);
    clear(trials, SHORT);
    first->close(first);
    second->close(second);
}
END_TEST

START_TEST(no_config_is_proposed_that_lowering_rejects)
{
    mgl_trial trials[SHORT] = {0};
    mgl_subject still = subject;
    still.space.moves = 0;
    mgl_proposer *proposer = opened(_i, &still);
    run(proposer, 5, trials, SHORT);
    for (int i = 0; i < SHORT; i++)
        ck_assert_msg(trials[i].verdict.outcome == MGL_OUTCOME_UNMEASURED, "%s: %s",
                      trials[i].proposal.hypothesis, trials[i].verdict.diagnostic);
    clear(trials, SHORT);
    proposer->close(proposer);
}
END_TEST

START_TEST(nothing_is_proposed_twice)
{
    mgl_trial trials[SHORT] = {0};
    mgl_proposer *proposer = opened(_i, &subject);
    run(proposer, 7, trials, SHORT);
    for (int i = 0; i < SHORT; i++)
        for (int j = 0; j < i; j++) {
            const mgl_proposal *a = &trials[i].proposal, *b = &trials[j].proposal;
            ck_assert(memcmp(&a->config, &b->config, sizeof a->config) != 0 || a->moves.count > 0 ||
                      b->moves.count > 0);
        }
    clear(trials, SHORT);
    proposer->close(proposer);
}
END_TEST

START_TEST(values_are_those_of_the_space)
{
    mgl_trial trials[SHORT] = {0};
    mgl_proposer *proposer = opened(_i, &subject);
    run(proposer, 3, trials, SHORT);
    for (int i = 0; i < SHORT; i++)
        for (int k = 0; k < subject.space.count; k++) {
            const mgl_knob *knob = &subject.space.knobs[k];
            int number = mgl_knob_find(knob->name);
            int value = mgl_knob_get(&trials[i].proposal.config, number);
            bool found = value == mgl_knob_get(&subject.start, number);
            for (int v = 0; v < knob->count; v++)
                found |= knob->values[v] == value;
            ck_assert_msg(found, "%s %d", knob->name, value);
        }
    clear(trials, SHORT);
    proposer->close(proposer);
}
END_TEST

/* Every trial is rejected, and the proposer still continues. */
START_TEST(rejections_alone_stop_nothing)
{
    mgl_trial trials[SHORT] = {0};
    mgl_proposer *proposer = opened(_i, &subject);
    for (int i = 0; i < SHORT; i++) {
        trials[i].number = i + 1;
        ck_assert_int_eq(ask(proposer, (uint64_t)i, &trials[i].proposal), MGL_PROPOSED);
        trials[i].verdict.outcome = MGL_OUTCOME_REJECTED;
        tell(proposer, &trials[i]);
    }
    clear(trials, SHORT);
    proposer->close(proposer);
}
END_TEST

/* Two knobs of two values and no moves: the proposer reports the end of the space. */
START_TEST(a_small_space_ends)
{
    mgl_subject small = subject;
    mgl_trial trials[64] = {0};
    static const char text[] =
        "{\"schema\":\"megalith.space/1\",\"knobs\":{\"warps\":[4,8],\"page_bytes\":[4096,8192]},"
        "\"moves\":[]}";
    ck_assert_int_eq(mgl_search_space_parse(text, strlen(text), "space", &subject.target, false,
                                            &small.space, NULL),
                     MGL_OK);
    mgl_proposer *proposer = opened(_i, &small);
    int count = 0;
    while (count < 64) {
        mgl_trial *trial = &trials[count];
        if (ask(proposer, (uint64_t)count, &trial->proposal) == MGL_NO_MORE)
            break;
        trial->number = ++count;
        judge(trial);
        tell(proposer, trial);
    }
    ck_assert_int_ge(count, 4);
    ck_assert_int_le(count, 6); /* 4 programs, and those with the start's page_bytes */
    clear(trials, count);
    proposer->close(proposer);
}
END_TEST

START_TEST(running_out_of_memory_is_told)
{
    for (uint64_t n = 1; n < 40; n++) {
        mgl_proposer_options options = {.subject = &subject};
        mgl_proposer *proposer = NULL;
        mgl_proposal proposal = {0};
        mgl_proposer_answer answer;
        mgl_error err = {0};
        mgl_trial trial = {
            .number = 1, .verdict.outcome = MGL_OUTCOME_UNMEASURED, .predicted_us = 9};
        trial.proposal.config = subject.start;
        mgl_alloc_fail_at(n, true);
        mgl_status status = openers[_i](&options, &proposer, &err);
        if (!status)
            status = proposer->learn(proposer, &trial, &err);
        if (!status)
            status = proposer->propose(proposer, 1, &proposal, &answer, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert(status == MGL_OK || status == MGL_NO_MEMORY);
        mgl_proposal_clear(&proposal);
        if (proposer)
            proposer->close(proposer);
    }
}
END_TEST

/* ---- near a good start ----------------------------------------------------------------------- */

static const int searchers[] = {RANDOM, EVOLVE, SURROGATE};

static mgl_subject good_start(void)
{
    mgl_subject good = subject;
    mgl_schedule_config_default(&good.start);
    return good;
}

enum { FEW = 12 };

START_TEST(what_leaves_no_hope_is_not_proposed)
{
    mgl_trial trials[FEW] = {0};
    mgl_subject good = good_start();
    mgl_proposer *proposer = opened(searchers[_i], &good);
    run(proposer, 21, trials, FEW);
    for (int i = 0; i < FEW; i++) {
        const mgl_known *parent = mgl_search_find(search_of(proposer), trials[i].proposal.parent);
        ck_assert_msg(mgl_search_passes(search_of(proposer), parent, trials[i].predicted_us), "%s",
                      trials[i].proposal.hypothesis);
    }
    clear(trials, FEW);
    proposer->close(proposer);
}
END_TEST

START_TEST(a_search_begins_near_a_good_start)
{
    mgl_trial trials[FEW] = {0};
    mgl_subject good = good_start();
    mgl_proposer *proposer = opened(searchers[_i], &good);
    for (int i = 0; i < 4; i++) {
        trials[i].number = i + 1;
        ck_assert_int_eq(ask(proposer, (uint64_t)i, &trials[i].proposal), MGL_PROPOSED);
        int changed = 0;
        for (int k = 0; k < mgl_knob_count(); k++)
            changed += mgl_knob_get(&trials[i].proposal.config, k) != mgl_knob_get(&good.start, k);
        ck_assert_int_le(changed, 2); /* o and down go together */
        judge(&trials[i]);
        trials[i].predicted_us = search_of(proposer)->start_predicted;
        tell(proposer, &trials[i]);
    }
    clear(trials, FEW);
    proposer->close(proposer);
}
END_TEST

/* All neighbors of the start were tried without gain; a space of 10^20 programs must not end
 * there. */
START_TEST(what_helps_nowhere_stops_nothing)
{
    enum { TRIALS = 120 };
    mgl_subject good = good_start();
    good.space.moves = 0;
    mgl_proposer *proposer = opened(searchers[_i], &good);
    for (int i = 0; i < TRIALS; i++) {
        mgl_trial trial = {.number = i + 1};
        ck_assert_msg(ask(proposer, (uint64_t)i, &trial.proposal) == MGL_PROPOSED, "trial %d", i);
        judge(&trial);
        if (trial.verdict.outcome == MGL_OUTCOME_UNMEASURED) {
            trial.verdict.outcome = MGL_OUTCOME_NO_GAIN;
            trial.gain = -0.001;
            trial.workloads[0].incumbent_us = trial.workloads[1].incumbent_us = 100;
        }
        tell(proposer, &trial);
        mgl_trial_clear(&trial);
    }
    proposer->close(proposer);
}
END_TEST

START_TEST(from_a_cold_start_a_search_goes_far)
{
    mgl_proposer *proposer = opened(EVOLVE, &subject);
    mgl_trial trial = {.number = 1, .verdict.outcome = MGL_OUTCOME_UNMEASURED};
    trial.predicted_us = search_of(proposer)->start_predicted / 2;
    trial.proposal.config = subject.start;
    ck_assert(!mgl_search_is_far(search_of(proposer)));
    tell(proposer, &trial);
    ck_assert(mgl_search_is_far(search_of(proposer)));
    proposer->close(proposer);
}
END_TEST

/* Reports a measured trial that changed one knob of the start. */
static void tell_change(mgl_proposer *proposer, int64_t number, const char *knob, int value,
                        double gain)
{
    mgl_trial trial = measured(100, gain);
    trial.number = number;
    trial.verdict.outcome = MGL_OUTCOME_NO_GAIN;
    trial.gain_lo = gain - 0.001;
    trial.gain_hi = gain + 0.001;
    trial.predicted_us = search_of(proposer)->start_predicted;
    mgl_schedule_config_default(&trial.proposal.config);
    mgl_knob_set(&trial.proposal.config, mgl_knob_find(knob), value);
    tell(proposer, &trial);
}

START_TEST(small_gains_are_joined)
{
    mgl_subject good = good_start();
    mgl_proposer *proposer = opened(searchers[_i], &good);
    int joined = 0;
    good.has_costs = false; /* whatever the cost model thinks of them */
    tell_change(proposer, 1, "page_bytes", 8192, 0.008);
    tell_change(proposer, 2, "warps", 12, 0.007);
    tell_change(proposer, 3, "flight_bytes", 32768, -0.02);
    tell_change(proposer, 4, "prefetch_bytes", 65536, -0.02);
    tell_change(proposer, 5, "rows", 1, -0.02);
    for (uint64_t seed = 0; seed < 40; seed++) {
        mgl_proposal p = {0};
        ck_assert_int_eq(ask(proposer, seed, &p), MGL_PROPOSED);
        joined += p.config.page_bytes == 8192 && p.config.warps == 12;
        mgl_proposal_clear(&p);
    }
    ck_assert_int_ge(joined, 2);
    proposer->close(proposer);
}
END_TEST

START_TEST(a_value_is_as_sure_as_its_interval)
{
    mgl_proposer *proposer = opened(EVOLVE, &subject);
    tell_change(proposer, 1, "warps", 12, 0.004);
    ck_assert_double_eq_tol(mgl_search_find(search_of(proposer), 1)->deviation, 0.002 / 3.92, 1e-9);
    proposer->close(proposer);
}
END_TEST

/* ---- single proposers ------------------------------------------------------------------------ */

static int changed_knobs(const mgl_schedule_config *config)
{
    int count = 0;
    for (int k = 0; k < mgl_knob_count(); k++)
        count += mgl_knob_get(config, k) != mgl_knob_get(&subject.start, k);
    return count;
}

START_TEST(a_grid_goes_from_single_knobs_to_pairs)
{
    mgl_proposer *grid = opened(GRID, &subject);
    int most = 1, singles = 0;
    for (int i = 0; i < 200; i++) {
        mgl_trial trial = {
            .number = i + 1, .verdict.outcome = MGL_OUTCOME_UNMEASURED, .predicted_us = 1};
        ck_assert_int_eq(ask(grid, 0, &trial.proposal), MGL_PROPOSED);
        int changed = changed_knobs(&trial.proposal.config);
        ck_assert_int_ge(changed, most);
        ck_assert_int_le(changed, 2);
        most = changed;
        singles += changed == 1;
        tell(grid, &trial);
        mgl_trial_clear(&trial);
    }
    ck_assert_int_eq(most, 2);
    ck_assert_int_gt(singles, 50);
    grid->close(grid);
}
END_TEST

START_TEST(random_proposes_moves_too)
{
    mgl_trial trials[SHORT] = {0};
    mgl_proposer *proposer = opened(RANDOM, &subject);
    int with = 0;
    run(proposer, 1, trials, SHORT);
    for (int i = 0; i < SHORT; i++) {
        with += trials[i].proposal.moves.count > 0;
        ck_assert_int_le(trials[i].proposal.moves.count, 4);
    }
    ck_assert_int_gt(with, 0);
    ck_assert_int_lt(with, SHORT);
    clear(trials, SHORT);
    proposer->close(proposer);
}
END_TEST

/* With moves only, lineages grow up to their limit. */
START_TEST(lineages_grow_by_moves)
{
    enum { TRIALS = 80 };
    mgl_trial trials[TRIALS] = {0};
    mgl_subject moves = subject;
    mgl_schedule_config_default(&moves.start);
    moves.space.count = 0;
    mgl_proposer *proposer = opened(EVOLVE, &moves);
    int longest = 0;
    run(proposer, 2, trials, TRIALS);
    for (int i = 0; i < TRIALS; i++) {
        int count = trials[i].proposal.moves.count;
        longest = count > longest ? count : longest;
    }
    ck_assert_int_gt(longest, 3);
    ck_assert_int_le(longest, MGL_LINEAGE_MOVES);
    clear(trials, TRIALS);
    proposer->close(proposer);
}
END_TEST

/* Without any gain, evolution jumps away from the plateau and never ends. */
START_TEST(a_plateau_hops)
{
    enum { TRIALS = 300 };
    mgl_proposer *proposer = opened(EVOLVE, &subject);
    int far = 0;
    for (int i = 0; i < TRIALS; i++) {
        mgl_trial trial = {.number = i + 1,
                           .verdict.outcome = MGL_OUTCOME_UNMEASURED,
                           .predicted_us = 100 + i % 7};
        ck_assert_int_eq(ask(proposer, (uint64_t)i, &trial.proposal), MGL_PROPOSED);
        const mgl_known *parent = mgl_search_find(search_of(proposer), trial.proposal.parent);
        int changed = 0;
        for (int k = 0; parent && k < mgl_knob_count(); k++)
            changed += mgl_knob_get(&parent->config, k) != mgl_knob_get(&trial.proposal.config, k);
        far += i > 60 && changed >= 4;
        tell(proposer, &trial);
        mgl_trial_clear(&trial);
    }
    ck_assert_int_gt(far, 3);
    proposer->close(proposer);
}
END_TEST

/* ---- searches -------------------------------------------------------------------------------- */

/* Number of trials until a proposer without costs comes within a factor of the default; `most` + 1:
 * more. */
static int search(int which, uint64_t seed, double within, mgl_trial *trials, int most,
                  const mgl_trial *prior, int prior_count)
{
    mgl_subject blind = subject;
    mgl_trial shipped = {0};
    int needed = most + 1;
    blind.has_costs = false;
    blind.space.moves = 0;
    mgl_schedule_config_default(&shipped.proposal.config);
    judge(&shipped);
    mgl_proposer *proposer = opened(which, &blind);
    if (prior_count)
        ck_assert_int_eq(mgl_surrogate_add_prior(proposer, prior, prior_count, NULL), MGL_OK);
    for (int i = 0; i < most && needed > most; i++) {
        trials[i].number = i + 1;
        ck_assert_int_eq(ask(proposer, seed * 1000 + (uint64_t)i, &trials[i].proposal),
                         MGL_PROPOSED);
        judge(&trials[i]);
        tell(proposer, &trials[i]);
        double value = trials[i].predicted_us; /* 0: rejected */
        if (value > 0 && value <= shipped.predicted_us / within)
            needed = i + 1;
    }
    proposer->close(proposer);
    return needed;
}

enum { LONG = 200 };

START_TEST(a_search_finds_the_default_s_speed)
{
    static const int proposers[] = {EVOLVE, SURROGATE};
    int found = 0;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        mgl_trial trials[LONG] = {0};
        found += search(proposers[_i], seed, 0.98, trials, LONG, NULL, 0) <= LONG;
        clear(trials, LONG);
    }
    ck_assert_int_ge(found, 2);
}
END_TEST

START_TEST(an_earlier_campaign_saves_trials)
{
    mgl_trial cold[LONG] = {0}, warm[LONG] = {0};
    int alone = search(SURROGATE, 1, 0.98, cold, LONG, NULL, 0);
    int count = alone < LONG ? alone : LONG;
    int helped = search(SURROGATE, 2, 0.98, warm, LONG, cold, count);
    ck_assert_int_le(2 * helped, alone);
    clear(cold, LONG);
    clear(warm, LONG);
}
END_TEST

START_TEST(a_prior_is_for_a_surrogate_that_has_not_begun)
{
    mgl_error err = {0};
    mgl_proposer *evolve = opened(EVOLVE, &subject), *surrogate = opened(SURROGATE, &subject);
    mgl_trial trial = {.number = 1, .verdict.outcome = MGL_OUTCOME_UNMEASURED, .predicted_us = 3};
    trial.proposal.config = subject.start;
    ck_assert_int_eq(mgl_surrogate_add_prior(evolve, &trial, 1, &err), MGL_USAGE);
    tell(surrogate, &trial);
    ck_assert_int_eq(mgl_surrogate_add_prior(surrogate, &trial, 1, &err), MGL_USAGE);
    evolve->close(evolve);
    surrogate->close(surrogate);
}
END_TEST

static void add_every(TCase *cases)
{
    tcase_add_loop_test(cases, the_same_trials_give_the_same_proposal, 0, PROPOSERS);
    tcase_add_loop_test(cases, no_config_is_proposed_that_lowering_rejects, 0, PROPOSERS);
    tcase_add_loop_test(cases, nothing_is_proposed_twice, 0, PROPOSERS);
    tcase_add_loop_test(cases, values_are_those_of_the_space, 0, PROPOSERS);
    tcase_add_loop_test(cases, rejections_alone_stop_nothing, 0, PROPOSERS);
    tcase_add_loop_test(cases, a_small_space_ends, 0, PROPOSERS);
    tcase_add_loop_test(cases, running_out_of_memory_is_told, 0, PROPOSERS);
    tcase_add_test(cases, a_grid_goes_from_single_knobs_to_pairs);
    tcase_add_test(cases, random_proposes_moves_too);
    tcase_add_test(cases, lineages_grow_by_moves);
    tcase_add_loop_test(cases, what_leaves_no_hope_is_not_proposed, 0, 3);
    tcase_add_loop_test(cases, a_search_begins_near_a_good_start, 1, 3);
    tcase_add_test(cases, from_a_cold_start_a_search_goes_far);
    tcase_add_loop_test(cases, small_gains_are_joined, 1, 3);
    tcase_add_test(cases, a_value_is_as_sure_as_its_interval);
}

static void add_searches(TCase *searches)
{
    tcase_add_test(searches, a_plateau_hops);
    tcase_add_loop_test(searches, what_helps_nowhere_stops_nothing, 0, 3);
    tcase_add_loop_test(searches, a_search_finds_the_default_s_speed, 0, 2);
    tcase_add_test(searches, an_earlier_campaign_saves_trials);
    tcase_add_test(searches, a_prior_is_for_a_surrogate_that_has_not_begun);
}

int main(int argc, char **argv)
{
    const bool long_ones = argc > 1 && !strcmp(argv[1], "searches");
    Suite *suite = suite_create("propose");
    TCase *chosen = tcase_create(long_ones ? "searches" : "every");
    if (long_ones)
        add_searches(chosen);
    else
        add_every(chosen);
    tcase_add_checked_fixture(chosen, setup, teardown);
    tcase_set_timeout(chosen, 60);
    suite_add_tcase(suite, chosen);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

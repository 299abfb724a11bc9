/*
 * Statistical tests of the judge on simulated pairs with a known gain: its error rate without a
 * gain, the gains that it finds and drops, and what a whole campaign keeps. Counted shares are
 * compared with the 99 % bounds of the binomial distribution, in the normal approximation. All
 * seeds are fixed.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/candidates/judge.h"
#include "tests/autotune/search/simulate.h"
#include "tests/sanitized.h"

/* One standard deviation that puts p10 and p90 of a time at 0.3 % from its median. */
#define REALISTIC 0.0023
#define Z99       2.5758 /* of the normal distribution, both sides together 1 % */

enum { MAX_PAIRS = 512, DECISION = 64, CONTROL = 64 };

static mgl_interval interval_of(const mgl_pair *pairs, int count, double level)
{
    mgl_interval out;
    mgl_error err = {0};
    ck_assert_msg(!mgl_judge_workload(pairs, count, 0, MGL_PAIRS_DECISION, level, &out, &err), "%s",
                  err.message);
    return out;
}

/* Pairs with these log ratios. */
static mgl_interval interval_of_ratios(const double *x, int count, double level)
{
    mgl_pair pairs[MAX_PAIRS] = {{0}};
    for (int i = 0; i < count; i++)
        pairs[i] =
            (mgl_pair){.stage = MGL_PAIRS_DECISION, .incumbent_us = exp(x[i]), .candidate_us = 1};
    return interval_of(pairs, count, level);
}

/* ---- the interval, by hand ------------------------------------------------------------------- */

/* The values of Hollander and Wolfe's example 3.1, depression before and after: T+ = 5 of 45. */
static const double depression[] = {.952, -.147, 1.022, .430, .620, .590, .490, -.080, .010};

START_TEST(the_estimate_is_the_median_of_the_walsh_averages)
{
    ck_assert_double_eq_tol(interval_of_ratios(depression, 9, 0.05).gain, 0.46, 0.001);
}
END_TEST

START_TEST(the_p_value_is_that_of_the_exact_signed_rank_test)
{
    /* Ranks 2 and 3 are negative. Subsets with a sum of 5 or less: {}, 1, 2, 3, 4, 5, 12, 13, 14,
     * 23. */
    ck_assert_double_eq_tol(interval_of_ratios(depression, 9, 0.05).p_value, 10 / 512.0, 1e-12);
}
END_TEST

START_TEST(the_ends_are_walsh_averages)
{
    /* Of three values, the least is passed by chance in 1 of 8. */
    mgl_interval i = interval_of_ratios((double[]){0.1, 0.2, 0.4}, 3, 0.125);
    ck_assert_double_eq_tol(i.lo, 0.1, 1e-12);
    ck_assert_double_eq_tol(i.hi, 0.4, 1e-12);
}
END_TEST

START_TEST(too_few_pairs_bound_nothing)
{
    mgl_interval i = interval_of_ratios((double[]){0.1, 0.2, 0.4}, 3, 0.12);
    ck_assert_double_eq(i.lo, -MGL_UNBOUNDED);
    ck_assert_double_eq(i.hi, MGL_UNBOUNDED);
}
END_TEST

START_TEST(equal_times_are_no_gain)
{
    mgl_interval i = interval_of_ratios((double[64]){0}, 64, 0.05);
    ck_assert_double_eq(i.lo, 0);
    ck_assert_double_eq_tol(i.p_value, 1, 1e-12);
}
END_TEST

START_TEST(no_pairs_say_nothing)
{
    mgl_interval i = interval_of(NULL, 0, 0.05);
    ck_assert_int_eq(i.used, 0);
    ck_assert_double_eq(i.p_value, 1);
    ck_assert_double_eq(i.lo, -MGL_UNBOUNDED);
}
END_TEST

START_TEST(other_workloads_and_stages_and_dropped_pairs_are_left_out)
{
    const mgl_pair pairs[] = {
        {.stage = MGL_PAIRS_DECISION, .incumbent_us = 2, .candidate_us = 1},
        {.stage = MGL_PAIRS_SCREEN, .incumbent_us = 9, .candidate_us = 1},
        {.stage = MGL_PAIRS_DECISION, .workload = 1, .incumbent_us = 9, .candidate_us = 1},
        {.stage = MGL_PAIRS_DECISION, .dropped = true, .incumbent_us = 9, .candidate_us = 1}};
    mgl_interval i = interval_of(pairs, 4, 0.5);
    ck_assert_int_eq(i.used, 1);
    ck_assert_int_eq(i.dropped, 1);
    ck_assert_double_eq_tol(i.gain, log(2), 1e-12);
}
END_TEST

static const double no_times[] = {0, -1, NAN, INFINITY};

START_TEST(what_is_no_time_is_rejected)
{
    const mgl_pair pair = {
        .stage = MGL_PAIRS_DECISION, .incumbent_us = 1, .candidate_us = no_times[_i]};
    mgl_interval out;
    ck_assert_int_eq(mgl_judge_workload(&pair, 1, 0, MGL_PAIRS_DECISION, 0.05, &out, NULL),
                     MGL_BAD_INPUT);
}
END_TEST

START_TEST(the_objective_is_the_mean_over_the_workloads)
{
    const mgl_pair pairs[] = {
        {.stage = MGL_PAIRS_DECISION, .incumbent_us = 2, .candidate_us = 1},
        {.stage = MGL_PAIRS_DECISION, .workload = 1, .incumbent_us = 1, .candidate_us = 8}};
    mgl_interval out;
    ck_assert_int_eq(mgl_judge_objective(pairs, 2, 2, MGL_PAIRS_DECISION, 0.5, &out, NULL), MGL_OK);
    ck_assert_double_eq_tol(out.gain, -log(2), 1e-12);
}
END_TEST

/* ---- error rates ----------------------------------------------------------------------------- */

START_TEST(the_levels_of_all_decisions_stay_within_the_campaigns_error)
{
    double sum = 0;
    for (int n = 1; n <= 1000000; n++)
        sum += mgl_judge_level(n);
    ck_assert_double_le(sum, MGL_CAMPAIGN_ERROR);
    ck_assert_double_ge(sum, 0.999 * MGL_CAMPAIGN_ERROR);
}
END_TEST

enum { TRIALS = 10000, TRIAL_PAIRS = 24 };

/* Of TRIALS intervals of equal programs, the number that claim a gain. */
static int count_errors(noise kind, double level)
{
    int errors = 0;
    simulator s = {.seed = 1 + (uint64_t)kind, .kind = kind, .spread = REALISTIC};
    for (int t = 0; t < TRIALS; t++) {
        mgl_pair pairs[TRIAL_PAIRS];
        simulator_pairs(&s, 0, 0, MGL_PAIRS_DECISION, TRIAL_PAIRS, pairs);
        errors += interval_of(pairs, TRIAL_PAIRS, level).lo > 0;
    }
    return errors;
}

/* `reached`: the error rate of the exact test of 24 pairs at this level, that is, the next lower
 * probability that its discrete distribution has. */
static void check_error_rate(noise kind, double level, double reached)
{
    double expected = TRIALS * reached, bound = Z99 * sqrt(expected * (1 - reached));
    ck_assert_double_eq_tol(count_errors(kind, level), expected, bound);
}

START_TEST(one_in_twenty_is_wrong_at_the_level_0_05)
{
    check_error_rate((noise)_i, 0.05, 0.0475);
}
END_TEST

START_TEST(one_in_a_hundred_is_wrong_at_the_level_0_01)
{
    check_error_rate((noise)_i, 0.01, 0.00972);
}
END_TEST

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Kolmogorov-Smirnov test: the largest distance from the uniform distribution, times the square
 * root of the count, exceeds 1.63 with probability 1 %. */
START_TEST(p_values_of_equal_programs_are_uniform)
{
    enum { COUNT = 1000 };
    static double p[COUNT];
    double distance = 0;
    simulator s = {.seed = 11 + (uint64_t)_i, .kind = (noise)_i, .spread = REALISTIC};
    for (int t = 0; t < COUNT; t++) {
        mgl_pair pairs[DECISION];
        simulator_pairs(&s, 0, 0, MGL_PAIRS_DECISION, DECISION, pairs);
        p[t] = interval_of(pairs, DECISION, 0.05).p_value;
    }
    qsort(p, COUNT, sizeof *p, by_size);
    for (int t = 0; t < COUNT; t++)
        distance = fmax(distance, fmax(p[t] - t / (double)COUNT, (t + 1) / (double)COUNT - p[t]));
    ck_assert_double_lt(distance * sqrt(COUNT), 1.63);
}
END_TEST

START_TEST(the_truth_lies_within_the_interval)
{
    int outside = 0;
    simulator s = {.seed = 21, .kind = (noise)_i, .spread = REALISTIC};
    for (int t = 0; t < TRIALS; t++) {
        mgl_pair pairs[TRIAL_PAIRS];
        simulator_pairs(&s, 0.02, 0, MGL_PAIRS_DECISION, TRIAL_PAIRS, pairs);
        mgl_interval i = interval_of(pairs, TRIAL_PAIRS, 0.01);
        outside += i.lo > 0.02 || i.hi < 0.02;
    }
    ck_assert_double_le(outside, TRIALS * 0.02 + Z99 * sqrt(TRIALS * 0.02 * 0.98));
}
END_TEST

/* ---- stages and decisions -------------------------------------------------------------------- */

/* The pairs of one stage, with one gain per workload. */
static void add_stage(simulator *s, mgl_trial *trial, mgl_pair_stage stage, const double *gains,
                      int workloads)
{
    int count = mgl_judge_pairs(stage);
    for (int w = 0; w < workloads; w++) {
        simulator_pairs(s, gains[w], w, stage, count, trial->pairs + trial->pair_count);
        trial->pair_count += count;
    }
}

/* The decision of a trial with these gains. */
static mgl_outcome decide_gains(simulator *s, const double *gains, int workloads, bool simpler,
                                mgl_trial *trial)
{
    static mgl_pair pairs[MAX_PAIRS];
    mgl_error err = {0};
    *trial = (mgl_trial){.pairs = pairs};
    add_stage(s, trial, MGL_PAIRS_DECISION, gains, workloads);
    ck_assert_msg(!mgl_judge_decide(trial, workloads, 300, simpler, &err), "%s", err.message);
    return trial->verdict.outcome;
}

static mgl_outcome decide_gain(double gain, bool simpler, mgl_trial *trial)
{
    simulator s = {.seed = 31, .spread = REALISTIC};
    return decide_gains(&s, &gain, 1, simpler, trial);
}

START_TEST(two_percent_are_kept)
{
    mgl_trial trial;
    ck_assert_int_eq(decide_gain(0.02, false, &trial), MGL_OUTCOME_OK);
    ck_assert_double_eq_tol(trial.gain, 0.02, 0.002);
    ck_assert_double_gt(trial.gain_lo, 0.015);
    ck_assert_double_lt(trial.p_value, trial.level);
}
END_TEST

START_TEST(the_results_of_a_workload_are_written)
{
    mgl_trial trial;
    decide_gain(0.02, false, &trial);
    ck_assert_int_eq(trial.workload_count, 1);
    ck_assert_int_eq(trial.workloads[0].pairs, DECISION);
    ck_assert_double_eq_tol(trial.workloads[0].incumbent_us, 600, 2);
    ck_assert_double_eq_tol(trial.workloads[0].candidate_us, 588, 2);
    ck_assert_double_eq(trial.workloads[0].gain, trial.gain);
}
END_TEST

START_TEST(under_one_percent_is_no_gain)
{
    mgl_trial trial;
    ck_assert_int_eq(decide_gain(0.008, false, &trial), MGL_OUTCOME_NO_GAIN);
    ck_assert_ptr_nonnull(strstr(trial.verdict.diagnostic, "less than 1 %"));
    ck_assert_double_gt(trial.gain_lo, 0);
}
END_TEST

START_TEST(what_may_be_chance_is_no_gain)
{
    mgl_trial trial;
    simulator s = {.seed = 32, .spread = 0.05};
    ck_assert_int_eq(decide_gains(&s, (double[]){0.02}, 1, false, &trial), MGL_OUTCOME_NO_GAIN);
    ck_assert_ptr_nonnull(strstr(trial.verdict.diagnostic, "may be chance"));
}
END_TEST

START_TEST(a_workload_that_loses_more_than_two_percent_is_a_regression)
{
    mgl_trial trial;
    simulator s = {.seed = 33, .spread = REALISTIC};
    ck_assert_int_eq(decide_gains(&s, (double[]){0.1, -0.025}, 2, false, &trial),
                     MGL_OUTCOME_REGRESSION);
    ck_assert_ptr_nonnull(strstr(trial.verdict.diagnostic, "workload 2 of 2"));
}
END_TEST

START_TEST(a_workload_may_lose_one_percent)
{
    mgl_trial trial;
    simulator s = {.seed = 34, .spread = REALISTIC};
    ck_assert_int_eq(decide_gains(&s, (double[]){0.1, -0.01}, 2, false, &trial), MGL_OUTCOME_OK);
    ck_assert_double_eq_tol(trial.gain, 0.045, 0.002);
}
END_TEST

START_TEST(more_than_twice_as_fast_is_suspicious)
{
    mgl_trial trial;
    ck_assert_int_eq(decide_gain(log(2.1), false, &trial), MGL_OUTCOME_SUSPICIOUS);
}
END_TEST

START_TEST(equal_speed_is_kept_where_it_is_simpler)
{
    mgl_trial trial;
    ck_assert_int_eq(decide_gain(0, true, &trial), MGL_OUTCOME_OK);
    ck_assert_ptr_nonnull(strstr(trial.verdict.diagnostic, "simpler"));
}
END_TEST

START_TEST(half_a_percent_slower_is_not_equal)
{
    mgl_trial trial;
    ck_assert_int_eq(decide_gain(-0.005, true, &trial), MGL_OUTCOME_NO_GAIN);
}
END_TEST

START_TEST(a_little_slower_beyond_doubt_is_not_equal)
{
    mgl_trial trial;
    simulator s = {.seed = 37, .spread = 0.0005};
    ck_assert_int_eq(decide_gains(&s, (double[]){-0.002}, 1, true, &trial), MGL_OUTCOME_NO_GAIN);
}
END_TEST

/* Each simpler program is as fast as the one before within the noise, but the losses add up. The
 * judge limits their sum. */
START_TEST(simpler_ones_have_a_loss_to_share)
{
    mgl_trial trial;
    double lost = 0;
    int kept = 0;
    for (; kept < 20; kept++) {
        ck_assert_int_eq(decide_gain(-0.002, true, &trial), MGL_OUTCOME_OK);
        mgl_judge_limit_loss(&trial, lost);
        if (trial.verdict.outcome != MGL_OUTCOME_OK)
            break;
        lost = mgl_judge_add_loss(lost, &trial);
    }
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_NO_GAIN);
    ck_assert_ptr_nonnull(strstr(trial.verdict.diagnostic, "may lose"));
    ck_assert_int_ge(kept, 2);
    ck_assert_int_le(kept, 5);
    ck_assert_double_ge(lost, -MGL_SIMPLER_LOSS);
    ck_assert_int_eq(decide_gain(0.02, true, &trial), MGL_OUTCOME_OK);
    mgl_judge_limit_loss(&trial, lost);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_OK); /* a gain is kept after any loss */
    ck_assert_double_eq(mgl_judge_add_loss(lost, &trial), 0);
}
END_TEST

START_TEST(a_simpler_one_that_nobody_can_tell_is_not_equal)
{
    mgl_trial trial;
    simulator s = {.seed = 35, .spread = 0.02};
    ck_assert_int_eq(decide_gains(&s, (double[]){0}, 1, true, &trial), MGL_OUTCOME_NO_GAIN);
}
END_TEST

START_TEST(other_numbers_of_pairs_than_fixed_are_rejected)
{
    mgl_trial trial;
    mgl_error err = {0};
    decide_gain(0.02, false, &trial);
    trial.pair_count--;
    ck_assert_int_eq(mgl_judge_decide(&trial, 1, 1, false, &err), MGL_USAGE);
    ck_assert_ptr_nonnull(strstr(err.message, "63 pairs"));
}
END_TEST

START_TEST(a_stage_ends_what_is_no_faster)
{
    mgl_trial trial;
    decide_gain(0, false, &trial);
    ck_assert(!mgl_judge_survives(trial.pairs, 8, 1, MGL_PAIRS_DECISION, false));
}
END_TEST

START_TEST(a_stage_lets_equal_speed_pass_where_it_is_simpler)
{
    mgl_trial trial;
    decide_gain(0, true, &trial);
    ck_assert(mgl_judge_survives(trial.pairs, 8, 1, MGL_PAIRS_DECISION, true));
}
END_TEST

/* The screening result of a trial with these gains, for decision n. */
static bool is_clear(const double *gains, int workloads, int64_t decision, mgl_trial *trial)
{
    static mgl_pair pairs[MAX_PAIRS];
    simulator s = {.seed = 38, .spread = REALISTIC};
    *trial = (mgl_trial){.pairs = pairs};
    add_stage(&s, trial, MGL_PAIRS_SCREEN, gains, workloads);
    return mgl_judge_is_clear(trial->pairs, trial->pair_count, workloads, decision);
}

START_TEST(a_clear_gain_is_decided_on_half_of_the_pairs)
{
    mgl_trial trial;
    simulator s = {.seed = 39, .spread = REALISTIC};
    ck_assert(is_clear((double[]){0.2, 0.3}, 2, 100, &trial));
    add_stage(&s, &trial, MGL_PAIRS_CLEAR, (double[]){0.2, 0.3}, 2);
    ck_assert_int_eq(mgl_judge_decide(&trial, 2, 100, false, NULL), MGL_OK);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_OK);
    ck_assert_int_eq(trial.workloads[0].pairs, mgl_judge_pairs(MGL_PAIRS_CLEAR));
}
END_TEST

START_TEST(a_gain_of_one_workload_is_not_clear)
{
    mgl_trial trial;
    ck_assert(!is_clear((double[]){0.2, 0.05}, 2, 1, &trial));
}
END_TEST

/* Half of the pairs cannot reach the confidence that the thousandth decision requires. */
START_TEST(a_late_decision_is_not_clear)
{
    mgl_trial trial;
    ck_assert(!is_clear((double[]){0.2}, 1, 1000, &trial));
}
END_TEST

START_TEST(a_stage_ends_what_loses_on_a_workload)
{
    mgl_trial trial;
    simulator s = {.seed = 36, .spread = REALISTIC};
    decide_gains(&s, (double[]){0.1, -0.03}, 2, false, &trial);
    ck_assert(!mgl_judge_survives(trial.pairs, trial.pair_count, 2, MGL_PAIRS_DECISION, false));
}
END_TEST

/* ---- events ---------------------------------------------------------------------------------- */

static const struct {
    uint64_t reasons;
    unsigned incumbent_mhz, candidate_mhz;
    bool dropped;
} events[] = {
    {0, 1980, 1980, false},    {0, 1980, 1965, false}, /* 0.8 % */
    {0, 1980, 1950, true},     {0, 1950, 1980, true},
    {0, 0, 1980, false},       /* one of them unknown */
    {0x01, 1980, 1980, false}, /* idle */
    {0x02, 1980, 1980, false}, /* an application clock is set */
    {0x04, 1980, 1980, true},  /* software power cap */
    {0x08, 1980, 1980, true},  /* hardware slowdown */
    {0x20, 1980, 1980, true},  /* software thermal slowdown */
    {0x40, 1980, 1980, true},  /* hardware thermal slowdown */
    {0x80, 1980, 1980, true},  /* power brake */
    {0x104, 1980, 1980, true}, /* one of several */
};

START_TEST(pairs_with_an_event_are_dropped)
{
    mgl_pair pair = {.reasons = events[_i].reasons,
                     .sm_mhz = {events[_i].incumbent_mhz, events[_i].candidate_mhz}};
    mgl_judge_drop(&pair, 1);
    ck_assert_int_eq(pair.dropped, events[_i].dropped);
}
END_TEST

/* A clock reading belongs to the side whose launch preceded it. */
START_TEST(clocks_are_those_of_their_launch)
{
    mgl_paired_bench_clocks looks[3] = {
        {.sm_mhz = 1, .memory_mhz = 3, .temperature = 50, .reasons = 1},
        {.sm_mhz = 1900, .memory_mhz = 20, .temperature = 40, .reasons = 2},
        {.sm_mhz = 1800, .memory_mhz = 10, .temperature = 30, .reasons = 4}};
    mgl_pair pair = {.candidate_first = true};
    mgl_judge_note_clocks(looks, &pair);
    ck_assert_uint_eq(pair.sm_mhz[MGL_CANDIDATE], 1900);
    ck_assert_uint_eq(pair.sm_mhz[MGL_INCUMBENT], 1800);
    ck_assert_uint_eq(pair.memory_mhz, 10);
    ck_assert_uint_eq(pair.temperature, 50);
    ck_assert_uint_eq(pair.reasons, 7);
    ck_assert(!pair.dropped);
    looks[1].processes = 1;
    pair = (mgl_pair){0};
    mgl_judge_note_clocks(looks, &pair);
    ck_assert_uint_eq(pair.sm_mhz[MGL_INCUMBENT], 1900);
    ck_assert(pair.dropped);
}
END_TEST

START_TEST(what_the_runner_dropped_stays_dropped)
{
    mgl_pair pair = {.dropped = true};
    mgl_judge_drop(&pair, 1);
    ck_assert(pair.dropped);
}
END_TEST

/* In `share` of the pairs, a low clock slows the incumbent, which looks like a gain of 5 %. */
static mgl_outcome decide_with_low_clocks(double share, mgl_trial *trial)
{
    static mgl_pair pairs[DECISION];
    simulator s = {.seed = 41, .spread = REALISTIC};
    *trial = (mgl_trial){.pairs = pairs, .pair_count = DECISION};
    for (int i = 0; i < DECISION; i++) {
        bool slow = i < share * DECISION;
        pairs[i] = simulator_pair(&s, slow ? 0.05 : 0);
        pairs[i].stage = MGL_PAIRS_DECISION;
        pairs[i].sm_mhz[0] = slow ? 1880 : 1980;
        pairs[i].sm_mhz[1] = 1980;
    }
    mgl_judge_drop(pairs, DECISION);
    ck_assert_int_eq(mgl_judge_decide(trial, 1, 1, false, NULL), MGL_OK);
    return trial->verdict.outcome;
}

START_TEST(a_side_with_other_clocks_keeps_nothing)
{
    mgl_trial trial;
    ck_assert_int_eq(decide_with_low_clocks(1, &trial), MGL_OUTCOME_UNMEASURED);
    ck_assert_ptr_nonnull(strstr(trial.verdict.diagnostic, "64 of 64 pairs had an event"));
    ck_assert_int_eq(trial.workloads[0].dropped, DECISION);
}
END_TEST

START_TEST(a_few_pairs_with_other_clocks_do_not_count)
{
    mgl_trial trial;
    ck_assert_int_eq(decide_with_low_clocks(0.25, &trial), MGL_OUTCOME_NO_GAIN);
    ck_assert_double_eq_tol(trial.gain, 0, 0.002);
    ck_assert_int_eq(trial.workloads[0].dropped, 16);
}
END_TEST

START_TEST(more_than_a_quarter_with_an_event_ends_the_decision)
{
    mgl_trial trial;
    ck_assert_int_eq(decide_with_low_clocks(0.27, &trial), MGL_OUTCOME_UNMEASURED);
    ck_assert_ptr_nonnull(strstr(trial.verdict.diagnostic, "too few pairs are left"));
}
END_TEST

/* ---- controls -------------------------------------------------------------------------------- */

static bool is_bad_control(simulator *s, double gain)
{
    mgl_pair pairs[CONTROL];
    mgl_interval out;
    bool bad;
    simulator_pairs(s, gain, 0, MGL_PAIRS_CONTROL, CONTROL, pairs);
    ck_assert_int_eq(mgl_judge_control(pairs, CONTROL, 1, &bad, &out, NULL), MGL_OK);
    return bad;
}

START_TEST(one_control_in_a_hundred_is_bad)
{
    enum { CONTROLS = 300 };
    int bad = 0;
    double expected = CONTROLS * NOISE_COUNT * 0.01;
    for (int kind = 0; kind < NOISE_COUNT; kind++) {
        simulator s = {.seed = 51, .kind = (noise)kind, .spread = REALISTIC / 5};
        for (int i = 0; i < CONTROLS; i++)
            bad += is_bad_control(&s, 0);
    }
    ck_assert_double_le(bad, expected + Z99 * sqrt(expected * 0.99));
}
END_TEST

START_TEST(a_control_with_a_difference_is_bad)
{
    simulator s = {.seed = 52, .spread = REALISTIC};
    ck_assert(is_bad_control(&s, -0.004));
}
END_TEST

/* The number of pairs until a control with this noise is complete, as a campaign measures it. */
static int count_control(double spread)
{
    mgl_pair pairs[MAX_PAIRS];
    simulator s = {.seed = 54, .spread = spread};
    int count = 0;
    do {
        simulator_pairs(&s, 0, 0, MGL_PAIRS_CONTROL, CONTROL, pairs + count);
        count += CONTROL;
    } while (mgl_judge_wants_pairs(pairs, count, 1));
    return count;
}

START_TEST(a_noisy_control_has_more_pairs)
{
    ck_assert_int_eq(count_control(REALISTIC), CONTROL);
    ck_assert_int_eq(count_control(0.02), 4 * CONTROL);
    ck_assert_int_eq(count_control(0.2), MGL_CONTROL_PAIRS);
}
END_TEST

START_TEST(a_control_whose_estimate_is_far_off_is_bad)
{
    simulator s = {.seed = 53, .spread = 0.1};
    ck_assert(is_bad_control(&s, 0.01));
}
END_TEST

/* ---- campaigns ------------------------------------------------------------------------------- */

/* Runs one candidate through its stages; *decisions: decisions of the campaign so far. */
static bool keep_candidate(simulator *s, double gain, int64_t *decisions)
{
    static mgl_pair pairs[MAX_PAIRS];
    mgl_trial trial = {.pairs = pairs};
    bool clear = false;
    for (int stage = MGL_PAIRS_SCREEN; stage <= MGL_PAIRS_SURVIVORS && !clear; stage++) {
        add_stage(s, &trial, (mgl_pair_stage)stage, &gain, 1);
        if (!mgl_judge_survives(trial.pairs, trial.pair_count, 1, stage, false))
            return false;
        clear = mgl_judge_is_clear(trial.pairs, trial.pair_count, 1, *decisions + 1);
    }
    add_stage(s, &trial, clear ? MGL_PAIRS_CLEAR : MGL_PAIRS_DECISION, &gain, 1);
    ck_assert_int_eq(mgl_judge_decide(&trial, 1, ++*decisions, false, NULL), MGL_OK);
    return trial.verdict.outcome == MGL_OUTCOME_OK;
}

enum { CAMPAIGNS = 1000 };

/* The noise is three times the noise of a device. A build with sanitizers runs fewer campaigns,
 * because each campaign runs the same code. */
START_TEST(one_campaign_in_twenty_keeps_what_is_no_faster)
{
    enum { CANDIDATES = 300, COUNT = BY_SANITIZER(CAMPAIGNS, CAMPAIGNS / 5) };
    int wrong = 0;
    simulator s = {.seed = 61, .kind = NOISE_OUTLIERS, .spread = 3 * REALISTIC};
    for (int c = 0; c < COUNT; c++) {
        int64_t decisions = 0;
        bool kept = false;
        for (int i = 0; i < CANDIDATES; i++)
            kept |= keep_candidate(&s, 0, &decisions);
        wrong += kept;
    }
    ck_assert_int_le(wrong, (int)(MGL_CAMPAIGN_ERROR * COUNT));
}
END_TEST

/* With this much noise, most estimates of a gain of 0 exceed 1 %, so only the confidence interval
 * rejects them. The first eight decisions get eight ninths of the campaign's error probability. */
START_TEST(the_interval_alone_keeps_the_campaigns_error)
{
    enum { DECISIONS = 8 };
    int wrong = 0, lucky = 0;
    simulator s = {.seed = 62, .kind = NOISE_OUTLIERS, .spread = 0.3};
    for (int c = 0; c < CAMPAIGNS; c++) {
        bool kept = false;
        for (int n = 1; n <= DECISIONS; n++) {
            mgl_pair pairs[DECISION];
            mgl_trial trial = {.pairs = pairs};
            add_stage(&s, &trial, MGL_PAIRS_DECISION, (double[]){0}, 1);
            ck_assert_int_eq(mgl_judge_decide(&trial, 1, n, false, NULL), MGL_OK);
            kept |= trial.verdict.outcome == MGL_OUTCOME_OK;
            lucky += trial.gain >= MGL_KEEP_GAIN;
        }
        wrong += kept;
    }
    ck_assert_int_le(wrong, (int)(MGL_CAMPAIGN_ERROR * CAMPAIGNS));
    ck_assert_int_ge(wrong, CAMPAIGNS / 50);
    ck_assert_int_ge(lucky, CAMPAIGNS * DECISIONS / 3);
}
END_TEST

/* Ten campaigns of 60 candidates, one of which has the gain. Returns the number of kept
 * candidates. */
static int count_found(noise kind, double gain)
{
    enum { CANDIDATES = 60, PLANTED = 40 };
    int found = 0;
    simulator s = {.seed = 71 + (uint64_t)kind, .kind = kind, .spread = REALISTIC};
    for (int c = 0; c < 10; c++) {
        int64_t decisions = 0;
        for (int i = 0; i < CANDIDATES; i++)
            found += keep_candidate(&s, i == PLANTED ? gain : 0, &decisions);
    }
    return found;
}

START_TEST(a_planted_gain_of_two_percent_is_found)
{
    ck_assert_int_ge(count_found((noise)_i, 0.02), 9);
}
END_TEST

START_TEST(a_planted_gain_of_a_third_of_a_percent_is_never_kept)
{
    ck_assert_int_eq(count_found((noise)_i, 0.003), 0);
}
END_TEST

static void add_rates(Suite *suite)
{
    TCase *tests = tcase_create("rates");
    tcase_add_test(tests, the_levels_of_all_decisions_stay_within_the_campaigns_error);
    tcase_add_loop_test(tests, one_in_twenty_is_wrong_at_the_level_0_05, 0, NOISE_COUNT);
    tcase_add_loop_test(tests, one_in_a_hundred_is_wrong_at_the_level_0_01, 0, NOISE_COUNT);
    tcase_add_loop_test(tests, p_values_of_equal_programs_are_uniform, 0, NOISE_COUNT);
    tcase_add_loop_test(tests, the_truth_lies_within_the_interval, 0, NOISE_COUNT);
    tcase_add_test(tests, one_control_in_a_hundred_is_bad);
    tcase_add_test(tests, one_campaign_in_twenty_keeps_what_is_no_faster);
    tcase_add_test(tests, the_interval_alone_keeps_the_campaigns_error);
    tcase_add_loop_test(tests, a_planted_gain_of_two_percent_is_found, 0, NOISE_COUNT);
    tcase_add_loop_test(tests, a_planted_gain_of_a_third_of_a_percent_is_never_kept, 0,
                        NOISE_COUNT);
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
}

static void add_decisions(Suite *suite)
{
    TCase *tests = tcase_create("decisions");
    tcase_add_test(tests, two_percent_are_kept);
    tcase_add_test(tests, the_results_of_a_workload_are_written);
    tcase_add_test(tests, under_one_percent_is_no_gain);
    tcase_add_test(tests, what_may_be_chance_is_no_gain);
    tcase_add_test(tests, a_workload_that_loses_more_than_two_percent_is_a_regression);
    tcase_add_test(tests, a_workload_may_lose_one_percent);
    tcase_add_test(tests, more_than_twice_as_fast_is_suspicious);
    tcase_add_test(tests, equal_speed_is_kept_where_it_is_simpler);
    tcase_add_test(tests, half_a_percent_slower_is_not_equal);
    tcase_add_test(tests, a_little_slower_beyond_doubt_is_not_equal);
    tcase_add_test(tests, simpler_ones_have_a_loss_to_share);
    tcase_add_test(tests, a_simpler_one_that_nobody_can_tell_is_not_equal);
    tcase_add_test(tests, other_numbers_of_pairs_than_fixed_are_rejected);
    tcase_add_test(tests, a_stage_ends_what_is_no_faster);
    tcase_add_test(tests, a_stage_lets_equal_speed_pass_where_it_is_simpler);
    tcase_add_test(tests, a_clear_gain_is_decided_on_half_of_the_pairs);
    tcase_add_test(tests, a_gain_of_one_workload_is_not_clear);
    tcase_add_test(tests, a_late_decision_is_not_clear);
    tcase_add_test(tests, a_stage_ends_what_loses_on_a_workload);
    tcase_add_loop_test(tests, pairs_with_an_event_are_dropped, 0, sizeof events / sizeof *events);
    tcase_add_test(tests, clocks_are_those_of_their_launch);
    tcase_add_test(tests, what_the_runner_dropped_stays_dropped);
    tcase_add_test(tests, a_side_with_other_clocks_keeps_nothing);
    tcase_add_test(tests, a_few_pairs_with_other_clocks_do_not_count);
    tcase_add_test(tests, more_than_a_quarter_with_an_event_ends_the_decision);
    tcase_add_test(tests, a_control_with_a_difference_is_bad);
    tcase_add_test(tests, a_noisy_control_has_more_pairs);
    tcase_add_test(tests, a_control_whose_estimate_is_far_off_is_bad);
    suite_add_tcase(suite, tests);
}

static void add_intervals(Suite *suite)
{
    TCase *tests = tcase_create("intervals");
    tcase_add_test(tests, the_estimate_is_the_median_of_the_walsh_averages);
    tcase_add_test(tests, the_p_value_is_that_of_the_exact_signed_rank_test);
    tcase_add_test(tests, the_ends_are_walsh_averages);
    tcase_add_test(tests, too_few_pairs_bound_nothing);
    tcase_add_test(tests, equal_times_are_no_gain);
    tcase_add_test(tests, no_pairs_say_nothing);
    tcase_add_test(tests, other_workloads_and_stages_and_dropped_pairs_are_left_out);
    tcase_add_loop_test(tests, what_is_no_time_is_rejected, 0, sizeof no_times / sizeof *no_times);
    tcase_add_test(tests, the_objective_is_the_mean_over_the_workloads);
    suite_add_tcase(suite, tests);
}

int main(void)
{
    Suite *suite = suite_create("judge");
    add_intervals(suite);
    add_decisions(suite);
    add_rates(suite);
    SRunner *suite_runner = srunner_create(suite);
    srunner_set_fork_status(suite_runner, CK_NOFORK);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? 1 : 0;
}

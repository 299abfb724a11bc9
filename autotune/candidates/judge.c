/*
 * The judge: paired statistical tests, and the rule by which a campaign keeps a candidate.
 *
 * A pair is one launch of the incumbent and one launch of the candidate, in an order drawn by a
 * fair coin for that pair. x is the log of the ratio of their times. If both are equally fast, the
 * coin alone decides the sign of x, whatever the noise is: heavy tails, outliers, drift, clock
 * changes. So the signs of all x are fair coins, and a test on signs and ranks is exact at every
 * level (a randomization test: Fisher, "The Design of Experiments", 1935, section 21). If the
 * candidate is faster by a constant factor, the same holds for x minus the log of that factor.
 *
 * The test is Wilcoxon's signed rank test ("Individual comparisons by ranking methods", 1945) with
 * its exact distribution. Its inversion is an interval between two of the Walsh averages (x[i] +
 * x[j]) / 2, and their median is the estimate (Hodges and Lehmann, "Estimates of location based on
 * rank tests", 1963; Hollander and Wolfe, "Nonparametric Statistical Methods", 1999, sections 3.2
 * and 3.3). The interval is closed, so ties in x do not reduce its coverage (Noether, "Wilcoxon
 * confidence intervals for location parameters in the discrete case", 1967).
 *
 * Bootstrap intervals are not used. tests/tools/judge_rules.c simulates 10,000 sets of 64 pairs of
 * equal programs. The percentile bootstrap of the mean excludes zero 1.1 to 1.6 times as often as
 * promised at level 0.05, and 2.1 to 3.0 times at level 0.001. A campaign's levels are smaller
 * still. The studentized bootstrap is no better under heavy tails. Signed ranks keep every level,
 * and have more power than Student's t if noise is not normal.
 *
 * Error rate of a campaign (alpha spending with a union bound): decision n has the share 1 / (n (n
 * + 1)) of MGL_CAMPAIGN_ERROR; the shares sum to 1. A decision uses only its own pairs, whose
 * number is fixed in advance. So its chance to keep a candidate that is not faster is at most its
 * level, whatever was seen before. By the union bound, the chance of at least one such keep is at
 * most MGL_CAMPAIGN_ERROR, for every length of the campaign and every search strategy. The other
 * conditions of a keep only reduce the chance.
 *
 * If the screen shows a large gain (MGL_CLEAR_GAIN), the decision uses half as many pairs. The
 * screen's pairs are not part of the decision.
 *
 * A candidate that is more than twice as fast is measured again in a fresh process before it is
 * kept. This does not increase the error rate: both decisions must be positive, the first one at
 * its level.
 *
 * A simpler program is kept without a gain, and each such program may be slightly slower than the
 * one before. The sum of the lower ends of their intervals bounds the accumulated loss, which is
 * limited (MGL_SIMPLER_LOSS). A keep with a gain resets it.
 *
 * Pairs with an event are dropped by a rule that does not depend on which launch is the
 * candidate's. Too many dropped pairs end the decision, so that a candidate cannot be kept because
 * its slow launches were removed.
 */
#include "autotune/candidates/judge.h"

#include "base/format.h"
#include "eval/statistics.h"

#include <math.h>
#include <string.h>

enum { MAX_PAIRS = MGL_CONTROL_PAIRS, MAX_AVERAGES = MAX_PAIRS * (MAX_PAIRS + 1) / 2 };

#define HOPE_LEVEL    0.05  /* chance that a stage ends a candidate whose true gain is sufficient */
#define SHOWN_LEVEL   0.025 /* level on each side of the 95 % intervals, which are only shown */
#define CONTROL_LEVEL 0.005 /* error level on each side of the 99 % interval */
#define CLOCKS_DIFFER 0.01  /* relative to the faster clock */

/* NVML clock event reasons (nvml.h, nvmlClocksEventReasons) that slow a launch down. */
enum {
    SW_POWER_CAP = 0x04,
    HW_SLOWDOWN = 0x08,
    SW_THERMAL_SLOWDOWN = 0x20,
    HW_THERMAL_SLOWDOWN = 0x40,
    HW_POWER_BRAKE_SLOWDOWN = 0x80,
    SLOWDOWNS = SW_POWER_CAP | HW_SLOWDOWN | SW_THERMAL_SLOWDOWN | HW_THERMAL_SLOWDOWN |
                HW_POWER_BRAKE_SLOWDOWN
};

/* Pairs of each workload. The level of decision 300 is 5.5e-7: 64 pairs reach it even if a quarter
 * of them is dropped and the two largest of the rest have the wrong sign. */
static const int stage_pairs[MGL_PAIRS_STAGES] = {
    [MGL_PAIRS_SCREEN] = 8,   [MGL_PAIRS_SURVIVORS] = 24, [MGL_PAIRS_DECISION] = 64,
    [MGL_PAIRS_CONTROL] = 64, [MGL_PAIRS_REPEAT] = 64,    [MGL_PAIRS_CLEAR] = 32,
};

int mgl_judge_pairs(mgl_pair_stage stage)
{
    return stage_pairs[stage];
}

double mgl_judge_level(int64_t decision)
{
    double n = (double)decision;
    return MGL_CAMPAIGN_ERROR / (n * (n + 1));
}

/* ---- the interval --------------------------------------------------------------------------- */

/* Exact null distribution of the signed rank statistic of n pairs, by dynamic programming: every
 * subset of the ranks 1..n is equally likely, so adding rank r moves half of the probability up by
 * r. Returns the smallest t with P(statistic >= t) <= level, or n (n + 1) / 2 + 1 if there is none.
 * *chance = P(statistic >= seen), with `seen` from 0 to n (n + 1) / 2. */
static int signed_rank_tail(int n, double level, int seen, double *chance)
{
    double share[MAX_AVERAGES + 1]; /* probability of the values 0 to `most` */
    int most = 0;
    share[0] = 1;
    for (int rank = 1; rank <= n; rank++) {
        memset(share + most + 1, 0, (size_t)rank * sizeof *share);
        most += rank;
        for (int value = most; value >= rank; value--)
            share[value] = 0.5 * (share[value] + share[value - rank]);
        for (int value = 0; value < rank; value++)
            share[value] *= 0.5;
    }
    double tail = 0; /* P(statistic >= value), smallest terms first */
    int smallest = most + 1;
    for (int value = most; value >= 0; value--) {
        tail += share[value];
        if (tail <= level)
            smallest = value;
        if (value == seen)
            *chance = fmin(tail, 1);
    }
    return smallest;
}

/* Quickselect: the k-th smallest (0, 1, ...) of `count` values, which are reordered (Hoare,
 * "Algorithm 65: find", 1961). */
static double find_smallest(double *values, int count, int k)
{
    int low = 0, high = count - 1;
    while (low < high) {
        double pivot = values[low + (high - low) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i <= j) {
                double swapped = values[i];
                values[i++] = values[j];
                values[j--] = swapped;
            }
        }
        if (k > j && k < i)
            break;
        if (k <= j)
            high = j;
        else
            low = i;
    }
    return values[k];
}

/* The confidence interval and p-value of the log ratios x (n), with n from 1 to MAX_PAIRS. All
 * statistics here use it. A side that so few pairs cannot bound at that level is MGL_UNBOUNDED. */
static void find_interval(const double *x, int n, double level, mgl_interval *out)
{
    double averages[MAX_AVERAGES];
    int count = 0, positive = 0;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++) {
            averages[count] = (x[i] + x[j]) / 2;
            positive += averages[count++] > 0;
        }
    int reach = signed_rank_tail(n, level, positive, &out->p_value);
    out->used = n;
    out->gain = (find_smallest(averages, count, (count - 1) / 2) +
                 find_smallest(averages, count, count / 2)) /
                2;
    out->lo = reach > count ? -MGL_UNBOUNDED : find_smallest(averages, count, count - reach);
    out->hi = reach > count ? MGL_UNBOUNDED : find_smallest(averages, count, reach - 1);
}

/* ---- pairs ---------------------------------------------------------------------------------- */

/* The log ratios of one workload and stage. */
typedef struct sample {
    double x[MAX_PAIRS]; /* (used) */
    int used, dropped;
} sample;

static bool is_time(double us)
{
    return isfinite(us) && us > 0;
}

static mgl_status add_pair(const mgl_pair *pair, sample *out, mgl_error *err)
{
    if (pair->dropped) {
        out->dropped++;
        return MGL_OK;
    }
    if (!is_time(pair->incumbent_us) || !is_time(pair->candidate_us))
        return mgl_fail(err, MGL_BAD_INPUT, "pairs", "not two positive times: %g and %g us",
                        pair->incumbent_us, pair->candidate_us);
    if (out->used == MAX_PAIRS)
        return mgl_fail(err, MGL_USAGE, "pairs",
                        "too many pairs for a workload and stage; at most %d are allowed",
                        MAX_PAIRS);
    out->x[out->used++] = log(pair->incumbent_us / pair->candidate_us);
    return MGL_OK;
}

static mgl_status take_sample(const mgl_pair *pairs, int count, int workload, int stage,
                              sample *out, mgl_error *err)
{
    mgl_status status = MGL_OK;
    out->used = out->dropped = 0;
    for (int i = 0; i < count && !status; i++)
        if (pairs[i].workload == workload && pairs[i].stage == stage)
            status = add_pair(&pairs[i], out, err);
    return status;
}

/* The interval of a sample. Without pairs it is unbounded. */
static void judge_sample(const sample *ratios, double level, mgl_interval *out)
{
    *out = (mgl_interval){.lo = -MGL_UNBOUNDED, .hi = MGL_UNBOUNDED, .p_value = 1};
    if (ratios->used)
        find_interval(ratios->x, ratios->used, level, out);
    out->dropped = ratios->dropped;
}

mgl_status mgl_judge_workload(const mgl_pair *pairs, int count, int workload, int stage,
                              double level, mgl_interval *out, mgl_error *err)
{
    sample ratios;
    mgl_status status = take_sample(pairs, count, workload, stage, &ratios, err);
    if (!status)
        judge_sample(&ratios, level, out);
    return status;
}

/* The k-th value is the mean of the k-th log ratios of all workloads. The number of values is that
 * of the workload with the fewest used pairs. If the signs of the parts are fair coins, so is the
 * sign of the mean. */
mgl_status mgl_judge_objective(const mgl_pair *pairs, int count, int workloads, int stage,
                               double level, mgl_interval *out, mgl_error *err)
{
    sample mean = {.used = MAX_PAIRS}, one;
    mgl_status status = MGL_OK;
    for (int w = 0; w < workloads && !status; w++) {
        status = take_sample(pairs, count, w, stage, &one, err);
        if (one.used < mean.used)
            mean.used = one.used;
        for (int i = 0; i < mean.used; i++)
            mean.x[i] += one.x[i] / workloads;
        if (one.dropped > mean.dropped)
            mean.dropped = one.dropped;
    }
    if (!status)
        judge_sample(&mean, level, out);
    return status;
}

void mgl_judge_note_clocks(const mgl_paired_bench_clocks looks[3], mgl_pair *pair)
{
    const int first = pair->candidate_first ? MGL_CANDIDATE : MGL_INCUMBENT;
    pair->sm_mhz[first] = looks[1].sm_mhz;
    pair->sm_mhz[!first] = looks[2].sm_mhz;
    pair->memory_mhz =
        looks[1].memory_mhz < looks[2].memory_mhz ? looks[1].memory_mhz : looks[2].memory_mhz;
    for (int i = 0; i < 3; i++) {
        pair->reasons |= looks[i].reasons;
        pair->dropped |= looks[i].processes > 0;
        if (looks[i].temperature > pair->temperature)
            pair->temperature = looks[i].temperature;
    }
}

static bool has_event(const mgl_pair *pair)
{
    unsigned a = pair->sm_mhz[0], b = pair->sm_mhz[1], fast = a > b ? a : b, slow = a > b ? b : a;
    if (pair->reasons & SLOWDOWNS)
        return true;
    return slow && (double)(fast - slow) > CLOCKS_DIFFER * (double)fast;
}

void mgl_judge_drop(mgl_pair *pairs, int count)
{
    for (int i = 0; i < count; i++)
        pairs[i].dropped |= has_event(&pairs[i]);
}

/* Requires three quarters of the pairs, so that dropping pairs cannot create a gain. */
static bool is_enough(const mgl_interval *interval)
{
    return interval->used > 0 && interval->used >= 3 * interval->dropped;
}

/* ---- stages --------------------------------------------------------------------------------- */

bool mgl_judge_survives(const mgl_pair *pairs, int count, int workloads, int stage, bool simpler)
{
    mgl_interval interval;
    double wanted = simpler ? -MGL_EQUAL_LOSS : MGL_KEEP_GAIN;
    for (int w = 0; w < workloads; w++)
        if (mgl_judge_workload(pairs, count, w, stage, HOPE_LEVEL, &interval, NULL) ||
            !is_enough(&interval) || interval.hi < -MGL_KEEP_LOSS)
            return false;
    return !mgl_judge_objective(pairs, count, workloads, stage, HOPE_LEVEL, &interval, NULL) &&
           interval.hi >= wanted;
}

bool mgl_judge_is_disturbed(const mgl_pair *pairs, int count, int workloads, int stage)
{
    mgl_interval interval;
    for (int w = 0; w < workloads; w++)
        if (!mgl_judge_workload(pairs, count, w, stage, HOPE_LEVEL, &interval, NULL) &&
            !is_enough(&interval))
            return true;
    return false;
}

/* The screen's pairs only select the number of fresh pairs, before these are measured. So the level
 * of the decision is unchanged. The signed rank p-value of n pairs is at least 2^-n, and a quarter
 * of the pairs may be dropped. */
bool mgl_judge_is_clear(const mgl_pair *pairs, int count, int workloads, int64_t decision)
{
    mgl_interval interval;
    const int least = mgl_judge_pairs(MGL_PAIRS_CLEAR) * 3 / 4;
    for (int w = 0; w < workloads; w++)
        if (mgl_judge_workload(pairs, count, w, MGL_PAIRS_SCREEN, HOPE_LEVEL, &interval, NULL) ||
            !is_enough(&interval) || interval.lo < log1p(MGL_CLEAR_GAIN))
            return false;
    return ldexp(1, -least) <= mgl_judge_level(decision);
}

/* The rule uses the width only, never the sign, so it favors neither side. */
bool mgl_judge_wants_pairs(const mgl_pair *pairs, int count, int workloads)
{
    mgl_interval all;
    return !mgl_judge_objective(pairs, count, workloads, MGL_PAIRS_CONTROL, CONTROL_LEVEL, &all,
                                NULL) &&
           all.used > 0 && all.hi - all.lo > 2 * MGL_CONTROL_GAIN &&
           all.used + all.dropped + mgl_judge_pairs(MGL_PAIRS_CONTROL) <= MGL_CONTROL_PAIRS;
}

mgl_status mgl_judge_control(const mgl_pair *pairs, int count, int workloads, bool *bad,
                             mgl_interval *out, mgl_error *err)
{
    mgl_status status =
        mgl_judge_objective(pairs, count, workloads, MGL_PAIRS_CONTROL, CONTROL_LEVEL, out, err);
    if (!status)
        *bad = !is_enough(out) || out->lo > 0 || out->hi < 0 || fabs(out->gain) > MGL_CONTROL_GAIN;
    return status;
}

/* ---- the decision --------------------------------------------------------------------------- */

/* The intervals of a stage: the input of a decision. */
typedef struct evidence {
    mgl_interval objective, each[MGL_MAX_WORKLOADS]; /* (workloads) */
    int workloads;
    mgl_pair_stage stage;
    double level;
} evidence;

/* Writes the reason to the trial's diagnostic and returns the outcome. */
static mgl_outcome say(mgl_trial *trial, mgl_outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static mgl_outcome say(mgl_trial *trial, mgl_outcome outcome, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    mgl_format_list(trial->verdict.diagnostic, sizeof trial->verdict.diagnostic, format, arguments);
    va_end(arguments);
    return outcome;
}

static mgl_status weigh(const mgl_trial *trial, evidence *e, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int w = 0; w < e->workloads && !status; w++)
        status = mgl_judge_workload(trial->pairs, trial->pair_count, w, (int)e->stage, e->level,
                                    &e->each[w], err);
    if (!status)
        status = mgl_judge_objective(trial->pairs, trial->pair_count, e->workloads, (int)e->stage,
                                     e->level, &e->objective, err);
    return status;
}

/* Requires the fixed number of pairs: measuring until the result is significant would void the
 * error rate. */
static mgl_status weigh_all(const mgl_trial *trial, evidence *e, mgl_error *err)
{
    int fixed = mgl_judge_pairs(e->stage);
    mgl_status status = weigh(trial, e, err);
    for (int w = 0; w < e->workloads && !status; w++)
        if (e->each[w].used + e->each[w].dropped != fixed)
            status = mgl_fail(err, MGL_USAGE, "pairs",
                              "workload %d has %d pairs of the decision; %d were fixed beforehand",
                              w + 1, e->each[w].used + e->each[w].dropped, fixed);
    return status;
}

/* Medians of the used pairs of a stage. */
static void take_medians(const mgl_trial *trial, int workload, mgl_pair_stage stage,
                         mgl_workload_result *out)
{
    double incumbent[MAX_PAIRS], candidate[MAX_PAIRS];
    size_t used = 0;
    for (int i = 0; i < trial->pair_count; i++) {
        const mgl_pair *pair = &trial->pairs[i];
        if (pair->workload != workload || pair->stage != (int)stage || pair->dropped)
            continue;
        incumbent[used] = pair->incumbent_us;
        candidate[used++] = pair->candidate_us;
    }
    out->incumbent_us = used ? mgl_median(incumbent, used) : 0;
    out->candidate_us = used ? mgl_median(candidate, used) : 0;
}

static void write_results(const evidence *e, mgl_trial *trial)
{
    trial->gain = e->objective.gain;
    trial->gain_lo = e->objective.lo;
    trial->gain_hi = e->objective.hi;
    trial->p_value = e->objective.p_value;
    trial->workload_count = e->workloads;
    for (int w = 0; w < e->workloads; w++) {
        mgl_workload_result *result = &trial->workloads[w];
        result->gain = e->each[w].gain;
        result->gain_lo = e->each[w].lo;
        result->gain_hi = e->each[w].hi;
        result->pairs = e->each[w].used;
        result->dropped = e->each[w].dropped;
        take_medians(trial, w, e->stage, result);
    }
}

mgl_status mgl_judge_summarize(mgl_trial *trial, mgl_pair_stage stage, mgl_error *err)
{
    evidence e = {.workloads = trial->workload_count, .stage = stage, .level = SHOWN_LEVEL};
    mgl_status status = weigh(trial, &e, err);
    if (!status)
        write_results(&e, trial);
    return status;
}

/* The workload with the lowest or highest gain. */
static int find_workload(const evidence *e, bool highest)
{
    int found = 0;
    for (int w = 1; w < e->workloads; w++)
        if (highest ? e->each[w].gain > e->each[found].gain : e->each[w].gain < e->each[found].gain)
            found = w;
    return found;
}

/* Equal speed: the candidate is not proven slower, the interval excludes a loss of MGL_EQUAL_LOSS
 * overall, and no workload's estimate shows such a loss. */
static bool is_as_fast(const evidence *e)
{
    return e->objective.hi >= 0 && e->objective.lo > -MGL_EQUAL_LOSS &&
           e->each[find_workload(e, false)].gain > -MGL_EQUAL_LOSS;
}

static bool is_gain(double gain, double lo)
{
    return gain >= MGL_KEEP_GAIN && lo > 0;
}

static mgl_outcome decide(const evidence *e, bool simpler, mgl_trial *trial)
{
    const mgl_interval *all = &e->objective;
    int slowest = find_workload(e, false), fastest = find_workload(e, true);
    double loss = -e->each[slowest].gain, percent = 100 * expm1(all->gain);
    if (!is_enough(all))
        return say(trial, MGL_OUTCOME_UNMEASURED,
                   "%d of %d pairs had an event (throttling, other clocks, other processes): too "
                   "few pairs are left for a decision",
                   all->dropped, all->used + all->dropped);
    if (e->stage != MGL_PAIRS_REPEAT && e->each[fastest].gain > log(MGL_SUSPICIOUS))
        return say(trial, MGL_OUTCOME_SUSPICIOUS, "workload %d of %d is %.2f times as fast",
                   fastest + 1, e->workloads, exp(e->each[fastest].gain));
    if (loss > MGL_KEEP_LOSS)
        return say(trial, MGL_OUTCOME_REGRESSION,
                   "workload %d of %d is %.2f %% slower; %g %% are allowed", slowest + 1,
                   e->workloads, 100 * loss, 100 * MGL_KEEP_LOSS);
    if (is_gain(all->gain, all->lo))
        return say(trial, MGL_OUTCOME_OK, "%.2f %% faster (%.2f to %.2f at level %.1e)", percent,
                   100 * expm1(all->lo), 100 * expm1(all->hi), e->level);
    if (simpler && is_as_fast(e))
        return say(trial, MGL_OUTCOME_OK,
                   "simpler, and as fast: a gain of %.2f %% (%.2f to %.2f at level %.1e)", percent,
                   100 * expm1(all->lo), 100 * expm1(all->hi), e->level);
    if (all->gain >= MGL_KEEP_GAIN)
        return say(trial, MGL_OUTCOME_NO_GAIN,
                   "%.2f %% faster, which may be chance: %.2f to %.2f at level %.1e", percent,
                   100 * expm1(all->lo), 100 * expm1(all->hi), e->level);
    return say(trial, MGL_OUTCOME_NO_GAIN, "a gain of %.2f %% (%.2f to %.2f): less than %g %%",
               percent, 100 * expm1(all->lo), 100 * expm1(all->hi), 100 * MGL_KEEP_GAIN);
}

static mgl_pair_stage stage_of_decision(const mgl_trial *trial)
{
    for (int i = 0; i < trial->pair_count; i++)
        if (trial->pairs[i].stage == MGL_PAIRS_CLEAR)
            return MGL_PAIRS_CLEAR;
    return MGL_PAIRS_DECISION;
}

mgl_status mgl_judge_decide(mgl_trial *trial, int workloads, int64_t decision, bool simpler,
                            mgl_error *err)
{
    evidence e = {.workloads = workloads, .stage = stage_of_decision(trial)};
    if (workloads < 1 || workloads > MGL_MAX_WORKLOADS || decision < 1)
        return mgl_fail(err, MGL_USAGE, "mgl_judge_decide", "%d workloads, decision %lld",
                        workloads, (long long)decision);
    trial->level = e.level = mgl_judge_level(decision);
    mgl_status status = weigh_all(trial, &e, err);
    if (status)
        return status;
    write_results(&e, trial);
    trial->verdict.outcome = decide(&e, simpler, trial);
    return MGL_OK;
}

/* Returns the workload whose first and second gain differ most. */
static int find_other(const mgl_trial *first, const evidence *again)
{
    int found = 0;
    double most = 0;
    for (int w = 0; w < again->workloads; w++) {
        double other = fabs(again->each[w].gain - first->workloads[w].gain);
        if (other > most)
            most = other, found = w;
    }
    return found;
}

mgl_status mgl_judge_repeat(mgl_trial *trial, int workloads, bool simpler, mgl_error *err)
{
    evidence e = {.workloads = workloads, .stage = MGL_PAIRS_REPEAT, .level = trial->level};
    if (trial->verdict.outcome != MGL_OUTCOME_SUSPICIOUS || workloads < 1 ||
        workloads != trial->workload_count)
        return mgl_fail(err, MGL_USAGE, "mgl_judge_repeat", "%d workloads of a trial that is %s",
                        workloads, mgl_outcome_name(trial->verdict.outcome));
    mgl_status status = weigh_all(trial, &e, err);
    if (status)
        return status;
    int w = find_other(trial, &e);
    double before = exp(trial->workloads[w].gain), now = exp(e.each[w].gain);
    if (trial->gain_lo <= 0 || fabs(log(before / now)) > MGL_REPEAT_OTHER) {
        say(trial, MGL_OUTCOME_SUSPICIOUS,
            "workload %d of %d is %.2f times as fast, and %.2f times in a fresh process", w + 1,
            workloads, before, now);
        return MGL_OK;
    }
    write_results(&e, trial);
    trial->verdict.outcome = decide(&e, simpler, trial);
    return MGL_OK;
}

double mgl_judge_add_loss(double lost, const mgl_trial *kept)
{
    return is_gain(kept->gain, kept->gain_lo) ? 0 : lost + kept->gain_lo;
}

void mgl_judge_limit_loss(mgl_trial *trial, double lost)
{
    double after = mgl_judge_add_loss(lost, trial);
    if (trial->verdict.outcome == MGL_OUTCOME_OK && after < -MGL_SIMPLER_LOSS)
        trial->verdict.outcome = say(
            trial, MGL_OUTCOME_NO_GAIN,
            "simpler, and as fast: a gain of %.2f %%; but with those that were kept for the same "
            "reason it may lose %.2f %%, and %g %% are allowed until one gains",
            100 * expm1(trial->gain), -100 * expm1(after), 100 * MGL_SIMPLER_LOSS);
}

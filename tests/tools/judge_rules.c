/*
 * Compares statistical rules for the judge: how often five kinds of confidence intervals exclude
 * zero on simulated pairs of equal programs, and how often they detect a gain.
 *
 *     judge_rules [TRIALS]
 *
 * Each row is a kind of noise, each column a rule. A cell is excluded / (trials * level); 1.00 is
 * nominal. All intervals are one-sided, of 64 pairs. The rules: Wilcoxon's signed-rank test, as in
 * the judge; the sign test; Student's t; the percentile bootstrap of the mean; the bootstrap of the
 * studentized mean (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, sections 13.3
 * and 12.5).
 */
#include "autotune/candidates/judge.h"
#include "autotune/search/proposer.h"
#include "tests/autotune/search/simulate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAIRS = 64, RESAMPLES = 4000, LEVELS = 3, RULES = 5 };

static const double levels[LEVELS] = {0.05, 0.01, 0.001};
/* Quantiles of Student's t of 63 degrees of freedom. */
static const double student[LEVELS] = {1.6694, 2.3870, 3.2253};
/* The number of heads of 64 fair coins that is reached or exceeded with at most this
 * probability. */
static const int heads[LEVELS] = {40, 42, 45};

typedef struct moments {
    double mean, error; /* standard error of the mean */
} moments;

static moments moments_of(const double *x)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < PAIRS; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    double mean = sum / PAIRS;
    return (moments){mean, sqrt(fmax(squares / PAIRS - mean * mean, 0) / (PAIRS - 1))};
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The lower ends of both bootstrap intervals, at each level. */
static void bootstrap(const double *x, uint64_t seed, double percentile[LEVELS],
                      double studentised[LEVELS])
{
    static double means[RESAMPLES], ratios[RESAMPLES];
    moments all = moments_of(x);
    for (int r = 0; r < RESAMPLES; r++) {
        double again[PAIRS];
        for (int i = 0; i < PAIRS; i++)
            again[i] = x[mgl_draw_below(&seed, PAIRS)];
        moments one = moments_of(again);
        means[r] = one.mean;
        ratios[r] = one.error > 0 ? (one.mean - all.mean) / one.error : 0;
    }
    qsort(means, RESAMPLES, sizeof *means, by_size);
    qsort(ratios, RESAMPLES, sizeof *ratios, by_size);
    for (int l = 0; l < LEVELS; l++) {
        percentile[l] = means[(int)(levels[l] * RESAMPLES)];
        studentised[l] =
            all.mean - all.error * ratios[RESAMPLES - 1 - (int)(levels[l] * RESAMPLES)];
    }
}

static void count_trial(const mgl_pair *pairs, uint64_t seed, int found[LEVELS][RULES])
{
    double x[PAIRS], percentile[LEVELS], studentised[LEVELS];
    int positive = 0;
    mgl_interval ranks;
    for (int i = 0; i < PAIRS; i++) {
        x[i] = log(pairs[i].incumbent_us / pairs[i].candidate_us);
        positive += x[i] > 0;
    }
    moments all = moments_of(x);
    bootstrap(x, seed, percentile, studentised);
    for (int l = 0; l < LEVELS; l++) {
        mgl_judge_workload(pairs, PAIRS, 0, 0, levels[l], &ranks, NULL);
        found[l][0] += ranks.lo > 0;
        found[l][1] += positive >= heads[l];
        found[l][2] += all.mean > student[l] * all.error;
        found[l][3] += percentile[l] > 0;
        found[l][4] += studentised[l] > 0;
    }
}

static void simulate(noise kind, int trials, double gain)
{
    int found[LEVELS][RULES] = {0};
    simulator s = {.seed = 20 + (uint64_t)kind, .kind = kind, .spread = 0.0023};
    for (int t = 0; t < trials; t++) {
        mgl_pair pairs[PAIRS];
        simulator_pairs(&s, gain, 0, 0, PAIRS, pairs);
        count_trial(pairs, s.seed, found);
    }
    for (int l = 0; l < LEVELS; l++) {
        printf("%-10s %-6g", noise_name(kind), levels[l]);
        for (int r = 0; r < RULES; r++)
            printf(" %11.2f", found[l][r] / (trials * (gain > 0 ? 1 : levels[l])));
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    int trials = argc > 1 ? atoi(argv[1]) : 2000;
    static const double gains[] = {0, 0.001};
    for (int g = 0; g < 2; g++) {
        printf("%s\n%-10s %-6s %11s %11s %11s %11s %11s\n",
               g ? "found, of a gain of 0.1 %" : "excluded zero / promised, of no gain", "noise",
               "level", "signed rank", "sign", "t", "percentile", "studentised");
        for (int kind = 0; kind < NOISE_COUNT; kind++)
            simulate((noise)kind, trials, gains[g]);
    }
    return 0;
}

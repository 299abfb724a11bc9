/*
 * Statistics of a campaign: what pairs say, and what may be kept. Pure functions of their
 * arguments, frozen (autotune/frozen.txt). See judge.c for the rule and its error rate.
 */
#ifndef MGL_AUTOTUNE_SEARCH_JUDGE_H
#define MGL_AUTOTUNE_SEARCH_JUDGE_H

#include "autotune/store/record.h"

#define MGL_KEEP_GAIN      0.01  /* of the objective, at least */
#define MGL_KEEP_LOSS      0.02  /* of a workload, at most */
#define MGL_CLEAR_GAIN     0.1   /* that so few pairs as those of MGL_PAIRS_CLEAR decide on */
#define MGL_EQUAL_LOSS     0.005 /* that is none, where the candidate is simpler */
#define MGL_SIMPLER_LOSS   0.01  /* that all of these may have lost together, until one gains */
#define MGL_CONTROL_GAIN   0.005 /* of an A/A control, at most */
#define MGL_CAMPAIGN_ERROR 0.05  /* chance of one wrong keep or more in a campaign, at most */
#define MGL_FLOOR_SHARE    0.995 /* of the stream's time: nothing is faster */
#define MGL_SUSPICIOUS     2.0   /* times as fast: withheld until it was seen twice */
#define MGL_REPEAT_OTHER   0.05  /* between two such log ratios, at most */
#define MGL_CONTROL_PAIRS  256   /* of a workload, at most: a noisy one needs more than 64 */
#define MGL_UNBOUNDED      100.0 /* end of an interval that so few pairs can not bound */

/* Pairs of a stage, for each workload: fixed beforehand. */
int mgl_judge_pairs(mgl_pair_stage stage);

/* The share of MGL_CAMPAIGN_ERROR that the n-th decision (1, 2, ...) of a campaign has; all shares
 * together are at most that. */
double mgl_judge_level(int64_t decision);

typedef struct mgl_interval {
    double gain;    /* of log(incumbent / candidate): the estimate */
    double lo, hi;  /* the truth is below lo, or above hi, with a chance of `level` each */
    double p_value; /* of "the candidate is not faster" */
    int used, dropped;
} mgl_interval;

/* Of the pairs of one workload and stage. MGL_BAD_INPUT: a time is not a positive number. */
mgl_status mgl_judge_workload(const mgl_pair *pairs, int count, int workload, int stage,
                              double level, mgl_interval *out, mgl_error *err);
/* Of the objective: the mean over the workloads of log ratios; `used` and `dropped` are those of
 * the workload that lost most. */
mgl_status mgl_judge_objective(const mgl_pair *pairs, int count, int workloads, int stage,
                               double level, mgl_interval *out, mgl_error *err);

/* Whether a stage's pairs leave hope: false ends the trial with NO_GAIN or REGRESSION. `simpler` as
 * below. */
bool mgl_judge_survives(const mgl_pair *pairs, int count, int workloads, int stage, bool simpler);
/* Whether more than a quarter of a workload's pairs had an event: they say nothing then. */
bool mgl_judge_is_disturbed(const mgl_pair *pairs, int count, int workloads, int stage);

/* Whether the screen leaves no doubt that every workload gains MGL_CLEAR_GAIN or more. Decision n
 * is made from the fewer fresh pairs of MGL_PAIRS_CLEAR then, if so few can be as sure as it has to
 * be. */
bool mgl_judge_is_clear(const mgl_pair *pairs, int count, int workloads, int64_t decision);

/* The decision, from the fresh pairs of MGL_PAIRS_DECISION or MGL_PAIRS_CLEAR: MGL_OUTCOME_OK,
 * NO_GAIN, REGRESSION, SUSPICIOUS, or UNMEASURED where the pairs are disturbed; fills the trial's
 * gains, medians, p value and level, and says why in its diagnostic. `simpler`: the candidate is a
 * simpler program, and equal speed is enough. MGL_USAGE: other than mgl_judge_pairs of a workload,
 * dropped ones among them. */
mgl_status mgl_judge_decide(mgl_trial *trial, int workloads, int64_t decision, bool simpler,
                            mgl_error *err);

/* What may have been lost by keeps of simpler programs since the last keep that gained: the sum of
 * the lower ends of their intervals, with one more trial that was kept. Begins with 0. */
double mgl_judge_add_loss(double lost, const mgl_trial *kept);
/* Makes a decided trial that would be kept NO_GAIN where more than MGL_SIMPLER_LOSS may be lost
 * with it. */
void mgl_judge_limit_loss(mgl_trial *trial, double lost);

/* The same once more, of a trial that is SUSPICIOUS: from the pairs of MGL_PAIRS_REPEAT, which were
 * measured in a fresh process with another nonce. OK where these would be kept too and every
 * workload gains as much, to MGL_REPEAT_OTHER; the results are those of the repeat then. Otherwise
 * SUSPICIOUS, or what the repeat says. */
mgl_status mgl_judge_repeat(mgl_trial *trial, int workloads, bool simpler, mgl_error *err);

/* Whether the pairs of a control say little: the 99 % interval is wider than MGL_CONTROL_GAIN to
 * each side. More of them are measured then, up to MGL_CONTROL_PAIRS a workload. */
bool mgl_judge_wants_pairs(const mgl_pair *pairs, int count, int workloads);
/* Whether an A/A control is bad: its 99 % interval excludes zero, or |gain| > MGL_CONTROL_GAIN. */
mgl_status mgl_judge_control(const mgl_pair *pairs, int count, int workloads, bool *bad,
                             mgl_interval *out, mgl_error *err);

/* Marks pairs that are to be dropped: the device was throttled or held at its power cap, or the
 * clocks of the two launches differ by more than 1 %. A mark that is there stays: whoever measured
 * sets it where another process computed. */
void mgl_judge_drop(mgl_pair *pairs, int count);

#endif

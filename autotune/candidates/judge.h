/*
 * Statistics of a campaign: confidence intervals from timing pairs, and the rule by which a trial
 * is kept. Pure functions of their arguments, frozen (autotune/frozen.txt). judge.c derives the
 * rule and its error rate. Called by the measurement (measure.h) and by archives, which repeat the
 * decisions.
 */
#ifndef MGL_AUTOTUNE_CANDIDATES_JUDGE_H
#define MGL_AUTOTUNE_CANDIDATES_JUDGE_H

#include "autotune/store/record.h"
#include "eval/paired_bench.h"

#define MGL_KEEP_GAIN  0.01 /* smallest gain of the objective */
#define MGL_KEEP_LOSS  0.02 /* largest loss of a workload */
#define MGL_CLEAR_GAIN 0.1  /* gain of every workload at which MGL_PAIRS_CLEAR pairs suffice */
/* a smaller loss counts as equal speed if the candidate is simpler */
#define MGL_EQUAL_LOSS 0.005
/* largest accumulated loss by simpler programs, until a keep with a gain */
#define MGL_SIMPLER_LOSS 0.01
#define MGL_CONTROL_GAIN 0.005 /* largest difference in an A/A control */
/* upper bound of the chance of at least one wrong keep in a campaign */
#define MGL_CAMPAIGN_ERROR 0.05
#define MGL_FLOOR_SHARE    0.995 /* smaller times than this share of the floor are impossible */
#define MGL_SUSPICIOUS     2.0   /* speedup above which a second measurement is required */
/* largest difference between the log ratios of the two measurements of a suspicious trial */
#define MGL_REPEAT_OTHER 0.05
/* pairs of a control for each workload, at most; noisy workloads need more than 64 */
#define MGL_CONTROL_PAIRS 256
#define MGL_UNBOUNDED     100.0 /* end of an interval that the pairs cannot bound */

/* Pairs of each workload in a stage, fixed in advance. */
int mgl_judge_pairs(mgl_pair_stage stage);

/* The share of MGL_CAMPAIGN_ERROR that belongs to decision n (1, 2, ...). The sum of all shares is
 * at most MGL_CAMPAIGN_ERROR. */
double mgl_judge_level(int64_t decision);

typedef struct mgl_interval {
    double gain; /* estimate of log(incumbent / candidate) */
    /* the true value is below lo with a probability of at most `level`, and above hi likewise */
    double lo, hi;
    double p_value; /* p value of the hypothesis "the candidate is not faster" */
    int used, dropped;
} mgl_interval;

/* The interval of one workload and stage. MGL_BAD_INPUT: a time is not a positive number. */
mgl_status mgl_judge_workload(const mgl_pair *pairs, int count, int workload, int stage,
                              double level, mgl_interval *out, mgl_error *err);
/* The interval of the objective: the mean log ratio over the workloads. `used` is the smallest
 * number of used pairs, and `dropped` the largest number of dropped pairs, of any workload. */
mgl_status mgl_judge_objective(const mgl_pair *pairs, int count, int workloads, int stage,
                               double level, mgl_interval *out, mgl_error *err);

/* Fills the trial's gains, medians and p value from the pairs of a stage, with 95 % intervals, for
 * results that decide nothing. */
mgl_status mgl_judge_summarize(mgl_trial *trial, mgl_pair_stage stage, mgl_error *err);

/* Whether a trial continues after a stage. False: it ends with NO_GAIN or REGRESSION. `simpler`: as
 * below. */
bool mgl_judge_survives(const mgl_pair *pairs, int count, int workloads, int stage, bool simpler);
/* Whether more than a quarter of a workload's pairs had an event. Such pairs cannot be used. */
bool mgl_judge_is_disturbed(const mgl_pair *pairs, int count, int workloads, int stage);

/* Whether the screen shows that every workload gains at least MGL_CLEAR_GAIN. Decision n then uses
 * the fewer fresh pairs of MGL_PAIRS_CLEAR, if so few can reach its level. */
bool mgl_judge_is_clear(const mgl_pair *pairs, int count, int workloads, int64_t decision);

/* The decision, from the fresh pairs of MGL_PAIRS_DECISION or MGL_PAIRS_CLEAR: MGL_OUTCOME_OK,
 * NO_GAIN, REGRESSION, SUSPICIOUS, or UNMEASURED if the pairs are disturbed. Fills the trial's
 * gains, medians, p value and level, and writes the reason to its diagnostic. `simpler`: the
 * candidate is a simpler program, and equal speed suffices. MGL_USAGE: a workload does not have
 * exactly mgl_judge_pairs pairs, including dropped ones. */
mgl_status mgl_judge_decide(mgl_trial *trial, int workloads, int64_t decision, bool simpler,
                            mgl_error *err);

/* Bound of the loss by simpler programs since the last keep with a gain: the sum of the lower ends
 * of their intervals, including the trial `kept`. The initial value is 0. */
double mgl_judge_add_loss(double lost, const mgl_trial *kept);
/* Changes a trial that would be kept to NO_GAIN if the accumulated loss would exceed
 * MGL_SIMPLER_LOSS. */
void mgl_judge_limit_loss(mgl_trial *trial, double lost);

/* The second decision of a SUSPICIOUS trial, from the pairs of MGL_PAIRS_REPEAT, which were
 * measured in a fresh process with another nonce. If the first interval was above 0 and the gains
 * of every workload agree within MGL_REPEAT_OTHER, the outcome and the results are those of the
 * repeat. Otherwise the trial stays SUSPICIOUS. */
mgl_status mgl_judge_repeat(mgl_trial *trial, int workloads, bool simpler, mgl_error *err);

/* Whether a control needs more pairs: its 99 % interval is wider than 2 MGL_CONTROL_GAIN, and fewer
 * than MGL_CONTROL_PAIRS a workload were taken. */
bool mgl_judge_wants_pairs(const mgl_pair *pairs, int count, int workloads);
/* Whether an A/A control is bad: its 99 % interval excludes 0, |gain| > MGL_CONTROL_GAIN, or too
 * many pairs were dropped. */
mgl_status mgl_judge_control(const mgl_pair *pairs, int count, int workloads, bool *bad,
                             mgl_interval *out, mgl_error *err);

/* Stores the clocks before, between and after the two launches in their pair. If another process
 * used the device, marks the pair to be dropped. */
void mgl_judge_note_clocks(const mgl_paired_bench_clocks looks[3], mgl_pair *pair);
/* Marks pairs to be dropped: the device was throttled or at its power cap, or the SM clocks of the
 * two launches differ by more than 1 %. Existing marks stay. */
void mgl_judge_drop(mgl_pair *pairs, int count);

#endif

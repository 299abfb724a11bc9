/*
 * Consistency check of kept trials: recomputes the judge's decision from a trial's own pairs and
 * compares it with the stored result. A user who can write the store can change any value in it,
 * and an archive reports gains to others, so the gains must follow from the pairs. The correctness
 * of the program is not checked here; the importing campaign checks and measures it again.
 * Implements mgl_archive_check_keep.
 */
#include "autotune/archive/archive_fields.h"
#include "autotune/candidates/judge.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

static const double tolerance = 1e-6; /* relative tolerance of a number that was stored */

static bool is_same(double a, double b)
{
    return fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

/* Returns the number of the decision with this level; 0: no decision of a campaign with this many
 * trials has it. */
static int64_t find_decision(double level, int64_t trials)
{
    if (!(level > 0))
        return 0;
    /* solves n (n + 1) = MGL_CAMPAIGN_ERROR / level */
    double n = round((sqrt(1 + 4 * MGL_CAMPAIGN_ERROR / level) - 1) / 2);
    if (!(n >= 1 && n <= (double)trials))
        return 0;
    double wanted = mgl_judge_level((int64_t)n);
    return is_same(wanted, level) ? (int64_t)n : 0;
}

/* Returns the name of the first number that differs; NULL: none. */
static const char *compare(const mgl_trial *stored, const mgl_trial *made)
{
    if (!is_same(stored->gain, made->gain))
        return "gain";
    if (!is_same(stored->gain_lo, made->gain_lo) || !is_same(stored->gain_hi, made->gain_hi))
        return "interval";
    if (!is_same(stored->p_value, made->p_value))
        return "p value";
    for (int w = 0; w < stored->workload_count; w++) {
        const mgl_workload_result *a = &stored->workloads[w], *b = &made->workloads[w];
        if (!is_same(a->gain, b->gain) || !is_same(a->gain_lo, b->gain_lo) ||
            !is_same(a->gain_hi, b->gain_hi))
            return "gain of a workload";
    }
    return NULL;
}

static mgl_status refuse(const mgl_trial *trial, const char *what, const char *found,
                         mgl_error *err)
{
    return mgl_fail(
        err, MGL_BAD_INPUT, "archive",
        "the store records that trial %lld was kept, but its pairs do not confirm its %s%s%s; "
        "nothing is exported: `campaign best -o F` and `campaign submit F` to a new campaign "
        "measure it again",
        (long long)trial->number, what, found[0] ? ": they give " : "", found);
}

/* Repeats the decision. The store does not record whether the candidate was a simpler program. A
 * trial that fails the rule for gains is therefore decided again by the rule for simpler programs.
 */
static mgl_status decide(mgl_trial *made, int64_t decision, mgl_error *err)
{
    int workloads = made->workload_count;
    mgl_judge_drop(made->pairs, made->pair_count);
    mgl_status status = mgl_judge_decide(made, workloads, decision, false, err);
    if (!status && made->verdict.outcome == MGL_OUTCOME_NO_GAIN)
        status = mgl_judge_decide(made, workloads, decision, true, err);
    if (!status &&
        made->verdict.outcome ==
            MGL_OUTCOME_SUSPICIOUS) /* the stored pairs are the pairs of the second measurement */
        status = mgl_judge_repeat(made, workloads, true, err);
    return status;
}

mgl_status mgl_archive_check_keep(const mgl_trial *trial, int workloads, double *lost,
                                  mgl_error *err)
{
    size_t bytes = (size_t)trial->pair_count * sizeof *trial->pairs;
    int64_t decision = find_decision(trial->level, trial->number);
    mgl_trial made = *trial; /* borrowed except for the pairs */
    if (!decision)
        return refuse(trial, "level", "", err);
    if (trial->workload_count != workloads)
        return refuse(trial, "number of workloads", "", err);
    if (!trial->pair_count)
        return refuse(trial, "outcome", "there are none", err);
    made.pairs = mgl_alloc(bytes);
    if (!made.pairs)
        return mgl_fail_memory(err, bytes);
    memcpy(made.pairs, trial->pairs, bytes);
    mgl_error why = {0};
    mgl_status status = decide(&made, decision, &why);
    mgl_free(made.pairs);
    if (status)
        return refuse(trial, "outcome", why.message, err);
    if (lost) {
        mgl_judge_limit_loss(&made, *lost);
        *lost = mgl_judge_add_loss(*lost, &made);
    }
    if (made.verdict.outcome != MGL_OUTCOME_OK)
        return refuse(trial, "outcome", mgl_outcome_name(made.verdict.outcome), err);
    const char *other = compare(trial, &made);
    return other ? refuse(trial, other, "", err) : MGL_OK;
}

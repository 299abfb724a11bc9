/*
 * Paired benchmark of a trial (sequential testing with paired launches). Runs pairs of launches of
 * the incumbent and the candidate in stages with a number of pairs fixed in advance, by the rules
 * of campaigns (search/judge.h). A stage ends the benchmark early if the candidate cannot win. The
 * decision uses its own fresh pairs only. An implausibly large gain is measured again in fresh
 * processes. A time below the time that the bytes take is rejected.
 */
#include "autotune/kernels/trial/trial.h"

#include "autotune/search/campaign_parts.h"
#include "autotune/search/judge.h"
#include "base/format.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

/* State of one paired benchmark. */
struct paired_bench {
    const mgl_trial_options *o;
    mgl_runner *runner;
    const mgl_candidate *incumbent, *candidate;
    mgl_trial *trial; /* the pairs and their statistics */
    uint64_t draws;
    int64_t decision;
    bool decided;
};

static mgl_status decide(struct paired_bench *d, mgl_outcome outcome, const char *why)
{
    d->decided = true;
    d->trial->outcome = outcome;
    mgl_format_into(d->trial->diagnostic, sizeof d->trial->diagnostic, "%s", why);
    return MGL_OK;
}

static mgl_status check(struct paired_bench *d, const unsigned char nonce[MGL_SHA256_BYTES],
                        mgl_error *err)
{
    mgl_runner_check found = {.outcome = MGL_OUTCOME_UNMEASURED};
    mgl_status status = d->runner->check(d->runner, d->candidate, nonce, &found, err);
    for (int w = 0; w < d->trial->workload_count && !status; w++) {
        d->trial->workloads[w].error = found.errors[w];
        d->trial->workloads[w].error_default = found.defaults[w];
    }
    return status || found.outcome == MGL_OUTCOME_OK ? status
                                                     : decide(d, found.outcome, found.diagnostic);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static mgl_pair *add_pairs(mgl_trial *trial, int count)
{
    const size_t all = (size_t)(trial->pair_count + count);
    mgl_pair *pairs = mgl_realloc(trial->pairs, all * sizeof *pairs);
    if (!pairs)
        return NULL;
    trial->pairs = pairs;
    memset(pairs + trial->pair_count, 0, (size_t)count * sizeof *pairs);
    return pairs + trial->pair_count;
}

static mgl_status measure_workload(struct paired_bench *d, mgl_pair_stage stage, int workload,
                                   mgl_error *err)
{
    char why[MGL_MAX_DIAGNOSTIC + 1] = "";
    mgl_outcome outcome = MGL_OUTCOME_OK;
    const int count = mgl_judge_pairs(stage);
    mgl_pair *pairs = add_pairs(d->trial, count);
    if (!pairs)
        return mgl_fail_memory(err, (size_t)count * sizeof *pairs);
    mgl_status status = d->runner->pair(d->runner, workload, count, mgl_draw(&d->draws), false,
                                        pairs, &outcome, why, err);
    if (status || outcome != MGL_OUTCOME_OK)
        return status ? status : decide(d, outcome, why);
    for (int i = 0; i < count; i++) {
        pairs[i].workload = workload;
        pairs[i].stage = (int)stage;
    }
    mgl_judge_drop(pairs, count);
    d->trial->pair_count += count;
    return MGL_OK;
}

static mgl_status measure(struct paired_bench *d, mgl_pair_stage stage, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int w = 0; w < d->trial->workload_count && !status && !d->decided; w++) {
        status = mgl_check_abort(d->o->abort, err);
        if (!status)
            status = measure_workload(d, stage, w, err);
    }
    return status;
}

/* Ends the benchmark: the candidate is certainly slower on a workload, or not faster by enough. */
static mgl_status give_up(struct paired_bench *d, mgl_pair_stage stage, mgl_error *err)
{
    char why[MGL_MAX_DIAGNOSTIC + 1];
    mgl_trial *trial = d->trial;
    mgl_status status = measure_summarise(trial, stage, err);
    if (status)
        return status;
    bool slower = trial->gain_hi < 0;
    for (int w = 0; w < trial->workload_count; w++)
        slower |= trial->workloads[w].gain_hi < -MGL_KEEP_LOSS;
    mgl_format_into(why, sizeof why, "a gain of %+.2f %% (%+.2f to %+.2f) after %d pairs",
                    100 * expm1(trial->gain), 100 * expm1(trial->gain_lo),
                    100 * expm1(trial->gain_hi), trial->pair_count);
    return decide(d, slower ? MGL_OUTCOME_REGRESSION : MGL_OUTCOME_NO_GAIN, why);
}

static mgl_status look(struct paired_bench *d, mgl_pair_stage stage, mgl_error *err)
{
    const mgl_trial *trial = d->trial;
    mgl_status status = measure(d, stage, err);
    if (status || d->decided)
        return status;
    if (mgl_judge_is_disturbed(trial->pairs, trial->pair_count, trial->workload_count, (int)stage))
        return decide(d, MGL_OUTCOME_UNMEASURED,
                      "too many pairs had an event (throttling, other clocks, other processes); "
                      "try it again when the device is free");
    if (mgl_judge_survives(trial->pairs, trial->pair_count, trial->workload_count, (int)stage,
                           false))
        return MGL_OK;
    return give_up(d, stage, err);
}

/* ---- the decision ---------------------------------------------------------------------------- */

/* The nonce of the repetition is the hash of the first nonce, so that a replay repeats it too. */
static mgl_status measure_again(struct paired_bench *d, const unsigned char nonce[MGL_SHA256_BYTES],
                                mgl_error *err)
{
    unsigned char other[MGL_SHA256_BYTES];
    mgl_sha256_of(nonce, MGL_SHA256_BYTES, other);
    d->decided = false;
    mgl_status status = d->runner->start(d->runner, d->incumbent, err);
    if (!status)
        status = check(d, other, err);
    if (!status && !d->decided)
        status = measure(d, MGL_PAIRS_REPEAT, err);
    if (!status && !d->decided)
        status = mgl_judge_repeat(d->trial, d->trial->workload_count, false, err);
    return status;
}

static mgl_status make_decision(struct paired_bench *d, const unsigned char nonce[MGL_SHA256_BYTES],
                                mgl_error *err)
{
    mgl_trial *trial = d->trial;
    const bool clear =
        mgl_judge_is_clear(trial->pairs, trial->pair_count, trial->workload_count, d->decision);
    mgl_status status = clear ? MGL_OK : look(d, MGL_PAIRS_SURVIVORS, err);
    if (!status && !d->decided)
        status = measure(d, clear ? MGL_PAIRS_CLEAR : MGL_PAIRS_DECISION, err);
    if (status || d->decided)
        return status;
    status = mgl_judge_decide(trial, trial->workload_count, d->decision, false, err);
    d->decided = true;
    if (!status && trial->outcome == MGL_OUTCOME_SUSPICIOUS && trial->gain_lo > 0)
        status = measure_again(d, nonce, err);
    return status;
}

/* ---- the floor ------------------------------------------------------------------------------- */

static bool is_below(double us, double floor_us)
{
    return floor_us > 0 && us > 0 && us < MGL_FLOOR_SHARE * floor_us;
}

static mgl_status check_floor(struct paired_bench *d, int workload, mgl_error *err)
{
    char why[MGL_MAX_DIAGNOSTIC + 1];
    mgl_workload_result *r = &d->trial->workloads[workload];
    mgl_status status = d->runner->floor(d->runner, workload, false, &r->stream_us, err);
    if (!status && is_below(r->candidate_us, r->stream_us))
        status = d->runner->floor(d->runner, workload, true, &r->stream_us, err);
    if (status || !is_below(r->candidate_us, r->stream_us))
        return status;
    mgl_format_into(why, sizeof why,
                    "workload %d: less than %.3f of the %.1f us that its bytes "
                    "take",
                    workload + 1, MGL_FLOOR_SHARE, r->stream_us);
    return decide(d, MGL_OUTCOME_SUBFLOOR, why);
}

static mgl_status check_floors(struct paired_bench *d, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int w = 0;
         w < d->trial->workload_count && !status && mgl_outcome_is_correct(d->trial->outcome); w++)
        status = check_floor(d, w, err);
    return status;
}

/* ---- the whole benchmark --------------------------------------------------------------------- */

static mgl_status run(struct paired_bench *d, const unsigned char nonce[MGL_SHA256_BYTES],
                      mgl_error *err)
{
    mgl_status status = d->runner->start(d->runner, d->incumbent, err);
    if (!status)
        status = check(d, nonce, err);
    if (!status && !d->decided && !d->runner->measures)
        status = decide(d, MGL_OUTCOME_UNMEASURED, "correct, and not timed: there is no clock");
    if (!status && !d->decided)
        status = look(d, MGL_PAIRS_SCREEN, err);
    if (!status && !d->decided)
        status = make_decision(d, nonce, err);
    return status ? status : check_floors(d, err);
}

/* Reports no times if the outcome is not a correct one. */
static void tell(const struct paired_bench *d, const mgl_harness_set *set,
                 mgl_kernel_paired_bench *out, char diagnostic[MGL_MAX_DIAGNOSTIC + 1])
{
    const mgl_trial *t = d->trial;
    const bool told = mgl_outcome_is_correct(t->outcome) && t->pair_count > 0;
    out->outcome = t->outcome;
    out->workloads = set->subject.workloads;
    out->workload_count = t->workload_count;
    out->pairs = t->pair_count;
    out->timed = told;
    memcpy(out->results, t->workloads, sizeof out->results);
    for (int w = 0; w < MGL_MAX_WORKLOADS && !told; w++)
        out->results[w].candidate_us = out->results[w].gain = out->results[w].gain_lo =
            out->results[w].gain_hi = 0;
    if (told) {
        out->gain = t->gain;
        out->gain_lo = t->gain_lo;
        out->gain_hi = t->gain_hi;
        out->level = t->level;
    }
    memcpy(diagnostic, t->diagnostic, sizeof t->diagnostic);
}

mgl_status mgl_trial_paired_bench(const mgl_trial_options *o, const mgl_harness_set *set,
                                  const mgl_candidate *incumbent, const mgl_candidate *candidate,
                                  const unsigned char nonce[MGL_SHA256_BYTES],
                                  mgl_kernel_paired_bench *out,
                                  char diagnostic[MGL_MAX_DIAGNOSTIC + 1], mgl_error *err)
{
    struct paired_bench d = {.o = o,
                             .incumbent = incumbent,
                             .candidate = candidate,
                             .trial = mgl_alloc_zero(1, sizeof *d.trial),
                             .decision = o->decision > 0 ? o->decision : 1};
    *out = (mgl_kernel_paired_bench){.outcome = MGL_OUTCOME_UNMEASURED};
    if (!d.trial)
        return mgl_fail_memory(err, sizeof *d.trial);
    memcpy(&d.draws, nonce + 16, sizeof d.draws);
    d.trial->workload_count = set->subject.workloads.count;
    mgl_status status = mgl_trial_open_runner(o, &set->subject, &d.runner, err);
    if (!status)
        d.runner->prepare(d.runner, candidate);
    if (!status)
        status = run(&d, nonce, err);
    if (!status)
        tell(&d, set, out, diagnostic);
    if (d.runner)
        d.runner->close(d.runner);
    mgl_trial_clear(d.trial);
    mgl_free(d.trial);
    return status;
}

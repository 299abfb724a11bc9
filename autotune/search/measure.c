/* Implements the paired measurement (measure.h). The decision uses only its own fresh pairs;
 * judge.c derives the error rate. */
#include "autotune/search/measure.h"

#include "base/clock.h"
#include "base/draw.h"
#include "base/format.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void mgl_measure_decide(mgl_measurement *m, mgl_outcome outcome, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mgl_format_ends_list(m->trial->verdict.diagnostic, sizeof m->trial->verdict.diagnostic, format,
                         args);
    va_end(args);
    m->trial->verdict.outcome = outcome;
    m->decided = true;
}

void mgl_measure_take(mgl_measurement *m, const mgl_trial_verdict *verdict)
{
    m->trial->verdict = *verdict;
    m->decided = true;
}

static void note(mgl_measurement *m, mgl_measure_part part, double since)
{
    m->spent[part].seconds += mgl_clock_s() - since;
    m->spent[part].count++;
}

/* ---- correctness ----------------------------------------------------------------------------- */

static mgl_status check(mgl_measurement *m, const unsigned char nonce[MGL_SHA256_BYTES],
                        mgl_runner_check *found, mgl_error *err)
{
    const double before = m->runner->busy_s, at = mgl_clock_s();
    mgl_status status = m->runner->check(m->runner, m->candidate, nonce, found, err);
    m->trial->gpu_s += m->runner->busy_s - before;
    note(m, MGL_MEASURE_CHECK, at);
    return status;
}

mgl_status mgl_measure_check(mgl_measurement *m, const unsigned char nonce[MGL_SHA256_BYTES],
                             mgl_error *err)
{
    mgl_runner_check found = {.verdict.outcome = MGL_OUTCOME_UNMEASURED};
    mgl_status status = check(m, nonce, &found, err);
    if (status)
        return status;
    for (int w = 0; w < m->trial->workload_count; w++) {
        m->trial->workloads[w].error = found.errors[w];
        m->trial->workloads[w].error_default = found.defaults[w];
    }
    if (found.verdict.outcome != MGL_OUTCOME_OK)
        mgl_measure_take(m, &found.verdict);
    return MGL_OK;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Appends `count` zeroed pairs to the trial. NULL: memory ran out. */
static mgl_pair *add_pairs(mgl_trial *trial, int count)
{
    size_t all = (size_t)(trial->pair_count + count);
    mgl_pair *pairs = mgl_realloc(trial->pairs, all * sizeof *pairs);
    if (!pairs)
        return NULL;
    trial->pairs = pairs;
    memset(pairs + trial->pair_count, 0, (size_t)count * sizeof *pairs);
    return pairs + trial->pair_count;
}

static mgl_status measure_workload(mgl_measurement *m, mgl_pair_stage stage, int workload,
                                   mgl_error *err)
{
    mgl_trial_verdict verdict = {.outcome = MGL_OUTCOME_OK};
    const int count = mgl_judge_pairs(stage);
    mgl_pair *pairs = add_pairs(m->trial, count);
    if (!pairs)
        return mgl_fail_memory(err, (size_t)count * sizeof *pairs);
    const double before = m->runner->busy_s;
    mgl_status status = m->runner->pair(m->runner, workload, count, mgl_draw(m->draws),
                                        stage == MGL_PAIRS_CONTROL, pairs, &verdict, err);
    m->trial->gpu_s += m->runner->busy_s - before;
    if (status)
        return status;
    if (verdict.outcome != MGL_OUTCOME_OK) {
        mgl_measure_take(m, &verdict);
        return MGL_OK;
    }
    for (int i = 0; i < count; i++) {
        pairs[i].workload = workload;
        pairs[i].stage = (int)stage;
    }
    mgl_judge_drop(pairs, count);
    m->trial->pair_count += count;
    return MGL_OK;
}

mgl_status mgl_measure_pairs(mgl_measurement *m, mgl_pair_stage stage, mgl_error *err)
{
    const double at = mgl_clock_s();
    mgl_status status = MGL_OK;
    for (int w = 0; w < m->trial->workload_count && !status && !m->decided; w++) {
        status = mgl_check_abort(m->abort, err);
        if (!status)
            status = measure_workload(m, stage, w, err);
    }
    note(m, MGL_MEASURE_PAIRS, at);
    return status;
}

/* ---- stages before the decision -------------------------------------------------------------- */

/* Clears times that must not be shown; the pairs stay as evidence. */
static void withhold(mgl_trial *trial)
{
    trial->gain = trial->gain_lo = trial->gain_hi = 0;
    trial->p_value = -1;
    for (int w = 0; w < trial->workload_count; w++) {
        mgl_workload_result *result = &trial->workloads[w];
        result->candidate_us = result->gain = result->gain_lo = result->gain_hi = 0;
    }
}

/* Ends a disturbed trial as UNMEASURED (another process, other clocks, or throttling). */
static void note_disturbance(mgl_measurement *m)
{
    int dropped = 0, pairs = 0;
    for (int w = 0; w < m->trial->workload_count; w++) {
        dropped += m->trial->workloads[w].dropped;
        pairs += m->trial->workloads[w].dropped + m->trial->workloads[w].pairs;
    }
    withhold(m->trial);
    m->disturbed = true;
    mgl_measure_decide(
        m, MGL_OUTCOME_UNMEASURED,
        "%d of %d pairs had an event (throttling, other clocks, other processes): too few pairs "
        "are left for a result; submit the proposal again when the device is free",
        dropped, pairs);
}

/* Ends a trial whose candidate is significantly slower or gains too little. */
static void give_up(mgl_measurement *m, mgl_pair_stage stage)
{
    const mgl_trial *trial = m->trial;
    bool slower = trial->gain_hi < 0;
    for (int w = 0; w < trial->workload_count; w++)
        slower |= trial->workloads[w].gain_hi < -MGL_KEEP_LOSS;
    mgl_measure_decide(m, slower ? MGL_OUTCOME_REGRESSION : MGL_OUTCOME_NO_GAIN,
                       "%s: a gain of %+.2f %% (%+.2f to %+.2f) after %d pairs",
                       stage == MGL_PAIRS_SCREEN ? "screened" : "second look",
                       100 * expm1(trial->gain), 100 * expm1(trial->gain_lo),
                       100 * expm1(trial->gain_hi), trial->pair_count);
}

/* Takes the pairs of a stage, and ends the trial if the pairs are unusable or show too little gain.
 */
static mgl_status look(mgl_measurement *m, mgl_pair_stage stage, mgl_error *err)
{
    mgl_trial *trial = m->trial;
    mgl_status status = mgl_measure_pairs(m, stage, err);
    if (status || m->decided)
        return status;
    const bool disturbed =
        mgl_judge_is_disturbed(trial->pairs, trial->pair_count, trial->workload_count, (int)stage);
    if (!disturbed && mgl_judge_survives(trial->pairs, trial->pair_count, trial->workload_count,
                                         (int)stage, m->simpler))
        return MGL_OK;
    status = mgl_judge_summarize(trial, stage, err);
    if (!status && disturbed)
        note_disturbance(m);
    else if (!status)
        give_up(m, stage);
    return status;
}

static bool is_clear(const mgl_measurement *m)
{
    return mgl_judge_is_clear(m->trial->pairs, m->trial->pair_count, m->trial->workload_count,
                              m->decision);
}

mgl_status mgl_measure_screen(mgl_measurement *m, mgl_error *err)
{
    return m->decided ? MGL_OK : look(m, MGL_PAIRS_SCREEN, err);
}

mgl_status mgl_measure_survivors(mgl_measurement *m, mgl_error *err)
{
    return m->decided || is_clear(m) ? MGL_OK : look(m, MGL_PAIRS_SURVIVORS, err);
}

/* ---- the decision ---------------------------------------------------------------------------- */

/* The nonce of the repeat is a hash of the trial's nonce, so that the repeat can be replayed. */
static void derive_nonce(const mgl_trial *trial, unsigned char nonce[MGL_SHA256_BYTES])
{
    char text[MGL_SHA256_HEX + 8];
    int length = snprintf(text, sizeof text, "%s again", trial->nonce);
    mgl_sha256_of(text, (size_t)length, nonce);
}

/* The errors of the first check stay in the trial, because they belong to its nonce. */
static mgl_status check_again(mgl_measurement *m, mgl_error *err)
{
    unsigned char nonce[MGL_SHA256_BYTES];
    mgl_runner_check found = {.verdict.outcome = MGL_OUTCOME_UNMEASURED};
    derive_nonce(m->trial, nonce);
    mgl_status status = check(m, nonce, &found, err);
    if (!status && found.verdict.outcome != MGL_OUTCOME_OK)
        mgl_measure_decide(m, found.verdict.outcome, "once more, in a fresh process: %s",
                           found.verdict.diagnostic);
    return status;
}

/* Repeats the measurement with fresh processes, memory, weights, first tokens and pairs. */
static mgl_status measure_again(mgl_measurement *m, mgl_error *err)
{
    mgl_status status = m->restart(m->user, m->trial, err);
    m->decided = false;
    if (!status)
        status = check_again(m, err);
    if (!status && !m->decided)
        status = mgl_measure_pairs(m, MGL_PAIRS_REPEAT, err);
    if (!status && !m->decided)
        status = mgl_judge_repeat(m->trial, m->trial->workload_count, m->simpler, err);
    m->decided = true;
    return status;
}

mgl_status mgl_measure_decision(mgl_measurement *m, mgl_error *err)
{
    mgl_trial *trial = m->trial;
    if (m->decided)
        return MGL_OK;
    mgl_status status =
        mgl_measure_pairs(m, is_clear(m) ? MGL_PAIRS_CLEAR : MGL_PAIRS_DECISION, err);
    if (status || m->decided)
        return status;
    m->decided = m->counted = true;
    status = mgl_judge_decide(trial, trial->workload_count, m->decision, m->simpler, err);
    if (!status && trial->verdict.outcome == MGL_OUTCOME_SUSPICIOUS && trial->gain_lo > 0)
        status = measure_again(m, err);
    m->disturbed |= !status && trial->verdict.outcome == MGL_OUTCOME_UNMEASURED;
    if (!status)
        mgl_judge_limit_loss(trial, m->lost);
    return status;
}

/* ---- controls -------------------------------------------------------------------------------- */

mgl_status mgl_measure_control(mgl_measurement *m, bool *bad, mgl_error *err)
{
    mgl_interval all;
    mgl_trial *trial = m->trial;
    mgl_status status = MGL_OK;
    do
        status = mgl_measure_pairs(m, MGL_PAIRS_CONTROL, err);
    while (!status && !m->decided &&
           mgl_judge_wants_pairs(trial->pairs, trial->pair_count, trial->workload_count));
    if (status || m->decided)
        return status;
    status = mgl_judge_summarize(trial, MGL_PAIRS_CONTROL, err);
    if (!status)
        status = mgl_judge_control(trial->pairs, trial->pair_count, trial->workload_count, bad,
                                   &all, err);
    if (!status && !all.used)
        mgl_measure_decide(m, MGL_OUTCOME_SUSPICIOUS,
                           "the incumbent against itself: all %d pairs were dropped, because of "
                           "another process on the device, its clocks, or throttling",
                           all.dropped);
    else if (!status)
        mgl_measure_decide(
            m, *bad ? MGL_OUTCOME_SUSPICIOUS : MGL_OUTCOME_NO_GAIN,
            "the incumbent against itself: %+.3f %% (%+.3f to %+.3f), %d pairs dropped",
            100 * expm1(all.gain), 100 * expm1(all.lo), 100 * expm1(all.hi), all.dropped);
    return status;
}

/* ---- the floor ------------------------------------------------------------------------------- */

static bool is_below(double us, double floor_us)
{
    return floor_us > 0 && us > 0 && us < MGL_FLOOR_SHARE * floor_us;
}

mgl_status mgl_measure_floor(mgl_runner *runner, int workload, double us, double *floor_us,
                             bool *below, mgl_error *err)
{
    mgl_status status = runner->floor(runner, workload, false, floor_us, err);
    if (!status && is_below(us, *floor_us))
        status = runner->floor(runner, workload, true, floor_us, err);
    *below = !status && is_below(us, *floor_us);
    return status;
}

mgl_status mgl_measure_floors(mgl_measurement *m, mgl_error *err)
{
    mgl_trial *trial = m->trial;
    mgl_status status = MGL_OK;
    bool right = mgl_outcome_is_correct(trial->verdict.outcome), below = false;
    const double at = mgl_clock_s();
    for (int w = 0; w < trial->workload_count && right && !status && !below; w++) {
        mgl_workload_result *result = &trial->workloads[w];
        status =
            mgl_measure_floor(m->runner, w, result->candidate_us, &result->stream_us, &below, err);
        if (below)
            mgl_measure_decide(m, MGL_OUTCOME_SUBFLOOR,
                               "workload %d: less than %.3f of the %.1f us that its bytes take",
                               w + 1, MGL_FLOOR_SHARE, result->stream_us);
    }
    if (below || !right)
        withhold(trial);
    note(m, MGL_MEASURE_FLOOR, at);
    return status;
}

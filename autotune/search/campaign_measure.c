/*
 * Timing of a trial: paired measurements of the incumbent and the candidate, in stages with a
 * number of pairs fixed in advance. A stage may end a hopeless trial (sequential screening). The
 * decision uses only its own fresh pairs (judge.c). If a time is below the time to stream the
 * candidate's bytes, the stream is measured again. If the time is still below, it is withheld
 * (SUBFLOOR).
 */
#include "autotune/search/campaign_parts.h"

#include "base/clock.h"
#include "base/memory.h"
#include "eval/statistics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_LEVEL 0.025 /* level on each side of intervals that are only displayed */

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

static mgl_status measure_workload(campaign *c, attempt *a, mgl_pair_stage stage, int workload,
                                   mgl_error *err)
{
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1] = "";
    mgl_outcome outcome = MGL_OUTCOME_OK;
    mgl_trial *trial = &a->trial;
    int count = mgl_judge_pairs(stage);
    mgl_pair *pairs = add_pairs(trial, count);
    if (!pairs)
        return mgl_fail_memory(err, (size_t)count * sizeof *pairs);
    double before = c->o->runner->busy_s;
    mgl_status status =
        c->o->runner->pair(c->o->runner, workload, count, mgl_draw(&a->seed),
                           stage == MGL_PAIRS_CONTROL, pairs, &outcome, diagnostic, err);
    trial->gpu_s += c->o->runner->busy_s - before;
    if (status)
        return status;
    if (outcome != MGL_OUTCOME_OK) {
        attempt_decide(a, outcome, "%s", diagnostic);
        return MGL_OK;
    }
    for (int i = 0; i < count; i++) {
        pairs[i].workload = workload;
        pairs[i].stage = (int)stage;
    }
    mgl_judge_drop(pairs, count);
    trial->pair_count += count;
    return MGL_OK;
}

mgl_status measure_stage(campaign *c, attempt *a, mgl_pair_stage stage, mgl_error *err)
{
    const double at = mgl_clock_s();
    mgl_status status = MGL_OK;
    for (int w = 0; w < a->trial.workload_count && !status && !a->decided; w++) {
        status = mgl_check_abort(c->o->abort, err);
        if (!status)
            status = measure_workload(c, a, stage, w, err);
    }
    if (stage != MGL_PAIRS_CONTROL) /* a control is accounted for as a whole */
        campaign_note(c, CAMPAIGN_PAIRS, at);
    return status;
}

/* ---- statistics of pairs --------------------------------------------------------------------- */

static void take_medians(const mgl_trial *trial, int workload, int stage, mgl_workload_result *out)
{
    double incumbent[MGL_MAX_SAMPLES], candidate[MGL_MAX_SAMPLES];
    size_t used = 0;
    for (int i = 0; i < trial->pair_count && used < MGL_MAX_SAMPLES; i++) {
        const mgl_pair *pair = &trial->pairs[i];
        if (pair->workload != workload || pair->stage != stage || pair->dropped)
            continue;
        incumbent[used] = pair->incumbent_us;
        candidate[used++] = pair->candidate_us;
    }
    out->incumbent_us = used ? mgl_median(incumbent, used) : 0;
    out->candidate_us = used ? mgl_median(candidate, used) : 0;
}

mgl_status measure_summarise(mgl_trial *trial, mgl_pair_stage stage, mgl_error *err)
{
    mgl_interval all = {0}, one;
    mgl_status status = mgl_judge_objective(trial->pairs, trial->pair_count, trial->workload_count,
                                            (int)stage, SHOWN_LEVEL, &all, err);
    trial->gain = all.gain;
    trial->gain_lo = all.lo;
    trial->gain_hi = all.hi;
    trial->p_value = all.p_value;
    for (int w = 0; w < trial->workload_count && !status; w++) {
        mgl_workload_result *result = &trial->workloads[w];
        status = mgl_judge_workload(trial->pairs, trial->pair_count, w, (int)stage, SHOWN_LEVEL,
                                    &one, err);
        if (status)
            break;
        result->gain = one.gain;
        result->gain_lo = one.lo;
        result->gain_hi = one.hi;
        result->pairs = one.used;
        result->dropped = one.dropped;
        take_medians(trial, w, (int)stage, result);
    }
    return status;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* Size of a program. A program is simpler if some of these are less and none is more. */
typedef struct size {
    int tasks, counters, waits, signals;
} size;

static size count_parts(const mgl_candidate *candidate)
{
    size all = {0};
    for (int p = 0; p < candidate->program_count; p++) {
        const mgl_program *program = candidate->programs[p];
        all.tasks += program->task_count;
        all.counters += program->counter_count;
        all.waits += program->wait_count;
        all.signals += program->signal_count;
    }
    return all;
}

static bool is_simpler(const campaign *c, const attempt *a)
{
    size old = count_parts(&c->incumbent), new = count_parts(&a->candidate);
    return new.tasks <= old.tasks &&new.counters <= old.counters &&new.waits <=
               old.waits &&new.signals <= old.signals &&memcmp(&old, &new, sizeof old) !=
           0;
}

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

/* Decides a disturbed trial as UNMEASURED (another process, other clocks, or throttling). The next
 * trial is a control. */
static mgl_status note_disturbance(campaign *c, attempt *a, mgl_pair_stage stage, mgl_error *err)
{
    mgl_trial *trial = &a->trial;
    int dropped = 0, pairs = 0;
    mgl_status status = measure_summarise(trial, stage, err);
    if (status)
        return status;
    for (int w = 0; w < trial->workload_count; w++) {
        dropped += trial->workloads[w].dropped;
        pairs += trial->workloads[w].dropped + trial->workloads[w].pairs;
    }
    withhold(trial);
    c->disturbed = true;
    attempt_decide(a, MGL_OUTCOME_UNMEASURED,
                   "%d of %d pairs had an event (throttling, other clocks, other processes): too "
                   "few are left to go by; hand it in again when the device is free",
                   dropped, pairs);
    return MGL_OK;
}

/* Ends a hopeless trial: it is significantly slower, or its gain is too small. */
static mgl_status give_up(attempt *a, mgl_pair_stage stage, mgl_error *err)
{
    mgl_trial *trial = &a->trial;
    mgl_status status = measure_summarise(trial, stage, err);
    if (status)
        return status;
    bool slower = trial->gain_hi < 0;
    for (int w = 0; w < trial->workload_count; w++)
        slower |= trial->workloads[w].gain_hi < -MGL_KEEP_LOSS;
    attempt_decide(a, slower ? MGL_OUTCOME_REGRESSION : MGL_OUTCOME_NO_GAIN,
                   "%s: a gain of %+.2f %% (%+.2f to %+.2f) after %d pairs",
                   stage == MGL_PAIRS_SCREEN ? "screened" : "second look", 100 * expm1(trial->gain),
                   100 * expm1(trial->gain_lo), 100 * expm1(trial->gain_hi), trial->pair_count);
    return MGL_OK;
}

static mgl_status look(campaign *c, attempt *a, mgl_pair_stage stage, mgl_error *err)
{
    const mgl_trial *trial = &a->trial;
    mgl_status status = measure_stage(c, a, stage, err);
    if (status)
        return campaign_forgive(c, a, status, err);
    if (!a->decided &&
        mgl_judge_is_disturbed(trial->pairs, trial->pair_count, trial->workload_count, (int)stage))
        return note_disturbance(c, a, stage, err);
    if (a->decided || mgl_judge_survives(trial->pairs, trial->pair_count, trial->workload_count,
                                         (int)stage, is_simpler(c, a)))
        return MGL_OK;
    return give_up(a, stage, err);
}

mgl_status measure_screen(campaign *c, attempt *a, mgl_error *err)
{
    return look(c, a, MGL_PAIRS_SCREEN, err);
}

static bool is_clear(const campaign *c, const attempt *a)
{
    return mgl_judge_is_clear(a->trial.pairs, a->trial.pair_count, a->trial.workload_count,
                              c->decisions + 1);
}

mgl_status measure_survivors(campaign *c, attempt *a, mgl_error *err)
{
    return is_clear(c, a) ? MGL_OK : look(c, a, MGL_PAIRS_SURVIVORS, err);
}

/* ---- the floor ------------------------------------------------------------------------------- */

static bool is_below(double us, double floor_us)
{
    return floor_us > 0 && us > 0 && us < MGL_FLOOR_SHARE * floor_us;
}

mgl_status measure_floor(campaign *c, int workload, double us, double *floor_us, bool *below,
                         mgl_error *err)
{
    mgl_runner *runner = c->o->runner;
    mgl_status status = runner->floor(runner, workload, false, floor_us, err);
    if (!status && is_below(us, *floor_us))
        status = runner->floor(runner, workload, true, floor_us, err);
    *below = !status && is_below(us, *floor_us);
    return status;
}

static mgl_status check_floors(campaign *c, attempt *a, mgl_error *err)
{
    mgl_status status = MGL_OK;
    bool right = mgl_outcome_is_correct(a->trial.outcome), below = false;
    const double at = mgl_clock_s();
    for (int w = 0; w < a->trial.workload_count && right && !status && !below; w++) {
        mgl_workload_result *result = &a->trial.workloads[w];
        status = measure_floor(c, w, result->candidate_us, &result->stream_us, &below, err);
        if (below)
            attempt_decide(a, MGL_OUTCOME_SUBFLOOR,
                           "workload %d: less than %.3f of the %.1f us that its bytes take", w + 1,
                           MGL_FLOOR_SHARE, result->stream_us);
    }
    if (below || !right)
        withhold(&a->trial);
    campaign_note(c, CAMPAIGN_FLOOR, at);
    return status;
}

/* ---- suspicious gains ------------------------------------------------------------------------ */

/* The nonce of the repeat is a hash of the trial's nonce, so that the repeat can be replayed. */
static void derive_nonce(const mgl_trial *trial, unsigned char nonce[MGL_SHA256_BYTES])
{
    char text[MGL_SHA256_HEX + 8];
    int length = snprintf(text, sizeof text, "%s again", trial->nonce);
    mgl_sha256_of(text, (size_t)length, nonce);
}

static mgl_status check_again(campaign *c, attempt *a, mgl_error *err)
{
    unsigned char nonce[MGL_SHA256_BYTES];
    mgl_runner_check found = {.outcome = MGL_OUTCOME_UNMEASURED};
    derive_nonce(&a->trial, nonce);
    mgl_status status = campaign_check(c, a, nonce, &found, err);
    if (!status && found.outcome != MGL_OUTCOME_OK)
        attempt_decide(a, found.outcome, "once more, in a fresh process: %s", found.diagnostic);
    return status;
}

/* Repeats the measurement with fresh processes, memory, weights, first tokens and pairs. */
static mgl_status measure_again(campaign *c, attempt *a, mgl_error *err)
{
    mgl_trial *trial = &a->trial;
    mgl_status status = campaign_tell(c, false, "again", trial, err, "trial %lld: %s: once more",
                                      (long long)trial->number, trial->diagnostic);
    if (!status)
        status = campaign_restart_runner(c, err);
    a->decided = false;
    if (!status)
        status = check_again(c, a, err);
    if (!status && !a->decided)
        status = measure_stage(c, a, MGL_PAIRS_REPEAT, err);
    if (!status && !a->decided)
        status = mgl_judge_repeat(trial, trial->workload_count, is_simpler(c, a), err);
    a->decided = true;
    return status;
}

mgl_status measure_decision(campaign *c, attempt *a, mgl_error *err)
{
    mgl_trial *trial = &a->trial;
    mgl_status status =
        measure_stage(c, a, is_clear(c, a) ? MGL_PAIRS_CLEAR : MGL_PAIRS_DECISION, err);
    if (status || a->decided)
        return campaign_forgive(c, a, status, err);
    status = mgl_judge_decide(trial, trial->workload_count, ++c->decisions, is_simpler(c, a), err);
    a->decided = true;
    if (status)
        return status;
    if (trial->outcome == MGL_OUTCOME_SUSPICIOUS && trial->gain_lo > 0)
        status = measure_again(c, a, err);
    c->disturbed |= trial->outcome == MGL_OUTCOME_UNMEASURED;
    mgl_judge_limit_loss(trial, c->lost);
    if (!status)
        status = check_floors(c, a, err);
    return campaign_forgive(c, a, status, err);
}

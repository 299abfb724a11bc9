/*
 * One trial: the stages of a proposal, cheapest first. Each stage may decide the outcome, and then
 * the remaining stages are skipped. Only decided trials are stored; a run that ends in the middle
 * of a trial leaves no trace of it.
 */
#include "autotune/search/campaign_parts.h"

#include "autotune/store/frozen.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* ---- an attempt ------------------------------------------------------------------------------ */

void attempt_begin(const campaign *c, attempt *a, int64_t number)
{
    *a = (attempt){.trial = {.campaign = c->record->id,
                             .number = number,
                             .against = c->record->incumbent,
                             .p_value = -1,
                             .verdict.outcome = MGL_OUTCOME_UNMEASURED,
                             .workload_count = c->subject->workloads.count,
                             .started_unix = (int64_t)time(NULL)},
                   .seed = mgl_campaign_seed(c->record->seed, number),
                   .began = campaign_clock(c)};
    for (int w = 0; w < a->trial.workload_count; w++)
        a->trial.workloads[w].error = a->trial.workloads[w].error_default = -1;
    mgl_format_into(a->trial.commit, sizeof a->trial.commit, "%s",
                    c->o->commit ? c->o->commit : "");
    mgl_format_into(a->trial.driver, sizeof a->trial.driver, "%s", c->device.driver);
    mgl_format_into(a->trial.device_uuid, sizeof a->trial.device_uuid, "%s", c->device.uuid);
    mgl_format_into(a->trial.manifest, sizeof a->trial.manifest, "%s", mgl_frozen_digest());
}

void attempt_clear(attempt *a)
{
    mgl_candidate_clear(&a->candidate);
    mgl_trial_clear(&a->trial);
}

void attempt_decide(attempt *a, mgl_outcome outcome, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mgl_format_ends_list(a->trial.verdict.diagnostic, sizeof a->trial.verdict.diagnostic, format,
                         args);
    va_end(args);
    a->trial.verdict.outcome = outcome;
    a->decided = true;
}

void attempt_take(attempt *a, const mgl_trial_verdict *verdict)
{
    a->trial.verdict = *verdict;
    a->decided = true;
}

mgl_status attempt_draw_nonce(attempt *a, unsigned char nonce[MGL_SHA256_BYTES], mgl_error *err)
{
    unsigned char bits[MGL_SHA256_BYTES];
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return mgl_fail_errno(err, "nonce", "the system provides no random numbers");
    mgl_sha256_of(bits, sizeof bits, nonce);
    mgl_sha256_hex(nonce, a->trial.nonce);
    return MGL_OK;
}

mgl_status campaign_forgive(campaign *c, attempt *a, mgl_status status, mgl_error *err)
{
    if (status != MGL_DEVICE && status != MGL_SYSTEM && status != MGL_WATCHDOG &&
        status != MGL_BAD_INPUT)
        return status;
    mgl_error why = *err;
    attempt_decide(a, MGL_OUTCOME_UNMEASURED, "the runner failed: %s%s%s", why.where,
                   why.where[0] ? ": " : "", why.message);
    status = MGL_DEVICE;
    while (status && ++c->broken < MOST_BROKEN) {
        mgl_status told =
            campaign_tell(c, true, "error", NULL, err, "%s; the runner is started again",
                          a->trial.verdict.diagnostic);
        status = told ? told : campaign_wait(c, 4 * c->broken, err);
        if (status)
            return status;
        status = campaign_restart_runner(c, err);
        if (status == MGL_NO_MEMORY || status == MGL_INTERRUPTED)
            return status;
    }
    return status ? mgl_fail(err, MGL_DEVICE, why.where,
                             "the runner failed %d consecutive times: %s", MOST_BROKEN, why.message)
                  : MGL_OK;
}

/* ---- stages before the device ---------------------------------------------------------------- */

static void take_refusal(attempt *a)
{
    if (a->candidate.verdict.outcome != MGL_OUTCOME_UNMEASURED)
        attempt_take(a, &a->candidate.verdict);
}

/* Makes the program. A program that the validator rejects still has a digest, by which a duplicate
 * is found. */
static mgl_status make(campaign *c, attempt *a, mgl_error *err)
{
    mgl_status status =
        a->gated ? MGL_OK : mgl_gate_make(c->subject, &a->trial.proposal, &a->candidate, err);
    if (status)
        return status;
    memcpy(a->trial.digest, a->candidate.digest, sizeof a->trial.digest);
    if (!a->candidate.digest[0])
        take_refusal(a);
    return MGL_OK;
}

/* A program that was tried before keeps its verdict. */
mgl_status campaign_recognise(campaign *c, attempt *a, mgl_error *err)
{
    mgl_trial earlier = {0};
    int64_t number = 0;
    mgl_status status =
        mgl_store_find_digest(c->o->store, c->record->id, a->trial.digest, &number, err);
    if (!status && number > 0)
        status = mgl_store_get_trial(c->o->store, c->record->id, number, false, &earlier, err);
    /* a submission of a program that was only screened is measured */
    bool unmeasured = earlier.verdict.outcome == MGL_OUTCOME_UNMEASURED && c->o->runner->measures;
    if (!status && number > 0 && unmeasured && a->trial.proposal.queued)
        number = 0;
    if (!status && number > 0) {
        a->trial.duplicate_of = (int)number;
        attempt_decide(a, MGL_OUTCOME_DUPLICATE, "the same program as trial %lld, which was %s",
                       (long long)number, mgl_outcome_name(earlier.verdict.outcome));
    } else if (!status && !strcmp(a->trial.digest, c->first)) {
        attempt_decide(a, MGL_OUTCOME_DUPLICATE, "the same program as the campaign's default");
    }
    mgl_trial_clear(&earlier);
    return status;
}

static mgl_status prove(campaign *c, attempt *a, mgl_error *err)
{
    mgl_status status =
        a->gated ? MGL_OK : mgl_gate_prove(c->subject, c->o->abort, &a->candidate, err);
    if (status)
        return status;
    a->trial.predicted_us = a->candidate.predicted;
    for (int w = 0; w < a->trial.workload_count; w++)
        a->trial.workloads[w].predicted_us = a->candidate.predicted_us[w];
    take_refusal(a);
    return MGL_OK;
}

mgl_status campaign_gate_apart(const campaign *c, attempt *a, mgl_error *err)
{
    a->gated = true;
    return mgl_gate_pass(c->subject, &a->trial.proposal, c->o->abort, &a->candidate, err);
}

/* Screens by the cost model if there is a clock: a program predicted to be much slower than its
 * parent stays unmeasured. Submissions are always measured. */
static mgl_status screen(campaign *c, attempt *a, mgl_error *err)
{
    mgl_trial parent = {0};
    const mgl_proposal *p = &a->trial.proposal;
    double before = c->first_predicted, now = a->trial.predicted_us;
    if (!c->o->runner->measures || p->queued || !(now > 0))
        return MGL_OK;
    mgl_status status = MGL_OK;
    if (p->parent > 0) {
        status = mgl_store_get_trial(c->o->store, c->record->id, p->parent, false, &parent, err);
        before = parent.predicted_us;
        mgl_trial_clear(&parent);
    }
    if (!status && before > 0 && now > before * (1 + MGL_SCREEN_MARGIN))
        attempt_decide(a, MGL_OUTCOME_UNMEASURED,
                       "screened: predicted %.1f us, %.1f %% more than the %.1f us of its parent; "
                       "trials up to %.0f %% slower are measured",
                       now, 100 * (now / before - 1), before, 100 * MGL_SCREEN_MARGIN);
    return status;
}

/* ---- correctness ----------------------------------------------------------------------------- */

/* Whether the proposal may use other number formats than the default. If so, its error is
 * limited. */
static bool changes_formats(const campaign *c, const mgl_proposal *proposal)
{
    const mgl_search_space *space = &c->subject->space;
    for (int k = 0; k < space->count; k++) {
        int knob = mgl_knob_find(space->knobs[k].name);
        if (space->knobs[k].changes_format && knob >= 0 &&
            mgl_knob_get(&proposal->config, knob) != mgl_knob_get(&c->subject->start, knob))
            return true;
    }
    return proposal->schedule != NULL;
}

static void take_errors(const campaign *c, attempt *a, const mgl_runner_check *found)
{
    bool limited = changes_formats(c, &a->trial.proposal);
    for (int w = 0; w < a->trial.workload_count; w++) {
        mgl_workload_result *result = &a->trial.workloads[w];
        result->error = found->errors[w];
        result->error_default = found->defaults[w];
        if (!a->decided && limited && result->error_default >= 0 &&
            result->error > MGL_ERROR_SHARE * result->error_default)
            attempt_decide(a, MGL_OUTCOME_MISMATCH,
                           "workload %d: with other number formats its error is %.2e, more than "
                           "%.2f times the default's %.2e",
                           w + 1, result->error, MGL_ERROR_SHARE, result->error_default);
    }
}

/* Whether the candidate crashed or hung. Several in a row may indicate a faulty machine. */
static bool is_suspect(mgl_outcome outcome)
{
    return outcome == MGL_OUTCOME_LAUNCH || outcome == MGL_OUTCOME_HANG ||
           outcome == MGL_OUTCOME_ILLEGAL_ADDRESS;
}

static mgl_status check(campaign *c, attempt *a, mgl_error *err)
{
    mgl_runner *runner = c->o->runner;
    unsigned char nonce[MGL_SHA256_BYTES];
    mgl_runner_check found = {.verdict.outcome = MGL_OUTCOME_UNMEASURED};
    for (int w = 0; w < MGL_MAX_WORKLOADS; w++)
        found.errors[w] = found.defaults[w] = -1;
    const double before = runner->busy_s, at = mgl_clock_s();
    mgl_status status = attempt_draw_nonce(a, nonce, err);
    if (!status)
        status = runner->check(runner, &a->candidate, nonce, &found, err);
    a->trial.gpu_s += runner->busy_s - before;
    campaign_note(c, CAMPAIGN_CHECK, at);
    if (status)
        return campaign_forgive(c, a, status, err);
    a->trial.same_kernel = found.same_kernel;
    a->trial.compile_s = found.compile_s;
    c->suspects = is_suspect(found.verdict.outcome) ? c->suspects + 1 : 0;
    if (found.verdict.outcome != MGL_OUTCOME_OK)
        attempt_take(a, &found.verdict);
    take_errors(c, a, &found);
    if (!a->decided && !c->o->runner->measures)
        attempt_decide(a, MGL_OUTCOME_UNMEASURED,
                       "correct, but not timed: the device measures no times");
    return MGL_OK;
}

/* ---- stages ---------------------------------------------------------------------------------- */

typedef mgl_status stage_fn(campaign *c, attempt *a, mgl_error *err);
static stage_fn *const stages[] = {
    make,           campaign_recognise, prove,           screen, check,
    measure_screen, measure_survivors,  measure_decision};
enum { STAGES = sizeof stages / sizeof *stages, STAGES_BEFORE_RUNNER = 4 };

static mgl_status go_through(campaign *c, attempt *a, size_t end, mgl_error *err)
{
    mgl_status status = MGL_OK;
    while (a->stage < end && !status && !a->decided) {
        status = mgl_check_abort(c->o->abort, err);
        if (!status)
            status = stages[a->stage++](c, a, err);
        if (!status && !a->decided && a->stage > STAGES_BEFORE_RUNNER)
            status = campaign_tend_ahead(c, err);
    }
    return status;
}

mgl_status campaign_gate(campaign *c, attempt *a, mgl_error *err)
{
    const double at = mgl_clock_s();
    mgl_status status = go_through(c, a, STAGES_BEFORE_RUNNER, err);
    campaign_note(c, CAMPAIGN_GATES, at);
    return status;
}

/* Makes the candidate the incumbent. The trial is already stored, so a run killed in between
 * resumes with the new incumbent. */
static mgl_status keep(campaign *c, attempt *a, mgl_error *err)
{
    mgl_candidate_clear(&c->incumbent);
    c->incumbent = a->candidate;
    a->candidate = (mgl_candidate){0};
    attempt unused = {0};
    mgl_status status = c->o->runner->promote(c->o->runner, err);
    status = campaign_forgive(c, &unused, status, err);
    return status ? status
                  : campaign_tell(c, true, "keep", &a->trial, err,
                                  "trial %lld of %s: %+.2f %% (%+.2f to %+.2f)",
                                  (long long)a->trial.number, a->trial.proposal.proposer,
                                  100 * expm1(a->trial.gain), 100 * expm1(a->trial.gain_lo),
                                  100 * expm1(a->trial.gain_hi));
}

mgl_status campaign_try(campaign *c, attempt *a, mgl_error *err)
{
    mgl_status status = a->stage < STAGES_BEFORE_RUNNER ? campaign_gate(c, a, err) : MGL_OK;
    if (!status)
        status = go_through(c, a, STAGES, err);
    if (status)
        return status;
    a->trial.seconds = campaign_clock(c) - a->began;
    status = campaign_store_trial(c, &a->trial, err);
    if (!status)
        status =
            campaign_tell(c, false, "trial", &a->trial, err, "trial %lld: %s",
                          (long long)a->trial.number, mgl_outcome_name(a->trial.verdict.outcome));
    if (!status && a->trial.verdict.outcome == MGL_OUTCOME_OK)
        status = keep(c, a, err);
    return status;
}

/*
 * Self-test and controls: whether measurements of this machine can be trusted. Runs at the start of
 * a run, and as every tenth trial.
 *
 * Self-test: a program with a planted error must be REJECTED; the incumbent must be correct on a
 * fresh nonce; measured against itself (A/A) it must show no gain, and must not be faster than its
 * bytes can be read. A control is an A/A measurement as a trial of its own. A bad control is
 * repeated at once. While the last two controls were bad, nothing else is tried, so nothing can be
 * kept.
 */
#include "autotune/search/campaign_parts.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

static const double longest_wait_s = 60; /* seconds between two controls while they are bad */

/* ---- a program that must be rejected --------------------------------------------------------- */

/* Length of the line at `at`, including its newline. */
static size_t line_length(const char *at)
{
    const char *end = strchr(at, '\n');
    return end ? (size_t)(end - at) + 1 : strlen(at);
}

/* The parts of a program that are removed to plant an error: the first `clear` of flag words and
 * the last `wait`. A program of one queue needs no waits, so its task before the last one is
 * removed instead. */
typedef struct planted {
    const char *clear, *wait, *task; /* positions in the text; NULL: nothing to remove */
} planted;

static planted find_parts(const char *text, int queues)
{
    planted p = {.clear = strstr(text, "\nclear ")};
    const char *last = text;
    if (p.clear)
        p.clear++;
    for (const char *at = strstr(text, " wait "); at; at = strstr(at + 1, " wait "))
        p.wait = at;
    for (const char *at = text; *at && queues == 1; at += line_length(at)) {
        p.task = last;
        last = at;
    }
    return p;
}

/* Copies the text without these parts. */
static void take_out(const char *text, const planted *p, mgl_text *out)
{
    for (const char *at = text; *at; at += line_length(at)) {
        const char *end = at + line_length(at);
        if (at == p->clear || at == p->task)
            continue;
        if (!p->wait || p->wait < at || p->wait >= end) {
            mgl_text_append(out, at, (size_t)(end - at));
            continue;
        }
        const char *signal = strstr(p->wait, " signal ");
        mgl_text_append(out, at, (size_t)(p->wait - at));
        if (signal && signal < end)
            mgl_text_append(out, signal, (size_t)(end - signal));
        else
            mgl_text_put(out, "\n");
    }
}

/* Makes the text of the incumbent's first program with a planted error. */
static mgl_status plant(const campaign *c, mgl_text *out, mgl_error *err)
{
    char *text;
    mgl_status status = mgl_plan_text(c->incumbent.plans[0], &text, NULL, err);
    if (status)
        return status;
    const planted parts = find_parts(text, c->incumbent.programs[0]->queue_count);
    take_out(text, &parts, out);
    mgl_text_free(text);
    return out->failed ? mgl_fail_memory(err, out->capacity) : MGL_OK;
}

static mgl_status test_validator(const campaign *c, mgl_error *err)
{
    mgl_text text = {0};
    mgl_plan *plan = NULL;
    mgl_candidate candidate = {.verdict.outcome = MGL_OUTCOME_UNMEASURED};
    mgl_status status = plant(c, &text, err);
    if (!status)
        status = mgl_plan_parse(text.bytes, text.length, "planted", &plan, err);
    mgl_text_clear(&text);
    if (status)
        return status;
    mgl_candidate_take(&candidate, plan);
    status = mgl_gate_prove(c->subject, c->o->abort, &candidate, err);
    if (!status && candidate.verdict.outcome != MGL_OUTCOME_REJECTED)
        status = mgl_fail(
            err, MGL_GATE, "self-test",
            "the validator accepts a program with a planted error; its verdicts cannot be trusted");
    mgl_candidate_clear(&candidate);
    return status;
}

/* ---- the machine ----------------------------------------------------------------------------- */

static mgl_status fail_unfit(const char *why, mgl_error *err)
{
    return mgl_fail(err, MGL_DEVICE, "self-test",
                    "the machine cannot measure reliably: %s; stop other programs on it, and see "
                    "`megalith doctor`",
                    why);
}

static mgl_status test_correctness(campaign *c, attempt *a, mgl_error *err)
{
    unsigned char nonce[MGL_SHA256_BYTES];
    mgl_runner_check found = {.verdict.outcome = MGL_OUTCOME_UNMEASURED};
    mgl_status status = attempt_draw_nonce(a, nonce, err);
    if (!status)
        status = c->o->runner->check(c->o->runner, &c->incumbent, nonce, &found, err);
    if (!status && found.verdict.outcome != MGL_OUTCOME_OK)
        status =
            mgl_fail(err, MGL_DEVICE, "self-test", "the incumbent itself does not pass: %s: %s",
                     mgl_outcome_name(found.verdict.outcome), found.verdict.diagnostic);
    return status;
}

static mgl_status measure_control(campaign *c, attempt *a, bool *bad, mgl_error *err)
{
    mgl_measurement m = measure_begin(c, a);
    mgl_status status = mgl_measure_control(&m, bad, err);
    a->decided = m.decided;
    return status;
}

static mgl_status test_floors(campaign *c, const attempt *a, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int w = 0; w < a->trial.workload_count && !status; w++) {
        double floor_us = 0;
        bool below = false;
        status = mgl_measure_floor(c->o->runner, w, a->trial.workloads[w].incumbent_us, &floor_us,
                                   &below, err);
        if (below)
            return fail_unfit("the incumbent is faster than its bytes can be read", err);
    }
    return status;
}

/* Attempts of the clock test. A noisy workload has bad controls by chance, so one good control
 * among these is enough. Later in the campaign, two bad controls in a row stop all keeps until a
 * good one. */
enum { SELF_TESTS = 4 };

static mgl_status test_clock(campaign *c, mgl_error *err)
{
    bool bad = true;
    mgl_status status = MGL_OK;
    for (int i = 0; i < SELF_TESTS && bad && !status; i++) {
        attempt a;
        attempt_begin(c, &a, 0);
        a.seed += (uint64_t)i;
        status = measure_control(c, &a, &bad, err);
        if (!status && a.decided && !mgl_outcome_is_correct(a.trial.verdict.outcome) &&
            a.trial.verdict.outcome != MGL_OUTCOME_SUSPICIOUS)
            status = fail_unfit(a.trial.verdict.diagnostic, err);
        if (!status)
            status = campaign_tell(c, true, "control", NULL, err, "%s", a.trial.verdict.diagnostic);
        if (!status && bad && i == SELF_TESTS - 1)
            status = fail_unfit(a.trial.verdict.diagnostic, err);
        if (!status && !bad)
            status = test_floors(c, &a, err);
        attempt_clear(&a);
    }
    return status;
}

mgl_status campaign_test_machine(campaign *c, mgl_error *err)
{
    attempt a;
    mgl_status status = test_validator(c, err);
    if (status || !c->o->runner->executes)
        return status;
    attempt_begin(c, &a, 0);
    status = test_correctness(c, &a, err);
    attempt_clear(&a);
    return status || !c->o->runner->measures ? status : test_clock(c, err);
}

/* ---- controls -------------------------------------------------------------------------------- */

bool campaign_wants_control(const campaign *c, int64_t number)
{
    return c->o->runner->measures &&
           (number % MGL_CONTROL_EVERY == 0 || c->bad_controls > 0 ||
            c->suspects >= MOST_SUSPECTS || c->broken > 0 || c->disturbed);
}

/* Counts a control and reports its consequences. */
static mgl_status take_control(campaign *c, const attempt *a, mgl_error *err)
{
    int before = c->bad_controls;
    bool bad = a->trial.verdict.outcome == MGL_OUTCOME_SUSPICIOUS;
    c->suspects = c->broken = 0;
    c->disturbed = false;
    c->bad_controls = bad ? before + 1 : 0;
    mgl_status status =
        campaign_tell(c, true, "control", &a->trial, err, "%s", a->trial.verdict.diagnostic);
    if (!status && c->bad_controls == MOST_BAD_CONTROLS)
        status =
            campaign_tell(c, true, "pause", NULL, err,
                          "%d consecutive controls failed: no trial is kept until a control passes",
                          MOST_BAD_CONTROLS);
    if (!status && before >= MOST_BAD_CONTROLS && !bad)
        status = campaign_tell(c, true, "control", NULL, err,
                               "a control passed: trials can be kept again");
    if (!status && c->bad_controls >= MOST_BAD_CONTROLS)
        status = campaign_wait(c, fmin(longest_wait_s, ldexp(1, c->bad_controls)), err);
    return status;
}

/* A failed launch of the incumbent is treated as a failure of the runner. */
static mgl_status blame_runner(campaign *c, attempt *a, mgl_error *err)
{
    mgl_fail(err, MGL_DEVICE, "control", "the incumbent itself: %s: %s",
             mgl_outcome_name(a->trial.verdict.outcome), a->trial.verdict.diagnostic);
    return campaign_forgive(c, a, MGL_DEVICE, err);
}

mgl_status campaign_run_control(campaign *c, int64_t number, mgl_error *err)
{
    attempt a;
    bool bad = false;
    attempt_begin(c, &a, number);
    a.trial.control = true;
    a.trial.proposal.config = c->subject->start;
    a.trial.proposal.parent = c->record->incumbent;
    memcpy(a.trial.digest, c->incumbent.digest, sizeof a.trial.digest);
    a.trial.proposal.proposer = mgl_strdup("control");
    const double at = mgl_clock_s();
    mgl_status status = a.trial.proposal.proposer ? measure_control(c, &a, &bad, err)
                                                  : mgl_fail_memory(err, sizeof "control");
    campaign_note(c, CAMPAIGN_CONTROL, at);
    bool measured = !status && (a.trial.verdict.outcome == MGL_OUTCOME_NO_GAIN ||
                                a.trial.verdict.outcome == MGL_OUTCOME_SUSPICIOUS);
    if (status)
        status = campaign_forgive(c, &a, status, err);
    else if (!measured)
        status = blame_runner(c, &a, err);
    a.trial.seconds = campaign_clock(c) - a.began;
    if (!status)
        status = campaign_store_trial(c, &a.trial, err);
    if (!status && measured)
        status = take_control(c, &a, err);
    attempt_clear(&a);
    return status;
}

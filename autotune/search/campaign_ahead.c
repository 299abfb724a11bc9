/*
 * Order of attempts: build-ahead scheduling. A proposal that needs another kernel waits while the
 * kernel compiles in the background. Meanwhile, proposals that keep the incumbent's kernel are
 * tried. So the device does not wait for the compiler while there is something to measure.
 *
 * Order: the oldest waiting attempt whose kernels are ready goes first. Otherwise a new proposal is
 * requested. If the list of waiting attempts is full (parallel compilations plus one), the oldest
 * goes, ready or not. Submissions from outside never wait.
 *
 * At the start, the device is idle while the incumbent's kernel compiles. The first proposals are
 * requested then, so their kernels compile at the same time. If a proposal found during a
 * measurement (campaign_early.c) needs a kernel, it joins the waiting list at once, and another
 * search begins.
 *
 * A proposal uses the seed of the number that it would have if all waiting attempts went before it,
 * so no seed is used twice. The proposer has learned every stored trial. The proposal is therefore
 * determined by the store and the waiting list, unless it was searched for during a measurement.
 * Waiting attempts are not stored, and a killed run loses them. A campaign whose runner compiles
 * nothing is the same with and without interruptions. If kernels are compiled, the order depends on
 * compile times, just as verdicts depend on the clock.
 */
#include "autotune/search/campaign_parts.h"

#include "base/clock.h"

#include <string.h>

/* Whether the attempt can be tried now. An attempt decided by the gates needs no kernel. */
static bool is_ready(const campaign *c, const attempt *a)
{
    mgl_runner *runner = c->o->runner;
    return !runner->is_ready || a->decided || runner->is_ready(runner, &a->candidate);
}

/* Moves an attempt from the waiting list to *out. The waiting time is not counted in the attempt's
 * time. */
static void take(campaign *c, int i, attempt *out)
{
    *out = c->ahead[i];
    out->began += campaign_clock(c);
    c->ahead_count--;
    memmove(c->ahead + i, c->ahead + i + 1, (size_t)(c->ahead_count - i) * sizeof *c->ahead);
}

static void put_off(campaign *c, attempt *a)
{
    a->began -= campaign_clock(c); /* the elapsed time, negative */
    c->ahead[c->ahead_count++] = *a;
    *a = (attempt){0};
    for (int i = 0; i < c->ahead_count; i++) /* starts further compilations if a compiler is free */
        if (!c->ahead[i].decided)
            c->o->runner->prepare(c->o->runner, &c->ahead[i].candidate);
}

/* Takes a waiting attempt that is ready, or the oldest if the list is full. */
static bool take_one(campaign *c, attempt *out)
{
    for (int i = 0; i < c->ahead_count; i++) {
        if (!is_ready(c, &c->ahead[i]))
            continue;
        take(c, i, out);
        return true;
    }
    if (c->ahead_count <= c->o->runner->compilers)
        return false;
    take(c, 0, out);
    return true;
}

/* Whether the same program is already waiting. A proposer that repeats a waiting program has
 * nothing else to propose until that program is tried. */
static bool waits(const campaign *c, const attempt *a)
{
    for (int i = 0; i < c->ahead_count && a->candidate.digest[0]; i++)
        if (!strcmp(c->ahead[i].candidate.digest, a->candidate.digest))
            return true;
    return false;
}

/* Requests a new proposal. If it may have to wait, runs it through the gates. */
static mgl_status ask(campaign *c, attempt *a, mgl_proposer_answer *answer, mgl_error *err)
{
    int64_t number = campaign_number(c);
    attempt_begin(c, a, number + c->ahead_count);
    a->trial.number = number;
    a->seed = campaign_draw_seed(c, number + c->ahead_count);
    const double at = mgl_clock_s();
    mgl_status status = campaign_find_proposal(c, a, answer, err);
    campaign_note(c, CAMPAIGN_PROPOSAL, at);
    if (!status && *answer == MGL_PROPOSED && !a->trial.proposal.queued && c->o->runner->is_ready)
        status = campaign_gate(c, a, err);
    return status;
}

/* Whether a new proposal is tried at once: a submission, or a proposal whose kernels are ready. */
static bool goes_at_once(const campaign *c, const attempt *a)
{
    return a->trial.proposal.queued || is_ready(c, a);
}

/* Requests proposals until one can be tried, or no proposer has another one. *waited: the attempt
 * comes from the waiting list. */
static mgl_status ask_for_one(campaign *c, attempt *a, mgl_proposer_answer *answer, bool *waited,
                              mgl_error *err)
{
    for (;;) {
        *waited = take_one(c, a);
        if (*waited)
            return MGL_OK;
        mgl_status status = ask(c, a, answer, err);
        if (status)
            return status;
        bool nothing = *answer != MGL_PROPOSED || (!goes_at_once(c, a) && waits(c, a));
        if (nothing && c->ahead_count > 0) {
            attempt_clear(a);
            take(c, 0, a);
            *waited = true;
            return MGL_OK;
        }
        if (nothing || goes_at_once(c, a))
            return MGL_OK;
        put_off(c, a);
    }
}

mgl_status campaign_find_attempt(campaign *c, attempt *a, mgl_proposer_answer *answer,
                                 mgl_error *err)
{
    bool waited = false;
    *a = (attempt){0};
    mgl_status status = ask_for_one(c, a, answer, &waited, err);
    if (status || !waited)
        return status;
    *answer = MGL_PROPOSED;
    a->trial.number = campaign_number(c);
    a->trial.against = c->record->incumbent;
    if (a->decided)
        return MGL_OK;
    /* an equal program may have been tried while this one waited */
    return campaign_recognise(c, a, err);
}

mgl_status campaign_begin_ahead(campaign *c, mgl_error *err)
{
    const int most = c->o->runner->compilers / 2;
    mgl_status status = MGL_OK;
    if (!campaign_can_look_early(c))
        return MGL_OK;
    c->o->runner->prepare(c->o->runner, &c->incumbent);
    for (bool more = true; more && c->ahead_count < most && !status;) {
        attempt a = {0};
        mgl_proposer_answer answer = MGL_PROPOSED;
        status = ask(c, &a, &answer, err);
        more = !status && answer == MGL_PROPOSED && !a.trial.proposal.queued && !waits(c, &a);
        if (more)
            put_off(c, &a);
        attempt_clear(&a);
    }
    return status;
}

mgl_status campaign_tend_ahead(campaign *c, mgl_error *err)
{
    const mgl_candidate *found = campaign_found_early(c);
    if (!found || c->ahead_count > c->o->runner->compilers ||
        c->o->runner->is_ready(c->o->runner, found))
        return MGL_OK;
    attempt a;
    mgl_proposer_answer answer = MGL_PROPOSED;
    mgl_status status = MGL_OK;
    attempt_begin(c, &a, campaign_number(c));
    campaign_take_early(c, &a, &answer, &status, err);
    if (!status)
        status = campaign_gate(c, &a, err);
    if (!status && !waits(c, &a))
        put_off(c, &a);
    attempt_clear(&a);
    if (!status)
        campaign_look_early(c);
    return status;
}

void campaign_forget_ahead(campaign *c)
{
    campaign_forget_early(c);
    for (int i = 0; i < c->ahead_count; i++)
        attempt_clear(&c->ahead[i]);
    c->ahead_count = 0;
}

/*
 * Which attempt comes next. A proposal that needs another kernel waits until that is compiled,
 * beside everything else, and what keeps the kernel is tried meanwhile: a device does not wait for
 * a compiler while there is something to measure.
 *
 * The order: one that waited goes as soon as its kernels are ready, the oldest first; else a new
 * proposal is asked for; where as many wait as the lab compiles, and one more, the oldest goes,
 * ready or not. What comes from outside is not put off.
 *
 * A device has nothing to do while the incumbent's own kernel is compiled, at the start: the first
 * proposals are asked for then, so that theirs are compiled beside it. And what is found early,
 * beside a measurement, and needs a kernel, waits from then on, so that another one is looked for.
 *
 * A proposal is asked for with the seed of the number that it would have if all that wait went
 * before it, so no seed is used twice, and it has heard of every trial in the store: by the store
 * and the list of those that wait it is determined, unless it was looked for beside a measurement
 * (campaign_early.c). Those that wait are in no store, and a run that
 * is killed loses them. So a campaign on a lab that compiles nothing is the same whether or not it
 * was interrupted; where kernels are compiled its order depends on how long that takes, as its
 * verdicts depend on a clock.
 */
#include "autotune/search/campaign_parts.h"

#include "base/clock.h"

#include <string.h>

/* What the gates have decided needs no kernel. */
static bool is_ready(const campaign *c, const attempt *a)
{
    mgl_runner *runner = c->o->runner;
    return !runner->is_ready || a->decided || runner->is_ready(runner, &a->candidate);
}

/* Takes one out of those that wait. Its time is that of its own stages. */
static void take(campaign *c, int i, attempt *out)
{
    *out = c->ahead[i];
    out->began += campaign_clock(c);
    c->ahead_count--;
    memmove(c->ahead + i, c->ahead + i + 1, (size_t)(c->ahead_count - i) * sizeof *c->ahead);
}

static void put_off(campaign *c, attempt *a)
{
    a->began -= campaign_clock(c); /* the time so far, negative */
    c->ahead[c->ahead_count++] = *a;
    *a = (attempt){0};
    for (int i = 0; i < c->ahead_count; i++) /* a compiler may have become free */
        if (!c->ahead[i].decided)
            c->o->runner->prepare(c->o->runner, &c->ahead[i].candidate);
}

/* Of those that wait: one that is ready, or the oldest where no more can wait. */
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

/* Who proposes what waits already has nothing else before that is tried. */
static bool waits(const campaign *c, const attempt *a)
{
    for (int i = 0; i < c->ahead_count && a->candidate.digest[0]; i++)
        if (!strcmp(c->ahead[i].candidate.digest, a->candidate.digest))
            return true;
    return false;
}

/* A new proposal, taken through the gates where it may have to wait. */
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

/* Whether a new proposal is tried at once: where nothing is compiled, everything is. */
static bool goes_at_once(const campaign *c, const attempt *a)
{
    return a->trial.proposal.queued || is_ready(c, a);
}

/* Asks until there is one to try, or none; *waited: it is one of those that waited. */
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
    return campaign_recognise(c, a, err); /* the same program may have been tried meanwhile */
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

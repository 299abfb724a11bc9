/*
 * Source of the next proposal (campaign_find_proposal). Queued submissions go first, because their
 * submitter waits for a verdict. Then comes a proposal that was searched for during a measurement
 * (campaign_early.c). Otherwise the trial's seed draws a proposer by the shares. If that proposer
 * has nothing yet, the next one in the list is asked. A proposer with nothing left is not drawn
 * again.
 */
#include "autotune/search/campaign_parts.h"

#include "base/format.h"
#include "base/memory.h"

#include <string.h>

/* Whether the trial exists. 0 is the default. Workers may have skipped a number. */
static bool has_trial(const campaign *c, int64_t number, mgl_error *why)
{
    mgl_trial trial = {0};
    if (number <= c->record->trials && !c->worker)
        return true;
    bool found =
        number == 0 || !mgl_store_get_trial(c->o->store, c->record->id, number, false, &trial, why);
    mgl_trial_clear(&trial);
    return found;
}

/* A text that is not a proposal is neither quoted nor stored, because it may contain secrets. */
static void forget_text(attempt *a)
{
    mgl_free(a->trial.proposal.schedule);
    a->trial.proposal.schedule = NULL;
    attempt_decide(a, MGL_OUTCOME_PARSE,
                   "proposal: not a JSON object {\"schema\": \"megalith.proposal/1\", ...}, and "
                   "not a schedule, whose first line is `megalith 1`");
}

/* Parses a submission as the attempt's proposal. A parse error is an outcome. */
static mgl_status read_submission(const campaign *c, const mgl_submission *s, attempt *a,
                                  mgl_error *err)
{
    mgl_error why = {0};
    mgl_proposal *p = &a->trial.proposal;
    mgl_status status =
        mgl_proposal_parse(s->text, strlen(s->text), "proposal", &c->subject->start, p, &why);
    if (status == MGL_BAD_INPUT || status == MGL_USAGE) {
        p->config = c->subject->start;
        mgl_trial_verdict_fail(&a->trial.verdict, MGL_OUTCOME_PARSE, &why);
        a->decided = true;
    } else if (status) {
        *err = why;
        return status;
    } else if (!mgl_proposal_begins(s->text, strlen(s->text))) {
        forget_text(a);
    } else if (!has_trial(c, p->parent, &why)) {
        attempt_decide(a, MGL_OUTCOME_PARSE, "parent: trial %lld does not exist",
                       (long long)p->parent);
        p->parent = 0;
    }
    p->queued = s->id;
    mgl_free(p->proposer);
    p->proposer = mgl_strdup(s->origin ? s->origin : "submit");
    return p->proposer ? MGL_OK : mgl_fail_memory(err, 1);
}

static mgl_status take_submission(campaign *c, attempt *a, bool *found, mgl_error *err)
{
    mgl_submission s = {0};
    mgl_status status = c->worker
                            ? mgl_store_take_submission(c->worker, a->trial.number, found, &s, err)
                            : mgl_store_next_submission(c->o->store, c->record->id, found, &s, err);
    if (!status && *found)
        status = read_submission(c, &s, a, err);
    mgl_submission_clear(&s);
    return status;
}

/* Draws a proposer by its share; -1: all are exhausted. */
static int draw_proposer(const campaign *c, attempt *a)
{
    double sum = 0;
    int last = -1;
    for (int i = 0; i < c->o->proposer_count; i++)
        sum += c->exhausted[i] ? 0 : c->o->proposers[i].share;
    double at = (double)(mgl_draw(&a->seed) >> 11) * 0x1p-53 * sum;
    for (int i = 0; i < c->o->proposer_count; i++) {
        if (c->exhausted[i])
            continue;
        last = i;
        at -= c->o->proposers[i].share;
        if (at < 0)
            break;
    }
    return last;
}

static mgl_status ask(const campaign *c, attempt *a, int which, mgl_proposer_answer *answer,
                      mgl_error *err)
{
    mgl_proposer *proposer = c->o->proposers[which].proposer;
    mgl_proposal *p = &a->trial.proposal;
    mgl_proposal_clear(p);
    mgl_status status = proposer->propose(proposer, mgl_draw(&a->seed), p, answer, err);
    if (status || *answer != MGL_PROPOSED || p->proposer)
        return status;
    p->proposer = mgl_strdup(proposer->name);
    return p->proposer ? MGL_OK : mgl_fail_memory(err, strlen(proposer->name) + 1);
}

mgl_status campaign_ask_proposers(campaign *c, attempt *a, mgl_proposer_answer *answer,
                                  mgl_error *err)
{
    mgl_status status = MGL_OK;
    int count = c->o->proposer_count, first = draw_proposer(c, a);
    *answer = MGL_NO_MORE;
    for (int i = 0; i < count && first >= 0; i++) {
        mgl_proposer_answer one = MGL_NO_MORE;
        int which = (first + i) % count;
        if (c->exhausted[which])
            continue;
        status = ask(c, a, which, &one, err);
        c->exhausted[which] = !status && one == MGL_NO_MORE;
        if (one == MGL_NOT_YET)
            *answer = MGL_NOT_YET;
        if (one == MGL_PROPOSED)
            *answer = one;
        if (status || one == MGL_PROPOSED)
            break;
    }
    /* an answer after an interruption is meaningless (proposer.h) */
    return status ? status : mgl_check_abort(c->o->abort, err);
}

mgl_status campaign_find_proposal(campaign *c, attempt *a, mgl_proposer_answer *answer,
                                  mgl_error *err)
{
    bool found = false;
    mgl_status status = c->o->submissions ? take_submission(c, a, &found, err) : MGL_OK;
    *answer = MGL_PROPOSED;
    if (status || found || campaign_take_early(c, a, answer, &status, err))
        return status;
    return campaign_ask_proposers(c, a, answer, err);
}

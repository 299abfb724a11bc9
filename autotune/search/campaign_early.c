/*
 * Asynchronous search for the next proposal while a candidate is measured. Pricing programs takes
 * 0.1 s or more of processor time, and lowering and proving as long; without this thread the
 * device would be idle meanwhile. At most one search runs. It requires a runner that compiles
 * kernels for a device, a campaign with one worker, and proposers that are all `apart`
 * (proposer.h). A proposal found this way is made without the result of the current trial.
 *
 * The search runs on its own thread. The thread is joined before any proposer learns, proposes or
 * closes.
 */
#include "autotune/search/campaign_parts.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>

struct campaign_early {
    campaign *campaign;
    attempt attempt; /* the attempt's number and seed, and the proposal that was found */
    mgl_proposer_answer answer;
    mgl_status status;
    mgl_error error;
    pthread_t thread;
    bool runs;        /* the thread is not joined yet */
    atomic_bool done; /* the thread has finished */
};

static void *look(void *argument)
{
    campaign_early *early = argument;
    early->status =
        campaign_ask_proposers(early->campaign, &early->attempt, &early->answer, &early->error);
    if (!early->status && early->answer == MGL_PROPOSED)
        early->status = campaign_gate_apart(early->campaign, &early->attempt, &early->error);
    atomic_store(&early->done, true);
    return NULL;
}

bool campaign_can_look_early(const campaign *c)
{
    bool possible = c->o->runner->is_ready && !c->worker;
    for (int i = 0; i < c->o->proposer_count; i++)
        possible = possible && c->o->proposers[i].proposer->apart;
    return possible;
}

/* If memory or threads run out, no search starts, and the proposal is requested later. */
void campaign_look_early(campaign *c)
{
    if (c->early || c->ahead_count > c->o->runner->compilers || !campaign_can_look_early(c))
        return;
    campaign_early *early = mgl_alloc_zero(1, sizeof *early);
    if (!early)
        return;
    /* the number after the current trial and all waiting attempts */
    const int64_t number = campaign_number(c) + 1 + c->ahead_count;
    early->campaign = c;
    attempt_begin(c, &early->attempt, number);
    early->attempt.seed = campaign_draw_seed(c, number);
    early->runs = !pthread_create(&early->thread, NULL, look, early);
    if (early->runs)
        c->early = early;
    else
        mgl_free(early);
}

void campaign_await_early(const campaign *c)
{
    if (c->early && c->early->runs)
        pthread_join(c->early->thread, NULL);
    if (c->early)
        c->early->runs = false;
}

const mgl_candidate *campaign_found_early(const campaign *c)
{
    const campaign_early *early = c->early;
    const bool found = early && atomic_load(&early->done) && !early->status &&
                       early->answer == MGL_PROPOSED &&
                       early->attempt.candidate.verdict.outcome == MGL_OUTCOME_UNMEASURED;
    return found ? &early->attempt.candidate : NULL;
}

bool campaign_take_early(campaign *c, attempt *a, mgl_proposer_answer *answer, mgl_status *status,
                         mgl_error *err)
{
    campaign_early *early = c->early;
    if (!early)
        return false;
    campaign_await_early(c);
    c->early = NULL;
    a->seed = early->attempt.seed;
    mgl_proposal_clear(&a->trial.proposal);
    a->trial.proposal = early->attempt.trial.proposal;
    early->attempt.trial.proposal = (mgl_proposal){0};
    a->candidate = early->attempt.candidate;
    early->attempt.candidate = (mgl_candidate){0};
    a->gated = early->attempt.gated;
    *answer = early->answer;
    *status = early->status;
    if (*status && err)
        *err = early->error;
    attempt_clear(&early->attempt);
    mgl_free(early);
    return true;
}

void campaign_forget_early(campaign *c)
{
    campaign_await_early(c);
    if (c->early)
        attempt_clear(&c->early->attempt);
    mgl_free(c->early);
    c->early = NULL;
}

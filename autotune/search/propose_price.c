/*
 * Prices drafts with the cost model, several in parallel. A prediction takes about 10 ms of
 * processor time and a proposal needs about a hundred, while the device may be idle.
 *
 * The result does not depend on the number of parallel threads. The drafts of a batch are drawn as
 * if none before them were accepted. When one is accepted, the search continues with the random
 * state after that draft, and discards the rest of the batch.
 */
#include "autotune/search/propose.h"

#include "base/parallel.h"

bool mgl_draft_price(const mgl_search *search, const mgl_program *other, mgl_draft *draft)
{
    mgl_proposal proposal = {.config = draft->config, .moves = draft->moves};
    mgl_candidate candidate;
    draft->predicted = 0;
    if (mgl_check_abort(search->abort, NULL) ||
        !mgl_search_is_new(search, &draft->config, &draft->moves) ||
        !mgl_search_fits(search, &draft->config))
        return false;
    if (!search->subject->has_costs && draft->moves.count == 0)
        return true;
    if (mgl_gate_lower(search->subject, &proposal, &candidate, NULL))
        return false;
    bool good = candidate.verdict.outcome == MGL_OUTCOME_UNMEASURED &&
                !(other && mgl_program_equal(candidate.programs[0], other));
    if (good)
        mgl_gate_predict(search->subject, &candidate);
    draft->predicted = candidate.predicted;
    mgl_candidate_clear(&candidate);
    return good && mgl_search_passes(search, draft->parent, draft->predicted);
}

/* ---- batches -------------------------------------------------------------------------------- */

int mgl_batch_room(const mgl_search *search, int most)
{
    int room = search->subject->has_costs ? mgl_parallel_threads() : 1;
    room = room < MGL_BATCH_DRAFTS ? room : MGL_BATCH_DRAFTS;
    return room < most ? room : most;
}

void mgl_batch_add(mgl_batch *batch, const mgl_draft *draft, uint64_t state, int place)
{
    int i = batch->count++;
    batch->drafts[i] = *draft;
    batch->states[i] = state;
    batch->places[i] = place;
}

/* Arguments of the threads. */
struct pricing {
    const mgl_search *search;
    const mgl_program *other;
    mgl_batch *batch;
};

static mgl_status price_one(void *user, int worker, size_t item, mgl_error *err)
{
    const struct pricing *p = user;
    (void)worker, (void)err;
    p->batch->hopes[item] = mgl_draft_price(p->search, p->other, &p->batch->drafts[item]);
    return MGL_OK;
}

void mgl_batch_price(const mgl_search *search, const mgl_program *other, mgl_batch *batch)
{
    struct pricing pricing = {search, other, batch};
    (void)mgl_parallel(batch->count, (size_t)batch->count, price_one, &pricing, NULL);
}

void mgl_batch_clear(mgl_batch *batch, int from)
{
    for (int i = from; i < batch->count; i++)
        mgl_moves_clear(&batch->drafts[i].moves);
    batch->count = 0;
}

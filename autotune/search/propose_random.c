/*
 * Random search: configs with every knob drawn from its values, among those that fit. Every fourth
 * proposal also has one to four moves. If the device has costs, a draft that is predicted to be
 * too slow is drawn again, with half as many changed knobs after every third priced draw. The
 * proposer learns only which configs were tried. It is the baseline for the other proposers.
 */
#include "autotune/search/propose.h"

enum { MOST_MOVES = 4, MOVES_EVERY = 4, TRIES = 50, PRICED = 15, HALVED_EVERY = 3 };

/* Changes about 1 / 2^halvings of the start's knobs. False: nothing fits. */
static bool draw_config(const mgl_search *search, int halvings, uint64_t *state,
                        mgl_schedule_config *config)
{
    mgl_schedule_config drawn = *config;
    if (!mgl_search_draw_config(search, state, &drawn))
        return false;
    for (int i = 0; i < search->subject->space.count; i++)
        if (halvings == 0 || mgl_draw_below(state, UINT64_C(1) << halvings) == 0)
            mgl_search_set_knob(search, i, mgl_knob_get(&drawn, search->numbers[i]), config);
    return true;
}

static mgl_status draw(const mgl_search *search, int halvings, uint64_t *state, mgl_draft *out,
                       mgl_error *err)
{
    int added;
    *out = (mgl_draft){.config = search->start};
    bool drawn = draw_config(search, halvings, state, &out->config);
    if (!search->subject->space.moves || (drawn && mgl_draw_below(state, MOVES_EVERY)))
        return MGL_OK;
    return mgl_search_add_moves(search, &out->config, 1 + (int)mgl_draw_below(state, MOST_MOVES),
                                state, &out->moves, &added, err);
}

static mgl_status propose(mgl_proposer *self, uint64_t seed, mgl_proposal *out,
                          mgl_proposer_answer *answer, mgl_error *err)
{
    const mgl_search *search = (const mgl_search *)self;
    uint64_t state = seed;
    mgl_status status = MGL_OK;
    *answer = MGL_NO_MORE; /* the space is small, and all of it was tried */
    for (int t = 0, priced = 0; t < TRIES && !status; t++) {
        mgl_draft drawn;
        status = draw(search, priced / HALVED_EVERY, &state, &drawn, err);
        bool hope = !status && mgl_draft_price(search, NULL, &drawn);
        priced += drawn.predicted > 0;
        if (hope || (drawn.predicted > 0 && priced == PRICED)) {
            *answer = MGL_PROPOSED;
            return mgl_search_propose(search, &drawn, out, err);
        }
        mgl_moves_clear(&drawn.moves);
    }
    return status;
}

mgl_status mgl_random_open(const mgl_proposer_options *options, mgl_proposer **out, mgl_error *err)
{
    const mgl_proposer self = {.name = "random", .propose = propose};
    return mgl_search_make(sizeof(mgl_search), &self, options, out, err);
}

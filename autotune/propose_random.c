/*
 * Random: configs of which every knob has any of its values, of those that fit; every fourth
 * has one to four moves as well. It learns nothing but what was tried: what other proposers
 * have to beat.
 */
#include "autotune/propose.h"

#include "base/memory.h"

enum { MOST_MOVES = 4, MOVES_EVERY = 4, TRIES = 50 };

static mgl_status propose(mgl_proposer *self, uint64_t seed, mgl_proposal *out,
                          mgl_proposer_answer *answer, mgl_error *err)
{
    const mgl_search *search = (const mgl_search *)self;
    uint64_t state = seed;
    mgl_status status = MGL_OK;
    for (int t = 0; t < TRIES && !status; t++) {
        mgl_schedule_config config = search->start;
        mgl_moves moves = {0};
        int added = 0;
        bool drawn = mgl_search_draw_config(search, &state, &config);
        if (search->subject->space.moves && (!drawn || !mgl_draw_below(&state, MOVES_EVERY)))
            status =
                mgl_search_add_moves(search, &config, 1 + (int)mgl_draw_below(&state, MOST_MOVES),
                                     &state, &moves, &added, err);
        if (!status && mgl_search_is_new(search, &config, &moves)) {
            *answer = MGL_PROPOSED;
            return mgl_search_propose(search, NULL, &config, &moves, out, err);
        }
        mgl_moves_clear(&moves);
    }
    *answer = MGL_NO_MORE; /* the space is small, and all of it was tried */
    return status;
}

static mgl_status learn(mgl_proposer *self, const mgl_trial *trial, mgl_error *err)
{
    return mgl_search_learn((mgl_search *)self, trial, err);
}

static void close_random(mgl_proposer *self)
{
    mgl_search_close((mgl_search *)self);
    mgl_free(self);
}

mgl_status mgl_random_open(const mgl_proposer_options *options, mgl_proposer **out, mgl_error *err)
{
    mgl_search *search = mgl_alloc_zero(1, sizeof *search);
    if (!search)
        return mgl_fail_memory(err, sizeof *search);
    search->proposer = (mgl_proposer){"random", propose, learn, close_random};
    mgl_status status = mgl_search_open(search, options, err);
    if (status)
        close_random(&search->proposer);
    else
        *out = &search->proposer;
    return status;
}

/*
 * Evolve: an evolutionary search. It makes local steps (propose_near.c) from the best program
 * until these stop helping. Then every second proposal is a child of a population of correct
 * programs, kept or not. If the start is poor (propose.h), the search begins with children. It
 * begins with a far step (propose_far.c) if the cost model finds a much better program. A child
 * changes one to three knobs of a member, appends moves, or crosses its config with another
 * member's. Knobs and kinds of moves that helped are drawn more often, and rejected ones less
 * often.
 *
 * Basin hopping (Wales and Doye, "Global Optimization by Basin-Hopping", 1997): after PLATEAU
 * trials without an improvement the search makes a large change of a good member, and continues
 * only among the programs found from there. After the next plateau it returns to all known
 * programs. The search never ends by itself.
 */
#include "autotune/search/propose.h"

#include <math.h>

enum {
    MEMBERS = MGL_MOST_RANKED,
    PLATEAU = 40,     /* trials without an improvement that end a basin */
    SCATTERED = 12,   /* trials around a poor start before children are made */
    FOUNDERS = 4,     /* members that a later basin needs before children are made */
    LEAST_JUMP = 4,   /* knobs that a hop changes, at least */
    MOST_JUMP = 8,    /* knobs that a hop changes, at most */
    MOST_MOVES = 3,   /* moves that a child appends, at most */
    MOST_CHANGES = 3, /* knobs that a child changes, at most */
    PARENTS = 3,      /* additional parents of a crossed child */
    /* trials without an improvement after which local steps alternate with children */
    NEAR_ALONE = 30,
    PRICED = 10, /* children that the cost model prices for one proposal, at most */
    TRIES = 60   /* draws that were tried before or do not fit, at most */
};
#define BETTER 1e-3 /* relative; a smaller improvement does not end a plateau */

typedef struct evolve {
    mgl_search search;
    size_t basin;       /* the population consists of known[basin] and later trials */
    double basin_value; /* best value in the basin, us; 0: none yet */
    int stalled;        /* trials since the basin improved */
    int hops;
} evolve;

/* Whether a program is as fast as a member of the population, and so probably the same program. */
static bool is_equal(const mgl_ranking *p, double value)
{
    bool equal = false;
    for (int i = 0; i < p->count; i++)
        equal |= p->values[i] <= value && p->values[i] >= value * (1 - 1e-9);
    return equal;
}

/* The population: the best correct programs. */
static mgl_ranking gather(const evolve *e, size_t from)
{
    mgl_ranking p = {.room = MEMBERS};
    for (size_t i = from; i < e->search.known_count; i++) {
        const mgl_known *known = &e->search.known[i];
        double value = mgl_search_value(&e->search, known);
        if (value > 0 && !known->duplicate && !is_equal(&p, value))
            mgl_ranking_add(&p, known, value);
    }
    return p;
}

/* Tournament selection: the best of three random members. NULL: the population is empty. */
static const mgl_known *draw_member(const mgl_ranking *p, uint64_t *state)
{
    if (p->count == 0)
        return NULL;
    uint64_t a = mgl_draw_below(state, (uint64_t)p->count);
    uint64_t b = mgl_draw_below(state, (uint64_t)p->count);
    uint64_t c = mgl_draw_below(state, (uint64_t)p->count);
    a = a < b ? a : b;
    return p->known[a < c ? a : c];
}

/* ---- children ------------------------------------------------------------------------------- */

/* Average gain of a change, smoothed by one virtual try with a gain of 1 %. */
static double share(const mgl_credit *credits, int count)
{
    double tries = 0, gain = 0;
    for (int i = 0; i < count; i++) {
        tries += credits[i].tries;
        gain += credits[i].gain;
    }
    return (gain + 0.01) / (tries + 1);
}

/* Decides at random whether a child gets moves instead of knob changes. The chance follows from the
 * past gains of both kinds, and is at least 0.1 for each. */
static bool wants_moves(const evolve *e, const mgl_draft *child, uint64_t *state)
{
    double knobs = share(e->search.knobs, MGL_KNOB_ROWS);
    double moves = share(e->search.moves, MGL_MOVE_COUNT), least = 0.1;
    /* prefers the kind with the larger gain */
    double chance = moves * moves / (knobs * knobs + moves * moves);
    if (!mgl_search_wants_moves(&e->search) || child->moves.count >= MGL_LINEAGE_MOVES)
        return false;
    if (e->search.subject->space.count == 0)
        return true;
    chance = chance < least ? least : chance > 1 - least ? 1 - least : chance;
    return mgl_draw_unit(state) < chance;
}

/* Varies a member: moves, crossover, or knob changes. */
static mgl_status vary(const evolve *e, const mgl_ranking *p, uint64_t *state, mgl_draft *child,
                       mgl_error *err)
{
    mgl_taste taste;
    int added = 0;
    if (wants_moves(e, child, state)) {
        int count = 1 + (int)mgl_draw_below(state, MOST_MOVES);
        mgl_status status = mgl_search_add_moves(&e->search, &child->config, count, state,
                                                 &child->moves, &added, err);
        if (status || added > 0)
            return status;
    }
    if (mgl_draw_below(state, 2)) /* moves fit only the program that they were drawn for */
        child->moves.count = 0;
    bool crosses = p->count > 1 && mgl_draw_below(state, 2);
    for (int i = 0; crosses && i < PARENTS; i++)
        mgl_search_cross(&e->search, &draw_member(p, state)->config, state, &child->config);
    mgl_search_get_taste(&e->search, &taste);
    if (!crosses || mgl_draw_below(state, 2))
        mgl_search_change_knobs(&e->search, &taste, 1 + (int)mgl_draw_below(state, MOST_CHANGES),
                                state, &child->config);
    return MGL_OK;
}

/* A large change of a good member: many knobs, and a prefix of its moves. */
static mgl_status jump(const evolve *e, uint64_t *state, mgl_draft *child, mgl_error *err)
{
    int knobs = LEAST_JUMP + (int)mgl_draw_below(state, MOST_JUMP - LEAST_JUMP + 1), added;
    child->moves.count = (int)mgl_draw_below(state, (uint64_t)child->moves.count + 1);
    if (mgl_search_change_knobs(&e->search, NULL, knobs, state, &child->config))
        return MGL_OK;
    return mgl_search_add_moves(&e->search, &child->config, LEAST_JUMP, state, &child->moves,
                                &added, err);
}

static mgl_status make_child(const evolve *e, bool far, uint64_t *state, mgl_draft *out,
                             mgl_error *err)
{
    mgl_ranking p = gather(e, e->basin);
    bool founding = e->basin > 0 && p.count < FOUNDERS;
    *out = (mgl_draft){.config = e->search.start};
    if (mgl_search_is_far(&e->search) && e->search.known_count < SCATTERED &&
        mgl_search_scatter(&e->search, state, &out->config))
        return MGL_OK;
    if (founding || far)
        p = gather(e, 0);
    mgl_status status = mgl_draft_begin(&e->search, draw_member(&p, state), out, err);
    if (status)
        return status;
    return founding || far ? jump(e, state, out, err) : vary(e, &p, state, out, err);
}

/* Whether the next proposal is a local step. If the start is poor, local steps are useful only if
 * the cost model can choose among them. */
static bool wants_near(const evolve *e, uint64_t *state)
{
    bool far = mgl_search_is_far(&e->search) && !e->search.subject->has_costs;
    int stalled = e->search.stalled;
    return far ? stalled >= MGL_SETTLED && mgl_draw_below(state, 2)
               : stalled < NEAR_ALONE || mgl_draw_below(state, 2);
}

/* Picks the best of several local steps; *found false: there is none. */
static mgl_status draw_near(const evolve *e, uint64_t *state, mgl_draft *out, bool *found,
                            mgl_error *err)
{
    mgl_draft list[MGL_NEAR_DRAWS];
    int count, chosen;
    mgl_status status = mgl_search_draw_near(&e->search, MGL_NEAR_DRAWS, state, list, &count, err);
    *found = !status && count > 0;
    chosen = *found ? mgl_search_pick(&e->search, list, count, state) : -1;
    for (int i = 0; i < count; i++)
        if (i == chosen)
            *out = list[i];
        else
            mgl_moves_clear(&list[i].moves);
    return status;
}

/* Draws one batch of children, as many as are priced in parallel; *t counts the draws. */
static mgl_status draw_batch(const evolve *e, int room, int *t, uint64_t *state, mgl_batch *batch,
                             mgl_error *err)
{
    mgl_status status = MGL_OK;
    room = mgl_batch_room(&e->search, room);
    for (; *t < TRIES && batch->count < room && !status; ++*t) {
        mgl_draft child = {0};
        status = make_child(e, *t > TRIES / 2, state, &child, err);
        mgl_batch_add(batch, &child, *state, *t + 1);
    }
    return status;
}

/* Draws children until one is new, fits and is promising. Otherwise returns the one with the best
 * prediction. */
static mgl_status draw_child(const evolve *e, uint64_t *state, mgl_draft *out, bool *found,
                             mgl_error *err)
{
    mgl_status status = MGL_OK;
    bool hope = false;
    *found = false;
    for (int t = 0, priced = 0; t < TRIES && !hope && priced < PRICED && !status;) {
        mgl_batch batch = {.count = 0};
        int i = 0;
        status = draw_batch(e, PRICED - priced, &t, state, &batch, err);
        if (!status)
            mgl_batch_price(&e->search, NULL, &batch);
        for (; i < batch.count && !hope && !status; i++) {
            mgl_draft child = batch.drafts[i];
            hope = batch.hopes[i];
            priced += child.predicted > 0;
            if (hope || (child.predicted > 0 && (!*found || child.predicted < out->predicted))) {
                if (*found)
                    mgl_moves_clear(&out->moves);
                *out = child;
                *found = true;
            } else {
                mgl_moves_clear(&child.moves);
            }
        }
        mgl_batch_clear(&batch, i);
    }
    if (status && *found)
        mgl_moves_clear(&out->moves);
    return status;
}

static mgl_status propose(mgl_proposer *self, uint64_t seed, mgl_proposal *out,
                          mgl_proposer_answer *answer, mgl_error *err)
{
    const evolve *e = (const evolve *)self;
    uint64_t state = seed;
    mgl_draft chosen = {0};
    mgl_status status = MGL_OK;
    bool found = false;
    status = mgl_search_look_far(&e->search, &state, &chosen, &found, err);
    if (!status && !found && wants_near(e, &state))
        status = draw_near(e, &state, &chosen, &found, err);
    if (!status && !found)
        status = draw_child(e, &state, &chosen, &found, err);
    *answer = found ? MGL_PROPOSED : MGL_NO_MORE; /* the space is small, and all of it was tried */
    return status || !found ? status : mgl_search_propose(&e->search, &chosen, out, err);
}

/* ---- learning ------------------------------------------------------------------------------- */

/* Changes the basin: alternates between programs found after a hop and all known programs. */
static void hop(evolve *e)
{
    e->hops++;
    e->stalled = 0;
    e->basin = e->hops % 2 ? e->search.known_count : 0;
    mgl_ranking p = gather(e, e->basin);
    e->basin_value = p.count ? p.values[0] : 0;
}

static mgl_status learn(mgl_proposer *self, const mgl_trial *trial, mgl_error *err)
{
    evolve *e = (evolve *)self;
    size_t before = e->search.known_count;
    mgl_status status = mgl_search_learn(&e->search, trial, err);
    if (status || e->search.known_count == before)
        return status;
    double value = mgl_search_value(&e->search, &e->search.known[before]);
    e->stalled++;
    if (value > 0 && (e->basin_value <= 0 || value < e->basin_value * (1 - BETTER))) {
        e->basin_value = value;
        e->stalled = 0;
    }
    if (e->stalled >= PLATEAU)
        hop(e);
    return MGL_OK;
}

mgl_status mgl_evolve_open(const mgl_proposer_options *options, mgl_proposer **out, mgl_error *err)
{
    const mgl_proposer self = {.name = "evolve", .propose = propose, .learn = learn};
    return mgl_search_make(sizeof(evolve), &self, options, out, err);
}

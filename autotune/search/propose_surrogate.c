/*
 * Surrogate: Bayesian optimization. Proposes the candidate with the largest expected improvement
 * by the model of surrogate.h, among candidates from random draws and hill climbing. If the device
 * has costs, the cost model prices the best candidates, and the final score uses its prediction,
 * corrected by the modeled error. If the start is good, the candidates are local steps
 * (propose_near.c). Wider candidates are added when local steps stop helping.
 */
#include "autotune/search/surrogate.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEADERS = 4,     /* members from which candidates are drawn */
    POOL = 240,      /* candidates that are drawn */
    CLIMBERS = 3,    /* number of the best that climb */
    CLIMBS = 8,      /* steps of a climb, at most */
    PRICED = 8,      /* candidates that the cost model prices */
    MOVED = 6,       /* candidates with additional moves */
    NEAR_ALONE = 30, /* trials without an improvement after which wide candidates are added */
    FEW = 4          /* local steps that are priced together with other candidates */
};

/* ---- candidates ----------------------------------------------------------------------------- */

typedef struct candidate {
    mgl_draft of;
    double score; /* larger is better */
} candidate;

/* The best candidates so far, best first; it owns their moves. */
struct best {
    candidate list[PRICED];
    int count, room;
};

static void best_clear(struct best *best)
{
    for (int i = 0; i < best->count; i++)
        mgl_moves_clear(&best->list[i].of.moves);
    best->count = 0;
}

/* Adds the candidate to the best ones if it is good enough; else releases it. */
static void consider(struct best *best, candidate *c)
{
    int at = best->count;
    while (at > 0 && best->list[at - 1].score < c->score)
        at--;
    for (int i = 0; i < best->count; i++)
        if (!memcmp(&best->list[i].of.config, &c->of.config, sizeof c->of.config) &&
            best->list[i].of.moves.count == c->of.moves.count && c->of.moves.count == 0)
            at = best->room;
    if (at >= best->room) {
        mgl_moves_clear(&c->of.moves);
        return;
    }
    if (best->count == best->room)
        mgl_moves_clear(&best->list[best->count - 1].of.moves);
    else
        best->count++;
    memmove(best->list + at + 1, best->list + at,
            (size_t)(best->count - 1 - at) * sizeof *best->list);
    best->list[at] = *c;
}

/* The config with each knob of the space at its nearest value. Knobs outside the space keep their
 * start values. */
static mgl_schedule_config snap(const mgl_surrogate *s, const mgl_schedule_config *config)
{
    const mgl_search_space *space = &s->search.subject->space;
    mgl_schedule_config out = s->search.start;
    for (int i = 0; i < space->count; i++) {
        const mgl_knob *knob = &space->knobs[i];
        int number = s->search.numbers[i], value = mgl_knob_get(config, number), nearest = 0;
        for (int v = 1; v < knob->count; v++)
            if (abs(knob->values[v] - value) < abs(knob->values[nearest] - value))
                nearest = v;
        if (knob->count > 0 && value != mgl_knob_get(&out, number))
            mgl_knob_set(&out, number, knob->values[nearest]);
    }
    return out;
}

/* The fastest trials of this campaign. */
static mgl_ranking find_leaders(const mgl_surrogate *s)
{
    mgl_ranking leaders = {.room = LEADERS};
    for (size_t i = 0; i < s->search.known_count; i++) {
        const mgl_known *known = &s->search.known[i];
        if (mgl_surrogate_has_value(s, known))
            mgl_ranking_add(&leaders, known, mgl_search_value(&s->search, known));
    }
    return leaders;
}

/* Scores a candidate that is new and fits. Fails only if memory runs out. */
static mgl_status weigh(const mgl_surrogate *s, const mgl_surrogate_fit *f, const mgl_known *parent,
                        const mgl_schedule_config *config, struct best *best, mgl_error *err)
{
    candidate c;
    mgl_status status = mgl_draft_begin(&s->search, parent, &c.of, err);
    c.of.config = *config;
    if (!status && mgl_search_is_new(&s->search, &c.of.config, &c.of.moves) &&
        mgl_search_fits(&s->search, &c.of.config)) {
        c.score = mgl_surrogate_score(s, f, &c.of.config, &c.of.moves);
        consider(best, &c);
        return MGL_OK;
    }
    mgl_moves_clear(&c.of.moves);
    return status;
}

static mgl_status draw_pool(const mgl_surrogate *s, const mgl_surrogate_fit *f, uint64_t *state,
                            struct best *best, mgl_error *err)
{
    const mgl_ranking leaders = find_leaders(s);
    const int count = leaders.count;
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < s->prior.count && f->own < MGL_SURROGATE_FOUNDERS && !status; i++) {
        mgl_schedule_config config = snap(s, &s->prior.configs[i]);
        status = weigh(s, f, NULL, &config, best, err);
    }
    for (int i = 0; i < POOL && !status; i++) {
        const mgl_known *parent = count ? leaders.known[i % count] : NULL;
        mgl_schedule_config config = parent ? parent->config : s->search.start;
        if (i % 4 == 3)
            mgl_search_draw_config(&s->search, state, &config);
        else
            mgl_search_change_knobs(&s->search, NULL, 1 + i % 3, state, &config);
        if (i % 4 == 2 && count)
            mgl_search_cross(&s->search, &leaders.known[i / 4 % count]->config, state, &config);
        status = weigh(s, f, i % 4 == 3 ? NULL : parent, &config, best, err);
    }
    return status;
}

/* Hill climbing: moves to the best config that differs in one knob, until none is better. */
static mgl_status climb(const mgl_surrogate *s, const mgl_surrogate_fit *f, const candidate *from,
                        struct best *best, mgl_error *err)
{
    const mgl_search_space *space = &s->search.subject->space;
    mgl_schedule_config at = from->of.config;
    double score_at = from->score;
    mgl_status status = MGL_OK;
    for (int step = 0; step < CLIMBS && !status; step++) {
        struct best found = {.room = 1};
        for (int i = 0; i < space->count && !status; i++)
            for (int v = 0; v < space->knobs[i].count && !status; v++) {
                mgl_schedule_config next = at;
                mgl_search_set_knob(&s->search, i, space->knobs[i].values[v], &next);
                status = weigh(s, f, from->of.parent, &next, &found, err);
            }
        if (status || found.count == 0 || found.list[0].score <= score_at) {
            best_clear(&found);
            break;
        }
        at = found.list[0].of.config;
        score_at = found.list[0].score;
        consider(best, &found.list[0]);
    }
    return status;
}

static mgl_status climb_all(const mgl_surrogate *s, const mgl_surrogate_fit *f, struct best *best,
                            mgl_error *err)
{
    candidate from[CLIMBERS];
    int count = best->count < CLIMBERS ? best->count : CLIMBERS;
    mgl_status status = MGL_OK;
    for (int i = 0; i < count; i++)
        from[i] = best->list[i];
    for (int i = 0; i < count && !status; i++)
        status = climb(s, f, &from[i], best, err);
    return status;
}

/* Draws candidates that add moves to the leaders. */
static mgl_status draw_moves(const mgl_surrogate *s, const mgl_surrogate_fit *f, uint64_t *state,
                             struct best *best, mgl_error *err)
{
    const mgl_ranking leaders = find_leaders(s);
    const int count = leaders.count;
    mgl_status status = MGL_OK;
    for (int i = 0; i < MOVED && count && mgl_search_wants_moves(&s->search) && !status; i++) {
        candidate c;
        int added = 0;
        status = mgl_draft_begin(&s->search, leaders.known[i % count], &c.of, err);
        if (!status)
            status = mgl_search_add_moves(&s->search, &c.of.config, 1 + i % 3, state, &c.of.moves,
                                          &added, err);
        if (!status && added && mgl_search_is_new(&s->search, &c.of.config, &c.of.moves)) {
            c.score = mgl_surrogate_score(s, f, &c.of.config, &c.of.moves);
            consider(best, &c);
        } else {
            mgl_moves_clear(&c.of.moves);
        }
    }
    return status;
}

/* The score of a candidate with its prediction; -INFINITY: not promising. */
static double price_one(const mgl_surrogate *s, const mgl_surrogate_fit *f, const candidate *c)
{
    double predicted = mgl_search_predict(&s->search, &c->of.config, &c->of.moves);
    if (!(predicted > 0) || !mgl_search_passes(&s->search, c->of.parent, predicted))
        return -INFINITY;
    return f->priced && f->own > 0
               ? mgl_surrogate_priced_score(s, f, &c->of.config, &c->of.moves, predicted)
               : c->score;
}

/* Prices the best candidates and moves the best of them to the front. If none is promising, empties
 * the list. */
static void price(const mgl_surrogate *s, const mgl_surrogate_fit *f, struct best *best)
{
    int chosen = 0;
    double most = -INFINITY;
    if (!s->search.subject->has_costs)
        return;
    for (int i = 0; i < best->count; i++) {
        double score = price_one(s, f, &best->list[i]);
        if (score > most) {
            most = score;
            chosen = i;
        }
    }
    if (most == -INFINITY) {
        best_clear(best);
        return;
    }
    candidate first = best->list[0];
    best->list[0] = best->list[chosen];
    best->list[0].score = most;
    best->list[chosen] = first;
}

/* ---- proposing ------------------------------------------------------------------------------ */

/* Initial design: changes each knob of the start with probability 1/2, so that few trials show the
 * effect of each. With costs, takes the first promising draft, or the best priced one. */
static void found(const mgl_surrogate *s, uint64_t *state, struct best *best)
{
    enum { TRIES = 500 };
    bool hope = false;
    for (int t = 0, priced = 0; t < TRIES && priced < PRICED && !hope; t++) {
        candidate c = {.of = {.config = s->search.start}};
        mgl_search_scatter(&s->search, state, &c.of.config);
        hope = mgl_draft_price(&s->search, NULL, &c.of);
        priced += c.of.predicted > 0;
        c.score = -c.of.predicted;
        if (hope || c.of.predicted > 0)
            consider(best, &c);
    }
}

/* Adds a local step: the step with the largest expected improvement, or the step that
 * mgl_search_pick picks. If `best` already has a candidate, keeps the better one. */
static mgl_status consider_near(const mgl_surrogate *s, const mgl_surrogate_fit *f, int most,
                                uint64_t *state, struct best *best, mgl_error *err)
{
    mgl_draft list[MGL_NEAR_DRAWS];
    int count, chosen = -1;
    mgl_status status = mgl_search_draw_near(&s->search, most, state, list, &count, err);
    double score = -INFINITY;
    /* If most steps have equal values, the Gaussian process is too certain about the others. So
     * half of the steps are picked by the uncertainty of their knobs (mgl_search_pick). */
    bool priced = f->priced && f->own >= MGL_SURROGATE_FOUNDERS && s->search.subject->has_costs &&
                  mgl_draw_below(state, 2);
    if (!status && count > 0 && !priced)
        chosen = mgl_search_pick(&s->search, list, count, state);
    for (int i = 0; i < count && priced; i++) {
        double found =
            mgl_surrogate_priced_score(s, f, &list[i].config, &list[i].moves, list[i].predicted);
        chosen = found > score ? i : chosen;
        score = found > score ? found : score;
    }
    for (int i = 0; i < count; i++)
        if (i == chosen && !status && (best->count == 0 || score > best->list[0].score)) {
            best_clear(best);
            best->list[best->count++] = (candidate){list[i], score};
        } else {
            mgl_moves_clear(&list[i].moves);
        }
    return status;
}

static mgl_status choose_far(const mgl_surrogate *s, const mgl_surrogate_fit *f, uint64_t *state,
                             struct best *best, mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (f->count < 2 || (s->prior.count == 0 && f->own < MGL_SURROGATE_FOUNDERS)) {
        found(s, state, best);
        return MGL_OK;
    }
    status = draw_pool(s, f, state, best, err);
    if (!status)
        status = climb_all(s, f, best, err);
    if (!status)
        status = draw_moves(s, f, state, best, err);
    if (!status && best->count > 0)
        price(s, f, best);
    return status;
}

/* Whether to try wide candidates besides local steps. If the start is poor: always. If this
 * campaign has few trials and earlier campaigns have configs: with probability 1/2. Otherwise,
 * after local steps have stopped helping: with probability 1/4. */
static bool wants_wide(const mgl_surrogate *s, const mgl_surrogate_fit *f, uint64_t *state)
{
    bool inherits = s->prior.count > 0 && f->own < MGL_SURROGATE_FOUNDERS;
    if (mgl_search_is_far(&s->search))
        return true;
    return inherits ? mgl_draw_below(state, 2) != 0
                    : s->search.stalled >= NEAR_ALONE && mgl_draw_below(state, 4) == 0;
}

static mgl_status choose(mgl_surrogate *s, uint64_t *state, struct best *best, mgl_error *err)
{
    mgl_surrogate_fit f = {0};
    const bool far = mgl_search_is_far(&s->search);
    mgl_status status = mgl_surrogate_fit_all(s, &f, err);
    bool looks = false;
    mgl_draft draft = {0};
    if (!status)
        status = mgl_search_look_far(&s->search, state, &draft, &looks, err);
    if (looks)
        best->list[best->count++] = (candidate){draft, 0};
    bool wide = !status && !looks && wants_wide(s, &f, state);
    bool near = far && !looks && s->search.stalled >= MGL_SETTLED && mgl_draw_below(state, 2);
    if (!status && wide)
        status = choose_far(s, &f, state, best, err);
    if (!status && (near || best->count == 0))
        status = consider_near(s, &f, wide ? FEW : MGL_NEAR_DRAWS, state, best, err);
    if (!status && best->count == 0 && !wide)
        status = choose_far(s, &f, state, best, err);
    if (!status && best->count == 0) /* no local step is promising: continue with a random draft */
        found(s, state, best);
    mgl_surrogate_fit_clear(&f);
    return status;
}

static mgl_status propose(mgl_proposer *self, uint64_t seed, mgl_proposal *out,
                          mgl_proposer_answer *answer, mgl_error *err)
{
    mgl_surrogate *s = (mgl_surrogate *)self;
    struct best best = {.room = PRICED};
    uint64_t state = seed;
    mgl_status status = choose(s, &state, &best, err);
    *answer = best.count > 0 ? MGL_PROPOSED : MGL_NO_MORE;
    if (!status && best.count > 0)
        status = mgl_search_propose(&s->search, &best.list[0].of, out, err);
    best_clear(&best);
    return status;
}

static void close_surrogate(mgl_proposer *self)
{
    mgl_surrogate *s = (mgl_surrogate *)self;
    mgl_free(s->prior.points);
    mgl_free(s->prior.configs);
    mgl_search_close(&s->search);
    mgl_free(s);
}

mgl_status mgl_surrogate_open(const mgl_proposer_options *options, mgl_proposer **out,
                              mgl_error *err)
{
    const mgl_proposer self = {.name = "surrogate", .propose = propose, .close = close_surrogate};
    mgl_status status = mgl_search_make(sizeof(mgl_surrogate), &self, options, out, err);
    if (status)
        return status;
    mgl_surrogate *s = (mgl_surrogate *)*out;
    s->features = options->subject->space.count + MGL_MOVE_COUNT;
    mgl_surrogate_reset(s);
    return MGL_OK;
}

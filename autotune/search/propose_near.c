/*
 * Local steps: proposals near a program that is hard to improve. A proposal is the best of several
 * draws, by the cost model and its past error. Each draw changes a knob to an adjacent value, adds
 * moves of one kind, or combines the changes of two or three earlier trials with a gain. The gain
 * of one change is often smaller than its measurement error, so gains are sampled from their
 * posterior (Thompson sampling: Russo and others, "A Tutorial on Thompson Sampling", 2018).
 */
#include "autotune/search/propose.h"

#include "schedule/lower/choose.h"

#include <math.h>
#include <string.h>

enum {
    WIDER_EVERY = 15, /* trials without an improvement after which a step changes one knob more */
    /* limit of knobs of a step, and of moves of a bundle */
    MOST_WIDTH = 3,
    DRAWS_EACH = 2, /* draws for each priced draft, at most */
    NO_COSTS = 40   /* draws until one fits, if nothing is priced */
};
#define LIKELY  0.01 /* prior standard deviation of a change's log gain */
#define REFUSED 0.02 /* penalty of a rejection, added to the log value */
/* Standard deviation of the cost model's error in the log value: for a knob change, for a move in
 * all layers, and for a move in one layer. */
#define KNOB_DOUBT 0.03
#define ALL_DOUBT  0.01
#define MOVE_DOUBT 0.003

/* Draws from the standard normal distribution (Box-Muller transform). */
static double draw_normal(uint64_t *state)
{
    double u = 1 - mgl_draw_unit(state), v = mgl_draw_unit(state);
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

/* Draws from the posterior of a gain that was measured with this standard deviation (normal prior
 * and noise). */
static double draw_gain(double gain, double deviation, uint64_t *state)
{
    double own = LIKELY * LIKELY, noise = deviation * deviation, share = own / (own + noise);
    return gain * share + sqrt(share * noise) * draw_normal(state);
}

/* ---- drafts ------------------------------------------------------------------------------- */

mgl_status mgl_draft_begin(const mgl_search *search, const mgl_known *parent, mgl_draft *out,
                           mgl_error *err)
{
    *out = (mgl_draft){.parent = parent, .config = parent ? parent->config : search->start};
    return parent ? mgl_moves_copy(&parent->moves, parent->moves.count, &out->moves, err) : MGL_OK;
}

/* ---- parents --------------------------------------------------------------------------------- */

/* The incumbent, or with probability 1/2 a correct program that may be better. NULL: the start. */
static const mgl_known *draw_parent(const mgl_search *search, uint64_t *state)
{
    const mgl_known *incumbent = mgl_search_incumbent(search), *best = incumbent;
    double base = incumbent ? mgl_search_value(search, incumbent) : mgl_search_start_value(search);
    double most = 0;
    if (base <= 0 || mgl_draw_below(state, 2))
        return incumbent;
    for (size_t i = 0; i < search->known_count; i++) {
        const mgl_known *known = &search->known[i];
        double value = mgl_search_value(search, known);
        bool comparable = known->measured > 0 || search->default_us <= 0;
        if (value <= 0 || !comparable || known->duplicate ||
            fabs(log(base / value)) > MOST_WIDTH * LIKELY)
            continue;
        double gain = draw_gain(log(base / value), known->deviation, state);
        if (gain > most) {
            most = gain;
            best = known;
        }
    }
    return best;
}

/* ---- knobs ---------------------------------------------------------------------------------- */

/* Replaces each 0 in the config by the value that lowering chooses. */
static mgl_schedule_config resolve(const mgl_search *search, const mgl_schedule_config *config)
{
    const mgl_subject *subject = search->subject;
    mgl_lower_options options = {.dtype = subject->dtype,
                                 .capacity = subject->capacity,
                                 .sequences = subject->workloads.list[0].batch};
    mgl_schedule_config out = *config;
    mgl_choices c;
    if (mgl_schedule_choose(subject->graph, &subject->target, &options, config, &c, NULL))
        return out;
    out.rows = c.rows;
    out.second_rows = c.second_rows;
    out.splits = c.splits;
    out.exchange = c.flags ? MGL_EXCHANGE_FLAGS : MGL_EXCHANGE_COUNTERS;
    out.page_bytes = c.exec.page_bytes;
    out.ring_pages = c.exec.ring_pages;
    out.stage_bytes = c.exec.stage_bytes;
    out.pending_bytes = c.exec.pending_bytes;
    for (int s = 0; s < MGL_STEP_COUNT; s++) {
        out.queues[s].first = c.queues[s].first;
        out.queues[s].count = c.queues[s].count;
    }
    return out;
}

/* Changes a knob to the next value up or down from its value, or from lowering's choice if it is 0.
 * The value 0 ("lowering chooses") is drawn occasionally. False: there is no other value. */
static bool step_knob(const mgl_search *search, int knob, uint64_t *state,
                      mgl_schedule_config *config)
{
    const mgl_knob *values = &search->subject->space.knobs[knob];
    int number = search->numbers[knob], own = mgl_knob_get(config, number);
    const mgl_schedule_config resolved = resolve(search, config);
    int value = mgl_knob_get(&resolved, number), below = own, above = own;
    bool open = mgl_knob_row_get(number)->open;
    for (int v = 0; v < values->count; v++) {
        int x = values->values[v];
        if (x == 0 && open)
            continue;
        if (x < value)
            below = x;
        else if (x > value && above == own)
            above = x;
    }
    int next = mgl_draw_below(state, 2) ? above : below;
    if (next == own)
        next = next == above ? below : above;
    if (open && own != 0 && values->values[0] == 0 && mgl_draw_below(state, 4) == 0)
        next = 0;
    if (next == own)
        return false;
    mgl_search_set_knob(search, knob, next, config);
    return true;
}

static void step_knobs(const mgl_search *search, int count, uint64_t *state,
                       mgl_schedule_config *config)
{
    double weights[MGL_MAX_KNOBS];
    int knobs = search->subject->space.count;
    for (int i = 0; i < knobs; i++)
        weights[i] = mgl_credit_promise(&search->knobs[search->numbers[i]]);
    for (int done = 0; done < count;) {
        int knob = mgl_draw_weighted(state, weights, knobs);
        if (knob < 0)
            return;
        weights[knob] = 0;
        done += step_knob(search, knob, state, config);
    }
}

/* ---- moves ---------------------------------------------------------------------------------- */

/* Adds one move, in half of the cases the same in all layers, or a few moves of one kind. Moves
 * that reorder tasks stay in one layer, because the same order in all layers often deadlocks. */
static mgl_status add_bundle(const mgl_search *search, const mgl_program *program, uint64_t *state,
                             mgl_moves *moves, mgl_error *err)
{
    mgl_move move;
    if (!mgl_search_draw_move(search, program, state, &move))
        return MGL_OK;
    const unsigned kind = 1U << move.kind;
    bool ordered = move.kind == MGL_MOVE_SHIFT || move.kind == MGL_MOVE_CLEAR;
    if (move.kind != MGL_MOVE_SAMPLE && !ordered && mgl_draw_below(state, 2))
        move.layer = MGL_MOVE_ALL;
    mgl_status status = mgl_moves_add(moves, &move, err);
    int more = mgl_draw_below(state, 2) ? (int)mgl_draw_below(state, MOST_WIDTH) : 0;
    while (more-- > 0 && !status && moves->count < MGL_LINEAGE_MOVES) {
        if (!mgl_move_draw(program, kind, state, &move))
            break;
        status = mgl_moves_add(moves, &move, err);
    }
    return status;
}

/* ---- combining ------------------------------------------------------------------------------- */

/* Draws from the posterior of the gain of a trial over its parent; 0: unknown, or no gain. */
static double draw_own_gain(const mgl_search *search, const mgl_known *known, uint64_t *state)
{
    const mgl_known start = {.measured = search->default_us};
    const mgl_known *parent = known->parent ? mgl_search_find(search, known->parent) : &start;
    bool measured = search->default_us > 0;
    if (!parent || !known->correct || known->duplicate ||
        (measured && (known->measured <= 0 || parent->measured <= 0)))
        return 0;
    double before =
        parent == &start ? mgl_search_start_value(search) : mgl_search_value(search, parent);
    double value = mgl_search_value(search, known);
    double gain = before > 0 && value > 0 ? log(before / value) : 0;
    double noise = hypot(known->deviation, parent->deviation);
    return gain > 0 ? draw_gain(gain, noise, state) : 0;
}

/* Applies the changes that a trial made to its parent to the draft. */
static mgl_status take_changes(const mgl_search *search, const mgl_known *known, mgl_draft *draft,
                               mgl_error *err)
{
    const mgl_known start = {.config = search->start};
    const mgl_known *parent = known->parent ? mgl_search_find(search, known->parent) : &start;
    mgl_status status = MGL_OK;
    for (int i = 0; i < search->subject->space.count; i++) {
        int k = search->numbers[i], value = mgl_knob_get(&known->config, k);
        if (value != mgl_knob_get(&parent->config, k))
            mgl_knob_set(&draft->config, k, value);
    }
    for (int i = mgl_moves_common(&known->moves, &parent->moves);
         i < known->moves.count && draft->moves.count < MGL_LINEAGE_MOVES && !status; i++)
        status = mgl_moves_add(&draft->moves, &known->moves.moves[i], err);
    return status;
}

/* Draws the trials with the largest sampled gains, up to `most`. */
static mgl_ranking draw_donors(const mgl_search *search, int most, uint64_t *state)
{
    mgl_ranking donors = {.room = most};
    for (size_t i = 0; i < search->known_count; i++) {
        double gain = draw_own_gain(search, &search->known[i], state);
        if (gain > 0)
            mgl_ranking_add(&donors, &search->known[i], -gain);
    }
    return donors;
}

/* Whether the trial is the parent or an ancestor of the parent. Then its changes are already
 * applied. */
static bool is_there(const mgl_search *search, const mgl_known *parent, const mgl_known *known)
{
    for (; parent; parent = mgl_search_find(search, parent->parent))
        if (parent == known)
            return true;
    return false;
}

static mgl_status join(const mgl_search *search, uint64_t *state, mgl_draft *draft, mgl_error *err)
{
    const int most = 2 + (int)mgl_draw_below(state, 2);
    const mgl_ranking donors = draw_donors(search, most, state);
    mgl_status status = MGL_OK;
    for (int i = 0; i < donors.count && !status; i++)
        if (!is_there(search, draft->parent, donors.known[i]))
            status = take_changes(search, donors.known[i], draft, err);
    return status;
}

/* ---- drawing -------------------------------------------------------------------------------- */

/* Draws one step. `program`: of the parent; NULL: no moves are made. */
static mgl_status draw_step(const mgl_search *search, const mgl_program *program, uint64_t *state,
                            mgl_draft *draft, mgl_error *err)
{
    int width = 1 + search->stalled / WIDER_EVERY, knobs = search->subject->space.count;
    width = width > MOST_WIDTH ? MOST_WIDTH : width;
    if (search->known_count > 4 && mgl_draw_below(state, 4) == 0)
        return join(search, state, draft, err);
    if (program && draft->moves.count < MGL_LINEAGE_MOVES &&
        (knobs == 0 || mgl_draw_below(state, 2)))
        return add_bundle(search, program, state, &draft->moves, err);
    step_knobs(search, 1 + (int)mgl_draw_below(state, (uint64_t)width), state, &draft->config);
    return MGL_OK;
}

/* Whether a draw changed nothing. */
static bool is_unchanged(const mgl_draft *v, const mgl_proposal *base)
{
    return !memcmp(&v->config, &base->config, sizeof v->config) &&
           v->moves.count == base->moves.count;
}

/* Draws one batch of drafts, as many as are priced in parallel; *t counts the draws. */
static mgl_status draw_batch(const mgl_search *search, const mgl_program *program,
                             const mgl_proposal *base, const mgl_known *parent, int tries, int *t,
                             uint64_t *state, mgl_batch *batch, mgl_error *err)
{
    const int room = mgl_batch_room(search, tries - *t);
    mgl_status status = MGL_OK;
    for (; *t < tries && batch->count < room && !status; ++*t) {
        mgl_draft v;
        status = mgl_draft_begin(search, parent, &v, err);
        if (!status)
            status = draw_step(search, program, state, &v, err);
        if (!status && !is_unchanged(&v, base))
            mgl_batch_add(batch, &v, *state, *t + 1);
        else
            mgl_moves_clear(&v.moves);
    }
    return status;
}

/* Takes the promising drafts, up to `most`. At the limit, sets *state to the random state after the
 * last draft taken. */
static void take_hopes(mgl_batch *batch, int most, uint64_t *state, mgl_draft *out, int *count)
{
    int i = 0;
    for (; i < batch->count && *count < most; i++) {
        if (batch->hopes[i])
            out[(*count)++] = batch->drafts[i];
        else
            mgl_moves_clear(&batch->drafts[i].moves);
        if (*count == most)
            *state = batch->states[i];
    }
    mgl_batch_clear(batch, i);
}

mgl_status mgl_search_draw_near(const mgl_search *search, int most, uint64_t *state, mgl_draft *out,
                                int *count, mgl_error *err)
{
    const mgl_known *parent = draw_parent(search, state);
    mgl_proposal base = {.config = parent ? parent->config : search->start};
    mgl_candidate candidate = {0};
    mgl_status status = MGL_OK;
    int tries = search->subject->has_costs ? DRAWS_EACH * most : NO_COSTS;
    most = search->subject->has_costs ? most : 1;
    *count = 0;
    if (parent)
        base.moves = parent->moves;
    if (search->subject->space.moves || search->subject->has_costs)
        status = mgl_gate_lower(search->subject, &base, &candidate, err);
    const mgl_program *own = candidate.program_count == 1 ? candidate.programs[0] : NULL;
    const mgl_program *program = mgl_search_wants_moves(search) && candidate.program_count > 0
                                     ? candidate.programs[0]
                                     : NULL;
    for (int t = 0; t < tries && *count < most && !status;) {
        mgl_batch batch = {.count = 0};
        status = draw_batch(search, program, &base, parent, tries, &t, state, &batch, err);
        if (!status)
            mgl_batch_price(search, own, &batch);
        take_hopes(&batch, most, state, out, count);
    }
    mgl_candidate_clear(&candidate);
    return status;
}

/* ---- selection ------------------------------------------------------------------------------- */

/* Belief about a draft beyond its prediction: a mean and a variance. */
struct belief {
    double mean, variance;
};

/* Adds the past error of the cost model for similar changes, and a penalty for rejections. */
static void believe(const mgl_credit *c, bool higher, double doubt, struct belief *b)
{
    int priced = c->priced[higher] + 1;
    b->mean += c->missed[higher] / priced - REFUSED * c->refused / (c->tries + 1);
    b->variance += doubt * doubt / priced;
}

static struct belief believe_all(const mgl_search *search, const mgl_draft *v)
{
    const mgl_schedule_config *before = v->parent ? &v->parent->config : &search->start;
    struct belief b = {0, 0};
    unsigned kinds = 0;
    for (int i = 0; i < search->subject->space.count; i++) {
        int k = search->numbers[i];
        int old = mgl_knob_get(before, k), value = mgl_knob_get(&v->config, k);
        if (value != old)
            believe(&search->knobs[k], value > old, KNOB_DOUBT, &b);
    }
    for (int i = v->parent ? mgl_moves_common(&v->moves, &v->parent->moves) : 0; i < v->moves.count;
         i++) {
        const mgl_move *move = &v->moves.moves[i];
        if (!(kinds & 1U << move->kind))
            believe(&search->moves[move->kind], false,
                    move->layer == MGL_MOVE_ALL ? ALL_DOUBT : MOVE_DOUBT, &b);
        kinds |= 1U << move->kind;
    }
    return b;
}

int mgl_search_pick(const mgl_search *search, const mgl_draft *drafts, int count, uint64_t *state)
{
    double best = -INFINITY;
    int chosen = 0;
    for (int i = 0; i < count; i++) {
        struct belief b = believe_all(search, &drafts[i]);
        double score = b.mean + sqrt(b.variance) * draw_normal(state);
        if (drafts[i].predicted > 0)
            score -= log(drafts[i].predicted);
        if (score > best) {
            best = score;
            chosen = i;
        }
    }
    return chosen;
}

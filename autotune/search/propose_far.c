/*
 * Far steps: coordinate descent over the cost model, from the best program or from a random config
 * around it. A measurement takes seconds of the device and a prediction takes milliseconds, so from
 * a poor start the search predicts dozens of programs for each measured one.
 *
 * The error of the cost model is learned from trials: the log ratio of measured and predicted time
 * is modeled as a sum over the values of all knobs (ridge regression: Hoerl and Kennard, "Ridge
 * Regression", 1970), solved by coordinate descent. Predictions are corrected by this model, so a
 * value that the cost model overrates is not proposed again.
 */
#include "autotune/search/propose.h"

#include "base/memory.h"

#include <math.h>

enum {
    LOOKS = 4,      /* trials without a large improvement after which far steps become rarer: */
    FAR_EVERY = 2,  /* then one of this many proposals is a far step, if the start is poor */
    NEAR_EVERY = 8, /* then one of this many proposals is a far step, if the start is good */
    PRICED = 120,   /* limit of predictions for one descent */
    VALUES = 2,     /* values of a knob that a descent tries before the next knob */
    LATEST = 400,   /* trials used for the correction */
    PASSES = 8,     /* passes of the solver over all knobs */
    FEW = 2,        /* regularization: number of virtual trials with no error */
    OTHER = MGL_MAX_KNOB_VALUES /* index of a value that is not in the space */
};
/* smallest predicted gain in the log value for which a far step is proposed */
#define SCORE 0.03

/* Correction of the log prediction: one term for each value of each knob. */
typedef struct correction {
    double of[MGL_MAX_KNOBS][MGL_MAX_KNOB_VALUES + 1];
} correction;

/* A measured trial. */
typedef struct sample {
    double left; /* remaining log ratio that is not explained yet */
    unsigned char places[MGL_MAX_KNOBS];
} sample;

static int place_of(const mgl_search *search, int knob, const mgl_schedule_config *config)
{
    const mgl_knob *values = &search->subject->space.knobs[knob];
    int value = mgl_knob_get(config, search->numbers[knob]);
    for (int v = 0; v < values->count; v++)
        if (values->values[v] == value)
            return v;
    return OTHER;
}

static double correct(const mgl_search *search, const correction *c,
                      const mgl_schedule_config *config)
{
    double sum = 0;
    for (int i = 0; i < search->subject->space.count; i++)
        sum += c->of[i][place_of(search, i, config)];
    return sum;
}

/* Collects the latest trials that were measured and priced, and subtracts the mean. */
static int gather(const mgl_search *search, sample list[LATEST])
{
    int count = 0;
    double mean = 0;
    for (size_t i = search->known_count; i-- > 0 && count < LATEST;) {
        const mgl_known *known = &search->known[i];
        if (known->duplicate || !(known->measured > 0) || !(known->predicted > 0))
            continue;
        list[count].left = log(known->measured / known->predicted);
        mean += list[count].left;
        for (int k = 0; k < search->subject->space.count; k++)
            list[count].places[k] = (unsigned char)place_of(search, k, &known->config);
        count++;
    }
    for (int i = 0; i < count; i++)
        list[i].left -= mean / count;
    return count;
}

/* Fits the terms of one knob to the remaining log ratios. */
static void fit_knob(int knob, sample *list, int count, correction *c)
{
    double *of = c->of[knob], sum[MGL_MAX_KNOB_VALUES + 1] = {0};
    int tries[MGL_MAX_KNOB_VALUES + 1] = {0};
    for (int i = 0; i < count; i++) {
        int place = list[i].places[knob];
        list[i].left += of[place];
        sum[place] += list[i].left;
        tries[place]++;
    }
    for (int v = 0; v <= MGL_MAX_KNOB_VALUES; v++)
        of[v] = sum[v] / (tries[v] + FEW);
    for (int i = 0; i < count; i++)
        list[i].left -= of[list[i].places[knob]];
}

static mgl_status fit(const mgl_search *search, correction *out, mgl_error *err)
{
    sample *list = mgl_alloc(LATEST * sizeof *list);
    if (!list)
        return mgl_fail_memory(err, LATEST * sizeof *list);
    int count = gather(search, list);
    *out = (correction){{{0}}};
    for (int pass = 0; pass < PASSES && count > 1; pass++)
        for (int k = 0; k < search->subject->space.count; k++)
            fit_knob(k, list, count, out);
    mgl_free(list);
    return MGL_OK;
}

/* ---- a descent ------------------------------------------------------------------------------ */

typedef struct descent {
    const mgl_search *search;
    const correction *correction;
    mgl_draft at;
    double value; /* corrected log value; INFINITY: not priced */
    int priced;
} descent;

/* Moves the descent to a priced draft if the draft is better. */
static bool go(descent *d, const mgl_draft *next)
{
    if (!(next->predicted > 0))
        return false;
    d->priced++;
    double value = log(next->predicted) + correct(d->search, d->correction, &next->config);
    if (value >= d->value)
        return false;
    d->at = *next;
    d->value = value;
    return true;
}

/* Draws one batch of drafts, as many as are priced in parallel: VALUES changed values of each knob,
 * for the knobs in `order`. `place` counts the draws of the pass. Returns the next place. */
static int draw_batch(const descent *d, const int *order, int place, uint64_t *state,
                      mgl_batch *batch)
{
    const int places = VALUES * d->search->subject->space.count;
    const int room = mgl_batch_room(d->search, PRICED - d->priced);
    for (; place < places && batch->count < room; place++) {
        mgl_draft next = {.parent = d->at.parent, .config = d->at.config};
        if (mgl_search_change_knob(d->search, order[place / VALUES], state, &next.config))
            mgl_batch_add(batch, &next, *state, place + 1);
    }
    return place;
}

/* One pass over all knobs in random order. Returns whether the value improved. */
static bool pass(descent *d, uint64_t *state)
{
    const int knobs = d->search->subject->space.count;
    int order[MGL_MAX_KNOBS];
    bool better = false;
    for (int i = 0; i < knobs; i++) {
        int j = (int)mgl_draw_below(state, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int place = 0; place < VALUES * knobs && d->priced < PRICED;) {
        mgl_batch batch = {.count = 0};
        place = draw_batch(d, order, place, state, &batch);
        mgl_batch_price(d->search, NULL, &batch);
        for (int i = 0; i < batch.count; i++)
            if (go(d, &batch.drafts[i])) {
                better = true;
                *state = batch.states[i];
                place = batch.places[i];
                break;
            }
    }
    return better;
}

/* Changes each knob to a random value with probability chance / 4. */
static void scatter(const mgl_search *search, int chance, uint64_t *state,
                    mgl_schedule_config *config)
{
    for (int i = 0; i < search->subject->space.count; i++)
        if ((int)mgl_draw_below(state, 4) < chance)
            mgl_search_change_knob(search, i, state, config);
}

/* Descends from the incumbent, or from a random config around it. */
static void descend(descent *d, uint64_t *state)
{
    enum { SCATTERS = 10 };
    mgl_schedule_config from = d->at.config;
    for (int i = 0, chance = (int)mgl_draw_below(state, 3); i < SCATTERS && chance > 0; i++) {
        mgl_schedule_config config = from;
        scatter(d->search, chance, state, &config);
        mgl_draft next = {.parent = d->at.parent, .config = config};
        d->value = INFINITY;
        mgl_draft_price(d->search, NULL, &next);
        if (go(d, &next))
            break;
    }
    while (d->priced < PRICED && pass(d, state))
        ;
}

mgl_status mgl_search_look_far(const mgl_search *search, uint64_t *state, mgl_draft *out,
                               bool *found, mgl_error *err)
{
    const mgl_known *from = mgl_search_incumbent(search);
    const mgl_draft start = {.parent = from,
                             .config = from ? from->config : search->start,
                             .predicted = from ? from->predicted : search->start_predicted};
    correction c;
    *found = false;
    if (!search->subject->has_costs || search->subject->space.count == 0 || !(start.predicted > 0))
        return MGL_OK;
    int every = mgl_search_is_far(search) ? FAR_EVERY : NEAR_EVERY;
    if (search->looks >= LOOKS && mgl_draw_below(state, (uint64_t)every))
        return MGL_OK;
    mgl_status status = fit(search, &c, err);
    if (status)
        return status;
    double base = log(start.predicted) + correct(search, &c, &start.config);
    descent d = {search, &c, start, base, 0};
    descend(&d, state);
    *found = d.value < base - SCORE && mgl_search_is_new(search, &d.at.config, NULL);
    if (*found)
        *out = d.at;
    return MGL_OK;
}

/* Implements surrogate.h: features, covariance, fitting of the weights, scores, and the prior from
 * earlier campaigns. */
#include "autotune/search/surrogate.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_POINTS = 128, /* limit of points of this campaign */
    MOST_PRIOR = 80,   /* limit of points of one earlier campaign */
    MOST_SEEN = 300    /* trials used for the rejection rate */
};
#define NOISE      1e-3 /* variance of a measurement, relative to the process variance 1 */
#define TASK_SHARE 0.7  /* covariance of two campaigns, relative to 1 within one */
#define TASK_LEVEL 1.0  /* variance of a campaign's level */
#define ZERO_AWAY  0.7  /* distance between 0 ("lowering chooses") and any number of a knob */
#define SUM_SHARE  0.5  /* share of the additive kernel in the covariance */
/* offset of the log warp: values this close to the best are almost equal */
#define WARP 0.02
/* growth of the deviations for each trial without an improvement, because the model was too
 * certain */
#define DOUBT       0.1
#define BETTER      1e-3 /* smallest improvement of the log value that counts */
#define FIRST_GUESS 0.3  /* weight of a feature before it is fitted */

/* ---- features ------------------------------------------------------------------------------- */

/* Position of a value between the smallest and the largest of its knob, in [0, 1], on a logarithmic
 * scale. */
static double place_knob(const mgl_knob *knob, int number, int start, int value)
{
    const mgl_knob_row *row = mgl_knob_row_get(number);
    int lo = start, hi = start;
    if (row->open && value == 0)
        return -1;
    for (int v = 0; v < knob->count; v++) {
        int x = knob->values[v];
        if (row->open && x == 0)
            continue;
        lo = x < lo || (row->open && lo == 0) ? x : lo;
        hi = x > hi ? x : hi;
    }
    if (hi <= lo)
        return 0.5;
    double at = log((double)value + 1) - log((double)lo + 1);
    at /= log((double)hi + 1) - log((double)lo + 1);
    return at < 0 ? 0 : at > 1 ? 1 : at;
}

static void describe(const mgl_surrogate *s, const mgl_schedule_config *config,
                     const mgl_moves *moves, double *out)
{
    const mgl_search_space *space = &s->search.subject->space;
    for (int i = 0; i < space->count; i++) {
        int number = s->search.numbers[i];
        out[i] = place_knob(&space->knobs[i], number, mgl_knob_get(&s->search.start, number),
                            mgl_knob_get(config, number));
    }
    for (int k = 0; k < MGL_MOVE_COUNT; k++)
        out[space->count + k] = 0;
    for (int i = 0; moves && i < moves->count; i++)
        out[space->count + (int)moves->moves[i].kind] += 0.25;
}

static double distance(double a, double b)
{
    return (a < 0) != (b < 0) ? ZERO_AWAY : fabs(a - b);
}

/* Combines both kernels. `weights`: the sum of the feature weights; `near`: the weighted sum of
 * exp(-2 d); `away`: the weighted sum of d. */
static double combine(double weights, double near, double away)
{
    return SUM_SHARE * near / weights + (1 - SUM_SHARE) * exp(-2 * away);
}

static double of_tasks(double covariance, int a, int b)
{
    return a == b ? covariance + TASK_LEVEL : TASK_SHARE * covariance;
}

static double covariance_of(const mgl_surrogate *s, const double *a, const double *b)
{
    double near = 0, away = 0, weights = 0;
    for (int f = 0; f < s->features; f++) {
        double d = distance(a[f], b[f]);
        near += s->relevance[f] * exp(-2 * d);
        away += s->relevance[f] * d;
        weights += s->relevance[f];
    }
    return combine(weights, near, away);
}

/* ---- fitting -------------------------------------------------------------------------------- */

void mgl_surrogate_fit_clear(mgl_surrogate_fit *f)
{
    mgl_free(f->points);
    mgl_free(f->factor);
    mgl_free(f->weights);
    mgl_free(f->residual);
    mgl_free(f->to);
    mgl_free(f->scratch);
    mgl_free(f->seen);
    *f = (mgl_surrogate_fit){0};
}

static mgl_status fit_alloc(mgl_surrogate_fit *f, size_t most, mgl_error *err)
{
    f->points = mgl_alloc_zero(most, sizeof *f->points);
    f->factor = mgl_alloc_zero(most * most, sizeof(double));
    f->weights = mgl_alloc_zero(most, sizeof(double));
    f->residual = mgl_alloc_zero(most, sizeof(double));
    f->to = mgl_alloc_zero(most, sizeof(double));
    f->scratch = mgl_alloc_zero(most, sizeof(double));
    return f->points && f->factor && f->weights && f->residual && f->to && f->scratch
               ? MGL_OK
               : mgl_fail_memory(err, most * most * sizeof(double));
}

bool mgl_surrogate_has_value(const mgl_surrogate *s, const mgl_known *known)
{
    return !known->duplicate && mgl_search_value(&s->search, known) > 0;
}

static mgl_surrogate_point point_of(const mgl_surrogate *s, const mgl_known *known)
{
    mgl_surrogate_point p = {.y = log(mgl_search_value(&s->search, known)),
                             .deviation = known->deviation,
                             .priced = known->predicted > 0};
    describe(s, &known->config, &known->moves, p.features);
    if (p.priced)
        p.residual = p.y - log(known->predicted);
    return p;
}

/* Takes the points of the first `limit` trials: all, or up to MOST_POINTS. If there are more, old
 * points must be near the best, and the latest MOST_POINTS / 2 are always eligible. */
static void take_points(const mgl_surrogate *s, size_t limit, mgl_surrogate_fit *f)
{
    double bound = INFINITY;
    size_t all = 0;
    for (size_t i = 0; i < limit; i++)
        all += mgl_surrogate_has_value(s, &s->search.known[i]);
    f->priced = true;
    f->best = INFINITY;
    f->doubt = 1;
    for (size_t i = 0; i < limit; i++) {
        const mgl_known *known = &s->search.known[i];
        f->doubt += DOUBT;
        if (!mgl_surrogate_has_value(s, known))
            continue;
        mgl_surrogate_point p = point_of(s, known);
        f->doubt = p.y < f->best - BETTER ? 1 : f->doubt;
        f->best = fmin(f->best, p.y + p.deviation);
        bound = f->best + 0.05; /* an old point is used only if its log value is below the bound */
        bool late = all-- <= MOST_POINTS / 2;
        if (f->count >= MOST_POINTS || (!late && all > MOST_POINTS && p.y > bound))
            continue;
        f->priced &= p.priced;
        f->points[f->count++] = p;
    }
    f->own = f->count;
}

/* Log warp of a value: log(WARP + y - least). */
static double warped(double y, double least)
{
    return log(WARP + y - least);
}

/* End index of the campaign's points that begin at `first`, and their smallest log value. */
static int end_of_task(const mgl_surrogate_fit *f, int first, double *least)
{
    int end = first;
    *least = INFINITY;
    for (; end < f->count && f->points[end].task == f->points[first].task; end++)
        *least = f->points[end].y < *least ? f->points[end].y : *least;
    return end;
}

/* Computes the targets of the process, centered for each campaign: residuals, or values after
 * warped(), which separates values near the best. Returns the mean of this campaign. */
static double centre(const mgl_surrogate_fit *f, bool residual, double *y)
{
    double own = 0, least;
    for (int first = 0, end; first < f->count; first = end) {
        double sum = 0;
        end = end_of_task(f, first, &least);
        for (int i = first; i < end; i++) {
            y[i] = residual ? f->points[i].residual : warped(f->points[i].y, least);
            sum += y[i];
        }
        for (int i = first; i < end; i++)
            y[i] -= sum / (end - first);
        own = f->points[first].task == 0 ? sum / (end - first) : own;
    }
    return own;
}

/* Sums over features for each pair (count, count, lower half), updated when one weight changes. */
struct sums {
    double *near, *away;
    double weights;
};

static void change_weight(const mgl_surrogate_fit *f, int feature, double by, struct sums *sums)
{
    for (int i = 0; i < f->count; i++)
        for (int j = 0; j <= i; j++) {
            size_t at = (size_t)i * (size_t)f->count + (size_t)j;
            double d = distance(f->points[i].features[feature], f->points[j].features[feature]);
            sums->near[at] += by * exp(-2 * d);
            sums->away[at] += by * d;
        }
    sums->weights += by;
}

/* Variance of the residuals of this campaign. */
static double spread(const mgl_surrogate_fit *f)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < f->own; i++) {
        sum += f->points[i].residual;
        squares += f->points[i].residual * f->points[i].residual;
    }
    double mean = f->own ? sum / f->own : 0;
    return f->own ? fmax(squares / f->own - mean * mean, 1e-6) : 1;
}

/* Factors the covariance matrix of the points; false: not positive definite. */
static bool factor(mgl_surrogate_fit *f, const struct sums *sums)
{
    const double variance = spread(f);
    for (int i = 0; i < f->count; i++)
        for (int j = 0; j <= i; j++) {
            size_t at = (size_t)i * (size_t)f->count + (size_t)j;
            double c = combine(sums->weights, sums->near[at], sums->away[at]);
            double noise = f->points[i].deviation * f->points[i].deviation / variance;
            f->factor[at] = of_tasks(c, f->points[i].task, f->points[j].task) +
                            (i == j ? NOISE + fmin(noise, 1) : 0);
        }
    return mgl_gaussian_factor(f->factor, f->count);
}

static double evidence(mgl_surrogate_fit *f, const struct sums *sums, const double *y)
{
    if (!factor(f, sums))
        return -INFINITY;
    mgl_gaussian_solve(f->factor, f->count, y, f->weights);
    return mgl_gaussian_evidence(f->factor, f->count,
                                 mgl_gaussian_scale(y, f->weights, f->count) + 1e-12);
}

static bool varies(const mgl_surrogate_fit *f, int feature)
{
    for (int i = 1; i < f->count; i++)
        if (f->points[i].features[feature] != f->points[0].features[feature])
            return true;
    return false;
}

/* Coordinate ascent: gives one feature after the other the weight with the largest evidence. */
static void fit_relevance(mgl_surrogate *s, mgl_surrogate_fit *f, struct sums *sums,
                          const double *y)
{
    static const double levels[] = {0.02, 0.1, FIRST_GUESS, 1, 3};
    enum { LEVELS = sizeof levels / sizeof *levels };
    double best = evidence(f, sums, y);
    for (int i = 0; i < s->features; i++) {
        double kept = s->relevance[i];
        for (int l = 0; varies(f, i) && l < LEVELS; l++) {
            double before = s->relevance[i];
            if (levels[l] == before)
                continue;
            change_weight(f, i, levels[l] - before, sums);
            s->relevance[i] = levels[l];
            double found = evidence(f, sums, y);
            if (found > best) {
                best = found;
                kept = levels[l];
            }
        }
        change_weight(f, i, kept - s->relevance[i], sums);
        s->relevance[i] = kept;
    }
}

/* Number of trials that the weights are fitted to: a function of the number of trials. The weights
 * are refitted when it grows by a quarter. */
static size_t fit_size(size_t trials)
{
    size_t size = MGL_SURROGATE_FOUNDERS;
    while (size + size / 4 + 1 <= trials)
        size += size / 4 + 1;
    return size;
}

void mgl_surrogate_reset(mgl_surrogate *s)
{
    for (int i = 0; i < MGL_SURROGATE_FEATURES; i++)
        s->relevance[i] = FIRST_GUESS;
    s->fitted = (size_t)-1;
}

/* Computes the sums with the current weights. */
static mgl_status open_sums(const mgl_surrogate *s, const mgl_surrogate_fit *f, struct sums *sums,
                            mgl_error *err)
{
    size_t pairs = (size_t)f->count * (size_t)f->count;
    *sums = (struct sums){mgl_alloc_zero(pairs, sizeof(double)),
                          mgl_alloc_zero(pairs, sizeof(double)), 0};
    if (!sums->near || !sums->away)
        return mgl_fail_memory(err, pairs * sizeof(double));
    for (int i = 0; i < s->features; i++)
        change_weight(f, i, s->relevance[i], sums);
    return MGL_OK;
}

static void close_sums(struct sums *sums)
{
    mgl_free(sums->near);
    mgl_free(sums->away);
}

static mgl_status gather(const mgl_surrogate *s, size_t limit, mgl_surrogate_fit *f, mgl_error *err)
{
    mgl_status status = fit_alloc(f, MOST_POINTS + s->prior.count + 1, err);
    if (status)
        return status;
    take_points(s, limit, f);
    if (s->prior.count)
        memcpy(f->points + f->count, s->prior.points, s->prior.count * sizeof *s->prior.points);
    f->count += (int)s->prior.count;
    return MGL_OK;
}

static mgl_status refit(mgl_surrogate *s, size_t trials, mgl_error *err)
{
    mgl_surrogate_fit f = {0};
    struct sums sums = {0};
    mgl_status status = gather(s, trials, &f, err);
    mgl_surrogate_reset(s);
    if (!status)
        status = open_sums(s, &f, &sums, err);
    if (!status && f.count > 1) {
        centre(&f, false, f.to);
        fit_relevance(s, &f, &sums, f.to);
    }
    s->fitted = trials;
    close_sums(&sums);
    mgl_surrogate_fit_clear(&f);
    return status;
}

/* Records the features of the latest trials and whether they were rejected. */
static mgl_status take_seen(const mgl_surrogate *s, mgl_surrogate_fit *f, mgl_error *err)
{
    size_t count = s->search.known_count, from = count > MOST_SEEN ? count - MOST_SEEN : 0;
    bool refused = false;
    for (size_t i = from; i < count; i++)
        refused |= !s->search.known[i].correct;
    if (!refused)
        return MGL_OK;
    f->seen = mgl_alloc_zero(count - from, sizeof *f->seen);
    if (!f->seen)
        return mgl_fail_memory(err, (count - from) * sizeof *f->seen);
    for (size_t i = from; i < count; i++) {
        const mgl_known *known = &s->search.known[i];
        describe(s, &known->config, &known->moves, f->seen[f->seen_count].features);
        f->seen[f->seen_count++].correct = known->correct;
    }
    return MGL_OK;
}

/* Fits the processes over all trials, with weights fitted to a part of them. f->count 0: nothing is
 * known. */
mgl_status mgl_surrogate_fit_all(mgl_surrogate *s, mgl_surrogate_fit *f, mgl_error *err)
{
    struct sums sums = {0};
    size_t trials = fit_size(s->search.known_count);
    mgl_status status = MGL_OK;
    trials = trials < s->search.known_count ? trials : s->search.known_count;
    if (s->fitted != trials)
        status = refit(s, trials, err);
    if (!status)
        status = gather(s, s->search.known_count, f, err);
    if (!status)
        status = open_sums(s, f, &sums, err);
    if (!status)
        status = take_seen(s, f, err);
    if (!status && f->count > 0) {
        if (!factor(f, &sums))
            f->count = 0;
        f->residual_level = centre(f, true, f->to);
        mgl_gaussian_solve(f->factor, f->count, f->to, f->residual);
        f->residual_scale = mgl_gaussian_scale(f->to, f->residual, f->count);
        f->level = centre(f, false, f->to);
        mgl_gaussian_solve(f->factor, f->count, f->to, f->weights);
        f->scale = mgl_gaussian_scale(f->to, f->weights, f->count);
    }
    close_sums(&sums);
    return status;
}

/* ---- score of a program ---------------------------------------------------------------------- */

/* The similarity-weighted share of trials that were not rejected. */
static double chance(const mgl_surrogate *s, const mgl_surrogate_fit *f, const double *features)
{
    double good = 1, all = 1;
    for (int i = 0; i < f->seen_count; i++) {
        double near = covariance_of(s, features, f->seen[i].features);
        near *= near;
        good += f->seen[i].correct ? near : 0;
        all += near;
    }
    return good / all;
}

static void cover(const mgl_surrogate *s, const mgl_surrogate_fit *f, const double *features)
{
    for (int i = 0; i < f->count; i++)
        f->to[i] =
            of_tasks(covariance_of(s, features, f->points[i].features), 0, f->points[i].task);
}

/* The expected improvement; before this campaign has a trial, the negative predicted log value. */
double mgl_surrogate_score(const mgl_surrogate *s, const mgl_surrogate_fit *f,
                           const mgl_schedule_config *config, const mgl_moves *moves)
{
    double features[MGL_SURROGATE_FEATURES];
    describe(s, config, moves, features);
    cover(s, f, features);
    mgl_gaussian_point p = mgl_gaussian_predict(f->factor, f->weights, f->count, f->scale, f->to,
                                                1 + TASK_LEVEL, f->scratch);
    p.mean += f->level;
    p.deviation *= f->doubt;
    if (f->own == 0)
        return -p.mean;
    return mgl_expected_improvement(p, warped(f->best, f->best)) * chance(s, f, features);
}

/* Returns the score of a candidate with a prediction in us. */
double mgl_surrogate_priced_score(const mgl_surrogate *s, const mgl_surrogate_fit *f,
                                  const mgl_schedule_config *config, const mgl_moves *moves,
                                  double predicted)
{
    double features[MGL_SURROGATE_FEATURES];
    describe(s, config, moves, features);
    cover(s, f, features);
    mgl_gaussian_point p = mgl_gaussian_predict(f->factor, f->residual, f->count, f->residual_scale,
                                                f->to, 1 + TASK_LEVEL, f->scratch);
    p.mean += f->residual_level + log(predicted);
    double gain = mgl_expected_improvement(p, f->best);
    return gain > 0 ? gain * chance(s, f, features) : f->best - p.mean;
}

/* ---- earlier campaigns ---------------------------------------------------------------------- */

static mgl_status add_point(mgl_surrogate *s, const mgl_known *known, mgl_error *err)
{
    mgl_surrogate_prior *p = &s->prior;
    mgl_surrogate_point made = {.y = log(known->measured),
                                .deviation = known->deviation,
                                .task = p->tasks,
                                .priced = known->predicted > 0};
    if (made.priced)
        made.residual = made.y - log(known->predicted);
    describe(s, &known->config, &known->moves, made.features);
    if (!mgl_grow((void **)&p->points, &p->capacity, p->count, sizeof made) ||
        !mgl_grow((void **)&p->configs, &p->config_capacity, p->count, sizeof known->config))
        return mgl_fail_memory(err, sizeof made);
    p->configs[p->count] = known->config;
    p->points[p->count++] = made;
    return MGL_OK;
}

/* Takes the best MOST_PRIOR / 2 trials of an earlier campaign, and up to as many of the other
 * trials, evenly spaced by rank. */
static mgl_status add_points(mgl_surrogate *s, mgl_known *known, size_t count, mgl_error *err)
{
    const size_t best = MOST_PRIOR / 2, rest = count > best ? count - best : 0;
    const size_t every = rest / (MOST_PRIOR - best) + 1;
    mgl_status status = MGL_OK;
    s->prior.tasks++;
    for (size_t i = 0; i < count && !status; i++)
        if (i < best || (i - best) % every == 0)
            status = add_point(s, &known[i], err);
    return status;
}

static int by_value(const void *a, const void *b)
{
    const mgl_known *x = a, *y = b;
    if (x->measured != y->measured)
        return x->measured < y->measured ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

mgl_status mgl_surrogate_add_prior(mgl_proposer *proposer, const mgl_trial *trials, int count,
                                   mgl_error *err)
{
    mgl_surrogate *s = (mgl_surrogate *)proposer;
    mgl_search earlier = {.proposer = {.name = "prior"}, .subject = s->search.subject};
    mgl_status status = MGL_OK;
    if (strcmp(proposer->name, "surrogate") != 0 || s->search.known_count > 0)
        return mgl_fail(err, MGL_USAGE, proposer->name,
                        "earlier campaigns are told to a surrogate, before any trial");
    for (int i = 0; i < count && !status; i++)
        status = mgl_search_learn(&earlier, &trials[i], err);
    size_t valued = 0;
    for (size_t i = 0; i < earlier.known_count; i++) {
        mgl_known known = earlier.known[i];
        known.measured = mgl_search_value(&earlier, &known);
        if (known.duplicate || known.measured <= 0)
            continue;
        earlier.known[i] = earlier.known[valued];
        earlier.known[valued++] = known;
    }
    if (!status && valued > 0) {
        qsort(earlier.known, valued, sizeof *earlier.known, by_value);
        status = add_points(s, earlier.known, valued, err);
    }
    mgl_search_close(&earlier);
    mgl_surrogate_reset(s);
    return status;
}

/* Implements the tunable search of configurations.h: exhaustive, or sampling and hill climbing. */
#include "autotune/kernels/methods/configurations.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct search {
    const mgl_configurations_options *options;
    mgl_configurations *out;
    mgl_point *seen; /* (seen_count) points that were evaluated or pruned */
    int seen_count, most;
} search;

/* Returns the measured microseconds, else the predicted ones; 0: neither is known. */
static double speed_of(const mgl_configuration *c)
{
    const mgl_facts *facts = &c->verdict.facts;
    return facts->time_us > 0 ? facts->time_us : facts->predicted_us;
}

static int by_speed(const void *a, const void *b)
{
    const mgl_configuration *x = a, *y = b;
    double u = speed_of(x), v = speed_of(y);
    bool known_u = u > 0, known_v = v > 0;
    if (known_u != known_v)
        return known_u ? -1 : 1;
    if (known_u && u != v)
        return u < v ? -1 : 1;
    return x->order - y->order;
}

static bool is_valid(const search *s, const mgl_point *p)
{
    for (int i = 0; i < s->options->valid_count; i++) {
        const mgl_validity *v = &s->options->valid[i];
        int64_t value;
        if (!mgl_expression_value(v->expression, p->values + v->first, &value) || value < 1)
            return false;
    }
    return true;
}

static mgl_status evaluate(search *s, const mgl_point *p, mgl_error *err)
{
    const mgl_configurations_options *o = s->options;
    mgl_kernel_value values[MGL_MAX_TUNABLES];
    mgl_configuration made = {.point = *p, .order = s->out->evaluated};
    if (s->seen_count == s->most || mgl_point_stands(s->seen, s->seen_count, p, o->tunable_count))
        return MGL_OK;
    s->seen[s->seen_count++] = *p;
    if (!is_valid(s, p)) {
        s->out->pruned++;
        return MGL_OK;
    }
    for (int i = 0; i < o->tunable_count; i++)
        values[i] = (mgl_kernel_value){o->tunables[i].name, p->values[i]};
    mgl_status status = o->evaluator.evaluate(o->evaluator.user, o->text, o->length, values,
                                              o->tunable_count, &made.verdict, err);
    s->out->evaluated++;
    if (status)
        return status;
    if (made.verdict.outcome == MGL_OUTCOME_INVALID_CONFIG)
        s->out->pruned++;
    else if (mgl_outcome_is_good(made.verdict.outcome))
        s->out->list[s->out->count++] = made;
    return MGL_OK;
}

/* The points that differ from `from` by one step of one axis. */
static mgl_status evaluate_near(search *s, const mgl_point *from, mgl_error *err)
{
    const mgl_configurations_options *o = s->options;
    mgl_status status = MGL_OK;
    for (int i = 0; i < o->tunable_count && !status; i++) {
        const mgl_tunable *t = &o->tunables[i];
        int at = 0;
        while (at < t->count - 1 && t->values[at] != from->values[i])
            at++;
        for (int step = -1; step <= 1 && !status; step += 2) {
            mgl_point p = *from;
            if (at + step < 0 || at + step >= t->count)
                continue;
            p.values[i] = t->values[at + step];
            status = evaluate(s, &p, err);
        }
    }
    return status;
}

/* Hill climbing: expands the best configurations while that finds new points. */
static mgl_status climb(search *s, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int rank = 0; rank < s->out->count && s->seen_count < s->most && !status;) {
        int before = s->seen_count;
        qsort(s->out->list, (size_t)s->out->count, sizeof *s->out->list, by_speed);
        mgl_point from = s->out->list[rank].point;
        status = evaluate_near(s, &from, err);
        rank = s->seen_count > before ? 0 : rank + 1;
    }
    return status;
}

/* Evaluates the carried points, each combined with points of the newer tunables. */
static mgl_status evaluate_carried(search *s, int wanted, mgl_point *points, mgl_error *err)
{
    const mgl_configurations_options *o = s->options;
    const int axes = o->start_axes;
    mgl_status status = MGL_OK;
    if (!o->start_count)
        return MGL_OK;
    int each = wanted / o->start_count > 0 ? wanted / o->start_count : 1;
    int count =
        mgl_sample_points(o->tunables + axes, o->tunable_count - axes, each, o->seed, points);
    for (int i = 0; i < o->start_count && !status; i++)
        for (int j = 0; j < count && s->seen_count < wanted && !status; j++) {
            mgl_point p = o->start[i].point;
            memcpy(p.values + axes, points[j].values,
                   (size_t)(o->tunable_count - axes) * sizeof *p.values);
            status = evaluate(s, &p, err);
        }
    return status;
}

static mgl_status evaluate_sampled(search *s, mgl_error *err)
{
    const mgl_configurations_options *o = s->options;
    int wanted = s->out->all ? s->most : (s->most + 1) / 2;
    mgl_point *points = mgl_alloc_zero((size_t)s->most, sizeof *points);
    if (!points)
        return mgl_fail_memory(err, sizeof *points);
    mgl_status status = s->out->all ? MGL_OK : evaluate_carried(s, wanted, points, err);
    int left = wanted - s->seen_count;
    int count = left > 0 && !status
                    ? mgl_sample_points(o->tunables, o->tunable_count, left, o->seed, points)
                    : 0;
    for (int i = 0; i < count && !status; i++)
        status = evaluate(s, &points[i], err);
    mgl_free(points);
    return status;
}

static mgl_status find(search *s, mgl_error *err)
{
    const mgl_configurations_options *o = s->options;
    s->out->all = mgl_space_size(o->tunables, o->tunable_count) <= (uint64_t)s->most;
    mgl_status status = evaluate_sampled(s, err);
    if (!status && !s->out->all)
        status = climb(s, err);
    qsort(s->out->list, (size_t)s->out->count, sizeof *s->out->list, by_speed);
    int carry = o->carry > 0 ? o->carry : MGL_CONFIGURATIONS_CARRY;
    if (s->out->count > carry)
        s->out->count = carry;
    return status;
}

mgl_status mgl_configurations_find(const mgl_configurations_options *options,
                                   mgl_configurations *out, mgl_error *err)
{
    search s = {.options = options,
                .out = out,
                .most = options->most > 0 ? options->most : MGL_CONFIGURATIONS_ALL};
    *out = (mgl_configurations){0};
    s.seen = mgl_alloc_zero((size_t)s.most, sizeof *s.seen);
    out->list = mgl_alloc_zero((size_t)s.most, sizeof *out->list);
    mgl_status status =
        s.seen && out->list ? find(&s, err) : mgl_fail_memory(err, sizeof *out->list);
    mgl_free(s.seen);
    if (status)
        mgl_configurations_clear(out);
    return status;
}

void mgl_configurations_clear(mgl_configurations *c)
{
    mgl_free(c->list);
    *c = (mgl_configurations){0};
}

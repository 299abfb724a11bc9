/* Implements the acceptance and early-stopping rule of arbiter.h. */
#include "autotune/kernels/methods/arbiter.h"

#include <math.h>

static const double least_gain = 0.01; /* as MGL_KEEP_GAIN of the judge */
static const double near_floor = 0.9;

const char *mgl_decision_name(mgl_decision decision)
{
    static const char *const names[] = {"accept", "continue", "finish"};
    return names[decision];
}

const char *mgl_finish_why(mgl_finish finish)
{
    static const char *const why[] = {
#define MGL_X(id, text) text,
        MGL_FINISHES(MGL_X)
#undef MGL_X
    };
    return why[finish];
}

/* A NaN makes every comparison false. */
static bool is_faster(const mgl_trial_verdict *v)
{
    return v->outcome == MGL_OUTCOME_OK && isfinite(v->facts.gain) && isfinite(v->facts.gain_lo) &&
           v->facts.gain >= least_gain && v->facts.gain_lo > 0;
}

static bool is_near_floor(const mgl_trial_verdict *v)
{
    return mgl_outcome_is_correct(v->outcome) && isfinite(v->facts.floor_us) &&
           isfinite(v->facts.time_us) && v->facts.time_us > 0 &&
           v->facts.floor_us / v->facts.time_us >= near_floor;
}

static mgl_finish find_finish(const mgl_arbiter *a, const mgl_trial_verdict *v)
{
    int rounds = a->rounds > 0 ? a->rounds : MGL_ARBITER_ROUNDS;
    if (is_near_floor(v))
        return MGL_FINISH_FLOOR;
    if (a->since >= MGL_ARBITER_PLATEAU)
        return MGL_FINISH_PLATEAU;
    return a->round >= rounds ? MGL_FINISH_ROUNDS : MGL_FINISH_NOTHING;
}

mgl_ruling mgl_arbiter_decide(mgl_arbiter *a, const mgl_trial_verdict *v)
{
    bool kept = is_faster(v);
    bool good = mgl_outcome_is_good(v->outcome);
    bool deeper = good && a->depth < MGL_ARBITER_DEPTH;
    a->round++;
    a->since = kept ? 0 : a->since + 1;
    a->depth = kept || !good ? 0 : deeper ? a->depth + 1 : 0;
    a->accepted += kept;
    mgl_ruling r = {.kept = kept, .stand = kept || deeper, .finish = find_finish(a, v)};
    r.decision = r.finish ? MGL_DECISION_FINISH
                 : kept   ? MGL_DECISION_ACCEPT
                          : MGL_DECISION_CONTINUE;
    return r;
}

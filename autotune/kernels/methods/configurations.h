/*
 * Search over the values of a text's tunables (exhaustive search, or random sampling plus hill
 * climbing). Input: a text, its tunables, validity expressions and an evaluator. Output: the best
 * configurations, best first. The script engine calls it after each transformation.
 *
 * A space of at most MGL_CONFIGURATIONS_ALL points is evaluated completely. In a larger space, the
 * corners and random points take half of the evaluations. The neighbors of the best points so far
 * take the other half. Points carried over from an earlier step are evaluated before random points.
 * Points that a `valid` expression rejects are pruned; pruning is not a failure.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_CONFIGURATIONS_H
#define MGL_AUTOTUNE_KERNELS_METHODS_CONFIGURATIONS_H

#include "autotune/kernels/methods/evaluator.h"
#include "autotune/kernels/methods/sample.h"

enum {
    MGL_CONFIGURATIONS_ALL =
        512, /* evaluations, and the largest space that is evaluated completely */
    MGL_CONFIGURATIONS_CARRY = 128
};

typedef struct mgl_configuration {
    mgl_point point;
    mgl_trial_verdict verdict;
    int order; /* position in the order of evaluation, from 0 */
} mgl_configuration;

/* Release with mgl_configurations_clear. */
typedef struct mgl_configurations {
    mgl_configuration *list; /* (count) the good configurations, best first */
    int count;
    int evaluated, pruned;
    bool all; /* every point of the space was examined */
} mgl_configurations;

/* A validity expression. Its variables are the tunables from number `first` on, in list order. */
typedef struct mgl_validity {
    const mgl_expression *expression;
    int first;
} mgl_validity;

typedef struct mgl_configurations_options {
    const char *text; /* (length) */
    size_t length;
    const mgl_tunable *tunables; /* (tunable_count) */
    int tunable_count;
    const mgl_validity *valid; /* (valid_count) a point is valid if each of them is at least 1 */
    int valid_count;
    /* The best points of the previous step, over the first `start_axes` tunables. They are combined
     * with values of the newer tunables and evaluated first. */
    const mgl_configuration *start; /* (start_count) */
    int start_count, start_axes;
    mgl_evaluator evaluator;
    int most;  /* limit of evaluations; 0: MGL_CONFIGURATIONS_ALL */
    int carry; /* 0: MGL_CONFIGURATIONS_CARRY */
    uint64_t seed;
} mgl_configurations_options;

/* Searches the space. The good configurations in `out` are sorted by measured time, else by
 * predicted time, else by the order of evaluation. */
mgl_status mgl_configurations_find(const mgl_configurations_options *options,
                                   mgl_configurations *out, mgl_error *err);
void mgl_configurations_clear(mgl_configurations *configurations);

#endif

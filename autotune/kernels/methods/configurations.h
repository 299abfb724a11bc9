/*
 * Values for a text's tunables: which go together, which of them are judged, and which are best.
 * A space of at most MGL_CONFIGURATIONS_ALL points is judged as a whole; of a larger one, its
 * corners and drawn points take half of the judgements, and the neighbours of the best so far the
 * other half; points that were carried on from a step before come before drawn ones. Points that
 * `valid` refuses are pruned, and are no failure.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_CONFIGURATIONS_H
#define MGL_AUTOTUNE_KERNELS_METHODS_CONFIGURATIONS_H

#include "autotune/kernels/methods/judge.h"
#include "autotune/kernels/methods/sample.h"

enum {
    MGL_CONFIGURATIONS_ALL = 512, /* judgements, and points of a space that is judged as a whole */
    MGL_CONFIGURATIONS_CARRY = 128
};

typedef struct mgl_configuration {
    mgl_point point;
    mgl_loop_verdict verdict;
    int order; /* in which it was judged, from 0 */
} mgl_configuration;

/* Release with mgl_configurations_clear. */
typedef struct mgl_configurations {
    mgl_configuration *list; /* (count) the good ones, best first */
    int count;
    int judged, pruned;
    bool all; /* of the space was looked at */
} mgl_configurations;

/* An expression over the tunables from number `first` on, as they stand in its own list. */
typedef struct mgl_validity {
    const mgl_expression *expression;
    int first;
} mgl_validity;

typedef struct mgl_configurations_options {
    const char *text; /* (length) */
    size_t length;
    const mgl_tunable *tunables; /* (tunable_count) */
    int tunable_count;
    const mgl_validity *valid; /* (valid_count) each has to be 1 at least */
    int valid_count;
    /* Points that were best so far, of the first `start_axes` tunables: they are judged first, with
     * values of the others. */
    const mgl_configuration *start; /* (start_count) */
    int start_count, start_axes;
    mgl_loop_judge judge;
    int most;  /* judgements; 0: MGL_CONFIGURATIONS_ALL */
    int carry; /* 0: MGL_CONFIGURATIONS_CARRY */
    uint64_t seed;
} mgl_configurations_options;

/* Good ones by their time, else by what is predicted, else in the order of judging. */
mgl_status mgl_configurations_find(const mgl_configurations_options *options,
                                   mgl_configurations *out, mgl_error *err);
void mgl_configurations_clear(mgl_configurations *configurations);

#endif

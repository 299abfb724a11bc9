/*
 * The surrogate model (Bayesian optimization): features of the trials of this campaign and of
 * earlier ones, and two Gaussian processes over them. One predicts log values, the other the error
 * of the cost model. Used by propose_surrogate.c.
 *
 * Covariance of two points, with d the distance in one feature: the mean of two kernels. The
 * additive kernel, the weighted mean over features of exp(-2 d), learns the effect of single knobs.
 * The product kernel, exp(-2 weighted sum of d), learns interactions. The weights maximize the
 * evidence, one after the other (coordinate ascent). Earlier campaigns are separate tasks (Bonilla,
 * Chai and Williams, "Multi-task Gaussian Process Prediction", 2007): their covariance with this
 * one is smaller, and each has its own level.
 */
#ifndef MGL_AUTOTUNE_SEARCH_SURROGATE_H
#define MGL_AUTOTUNE_SEARCH_SURROGATE_H

#include "autotune/search/gaussian.h"
#include "autotune/search/propose.h"

enum {
    MGL_SURROGATE_FEATURES = MGL_MAX_KNOBS + MGL_MOVE_COUNT,
    MGL_SURROGATE_FOUNDERS = 8 /* trials before the model is used */
};

/* A trial as input of the Gaussian processes. */
typedef struct mgl_surrogate_point {
    /* knobs: in [0, 1]; negative: the value 0 that means "lowering chooses" */
    double features[MGL_SURROGATE_FEATURES];
    double y;         /* log of the value */
    double residual;  /* log(value / prediction) */
    double deviation; /* standard deviation of y */
    int task;         /* 0: this campaign; 1, 2, ...: earlier ones */
    bool priced;      /* has a prediction */
} mgl_surrogate_point;

/* The features of a trial, and whether it was rejected. */
typedef struct mgl_surrogate_seen {
    double features[MGL_SURROGATE_FEATURES];
    bool correct;
} mgl_surrogate_seen;

/* Earlier campaigns. */
typedef struct mgl_surrogate_prior {
    mgl_surrogate_point *points; /* (count) grouped by campaign, the best of each first */
    mgl_schedule_config *configs;
    size_t count, capacity, config_capacity;
    int tasks;
} mgl_surrogate_prior;

/* The proposer. */
typedef struct mgl_surrogate {
    mgl_search search;
    mgl_surrogate_prior prior;
    /* feature weights, fitted to the first `fitted` trials */
    double relevance[MGL_SURROGATE_FEATURES];
    size_t fitted;
    int features;
} mgl_surrogate;

/* The result of fitting all trials. */
typedef struct mgl_surrogate_fit {
    mgl_surrogate_point *points; /* (count) the first `own` points are this campaign's */
    double *factor;              /* (count, count) */
    double *weights;             /* (count) covariance^-1 of the log values */
    double *residual;            /* (count) covariance^-1 of the residuals */
    double *to, *scratch;        /* (count) */
    double scale, residual_scale, level, residual_level;
    double best;  /* smallest (log value + deviation) of this campaign */
    double doubt; /* factor of the predicted deviations */
    int count, own;
    bool priced;              /* every point of this campaign has a prediction */
    mgl_surrogate_seen *seen; /* (seen_count) the latest trials, if some were rejected */
    int seen_count;
} mgl_surrogate_fit;

/* Resets the fitted weights. */
void mgl_surrogate_reset(mgl_surrogate *s);
/* Fits the model to the learned trials. out->count 0: there are none. A function of the trials and
 * earlier campaigns only. */
mgl_status mgl_surrogate_fit_all(mgl_surrogate *s, mgl_surrogate_fit *out, mgl_error *err);
void mgl_surrogate_fit_clear(mgl_surrogate_fit *f);

/* The score of a candidate: the expected improvement, multiplied by the share of similar trials
 * that were not rejected. Before this campaign has a trial: the negative predicted log value. */
double mgl_surrogate_score(const mgl_surrogate *s, const mgl_surrogate_fit *f,
                           const mgl_schedule_config *config, const mgl_moves *moves);
/* The score of a candidate whose predicted time in us is known. */
double mgl_surrogate_priced_score(const mgl_surrogate *s, const mgl_surrogate_fit *f,
                                  const mgl_schedule_config *config, const mgl_moves *moves,
                                  double predicted);

/* Whether the trial has a value and is not a duplicate. */
bool mgl_surrogate_has_value(const mgl_surrogate *s, const mgl_known *known);

#endif

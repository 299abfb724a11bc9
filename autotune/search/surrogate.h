/*
 * The model of the surrogate: what it knows of this campaign's trials and of earlier ones, and
 * two Gaussian processes over them: of log values, and of what the cost model was wrong by.
 *
 * Covariance of two points: half the weighted mean over features of exp(-2 d), which learns
 * what a knob does whatever the others are, and half exp(-2 of the weighted sum of d), which
 * learns what they do together; d is the distance in one feature. The weights are fitted to the
 * evidence, one after the other. Earlier campaigns are tasks of their own (Bonilla, Chai and
 * Williams, "Multi-task Gaussian Process Prediction", 2007): their covariance with this one is
 * smaller, and each has its own level.
 */
#ifndef MGL_AUTOTUNE_SEARCH_SURROGATE_H
#define MGL_AUTOTUNE_SEARCH_SURROGATE_H

#include "autotune/search/gaussian.h"
#include "autotune/search/propose.h"

enum {
    MGL_SURROGATE_FEATURES = MGL_MAX_KNOBS + MGL_MOVE_COUNT,
    MGL_SURROGATE_FOUNDERS = 8 /* trials before anything can be said */
};

/* A trial, as the processes have it. */
typedef struct mgl_surrogate_point {
    double
        features[MGL_SURROGATE_FEATURES]; /* knobs: in [0, 1]; negative: a 0 that means "chosen" */
    double y;                             /* log of the value */
    double residual;                      /* log of the value by the prediction */
    double deviation;                     /* of the measurement of y */
    int task;                             /* 0: this campaign */
    bool priced;                          /* has a prediction */
} mgl_surrogate_point;

/* Where a trial stands, and whether it was refused. */
typedef struct mgl_surrogate_seen {
    double features[MGL_SURROGATE_FEATURES];
    bool correct;
} mgl_surrogate_seen;

/* Earlier campaigns. */
typedef struct mgl_surrogate_prior {
    mgl_surrogate_point *points; /* (count) campaign by campaign, the best of each first */
    mgl_schedule_config *configs;
    size_t count, capacity, config_capacity;
    int tasks;
} mgl_surrogate_prior;

/* The proposer. */
typedef struct mgl_surrogate {
    mgl_search search;
    mgl_surrogate_prior prior;
    double relevance[MGL_SURROGATE_FEATURES]; /* weights: fitted to the first `fitted` trials */
    size_t fitted;
    int features;
} mgl_surrogate;

/* What was fitted to all trials. */
typedef struct mgl_surrogate_fit {
    mgl_surrogate_point *points; /* (count) those of this campaign (own) first */
    double *factor;              /* (count, count) */
    double *weights;             /* (count) of values */
    double *residual;            /* (count) of residuals */
    double *to, *scratch;        /* (count) */
    double scale, residual_scale, level, residual_level;
    double best;  /* the least log value of this campaign, by as much more as it is unsure */
    double doubt; /* that deviations are multiplied by */
    int count, own;
    bool priced;              /* every point of this campaign */
    mgl_surrogate_seen *seen; /* (seen_count) the latest trials, where some were refused */
    int seen_count;
} mgl_surrogate_fit;

/* Forgets what was fitted. */
void mgl_surrogate_reset(mgl_surrogate *s);
/* Fits to what was learned; out->count 0: nothing is known. A function of the trials and earlier
 * campaigns alone. */
mgl_status mgl_surrogate_fit_all(mgl_surrogate *s, mgl_surrogate_fit *out, mgl_error *err);
void mgl_surrogate_fit_clear(mgl_surrogate_fit *f);

/* What proposing the program is worth: the expected improvement, times the share of what is
 * near that was not refused; before this campaign has a trial, how fast it is expected to be. */
double mgl_surrogate_score(const mgl_surrogate *s, const mgl_surrogate_fit *f,
                           const mgl_schedule_config *config, const mgl_moves *moves);
/* The same where the cost model has said what it takes, us. */
double mgl_surrogate_priced_score(const mgl_surrogate *s, const mgl_surrogate_fit *f,
                                  const mgl_schedule_config *config, const mgl_moves *moves,
                                  double predicted);

/* Whether the trial has a value, and is no other trial's program. */
bool mgl_surrogate_has_value(const mgl_surrogate *s, const mgl_known *known);

#endif

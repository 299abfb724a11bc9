/*
 * Simulated pairs of launches: times with the kinds of noise that devices have, and a known gain.
 * The same seed gives the same pairs.
 */
#ifndef MGL_TESTS_AUTOTUNE_SEARCH_SIMULATE_H
#define MGL_TESTS_AUTOTUNE_SEARCH_SIMULATE_H

#include "autotune/store/record.h"

/*  enum, name; `spread` below is the unit of each */
#define NOISES(X)                                                                                  \
    X(NORMAL, "normal")       /* of the log of a time */                                           \
    X(LOGNORMAL, "lognormal") /* a long tail of slow launches */                                   \
    X(OUTLIERS, "outliers")   /* normal, but one launch in a hundred takes 30 units longer */      \
    X(DRIFT, "drift")         /* an AR(1) process from launch to launch, coefficient 0.98 */       \
    X(BIMODAL, "bimodal")     /* clocks that jump by 5 units and stay there for ten launches */

typedef enum noise {
#define X(id, name) NOISE_##id,
    NOISES(X)
#undef X
        NOISE_COUNT
} noise;
const char *noise_name(noise kind);

typedef struct simulator {
    uint64_t seed; /* state of the random numbers */
    noise kind;
    double spread;
    double level; /* current drift, in units */
    bool slow;    /* whether the clock is low */
} simulator;

double simulator_uniform(simulator *s); /* in (0, 1) */
double simulator_normal(simulator *s);
/* One pair: two launches in random order, of an incumbent, and of a candidate that is faster by
 * `gain`, a log ratio. */
mgl_pair simulator_pair(simulator *s, double gain);
/* (count) of one workload and stage */
void simulator_pairs(simulator *s, double gain, int workload, mgl_pair_stage stage, int count,
                     mgl_pair *out);

#endif

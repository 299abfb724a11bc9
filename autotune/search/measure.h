/*
 * Paired measurement of a candidate against the incumbent: the one protocol of campaigns and of
 * micro-kernel trials (sequential testing with paired launches). The stages are a screen, a second
 * stage with more pairs, and the decision on fresh pairs. The number of pairs of a stage is fixed
 * in advance. The first two stages end a candidate that is slower or gains too little. A gain that
 * is implausibly large is measured again in a fresh process. A time below the time to stream the
 * candidate's bytes is withheld.
 *
 * A runner (runner/runner.h) launches the pairs. The statistics and the rules are in judge.h. The
 * caller sets the candidate and reads the results from the trial.
 */
#ifndef MGL_AUTOTUNE_SEARCH_MEASURE_H
#define MGL_AUTOTUNE_SEARCH_MEASURE_H

#include "autotune/candidates/judge.h"
#include "autotune/runner/runner.h"

/* Parts of a measurement whose time is counted. */
typedef enum mgl_measure_part {
    MGL_MEASURE_CHECK,
    MGL_MEASURE_PAIRS,
    MGL_MEASURE_FLOOR,
    MGL_MEASURE_PARTS
} mgl_measure_part;

typedef struct mgl_measurement {
    mgl_runner *runner;
    const mgl_candidate *candidate;
    mgl_trial *trial;        /* workload_count is set; gets pairs, statistics and the outcome */
    uint64_t *draws;         /* random state: the order of the launches of each pair */
    int64_t decision;        /* number of the next decision in its search (mgl_judge_level) */
    double lost;             /* loss by simpler programs so far (mgl_judge_limit_loss) */
    bool simpler;            /* equal speed suffices (mgl_judge_decide) */
    const atomic_int *abort; /* may be NULL */
    /* Restarts the runner with the incumbent, before a suspicious gain is measured again. */
    mgl_status (*restart)(void *user, const mgl_trial *trial, mgl_error *err);
    void *user;
    /* results */
    bool decided;   /* the outcome is final; no more stages */
    bool counted;   /* the decision was made, and its number is used up */
    bool disturbed; /* too many pairs had an event */
    mgl_runner_time spent[MGL_MEASURE_PARTS];
} mgl_measurement;

/* Sets the outcome and its diagnostic. */
void mgl_measure_decide(mgl_measurement *m, mgl_outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Makes the verdict of a part the trial's. */
void mgl_measure_take(mgl_measurement *m, const mgl_trial_verdict *verdict);

/* Checks the candidate's correctness and stores its errors in the trial. A failed check decides the
 * outcome. */
mgl_status mgl_measure_check(mgl_measurement *m, const unsigned char nonce[MGL_SHA256_BYTES],
                             mgl_error *err);

/* Takes the pairs of a stage for all workloads. A failed launch decides the outcome. */
mgl_status mgl_measure_pairs(mgl_measurement *m, mgl_pair_stage stage, mgl_error *err);

/* The stages, in order. Each one is skipped if the outcome is decided. The last one decides. */
mgl_status mgl_measure_screen(mgl_measurement *m, mgl_error *err);
mgl_status mgl_measure_survivors(mgl_measurement *m, mgl_error *err);
mgl_status mgl_measure_decision(mgl_measurement *m, mgl_error *err);

/* Measures the incumbent against itself (A/A), and decides: NO_GAIN, or SUSPICIOUS if *bad. */
mgl_status mgl_measure_control(mgl_measurement *m, bool *bad, mgl_error *err);

/* Whether a time is below the floor: the time that streaming the candidate's bytes takes. Before a
 * positive answer the stream is measured again. */
mgl_status mgl_measure_floor(mgl_runner *runner, int workload, double us, double *floor_us,
                             bool *below, mgl_error *err);
/* Compares the times of a correct candidate with the floors. Withholds the times of the trial if
 * one is below its floor (SUBFLOOR) or if the candidate is not correct. */
mgl_status mgl_measure_floors(mgl_measurement *m, mgl_error *err);

#endif

/*
 * A runner that simulates a device: a test sets the speed of each candidate, noise is drawn from
 * the campaign's seeds, and only the runner advances the clock. Also a proposer that returns a list
 * of proposals.
 */
#ifndef MGL_TESTS_AUTOTUNE_SEARCH_SCRIPTED_RUNNER_H
#define MGL_TESTS_AUTOTUNE_SEARCH_SCRIPTED_RUNNER_H

#include "autotune/runner/runner.h"
#include "autotune/search/proposer.h"

enum { RUNNER_MOST = 400 };

/* The scripted behavior for the n-th candidate (0, 1, ...) that is checked after the self-test. */
typedef struct runner_script {
    double gain;        /* log ratio to the default */
    mgl_outcome check;  /* OK by default */
    mgl_outcome pair;   /* outcome of its first pairs; OK by default */
    mgl_status failure; /* an error of the runner itself in the check */
    double error;       /* error relative to the default's; 0: equal */
    bool below_floor;   /* its time is below the time to read its bytes */
} runner_script;

typedef struct scripted_runner {
    mgl_runner runner;           /* first */
    const runner_script *script; /* (script_count); later candidates have no gain */
    int script_count;
    bool by_digest;       /* gains follow from the digest instead */
    bool by_cost;         /* times are those that the cost model predicts */
    int competing;        /* number of next calls of `pair` that see another process on the
                             device */
    int bad_controls;     /* number of next controls that find a gain of 2 % */
    int failing_controls; /* number of next controls that do not end */
    bool broken;          /* every call fails */
    bool fails_promotion; /* the next promotion fails */
    const int *slow; /* (slow_count) for the n-th candidate asked about: number of checks until its
                        kernels are compiled; NULL: nothing is compiled */
    int slow_count;
    double noise;  /* standard deviation of the log of a time; 0: 0.001 */
    uint64_t seed; /* seed of the noise; 0: use the seed of each measurement, which differs between
                      trials */
    double clock;  /* seconds */
    /* numbers of calls */
    int starts, checks, pairs, controls, promotions;
    char incumbent[MGL_SHA256_HEX], candidate[MGL_SHA256_HEX]; /* digests */
    unsigned char nonces[RUNNER_MOST][MGL_SHA256_BYTES];
    /* true gains of the last checked candidate and of the incumbent */
    double candidate_gain, incumbent_gain;
    const runner_script *now;
    struct {
        char digest[MGL_SHA256_HEX];
        double gain;
    } known[RUNNER_MOST]; /* (known_count) the true gain of each program */
    int known_count;
    struct {
        char digest[MGL_SHA256_HEX];
        int checks;
    } looked[RUNNER_MOST]; /* (looked_count) programs whose readiness was asked, with the number of
                              checks at the first question */
    int looked_count, prepared;
} scripted_runner;
/* Turns on compilation of kernels with the delays of `slow`. */
void scripted_runner_compile(scripted_runner *runner, const int *slow, int count);

/* Initializes a runner with clock 0 that measures and executes. */
void scripted_runner_init(scripted_runner *runner);
double scripted_runner_clock(void *runner);

/* Proposes entry n of a list after n trials, and ends after the last. With `draws`, it proposes one
 * or two knobs from the seed, without end. */
typedef struct scripted_proposal {
    const char *knob; /* NULL: the start configuration */
    int value;
} scripted_proposal;
typedef struct scripted_proposer {
    mgl_proposer proposer; /* first */
    const mgl_subject *subject;
    const scripted_proposal *list; /* (count) */
    int count;
    bool draws;
    bool goes_on; /* propose entry n at the n-th question instead */
    int asked;
    int told;                          /* trials */
    mgl_outcome outcomes[RUNNER_MOST]; /* (told) */
} scripted_proposer;
void scripted_proposer_init(scripted_proposer *p, const mgl_subject *subject);

#endif

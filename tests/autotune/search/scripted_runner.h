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

/* What is to happen with the n-th candidate (0, 1, ...) that is checked after the self-test. */
typedef struct runner_script {
    double gain;        /* log ratio to the default */
    mgl_outcome check;  /* OK by default */
    mgl_outcome pair;   /* likewise, of its first pairs */
    mgl_status failure; /* the failure of the runner itself in its check */
    double error;       /* times the default's; 0: as large */
    bool below_floor;   /* its time is less than its bytes take */
} runner_script;

typedef struct scripted_runner {
    mgl_runner runner;           /* first */
    const runner_script *script; /* (script_count); beyond it nothing is gained */
    int script_count;
    bool by_digest;       /* gains follow from the digest instead */
    bool by_cost;         /* times are those that the cost model predicts */
    int competing;        /* so many calls for pairs to come have another process beside them */
    int bad_controls;     /* so many controls to come find a gain of 2 % */
    int failing_controls; /* so many to come do not come to an end */
    bool broken;          /* every call fails */
    bool fails_promotion; /* the next one */
    const int *slow; /* (slow_count) checks that pass before the kernels of the n-th candidate that
                             was looked at are ready; NULL: nothing is compiled */
    int slow_count;
    double noise;  /* of the log of a time; 0: 0.001 */
    uint64_t seed; /* of the noise; 0: what who measures draws, which a trial does anew each time */
    double clock;  /* seconds */
    /* what was asked for */
    int starts, checks, pairs, controls, promotions;
    char incumbent[MGL_SHA256_HEX], candidate[MGL_SHA256_HEX]; /* digests */
    unsigned char nonces[RUNNER_MOST][MGL_SHA256_BYTES];
    /* of the candidate that was checked last, and of the incumbent */
    double candidate_gain, incumbent_gain;
    const runner_script *now;
    struct {
        char digest[MGL_SHA256_HEX];
        double gain;
    } known[RUNNER_MOST]; /* (known_count) what each program is worth */
    int known_count;
    struct {
        char digest[MGL_SHA256_HEX];
        int checks;
    } looked[RUNNER_MOST]; /* (looked_count) at whether it is ready, and when first */
    int looked_count, prepared;
} scripted_runner;
/* Kernels are compiled, as `slow` says. */
void scripted_runner_compile(scripted_runner *runner, const int *slow, int count);

/* Its clock is at 0, and it measures and executes. */
void scripted_runner_init(scripted_runner *runner);
double scripted_runner_clock(void *runner);

/* Proposes the n-th of a list when n trials were told, and has no more behind the last; with
 * `draws`, one or two knobs of the space from the seed, for ever. */
typedef struct scripted_proposal {
    const char *knob; /* NULL: as the campaign began */
    int value;
} scripted_proposal;
typedef struct scripted_proposer {
    mgl_proposer proposer; /* first */
    const mgl_subject *subject;
    const scripted_proposal *list; /* (count) */
    int count;
    bool draws;
    bool goes_on; /* the n-th when it is asked the n-th time instead */
    int asked;
    int told;                          /* trials */
    mgl_outcome outcomes[RUNNER_MOST]; /* (told) */
} scripted_proposer;
void scripted_proposer_init(scripted_proposer *p, const mgl_subject *subject);

#endif

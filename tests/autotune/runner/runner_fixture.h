/* Fixture of the runner's tests: a small model on the CPU, two candidates, and a runner. */
#ifndef MGL_TESTS_AUTOTUNE_RUNNER_RUNNER_FIXTURE_H
#define MGL_TESTS_AUTOTUNE_RUNNER_RUNNER_FIXTURE_H

#include <check.h>

#include "autotune/runner/runner_state.h"

#define ok(call) ck_assert_msg((call) == MGL_OK, "%s: %s", err.where, err.message)

enum { ONE_STEP, ANOTHER_STEP, TWO_SEQUENCES }; /* the workloads */
extern const mgl_workloads three;

/* Made anew for each test. */
extern mgl_subject subject;
extern mgl_candidate standard, other; /* the default; with other queues */
extern mgl_runner_options options;
extern mgl_runner *runner;
extern mgl_runner_check found; /* set by check */
extern mgl_error err;
extern atomic_int abort_flag;
extern unsigned char nonce[MGL_SHA256_BYTES];

/* Opens and starts the runner. `fault`: the fault planted in its workers; NULL: none. */
void begin(const char *fault);

/* Checks a candidate, with another nonce in each call. Returns the outcome. */
mgl_outcome check(const mgl_candidate *candidate);

mgl_runner_state *state(void);

/* Frees the programs of a candidate. */
void release(mgl_candidate *candidate);

/* The main function of such a test, whose program is also the worker. */
int runner_main(int argc, char **argv, const char *name, TCase *tests);

#endif

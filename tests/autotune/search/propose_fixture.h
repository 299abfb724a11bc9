/*
 * What the tests of proposers share: a subject with a small shape, and calls of a proposer that
 * must succeed. setup and teardown are a checked fixture.
 */
#ifndef MGL_TESTS_AUTOTUNE_SEARCH_PROPOSE_FIXTURE_H
#define MGL_TESTS_AUTOTUNE_SEARCH_PROPOSE_FIXTURE_H

#include "autotune/search/propose.h"

typedef mgl_status open_fn(const mgl_proposer_options *, mgl_proposer **, mgl_error *);
extern open_fn *const openers[];
enum { GRID, RANDOM, EVOLVE, SURROGATE, PROPOSERS };

extern mgl_subject subject; /* a small shape on a target with costs, from a poor start */

void make_poor(mgl_schedule_config *config);
void setup(void);
void teardown(void);
mgl_proposer *opened(int which, const mgl_subject *of);
mgl_proposer_answer ask(mgl_proposer *proposer, uint64_t seed, mgl_proposal *out);
void tell(mgl_proposer *proposer, const mgl_trial *trial);
/* A trial without a gain, measured against an incumbent of `incumbent` us. */
mgl_trial measured(double incumbent, double gain);
/* The search inside a proposer, for inspection. */
mgl_search *search_of(mgl_proposer *proposer);

#endif

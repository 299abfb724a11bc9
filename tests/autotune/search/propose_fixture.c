/* Implements propose_fixture.h. */
#include "tests/autotune/search/propose_fixture.h"

#include <check.h>

#include "eval/synthetic.h"

open_fn *const openers[] = {mgl_grid_open, mgl_random_open, mgl_evolve_open, mgl_surrogate_open};
mgl_subject subject;

void make_poor(mgl_schedule_config *config)
{
    mgl_schedule_config_default(config);
    config->exchange = MGL_EXCHANGE_COUNTERS;
    config->page_bytes = 2560;
    config->ring_pages = 3;
    config->flight_bytes = 6144;
    config->splits = 27;
    for (int s = 0; s < MGL_STEP_COUNT; s++)
        config->queues[s].count = 5 + s;
}

void setup(void)
{
    static const mgl_geometry shape = {256, 3, 4, 2, 64, 1024, 2048, 1e-5F};
    mgl_error err = {0};
    const char *device;
    subject = (mgl_subject){.dtype = MGL_BF16,
                            .capacity = 256,
                            .has_costs = true,
                            .workloads = {.list = {{1, 64}}, .count = 1}};
    ck_assert_int_eq(mgl_synthetic_find_shape("llama-1b", &subject.config, &err), MGL_OK);
    subject.config.geometry = shape;
    ck_assert_int_eq(mgl_target_parse("sm_90a:32", &subject.target, &err), MGL_OK);
    ck_assert_int_eq(mgl_costs_find_for(&subject.target, NULL, &device, &subject.costs, &err),
                     MGL_OK);
    ck_assert_msg(!mgl_subject_open(&subject, &err), "%s: %s", err.where, err.message);
    make_poor(&subject.start);
    mgl_search_space_default(&subject.target, false, &subject.space);
}

void teardown(void)
{
    mgl_subject_close(&subject);
}

mgl_proposer *opened(int which, const mgl_subject *of)
{
    mgl_proposer_options options = {.subject = of};
    mgl_proposer *proposer = NULL;
    mgl_error err = {0};
    mgl_status status = openers[which](&options, &proposer, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return proposer;
}

mgl_proposer_answer ask(mgl_proposer *proposer, uint64_t seed, mgl_proposal *out)
{
    mgl_error err = {0};
    mgl_proposer_answer answer;
    mgl_status status = proposer->propose(proposer, seed, out, &answer, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return answer;
}

void tell(mgl_proposer *proposer, const mgl_trial *trial)
{
    mgl_error err = {0};
    mgl_status status = proposer->learn(proposer, trial, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
}

mgl_trial measured(double incumbent, double gain)
{
    return (mgl_trial){.verdict.outcome = MGL_OUTCOME_NO_GAIN,
                       .predicted_us = 7,
                       .gain = gain,
                       .workload_count = 2,
                       .workloads = {{.incumbent_us = incumbent}, {.incumbent_us = incumbent}}};
}

mgl_search *search_of(mgl_proposer *proposer)
{
    return (mgl_search *)proposer;
}

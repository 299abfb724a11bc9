/* Implements the weights check: decodes with both candidates in one runner and compares. */
#include "autotune/kernels/trial/weights_check.h"

#include "base/format.h"
#include "base/memory.h"

enum { CAPACITY = 1024, SEVERAL = 8 };

mgl_status mgl_trial_checkpoint_open(const char *path, const mgl_target *target,
                                     mgl_trial_checkpoint *out, mgl_error *err)
{
    static const mgl_workloads workloads = {.list = {{1, 0}, {SEVERAL, 0}}, .count = 2};
    mgl_config config;
    mgl_status status = mgl_synthetic_read_config(path, &config, err);
    if (status)
        return status;
    const int capacity = config.max_positions < CAPACITY ? config.max_positions : CAPACITY;
    status = mgl_harness_open_config(&config, &workloads, capacity, target, &out->set, err);
    if (status)
        return status;
    out->texts = mgl_alloc_zero(1, sizeof *out->texts);
    if (!out->texts)
        return mgl_fail_memory(err, sizeof *out->texts);
    return mgl_real_open(path, &out->set.subject, out->texts, err);
}

void mgl_trial_checkpoint_clear(mgl_trial_checkpoint *checkpoint)
{
    mgl_harness_clear(&checkpoint->set);
    mgl_free(checkpoint->texts);
    *checkpoint = (mgl_trial_checkpoint){0};
}

/* The runner checks a candidate before it decodes with it. */
static mgl_status check_and_decode(mgl_runner *runner, const mgl_trial_checkpoint *c,
                                   const mgl_candidate *incumbent, const mgl_candidate *candidate,
                                   const unsigned char nonce[MGL_SHA256_BYTES],
                                   mgl_kernel_trial *out, mgl_error *err)
{
    mgl_runner_check found = {.verdict.outcome = MGL_OUTCOME_UNMEASURED};
    mgl_status status = runner->start(runner, incumbent, err);
    if (!status)
        status = runner->check(runner, candidate, nonce, &found, err);
    if (status)
        return status;
    out->verdict = found.verdict;
    if (found.verdict.outcome != MGL_OUTCOME_OK)
        return MGL_OK;
    return mgl_real_run(runner, candidate, c->texts, false, &out->real, &out->verdict, err);
}

mgl_status mgl_trial_checkpoint_run(const mgl_trial_options *options, const mgl_trial_checkpoint *c,
                                    const mgl_candidate *incumbent, const mgl_candidate *candidate,
                                    const unsigned char nonce[MGL_SHA256_BYTES],
                                    mgl_kernel_trial *out, mgl_error *err)
{
    mgl_runner *runner = NULL;
    mgl_status status = mgl_trial_open_runner(options, &c->set.subject, &runner, err);
    if (status)
        return status;
    runner->prepare(runner, candidate);
    status = check_and_decode(runner, c, incumbent, candidate, nonce, out, err);
    runner->close(runner);
    if (out->verdict.outcome == MGL_OUTCOME_MISMATCH ||
        out->verdict.outcome == MGL_OUTCOME_SEMANTIC)
        out->verdict.outcome = MGL_OUTCOME_MODEL_MISMATCH;
    return status;
}

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
    out->numbers = mgl_alloc_zero(1, sizeof *out->numbers);
    if (!out->texts || !out->numbers)
        return mgl_fail_memory(err, sizeof *out->texts + sizeof *out->numbers);
    return mgl_real_open(path, &out->set.subject, out->texts, err);
}

void mgl_trial_checkpoint_clear(mgl_trial_checkpoint *checkpoint)
{
    mgl_harness_clear(&checkpoint->set);
    mgl_free(checkpoint->texts);
    mgl_free(checkpoint->numbers);
    *checkpoint = (mgl_trial_checkpoint){0};
}

/* Decodes with each program, until one fails. */
static mgl_status decode(mgl_runner *runner, const mgl_trial_checkpoint *c, mgl_kernel_trial *out,
                         mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (!runner->decode)
        return mgl_fail(err, MGL_DEVICE, "checkpoint", "this device executes nothing");
    for (int p = 0; p < c->set.program.program_count && !status; p++) {
        const int sequences = c->set.program.programs[p]->limits.sequences;
        status = runner->decode(runner, c->texts, p, sequences, c->numbers, &out->verdict, err);
        if (!status && out->verdict.outcome == MGL_OUTCOME_OK)
            mgl_real_compare(c->texts, c->numbers, sequences, false, &out->real, &out->verdict);
        if (out->verdict.outcome != MGL_OUTCOME_OK)
            break;
    }
    return status;
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
    return found.verdict.outcome == MGL_OUTCOME_OK ? decode(runner, c, out, err) : MGL_OK;
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

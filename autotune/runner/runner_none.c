/*
 * The runner without a device: executes nothing and measures nothing. Every candidate that passes
 * the gates is UNMEASURED, and its only speed is the prediction of the cost model.
 */
#include "autotune/runner/runner.h"

#include "base/format.h"
#include "base/memory.h"

typedef struct runner_none {
    mgl_runner runner; /* first member */
    const mgl_subject *subject;
} runner_none;

static mgl_status get_device(mgl_runner *self, mgl_runner_device *out, mgl_error *err)
{
    (void)err;
    *out = (mgl_runner_device){.name = "none"};
    out->target = ((const runner_none *)(const void *)self)->subject->target;
    return MGL_OK;
}

static mgl_status start(mgl_runner *self, const mgl_candidate *incumbent, mgl_error *err)
{
    (void)self, (void)incumbent, (void)err;
    return MGL_OK;
}

static mgl_status check(mgl_runner *self, const mgl_candidate *candidate,
                        const unsigned char nonce[MGL_SHA256_BYTES], mgl_runner_check *out,
                        mgl_error *err)
{
    (void)self, (void)nonce, (void)err;
    *out = (mgl_runner_check){.verdict.outcome = MGL_OUTCOME_UNMEASURED};
    for (int w = 0; w < MGL_MAX_WORKLOADS; w++)
        out->errors[w] = out->defaults[w] = -1;
    if (candidate->predicted > 0)
        mgl_format_into(out->verdict.diagnostic, sizeof out->verdict.diagnostic,
                        "accepted, and nothing was executed; predicted %.1f us a token",
                        candidate->predicted);
    else
        mgl_format_into(out->verdict.diagnostic, sizeof out->verdict.diagnostic,
                        "accepted, and nothing was executed; no costs of this target are known");
    return MGL_OK;
}

static mgl_status pair(mgl_runner *self, int workload, int count, uint64_t seed, bool control,
                       mgl_pair *out, mgl_trial_verdict *verdict, mgl_error *err)
{
    (void)self, (void)workload, (void)count, (void)seed, (void)control, (void)out, (void)err;
    mgl_trial_verdict_set(verdict, MGL_OUTCOME_UNMEASURED, "there is no clock");
    return MGL_OK;
}

static mgl_status find_floor(mgl_runner *self, int workload, bool again, double *us, mgl_error *err)
{
    (void)self, (void)workload, (void)again, (void)err;
    *us = 0;
    return MGL_OK;
}

static mgl_status promote(mgl_runner *self, mgl_error *err)
{
    (void)self, (void)err;
    return MGL_OK;
}

static void prepare(mgl_runner *self, const mgl_candidate *candidate)
{
    (void)self, (void)candidate;
}

static void close_runner(mgl_runner *self)
{
    mgl_free(self);
}

mgl_status mgl_runner_none_open(const mgl_subject *subject, mgl_runner **out, mgl_error *err)
{
    runner_none *none = mgl_alloc_zero(1, sizeof *none);
    *out = NULL;
    if (!none)
        return mgl_fail_memory(err, sizeof *none);
    none->subject = subject;
    none->runner = (mgl_runner){.get_device = get_device,
                                .start = start,
                                .check = check,
                                .pair = pair,
                                .floor = find_floor,
                                .promote = promote,
                                .prepare = prepare,
                                .close = close_runner};
    *out = &none->runner;
    return MGL_OK;
}

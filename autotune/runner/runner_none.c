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
    none->runner = (mgl_runner){
        .get_device = get_device, .start = start, .check = check, .close = close_runner};
    *out = &none->runner;
    return MGL_OK;
}

/* Implements the judge of gates.h: first the gates without a device, then a trial on the device. */
#include "autotune/kernels/methods/gates.h"

#include "base/memory.h"

#include <string.h>

static void take_facts(const mgl_kernel_paired_bench *paired_bench, mgl_facts *out)
{
    if (!paired_bench->timed)
        return;
    out->gain = paired_bench->gain;
    out->gain_lo = paired_bench->gain_lo;
    out->gain_hi = paired_bench->gain_hi;
    out->time_us = paired_bench->results[0].candidate_us;
    if (paired_bench->results[0].stream_us > 0)
        out->floor_us = paired_bench->results[0].stream_us;
}

static mgl_status try_on_device(mgl_gates *g, const mgl_kernel_candidate *c, mgl_trial_verdict *out,
                                mgl_error *err)
{
    char *text = NULL;
    mgl_kernel_trial *trial = &g->last.trial;
    mgl_trial_options options = *g->device;
    options.decision = g->decisions + 1;
    mgl_status status = mgl_trial_text(c, &text, err);
    if (!status)
        status = mgl_kernel_try(c->unit, text, &options, trial, err);
    mgl_free(text);
    if (status)
        return status;
    g->last.tried = true;
    g->decisions += trial->paired_bench.timed;
    out->outcome = trial->verdict.outcome;
    memcpy(out->diagnostic, trial->verdict.diagnostic, sizeof out->diagnostic);
    take_facts(trial->models.timed ? &trial->models : &trial->paired_bench, &out->facts);
    return MGL_OK;
}

static void take_result(const mgl_kernel_result *result, mgl_trial_verdict *out)
{
    out->outcome = result->verdict.outcome;
    memcpy(out->diagnostic, result->verdict.diagnostic, sizeof out->diagnostic);
    if (!result->compiled)
        return;
    out->facts.registers = (double)result->resources.registers;
    out->facts.spill_bytes =
        (double)(result->resources.spill_stores + result->resources.spill_loads);
    out->facts.shared_bytes = (double)result->resources.shared;
}

static mgl_status judge(void *user, const char *text, size_t length,
                        const mgl_tunable_value *values, int count, mgl_trial_verdict *out,
                        mgl_error *err)
{
    mgl_gates *g = user;
    mgl_kernel_value given[MGL_KERNEL_VALUES];
    mgl_kernel_result *result = &g->last.before;
    if (count > MGL_KERNEL_VALUES)
        return mgl_fail(err, MGL_USAGE, g->unit->name, "a text has %d tunables at most",
                        MGL_KERNEL_VALUES);
    for (int i = 0; i < count; i++)
        given[i] = (mgl_kernel_value){values[i].name, values[i].value};
    const mgl_kernel_candidate candidate = {.unit = g->unit,
                                            .text = text,
                                            .length = length,
                                            .region = MGL_KERNEL_REGION_ANY,
                                            .values = given,
                                            .value_count = count};
    g->last.tried = false;
    mgl_status status = mgl_kernel_judge_before(&candidate, &g->options, result, err);
    if (status)
        return status;
    mgl_free(result->ptx);
    result->ptx = NULL;
    result->ptx_length = 0;
    take_result(result, out);
    if (g->device && out->outcome == MGL_OUTCOME_UNMEASURED && !g->options.no_compile)
        status = try_on_device(g, &candidate, out, err);
    return status;
}

mgl_loop_judge mgl_gates_judge(mgl_gates *gates)
{
    return (mgl_loop_judge){judge, gates};
}

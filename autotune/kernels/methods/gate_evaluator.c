/* Implements the evaluator of gate_evaluator.h with mgl_kernel_evaluate. */
#include "autotune/kernels/methods/gate_evaluator.h"

#include "base/memory.h"

static mgl_status evaluate(void *user, const char *text, size_t length,
                           const mgl_kernel_value *values, int count, mgl_trial_verdict *out,
                           mgl_error *err)
{
    mgl_gates *g = user;
    mgl_kernel_device device = {.given = g->device != NULL};
    if (count > MGL_KERNEL_VALUES)
        return mgl_fail(err, MGL_USAGE, g->unit->name, "a text has %d tunables at most",
                        MGL_KERNEL_VALUES);
    const mgl_kernel_candidate candidate = {.unit = g->unit,
                                            .text = text,
                                            .length = length,
                                            .region = MGL_KERNEL_REGION_ANY,
                                            .values = values,
                                            .value_count = count};
    if (device.given) {
        device.options = *g->device;
        device.options.decision = g->decisions + 1;
    }
    mgl_status status = mgl_kernel_evaluate(&candidate, &g->options, &device, &g->last, err);
    if (status)
        return status;
    g->decisions += g->last.tried && g->last.trial.paired_bench.timed;
    mgl_kernel_result *before = &g->last.before;
    mgl_free(before->ptx);
    mgl_free(before->own_ptx);
    before->ptx = before->own_ptx = NULL;
    before->ptx_length = before->own_ptx_length = 0;
    *out = g->last.verdict;
    return MGL_OK;
}

mgl_evaluator mgl_gates_evaluator(mgl_gates *gates)
{
    return (mgl_evaluator){evaluate, gates};
}

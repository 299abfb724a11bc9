#include "autotune/loops/gates.h"

#include <string.h>

static mgl_status judge(void *user, const char *text, size_t length,
                        const mgl_tunable_value *values, int count, mgl_loop_verdict *out,
                        mgl_error *err)
{
    const mgl_gates *g = user;
    mgl_kernel_value given[MGL_KERNEL_VALUES];
    mgl_kernel_result result;
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
    mgl_status status = mgl_kernel_verify(&candidate, &g->options, &result, err);
    if (status)
        return status;
    out->outcome = result.outcome;
    memcpy(out->diagnostic, result.diagnostic, sizeof out->diagnostic);
    if (result.compiled) {
        out->facts.registers = (double)result.resources.registers;
        out->facts.spill_bytes =
            (double)(result.resources.spill_stores + result.resources.spill_loads);
        out->facts.shared_bytes = (double)result.resources.shared;
    }
    mgl_kernel_result_clear(&result);
    return MGL_OK;
}

mgl_loop_judge mgl_gates_judge(mgl_gates *gates)
{
    return (mgl_loop_judge){judge, gates};
}

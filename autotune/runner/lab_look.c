/* Single launches for those who look at more than tokens and logits: what each task of a program
 * left in memory. See lab_state.h. */
#include "autotune/runner/lab_state.h"

#include "base/memory.h"

#include <string.h>

mgl_status mgl_lab_take(mgl_lab *self, const mgl_candidate *candidate, mgl_error *err)
{
    mgl_lab_state *lab = (mgl_lab_state *)self;
    if (lab->incumbent.serial == 0)
        return mgl_fail(err, MGL_USAGE, NULL, "the lab was not started: it has no incumbent");
    lab->checked = false;
    mgl_lab_set_clear(&lab->candidate);
    return mgl_lab_set_make(lab->options.subject, candidate, ++lab->serials, &lab->candidate, err);
}

static mgl_status take_memory(mgl_lab_state *lab, mgl_side side, mgl_lab_memory *out,
                              mgl_lab_verdict *verdict, mgl_error *err)
{
    mgl_answer answer;
    int32_t number = (int32_t)side;
    const mgl_question question = {.kind = MGL_REQUEST_MEMORY,
                                   .fixed = &number,
                                   .fixed_length = sizeof number,
                                   .limit_s = lab->limit_s};
    mgl_status status = mgl_lab_ask(lab, &question, MGL_PROCESS_ANY, &answer, err);
    if (status)
        return status;
    if (answer.error.code && side == MGL_CANDIDATE) {
        status = mgl_lab_blame(lab, &answer, verdict, err);
    } else if (answer.error.code) {
        status = mgl_lab_fail(&answer, err);
    } else if (answer.length <= MGL_SHA256_BYTES) {
        status = mgl_fail(err, MGL_DEVICE, "memory", "the worker's reply is malformed");
    } else {
        memcpy(out->constants, answer.bytes, MGL_SHA256_BYTES);
        out->length = answer.length - MGL_SHA256_BYTES;
        out->memory = answer.bytes;
        memmove(out->memory, out->memory + MGL_SHA256_BYTES, out->length);
        answer.bytes = NULL;
    }
    mgl_answer_clear(&answer);
    return status;
}

static mgl_status launch(mgl_lab_state *lab, mgl_side side, const mgl_lab_look *at,
                         mgl_lab_memory *out, mgl_lab_verdict *verdict, mgl_error *err)
{
    double seconds;
    mgl_wire_load load;
    const mgl_workload *workload = &lab->options.subject->workloads.list[at->workload];
    memset(&load, 0, sizeof load);
    load.side = (int32_t)side;
    load.batch = workload->batch;
    load.context = workload->context;
    load.tokens = 1;
    load.poison = true;
    load.kind = (int32_t)at->kind;
    load.seed = at->seed;
    mgl_status status = mgl_lab_launch(lab, &load, out->tokens, &seconds, verdict, err);
    if (status || verdict->outcome != MGL_OUTCOME_OK)
        return status;
    return take_memory(lab, side, out, verdict, err);
}

mgl_status mgl_lab_look_at(mgl_lab *self, mgl_side side, const mgl_lab_look *at,
                           mgl_lab_memory *out, mgl_outcome *outcome,
                           char diagnostic[MGL_MAX_DIAGNOSTIC + 1], mgl_error *err)
{
    mgl_lab_state *lab = (mgl_lab_state *)self;
    mgl_lab_verdict verdict = {.outcome = MGL_OUTCOME_OK};
    const mgl_lab_set *set = side == MGL_CANDIDATE ? &lab->candidate : &lab->incumbent;
    *out = (mgl_lab_memory){0};
    if (set->serial == 0 || at->workload < 0 ||
        at->workload >= lab->options.subject->workloads.count)
        return mgl_fail(err, MGL_USAGE, NULL, "there is no such program, or no such workload");
    mgl_status status =
        mgl_lab_place(lab, side, set, set->program_of[at->workload], NULL, &verdict, err);
    if (!status && verdict.outcome == MGL_OUTCOME_OK)
        status = launch(lab, side, at, out, &verdict, err);
    *outcome = verdict.outcome;
    memcpy(diagnostic, verdict.diagnostic, sizeof verdict.diagnostic);
    return status;
}

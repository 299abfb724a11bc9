/* Single launches that return memory: what each task of a program wrote, besides tokens and logits.
 * Implements take and look of runner.h. Used by the micro-kernel correctness checks. */
#include "autotune/runner/runner_state.h"

#include "base/memory.h"

#include <string.h>

mgl_status mgl_runner_take(mgl_runner *self, const mgl_candidate *candidate, mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    if (runner->incumbent.serial == 0)
        return mgl_fail(err, MGL_USAGE, NULL, "the runner was not started: it has no incumbent");
    runner->checked = false;
    mgl_runner_set_clear(&runner->candidate);
    return mgl_runner_set_make(runner->options.subject, candidate, ++runner->serials,
                               &runner->candidate, err);
}

static mgl_status take_memory(mgl_runner_state *runner, mgl_side side, mgl_runner_memory *out,
                              mgl_trial_verdict *verdict, mgl_error *err)
{
    mgl_answer answer;
    int32_t number = (int32_t)side;
    const mgl_question question = {
        .kind = MGL_REQUEST_MEMORY, .fixed = &number, .fixed_length = sizeof number};
    mgl_status status = mgl_runner_ask(runner, &question, MGL_PROCESS_ANY, &answer, err);
    if (status)
        return status;
    if (answer.error.code && side == MGL_CANDIDATE) {
        status = mgl_runner_blame(runner, &answer, verdict, err);
    } else if (answer.error.code) {
        status = mgl_answer_fail(&answer, err);
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

static mgl_status launch(mgl_runner_state *runner, mgl_side side, const mgl_runner_look *at,
                         mgl_runner_memory *out, mgl_trial_verdict *verdict, mgl_error *err)
{
    double seconds;
    mgl_wire_load load =
        mgl_runner_load(side, &runner->options.subject->workloads.list[at->workload], 1, at->seed);
    load.poison = true;
    load.kind = (int32_t)at->kind;
    mgl_status status = mgl_runner_launch(runner, &load, out->tokens, &seconds, verdict, err);
    if (status || verdict->outcome != MGL_OUTCOME_OK)
        return status;
    return take_memory(runner, side, out, verdict, err);
}

mgl_status mgl_runner_look_at(mgl_runner *self, mgl_side side, const mgl_runner_look *at,
                              mgl_runner_memory *out, mgl_trial_verdict *verdict, mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    const mgl_runner_set *set = side == MGL_CANDIDATE ? &runner->candidate : &runner->incumbent;
    *out = (mgl_runner_memory){0};
    *verdict = (mgl_trial_verdict){.outcome = MGL_OUTCOME_OK};
    if (set->serial == 0 || at->workload < 0 ||
        at->workload >= runner->options.subject->workloads.count)
        return mgl_fail(err, MGL_USAGE, NULL, "there is no such program, or no such workload");
    mgl_status status =
        mgl_runner_place(runner, side, set, set->program_of[at->workload], NULL, verdict, err);
    if (!status && verdict->outcome == MGL_OUTCOME_OK)
        status = launch(runner, side, at, out, verdict, err);
    return status;
}

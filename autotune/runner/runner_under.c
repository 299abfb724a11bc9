/* Runs launches of a candidate under a tool, such as a memory checker, in a separate worker that
 * ends afterwards. Implements mgl_runner.under. */
#include "autotune/runner/runner_state.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/memory.h"

#include <string.h>

/* factor on limits under such a tool; normal launches are far below the limits */
enum { SLOWER = 2 };

/* Sends a request. A failure goes to *out. Returns whether to continue. */
static bool ask(mgl_runner_state *runner, mgl_process *worker, const mgl_question *question,
                mgl_runner_under *out, mgl_status *status, mgl_error *err)
{
    mgl_answer answer;
    *status = mgl_runner_ask_process(runner, worker, question, MGL_PROCESS_ANY, &answer, err);
    if (*status)
        return false;
    out->hung = answer.fate == MGL_FATE_HUNG;
    const bool good = !answer.error.code;
    if (!good)
        mgl_diagnostic_of(&answer.error, out->why);
    mgl_answer_clear(&answer);
    return good;
}

static bool set_program(mgl_runner_state *runner, mgl_process *worker, const mgl_runner_set *set,
                        int program, mgl_runner_under *out, mgl_status *status, mgl_error *err)
{
    mgl_wire_set fixed;
    mgl_text bytes = {0};
    *status = mgl_runner_set_write(set, program, &fixed, &bytes, err);
    fixed.side = (int32_t)MGL_CANDIDATE;
    const mgl_question question = {.kind = MGL_REQUEST_SET,
                                   .fixed = &fixed,
                                   .bytes = bytes.bytes,
                                   .fixed_length = sizeof fixed,
                                   .length = bytes.length,
                                   .limit_s = SLOWER * runner->limit_s};
    const bool good = !*status && ask(runner, worker, &question, out, status, err);
    mgl_text_clear(&bytes);
    return good;
}

static bool launch(mgl_runner_state *runner, mgl_process *worker, const mgl_workload *workload,
                   uint64_t seed, mgl_runner_under *out, mgl_status *status, mgl_error *err)
{
    const mgl_wire_load load = mgl_runner_load(MGL_CANDIDATE, workload, 1, seed);
    const mgl_question question = {.kind = MGL_REQUEST_RUN,
                                   .fixed = &load,
                                   .fixed_length = sizeof load,
                                   .limit_s = SLOWER * runner->limit_s};
    return ask(runner, worker, &question, out, status, err);
}

static mgl_status run(mgl_runner_state *runner, mgl_process *worker, const mgl_runner_set *set,
                      uint64_t seed, mgl_runner_under *out, mgl_error *err)
{
    const mgl_workloads *workloads = &runner->options.subject->workloads;
    mgl_status status = MGL_OK;
    bool good = true;
    int resident = -1;
    for (int w = 0; w < workloads->count && good; w++) {
        if (set->program_of[w] != resident)
            good = set_program(runner, worker, set, set->program_of[w], out, &status, err);
        resident = set->program_of[w];
        if (good)
            good = launch(runner, worker, &workloads->list[w], seed, out, &status, err);
    }
    out->done = good;
    return status;
}

/* Starts a worker under the tool, within the time limit of a launch. If the tool fails before the
 * worker greets, the reason goes to *out and is no error. */
static mgl_status start(mgl_runner_state *runner, const mgl_runner_tool *tool, mgl_process **worker,
                        mgl_runner_under *out, mgl_error *err)
{
    mgl_error why = {0};
    const double began = mgl_clock_s(), limit_s = runner->limit_s;
    runner->tool = tool;
    runner->limit_s = SLOWER * limit_s / MGL_RUNNER_LONG;
    mgl_status status = mgl_runner_start_worker(runner, MGL_EXECUTOR, worker, &why);
    runner->limit_s = limit_s;
    runner->tool = NULL;
    if (status) {
        mgl_diagnostic_of(&why, out->why);
        out->hung = mgl_clock_s() - began >= SLOWER * limit_s;
    }
    if ((status == MGL_INTERRUPTED || status == MGL_NO_MEMORY) && err)
        *err = why;
    return status == MGL_INTERRUPTED || status == MGL_NO_MEMORY ? status : MGL_OK;
}

mgl_status mgl_runner_run_under(mgl_runner *self, const mgl_runner_tool *tool,
                                const mgl_candidate *candidate, uint64_t seed,
                                mgl_runner_under *out, mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    mgl_process *worker = NULL;
    mgl_runner_set set;
    *out = (mgl_runner_under){0};
    mgl_status status = mgl_runner_set_make(runner->options.subject, candidate, 0, &set, err);
    if (!status)
        status = start(runner, tool, &worker, out, err);
    if (!status && worker)
        status = run(runner, worker, &set, seed, out, err);
    if (worker && !mgl_process_finish(worker, SLOWER * runner->limit_s) && out->done) {
        out->done = false;
        out->hung = true;
        mgl_format_into(out->why, sizeof out->why, "the tool did not end within %.3g s",
                        SLOWER * runner->limit_s);
    }
    mgl_process_close(worker);
    mgl_runner_set_clear(&set);
    return status;
}

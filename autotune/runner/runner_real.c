/*
 * The final steps of a campaign: both programs on the weights of a real checkpoint, and the time of
 * the cuBLAS baseline. Each uses its own executor, so programs loaded for pairs use no memory
 * meanwhile, and a failing winner damages nothing else.
 *
 * The default runs first: a failure of the default is not attributed to the winner. If the replies
 * differ, the default computes the likelihood of both. Implements decode and baseline of runner.h.
 */
#include "autotune/runner/runner_state.h"

#include "base/format.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

enum { BASELINE_LAUNCHES = 21 }; /* as many samples as the verb `bench` takes */

struct real {
    mgl_runner_state *runner;
    const mgl_real_texts *texts;
    mgl_trial_verdict verdict;
    mgl_side side; /* side of the loaded program */
    int sequences; /* sequences of that program */
};

static bool is_over(const struct real *r)
{
    return r->verdict.outcome != MGL_OUTCOME_OK;
}

/* Sends a request to the executor. A failure of the candidate's program becomes its verdict. */
static mgl_status ask(struct real *r, const mgl_question *question, size_t wanted, void *to,
                      mgl_error *err)
{
    return mgl_runner_get(r->runner, question, to, wanted,
                          r->side == MGL_CANDIDATE ? &r->verdict : NULL, err);
}

/* Loads the program of a side in place of the other one. */
static mgl_status open_program(struct real *r, mgl_side side, const mgl_runner_set *set,
                               int program, mgl_error *err)
{
    mgl_wire_checkpoint wire;
    memset(&wire, 0, sizeof wire);
    wire.side = (int32_t)side;
    r->side = side;
    if (strlen(r->texts->path) >= sizeof wire.path)
        return mgl_fail(err, MGL_USAGE, "checkpoint", "its path is longer than %zu bytes",
                        sizeof wire.path - 1);
    memcpy(wire.path, r->texts->path, strlen(r->texts->path));
    mgl_question question = {.kind = MGL_REQUEST_CHECKPOINT,
                             .fixed = &wire,
                             .bytes = set->texts[program],
                             .fixed_length = sizeof wire,
                             .length = set->lengths[program],
                             .limit_s =
                                 MGL_RUNNER_LONG * r->runner->limit_s + MGL_RUNNER_COMPILE_S};
    return ask(r, &question, 0, NULL, err);
}

/* Launches all texts, as many at a time as the program has sequences. The prompts are the first
 * `length` ids of each text in `ids` (texts, stride). Each result has `words` words and goes to
 * `out` (texts, stride). */
static mgl_status launch_all(struct real *r, const mgl_wire_decode *wire, const int32_t *ids,
                             int words, void *out, mgl_error *err)
{
    int32_t prompts[MGL_REAL_TEXTS * MGL_REAL_LENGTH], made[MGL_REAL_TEXTS * MGL_REAL_LENGTH];
    int stride = r->texts->length;
    mgl_status status = MGL_OK;
    for (int first = 0; first < MGL_REAL_TEXTS && !status && !is_over(r); first += r->sequences) {
        mgl_wire_decode one = *wire;
        int left = MGL_REAL_TEXTS - first;
        one.count = left < r->sequences ? left : r->sequences;
        for (int s = 0; s < one.count; s++)
            memcpy(&prompts[s * one.length], &ids[(first + s) * stride],
                   (size_t)one.length * sizeof *prompts);
        mgl_question question = {.kind = MGL_REQUEST_DECODE,
                                 .fixed = &one,
                                 .bytes = prompts,
                                 .fixed_length = sizeof one,
                                 .length = (size_t)(one.count * one.length) * sizeof *prompts,
                                 .limit_s = MGL_RUNNER_LONG * r->runner->limit_s};
        status = ask(r, &question, (size_t)(one.count * words) * sizeof *made, made, err);
        for (int s = 0; s < one.count && !status && !is_over(r); s++)
            memcpy((char *)out + (size_t)((first + s) * stride) * sizeof *made, &made[s * words],
                   (size_t)words * sizeof *made);
    }
    return status;
}

/* Generates greedy replies: `made` gets the prompts and the tokens after them. */
static mgl_status reply(struct real *r, int32_t *made, mgl_error *err)
{
    int length = r->texts->length, tokens = length - MGL_REAL_PROMPT;
    const mgl_wire_decode wire = {.length = MGL_REAL_PROMPT, .tokens = tokens};
    int32_t replies[MGL_REAL_TEXTS * MGL_REAL_LENGTH];
    mgl_status status = launch_all(r, &wire, r->texts->ids, tokens, replies, err);
    for (int i = 0; i < MGL_REAL_TEXTS && !status && !is_over(r); i++) {
        memcpy(&made[i * length], &r->texts->ids[i * length], MGL_REAL_PROMPT * sizeof *made);
        memcpy(&made[i * length + MGL_REAL_PROMPT], &replies[i * length],
               (size_t)tokens * sizeof *made);
    }
    return status;
}

static mgl_status score(struct real *r, const int32_t *ids, float *scores, mgl_error *err)
{
    const mgl_wire_decode wire = {.score = true, .length = r->texts->length, .tokens = 1};
    return is_over(r) ? MGL_OK : launch_all(r, &wire, ids, r->texts->length, scores, err);
}

/* Tokens outside the vocabulary cannot be scored: they become the verdict. */
static void check_known(struct real *r, const int32_t *made)
{
    int vocab = r->runner->options.subject->config.geometry.vocab;
    for (int i = 0; i < MGL_REAL_TEXTS * r->texts->length && !is_over(r); i++) {
        if (made[i] >= 0 && made[i] < vocab)
            continue;
        mgl_trial_verdict_set(
            &r->verdict, MGL_OUTCOME_MODEL_MISMATCH,
            "on the real checkpoint, %d sequence%s, prompt %d, step %d: the winner makes "
            "token %d of a vocabulary of %d",
            r->sequences, mgl_plural((size_t)r->sequences), i / r->texts->length,
            i % r->texts->length - MGL_REAL_PROMPT, (int)made[i], vocab);
    }
}

/* Runs the program of a side in a new worker. */
static mgl_status run_side(struct real *r, mgl_side side, int program, mgl_real_numbers *out,
                           mgl_error *err)
{
    mgl_runner_state *runner = r->runner;
    const mgl_runner_set *set = side == MGL_CANDIDATE ? &runner->candidate : &runner->standard;
    mgl_fault fault =
        side == MGL_CANDIDATE ? mgl_runner_take_fault(runner, MGL_RUNNER_REAL) : MGL_FAULT_NONE;
    mgl_runner_end_executor(runner);
    mgl_status status = fault ? mgl_runner_arm(runner, fault, err) : MGL_OK;
    if (!status)
        status = open_program(r, side, set, program, err);
    if (!status && !is_over(r))
        status = reply(r, out->made[side], err);
    if (!status && !is_over(r))
        check_known(r, out->made[side]);
    if (!status)
        status = score(r, r->texts->ids, out->scores[side], err);
    return status;
}

/* If the replies differ, scores both with the default, in a new worker that the winner cannot have
 * damaged. */
static mgl_status score_replies(struct real *r, int program, mgl_real_numbers *out, mgl_error *err)
{
    mgl_status status = MGL_OK;
    size_t words = (size_t)(MGL_REAL_TEXTS * r->texts->length);
    if (is_over(r) ||
        !memcmp(out->made[MGL_INCUMBENT], out->made[MGL_CANDIDATE], words * sizeof **out->made))
        return MGL_OK;
    mgl_runner_end_executor(r->runner);
    status = open_program(r, MGL_INCUMBENT, &r->runner->standard, program, err);
    for (int side = 0; side < MGL_SIDES && !status; side++)
        status = score(r, out->made[side], out->of_made[side], err);
    return status;
}

static mgl_status check_call(const mgl_runner_state *runner, int program, int sequences,
                             mgl_error *err)
{
    if (!runner->checked)
        return mgl_fail(err, MGL_USAGE, NULL, "only what was checked, and is correct, is run");
    if (program < 0 || program >= runner->candidate.program_count ||
        program >= runner->standard.program_count || sequences < 1 || sequences > MGL_MAX_SEQUENCES)
        return mgl_fail(err, MGL_USAGE, "program", "there is no program %d of %d sequences",
                        program, sequences);
    return MGL_OK;
}

mgl_status mgl_runner_decode(mgl_runner *self, const mgl_real_texts *texts, int program,
                             int sequences, mgl_real_numbers *out, mgl_trial_verdict *verdict,
                             mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    struct real r = {.runner = runner,
                     .texts = texts,
                     .verdict = {.outcome = MGL_OUTCOME_OK},
                     .sequences = sequences};
    mgl_status status = check_call(runner, program, sequences, err);
    if (status)
        return status;
    runner->readable = texts->path;
    status = run_side(&r, MGL_INCUMBENT, program, out, err);
    if (!status && is_over(&r)) /* a failure of the default is not a verdict on the candidate */
        status = mgl_fail(err, MGL_GATE, "default", "%s", r.verdict.diagnostic);
    if (!status)
        status = run_side(&r, MGL_CANDIDATE, program, out, err);
    if (!status)
        status = score_replies(&r, program, out, err);
    runner->readable = NULL;
    mgl_runner_end_executor(runner);
    *verdict = r.verdict;
    return status;
}

/* ---- baseline -------------------------------------------------------------------------------- */

mgl_status mgl_runner_time_baseline(mgl_runner *self, int workload, double *us, mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    const mgl_workload *load = &runner->options.subject->workloads.list[workload];
    mgl_wire_baseline wire;
    double seconds = 0;
    *us = 0;
    memset(&wire, 0, sizeof wire);
    wire.load = mgl_runner_load(MGL_INCUMBENT, load, MGL_WORKLOAD_TOKENS, runner->seed);
    wire.count = BASELINE_LAUNCHES;
    mgl_question question = {.kind = MGL_REQUEST_BASELINE,
                             .fixed = &wire,
                             .fixed_length = sizeof wire,
                             .limit_s = MGL_RUNNER_LONG * runner->limit_s};
    mgl_runner_end_executor(runner);
    mgl_status status = mgl_runner_get(runner, &question, &seconds, sizeof seconds, NULL, err);
    mgl_runner_end_executor(runner);
    if (status)
        return status;
    *us = seconds * 1e6 / MGL_WORKLOAD_TOKENS;
    return isfinite(*us) && *us > 0
               ? MGL_OK
               : mgl_fail(err, MGL_DEVICE, "clock", "a launch of the baseline took %g s", seconds);
}

/*
 * Timing: pairs of launches of the incumbent and the candidate, one after the other in random
 * order, with both loaded; and the stream that gives the floor. A time counts only if the launch
 * generated the tokens of the correctness check. Implements pair, floor and promote of runner.h.
 */
#include "autotune/runner/runner_state.h"

#include "autotune/candidates/judge.h"
#include "autotune/runner/compare.h"
#include "base/draw.h"
#include "base/format.h"

#include <math.h>
#include <string.h>

enum { WARM_UPS = 2, STREAM_LOOKS = 7, LEAST_TOKENS = 2 };

/* Target duration of a launch in seconds: a slow program generates fewer tokens in a launch. */
static const double long_launch = 0.02;

/* State of a measurement. */
struct pairs {
    mgl_runner_state *runner;
    mgl_trial_verdict verdict;
    const mgl_workload *workload;
    int w;
    bool control;
    uint64_t seed;                      /* seed of weights, cache and first tokens */
    int tokens;                         /* tokens of a sequence in a launch */
    const int32_t *expected[MGL_SIDES]; /* expected tokens (batch, MGL_WORKLOAD_TOKENS) */
    mgl_runner_tokens of_control;       /* the incumbent's tokens in a control */
    bool known;                         /* of_control contains the tokens of a complete launch */
    bool swapped;                 /* in this pair of a control, the two machines are exchanged */
    mgl_paired_bench_clocks last; /* clocks after the warm-up, or after the previous pair */
};

static bool is_over(const struct pairs *p)
{
    return p->verdict.outcome != MGL_OUTCOME_OK;
}

/* ---- one launch ------------------------------------------------------------------------------ */

/* Compares the tokens with those of the correctness check. A difference of the incumbent means that
 * something wrote into its memory or its inputs. */
static void compare_tokens(struct pairs *p, mgl_side side, const int32_t *made)
{
    int s = 0, t = -1;
    const int32_t *expected = p->expected[side];
    for (; s < p->workload->batch; s++) {
        t = mgl_compare_words(made + s * p->tokens, expected + s * MGL_WORKLOAD_TOKENS,
                              (size_t)p->tokens);
        if (t >= 0)
            break;
    }
    if (t < 0)
        return;
    mgl_trial_verdict_set(
        &p->verdict,
        p->control              ? MGL_OUTCOME_NONDETERMINISTIC
        : side == MGL_CANDIDATE ? MGL_OUTCOME_MISMATCH
                                : MGL_OUTCOME_INPUT_MUTATED,
        "batch %d, context %d, sequence %d, step %d: a timed launch of the %s made "
        "token %d, and %d when it was checked",
        p->workload->batch, p->workload->context, s, t,
        side == MGL_CANDIDATE ? "candidate" : "incumbent", (int)made[s * p->tokens + t],
        (int)expected[s * MGL_WORKLOAD_TOKENS + t]);
}

/* Times one launch in microseconds a token. */
static mgl_status time_launch(struct pairs *p, mgl_side side, double *us, mgl_error *err)
{
    mgl_runner_tokens made;
    const mgl_wire_load load = mgl_runner_load(side, p->workload, p->tokens, p->seed);
    double seconds = 0;
    mgl_status status = mgl_runner_launch(p->runner, &load, made, &seconds, &p->verdict, err);
    if (status || is_over(p))
        return status;
    if (p->control && !p->known) {
        memcpy(p->of_control, made, sizeof made);
        p->known = true;
    }
    compare_tokens(p, side, made);
    *us = seconds * 1e6 / p->tokens;
    if (!is_over(p) && !(isfinite(*us) && *us > 0))
        return mgl_fail(err, MGL_DEVICE, "clock", "a launch took %g s", seconds);
    return MGL_OK;
}

static mgl_status look(struct pairs *p, mgl_paired_bench_clocks *out, mgl_error *err)
{
    const mgl_question question = {.kind = MGL_REQUEST_LOOK};
    *out = (mgl_paired_bench_clocks){0};
    return mgl_runner_get(p->runner, &question, out, sizeof *out, &p->verdict, err);
}

/* ---- one pair -------------------------------------------------------------------------------- */

/* The machine of a side. Two machines of one program differ by up to 0.1 % in a constant direction,
 * because of their memory addresses. In a control they are exchanged in half of the pairs, so that
 * the control measures only the clock and chance. */
static mgl_side machine_of(const struct pairs *p, mgl_side side)
{
    return p->swapped ? (side == MGL_CANDIDATE ? MGL_INCUMBENT : MGL_CANDIDATE) : side;
}

static mgl_status measure(struct pairs *p, mgl_pair *pair, mgl_error *err)
{
    mgl_paired_bench_clocks looks[3];
    mgl_side order[2] = {MGL_INCUMBENT, MGL_CANDIDATE};
    if (pair->candidate_first)
        order[0] = MGL_CANDIDATE, order[1] = MGL_INCUMBENT;
    mgl_status status = MGL_OK;
    looks[0] = p->last;
    for (int i = 0; i < 2 && !status && !is_over(p); i++) {
        double *us = order[i] == MGL_CANDIDATE ? &pair->candidate_us : &pair->incumbent_us;
        status = time_launch(p, machine_of(p, order[i]), us, err);
        if (!status && !is_over(p))
            status = look(p, &looks[i + 1], err);
    }
    if (status || is_over(p))
        return status;
    mgl_judge_note_clocks(looks, pair);
    p->last = looks[2];
    return MGL_OK;
}

static mgl_status place_both(struct pairs *p, mgl_error *err)
{
    mgl_runner_state *runner = p->runner;
    const mgl_runner_set *other = p->control ? &runner->incumbent : &runner->candidate;
    mgl_status status =
        mgl_runner_place(runner, MGL_INCUMBENT, &runner->incumbent,
                         runner->incumbent.program_of[p->w], NULL, &p->verdict, err);
    if (!status)
        status = mgl_runner_place(runner, MGL_CANDIDATE, other, other->program_of[p->w], NULL,
                                  &p->verdict, err);
    return status;
}

/* Runs launches that do not count. The incumbent's time determines the number of tokens of the
 * measured launches. The number is fixed before the first pair and equal for both sides. */
static mgl_status warm_up(struct pairs *p, mgl_error *err)
{
    double us;
    mgl_status status = MGL_OK;
    p->tokens = MGL_WORKLOAD_TOKENS;
    for (int i = 0; i < MGL_SIDES * WARM_UPS && !status && !is_over(p); i++) {
        status = time_launch(p, (mgl_side)(i % MGL_SIDES), &us, err);
        if (!status && !is_over(p) && i % MGL_SIDES == MGL_INCUMBENT)
            p->tokens = (int)fmin(MGL_WORKLOAD_TOKENS, fmax(LEAST_TOKENS, long_launch * 1e6 / us));
    }
    return status;
}

static mgl_status measure_all(struct pairs *p, int count, uint64_t seed, mgl_pair *out,
                              mgl_error *err)
{
    mgl_runner_state *runner = p->runner;
    mgl_fault fault = mgl_runner_take_fault(runner, MGL_RUNNER_PAIR);
    mgl_status status = place_both(p, err);
    if (!status && fault && !is_over(p))
        status = mgl_runner_arm(runner, fault, err);
    if (!status && !is_over(p))
        status = warm_up(p, err);
    if (!status && !is_over(p))
        status = look(p, &p->last, err);
    for (int i = 0; i < count && !status && !is_over(p); i++) {
        uint64_t bits = mgl_draw(&seed);
        out[i].candidate_first = bits & 1;
        p->swapped = p->control && (bits & 2);
        status = measure(p, &out[i], err);
    }
    if (!status && fault)
        status = mgl_runner_arm(runner, MGL_FAULT_NONE, err);
    return status;
}

static mgl_status check_call(const mgl_runner_state *runner, int workload, bool control,
                             mgl_error *err)
{
    if (workload < 0 || workload >= runner->options.subject->workloads.count)
        return mgl_fail(err, MGL_USAGE, "workload", "there is no workload %d", workload);
    if (runner->incumbent.serial == 0 || !(control || runner->checked))
        return mgl_fail(err, MGL_USAGE, NULL, "only what was checked, and is correct, is measured");
    return MGL_OK;
}

mgl_status mgl_runner_measure_pairs(mgl_runner *self, int workload, int count, uint64_t seed,
                                    bool control, mgl_pair *out, mgl_trial_verdict *verdict,
                                    mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    struct pairs p = {.runner = runner,
                      .verdict = {.outcome = MGL_OUTCOME_OK},
                      .w = workload,
                      .control = control,
                      .seed = control ? seed : runner->seed};
    mgl_status status = check_call(runner, workload, control, err);
    if (status)
        return status;
    p.workload = &runner->options.subject->workloads.list[workload];
    runner->expected = p.seed;
    for (int s = 0; s < MGL_SIDES; s++)
        p.expected[s] = control ? p.of_control : runner->made[s][workload];
    for (int i = 0; i < count; i++)
        out[i] = (mgl_pair){.workload = workload,
                            .stage = control ? MGL_PAIRS_CONTROL : MGL_PAIRS_SCREEN};
    status = measure_all(&p, count, seed, out, err);
    *verdict = p.verdict;
    return status;
}

/* ---- floor ----------------------------------------------------------------------------------- */

static mgl_status drop_candidate(mgl_runner_state *runner, mgl_error *err)
{
    mgl_answer answer;
    int32_t side = MGL_CANDIDATE;
    mgl_question question = {.kind = MGL_REQUEST_DROP, .fixed = &side, .fixed_length = sizeof side};
    mgl_status status = mgl_runner_ask(runner, &question, 0, &answer, err);
    mgl_answer_clear(&answer);
    runner->resident[MGL_CANDIDATE] = (mgl_runner_resident){0};
    return status;
}

/* Time of the fastest of several streams in seconds. If its buffer does not fit beside two
 * machines, the candidate is unloaded; it is loaded again when needed. */
static mgl_status stream(mgl_runner_state *runner, double bytes, double *seconds, mgl_error *err)
{
    mgl_wire_stream wire;
    mgl_answer answer;
    memset(&wire, 0, sizeof wire);
    wire.bytes = bytes;
    wire.count = STREAM_LOOKS;
    mgl_question question = {
        .kind = MGL_REQUEST_STREAM, .fixed = &wire, .fixed_length = sizeof wire};
    mgl_status status = mgl_runner_ask(runner, &question, sizeof *seconds, &answer, err);
    if (!status && answer.error.code && runner->executor) {
        mgl_answer_clear(&answer);
        status = drop_candidate(runner, err);
        if (!status)
            status = mgl_runner_ask(runner, &question, sizeof *seconds, &answer, err);
    }
    if (!status && answer.error.code)
        status = mgl_answer_fail(&answer, err);
    if (!status)
        memcpy(seconds, answer.bytes, sizeof *seconds);
    mgl_answer_clear(&answer);
    return status;
}

mgl_status mgl_runner_measure_floor(mgl_runner *self, int workload, bool again, double *us,
                                    mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    double seconds = 0;
    *us = 0;
    mgl_status status = check_call(runner, workload, false, err);
    if (status)
        return status;
    double bytes = runner->candidate.streamed[workload];
    if (!runner->runner.measures || bytes < 2 * (double)runner->facts.l2_bytes)
        return MGL_OK;
    if (again || !runner->measured[workload]) {
        status = stream(runner, bytes, &seconds, err);
        if (status)
            return status;
        if (!(seconds > 0))
            return mgl_fail(err, MGL_DEVICE, "stream", "%g bytes were read in %g s", bytes,
                            seconds);
        runner->measured[workload] = true;
        runner->fastest = fmax(runner->fastest, bytes / seconds);
    }
    *us = bytes / runner->fastest * 1e6;
    return MGL_OK;
}

/* ---- promotion ------------------------------------------------------------------------------- */

/* Promotes the candidate in the worker, if it is loaded there. */
static mgl_status promote_resident(mgl_runner_state *runner, mgl_error *err)
{
    mgl_answer answer;
    mgl_question question = {.kind = MGL_REQUEST_PROMOTE};
    if (!runner->executor || runner->resident[MGL_CANDIDATE].serial != runner->candidate.serial)
        return MGL_OK;
    mgl_runner_resident now = runner->resident[MGL_CANDIDATE];
    mgl_status status = mgl_runner_ask(runner, &question, 0, &answer, err);
    if (status)
        return status;
    if (answer.error.code)
        mgl_runner_end_executor(runner);
    else
        runner->resident[MGL_INCUMBENT] = now,
        runner->resident[MGL_CANDIDATE] = (mgl_runner_resident){0};
    mgl_answer_clear(&answer);
    return MGL_OK;
}

mgl_status mgl_runner_promote(mgl_runner *self, mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    if (!runner->checked)
        return mgl_fail(err, MGL_USAGE, NULL, "only what was checked, and is correct, is promoted");
    mgl_status status = promote_resident(runner, err);
    if (status)
        return status;
    mgl_runner_set_clear(&runner->incumbent);
    runner->incumbent = runner->candidate;
    runner->candidate = (mgl_runner_set){0};
    runner->checked = false;
    return MGL_OK;
}

/*
 * Correctness check of a candidate, before any timing. For each workload, with weights, first
 * tokens and cache generated from the nonce, on poisoned memory with two alternating patterns:
 *
 *     two complete launches        same tokens and last logits, bitwise
 *     a launch up to each of four  same tokens so far; the logits of its last step are compared
 *     steps drawn from the nonce   with the reference
 *     the referee's reference,     every token is near the largest f32 logit; the logits of the
 * four fed with these tokens        steps are within the error limit, for every sequence
 *
 * Then the incumbent runs once on the same nonce; timed launches are compared with its tokens. If
 * the incumbent is the default, its error is measured too. In campaigns that may change number
 * formats, the default's error is always measured. Implements mgl_runner.check.
 */
#include "autotune/runner/runner_state.h"

#include "autotune/runner/compare.h"
#include "base/clock.h"
#include "base/draw.h"
#include "base/format.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

enum { TOKENS = MGL_WORKLOAD_TOKENS };

/* State of a check. */
struct check {
    mgl_runner_state *runner;
    mgl_runner_check *out;
    mgl_trial_verdict verdict;
    uint64_t draws; /* state of the random generator */
    int vocab;
    int32_t steps[MGL_COMPARED_STEPS]; /* ascending */
    float *first, *second;             /* (batch, vocab) of two launches */
    float *logits;                     /* (MGL_COMPARED_STEPS, batch, vocab) */
    float *reference; /* the referee's reply: largest, chosen, norms (3, batch, TOKENS), then logits
                       * as in `logits` */
    int32_t fed[MGL_MAX_SEQUENCES * TOKENS]; /* the tokens that the reference was fed with */
    bool referred;                           /* the reference of the current workload is present */
};

static const mgl_workload *workload_of(const struct check *c, int w)
{
    return &c->runner->options.subject->workloads.list[w];
}

static bool is_over(const struct check *c)
{
    return c->verdict.outcome != MGL_OUTCOME_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static mgl_status allocate(struct check *c, mgl_error *err)
{
    const mgl_subject *subject = c->runner->options.subject;
    size_t batch = 1, vocab = (size_t)c->vocab;
    for (int w = 0; w < subject->workloads.count; w++)
        if ((size_t)workload_of(c, w)->batch > batch)
            batch = (size_t)workload_of(c, w)->batch;
    size_t words = 3 * batch * TOKENS + MGL_COMPARED_STEPS * batch * vocab;
    c->first = mgl_alloc(batch * vocab * sizeof *c->first);
    c->second = mgl_alloc(batch * vocab * sizeof *c->second);
    c->logits = mgl_alloc(MGL_COMPARED_STEPS * batch * vocab * sizeof *c->logits);
    c->reference = mgl_alloc(words * sizeof *c->reference);
    if (c->first && c->second && c->logits && c->reference)
        return MGL_OK;
    return mgl_fail_memory(err, words * sizeof *c->reference);
}

static void release(struct check *c)
{
    mgl_free(c->first);
    mgl_free(c->second);
    mgl_free(c->logits);
    mgl_free(c->reference);
}

/* ---- launches -------------------------------------------------------------------------------- */

static mgl_status get_logits(struct check *c, mgl_side side, int batch, float *logits,
                             mgl_error *err)
{
    const int32_t of[2] = {(int32_t)side, batch};
    const size_t bytes = (size_t)batch * (size_t)c->vocab * sizeof *logits;
    const mgl_question question = {
        .kind = MGL_REQUEST_LOGITS, .fixed = of, .fixed_length = sizeof of};
    return mgl_runner_get(c->runner, &question, logits, bytes,
                          side == MGL_CANDIDATE ? &c->verdict : NULL, err);
}

/* Launches a number of tokens, and gets the logits of the last step; `logits` may be NULL. */
static mgl_status launch(struct check *c, mgl_side side, int w, int tokens, int32_t *made,
                         float *logits, mgl_error *err)
{
    double seconds;
    mgl_wire_load load = mgl_runner_load(side, workload_of(c, w), tokens, c->runner->seed);
    load.poison = true;
    mgl_status status = mgl_runner_launch(c->runner, &load, made, &seconds, &c->verdict, err);
    if (status || is_over(c) || !logits)
        return status;
    return get_logits(c, side, load.batch, logits, err);
}

static mgl_status fail_twice(struct check *c, int w, const char *what, int first)
{
    const mgl_workload *load = workload_of(c, w);
    mgl_trial_verdict_set(&c->verdict, MGL_OUTCOME_NONDETERMINISTIC,
                          "batch %d, context %d: two launches on differently poisoned memory "
                          "differ in %s, first in number %d",
                          load->batch, load->context, what, first);
    return MGL_OK;
}

/* Runs two complete launches. The tokens go to `made`. */
static mgl_status launch_twice(struct check *c, int w, int32_t *made, mgl_error *err)
{
    mgl_runner_tokens again;
    const mgl_workload *load = workload_of(c, w);
    mgl_status status = launch(c, MGL_CANDIDATE, w, TOKENS, made, c->first, err);
    if (status || is_over(c))
        return status;
    if (!mgl_compare_known(*load, TOKENS, made, c->vocab, &c->verdict))
        return MGL_OK;
    status = launch(c, MGL_CANDIDATE, w, TOKENS, again, c->second, err);
    if (status || is_over(c))
        return status;
    int token = mgl_compare_words(made, again, (size_t)load->batch * TOKENS);
    if (token >= 0)
        return fail_twice(c, w, "tokens", token);
    int logit = mgl_compare_words(c->first, c->second, (size_t)load->batch * (size_t)c->vocab);
    return logit >= 0 ? fail_twice(c, w, "logits", logit) : MGL_OK;
}

/* Returns the index of the first token of a shorter launch that differs from the complete one; -1:
 * none. */
static int find_other(const int32_t *made, const int32_t *shorter, int batch, int tokens)
{
    for (int s = 0; s < batch; s++)
        for (int t = 0; t < tokens; t++)
            if (made[s * TOKENS + t] != shorter[s * tokens + t])
                return s * TOKENS + t;
    return -1;
}

/* Gets the logits of the compared steps by shorter launches. */
static mgl_status launch_steps(struct check *c, mgl_side side, int w, const int32_t *made,
                               mgl_error *err)
{
    mgl_runner_tokens shorter;
    int batch = workload_of(c, w)->batch;
    for (int i = 0; i < MGL_COMPARED_STEPS; i++) {
        float *logits = c->logits + (size_t)i * (size_t)batch * (size_t)c->vocab;
        int tokens = c->steps[i] + 1;
        mgl_status status = launch(c, side, w, tokens, shorter, logits, err);
        if (status || is_over(c))
            return status;
        int other = find_other(made, shorter, batch, tokens);
        if (other >= 0)
            return fail_twice(c, w, "tokens", other);
    }
    return MGL_OK;
}

/* ---- reference ------------------------------------------------------------------------------- */

static mgl_status need_referee(mgl_runner_state *runner, mgl_error *err)
{
    if (mgl_process_lives(runner->referee))
        return MGL_OK;
    mgl_process_close(runner->referee);
    runner->referee = NULL;
    return mgl_runner_start_worker(runner, MGL_REFEREE, &runner->referee, err);
}

/* Asks the referee. If it fails, asks a new one once; no candidate runs there. */
static mgl_status ask_referee(mgl_runner_state *runner, const mgl_question *question, size_t wanted,
                              mgl_answer *answer, mgl_error *err)
{
    for (int tries = 0; tries < 2; tries++) {
        mgl_status status = need_referee(runner, err);
        *answer = (mgl_answer){0};
        if (!status)
            status = mgl_runner_ask_process(runner, runner->referee, question, wanted, answer, err);
        if (status)
            return status;
        if (answer->fate == MGL_FATE_ANSWERED)
            break;
    }
    return answer->error.code ? mgl_answer_fail(answer, err) : MGL_OK;
}

static mgl_status check_reference(const struct check *c, size_t count, mgl_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(c->reference[i]))
            return mgl_fail(err, MGL_GATE, "reference",
                            "the f32 reference computed what is no number: there is nothing to "
                            "compare a candidate with");
    return MGL_OK;
}

/* Gets the reference fed with the tokens (batch, TOKENS), unless it is already present. */
static mgl_status refer(struct check *c, int w, const int32_t *made, mgl_error *err)
{
    mgl_answer answer;
    mgl_wire_refer fixed;
    const mgl_workload *load = workload_of(c, w);
    size_t words = (size_t)load->batch * TOKENS;
    size_t count = 3 * words + MGL_COMPARED_STEPS * (size_t)load->batch * (size_t)c->vocab;
    if (c->referred && mgl_compare_words(c->fed, made, words) < 0)
        return MGL_OK;
    memset(&fixed, 0, sizeof fixed);
    fixed.load = mgl_runner_load(MGL_INCUMBENT, load, TOKENS, c->runner->seed);
    fixed.step_count = MGL_COMPARED_STEPS;
    memcpy(fixed.steps, c->steps, sizeof c->steps);
    mgl_question question = {.kind = MGL_REQUEST_REFER,
                             .fixed = &fixed,
                             .bytes = made,
                             .fixed_length = sizeof fixed,
                             .length = words * sizeof *made,
                             .limit_s = MGL_RUNNER_LONG * c->runner->limit_s};
    mgl_status status =
        ask_referee(c->runner, &question, count * sizeof *c->reference, &answer, err);
    if (!status) {
        memcpy(c->reference, answer.bytes, count * sizeof *c->reference);
        memcpy(c->fed, made, words * sizeof *made);
        c->referred = true;
        status = check_reference(c, count, err);
    }
    mgl_answer_clear(&answer);
    return status;
}

/* ---- comparison ------------------------------------------------------------------------------ */

/* Compares the logits of the steps up to `last`. The largest error goes to *error. */
static void compare_steps(struct check *c, int w, int last, double *error)
{
    const mgl_workload *load = workload_of(c, w);
    const float *wanted = c->reference + 3 * (size_t)load->batch * TOKENS;
    for (int i = 0; i < MGL_COMPARED_STEPS && c->steps[i] <= last; i++)
        for (int s = 0; s < load->batch && !is_over(c); s++) {
            size_t at = ((size_t)i * (size_t)load->batch + (size_t)s) * (size_t)c->vocab;
            mgl_compare_place place = {*load, s, c->steps[i]};
            double one;
            mgl_compare_logits(&place, c->logits + at, wanted + at, c->vocab, &one, &c->verdict);
            *error = fmax(*error, one);
        }
}

/* Compares tokens and logits. If the logits before a wrong token are wrong too, the verdict reports
 * the logits. */
static void compare(struct check *c, int w, const int32_t *made, double *error)
{
    const mgl_workload *load = workload_of(c, w);
    size_t words = (size_t)load->batch * TOKENS;
    mgl_trial_verdict tokens;
    mgl_compare_reference reference = {c->reference, c->reference + words,
                                       c->reference + 2 * words};
    int bad = mgl_compare_tokens(*load, TOKENS, made, &reference, c->vocab, &tokens);
    compare_steps(c, w, bad < 0 ? TOKENS : bad % TOKENS, error);
    if (bad >= 0 && !is_over(c))
        c->verdict = tokens;
}

/* ---- workloads ------------------------------------------------------------------------------- */

/* Draws four different steps in ascending order. */
static void draw_steps(struct check *c)
{
    for (int i = 0; i < MGL_COMPARED_STEPS;) {
        int32_t step = (int32_t)(mgl_draw(&c->draws) % TOKENS);
        int at = i;
        bool taken = false;
        for (int k = 0; k < i; k++)
            taken |= c->steps[k] == step;
        if (taken)
            continue;
        for (; at > 0 && c->steps[at - 1] > step; at--)
            c->steps[at] = c->steps[at - 1];
        c->steps[at] = step;
        i++;
    }
}

static mgl_status place_candidate(struct check *c, int p, mgl_error *err)
{
    double kernel_s = 0;
    mgl_runner_state *runner = c->runner;
    mgl_status status =
        mgl_runner_place(runner, MGL_CANDIDATE, &runner->candidate, p, &kernel_s, &c->verdict, err);
    if (!status)
        c->out->compile_s += kernel_s;
    return status;
}

static mgl_status check_candidate(struct check *c, int w, mgl_error *err)
{
    int32_t *made = c->runner->made[MGL_CANDIDATE][w];
    mgl_status status = place_candidate(c, c->runner->candidate.program_of[w], err);
    if (!status && !is_over(c))
        status = launch_twice(c, w, made, err);
    if (!status && !is_over(c))
        status = launch_steps(c, MGL_CANDIDATE, w, made, err);
    if (!status && !is_over(c))
        status = refer(c, w, made, err);
    if (!status && !is_over(c))
        compare(c, w, made, &c->out->errors[w]);
    return status;
}

/* Measures the error of a side's program that was found correct earlier. Its tokens go to `made`. A
 * failure is an error of the runner. */
static mgl_status measure_error(struct check *c, mgl_side side, int w, int32_t *made, double *error,
                                mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (mgl_compare_known(*workload_of(c, w), TOKENS, made, c->vocab, &c->verdict))
        status = launch_steps(c, side, w, made, err);
    if (!status && !is_over(c))
        status = refer(c, w, made, err);
    if (!status && !is_over(c))
        compare(c, w, made, error);
    if (status || !is_over(c))
        return status;
    return mgl_fail(err, MGL_GATE, side == MGL_INCUMBENT ? "incumbent" : "default", "%s",
                    c->verdict.diagnostic);
}

static bool is_default(const mgl_runner_state *runner)
{
    return runner->incumbent.serial == runner->standard.serial;
}

static mgl_status run_incumbent(struct check *c, int w, mgl_error *err)
{
    mgl_runner_state *runner = c->runner;
    int32_t *made = runner->made[MGL_INCUMBENT][w];
    mgl_status status = mgl_runner_place(runner, MGL_INCUMBENT, &runner->incumbent,
                                         runner->incumbent.program_of[w], NULL, &c->verdict, err);
    if (!status)
        status = launch(c, MGL_INCUMBENT, w, TOKENS, made, NULL, err);
    if (!status && is_default(runner))
        status = measure_error(c, MGL_INCUMBENT, w, made, &c->out->defaults[w], err);
    return status;
}

static mgl_status check_workload(struct check *c, int w, mgl_error *err)
{
    draw_steps(c);
    c->referred = false;
    mgl_status status = check_candidate(c, w, err);
    return status || is_over(c) ? status : run_incumbent(c, w, err);
}

/* Measures the default on the candidate's side, if the incumbent is another program. */
static mgl_status measure_default(struct check *c, int w, mgl_error *err)
{
    mgl_runner_state *runner = c->runner;
    mgl_runner_tokens made;
    draw_steps(c);
    c->referred = false;
    mgl_status status = mgl_runner_place(runner, MGL_CANDIDATE, &runner->standard,
                                         runner->standard.program_of[w], NULL, &c->verdict, err);
    if (!status && !is_over(c))
        status = launch(c, MGL_CANDIDATE, w, TOKENS, made, NULL, err);
    if (status)
        return status;
    if (is_over(c))
        return mgl_fail(err, MGL_GATE, "default", "%s", c->verdict.diagnostic);
    return measure_error(c, MGL_CANDIDATE, w, made, &c->out->defaults[w], err);
}

/* Calls `work` for each workload, grouped by program. */
static mgl_status each_workload(struct check *c, const mgl_runner_set *set,
                                mgl_status (*work)(struct check *c, int w, mgl_error *err),
                                mgl_error *err)
{
    mgl_status status = MGL_OK;
    int count = c->runner->options.subject->workloads.count;
    for (int p = 0; p < set->program_count; p++)
        for (int w = 0; w < count && !status && !is_over(c); w++)
            if (set->program_of[w] == p)
                status = work(c, w, err);
    return status;
}

/* ---- complete check -------------------------------------------------------------------------- */

static uint64_t seed_of(const unsigned char *bytes)
{
    uint64_t seed = 0;
    for (int i = 0; i < 8; i++)
        seed |= (uint64_t)bytes[i] << (8 * i);
    return seed;
}

static bool has_same_kernels(const mgl_runner_set *a, const mgl_runner_set *b)
{
    bool same = a->program_count == b->program_count;
    for (int p = 0; p < a->program_count && same; p++)
        same = !strcmp(a->keys[p], b->keys[p]);
    return same;
}

static mgl_status check_all(struct check *c, mgl_error *err)
{
    mgl_runner_state *runner = c->runner;
    mgl_fault fault = mgl_runner_take_fault(runner, MGL_RUNNER_CHECK);
    mgl_status status = allocate(c, err);
    if (!status) /* a missing device must not be blamed on the candidate */
        status = runner->runner.get_device(&runner->runner, &(mgl_runner_device){0}, err);
    if (!status && fault)
        status = mgl_runner_arm(runner, fault, err);
    if (!status)
        status = each_workload(c, &runner->candidate, check_workload, err);
    if (!status && fault)
        status = mgl_runner_arm(runner, MGL_FAULT_NONE, err);
    if (!status && !is_over(c) && runner->options.subject->allow_formats && !is_default(runner))
        status = each_workload(c, &runner->standard, measure_default, err);
    return status;
}

mgl_status mgl_runner_check_candidate(mgl_runner *self, const mgl_candidate *candidate,
                                      const unsigned char nonce[MGL_SHA256_BYTES],
                                      mgl_runner_check *out, mgl_error *err)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    double start = mgl_clock_s();
    struct check c = {.runner = runner,
                      .out = out,
                      .verdict = {.outcome = MGL_OUTCOME_OK},
                      .draws = seed_of(nonce + 8),
                      .vocab = runner->options.subject->config.geometry.vocab};
    *out = (mgl_runner_check){0};
    for (int w = 0; w < MGL_MAX_WORKLOADS; w++)
        out->errors[w] = out->defaults[w] = -1;
    if (runner->incumbent.serial == 0)
        return mgl_fail(err, MGL_USAGE, NULL, "the runner was not started: it has no incumbent");
    runner->checked = false;
    runner->seed = runner->expected = seed_of(nonce);
    mgl_runner_set_clear(&runner->candidate);
    mgl_status status = mgl_runner_set_make(runner->options.subject, candidate, ++runner->serials,
                                            &runner->candidate, err);
    if (!status)
        status = check_all(&c, err);
    release(&c);
    out->same_kernel = !status && has_same_kernels(&runner->candidate, &runner->incumbent);
    out->verdict = c.verdict;
    out->seconds = mgl_clock_s() - start;
    runner->checked = !status && !is_over(&c);
    return status;
}

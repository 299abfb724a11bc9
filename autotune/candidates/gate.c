/*
 * The gates before the device, in this order: parse or lower, moves, digest; then validator with
 * meaning, limits of the machine, cost model. A candidate has one program for each number of
 * sequences among the workloads, and passes if all of them pass.
 *
 * A rejection is an outcome with the first diagnostic, never an error: a search learns from it, and
 * an agent reads it.
 */
#include "autotune/candidates/gate.h"

#include "api/plan.h"
#include "autotune/store/shape.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void mgl_candidate_clear(mgl_candidate *candidate)
{
    for (int i = 0; i < candidate->program_count; i++)
        mgl_plan_close(candidate->plans[i]);
    *candidate = (mgl_candidate){0};
}

double mgl_objective(const double *us, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        if (!(us[i] > 0))
            return 0;
        sum += log(us[i]);
    }
    return count ? exp(sum / count) : 0;
}

/* ---- the subject ----------------------------------------------------------------------------- */

mgl_status mgl_subject_open(mgl_subject *subject, mgl_error *err)
{
    char target[32];
    mgl_text shape = {0};
    mgl_plan_options options = {.size = sizeof options,
                                .target = target,
                                .dtype = mgl_dtype_name(subject->dtype),
                                .capacity = subject->capacity};
    snprintf(target, sizeof target, "%s:%d", subject->target.arch, subject->target.queues);
    mgl_shape_print(&subject->config, &shape);
    options.shape_text = shape.bytes;
    mgl_status status = shape.failed ? mgl_fail_memory(err, shape.capacity)
                                     : mgl_planner_open(&options, &subject->planner, err);
    mgl_text_clear(&shape);
    if (!status)
        subject->graph = mgl_planner_graph(subject->planner);
    return status;
}

void mgl_subject_close(mgl_subject *subject)
{
    mgl_planner_close(subject->planner);
    subject->planner = NULL;
    subject->graph = NULL;
}

/* ---- outcomes ------------------------------------------------------------------------------- */

static bool is_refused(const mgl_candidate *c)
{
    return c->verdict.outcome != MGL_OUTCOME_UNMEASURED;
}

/* ---- making the programs -------------------------------------------------------------------- */

/* Lists the distinct numbers of sequences of the workloads, in order of appearance, and assigns
 * each workload its program. */
static int list_sequences(const mgl_subject *subject, mgl_candidate *c, int *sequences)
{
    int count = 0;
    for (int w = 0; w < subject->workloads.count; w++) {
        int batch = subject->workloads.list[w].batch, p = 0;
        while (p < count && sequences[p] != batch)
            p++;
        if (p == count)
            sequences[count++] = batch;
        c->program_of[w] = p;
    }
    return count;
}

/* Rejects a proposal that changes knobs or moves outside the campaign's space. Such knobs must keep
 * the values with which the campaign began. */
static mgl_status check_space(const mgl_subject *subject, const mgl_proposal *proposal,
                              mgl_error *why)
{
    for (int k = 0; k < mgl_knob_count(); k++) {
        bool open = false;
        for (int i = 0; i < subject->space.count; i++)
            open |= !strcmp(subject->space.knobs[i].name, mgl_knob_name(k));
        int value = mgl_knob_get(&proposal->config, k), kept = mgl_knob_get(&subject->start, k);
        if (!open && value != kept)
            return mgl_fail(why, MGL_BAD_INPUT, mgl_knob_name(k),
                            "is not in the campaign's space; leave it at %d", kept);
    }
    for (int i = 0; i < proposal->moves.count; i++) {
        mgl_move_kind kind = proposal->moves.moves[i].kind;
        if (!(subject->space.moves & 1u << kind))
            return mgl_fail(why, MGL_BAD_INPUT, mgl_move_name(kind),
                            "is not a move of the campaign's space");
    }
    return MGL_OK;
}

/* Lowers a proposal for one number of sequences. Config and moves are passed as text, as the public
 * header requires. */
static mgl_status lower_one(const mgl_subject *subject, const mgl_proposal *proposal, int sequences,
                            mgl_plan **out, mgl_error *why)
{
    mgl_text config = {0}, moves = {0};
    const mgl_schedule_config *c = &proposal->config;
    if (c->rows > 0 && c->rows < sequences && c->second_rows < sequences)
        return mgl_fail(why, MGL_BAD_INPUT, c->second_rows > 0 ? "second_rows" : "rows",
                        "%d rows are too few for %d sequences",
                        c->second_rows > 0 ? c->second_rows : c->rows, sequences);
    mgl_schedule_config_print(&proposal->config, &config);
    mgl_moves_print(&proposal->moves, &moves);
    mgl_status status = MGL_OK;
    if (config.failed || moves.failed)
        status = mgl_fail_memory(why, config.capacity + moves.capacity);
    else
        status =
            mgl_planner_lower(subject->planner, config.bytes, moves.bytes, sequences, out, why);
    mgl_text_clear(&config);
    mgl_text_clear(&moves);
    return status;
}

void mgl_candidate_take(mgl_candidate *c, mgl_plan *plan)
{
    if (!plan)
        return;
    c->plans[c->program_count] = plan;
    c->programs[c->program_count++] = plan->program;
}

static mgl_status lower_all(const mgl_subject *subject, const mgl_proposal *proposal,
                            mgl_candidate *c, mgl_error *err)
{
    int sequences[MGL_MAX_WORKLOADS];
    mgl_error why = {0};
    int count = list_sequences(subject, c, sequences);
    mgl_status status = check_space(subject, proposal, &why);
    for (int p = 0; p < count && !status; p++) {
        mgl_plan *plan = NULL;
        status = lower_one(subject, proposal, sequences[p], &plan, &why);
        mgl_candidate_take(c, plan);
    }
    return mgl_trial_verdict_of(&c->verdict, status, MGL_OUTCOME_INVALID_CONFIG, &why, err);
}

/* ---- a schedule text ------------------------------------------------------------------------ */

/* Checks the target, model, formats and limits that a schedule text states. They must be the
 * campaign's. Without allow_formats, the text may not exchange fewer bits than the campaign's
 * default program. */
static mgl_status check_text(const mgl_subject *subject, const mgl_plan *plan, int sequences,
                             mgl_error *why)
{
    const mgl_proposal start = {.config = subject->start};
    mgl_plan *lowered = NULL;
    mgl_status status = mgl_planner_match(subject->planner, plan, sequences, why);
    if (status || subject->allow_formats)
        return status;
    status = lower_one(subject, &start, sequences, &lowered, why);
    if (!status)
        status = mgl_plan_check_formats(plan, lowered, why);
    if (status && lowered)
        mgl_format_into(why->message, sizeof why->message, "%s",
                        "the program has a number format that the campaign's default does not "
                        "have; this needs --allow-formats");
    mgl_plan_close(lowered);
    return status;
}

static mgl_status parse_text(const mgl_subject *subject, const mgl_proposal *proposal,
                             mgl_candidate *c, mgl_error *err)
{
    int sequences[MGL_MAX_WORKLOADS];
    mgl_error why = {0};
    if (list_sequences(subject, c, sequences) != 1) {
        mgl_fail(&why, MGL_BAD_INPUT, "schedule",
                 "a schedule text is for one number of sequences, but the campaign's workloads "
                 "have several; propose a config and moves");
        mgl_trial_verdict_fail(&c->verdict, MGL_OUTCOME_INVALID_CONFIG, &why);
        return MGL_OK;
    }
    mgl_plan *plan = NULL;
    mgl_status status =
        mgl_plan_parse(proposal->schedule, strlen(proposal->schedule), "schedule", &plan, &why);
    mgl_candidate_take(c, plan);
    if (status)
        return mgl_trial_verdict_of(&c->verdict, status, MGL_OUTCOME_PARSE, &why, err);
    status = check_text(subject, c->plans[0], sequences[0], &why);
    return mgl_trial_verdict_of(&c->verdict, status, MGL_OUTCOME_INVALID_CONFIG, &why, err);
}

/* ---- digest of the candidate ----------------------------------------------------------------- */

static int read_digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static mgl_status name_candidate(mgl_candidate *c, mgl_error *err)
{
    mgl_sha256 hash;
    unsigned char digest[MGL_SHA256_BYTES];
    char text[MGL_DIGEST_SIZE];
    mgl_status status = MGL_OK;
    mgl_sha256_start(&hash);
    for (int p = 0; p < c->program_count && !status; p++) {
        status = mgl_plan_digest(c->plans[p], text, err);
        for (int i = 0; i < MGL_SHA256_BYTES && !status; i++)
            digest[i] = (unsigned char)(read_digit(text[2 * i]) << 4 | read_digit(text[2 * i + 1]));
        mgl_sha256_add(&hash, digest, sizeof digest);
    }
    mgl_sha256_end(&hash, digest);
    mgl_sha256_hex(digest, c->digest);
    return status;
}

mgl_status mgl_gate_lower(const mgl_subject *subject, const mgl_proposal *proposal,
                          mgl_candidate *out, mgl_error *err)
{
    *out = (mgl_candidate){.verdict.outcome = MGL_OUTCOME_UNMEASURED};
    mgl_status status = proposal->schedule ? parse_text(subject, proposal, out, err)
                                           : lower_all(subject, proposal, out, err);
    if (status)
        mgl_candidate_clear(out);
    return status;
}

mgl_status mgl_gate_make(const mgl_subject *subject, const mgl_proposal *proposal,
                         mgl_candidate *out, mgl_error *err)
{
    mgl_status status = mgl_gate_lower(subject, proposal, out, err);
    if (!status && !is_refused(out))
        status = name_candidate(out, err);
    if (status)
        mgl_candidate_clear(out);
    return status;
}

/* ---- proofs --------------------------------------------------------------------------------- */

static mgl_status prove_one(const mgl_subject *subject, mgl_plan *plan, mgl_candidate *c,
                            mgl_error *err)
{
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    mgl_status status = mgl_planner_check(subject->planner, plan, &verdict, err);
    if (!status && !(verdict.accepted && verdict.meaning_checked)) {
        const mgl_plan_diagnostic *first = verdict.count ? &verdict.diagnostics[0] : NULL;
        c->verdict.code = first ? first->code : 0;
        mgl_trial_verdict_set(&c->verdict, MGL_OUTCOME_REJECTED, "MG%03d: %s", c->verdict.code,
                              first ? first->message : "the meaning was not checked");
    }
    mgl_plan_verdict_clear(&verdict);
    return status;
}

/* Checks the limits of the kernel, which an accepted program may still exceed. */
static mgl_status check_machine(const mgl_plan *plan, mgl_candidate *c, mgl_error *err)
{
    mgl_error why = {0};
    mgl_status status = mgl_plan_check_machine(plan, &why);
    bool shared = !strcmp(why.where, "shared memory");
    return mgl_trial_verdict_of(&c->verdict, status,
                                shared ? MGL_OUTCOME_RESOURCE_SHARED : MGL_OUTCOME_VM_RESOURCES,
                                &why, err);
}

/* Predicts times. If the cost model cannot price a program, its prediction stays 0, and the
 * candidate is not rejected. */
void mgl_gate_predict(const mgl_subject *subject, mgl_candidate *c)
{
    const mgl_workloads *all = &subject->workloads;
    for (int w = 0; w < all->count && subject->has_costs; w++) {
        mgl_cost cost;
        double mean = all->list[w].context + (double)(MGL_WORKLOAD_TOKENS - 1) / 2;
        mgl_cost_load load = {all->list[w].batch, mean, MGL_WORKLOAD_TOKENS};
        if (!mgl_schedule_cost(c->programs[c->program_of[w]], &subject->costs, &load, &cost, NULL))
            c->predicted_us[w] = cost.us;
    }
    c->predicted = mgl_objective(c->predicted_us, all->count);
}

mgl_status mgl_gate_prove(const mgl_subject *subject, const atomic_int *abort,
                          mgl_candidate *candidate, mgl_error *err)
{
    double start = mgl_clock_s();
    mgl_status status = MGL_OK;
    for (int p = 0; p < candidate->program_count && !status && !is_refused(candidate); p++) {
        status = mgl_check_abort(abort, err);
        if (!status)
            status = prove_one(subject, candidate->plans[p], candidate, err);
        if (!status && !is_refused(candidate))
            status = check_machine(candidate->plans[p], candidate, err);
    }
    candidate->check_s = mgl_clock_s() - start;
    if (!status)
        status = mgl_check_abort(abort, err);
    if (!status && !is_refused(candidate))
        mgl_gate_predict(subject, candidate);
    return status;
}

mgl_status mgl_gate_pass(const mgl_subject *subject, const mgl_proposal *proposal,
                         const atomic_int *abort, mgl_candidate *out, mgl_error *err)
{
    mgl_status status = mgl_gate_make(subject, proposal, out, err);
    if (!status && !is_refused(out))
        status = mgl_gate_prove(subject, abort, out, err);
    if (status)
        mgl_candidate_clear(out);
    return status;
}

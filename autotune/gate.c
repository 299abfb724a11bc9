/*
 * The gates before any device, in this order: parse or lower, moves, digest; then validator with
 * meaning, what the machine can run, cost model. A candidate has one program for each number of
 * sequences among the workloads, and passes when all of them do.
 *
 * Whatever stops a proposal is an outcome with the first diagnostic, never an error: a search learns
 * from it, and an agent reads it back.
 */
#include "autotune/gate.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/memory.h"
#include "validator/validator.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/encode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void mgl_candidate_clear(mgl_candidate *candidate)
{
    for (int i = 0; i < candidate->program_count; i++)
        mgl_program_free(candidate->programs[i]);
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

/* ---- outcomes ------------------------------------------------------------------------------- */

static mgl_status refuse(mgl_candidate *c, mgl_outcome outcome, const mgl_error *why)
{
    c->outcome = outcome;
    mgl_diagnostic_of(why, c->diagnostic);
    return MGL_OK;
}

/* A failure of a part becomes an outcome, unless there is no going on behind it. */
static mgl_status judge(mgl_candidate *c, mgl_status status, mgl_outcome outcome,
                        const mgl_error *why, mgl_error *err)
{
    if (status == MGL_NO_MEMORY || status == MGL_INTERRUPTED) {
        if (err)
            *err = *why;
        return status;
    }
    return status ? refuse(c, outcome, why) : MGL_OK;
}

static bool is_refused(const mgl_candidate *c)
{
    return c->outcome != MGL_OUTCOME_UNMEASURED;
}

/* ---- making the programs -------------------------------------------------------------------- */

/* The programs that the workloads want: one for each number of sequences, by which they stand. */
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

/* Knobs and moves that are not in the space have to stay as the campaign began. */
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
                            "is not in the campaign's space: it stays at %d", kept);
    }
    for (int i = 0; i < proposal->moves.count; i++) {
        mgl_move_kind kind = proposal->moves.moves[i].kind;
        if (!(subject->space.moves & 1u << kind))
            return mgl_fail(why, MGL_BAD_INPUT, mgl_move_name(kind),
                            "is no move of the campaign's space");
    }
    return MGL_OK;
}

static mgl_status lower_one(const mgl_subject *subject, const mgl_proposal *proposal, int sequences,
                            mgl_program **out, mgl_error *why)
{
    mgl_lower_options options = {subject->dtype, subject->capacity, sequences};
    mgl_program *lowered = NULL;
    if (proposal->config.rows > 0 && proposal->config.rows < sequences)
        return mgl_fail(why, MGL_BAD_INPUT, "rows", "%d rows are too few for %d sequences",
                        proposal->config.rows, sequences);
    mgl_status status = mgl_schedule_lower(subject->graph, &subject->target, &options,
                                           &proposal->config, &lowered, why);
    if (status || proposal->moves.count == 0) {
        *out = lowered;
        return status;
    }
    status = mgl_moves_apply(lowered, &proposal->moves, out, why);
    mgl_program_free(lowered);
    return status;
}

static mgl_status lower_all(const mgl_subject *subject, const mgl_proposal *proposal,
                            mgl_candidate *c, mgl_error *err)
{
    int sequences[MGL_MAX_WORKLOADS];
    mgl_error why = {0};
    int count = list_sequences(subject, c, sequences);
    mgl_status status = check_space(subject, proposal, &why);
    for (int p = 0; p < count && !status; p++) {
        status = lower_one(subject, proposal, sequences[p], &c->programs[p], &why);
        c->program_count += c->programs[p] != NULL;
    }
    return judge(c, status, MGL_OUTCOME_INVALID_CONFIG, &why, err);
}

/* ---- a schedule text ------------------------------------------------------------------------ */

/* The formats of the buffers that each operand of each op has: bits by mgl_dtype. */
typedef struct formats {
    unsigned bits[MGL_OP_COUNT][MGL_MAX_OPERANDS];
} formats;

static void list_formats(const mgl_program *program, formats *out)
{
    *out = (formats){0};
    for (int t = 0; t < program->task_count; t++) {
        const mgl_task *task = &program->tasks[t];
        int ins = mgl_op_get(task->op)->in_count;
        for (int i = 0; i < task->in.count + task->out.count; i++) {
            bool in = i < task->in.count;
            int region = in ? task->in.first + i : task->out.first + i - task->in.count;
            int operand = in ? i : ins + i - task->in.count;
            if (operand < MGL_MAX_OPERANDS)
                out->bits[task->op][operand] |=
                    1u << program->buffers[program->regions[region].buffer].dtype;
        }
    }
}

/* A text may not exchange in fewer bits than the program that the campaign began with. */
static mgl_status check_formats(const mgl_subject *subject, const mgl_program *program,
                                mgl_error *why)
{
    formats own, wanted;
    mgl_proposal start = {.config = subject->start};
    mgl_program *lowered = NULL;
    mgl_status status = lower_one(subject, &start, program->limits.sequences, &lowered, why);
    if (status)
        return status;
    list_formats(program, &own);
    list_formats(lowered, &wanted);
    mgl_program_free(lowered);
    for (int op = 0; op < MGL_OP_COUNT; op++)
        for (int i = 0; i < MGL_MAX_OPERANDS; i++)
            if (own.bits[op][i] & ~(wanted.bits[op][i] | 1u << MGL_F32))
                return mgl_fail(why, MGL_BAD_INPUT, mgl_op_get((mgl_op)op)->name,
                                "operand %d has a number format that the campaign's default has "
                                "not: that needs --allow-narrow",
                                i);
    return MGL_OK;
}

/* A text states target, model, formats and limits by itself: they have to be the campaign's. */
static mgl_status check_text(const mgl_subject *subject, const mgl_program *program, int sequences,
                             mgl_error *why)
{
    const mgl_target *target = &subject->target;
    const char *where = "schedule";
    if (strcmp(program->target.arch, target->arch) != 0 || program->queue_count > target->queues)
        return mgl_fail(why, MGL_BAD_INPUT, where, "it is for %.15s:%d; the campaign is of %s:%d",
                        program->target.arch, program->queue_count, target->arch, target->queues);
    if (target->shared_bytes > 0 && program->target.shared_bytes > target->shared_bytes)
        return mgl_fail(why, MGL_BAD_INPUT, where,
                        "it counts on %lld bytes of shared memory; the target has %lld",
                        (long long)program->target.shared_bytes, (long long)target->shared_bytes);
    if (program->limits.sequences != sequences || program->limits.capacity != subject->capacity)
        return mgl_fail(why, MGL_BAD_INPUT, where,
                        "it is of %d sequences of %d positions; the campaign's are %d of %d",
                        program->limits.sequences, program->limits.capacity, sequences,
                        subject->capacity);
    if (program->dtype != subject->dtype || program->kv_dtype != subject->dtype)
        return mgl_fail(why, MGL_BAD_INPUT, where, "its formats are not the campaign's %s",
                        mgl_dtype_name(subject->dtype));
    if (memcmp(&program->geometry, &subject->config.geometry, sizeof program->geometry) != 0)
        return mgl_fail(why, MGL_BAD_INPUT, where, "it is of another model");
    return subject->allow_narrow ? MGL_OK : check_formats(subject, program, why);
}

static mgl_status parse_text(const mgl_subject *subject, const mgl_proposal *proposal,
                             mgl_candidate *c, mgl_error *err)
{
    int sequences[MGL_MAX_WORKLOADS];
    mgl_error why = {0};
    if (list_sequences(subject, c, sequences) != 1) {
        mgl_fail(&why, MGL_BAD_INPUT, "schedule",
                 "the campaign has workloads of different numbers of sequences, and a text is of "
                 "one: propose a config and moves");
        return refuse(c, MGL_OUTCOME_INVALID_CONFIG, &why);
    }
    mgl_status status = mgl_schedule_parse(proposal->schedule, strlen(proposal->schedule),
                                           "schedule", &c->programs[0], &why);
    c->program_count = c->programs[0] != NULL;
    if (status)
        return judge(c, status, MGL_OUTCOME_PARSE, &why, err);
    status = check_text(subject, c->programs[0], sequences[0], &why);
    return judge(c, status, MGL_OUTCOME_INVALID_CONFIG, &why, err);
}

/* ---- the name of what was made -------------------------------------------------------------- */

static mgl_status name_candidate(mgl_candidate *c, mgl_error *err)
{
    mgl_sha256 hash;
    unsigned char digest[MGL_SHA256_BYTES];
    mgl_status status = MGL_OK;
    mgl_sha256_start(&hash);
    for (int p = 0; p < c->program_count && !status; p++) {
        status = mgl_program_digest(c->programs[p], digest, err);
        mgl_sha256_add(&hash, digest, sizeof digest);
    }
    mgl_sha256_end(&hash, digest);
    mgl_sha256_hex(digest, c->digest);
    return status;
}

mgl_status mgl_gate_lower(const mgl_subject *subject, const mgl_proposal *proposal,
                          mgl_candidate *out, mgl_error *err)
{
    *out = (mgl_candidate){.outcome = MGL_OUTCOME_UNMEASURED};
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

static mgl_status prove_one(const mgl_subject *subject, const mgl_program *program,
                            mgl_candidate *c, mgl_error *err)
{
    mgl_verdict verdict = {0};
    mgl_status status = mgl_validator_check(program, subject->graph, &verdict, err);
    if (!status && !(verdict.accepted && verdict.meaning_checked)) {
        const mgl_diagnostic *first = verdict.count ? &verdict.diagnostics[0] : NULL;
        c->outcome = MGL_OUTCOME_REJECTED;
        c->code = first ? first->code : 0;
        mgl_format_ends(c->diagnostic, sizeof c->diagnostic, "MG%03d: %s", c->code,
                        first ? first->message : "the meaning was not checked");
    }
    mgl_verdict_clear(&verdict);
    return status;
}

/* What an accepted program may still ask for in vain: the kernel's own limits. */
static mgl_status check_machine(const mgl_subject *subject, const mgl_program *program,
                                mgl_candidate *c, mgl_error *err)
{
    mgl_error why = {0};
    if (!strcmp(subject->target.arch, "cpu"))
        return MGL_OK;
    mgl_status status = mgl_cuda_check_program(program, &why);
    if (status)
        return judge(c, status, MGL_OUTCOME_VM_RESOURCES, &why, err);
    size_t shared = mgl_cuda_shared_bytes(program);
    if (shared <= (size_t)subject->target.shared_bytes)
        return MGL_OK;
    mgl_fail(&why, MGL_BAD_INPUT, "shared memory", "%zu bytes a block; the target has %lld", shared,
             (long long)subject->target.shared_bytes);
    return refuse(c, MGL_OUTCOME_RESOURCE_SHARED, &why);
}

/* A program that the model can not price has no prediction; that is no fault of it. */
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
            status = prove_one(subject, candidate->programs[p], candidate, err);
        if (!status && !is_refused(candidate))
            status = check_machine(subject, candidate->programs[p], candidate, err);
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

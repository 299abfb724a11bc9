/*
 * Plans: schedules in the hands of whoever uses the library. Lowering, the text form, the
 * validator and the cost model, each behind one function of the public header. A plan remembers
 * whether it was proved safe, since the cost model plays a program through and relies on that.
 */
#include "pipeline.h"

#include "base/memory.h"
#include "base/sized.h"
#include "eval/synthetic.h"
#include "importer/checkpoint.h"
#include "schedule/cost.h"
#include "schedule/moves.h"
#include "validator/validator.h"

#include <string.h>

_Static_assert((int)MGL_DIGEST_SIZE == (int)MGL_SHA256_HEX, "a digest is a SHA-256");

struct mgl_plan {
    mgl_program *program;
    bool safe; /* the validator accepted it */
};

/* What a plan is lowered from, or checked against: a model's files, or a shape. */
typedef struct origin {
    mgl_checkpoint *checkpoint;
    mgl_graph *made;        /* of a shape; owned */
    const mgl_graph *graph; /* of either; NULL: neither was named */
} origin;

static mgl_status make_shape(const char *name, mgl_graph **out, mgl_error *err)
{
    mgl_config config;
    mgl_status status = mgl_synthetic_find_shape(name, &config, err);
    return status ? status : mgl_synthetic_open(&config, 1, out, err);
}

static mgl_status open_origin(const char *model, const char *shape, origin *out, mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (model && shape)
        return mgl_fail(err, MGL_USAGE, "shape", "stands in place of a model; leave out one");
    if (model)
        status = mgl_import(model, &out->checkpoint, err);
    else if (shape)
        status = make_shape(shape, &out->made, err);
    if (!status)
        out->graph = out->checkpoint ? out->checkpoint->graph : out->made;
    return status;
}

static void close_origin(origin *from)
{
    mgl_checkpoint_close(from->checkpoint);
    mgl_graph_free(from->made);
}

/* ---- making one ------------------------------------------------------------------------------ */

/* A plan of a program, which belongs to the plan from now on, also where this fails. */
static mgl_status make_plan(mgl_program *program, mgl_plan **out, mgl_error *err)
{
    *out = mgl_alloc_zero(1, sizeof **out);
    if (!*out) {
        mgl_program_free(program);
        return mgl_fail_memory(err, sizeof **out);
    }
    (*out)->program = program;
    return MGL_OK;
}

/* Puts the program with the moves in the place of the one without. */
static mgl_status apply_moves(const char *text, mgl_program **program, mgl_error *err)
{
    mgl_moves moves;
    mgl_program *moved = NULL;
    mgl_status status = mgl_moves_parse(text, strlen(text), "moves", &moves, err);
    if (status)
        return status;
    status = mgl_moves_apply(*program, &moves, &moved, err);
    mgl_moves_clear(&moves);
    if (status)
        return status;
    mgl_program_free(*program);
    *program = moved;
    return MGL_OK;
}

static mgl_status lower(const mgl_plan_options *o, const mgl_graph *graph, mgl_program **out,
                        mgl_error *err)
{
    mgl_lower_request request = {.dtype = o->dtype,
                                 .config = o->config,
                                 .config_text = o->config_text,
                                 .capacity = o->capacity,
                                 .sequences = o->sequences,
                                 .unproved = true};
    mgl_target target;
    mgl_status status = mgl_target_find(o->target, &target, err);
    if (!status)
        status = mgl_pipeline_lower(graph, &target, &request, out, err);
    if (!status && o->moves)
        status = apply_moves(o->moves, out, err);
    return status ? status : mgl_vm_check(*out, graph, err);
}

static mgl_status check_options(const mgl_plan_options *o, mgl_error *err)
{
    if (!o->model && !o->shape)
        return mgl_fail(err, MGL_USAGE, "model", "or shape is needed: what to lower");
    if (o->config && o->config_text)
        return mgl_fail(err, MGL_USAGE, "config_text", "stands in place of config; leave out one");
    return MGL_OK;
}

mgl_status mgl_plan_lower(const mgl_plan_options *options, mgl_plan **out, mgl_error *err)
{
    mgl_plan_options known = {0};
    origin from = {0};
    mgl_program *program = NULL;
    if (out)
        *out = NULL;
    if (!options || !out)
        return mgl_fail_null(err, __func__, options ? "out" : "options");
    mgl_status status = mgl_sized_read(&known, sizeof known, options, "mgl_plan_options", err);
    if (!status)
        status = check_options(&known, err);
    if (!status)
        status = open_origin(known.model, known.shape, &from, err);
    if (!status)
        status = lower(&known, from.graph, &program, err);
    close_origin(&from);
    if (status) {
        mgl_program_free(program);
        return status;
    }
    status = make_plan(program, out, err);
    if (!status)
        (*out)->safe = true;
    return status;
}

mgl_status mgl_plan_parse(const char *text, size_t length, const char *name, mgl_plan **out,
                          mgl_error *err)
{
    mgl_program *program = NULL;
    if (out)
        *out = NULL;
    if ((!text && length) || !out)
        return mgl_fail_null(err, __func__, out ? "text" : "out");
    name = name ? name : "schedule";
    if (length > MGL_SCHEDULE_MAX_TEXT)
        return mgl_fail(err, MGL_BAD_INPUT, name, "%zu bytes; at most %d are read", length,
                        MGL_SCHEDULE_MAX_TEXT);
    mgl_status status = mgl_schedule_parse(text ? text : "", length, name, &program, err);
    return status ? status : make_plan(program, out, err);
}

void mgl_plan_close(mgl_plan *plan)
{
    if (!plan)
        return;
    mgl_program_free(plan->program);
    mgl_free(plan);
}

/* ---- saying what it is ----------------------------------------------------------------------- */

mgl_status mgl_plan_text(const mgl_plan *plan, char **out, size_t *length, mgl_error *err)
{
    mgl_text text = {0};
    if (out)
        *out = NULL;
    if (!plan || !out)
        return mgl_fail_null(err, __func__, plan ? "out" : "plan");
    mgl_schedule_print(plan->program, &text);
    if (text.failed) {
        mgl_status status = mgl_fail_memory(err, text.length);
        mgl_text_clear(&text);
        return status;
    }
    *out = text.bytes;
    if (length)
        *length = text.length;
    return MGL_OK;
}

mgl_status mgl_plan_digest(const mgl_plan *plan, char out[MGL_DIGEST_SIZE], mgl_error *err)
{
    unsigned char digest[MGL_SHA256_BYTES];
    if (!plan || !out)
        return mgl_fail_null(err, __func__, plan ? "out" : "plan");
    mgl_status status = mgl_program_digest(plan->program, digest, err);
    if (!status)
        mgl_sha256_hex(digest, out);
    return status;
}

/* ---- checking -------------------------------------------------------------------------------- */

/* The texts of a diagnostic become the caller's. */
static mgl_plan_diagnostic take_diagnostic(mgl_diagnostic *from)
{
    mgl_plan_diagnostic taken = {.code = from->code,
                                 .line = from->line,
                                 .task = from->task,
                                 .message = from->message,
                                 .witness = from->witness,
                                 .witness_count = (size_t)from->witness_count};
    *from = (mgl_diagnostic){0};
    return taken;
}

static mgl_status take_verdict(mgl_verdict *from, mgl_plan_verdict *out, mgl_error *err)
{
    size_t count = (size_t)from->count;
    *out = (mgl_plan_verdict){.size = sizeof *out,
                              .accepted = from->accepted,
                              .meaning_checked = from->meaning_checked,
                              .tasks = from->tasks,
                              .counters = from->counters,
                              .seconds = from->ms / 1e3};
    if (count == 0)
        return MGL_OK;
    out->diagnostics = mgl_alloc_zero(count, sizeof *out->diagnostics);
    if (!out->diagnostics)
        return mgl_fail_memory(err, count * sizeof *out->diagnostics);
    out->count = count;
    for (size_t i = 0; i < count; i++)
        out->diagnostics[i] = take_diagnostic(&from->diagnostics[i]);
    return MGL_OK;
}

static void free_diagnostics(mgl_plan_diagnostic *diagnostics, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t w = 0; w < diagnostics[i].witness_count; w++)
            mgl_free(diagnostics[i].witness[w]);
        mgl_free(diagnostics[i].witness);
        mgl_free(diagnostics[i].message);
    }
    mgl_free(diagnostics);
}

void mgl_plan_verdict_clear(mgl_plan_verdict *verdict)
{
    static const mgl_plan_verdict cleared;
    if (!verdict)
        return;
    if (verdict->size >= offsetof(mgl_plan_verdict, accepted))
        free_diagnostics(verdict->diagnostics, verdict->count);
    if (verdict->size)
        mgl_sized_write(verdict, &cleared, sizeof cleared);
}

static mgl_status check(mgl_plan *plan, const char *model, const char *shape, mgl_plan_verdict *out,
                        mgl_error *err)
{
    origin from = {0};
    mgl_verdict verdict = {0};
    mgl_status status = open_origin(model, shape, &from, err);
    if (!status)
        status = mgl_validator_check(plan->program, from.graph, &verdict, err);
    if (!status)
        status = take_verdict(&verdict, out, err);
    plan->safe |= !status && out->accepted;
    mgl_verdict_clear(&verdict);
    close_origin(&from);
    return status;
}

mgl_status mgl_plan_check(mgl_plan *plan, const char *model, const char *shape,
                          mgl_plan_verdict *out, mgl_error *err)
{
    mgl_plan_verdict verdict;
    if (!plan || !out)
        return mgl_fail_null(err, __func__, plan ? "out" : "plan");
    mgl_status status =
        mgl_sized_check(out, offsetof(mgl_plan_verdict, accepted), "mgl_plan_verdict", err);
    if (status)
        return status;
    mgl_plan_verdict_clear(out);
    status = check(plan, model, shape, &verdict, err);
    if (!status)
        mgl_sized_write(out, &verdict, sizeof verdict);
    return status;
}

/* ---- pricing --------------------------------------------------------------------------------- */

static mgl_status prove_safe(mgl_plan *plan, mgl_error *err)
{
    if (plan->safe)
        return MGL_OK;
    mgl_status status = mgl_vm_check(plan->program, NULL, err);
    plan->safe = !status;
    return status;
}

mgl_status mgl_plan_predict(mgl_plan *plan, const char *device, int32_t batch, double context,
                            int32_t tokens, mgl_plan_prediction *out, mgl_error *err)
{
    mgl_costs costs;
    mgl_cost cost = {0};
    const char *name = NULL;
    const mgl_cost_load load = {.batch = batch, .context = context, .tokens = tokens};
    if (!plan || !out)
        return mgl_fail_null(err, __func__, plan ? "out" : "plan");
    mgl_status status = mgl_sized_check(out, sizeof out->size, "mgl_plan_prediction", err);
    if (!status)
        status = mgl_costs_find_for(&plan->program->target, device, &name, &costs, err);
    if (!status)
        status = prove_safe(plan, err);
    if (!status)
        status = mgl_schedule_cost(plan->program, &costs, &load, &cost, err);
    if (status)
        return status;
    mgl_plan_prediction prediction = {.size = sizeof prediction,
                                      .device = name,
                                      .us = cost.us,
                                      .floor_us = cost.floor_us,
                                      .tape_bytes = cost.tape_bytes,
                                      .cache_bytes = cost.cache_bytes};
    mgl_sized_write(out, &prediction, sizeof prediction);
    return MGL_OK;
}

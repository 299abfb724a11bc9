/*
 * Implements plans (mgl_plan_*) and planners (mgl_planner_*) of the public header: lowering, moves,
 * the text form, validation, and the cost model. A planner keeps the model or shape from which it
 * lowers many plans. A plan records whether the validator accepted it: the cost model simulates
 * only accepted programs.
 */
#include "api/plan.h"
#include "vm/pipeline/machine_check.h"

#include "base/memory.h"
#include "base/sized.h"
#include "eval/synthetic.h"
#include "importer/checkpoint.h"
#include "schedule/cost/cost.h"
#include "schedule/digest.h"
#include "schedule/moves/moves.h"
#include "validator/validator.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/encode.h"
#include "vm/pipeline/pipeline.h"

#include <string.h>

enum { MAX_SHAPE_TEXT = 1 << 16 }; /* bytes of a shape_text */
_Static_assert((int)MGL_DIGEST_SIZE == (int)MGL_SHA256_HEX, "a digest is a SHA-256");

/* The source of a plan's graph: a model's files, or a shape. */
typedef struct origin {
    mgl_checkpoint *checkpoint;
    mgl_graph *made;        /* the graph of a shape; owned */
    const mgl_graph *graph; /* of the checkpoint or the shape; NULL: no source was given */
} origin;

static mgl_status make_shape(const char *name, mgl_graph **out, mgl_error *err)
{
    mgl_config config;
    mgl_status status = mgl_synthetic_find_shape(name, &config, err);
    return status ? status : mgl_synthetic_open(&config, 1, out, err);
}

/* Reads a shape that the caller describes as JSON. */
static mgl_status read_shape(const char *text, mgl_graph **out, mgl_error *err)
{
    mgl_json json;
    mgl_config config;
    mgl_reasons reasons = {0};
    mgl_status status =
        mgl_json_parse(text, strlen(text), MAX_SHAPE_TEXT, "shape_text", &json, err);
    if (status)
        return status;
    status = mgl_config_read(&json, &config, &reasons, err);
    if (!status)
        status = mgl_reasons_fail(&reasons, err);
    if (!status)
        status = mgl_synthetic_parse_formats(&json, &config, err);
    mgl_reasons_clear(&reasons);
    mgl_json_clear(&json);
    return status ? status : mgl_synthetic_open(&config, 1, out, err);
}

static mgl_status open_origin(const char *model, const char *shape, const char *text, origin *out,
                              mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (model && shape)
        return mgl_fail(err, MGL_USAGE, "shape",
                        "cannot be combined with model; leave out one of the two");
    if (text && (model || shape))
        return mgl_fail(err, MGL_USAGE, "shape_text",
                        "cannot be combined with model or shape; leave them out");
    if (model)
        status = mgl_import(model, &out->checkpoint, err);
    else if (shape)
        status = make_shape(shape, &out->made, err);
    else if (text)
        status = read_shape(text, &out->made, err);
    if (!status)
        out->graph = out->checkpoint ? out->checkpoint->graph : out->made;
    return status;
}

static void close_origin(origin *from)
{
    mgl_checkpoint_close(from->checkpoint);
    mgl_graph_free(from->made);
}

/* ---- making plans ---------------------------------------------------------------------------- */

/* Makes a plan and takes ownership of the program, also on failure. */
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

/* Replaces the program by the program with the moves applied. */
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

static mgl_status check_options(const mgl_plan_options *o, mgl_error *err)
{
    if (!o->model && !o->shape && !o->shape_text)
        return mgl_fail(err, MGL_USAGE, "model", "is missing; give model, shape or shape_text");
    if (o->config && o->config_text)
        return mgl_fail(err, MGL_USAGE, "config_text",
                        "cannot be combined with config; leave out one of the two");
    return MGL_OK;
}

/* The inputs that all plans of a planner share. */
struct mgl_planner {
    origin from;
    mgl_target target;
    char dtype[8];    /* as requested; "": chosen by model and target */
    int32_t capacity; /* as requested; 0: the default */
};

static mgl_status keep_dtype(const char *name, mgl_planner *planner, mgl_error *err)
{
    if (name && strlen(name) >= sizeof planner->dtype)
        return mgl_fail(
            err, MGL_USAGE, name,
            "unknown dtype; supported: auto, f32, bf16 and f16 (a model with int8, int4 "
            "or fp8 weights comes from a checkpoint, or from `quantize`)");
    strcpy(planner->dtype, name ? name : "");
    return MGL_OK;
}

static mgl_status open_planner(const mgl_plan_options *o, mgl_planner *out, mgl_error *err)
{
    mgl_status status = check_options(o, err);
    out->capacity = o->capacity;
    if (!status)
        status = keep_dtype(o->dtype, out, err);
    if (!status)
        status = open_origin(o->model, o->shape, o->shape_text, &out->from, err);
    return status ? status : mgl_target_find(o->target, &out->target, err);
}

static mgl_status lower(const mgl_planner *planner, const mgl_plan_options *o, mgl_plan **out,
                        mgl_error *err)
{
    mgl_program *program = NULL;
    mgl_lower_request request = {.dtype = planner->dtype[0] ? planner->dtype : NULL,
                                 .config = o->config,
                                 .config_text = o->config_text,
                                 .capacity = planner->capacity,
                                 .sequences = o->sequences,
                                 .unproved = true};
    mgl_status status =
        mgl_pipeline_lower(planner->from.graph, &planner->target, &request, &program, err);
    if (!status && o->moves)
        status = apply_moves(o->moves, &program, err);
    if (status) {
        mgl_program_free(program);
        return status;
    }
    return make_plan(program, out, err);
}

mgl_status mgl_plan_lower(const mgl_plan_options *options, mgl_plan **out, mgl_error *err)
{
    mgl_plan_options known = {0};
    mgl_planner planner = {0};
    if (out)
        *out = NULL;
    if (!options || !out)
        return mgl_fail_null(err, __func__, options ? "out" : "options");
    mgl_status status = mgl_sized_read(&known, sizeof known, options, "mgl_plan_options", err);
    if (!status)
        status = open_planner(&known, &planner, err);
    if (!status)
        status = lower(&planner, &known, out, err);
    if (!status)
        status = mgl_vm_check((*out)->program, planner.from.graph, err);
    if (!status) {
        (*out)->safe = true;
    } else if (*out) {
        mgl_plan_close(*out);
        *out = NULL;
    }
    close_origin(&planner.from);
    return status;
}

mgl_status mgl_plan_move(const mgl_plan *plan, const char *moves, mgl_plan **out, mgl_error *err)
{
    mgl_moves list;
    mgl_program *moved = NULL;
    if (out)
        *out = NULL;
    if (!plan || !moves || !out)
        return mgl_fail_null(err, __func__, !plan ? "plan" : !moves ? "moves" : "out");
    mgl_status status = mgl_moves_parse(moves, strlen(moves), "moves", &list, err);
    if (status)
        return status;
    status = mgl_moves_apply(plan->program, &list, &moved, err);
    mgl_moves_clear(&list);
    return status ? status : make_plan(moved, out, err);
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
        return mgl_fail(err, MGL_BAD_INPUT, name, "is too large: %zu bytes; at most %d are allowed",
                        length, MGL_SCHEDULE_MAX_TEXT);
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

/* ---- text and digest ------------------------------------------------------------------------- */

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

/* ---- validation ------------------------------------------------------------------------------ */

/* Moves the texts of a diagnostic to the caller. */
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

/* Validates the plan. Without a graph, the meaning is not checked. */
static mgl_status check(mgl_plan *plan, const mgl_graph *graph, mgl_plan_verdict *out,
                        mgl_error *err)
{
    mgl_plan_verdict taken;
    mgl_verdict verdict = {0};
    mgl_status status =
        mgl_sized_check(out, offsetof(mgl_plan_verdict, accepted), "mgl_plan_verdict", err);
    if (status)
        return status;
    mgl_plan_verdict_clear(out);
    status = mgl_validator_check(plan->program, graph, &verdict, err);
    if (!status)
        status = take_verdict(&verdict, &taken, err);
    plan->safe |= !status && taken.accepted;
    mgl_verdict_clear(&verdict);
    if (!status)
        mgl_sized_write(out, &taken, sizeof taken);
    return status;
}

mgl_status mgl_plan_check(mgl_plan *plan, const char *model, const char *shape,
                          mgl_plan_verdict *out, mgl_error *err)
{
    origin from = {0};
    if (!plan || !out)
        return mgl_fail_null(err, __func__, plan ? "out" : "plan");
    mgl_status status =
        mgl_sized_check(out, offsetof(mgl_plan_verdict, accepted), "mgl_plan_verdict", err);
    if (status)
        return status;
    mgl_plan_verdict_clear(out);
    status = open_origin(model, shape, NULL, &from, err);
    if (!status)
        status = check(plan, from.graph, out, err);
    close_origin(&from);
    return status;
}

mgl_status mgl_plan_check_machine(const mgl_plan *plan, mgl_error *err)
{
    if (!plan)
        return mgl_fail_null(err, __func__, "plan");
    return mgl_check_machine(plan->program, err);
}

/* The number formats that a program uses. `bits`: for each operand of each op, one bit for each
 * mgl_dtype of its buffers. `weights`: for each op, one bit for each mgl_weight_code. */
typedef struct formats {
    unsigned bits[MGL_OP_COUNT][MGL_MAX_OPERANDS], weights[MGL_OP_COUNT];
} formats;

static void list_formats(const mgl_program *program, formats *out)
{
    *out = (formats){0};
    for (int t = 0; t < program->task_count; t++) {
        const mgl_task *task = &program->tasks[t];
        for (int i = 0; i < task->in.count + task->out.count; i++) {
            int region = task->in.first + i, operand = mgl_task_operand_at(task, i);
            if (operand < MGL_MAX_OPERANDS)
                out->bits[task->op][operand] |=
                    1u << program->buffers[program->regions[region].buffer].dtype;
        }
        for (int i = task->segments.first; i < task->segments.first + task->segments.count; i++)
            out->weights[task->op] |= 1u << mgl_segment_format(program, &program->segments[i]).code;
    }
}

mgl_status mgl_plan_check_formats(const mgl_plan *plan, const mgl_plan *other, mgl_error *err)
{
    formats own, wanted;
    if (!plan || !other)
        return mgl_fail_null(err, __func__, plan ? "other" : "plan");
    list_formats(plan->program, &own);
    list_formats(other->program, &wanted);
    for (int op = 0; op < MGL_OP_COUNT; op++) {
        if (own.weights[op] & ~(wanted.weights[op] | 1u << MGL_CODE_F32))
            return mgl_fail(err, MGL_BAD_INPUT, mgl_op_get((mgl_op)op)->name,
                            "the weights have a number format that the other plan does not have");
        for (int i = 0; i < MGL_MAX_OPERANDS; i++)
            if (own.bits[op][i] & ~(wanted.bits[op][i] | 1u << MGL_F32))
                return mgl_fail(err, MGL_BAD_INPUT, mgl_op_get((mgl_op)op)->name,
                                "operand %d has a number format that the other plan does not have",
                                i);
    }
    return MGL_OK;
}

/* ---- prediction ------------------------------------------------------------------------------ */

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
                                      .cache_bytes = cost.cache_bytes,
                                      .stream_us = cost.parts[MGL_COST_STREAM],
                                      .products_us = cost.parts[MGL_COST_PRODUCTS],
                                      .edge_us = cost.parts[MGL_COST_EDGE],
                                      .task_us = cost.parts[MGL_COST_TASK],
                                      .attend_us = cost.parts[MGL_COST_ATTEND],
                                      .cache_us = cost.parts[MGL_COST_CACHE],
                                      .token_us = cost.parts[MGL_COST_TOKEN],
                                      .launch_us = cost.parts[MGL_COST_LAUNCH]};
    mgl_sized_write(out, &prediction, sizeof prediction);
    return MGL_OK;
}

/* ---- planners -------------------------------------------------------------------------------- */

mgl_status mgl_planner_open(const mgl_plan_options *options, mgl_planner **out, mgl_error *err)
{
    mgl_plan_options known = {0};
    if (out)
        *out = NULL;
    if (!options || !out)
        return mgl_fail_null(err, __func__, options ? "out" : "options");
    mgl_status status = mgl_sized_read(&known, sizeof known, options, "mgl_plan_options", err);
    if (!status && (known.config || known.config_text || known.moves || known.sequences))
        status = mgl_fail(err, MGL_USAGE, "mgl_plan_options",
                          "config, config_text, moves and sequences belong to a single plan; pass "
                          "them to mgl_planner_lower");
    if (status)
        return status;
    mgl_planner *planner = mgl_alloc_zero(1, sizeof *planner);
    if (!planner)
        return mgl_fail_memory(err, sizeof *planner);
    status = open_planner(&known, planner, err);
    if (status)
        mgl_planner_close(planner);
    else
        *out = planner;
    return status;
}

void mgl_planner_close(mgl_planner *planner)
{
    if (!planner)
        return;
    close_origin(&planner->from);
    mgl_free(planner);
}

const mgl_graph *mgl_planner_graph(const mgl_planner *planner)
{
    return planner->from.graph;
}

mgl_status mgl_planner_lower(const mgl_planner *planner, const char *config_text, const char *moves,
                             int32_t sequences, mgl_plan **out, mgl_error *err)
{
    const mgl_plan_options options = {
        .config_text = config_text, .moves = moves, .sequences = sequences};
    if (out)
        *out = NULL;
    if (!planner || !out)
        return mgl_fail_null(err, __func__, planner ? "out" : "planner");
    return lower(planner, &options, out, err);
}

mgl_status mgl_planner_check(const mgl_planner *planner, mgl_plan *plan, mgl_plan_verdict *out,
                             mgl_error *err)
{
    if (!planner || !plan || !out)
        return mgl_fail_null(err, __func__, !planner ? "planner" : !plan ? "plan" : "out");
    return check(plan, planner->from.graph, out, err);
}

static mgl_status match_target(const mgl_target *target, const mgl_program *program, mgl_error *err)
{
    const char *where = "schedule";
    if (strcmp(program->target.arch, target->arch) != 0 || program->queue_count > target->queues)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "the schedule is for %.15s:%d; the plan is for %s:%d", program->target.arch,
                        program->queue_count, target->arch, target->queues);
    if (target->shared_bytes > 0 && program->target.shared_bytes > target->shared_bytes)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "the schedule needs %lld bytes of shared memory; the target has %lld",
                        (long long)program->target.shared_bytes, (long long)target->shared_bytes);
    return MGL_OK;
}

mgl_status mgl_planner_match(const mgl_planner *planner, const mgl_plan *plan, int32_t sequences,
                             mgl_error *err)
{
    mgl_lower_options wanted;
    const char *where = "schedule";
    if (!planner || !plan)
        return mgl_fail_null(err, __func__, planner ? "plan" : "planner");
    const mgl_program *program = plan->program;
    const mgl_lower_request request = {.dtype = planner->dtype[0] ? planner->dtype : NULL,
                                       .capacity = planner->capacity,
                                       .sequences = sequences};
    mgl_status status =
        mgl_pipeline_options(planner->from.graph, &planner->target, &request, &wanted, err);
    if (!status)
        status = match_target(&planner->target, program, err);
    if (status)
        return status;
    if (program->limits.sequences != wanted.sequences ||
        program->limits.capacity != wanted.capacity)
        return mgl_fail(
            err, MGL_BAD_INPUT, where,
            "the schedule is for %d sequences of %d positions; the plan is for %d of %d",
            program->limits.sequences, program->limits.capacity, wanted.sequences, wanted.capacity);
    if (!mgl_program_is_all(program, wanted.dtype))
        return mgl_fail(err, MGL_BAD_INPUT, where, "the number formats of the schedule are not %s",
                        mgl_dtype_name(wanted.dtype));
    if (memcmp(&program->geometry, &planner->from.graph->geometry, sizeof program->geometry) != 0)
        return mgl_fail(err, MGL_BAD_INPUT, where, "the schedule is for another model");
    return MGL_OK;
}

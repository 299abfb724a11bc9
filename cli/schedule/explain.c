/*
 * megalith explain MGnnn: prints what a diagnostic of `check` means, an example, and the remedy.
 * megalith explain OUTCOME: prints what to do after this outcome of a trial (verdict.def).
 * megalith explain F.mls: prints the predicted time per token of a schedule and its breakdown by
 * the cost model. For a target without measured costs, such as a CPU, it prints the bytes of the
 * weights.
 */
#include "cli/cli.h"
#include "cli/schedule/warning.h"
#include "cli/signals.h"

#include "autotune/store/verdict.h"
#include "base/json_out.h"
#include "eval/trace.h"

#include "schedule/cost/cost.h"
#include "schedule/variants.h"
#include "validator/validator.h"
#include "vm/pipeline/machine_check.h"
#include "vm/vm.h"

#include <stdio.h>
#include <string.h>

#define EXPLAIN_OPTIONS(X)                                                                         \
    X(int, batch, "--batch", "N", 1, MGL_MAX_SEQUENCES, "F.mls: sequences decoded together (1)")   \
    X(int, prompt, "--prompt", "N", 1, MGL_MAX_SECOND_ROWS,                                        \
      "F.mls: an epoch with the last N tokens of a prompt, instead of decoding")                   \
    X(int, context, "--context", "N", 0, MGL_MAX_CAPACITY, "F.mls: positions in the KV cache (0)") \
    X(int, tokens, "--tokens", "N", 1, 1 << 16,                                                    \
      "F.mls: tokens in one launch (32; 1 with --prompt)")                                         \
    X(text, device_name, "--device-name", "NAME", 0, 0,                                            \
      "F.mls: device name of the costs, as the driver reports it (the architecture's first "       \
      "device)")                                                                                   \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(EXPLAIN_OPTIONS)

enum { TOKENS = 32, VARIANT_NAME = 64 };

/* "MG203" or "203". */
static const mgl_code_info *find_code(const char *text)
{
    const char *digits = strncmp(text, "MG", 2) && strncmp(text, "mg", 2) ? text : text + 2;
    int code = 0;
    if (strlen(digits) != 3 || strspn(digits, "0123456789") != 3)
        return NULL;
    for (; *digits; digits++)
        code = code * 10 + (*digits - '0');
    return mgl_find_code(code);
}

static mgl_status fail_unknown(const char *operand, mgl_error *err)
{
    mgl_text list = {0};
    for (int i = 0; mgl_get_code(i); i++)
        mgl_text_format(&list, " MG%03d", mgl_get_code(i)->code);
    mgl_status status = mgl_fail(err, MGL_USAGE, operand, "unknown diagnostic; known:%s",
                                 list.bytes ? list.bytes : " none");
    mgl_text_clear(&list);
    return status;
}

static void explain_code(const struct options *o, const mgl_code_info *info)
{
    char code[16];
    snprintf(code, sizeof code, "MG%03d", info->code);
    if (o->json.given) {
        mgl_json_out out = {0};
        mgl_json_out_begin(&out, "megalith.explain/1");
        mgl_json_out_string(&out, "code", code);
        mgl_json_out_string(&out, "title", info->title);
        mgl_json_out_string(&out, "meaning", info->meaning);
        mgl_json_out_string(&out, "example", info->example);
        mgl_json_out_string(&out, "remedy", info->remedy);
        mgl_cli_end_json(&out);
    } else {
        mgl_cli_printf("%s: %s\n\n", code, info->title);
        mgl_cli_put_wrapped("", info->meaning);
        mgl_cli_put("\nExample:\n");
        mgl_cli_put_wrapped("    ", info->example);
        mgl_cli_put("\n"
                    "How to fix it:\n");
        mgl_cli_put_wrapped("    ", info->remedy);
    }
}

/* ---- explaining a schedule ------------------------------------------------------------------- */

/* A prediction, and the launch that it predicts. */
typedef struct prediction {
    const mgl_program *program;
    const char *device; /* the device whose costs are used */
    mgl_cost_load load;
    int prompt; /* tokens of a prompt in the epoch; 0: decoding */
    mgl_cost cost;
} prediction;

/* The rows of the epoch. */
static int rows_of(const prediction *p)
{
    return p->prompt ? p->prompt : p->load.batch;
}

/* 0: the epoch is of the first list; 1: of the second. */
static int list_of(const prediction *p)
{
    return mgl_cost_list(p->program, rows_of(p)) != p->program;
}

static const char *step_name(int step)
{
    return step < MGL_STEP_COUNT ? mgl_step_name((mgl_step)step) : "rest";
}

/* "norm_linear.skinny", or only the op for the general variant. */
static void print_variant_name(int op, int variant, char to[VARIANT_NAME])
{
    const bool general = variant == MGL_VARIANT_GENERAL;
    snprintf(to, VARIANT_NAME, "%s%s%s", mgl_op_get((mgl_op)op)->name, general ? "" : ".",
             general ? "" : mgl_variant_get((mgl_variant)variant)->name);
}

static void print_variants(const mgl_cost *cost)
{
    char name[VARIANT_NAME];
    mgl_cli_put("\n"
                "By variant:\n");
    for (int op = 0; op < MGL_OP_COUNT; op++)
        for (int v = 0; v < MGL_VARIANT_COUNT; v++) {
            const mgl_cost_variant *variant = &cost->variants[op][v];
            if (variant->tasks == 0)
                continue;
            print_variant_name(op, v, name);
            mgl_cli_printf("    %-22s %6d tasks %9.1f us %6.1f %% %10.2f MB\n", name,
                           variant->tasks, variant->us, 100 * variant->us / cost->us,
                           variant->bytes * 1e-6);
        }
}

static void print_weights(double weights, double padding)
{
    mgl_cli_printf("weights     %.0f bytes, and %.0f of padding (%.1f %%)\n", weights, padding,
                   100 * padding / weights);
}

static void print_prediction(const prediction *p)
{
    const mgl_cost *cost = &p->cost;
    mgl_cli_printf("predicted   %.1f us per %s\n", cost->us, p->prompt ? "epoch" : "token");
    mgl_cli_printf("floor       %.1f us: only reading %.1f MB\n", cost->floor_us,
                   (cost->tape_bytes + cost->cache_bytes) * 1e-6);
    mgl_cli_printf("of          %s, %s:%d, %s %d, context %g, %d %s a launch\n", p->device,
                   p->program->target.arch, p->program->queue_count, p->prompt ? "prompt" : "batch",
                   rows_of(p), p->load.context, p->load.tokens,
                   p->load.tokens == 1 ? "token" : "tokens");
    double padding, weights = mgl_cost_weight_bytes(p->program, &padding);
    print_weights(weights, padding);
    if (p->program->second)
        mgl_cli_printf("list        %s\n", mgl_trace_list_name(list_of(p)));
    mgl_cli_put("\n"
                "Critical path, by use of time:\n");
    for (int i = 0; i < MGL_COST_PART_COUNT; i++)
        mgl_cli_printf("    %-10s %9.1f us %6.1f %%\n", mgl_cost_part_name((mgl_cost_part)i),
                       cost->parts[i], 100 * cost->parts[i] / cost->us);
    mgl_cli_put("\n"
                "By step, and the bytes that each step reads:\n");
    for (int i = 0; i <= MGL_STEP_COUNT; i++)
        mgl_cli_printf("    %-10s %9.1f us %6.1f %% %10.2f MB, %9.1f KB the largest queue\n",
                       step_name(i), cost->steps[i].us, 100 * cost->steps[i].us / cost->us,
                       cost->steps[i].bytes * 1e-6, cost->steps[i].most * 1e-3);
    print_variants(cost);
}

static void put_variants(mgl_json_out *out, const mgl_cost *cost)
{
    char name[VARIANT_NAME];
    mgl_json_out_object(out, "variants");
    for (int op = 0; op < MGL_OP_COUNT; op++)
        for (int v = 0; v < MGL_VARIANT_COUNT; v++) {
            const mgl_cost_variant *variant = &cost->variants[op][v];
            if (variant->tasks == 0)
                continue;
            print_variant_name(op, v, name);
            mgl_json_out_object(out, name);
            mgl_json_out_int(out, "tasks", variant->tasks);
            mgl_json_out_real(out, "us", variant->us);
            mgl_json_out_real(out, "bytes", variant->bytes);
            mgl_json_out_close_object(out);
        }
    mgl_json_out_close_object(out);
}

static void put_steps(mgl_json_out *out, const mgl_cost *cost)
{
    mgl_json_out_object(out, "steps");
    for (int i = 0; i <= MGL_STEP_COUNT; i++) {
        mgl_json_out_object(out, step_name(i));
        mgl_json_out_real(out, "us", cost->steps[i].us);
        mgl_json_out_real(out, "bytes", cost->steps[i].bytes);
        mgl_json_out_real(out, "bytes_largest_queue", cost->steps[i].most);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_object(out);
}

static void print_prediction_json(const prediction *p)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.cost/1");
    mgl_json_out_string(&out, "device", p->device);
    mgl_json_out_string(&out, "arch", p->program->target.arch);
    mgl_json_out_int(&out, "queues", p->program->queue_count);
    mgl_json_out_int(&out, "batch", p->load.batch);
    if (p->prompt)
        mgl_json_out_int(&out, "prompt", p->prompt);
    mgl_json_out_string(&out, "list", mgl_trace_list_value(list_of(p)));
    mgl_json_out_real(&out, "context", p->load.context);
    mgl_json_out_int(&out, "tokens", p->load.tokens);
    mgl_json_out_real(&out, "predicted_us", p->cost.us);
    mgl_json_out_real(&out, "predicted_floor_us", p->cost.floor_us);
    double padding, weights = mgl_cost_weight_bytes(p->program, &padding);
    mgl_json_out_real(&out, "weight_bytes", weights);
    mgl_json_out_real(&out, "padding_bytes", padding);
    mgl_json_out_real(&out, "tape_bytes", p->cost.tape_bytes);
    mgl_json_out_real(&out, "cache_bytes", p->cost.cache_bytes);
    mgl_json_out_object(&out, "predicted_parts_us");
    for (int i = 0; i < MGL_COST_PART_COUNT; i++)
        mgl_json_out_real(&out, mgl_cost_part_name((mgl_cost_part)i), p->cost.parts[i]);
    mgl_json_out_close_object(&out);
    put_steps(&out, &p->cost);
    put_variants(&out, &p->cost);
    mgl_cli_end_json(&out);
}

static mgl_status predict(prediction *p, const mgl_costs *costs, mgl_error *err)
{
    const mgl_cost_prompt prompt = {p->prompt, p->load.context, true, p->load.tokens};
    return p->prompt ? mgl_schedule_cost_prompt(p->program, costs, &prompt, &p->cost, err)
                     : mgl_schedule_cost(p->program, costs, &p->load, &p->cost, err);
}

static prediction asked_of(const struct options *o)
{
    const int tokens = o->prompt.given ? 1 : TOKENS;
    return (prediction){.load = {.batch = o->batch.given ? (int)o->batch.value : 1,
                                 .context = (double)o->context.value,
                                 .tokens = o->tokens.given ? (int)o->tokens.value : tokens},
                        .prompt = o->prompt.given ? (int)o->prompt.value : 0};
}

/* Prints the bytes of the weights of a schedule whose target has no measured costs. */
static void print_bytes(const struct options *o, const mgl_program *program, const char *why)
{
    double padding, weights = mgl_cost_weight_bytes(program, &padding);
    if (!o->json.given) {
        mgl_cli_printf("predicted   unknown: %s\n", why);
        mgl_cli_printf("of          %s:%d\n", program->target.arch, program->queue_count);
        print_weights(weights, padding);
        return;
    }
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.cost/1");
    mgl_json_out_null(&out, "device");
    mgl_json_out_string(&out, "arch", program->target.arch);
    mgl_json_out_int(&out, "queues", program->queue_count);
    mgl_json_out_null(&out, "predicted_us");
    mgl_json_out_null(&out, "predicted_floor_us");
    mgl_json_out_string(&out, "note", why);
    mgl_json_out_real(&out, "weight_bytes", weights);
    mgl_json_out_real(&out, "padding_bytes", padding);
    mgl_cli_end_json(&out);
}

/* Finds the costs and prints the prediction. Without a device name, a target that has no measured
 * costs is no error. */
static mgl_status print_schedule(const struct options *o, prediction *p, mgl_error *err)
{
    mgl_costs costs;
    mgl_error why = {0};
    mgl_status status =
        mgl_costs_find_for(&p->program->target, o->device_name.value, &p->device, &costs, &why);
    if (status == MGL_BAD_INPUT && !o->device_name.given) {
        print_bytes(o, p->program, why.message);
        return MGL_OK;
    }
    if (status && err)
        *err = why;
    if (!status)
        status = predict(p, &costs, err);
    if (!status && o->json.given)
        print_prediction_json(p);
    else if (!status)
        print_prediction(p);
    return status;
}

/* The cost model needs an accepted schedule. */
static mgl_status explain_schedule(const struct options *o, const char *path, mgl_error *err)
{
    mgl_program *program = NULL;
    prediction p = asked_of(o);
    if (o->prompt.given && o->batch.given)
        return mgl_fail(err, MGL_USAGE, "--prompt", "applies to one sequence; leave out --batch");
    mgl_status status = mgl_schedule_read(path, &program, err);
    p.program = program;
    if (!status)
        status = mgl_vm_check(program, NULL, err);
    if (!status)
        status = mgl_cli_check_cancel(err);
    if (!status)
        status = mgl_cli_warn_machine("explain", program, err);
    if (!status)
        status = print_schedule(o, &p, err);
    mgl_program_free(program);
    return status;
}

/* A name with a dot or a slash is a path. Diagnostics contain neither. */
static bool is_path(const char *operand)
{
    return strpbrk(operand, "./") != NULL;
}

/* Prints what to do after this outcome of a trial. */
static mgl_status explain_outcome(const struct options *o, mgl_outcome outcome)
{
    mgl_json_out out = {0};
    if (!o->json.given) {
        mgl_cli_printf("%s: %s\n", mgl_outcome_name(outcome), mgl_outcome_hint(outcome));
        return MGL_OK;
    }
    mgl_json_out_begin(&out, "megalith.explain/1");
    mgl_json_out_string(&out, "code", mgl_outcome_name(outcome));
    mgl_json_out_string(&out, "remedy", mgl_outcome_hint(outcome));
    mgl_json_out_int(&out, "exit", mgl_outcome_exit(outcome));
    mgl_cli_end_json(&out);
    return MGL_OK;
}

static mgl_status explain(const char *operand, const void *options, mgl_error *err)
{
    mgl_outcome outcome;
    const struct options *o = options;
    if (is_path(operand))
        return explain_schedule(o, operand, err);
    const char *flag = o->batch.given         ? "--batch"
                       : o->prompt.given      ? "--prompt"
                       : o->context.given     ? "--context"
                       : o->tokens.given      ? "--tokens"
                       : o->device_name.given ? "--device-name"
                                              : NULL;
    const mgl_code_info *info = find_code(operand);
    if (!info && !flag && mgl_outcome_parse(operand, &outcome))
        return explain_outcome(o, outcome);
    if (!info)
        return fail_unknown(operand, err);
    if (flag)
        return mgl_fail(err, MGL_USAGE, flag, "is for a schedule, not for a diagnostic");
    explain_code(o, info);
    return MGL_OK;
}

const mgl_cli_verb mgl_cli_explain_verb = {
    .name = "explain",
    .operand = "MGnnn|F.mls",
    .operand_is_file = true,
    .summary =
        "explains a diagnostic and how to fix it, or predicts the time of a token with a schedule",
    .example = "  megalith explain MG203\n  megalith explain tales.mls --context 1000",
    MGL_CLI_VERB_OPTIONS,
    .run = explain,
};

/*
 * megalith trace MODEL: runs one launch on a GPU, writes the timeline of its last epochs to a file,
 * and prints a breakdown of the time. End tokens are ignored, so that the requested epochs take
 * place.
 */
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/signals.h"

#include "api/cancel.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "eval/trace.h"
#include "importer/checkpoint.h"
#include "importer/mega.h"
#include "vm/pipeline/pipeline.h"

#include <string.h>

enum { DEFAULT_TOKENS = 32, DEFAULT_EPOCHS = 4, MAX_EPOCHS = 1024 };

#define TRACE_OPTIONS(X)                                                                           \
    X(text, output, "-o", "F.json", 0, 0,                                                          \
      "the timeline to write, for Perfetto or Chrome (required)")                                  \
    X(text, prompt, "--prompt", "TEXT", 0, 0, "text that the reply continues (one token)")         \
    X(text, prompt_ids, "--prompt-ids", "1,2,3", 0, 0, "the prompt as token ids")                  \
    X(int, context, "--context", "N", 1, MGL_MAX_CAPACITY, "a prompt of N arbitrary tokens")       \
    X(int, max_tokens, "--max-tokens", "N", 1, 1 << 20, "new tokens (32)")                         \
    X(int, capacity, "--capacity", "N", 1, MGL_MAX_CAPACITY,                                       \
      "positions of the KV cache (those of the prompt and the new tokens)")                        \
    X(int, epochs, "--epochs", "N", 1, MAX_EPOCHS,                                                 \
      "number of passes to record, the last ones (4)")                                             \
    X(text, device, "--device", "cuda[:N]", 0, 0, "GPU to use (cuda)")                             \
    X(text, dtype, "--dtype", "auto|f32|bf16|f16", 0, 0, "number format (auto: the file's)")       \
    MGL_CLI_CONFIG_OPTION(X)                                                                       \
    MGL_CLI_QUIET_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(TRACE_OPTIONS)

/* A traced launch. */
typedef struct traced {
    const struct options *options;
    const char *name; /* the MODEL argument */
    mgl_device machine;
    mgl_ids prompt;
    int32_t tokens; /* new tokens */
    int epochs;     /* epochs in the trace */
    mgl_checkpoint *checkpoint;
    mgl_program *program;
    mgl_vm *vm;
    mgl_trace *trace;
    double us_per_token; /* measured by the host's clock over all tokens but the first; 0: only one
                          * token */
} traced;

static mgl_status check_options(const struct options *o, mgl_error *err)
{
    if (!o->output.given)
        return mgl_fail(err, MGL_USAGE, NULL, "-o is missing; give the file of the timeline");
    if (o->prompt.given + o->prompt_ids.given + o->context.given > 1)
        return mgl_fail(err, MGL_USAGE, NULL,
                        "only one of --prompt, --prompt-ids and --context is possible");
    if (o->device.given && !strcmp(o->device.value, "cpu"))
        return mgl_fail(err, MGL_USAGE, "--device", "the CPU records no trace; give a GPU");
    return MGL_OK;
}

static mgl_status find_machine(traced *t, mgl_error *err)
{
    const char *device = t->options->device.value;
    return mgl_device_find(!device || !strcmp(device, "auto") ? "cuda" : device, &t->machine, err);
}

/* Makes a prompt of one repeated token. The token values do not matter. */
static mgl_status repeat_token(size_t count, mgl_ids *out, mgl_error *err)
{
    out->ids = mgl_alloc_zero(count, sizeof *out->ids);
    out->count = count;
    return out->ids ? MGL_OK : mgl_fail_memory(err, count * sizeof *out->ids);
}

static mgl_status read_prompt(traced *t, const char *folder, mgl_error *err)
{
    const struct options *o = t->options;
    mgl_tokenizer *tokenizer = NULL;
    if (o->prompt_ids.given)
        return mgl_cli_parse_ids(o->prompt_ids.value, "--prompt-ids", &t->prompt, err);
    if (!o->prompt.given)
        return repeat_token(o->context.given ? (size_t)o->context.value : 1, &t->prompt, err);
    mgl_status status = mgl_tokenizer_open(folder, &tokenizer, err);
    if (!status)
        status = mgl_tokenizer_encode(tokenizer, o->prompt.value, strlen(o->prompt.value), true,
                                      &t->prompt, err);
    mgl_tokenizer_close(tokenizer);
    return status;
}

static mgl_status open_machine(traced *t, mgl_error *err)
{
    const int64_t needed = (int64_t)t->prompt.count + t->tokens;
    const int64_t capacity = t->options->capacity.given ? t->options->capacity.value : needed;
    if (capacity < needed)
        return mgl_fail(err, MGL_USAGE, "--capacity",
                        "%lld positions are too few; the prompt and the new tokens need %lld",
                        (long long)capacity, (long long)needed);
    mgl_lower_request request = {.dtype = t->options->dtype.value,
                                 .config = t->options->config.value,
                                 .capacity = (int32_t)capacity,
                                 .unproved = true};
    mgl_vm_options vm = {.kind = t->machine.kind,
                         .device = t->machine.device,
                         .trace_epochs = t->epochs,
                         .abort = mgl_cancel_flag(mgl_cli_cancel()),
                         .on_stage = mgl_cli_show_stage};
    mgl_status status =
        mgl_pipeline_lower(t->checkpoint->graph, &t->machine.target, &request, &t->program, err);
    return status ? status : mgl_vm_open(t->program, t->checkpoint->graph, &vm, &t->vm, err);
}

static mgl_status launch(traced *t, mgl_error *err)
{
    mgl_vm_sequence sequence = {
        .prompt = t->prompt.ids, .prompt_count = (int32_t)t->prompt.count, .max_new = t->tokens};
    mgl_vm_request request = {.sequences = &sequence,
                              .count = 1,
                              .abort = mgl_cancel_flag(mgl_cli_cancel()),
                              .on_stage = mgl_cli_show_stage};
    mgl_vm_report report;
    mgl_status status = mgl_vm_run(t->vm, &request, &report, err);
    if (!status)
        status = mgl_cli_check_cancel(err);
    if (status)
        return status;
    if (report.produced[0] > 1)
        t->us_per_token = 1e6 * report.decode_s / (report.produced[0] - 1);
    return mgl_trace_take(t->vm, t->epochs, &t->trace, err);
}

static mgl_status write_timeline(const traced *t, mgl_error *err)
{
    mgl_text text = {0};
    mgl_trace_print_timeline(t->trace, &text);
    mgl_status status = mgl_cli_write_text(t->options->output.value, &text, err);
    mgl_text_clear(&text);
    return status;
}

/* ---- the summary ----------------------------------------------------------------------------- */

static void put_kinds(mgl_json_out *out, const double *us)
{
    for (int k = 0; k < MGL_TRACE_KIND_COUNT; k++)
        mgl_json_out_real(out, mgl_trace_kind_name((mgl_trace_kind)k), us[k]);
}

static void put_step(mgl_json_out *out, const mgl_trace_step *step, const mgl_trace_part *part)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "step", step->name);
    mgl_json_out_int(out, "tasks", step->tasks);
    for (int m = 0; m < MGL_TRACE_METRIC_COUNT; m++) {
        mgl_json_out_object(out, mgl_trace_metric_name((mgl_trace_metric)m));
        mgl_json_out_real(out, "mean", part->metrics[m].mean);
        mgl_json_out_real(out, "p90", part->metrics[m].p90);
        mgl_json_out_close_object(out);
    }
    if (step->layered) {
        mgl_json_out_object(out, "layer_us");
        mgl_json_out_real(out, "span", part->span_us);
        put_kinds(out, part->layer_us);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_object(out, "chain");
    mgl_json_out_int(out, "tasks", part->links);
    mgl_json_out_real(out, "us", part->chain_us);
    mgl_json_out_close_object(out);
    mgl_json_out_close_object(out);
}

static void put_tape(mgl_json_out *out, const mgl_program *program, const mgl_trace_summary *s)
{
    mgl_json_out_object(out, "tape");
    mgl_json_out_int(out, "bytes", s->tape_bytes);
    mgl_json_out_real(out, "gbps", s->gbps);
    mgl_json_out_real(out, "starved_percent", s->starved_percent);
    mgl_json_out_real(out, "ahead_bytes", s->ahead_bytes);
    mgl_json_out_int(out, "flight_bytes", program->exec.flight_bytes);
    mgl_json_out_int(out, "pending_bytes", program->exec.pending_bytes);
    mgl_json_out_close_object(out);
}

/* Writes the fields of a list's summary. */
static void put_summary(mgl_json_out *out, const traced *t, const mgl_trace_summary *s)
{
    const mgl_trace *trace = t->trace;
    if (trace->lists > 1)
        mgl_json_out_string(out, "list", mgl_trace_list_value(s->list));
    mgl_json_out_int(out, "epochs", s->epochs);
    mgl_json_out_real(out, "epoch_us", s->epoch_us);
    mgl_json_out_array(out, "steps");
    for (int i = 0; i < trace->step_count; i++)
        if (trace->steps[i].list == s->list && trace->steps[i].tasks > 0)
            put_step(out, &trace->steps[i], &s->parts[i]);
    mgl_json_out_close_array(out);
    mgl_json_out_object(out, "layer_us");
    mgl_json_out_int(out, "layers", trace->layers);
    mgl_json_out_real(out, "span", s->layer_us);
    put_kinds(out, s->layer_kinds);
    mgl_json_out_close_object(out);
    mgl_json_out_object(out, "chain_us");
    mgl_json_out_int(out, "tasks", trace->chains[s->list].count);
    mgl_json_out_real(out, "all", s->chain_us);
    put_kinds(out, s->chain_kinds);
    mgl_json_out_close_object(out);
    put_tape(out, t->program, s);
}

/* Writes the summary of each list that has a complete epoch. */
static void put_lists(mgl_json_out *out, const traced *t, const mgl_trace_summary *summaries)
{
    mgl_json_out_array(out, "lists");
    for (int list = 0; list < t->trace->lists; list++) {
        if (summaries[list].epochs == 0)
            continue;
        mgl_json_out_object(out, NULL);
        put_summary(out, t, &summaries[list]);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

/* The list of the last complete epoch. */
static int newest_list(const mgl_trace *trace)
{
    return trace->lists > 1 && mgl_trace_last_row(trace, 1) > mgl_trace_last_row(trace, 0);
}

/* Writes the object. With two lists, the object also has the fields of the last epoch's list at its
 * top level, where readers of a single list expect them. */
static void put_object(const traced *t, const mgl_trace_summary *summaries)
{
    mgl_json_out out = {0};
    mgl_vm_facts facts;
    mgl_vm_get_facts(t->vm, &facts);
    mgl_json_out_begin(&out, "megalith.trace/1");
    mgl_json_out_string(&out, "model", t->name);
    mgl_json_out_string(&out, "device", facts.device);
    mgl_json_out_string(&out, "dtype", mgl_dtype_name(t->program->weight_dtype));
    mgl_json_out_string(&out, "file", t->options->output.value);
    mgl_json_out_int(&out, "queues", t->program->queue_count);
    mgl_json_out_real(&out, "us_per_token", t->us_per_token);
    put_summary(&out, t, &summaries[newest_list(t->trace)]);
    if (t->trace->lists > 1)
        put_lists(&out, t, summaries);
    mgl_cli_end_json(&out);
}

static mgl_status print_json(const traced *t, mgl_error *err)
{
    mgl_trace_summary summaries[MGL_TRACE_LISTS] = {0};
    mgl_status status = MGL_OK;
    for (int list = 0; list < t->trace->lists && !status; list++)
        status = mgl_trace_sum_up(t->trace, list, &summaries[list], err);
    if (!status)
        put_object(t, summaries);
    for (int list = 0; list < t->trace->lists; list++)
        mgl_trace_summary_clear(&summaries[list]);
    return status;
}

static mgl_status print_text(const traced *t, mgl_error *err)
{
    mgl_text text = {0};
    mgl_status status = mgl_trace_print_lists(t->trace, &text, err);
    if (!status)
        mgl_cli_print(text.bytes, text.length);
    mgl_text_clear(&text);
    return status;
}

static mgl_status print_summary(const traced *t, mgl_error *err)
{
    return t->options->json.given ? print_json(t, err) : print_text(t, err);
}

static mgl_status trace(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    traced t = {.options = o, .name = operand};
    t.tokens = o->max_tokens.given ? (int32_t)o->max_tokens.value : DEFAULT_TOKENS;
    t.epochs = o->epochs.given ? (int)o->epochs.value : DEFAULT_EPOCHS;
    char *folder = NULL;
    bool compiled = false;
    mgl_status status = check_options(o, err);
    if (!status)
        status = mgl_model_find(operand, &folder, err);
    if (!status)
        status = mgl_mega_stands(folder, &compiled, err);
    if (!status && compiled)
        status =
            mgl_fail(err, MGL_BAD_INPUT, operand, "is a compiled file; give the model's folder");
    if (!status)
        status = mgl_import(folder, &t.checkpoint, err);
    if (!status)
        status = mgl_cli_check_output(o->output.value, t.checkpoint, o->config.value, err);
    if (!status)
        status = find_machine(&t, err);
    if (!status)
        status = read_prompt(&t, folder, err);
    if (!status)
        status = open_machine(&t, err);
    if (!status)
        status = launch(&t, err);
    if (!status)
        status = write_timeline(&t, err);
    if (!status)
        status = print_summary(&t, err);
    mgl_trace_free(t.trace);
    mgl_vm_close(t.vm);
    mgl_program_free(t.program);
    mgl_checkpoint_close(t.checkpoint);
    mgl_ids_clear(&t.prompt);
    mgl_free(folder);
    return status;
}

const mgl_cli_verb mgl_cli_trace_verb = {
    .name = "trace",
    .operand = "MODEL",
    .summary = "records a timeline of one launch on a GPU, and prints where the time goes",
    .example = "  megalith trace tests/models/tales-5m -o trace.json --max-tokens 64",
    .overlaid = true,
    MGL_CLI_VERB_OPTIONS,
    .run = trace,
};

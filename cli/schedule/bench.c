/*
 * megalith bench MODEL: measures decoding, or reading prompts, for a model of this shape on this
 * machine. The baselines are the device's read-only memory bandwidth and a CUDA graph of cuBLAS
 * calls.
 */
#include "cli/cli.h"
#include "cli/commit.h"
#include "cli/progress.h"
#include "cli/schedule/bench_rows.h"
#include "cli/signals.h"

#include "api/cancel.h"
#include "base/format.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "eval/bench.h"
#include "eval/device_record.h"
#include "eval/statistics.h"
#include "eval/weight_flags.h"
#include "importer/checkpoint.h"
#include "schedule/tape.h"

#include <stdio.h>
#include <string.h>

#define BENCH_OPTIONS(X)                                                                           \
    X(text, shape, "--shape", MGL_SHAPE_NAMES, 0, 0,                                               \
      "a shape with random weights, in place of MODEL")                                            \
    X(text, dtype, "--dtype", MGL_WEIGHT_FLAG_NAMES, 0, 0,                                         \
      "format of the layers' weights, or a list of formats to measure one by one (bf16, or the "   \
      "formats of a quantized MODEL)")                                                             \
    MGL_CLI_WEIGHT_OPTIONS(X)                                                                      \
    X(text, batch, "--batch", "1,8", 0, 0, "sequences decoded together, up to 64 (1)")             \
    X(text, context, "--context", "0,8192", 0, 0,                                                  \
      "positions that the KV cache already contains (0)")                                          \
    X(text, capacity, "--capacity", "4096,16384", 0, 0,                                            \
      "capacity of the KV cache in positions (what the row needs, which is marked)")               \
    X(text, prompt, "--prompt", "512,2048", 0, 0,                                                  \
      "time prompts of these numbers of tokens instead of decoding (none)")                        \
    X(int, tokens, "--tokens", "N", 1, 1 << 16, "tokens in one launch (32)")                       \
    X(real, temperature, "--temperature", "X", 0, 1000,                                            \
      "also time sampling at this temperature, each sample next to a greedy one")                  \
    X(real, top_p, "--top-p", "X", 0, 1, "top-p of --temperature (off)")                           \
    X(int, samples, "--samples", "N", 1, MGL_MAX_SAMPLES, "samples of each measurement (21)")      \
    X(text, layers, "--layers", "1,2", 0, 0, "number of layers, the first of the model (all)")     \
    X(text, hidden, "--hidden", "1024,2048", 0, 0,                                                 \
      "hidden size of the model, with heads and ffn in proportion (its own)")                      \
    X(text, queues, "--queues", "64,132", 0, 0, "number of SMs to use (all)")                      \
    X(text, also, "--also", "ARCH", 0, 0,                                                          \
      "also time a second machine in turns, compiled for this architecture; compute_80 copies by " \
      "cp.async")                                                                                  \
    MGL_CLI_CONFIG_OPTION(X)                                                                       \
    MGL_CLI_TUNED_OPTION(X)                                                                        \
    X(flag, no_record, "--no-record", NULL, 0, 0, "write no record of an unknown device")          \
    X(text, device, "--device", "cuda[:N]", 0, 0, "GPU to use (cuda)")                             \
    MGL_CLI_QUIET_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(BENCH_OPTIONS)

/* The lists that a run combines. The last list varies fastest. */
enum { HIDDEN, LAYERS, QUEUES, BATCH, CAPACITY, PROMPT, CONTEXT, DTYPE, LISTS };

typedef struct bench {
    const struct options *options;
    const char *name;          /* name of the shape, or MODEL */
    mgl_config config;         /* config of the shape */
    bool has_own;              /* MODEL is quantized: the formats are those of `config` */
    mgl_weight_code head;      /* of --head-dtype */
    mgl_schedule_config knobs; /* knobs of --config */
    mgl_bench_request request;
    mgl_ids lists[LISTS];
    mgl_bench_result *rows; /* (count), at most two per combination */
    size_t count;           /* rows so far */
    size_t cases;           /* finished combinations */
    const char *doing;      /* the last printed step */
} bench;

static mgl_status find_model(bench *b, const char *operand, mgl_error *err)
{
    const struct options *o = b->options;
    if (o->shape.given == (operand != NULL))
        return mgl_fail(err, MGL_USAGE, "--shape", "%s",
                        operand ? "cannot be combined with MODEL; leave out one of the two"
                                : "is missing; give --shape or MODEL");
    b->name = operand ? operand : o->shape.value;
    return operand ? mgl_synthetic_read_config(operand, &b->config, err)
                   : mgl_synthetic_find_shape(o->shape.value, &b->config, err);
}

/* The numbers of a flag, or the preset if the flag is missing. */
static mgl_status read_list(const mgl_cli_text *option, const char *flag, int preset, mgl_ids *out,
                            mgl_error *err)
{
    char one[16];
    snprintf(one, sizeof one, "%d", preset);
    mgl_status status = mgl_cli_parse_ids(option->given ? option->value : one, flag, out, err);
    if (!status && !out->count)
        status = mgl_fail(err, MGL_USAGE, flag, "is empty; give at least one number");
    for (size_t i = 0; i < out->count && !status && option->given; i++)
        if (out->ids[i] == 0 && strcmp(flag, "--context") != 0)
            status = mgl_fail(err, MGL_USAGE, flag, "must be at least 1, not 0");
    return status;
}

/* Reads the list of --dtype. */
static mgl_status read_dtypes(bench *b, bool *any_scaled, mgl_error *err)
{
    const char *at = b->options->dtype.given ? b->options->dtype.value : "bf16";
    mgl_ids *list = &b->lists[DTYPE];
    mgl_weight_code code = MGL_CODE_BF16;
    mgl_status status = MGL_OK;
    list->ids = mgl_alloc_zero(strlen(at) + 1, sizeof *list->ids);
    if (!list->ids)
        return mgl_fail_memory(err, strlen(at));
    for (const char *end = at; !status && end; at = end + 1) {
        end = strchr(at, ',');
        status =
            mgl_weight_flag_read("--dtype", at, end ? (size_t)(end - at) : strlen(at), &code, err);
        list->ids[list->count++] = (int32_t)code;
        *any_scaled |= mgl_weight_code_get(code)->scaled;
    }
    return status;
}

static mgl_status read_formats(bench *b, mgl_error *err)
{
    const struct options *o = b->options;
    const mgl_config *own = &b->config;
    bool any_scaled = false;
    const bool given = o->dtype.given || o->head_dtype.given || o->group.given;
    b->has_own = mgl_synthetic_is_quantized(own);
    if (b->has_own && given)
        return mgl_fail(err, MGL_USAGE, "--dtype, --group or --head-dtype",
                        MGL_WEIGHT_FLAGS_NEED_NONE);
    mgl_status status = read_dtypes(b, &any_scaled, err);
    b->head = MGL_CODE_BF16;
    if (!status && o->head_dtype.given)
        status = mgl_weight_flag_read("--head-dtype", o->head_dtype.value,
                                      strlen(o->head_dtype.value), &b->head, err);
    any_scaled |= mgl_weight_code_get(b->head)->scaled;
    return status ? status : mgl_weight_flag_check_group((int)o->group.value, any_scaled, err);
}

static mgl_status read_lists(bench *b, mgl_error *err)
{
    const struct options *o = b->options;
    const mgl_geometry *m = &b->config.geometry;
    const struct {
        const mgl_cli_text *option;
        const char *flag;
        int preset;
    } lists[LISTS] = {[HIDDEN] = {&o->hidden, "--hidden", m->hidden},
                      [LAYERS] = {&o->layers, "--layers", m->layers},
                      [QUEUES] = {&o->queues, "--queues", 0},
                      [BATCH] = {&o->batch, "--batch", 1},
                      [PROMPT] = {&o->prompt, "--prompt", 0},
                      [CAPACITY] = {&o->capacity, "--capacity", 0},
                      [CONTEXT] = {&o->context, "--context", 0}};
    mgl_status status = MGL_OK;
    for (int i = 0; i < LISTS && i != DTYPE && !status; i++)
        status = read_list(lists[i].option, lists[i].flag, lists[i].preset, &b->lists[i], err);
    return status;
}

/* A prompt needs one sequence, and its launch generates one token. */
static mgl_status check_prompt(const struct options *o, mgl_error *err)
{
    const char *extra = !o->prompt.given       ? NULL
                        : o->batch.given       ? "--batch"
                        : o->tokens.given      ? "--tokens"
                        : o->temperature.given ? "--temperature"
                                               : NULL;
    return extra ? mgl_fail(err, MGL_USAGE, extra,
                            "applies to decoding only, and --prompt times the prompt of one "
                            "sequence; leave out one of the two")
                 : MGL_OK;
}

static mgl_status read_options(bench *b, mgl_error *err)
{
    const struct options *o = b->options;
    mgl_bench_request *r = &b->request;
    r->device = o->device.value;
    r->knobs = o->config.given ? &b->knobs : NULL;
    r->also = o->also.value;
    r->dtype = MGL_BF16;
    r->tokens = o->tokens.given ? (int)o->tokens.value : MGL_BENCH_TOKENS;
    r->samples = o->samples.given ? (int)o->samples.value : MGL_BENCH_SAMPLES;
    r->temperature = (float)o->temperature.value;
    r->top_p = o->top_p.given ? mgl_explicit_top_p(o->top_p.value) : 0.0F;
    r->seed = 1;
    r->abort = mgl_cancel_flag(mgl_cli_cancel());
    if (o->top_p.given && !(r->temperature > 0))
        return mgl_fail(err, MGL_USAGE, "--top-p", "needs sampling; add --temperature");
    mgl_status status = check_prompt(o, err);
    if (!status && r->knobs)
        status = mgl_schedule_config_read(o->config.value, &b->knobs, err);
    if (!status)
        status = read_formats(b, err);
    return status ? status : read_lists(b, err);
}

/* Sets the request to combination `index`. */
static mgl_status choose_case(bench *b, size_t index, mgl_error *err)
{
    int chosen[LISTS];
    mgl_bench_request *r = &b->request;
    for (int i = LISTS - 1; i >= 0; i--) {
        chosen[i] = b->lists[i].ids[index % b->lists[i].count];
        index /= b->lists[i].count;
    }
    r->config = b->config;
    r->queues = chosen[QUEUES];
    r->batch = chosen[BATCH];
    r->capacity = chosen[CAPACITY];
    r->prompt = chosen[PROMPT];
    r->context = chosen[CONTEXT];
    if (!b->has_own)
        mgl_synthetic_choose_formats(
            &r->config,
            mgl_weight_flag_format((mgl_weight_code)chosen[DTYPE], (int)b->options->group.value),
            mgl_weight_flag_format(b->head, (int)b->options->group.value));
    if (chosen[LAYERS] > b->config.geometry.layers)
        return mgl_fail(err, MGL_USAGE, "--layers", "the model has %d",
                        (int)b->config.geometry.layers);
    r->config.geometry.layers = chosen[LAYERS];
    return mgl_synthetic_widen(&r->config, chosen[HIDDEN], err);
}

/* ---- progress ------------------------------------------------------------------------------- */

static size_t count_cases(const bench *b)
{
    size_t cases = 1;
    for (int i = 0; i < LISTS; i++)
        if (!mgl_mul(cases, b->lists[i].count, &cases))
            return SIZE_MAX;
    return cases;
}

/* On a terminal: a bar over the samples of all rows. Otherwise: a line per step. */
static void on_progress(void *user, const char *what, int samples)
{
    bench *b = user;
    const mgl_geometry *m = &b->request.config.geometry;
    uint64_t each = (uint64_t)b->request.samples;
    mgl_cli_show("bench", MGL_CLI_COUNT_SAMPLES, b->cases * each + (uint64_t)samples,
                 count_cases(b) * each);
    if (b->options->quiet.given || mgl_cli_has_bar() || what == b->doing)
        return;
    b->doing = what;
    mgl_cli_say("bench", "hidden %d, %d layers, %s %d, context %d: %s", (int)m->hidden,
                (int)m->layers, b->request.prompt ? "prompt" : "batch",
                b->request.prompt ? b->request.prompt : b->request.batch, b->request.context, what);
}

/* ---- measuring rows -------------------------------------------------------------------------- */

static mgl_cli_bench_rows rows_of(const bench *b)
{
    return (mgl_cli_bench_rows){.shape = b->name,
                                .config = b->options->config.value,
                                .request = &b->request,
                                .rows = b->rows,
                                .count = b->count};
}

/* Prints once, with the first row, why there are no predictions. */
static void say_unpredicted(const bench *b)
{
    mgl_error why;
    mgl_costs costs;
    if (!b->options->quiet.given && !b->request.prompt &&
        mgl_costs_find(b->rows[0].device, &costs, &why))
        mgl_cli_say("bench", "no predictions: %s: %s", why.where, why.message);
}

static void finish_row(bench *b)
{
    const mgl_cli_bench_rows rows = rows_of(b);
    if (b->count == 0)
        say_unpredicted(b);
    if (!b->options->json.given && b->count == 0)
        mgl_cli_bench_print_head(&rows);
    if (!b->options->json.given)
        mgl_cli_bench_print_row(&rows, b->count);
    b->count++;
}

/* Measures the same case with its tuned entry, if there is one, as a row after the default's. A
 * failure becomes a note. */
static mgl_status run_tuned(bench *b, mgl_error *err)
{
    mgl_error why = {0};
    mgl_bench_result *row = &b->rows[b->count], *before = row - 1;
    b->request.tuned = true;
    mgl_status status = mgl_bench_run(&b->request, on_progress, b, row, &why);
    b->request.tuned = false;
    if (status == MGL_INTERRUPTED || status == MGL_NO_MEMORY) {
        *err = why;
        return status;
    }
    if (status)
        mgl_format_into(before->note, sizeof before->note, "the tuned row is omitted: %s: %s",
                        why.where, why.message);
    else if (row->tuned[0])
        finish_row(b);
    else
        memcpy(before->note, row->note, sizeof row->note);
    if (!b->options->json.given)
        mgl_cli_say_lines("bench", row->tuned[0] ? row->note : before->note);
    return MGL_OK;
}

static mgl_status run_row(bench *b, mgl_error *err)
{
    b->doing = NULL;
    mgl_status status = mgl_bench_run(&b->request, on_progress, b, &b->rows[b->count], err);
    if (status)
        return status;
    finish_row(b);
    if (!b->request.knobs && !b->options->no_tuned.given)
        status = run_tuned(b, err);
    b->cases++;
    return status;
}

/* Runs every combination; with `check`, only validates them. */
static mgl_status for_all(bench *b, bool check, mgl_error *err)
{
    size_t cases = count_cases(b);
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < cases && !status; i++) {
        status = choose_case(b, i, err);
        if (!status)
            status = check ? mgl_bench_check(&b->request, err) : run_row(b, err);
    }
    return status;
}

static void print_json(const bench *b)
{
    const mgl_cli_bench_rows rows = rows_of(b);
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.bench/1");
    mgl_cli_bench_put(&out, &rows);
    mgl_cli_end_json(&out);
}

/* Prints the lines below the table. */
static void print_foot(const bench *b)
{
    const mgl_cli_bench_rows rows = rows_of(b);
    mgl_cli_bench_print_foot(&rows);
}

/* ---- the record of a device ------------------------------------------------------------------ */

/* Whether fit_costs can use the measurements: decoding with the default schedule of a named
 * shape. */
static bool can_fit(const bench *b)
{
    return b->count > 0 && !b->request.prompt && !b->request.knobs && b->options->shape.given &&
           !b->options->dtype.given && !b->options->head_dtype.given;
}

static mgl_status write_record(const bench *b, const char *device, mgl_error *err)
{
    const mgl_cli_bench_rows rows = rows_of(b);
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.result/1");
    mgl_json_out_string(&out, "commit", mgl_commit);
    mgl_json_out_string(&out, "command", "megalith bench");
    mgl_json_out_string(&out, "device", device);
    mgl_json_out_int(&out, "exit", 0);
    mgl_json_out_object(&out, "result");
    mgl_json_out_string(&out, "schema", "megalith.bench/1");
    mgl_cli_bench_put(&out, &rows);
    mgl_json_out_close_object(&out);
    mgl_json_out_close(&out);
    mgl_text_put(&out.text, "\n");
    mgl_status status = mgl_device_record_write(device, &out.text, err);
    mgl_text_clear(&out.text);
    return status;
}

static void say_record(const char *device)
{
    mgl_text path = {0};
    if (mgl_device_record_path(device, &path) && !path.failed)
        mgl_cli_say("bench",
                    "the costs of %s are not known; this measurement is stored in %s. "
                    "build/tests/tools/fit_costs computes from it the entry of "
                    "schedule/cost/costs.def, with which times are predicted",
                    device, path.bytes);
    mgl_text_clear(&path);
}

/* Writes the device record. The measurements are already printed, so a failure is printed and is
 * not an error. */
static void record_device(const bench *b)
{
    mgl_error why = {0};
    bool wanted = false;
    if (b->options->no_record.given || !can_fit(b))
        return;
    const char *device = b->rows[0].device;
    mgl_status status = mgl_device_record_wanted(device, &wanted, &why);
    if (!status && wanted)
        status = write_record(b, device, &why);
    if (status)
        mgl_cli_say("bench", "the record of %s could not be written: %s: %s", device, why.where,
                    why.message);
    else if (wanted)
        say_record(device);
}

static mgl_status run_all(bench *b, mgl_error *err)
{
    size_t rows = 0;
    b->rows = mgl_mul(count_cases(b), 2, &rows) ? mgl_alloc_zero(rows, sizeof *b->rows) : NULL;
    if (!b->rows)
        return mgl_fail_memory(err, rows * sizeof *b->rows);
    mgl_status status = for_all(b, false, err);
    if (!status && b->options->json.given)
        print_json(b);
    else if (!status)
        print_foot(b);
    if (!status)
        record_device(b);
    return status;
}

static mgl_status run(const char *operand, const void *options, mgl_error *err)
{
    bench b = {.options = options};
    mgl_status status = find_model(&b, operand, err);
    if (!status)
        status = read_options(&b, err);
    if (!status)
        status = for_all(&b, true, err);
    if (!status)
        status = run_all(&b, err);
    mgl_free(b.rows);
    for (int i = 0; i < LISTS; i++)
        mgl_ids_clear(&b.lists[i]);
    return status;
}

const mgl_cli_verb mgl_cli_bench_verb = {
    .name = "bench",
    .operand = "MODEL",
    .operand_optional = true,
    .summary =
        "times decoding and prompts on a GPU against its memory and cuBLAS, with random weights",
    .example = "  megalith bench --shape llama-1b --context 0,8192\n"
               "  megalith bench --shape llama-1b --capacity 16384 --context 0,1024,4000\n"
               "  megalith bench --shape llama-1b --prompt 512,2048 --samples 7\n"
               "  megalith bench --shape llama-1b --layers 1,2,4,8,16",
    .overlaid = true,
    MGL_CLI_VERB_OPTIONS,
    .run = run,
};

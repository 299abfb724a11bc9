/* megalith bench MODEL: how fast a model of that shape decodes here, against the device's read-only
 * stream and a CUDA graph of cuBLAS calls. */
#include "cli/cli.h"
#include "cli/json_out.h"

#include "base/memory.h"
#include "eval/bench.h"
#include "eval/statistics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BENCH_OPTIONS(X)                                                                           \
    X(text, shape, "--shape", "NAME", 0, 0,                                                        \
      "in place of MODEL: llama-1b, llama-3b, llama-8b, smollm2-135m")                             \
    X(text, dtype, "--dtype", "DTYPE", 0, 0, "bf16 (bf16)")                                        \
    X(text, batch, "--batch", "1,8", 0, 0, "sequences that are decoded together (1)")              \
    X(text, context, "--context", "0,8192", 0, 0, "positions in the KV cache before (0)")          \
    X(int, tokens, "--tokens", "N", 1, 1 << 16, "tokens of a launch (32)")                         \
    X(int, samples, "--samples", "N", 1, MGL_MAX_SAMPLES, "of each that is timed (21)")            \
    X(int, layers, "--layers", "N", 1, 1 << 16, "only the first N layers of the model")            \
    X(text, config, "--config", "FILE", 0, 0, "a ScheduleConfig for lowering")                     \
    X(text, device, "--device", "DEVICE", 0, 0, "cuda or cuda:1 (cuda)")                           \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(BENCH_OPTIONS)

/* A run over all asked for: batches, and for each the contexts. */
typedef struct bench {
    const struct options *options;
    const char *name; /* of the shape, or MODEL */
    mgl_bench_request request;
    mgl_ids batches, contexts;
    mgl_bench_result *rows; /* (count), of batches.count * contexts.count */
    size_t count;           /* so far */
} bench;

static mgl_status find_model(bench *b, const char *operand, mgl_error *err)
{
    const struct options *o = b->options;
    mgl_config *config = &b->request.config;
    if (o->shape.given == (operand != NULL))
        return mgl_fail(err, MGL_USAGE, "--shape", "%s",
                        operand ? "stands in place of MODEL; leave out one of the two"
                                : "or MODEL is needed: what to measure");
    b->name = operand ? operand : o->shape.value;
    mgl_status status = operand ? mgl_synthetic_read_config(operand, config, err)
                                : mgl_synthetic_find_shape(o->shape.value, config, err);
    if (!status && o->layers.value > config->geometry.layers)
        status =
            mgl_fail(err, MGL_USAGE, "--layers", "the model has %d", (int)config->geometry.layers);
    if (!status && o->layers.given)
        config->geometry.layers = (int32_t)o->layers.value;
    return status;
}

static mgl_status read_options(bench *b, mgl_error *err)
{
    const struct options *o = b->options;
    mgl_bench_request *r = &b->request;
    r->device = o->device.value;
    r->knobs = o->config.value;
    r->dtype = MGL_BF16;
    r->tokens = o->tokens.given ? (int)o->tokens.value : MGL_BENCH_TOKENS;
    r->samples = o->samples.given ? (int)o->samples.value : MGL_BENCH_SAMPLES;
    r->seed = 1;
    if (o->dtype.given && strcmp(o->dtype.value, "bf16") != 0)
        return mgl_fail(err, MGL_USAGE, o->dtype.value, "unknown dtype; there is bf16");
    mgl_status status =
        mgl_cli_parse_ids(o->batch.given ? o->batch.value : "1", "--batch", &b->batches, err);
    if (!status)
        status = mgl_cli_parse_ids(o->context.given ? o->context.value : "0", "--context",
                                   &b->contexts, err);
    if (!status && (!b->batches.count || !b->contexts.count))
        status = mgl_fail(err, MGL_USAGE, b->batches.count ? "--context" : "--batch",
                          "is empty: one number at least is needed");
    return status;
}

/* ---- output --------------------------------------------------------------------------------- */

static void put_times(mgl_json_out *out, const char *name, const mgl_bench_times *times)
{
    char key[64];
    snprintf(key, sizeof key, "%s_median", name);
    mgl_json_out_real(out, key, times->median);
    snprintf(key, sizeof key, "%s_p10", name);
    mgl_json_out_real(out, key, times->p10);
    snprintf(key, sizeof key, "%s_p90", name);
    mgl_json_out_real(out, key, times->p90);
}

static void put_accuracy(mgl_json_out *out, const mgl_bench_accuracy *a)
{
    mgl_json_out_object(out, "accuracy");
    mgl_json_out_string(out, "reference", "f32 on the device, fed with the machine's tokens");
    mgl_json_out_real(out, "logits_rel_l2", a->machine_error);
    mgl_json_out_real(out, "logits_rel_l2_limit", MGL_BENCH_ERROR);
    mgl_json_out_int(out, "tokens", a->tokens);
    mgl_json_out_int(out, "tokens_agree", a->machine_agrees);
    mgl_json_out_real(out, "baseline_logits_rel_l2", a->baseline_error);
    mgl_json_out_int(out, "baseline_tokens_agree", a->baseline_agrees);
    mgl_json_out_close_object(out);
}

static void put_clocks(mgl_json_out *out, const mgl_clocks *clocks)
{
    char reasons[32];
    if (!clocks->known || !clocks->looks) {
        mgl_json_out_null(out, "clocks");
        return;
    }
    snprintf(reasons, sizeof reasons, "0x%016" PRIx64, clocks->reasons);
    mgl_json_out_object(out, "clocks");
    mgl_json_out_int(out, "sm_mhz_low", clocks->sm_low);
    mgl_json_out_int(out, "sm_mhz_high", clocks->sm_high);
    mgl_json_out_int(out, "memory_mhz_low", clocks->memory_low);
    mgl_json_out_int(out, "temperature", clocks->temperature);
    mgl_json_out_string(out, "event_reasons", reasons);
    mgl_json_out_close_object(out);
}

static void put_machine(mgl_json_out *out, const mgl_bench_result *result)
{
    mgl_json_out_object(out, "machine");
    mgl_json_out_int(out, "queues", result->queues);
    mgl_json_out_int(out, "capacity", result->positions);
    mgl_json_out_int(out, "registers", result->facts.registers);
    mgl_json_out_int(out, "spill_bytes", result->facts.spill_bytes);
    mgl_json_out_int(out, "shared_bytes", result->facts.shared_bytes);
    mgl_json_out_int(out, "tape_bytes", (int64_t)result->facts.tape_bytes);
    mgl_json_out_close_object(out);
}

/* GB/s of the stream. */
static double peak_of(const mgl_bench_result *result)
{
    return mgl_bench_rate(result->bytes, result->stream.median);
}

static void put_row(mgl_json_out *out, const bench *b, const mgl_bench_result *result)
{
    const mgl_bench_request *r = &b->request;
    double rate = mgl_bench_rate(result->bytes, result->machine.median);
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "shape", b->name);
    mgl_json_out_string(out, "dtype", mgl_dtype_name(r->dtype));
    mgl_json_out_int(out, "batch", result->batch);
    mgl_json_out_int(out, "context", result->context);
    mgl_json_out_int(out, "layers", r->config.geometry.layers);
    mgl_json_out_int(out, "tokens", r->tokens);
    mgl_json_out_int(out, "samples", r->samples);
    put_times(out, "us", &result->machine);
    mgl_json_out_real(out, "bytes", result->bytes);
    mgl_json_out_real(out, "gbps", rate);
    mgl_json_out_real(out, "percent_of_peak", 100 * rate / peak_of(result));
    mgl_json_out_real(out, "peak_read_gbps", peak_of(result));
    put_times(out, "stream_us", &result->stream);
    put_times(out, "baseline_us", &result->baseline);
    mgl_json_out_real(out, "ratio_of_medians", result->ratio_of_medians);
    mgl_json_out_real(out, "ratio_median", result->ratio_median);
    put_accuracy(out, &result->accuracy);
    put_clocks(out, &result->clocks);
    put_machine(out, result);
    mgl_json_out_int(out, "cublas_version", result->cublas_version);
    mgl_json_out_int(out, "driver_version", result->driver_version);
    mgl_json_out_real(out, "setup_s", result->setup_s);
    mgl_json_out_close_object(out);
}

static void print_head(void)
{
    mgl_cli_printf("%6s %8s %10s %10s %10s %8s %8s %12s %8s %12s\n", "batch", "context", "us/token",
                   "p10", "p90", "GB/s", "of peak", "baseline us", "ratio", "error");
}

static void print_row(const mgl_bench_result *result)
{
    mgl_cli_printf("%6d %8d %10.1f %10.1f %10.1f %8.0f %7.1f%% %12.1f %8.2f %12.2e\n",
                   result->batch, result->context, result->machine.median, result->machine.p10,
                   result->machine.p90, mgl_bench_rate(result->bytes, result->machine.median),
                   100 * result->stream.median / result->machine.median, result->baseline.median,
                   result->ratio_median, result->accuracy.machine_error);
    mgl_cli_flush();
}

static void on_progress(void *user, const char *what)
{
    const bench *b = user;
    fprintf(stderr, "megalith: batch %d, context %d: %s\n", b->request.batch, b->request.context,
            what);
}

/* ---- all rows ------------------------------------------------------------------------------- */

static mgl_status run_row(bench *b, mgl_error *err)
{
    mgl_bench_result *row = &b->rows[b->count];
    mgl_status status = mgl_bench_run(&b->request, on_progress, b, row, err);
    if (status)
        return status;
    if (!b->options->json.given && b->count == 0)
        print_head();
    if (!b->options->json.given)
        print_row(row);
    b->count++;
    return MGL_OK;
}

/* Every combination of batch and context; with `check`, only whether it makes sense. */
static mgl_status for_all(bench *b, bool check, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < b->batches.count && !status; i++)
        for (size_t j = 0; j < b->contexts.count && !status; j++) {
            b->request.batch = b->batches.ids[i];
            b->request.context = b->contexts.ids[j];
            status = check ? mgl_bench_check(&b->request, err) : run_row(b, err);
        }
    return status;
}

static void print_json(const bench *b)
{
    mgl_json_out out = {0};
    double peak = 0;
    for (size_t i = 0; i < b->count; i++)
        peak = peak_of(&b->rows[i]) > peak ? peak_of(&b->rows[i]) : peak;
    mgl_json_out_begin(&out, "megalith.bench/1");
    mgl_json_out_string(&out, "version", mgl_version());
    mgl_json_out_string(&out, "device", b->rows[0].device);
    mgl_json_out_real(&out, "peak_read_gbps", peak);
    mgl_json_out_array(&out, "rows");
    for (size_t i = 0; i < b->count; i++)
        put_row(&out, b, &b->rows[i]);
    mgl_json_out_close_array(&out);
    mgl_json_out_end(&out);
}

static mgl_status run_all(bench *b, mgl_error *err)
{
    size_t rows = b->batches.count * b->contexts.count;
    b->rows = mgl_alloc_zero(rows, sizeof *b->rows);
    if (!b->rows)
        return mgl_fail_memory(err, rows * sizeof *b->rows);
    mgl_status status = for_all(b, false, err);
    if (!status && b->options->json.given)
        print_json(b);
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
    mgl_ids_clear(&b.batches);
    mgl_ids_clear(&b.contexts);
    return status;
}

const mgl_cli_verb mgl_cli_bench_verb = {
    .name = "bench",
    .operand = "MODEL",
    .operand_optional = true,
    .summary = "times decoding on a GPU against its memory and against cuBLAS, with random weights",
    .example = "  megalith bench --shape llama-1b --context 0,8192",
    MGL_CLI_VERB_OPTIONS,
    .run = run,
};

/*
 * Implements the JSON and the tables of bench_rows.h. JSON fields are never renamed. Rows of
 * decoding and of prompts use the same names for shared fields. Times of decoding are per token;
 * times of a prompt are for the whole prompt.
 */
#include "cli/schedule/bench_rows.h"

#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- JSON ----------------------------------------------------------------------------------- */

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

/* Bandwidth of the stream, in GB/s. */
static double peak_of(const mgl_bench_result *result)
{
    return mgl_bench_rate(result->bytes, result->stream.median);
}

/* The prediction of the cost model. */
static void put_prediction(mgl_json_out *out, const mgl_bench_result *result)
{
    const mgl_cost *cost = &result->predicted;
    if (cost->us <= 0) {
        mgl_json_out_null(out, "predicted_us");
        return;
    }
    mgl_json_out_real(out, "predicted_us", cost->us);
    mgl_json_out_real(out, "predicted_error", mgl_bench_predicted_error(result));
    mgl_json_out_real(out, "predicted_floor_us", cost->floor_us);
    mgl_json_out_object(out, "predicted_parts_us");
    for (int i = 0; i < MGL_COST_PART_COUNT; i++)
        mgl_json_out_real(out, mgl_cost_part_name((mgl_cost_part)i), cost->parts[i]);
    mgl_json_out_close_object(out);
}

/* Writes the times of the second machine (--also) and the comparison of its results with the first.
 */
static void put_also(mgl_json_out *out, const mgl_cli_bench_rows *of,
                     const mgl_bench_result *result)
{
    if (!of->request->also) {
        mgl_json_out_null(out, "also");
        return;
    }
    mgl_json_out_object(out, "also");
    mgl_json_out_string(out, "arch", of->request->also);
    put_times(out, "us", &result->also);
    mgl_json_out_real(out, "times_as_long", result->also.median / result->machine.median);
    mgl_json_out_real(out, "logits_rel_l2", result->accuracy.also_error);
    mgl_json_out_int(out, "tokens_agree", result->accuracy.also_agrees);
    mgl_json_out_close_object(out);
}

/* Writes the times of the machine with sampling, compared with greedy decoding. */
static void put_drawn(mgl_json_out *out, const mgl_cli_bench_rows *of,
                      const mgl_bench_result *result)
{
    if (!(of->request->temperature > 0)) {
        mgl_json_out_null(out, "drawn");
        return;
    }
    mgl_json_out_object(out, "drawn");
    mgl_json_out_real(out, "temperature", (double)of->request->temperature);
    mgl_json_out_real(out, "top_p", (double)of->request->top_p);
    put_times(out, "us", &result->drawn);
    mgl_json_out_real(out, "ratio_median", result->drawn_ratio);
    mgl_json_out_int(out, "tokens_agree", result->drawn_agrees);
    mgl_json_out_close_object(out);
}

/* The text of a weight format; an unscaled one is that of `dtype`. */
static const char *name_of(mgl_weight_format format, mgl_dtype dtype,
                           char text[MGL_WEIGHT_FORMAT_TEXT])
{
    return mgl_weight_format_is_scaled(format) ? mgl_weight_format_print(format, text)
                                               : mgl_dtype_name(dtype);
}

/* Writes the requested case, and the facts of the program that was made for it. */
static void put_case(mgl_json_out *out, const mgl_cli_bench_rows *of,
                     const mgl_bench_result *result)
{
    const mgl_bench_request *r = of->request;
    char text[MGL_WEIGHT_FORMAT_TEXT];
    mgl_json_out_string(out, "shape", of->shape);
    mgl_json_out_string(out, "dtype", mgl_dtype_name(r->dtype));
    mgl_json_out_string(out, "weights", name_of(result->layers, r->dtype, text));
    mgl_json_out_string(out, "head", name_of(result->head, r->dtype, text));
    if (result->prompt)
        mgl_json_out_int(out, "prompt", result->prompt);
    else
        mgl_json_out_int(out, "batch", result->batch);
    mgl_json_out_int(out, "context", result->context);
    mgl_json_out_int(out, "capacity", result->positions);
    mgl_json_out_bool(out, "capacity_derived", result->derived);
    mgl_json_out_int(out, "layers", result->geometry.layers);
    mgl_json_out_int(out, "hidden", result->geometry.hidden);
    mgl_json_out_string(out, "arch", result->arch);
    mgl_json_out_int(out, "queues", result->queues);
    mgl_json_out_int(out, "unsplit", result->unsplit);
    if (!result->prompt)
        mgl_json_out_int(out, "tokens", r->tokens);
    mgl_json_out_int(out, "samples", r->samples);
    mgl_json_out_string(out, "config", of->config);
    mgl_json_out_string(out, "tuned", result->tuned[0] ? result->tuned : NULL);
    mgl_json_out_string(out, "kernel", result->kernel);
    mgl_json_out_string(out, "note", result->note[0] ? result->note : NULL);
}

/* Writes how the machine split the prompt into epochs, and the resulting token rates. */
static void put_prompt(mgl_json_out *out, const mgl_bench_result *result)
{
    mgl_json_out_int(out, "rows", result->rows);
    mgl_json_out_int(out, "epochs", result->epochs);
    mgl_json_out_real(out, "tokens_per_s", mgl_bench_prompt_rate(result, result->machine.median));
    mgl_json_out_real(out, "baseline_tokens_per_s",
                      mgl_bench_prompt_rate(result, result->baseline.median));
}

/* Writes the bytes that were read, and the two baselines. */
static void put_yardsticks(mgl_json_out *out, const mgl_bench_result *result)
{
    double rate = mgl_bench_rate(result->bytes, result->machine.median);
    mgl_json_out_real(out, "bytes", result->bytes);
    mgl_json_out_real(out, "weight_bytes", result->weight_bytes);
    mgl_json_out_real(out, "padding_bytes", result->padding);
    mgl_json_out_real(out, "gbps", rate);
    mgl_json_out_real(out, "percent_of_peak", 100 * rate / peak_of(result));
    mgl_json_out_real(out, "peak_read_gbps", peak_of(result));
    put_times(out, "stream_us", &result->stream);
    put_times(out, "baseline_us", &result->baseline);
    mgl_json_out_real(out, "ratio_of_medians", result->ratio_of_medians);
    mgl_json_out_real(out, "ratio_median", result->ratio_median);
}

static void put_row(mgl_json_out *out, const mgl_cli_bench_rows *of, const mgl_bench_result *result)
{
    mgl_json_out_object(out, NULL);
    put_case(out, of, result);
    put_times(out, "us", &result->machine);
    if (result->prompt)
        put_prompt(out, result);
    else
        put_prediction(out, result);
    put_yardsticks(out, result);
    put_also(out, of, result);
    put_drawn(out, of, result);
    put_accuracy(out, &result->accuracy);
    put_clocks(out, &result->clocks);
    put_machine(out, result);
    mgl_json_out_int(out, "cublas_version", result->cublas_version);
    mgl_json_out_int(out, "driver_version", result->driver_version);
    mgl_json_out_real(out, "setup_s", result->setup_s);
    mgl_json_out_close_object(out);
}

/* Writes the rows that are prompts, or the rows that are not. */
static void put_rows(mgl_json_out *out, const char *key, const mgl_cli_bench_rows *of, bool prompts)
{
    mgl_json_out_array(out, key);
    for (size_t i = 0; i < of->count; i++)
        if ((of->rows[i].prompt > 0) == prompts)
            put_row(out, of, &of->rows[i]);
    mgl_json_out_close_array(out);
}

void mgl_cli_bench_put(mgl_json_out *out, const mgl_cli_bench_rows *of)
{
    double peak = 0;
    for (size_t i = 0; i < of->count; i++)
        peak = peak_of(&of->rows[i]) > peak ? peak_of(&of->rows[i]) : peak;
    mgl_json_out_string(out, "version", mgl_version());
    mgl_json_out_string(out, "device", of->rows[0].device);
    mgl_json_out_real(out, "peak_read_gbps", peak);
    put_rows(out, "rows", of, false);
    put_rows(out, "prompts", of, true);
}

/* ---- tables --------------------------------------------------------------------------------- */

/* The capacity of a row, marked if the run chose it. */
static const char *show_capacity(const mgl_bench_result *result, char to[16])
{
    snprintf(to, 16, "%d%s", result->positions, result->derived ? "*" : "");
    return to;
}

static double percent_of_stream(const mgl_bench_result *result)
{
    return 100 * result->stream.median / result->machine.median;
}

void mgl_cli_bench_print_head(const mgl_cli_bench_rows *of)
{
    if (of->request->prompt)
        mgl_cli_printf("%6s %6s %6s %8s %8s %9s %7s %10s %10s %10s %10s %8s %12s %12s %8s %10s  "
                       "%s\n",
                       "hidden", "layers", "queues", "prompt", "context", "capacity", "epochs",
                       "ms", "p10", "p90", "tokens/s", "of peak", "baseline ms", "its tokens/s",
                       "ratio", "error", "tuned");
    else
        mgl_cli_printf("%6s %6s %6s %6s %8s %9s %10s %10s %10s %18s %8s %8s %12s %8s %10s  %s\n",
                       "hidden", "layers", "queues", "batch", "context", "capacity", "us/token",
                       "p10", "p90", "predicted", "GB/s", "of peak", "baseline us", "ratio",
                       "error", "tuned");
}

static void print_prompt(const mgl_bench_result *result)
{
    char capacity[16];
    mgl_cli_printf("%6d %6d %6d %8d %8d %9s %7d %10.3f %10.3f %10.3f %10.0f %7.1f%% %12.3f %12.0f "
                   "%8.3f %10.2e  %s\n",
                   (int)result->geometry.hidden, (int)result->geometry.layers, result->queues,
                   result->prompt, result->context, show_capacity(result, capacity), result->epochs,
                   result->machine.median * 1e-3, result->machine.p10 * 1e-3,
                   result->machine.p90 * 1e-3,
                   mgl_bench_prompt_rate(result, result->machine.median), percent_of_stream(result),
                   result->baseline.median * 1e-3,
                   mgl_bench_prompt_rate(result, result->baseline.median), result->ratio_median,
                   result->accuracy.machine_error, result->tuned[0] ? result->tuned : "-");
}

static void print_decoding(const mgl_bench_result *result)
{
    char predicted[40] = "-", capacity[16];
    if (result->predicted.us > 0)
        snprintf(predicted, sizeof predicted, "%.1f (%+.1f%%)", result->predicted.us,
                 100 * mgl_bench_predicted_error(result));
    mgl_cli_printf("%6d %6d %6d %6d %8d %9s %10.1f %10.1f %10.1f %18s %8.0f %7.1f%% %12.1f %8.2f "
                   "%10.2e  %s\n",
                   (int)result->geometry.hidden, (int)result->geometry.layers, result->queues,
                   result->batch, result->context, show_capacity(result, capacity),
                   result->machine.median, result->machine.p10, result->machine.p90, predicted,
                   mgl_bench_rate(result->bytes, result->machine.median), percent_of_stream(result),
                   result->baseline.median, result->ratio_median, result->accuracy.machine_error,
                   result->tuned[0] ? result->tuned : "-");
}

void mgl_cli_bench_print_row(const mgl_cli_bench_rows *of, size_t index)
{
    const mgl_bench_result *result = &of->rows[index];
    if (result->prompt)
        print_prompt(result);
    else
        print_decoding(result);
    if (mgl_weight_format_is_scaled(result->layers) || mgl_weight_format_is_scaled(result->head)) {
        char layers[MGL_WEIGHT_FORMAT_TEXT], head[MGL_WEIGHT_FORMAT_TEXT];
        mgl_cli_printf("  weights %s, head %s: %.0f bytes, and %.0f of padding (%.1f%%)\n",
                       name_of(result->layers, of->request->dtype, layers),
                       name_of(result->head, of->request->dtype, head), result->weight_bytes,
                       result->padding, 100 * result->padding / result->weight_bytes);
    }
    if (of->request->also)
        mgl_cli_printf("  %s: %.1f us for each %s, %.2f times as long\n", of->request->also,
                       result->also.median, result->prompt ? "prompt" : "token",
                       result->also.median / result->machine.median);
    if (of->request->temperature > 0)
        mgl_cli_printf(
            "  sampling at temperature %g, top-p %g: %.1f us for each token, %.3f times as long\n",
            (double)of->request->temperature, (double)of->request->top_p, result->drawn.median,
            result->drawn_ratio);
    mgl_cli_flush();
}

void mgl_cli_bench_print_foot(const mgl_cli_bench_rows *of)
{
    bool derived = false, prompts = of->count > 0 && of->rows[0].prompt > 0;
    for (size_t i = 0; i < of->count; i++)
        derived |= of->rows[i].derived;
    if (derived)
        mgl_cli_put(
            "* The cache holds exactly the positions of this run; real use needs a larger cache\n"
            "  (see --capacity).\n");
    if (prompts)
        mgl_cli_put("Of peak: relative to streaming the bytes that all epochs read; each epoch "
                    "reads every matrix.\n");
}

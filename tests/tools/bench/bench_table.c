/*
 * Prints the tables of decoding times and of prompts in Markdown, from results of `megalith bench
 * --json`, plain or written by record.sh, and the tables of curves, from results of curves.sh:
 *
 *     bench_table paper/results/h200-bench-*.json
 *     bench_table paper/results/h200-curves.json
 *
 * A row is marked if its result has no digest of its kernel, or the digest of a kernel other than
 * the current one (vm/cuda/kernel_digest.h). A line below the table gives the error of the
 * predictions at the time of measurement; `fit_costs --predict` uses the current cost model.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "eval/bench.h"
#include "tests/tools/bench/row_formats.h"

enum { MAX_BYTES = 16 << 20 };

static _Noreturn void fail(const mgl_error *err)
{
    fprintf(stderr, "bench_table: %s: %s\n", err->where, err->message);
    exit(1);
}

static double get_number(const mgl_json *json, const cJSON *row, const char *key)
{
    mgl_error err;
    double value = 0;
    if (mgl_json_get_double(json, row, key, true, &value, &err))
        fail(&err);
    return value;
}

/* The cached positions before the run, and the capacity if one was requested: "0 of 16384". A
 * minimal capacity has a mark, which print_foot explains. */
static bool derived;
static void print_context(const mgl_json *json, const cJSON *row)
{
    mgl_error err;
    double capacity = 0;
    bool by_run = false;
    if (mgl_json_get_double(json, row, "capacity", false, &capacity, &err) ||
        mgl_json_get_bool(json, row, "capacity_derived", false, &by_run, &err))
        fail(&err);
    printf(" %.0f", get_number(json, row, "context"));
    if (by_run)
        printf(" \\*");
    else if (capacity > 0)
        printf(" of %.0f", capacity);
    printf(" |");
    derived |= by_run;
}

static const char *device; /* device of the current file */

/* Errors of the predictions so far. */
static struct {
    int rows;
    double sum, largest; /* of |predicted / measured - 1| */
} off;

/* "567 (-1.2 %)", or "-" for results without predictions. */
static void print_prediction(const mgl_json *json, const cJSON *row)
{
    mgl_error err;
    double predicted = 0, error = 0;
    if (mgl_json_get_double(json, row, "predicted_us", false, &predicted, &err) ||
        mgl_json_get_double(json, row, "predicted_error", false, &error, &err))
        fail(&err);
    if (predicted <= 0) {
        printf(" - |");
        return;
    }
    printf(" %.0f (%+.1f %%) |", predicted, 100 * error);
    off.rows++;
    off.sum += fabs(error);
    off.largest = fmax(off.largest, fabs(error));
}

static const char *get_string(const mgl_json *json, const cJSON *row, const char *key)
{
    mgl_error err;
    const char *value;
    if (mgl_json_get_string(json, row, key, true, &value, &err))
        fail(&err);
    return value;
}

/* The name of the tuned entry that the row was measured with; NULL: the default. */
static const char *get_tuned(const mgl_json *json, const cJSON *row)
{
    mgl_error err;
    const char *name = NULL;
    if (mgl_json_get_string(json, row, "tuned", false, &name, &err))
        fail(&err);
    return name;
}

/* Prints the shape, the formats and the tuned entry of a row, with its mark. */
static const char *mark(const mgl_json *json, const cJSON *row);
static void print_shape(const mgl_json *json, const cJSON *row)
{
    mgl_weight_format format;
    const char *tuned = get_tuned(json, row), *dtype = get_string(json, row, "dtype");
    const char *weights = row_format(json, row, "weights", &format);
    const char *head = row_format(json, row, "head", &format);
    printf("| %s %s", get_string(json, row, "shape"), weights ? weights : dtype);
    if (weights || head)
        printf(", head %s", head ? head : dtype);
    printf("%s%s%s | ", tuned ? ", tuned: " : "", tuned ? tuned : "", mark(json, row));
}

/* The request of a row; false: the row has a config, which is not read here. */
static bool read_request(const mgl_json *json, const cJSON *row, mgl_bench_request *out)
{
    mgl_error err;
    double capacity = 0, prompt = 0;
    bool by_run = false;
    *out = (mgl_bench_request){.dtype = MGL_BF16, .samples = 1, .tuned = get_tuned(json, row)};
    if (mgl_json_get_double(json, row, "capacity", false, &capacity, &err) ||
        mgl_json_get_double(json, row, "prompt", false, &prompt, &err) ||
        mgl_json_get_bool(json, row, "capacity_derived", false, &by_run, &err))
        fail(&err);
    if (mgl_synthetic_find_shape(get_string(json, row, "shape"), &out->config, &err))
        return false;
    mgl_weight_format layers, head;
    row_format(json, row, "weights", &layers);
    row_format(json, row, "head", &head);
    mgl_synthetic_choose_formats(&out->config, layers, head);
    out->capacity = by_run ? 0 : (int)capacity;
    out->prompt = (int)prompt;
    out->batch = prompt > 0 ? 1 : (int)get_number(json, row, "batch");
    out->context = (int)get_number(json, row, "context");
    out->tokens = prompt > 0 ? 1 : (int)get_number(json, row, "tokens");
    const cJSON *config = mgl_json_member(row, "config");
    return !config || cJSON_IsNull(config);
}

/* A mark for rows whose kernel differs from the current one; print_foot explains it. */
static bool marked;
static const char *mark(const mgl_json *json, const cJSON *row)
{
    mgl_error err;
    mgl_bench_request request;
    mgl_target target = {0};
    char kernel[MGL_KERNEL_DIGEST] = "", name[64];
    const char *stated = NULL;
    if (mgl_json_get_string(json, row, "kernel", false, &stated, &err))
        fail(&err);
    if (stated && read_request(json, row, &request)) {
        snprintf(name, sizeof name, "%s:%.0f", get_string(json, row, "arch"),
                 get_number(json, row, "queues"));
        if (mgl_target_parse(name, &target, &err) ||
            mgl_bench_find_kernel(&request, device, &target, kernel, &err))
            fail(&err);
    }
    if (stated && !strcmp(stated, kernel))
        return "";
    marked = true;
    return " \u2020";
}

static void print_row(const mgl_json *json, const cJSON *row)
{
    mgl_error err;
    const cJSON *accuracy;
    if (mgl_json_get_object(json, row, "accuracy", true, &accuracy, &err))
        fail(&err);
    print_shape(json, row);
    printf("%.0f |", get_number(json, row, "batch"));
    print_context(json, row);
    printf(" %.0f | %.0f to %.0f |", get_number(json, row, "us_median"),
           get_number(json, row, "us_p10"), get_number(json, row, "us_p90"));
    print_prediction(json, row);
    printf(" %.1f %% | %.0f | %.2f | %.1e |\n", get_number(json, row, "percent_of_peak"),
           get_number(json, row, "baseline_us_median"), get_number(json, row, "ratio_median"),
           get_number(json, accuracy, "logits_rel_l2"));
}

static void print_prompt(const mgl_json *json, const cJSON *row)
{
    mgl_error err;
    const cJSON *accuracy;
    if (mgl_json_get_object(json, row, "accuracy", true, &accuracy, &err))
        fail(&err);
    print_shape(json, row);
    printf("%.0f |", get_number(json, row, "prompt"));
    print_context(json, row);
    printf(" %.1f | %.0f | %.0f | %.1f %% | %.2f | %.0f | %.1e |\n",
           get_number(json, row, "us_median") * 1e-3, get_number(json, row, "tokens_per_s"),
           get_number(json, row, "epochs"), get_number(json, row, "percent_of_peak"),
           get_number(json, row, "baseline_us_median") * 1e-3,
           get_number(json, row, "baseline_tokens_per_s"),
           get_number(json, accuracy, "logits_rel_l2"));
}

/* One table for consecutive results of one kind. */
static void print_prompts(const mgl_json *json, const cJSON *prompts)
{
    static bool begun;
    if (!begun)
        printf(
            "| shape | prompt | context | ms | tokens/s | epochs | of the stream | cuBLAS graph, "
            "ms | its tokens/s | error |\n"
            "|---|---|---|---|---|---|---|---|---|---|\n");
    begun = true;
    for (const cJSON *row = prompts->child; row; row = row->next)
        print_prompt(json, row);
}

/* One table for all results of bench. */
static void print_rows(const mgl_json *json, const cJSON *rows)
{
    static bool begun;
    if (!begun)
        printf(
            "| shape | batch | context | us per token | p10 to p90 | predicted | of the stream | "
            "cuBLAS graph, us | times faster | error |\n"
            "|---|---|---|---|---|---|---|---|---|---|\n");
    begun = true;
    for (const cJSON *row = rows->child; row; row = row->next)
        print_row(json, row);
}

/* Prints a curve as a table; for a failed curve, a line that says so. */
static void print_curve(const mgl_json *json, const cJSON *curve)
{
    static bool begun;
    mgl_error err;
    const cJSON *bench, *rows;
    const char *over = get_string(json, curve, "over");
    if (begun)
        printf("\n");
    begun = true;
    if (mgl_json_get_object(json, curve, "bench", false, &bench, &err))
        fail(&err);
    if (!bench) {
        printf("No curve over %s: it failed.\n", over);
        return;
    }
    if (mgl_json_get_array(json, bench, "rows", true, &rows, &err))
        fail(&err);
    printf(
        "| %s | us per token | predicted | of the stream | times faster |\n|---|---|---|---|---|\n",
        over);
    for (const cJSON *row = rows->child; row; row = row->next) {
        if (get_tuned(json, row)) /* curves use the default config */
            continue;
        printf("| %.0f | %.1f |", get_number(json, row, over), get_number(json, row, "us_median"));
        print_prediction(json, row);
        printf(" %.1f %% | %.2f |\n", get_number(json, row, "percent_of_peak"),
               get_number(json, row, "ratio_median"));
    }
}

static void print_file(const char *path)
{
    mgl_error err;
    mgl_json json;
    const cJSON *result, *rows, *curves, *prompts;
    if (mgl_json_read_file(path, MAX_BYTES, &json, &err) ||
        mgl_json_get_object(&json, json.root, "result", false, &result, &err))
        fail(&err);
    result = result ? result : json.root;
    device = "";
    if (mgl_json_get_string(&json, result, "device", false, &device, &err))
        fail(&err);
    if (mgl_json_get_array(&json, result, "curves", false, &curves, &err) ||
        mgl_json_get_array(&json, result, "rows", !curves, &rows, &err) ||
        mgl_json_get_array(&json, result, "prompts", false, &prompts, &err))
        fail(&err);
    for (const cJSON *curve = curves ? curves->child : NULL; curve; curve = curve->next)
        print_curve(&json, curve);
    if (!curves && rows->child)
        print_rows(&json, rows);
    if (!curves && prompts && prompts->child)
        print_prompts(&json, prompts);
    mgl_json_clear(&json);
}

int main(int count, char **arguments)
{
    if (count < 2) {
        fprintf(stderr, "usage: bench_table RESULT.json...\n");
        return 1;
    }
    for (int i = 1; i < count; i++)
        print_file(arguments[i]);
    if (derived)
        printf("\n\\* in a cache for the positions of the run and no more.\n");
    if (marked)
        printf("\n\u2020 measured with another kernel or schedule than today's.\n");
    if (off.rows)
        printf("\nPredictions of that time: %d, off by %.1f %% in the mean and %.1f %% at most.\n",
               off.rows, 100 * off.sum / off.rows, 100 * off.largest);
    return 0;
}

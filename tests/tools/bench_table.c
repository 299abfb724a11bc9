/*
 * The table of decoding times, in Markdown, from results of `megalith bench --json`, as they are or as
 * record.sh wrote them:
 *
 *     bench_table paper/results/h200-bench-*.json
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

enum { MAX_BYTES = 16 << 20 };

static void fail(const mgl_error *err)
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

static void print_row(const mgl_json *json, const cJSON *row)
{
    mgl_error err;
    const char *shape, *dtype;
    const cJSON *accuracy;
    if (mgl_json_get_string(json, row, "shape", true, &shape, &err) ||
        mgl_json_get_string(json, row, "dtype", true, &dtype, &err) ||
        mgl_json_get_object(json, row, "accuracy", true, &accuracy, &err))
        fail(&err);
    printf("| %s %s | %.0f | %.0f | %.0f | %.0f to %.0f | %.1f %% | %.0f | %.2f | %.1e |\n", shape,
           dtype, get_number(json, row, "batch"), get_number(json, row, "context"),
           get_number(json, row, "us_median"), get_number(json, row, "us_p10"),
           get_number(json, row, "us_p90"), get_number(json, row, "percent_of_peak"),
           get_number(json, row, "baseline_us_median"), get_number(json, row, "ratio_median"),
           get_number(json, accuracy, "logits_rel_l2"));
}

static void print_file(const char *path)
{
    mgl_error err;
    mgl_json json;
    const cJSON *result, *rows;
    if (mgl_json_read_file(path, MAX_BYTES, &json, &err) ||
        mgl_json_get_object(&json, json.root, "result", false, &result, &err) ||
        mgl_json_get_array(&json, result ? result : json.root, "rows", true, &rows, &err))
        fail(&err);
    for (const cJSON *row = rows->child; row; row = row->next)
        print_row(&json, row);
    mgl_json_clear(&json);
}

int main(int count, char **arguments)
{
    if (count < 2) {
        fprintf(stderr, "usage: bench_table RESULT.json...\n");
        return 1;
    }
    printf("| shape | batch | context | us per token | p10 to p90 | of the stream | cuBLAS graph, "
           "us | "
           "times faster | error |\n|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 1; i < count; i++)
        print_file(arguments[i]);
    return 0;
}

/*
 * Fits schedule/cost/costs.def to measurements: results of `megalith bench --json` or curves.sh,
 * plain or written by record.sh, with the default ScheduleConfig, and the record that `bench`
 * writes for a new device.
 *
 *     fit_costs ~/.local/share/megalith/devices/NAME.json
 *     fit_costs paper/results/h200-bench-*.json paper/results/h200-curves.json
 *     fit_costs --predict paper/results/h200-curves.json     only the predictions of current costs
 *
 * A row with `knobs` (h200-configs.json) uses that ScheduleConfig. A row without `capacity` has the
 * capacity of its filled positions.
 *
 * The bandwidth is the stream's in the row that read the most. The other costs are fitted by
 * coordinate descent with shrinking steps on the relative squared errors. A cost with little effect
 * keeps its value, because changing a cost has a penalty. The search starts from the device's
 * costs, or from those of FIRST_DEVICE. Prints each row before and after, and the entry of
 * costs.def.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "eval/synthetic.h"
#include "schedule/cost/cost.h"
#include "tests/tools/bench/row_formats.h"

enum { MAX_BYTES = 16 << 20, ROUNDS = 4 /* rounds with each step size */ };
#define FIRST_DEVICE "NVIDIA H200" /* device whose costs are the start for a new device */
#define FIRST_ARCH   "sm_90a"      /* architecture of rows without one */
#define LEAVING                                                                                    \
    1e-4 /* penalty of a change by a factor of e, relative to the mean square of                   \
            relative errors */

static const struct {
    const char *name;
    size_t at; /* offset in mgl_costs */
} fields[] = {
#define MGL_COST(field, unit, what) {#field, offsetof(mgl_costs, field)},
#include "schedule/cost/costs.def"
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* A row of a result. */
struct point {
    mgl_program *program;
    mgl_cost_load load;
    double measured; /* us */
    double before;   /* predicted with the costs as they are, us */
    int layers;      /* layers of the model */
};

static struct {
    struct point *points; /* (count) */
    size_t count, capacity;
    double bytes, gbps; /* of the row that read most: bytes, and the stream's time */
    char device[128];   /* of all results */
    char arch[16];      /* and its architecture */
    mgl_costs start;    /* costs before the fit */
} all;

static _Noreturn void stop(const mgl_error *err)
{
    fprintf(stderr, "fit_costs: %s: %s\n", err->where, err->message);
    exit(1);
}

static double *field_of(mgl_costs *costs, int i)
{
    return (double *)(void *)((char *)costs + fields[i].at);
}

/* ---- reading --------------------------------------------------------------------------------- */

static double get_number(const mgl_json *json, const cJSON *row, const char *key)
{
    mgl_error err;
    double value = 0;
    if (mgl_json_get_double(json, row, key, true, &value, &err))
        stop(&err);
    return value;
}

/* Reads the config of a row; the default if it names none. */
static mgl_schedule_config knobs_of(const mgl_json *json, const cJSON *knobs)
{
    mgl_error err;
    mgl_schedule_config out;
    mgl_schedule_config_default(&out);
    if (knobs && mgl_schedule_config_merge(json, knobs, "knobs.", &out, &err))
        stop(&err);
    return out;
}

/* The program that was measured. */
static mgl_program *lower(const mgl_config *config, const mgl_schedule_config *knobs,
                          const char *arch, int queues, int capacity, int batch)
{
    mgl_error err;
    mgl_graph *graph = NULL;
    mgl_program *program = NULL;
    mgl_target target;
    mgl_lower_options options = {.dtype = MGL_BF16, .capacity = capacity, .sequences = batch};
    char name[32];
    snprintf(name, sizeof name, "%s:%d", arch, queues);
    if (mgl_target_parse(name, &target, &err) || mgl_synthetic_open(config, 1, &graph, &err) ||
        mgl_schedule_lower(graph, &target, &options, knobs, &program, &err))
        stop(&err);
    mgl_graph_free(graph);
    return program;
}

static void add_row(const mgl_json *json, const cJSON *row)
{
    mgl_error err;
    mgl_config config;
    const char *shape, *arch = FIRST_ARCH, *file = NULL, *tuned = NULL;
    const cJSON *knobs = NULL;
    int context = (int)get_number(json, row, "context");
    int tokens = (int)get_number(json, row, "tokens"), batch = (int)get_number(json, row, "batch");
    if (mgl_json_get_string(json, row, "config", false, &file, &err) ||
        mgl_json_get_object(json, row, "knobs", false, &knobs, &err) ||
        mgl_json_get_string(json, row, "tuned", false, &tuned, &err) ||
        mgl_json_get_string(json, row, "shape", true, &shape, &err) ||
        mgl_json_get_string(json, row, "arch", false, &arch, &err) ||
        mgl_synthetic_find_shape(shape, &config, &err) ||
        mgl_synthetic_widen(&config, (int)get_number(json, row, "hidden"), &err))
        stop(&err);
    mgl_weight_format layers, head;
    row_format(json, row, "weights", &layers);
    row_format(json, row, "head", &head);
    mgl_synthetic_choose_formats(&config, layers, head);
    if (file || tuned)
        return; /* made with another schedule, which the result does not contain */
    config.geometry.layers = (int)get_number(json, row, "layers");
    struct point point = {.load = {batch, context + (double)(tokens - 1) / 2, tokens},
                          .measured = get_number(json, row, "us_median"),
                          .layers = config.geometry.layers};
    mgl_schedule_config given = knobs_of(json, knobs);
    double unsplit = 0; /* older results lack this key: their programs have no unsplit rows */
    if (mgl_json_get_double(json, row, "unsplit", false, &unsplit, &err))
        stop(&err);
    given.unsplit = unsplit > 0 ? (int)unsplit : 1;
    double capacity = context + tokens + 1;
    if (mgl_json_get_double(json, row, "capacity", false, &capacity, &err))
        stop(&err);
    point.program =
        lower(&config, &given, arch, (int)get_number(json, row, "queues"), (int)capacity, batch);
    snprintf(all.arch, sizeof all.arch, "%s", arch);
    if (!mgl_grow((void **)&all.points, &all.capacity, all.count, sizeof point))
        exit(1);
    all.points[all.count++] = point;
    if (!knobs && get_number(json, row, "bytes") > all.bytes) {
        all.bytes = get_number(json, row, "bytes");
        all.gbps = get_number(json, row, "peak_read_gbps");
    }
}

static void add_bench(const mgl_json *json, const cJSON *bench)
{
    mgl_error err;
    const cJSON *rows;
    const char *device;
    if (mgl_json_get_array(json, bench, "rows", true, &rows, &err) ||
        mgl_json_get_string(json, bench, "device", true, &device, &err))
        stop(&err);
    if (!all.device[0])
        snprintf(all.device, sizeof all.device, "%s", device);
    if (strcmp(all.device, device) != 0) {
        fprintf(stderr, "fit_costs: %s: results of %s and of %s; costs belong to one device\n",
                json->file, all.device, device);
        exit(1);
    }
    for (const cJSON *row = rows->child; row; row = row->next)
        add_row(json, row);
}

static void add_file(const char *path)
{
    mgl_error err;
    mgl_json json;
    const cJSON *result, *curves, *bench;
    if (mgl_json_read_file(path, MAX_BYTES, &json, &err) ||
        mgl_json_get_object(&json, json.root, "result", false, &result, &err))
        stop(&err);
    result = result ? result : json.root;
    if (mgl_json_get_array(&json, result, "curves", false, &curves, &err))
        stop(&err);
    if (!curves)
        add_bench(&json, result);
    for (const cJSON *curve = curves ? curves->child : NULL; curve; curve = curve->next) {
        if (mgl_json_get_object(&json, curve, "bench", false, &bench, &err))
            stop(&err);
        if (bench)
            add_bench(&json, bench);
    }
    mgl_json_clear(&json);
}

/* ---- fitting --------------------------------------------------------------------------------- */

static double predict(const struct point *point, const mgl_costs *costs)
{
    mgl_error err;
    mgl_cost cost;
    if (mgl_schedule_cost(point->program, costs, &point->load, &cost, &err))
        stop(&err);
    return cost.us;
}

/* The function that the fit minimizes. */
static double badness(mgl_costs *costs)
{
    double sum = 0, left = 0;
    for (size_t i = 0; i < all.count; i++) {
        double error = predict(&all.points[i], costs) / all.points[i].measured - 1;
        sum += error * error;
    }
    for (int i = 0; i < FIELDS; i++) {
        double from = *field_of(&all.start, i), moved = log(*field_of(costs, i) / from);
        left += moved * moved;
    }
    return sum / (double)all.count + LEAVING * left;
}

/* Multiplies and divides a field by a factor. Returns whether the error decreased. */
static bool improve(mgl_costs *costs, int field, double factor, double *best)
{
    const double factors[2] = {factor, 1 / factor};
    for (int i = 0; i < 2; i++) {
        mgl_costs tried = *costs;
        *field_of(&tried, field) *= factors[i];
        double now = badness(&tried);
        if (now >= *best)
            continue;
        *best = now;
        *costs = tried;
        return true;
    }
    return false;
}

static void fit(mgl_costs *costs)
{
    static const double steps[] = {1.5, 1.2, 1.08, 1.03};
    double best = badness(costs);
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        bool better = true;
        for (int round = 0; round < ROUNDS && better; round++) {
            better = false;
            for (int i = 0; i < FIELDS; i++)
                if (fields[i].at != offsetof(mgl_costs, bandwidth))
                    better |= improve(costs, i, steps[s], &best);
            fprintf(stderr, "steps of %g: %.2f %% in the root mean square\n", steps[s],
                    100 * sqrt(best));
        }
    }
}

/* Prints each row with the prediction of the initial costs and, beside it, of `fitted` (NULL:
 * nothing was fitted). */
static void print_points(const mgl_costs *fitted)
{
    double sum = 0, largest = 0;
    printf("%6s %6s %6s %6s %8s %10s %18s%s\n", "hidden", "layers", "queues", "batch", "context",
           "measured", fitted ? "before" : "predicted", fitted ? "              after" : "");
    for (size_t i = 0; i < all.count; i++) {
        const struct point *p = &all.points[i];
        double off = p->before / p->measured - 1, after = fitted ? predict(p, fitted) : 0;
        printf("%6d %6d %6d %6d %8.0f %10.1f %10.1f %+6.1f%%", (int)p->program->geometry.hidden,
               p->layers, p->program->queue_count, p->load.batch, p->load.context, p->measured,
               p->before, 100 * off);
        if (fitted)
            printf(" %10.1f %+6.1f%%", after, 100 * (after / p->measured - 1));
        printf("\n");
        sum += fabs(off);
        largest = fmax(largest, fabs(off));
    }
    if (!fitted)
        printf("Predictions: %zu, off by %.1f %% in the mean and %.1f %% at most.\n", all.count,
               100 * sum / (double)all.count, 100 * largest);
}

static void print_costs(mgl_costs *costs)
{
    printf("MGL_COST_DEVICE(\"%s\", \"%s\",\n", all.device, all.arch);
    for (int i = 0; i < FIELDS; i++)
        printf("                .%s = %.3g%s\n", fields[i].name, *field_of(costs, i),
               i + 1 < FIELDS ? "," : ")");
}

int main(int count, char **arguments)
{
    mgl_error err;
    mgl_costs costs;
    bool only_predict = count > 1 && strcmp(arguments[1], "--predict") == 0;
    for (int i = only_predict ? 2 : 1; i < count; i++)
        add_file(arguments[i]);
    if (!all.count) {
        fprintf(stderr, count > 1 + only_predict
                            ? "fit_costs: these results have no rows of decoding\n"
                            : "usage: fit_costs [--predict] RESULT.json...\n");
        return 1;
    }
    if (mgl_costs_find(all.device, &costs, NULL) && mgl_costs_find(FIRST_DEVICE, &costs, &err))
        stop(&err);
    for (size_t i = 0; i < all.count; i++)
        all.points[i].before = predict(&all.points[i], &costs);
    if (!only_predict) {
        costs.bandwidth = all.gbps;
        all.start = costs;
        fit(&costs);
    }
    print_points(only_predict ? NULL : &costs);
    if (!only_predict)
        print_costs(&costs);
    for (size_t i = 0; i < all.count; i++)
        mgl_program_free(all.points[i].program);
    mgl_free(all.points);
    return 0;
}

/*
 * Measures the time to replace the program on a GPU, from the accepted program to its first launch:
 * exchanging the program of an open machine (mgl_vm_exchange), against opening a new machine with a
 * cached kernel. The two programs are lowered for all queues of the device and for a twentieth
 * fewer, so that nearly every weight row moves. Both methods load the programs in turn and must
 * generate the same tokens.
 *
 *     bench_exchange SHAPE|FOLDER [--packed] [--capacity 4096] [--samples 7] [--config F]
 *
 * The weights of a SHAPE are generated on the device, also by an exchange. With --packed they are
 * packed on the host when a machine is opened, like those of a FOLDER, and copied on the device by
 * an exchange. Prints one JSON object of seconds: `accepted_s` is the time of both calls without
 * the validator, whose time is `check_s`; `run_s` is a launch that generates TOKENS tokens. Exit
 * code 4 without a GPU, 6 for different tokens.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "eval/device.h"
#include "eval/filler.h"
#include "eval/statistics.h"
#include "importer/checkpoint.h"
#include "schedule/schedule.h"
#include "vm/cuda/cuda.h"

enum { TOKENS = 16, PROGRAMS = 2, SHARE = 20 };
enum { EXCHANGE, OPEN, PATHS };

/* seconds of a sample */
#define FIELDS(X)                                                                                  \
    X(accepted_s)                                                                                  \
    X(weights_s)                                                                                   \
    X(check_s)                                                                                     \
    X(run_s)

enum {
#define ID(name) FIELD_##name,
    FIELDS(ID)
#undef ID
        FIELD_COUNT
};

struct bench {
    const char *model, *knobs; /* knobs: path of a ScheduleConfig, or NULL */
    bool packed;
    int capacity, samples;
    mgl_checkpoint *checkpoint; /* checkpoint of a FOLDER */
    mgl_graph *synthetic;       /* graph of a SHAPE */
    const mgl_graph *graph;     /* the graph of either */
    mgl_bench_device device;    /* weights of a SHAPE, made on the device */
    mgl_filler filler;
    mgl_program *programs[PROGRAMS];
    mgl_vm_options options;
    mgl_vm *vm; /* the machine that stays open */
    int32_t made[PROGRAMS][TOKENS];
    double times[PATHS][FIELD_COUNT][MGL_MAX_SAMPLES];
};

/* ---- opening --------------------------------------------------------------------------------- */

/* Opens a SHAPE, which has no files. */
static mgl_status open_model(struct bench *b, mgl_error *err)
{
    mgl_config config;
    mgl_status status = mgl_synthetic_find_shape(b->model, &config, NULL);
    if (status) {
        status = mgl_import(b->model, &b->checkpoint, err);
        b->graph = status ? NULL : b->checkpoint->graph;
        return status;
    }
    status = mgl_synthetic_open(&config, 1, &b->synthetic, err);
    b->graph = b->synthetic;
    if (!status && !b->packed)
        status = mgl_bench_device_open(0, &config.geometry, NULL, &b->device, err);
    return status;
}

static mgl_status lower(struct bench *b, int queues, mgl_program **out, mgl_error *err)
{
    mgl_target target;
    mgl_schedule_config config;
    mgl_lower_options options = {.dtype = MGL_BF16, .capacity = b->capacity, .sequences = 1};
    mgl_schedule_config_default(&config);
    mgl_status status = b->knobs ? mgl_schedule_config_read(b->knobs, &config, err) : MGL_OK;
    if (!status)
        status = mgl_cuda_live_target(0, &target, err);
    target.queues = queues ? queues : target.queues;
    return status ? status : mgl_schedule_lower(b->graph, &target, &options, &config, out, err);
}

static mgl_status open_bench(struct bench *b, mgl_error *err)
{
    mgl_status status = open_model(b, err);
    if (!status && b->capacity > b->graph->max_positions)
        b->capacity = b->graph->max_positions;
    if (!status)
        status = lower(b, 0, &b->programs[0], err);
    if (status)
        return status;
    int queues = b->programs[0]->queue_count;
    b->options = (mgl_vm_options){.kind = MGL_VM_CUDA};
    b->filler = (mgl_filler){.device = &b->device, .graph = b->graph};
    if (b->device.context) {
        b->options.fill = mgl_filler_run;
        b->options.fill_user = &b->filler;
    }
    status = lower(b, queues - (queues + SHARE - 1) / SHARE, &b->programs[1], err);
    return status ? status : mgl_vm_open(b->programs[0], b->graph, &b->options, &b->vm, err);
}

static void close_bench(struct bench *b)
{
    mgl_vm_close(b->vm);
    mgl_bench_device_close(&b->device);
    for (int i = 0; i < PROGRAMS; i++)
        mgl_program_free(b->programs[i]);
    mgl_graph_free(b->synthetic);
    mgl_checkpoint_close(b->checkpoint);
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Runs a launch, whose tokens must equal those of the program's first launch. */
static mgl_status run(struct bench *b, mgl_vm *vm, int program, double *seconds, mgl_error *err)
{
    static const int32_t prompt[4] = {1, 2, 3, 4};
    mgl_vm_report report;
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 4, .max_new = TOKENS};
    double start = mgl_clock_s();
    mgl_status status =
        mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, err);
    *seconds = mgl_clock_s() - start;
    if (status)
        return status;
    bool first = b->made[program][0] < 0;
    if (first)
        memcpy(b->made[program], report.output[0], sizeof b->made[program]);
    if (memcmp(b->made[program], report.output[0], sizeof b->made[program]) != 0)
        return mgl_fail(err, MGL_GATE, NULL,
                        "program %d made other tokens on another machine than before", program);
    return MGL_OK;
}

/* Loads the program by one of the methods and measures it. Sample -1 warms up. */
static mgl_status measure(struct bench *b, int way, int program, int sample, mgl_error *err)
{
    mgl_vm *vm = way == EXCHANGE ? b->vm : NULL;
    mgl_vm_facts facts = {0};
    double run_s = 0, start = mgl_clock_s();
    mgl_status status = way == EXCHANGE
                            ? mgl_vm_exchange(vm, b->programs[program], b->graph, err)
                            : mgl_vm_open(b->programs[program], b->graph, &b->options, &vm, err);
    double taken = mgl_clock_s() - start;
    if (!status) {
        mgl_vm_get_facts(vm, &facts);
        status = run(b, vm, program, &run_s, err);
    }
    if (way == OPEN)
        mgl_vm_close(vm);
    const double times[FIELD_COUNT] = {taken - facts.check_s, facts.pack_s, facts.check_s, run_s};
    for (int f = 0; f < FIELD_COUNT && sample >= 0; f++)
        b->times[way][f][sample] = times[f];
    fprintf(stderr, "bench_exchange: %s: %.3f s\n", way == EXCHANGE ? "exchange" : "open",
            times[FIELD_accepted_s]);
    return status;
}

static mgl_status measure_all(struct bench *b, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int i = 0; i < PROGRAMS; i++)
        b->made[i][0] = -1;
    for (int sample = -1; sample < b->samples && !status; sample++) {
        int program = (sample + PROGRAMS) % PROGRAMS;
        status = measure(b, EXCHANGE, program, sample, err);
        if (!status)
            status = measure(b, OPEN, program, sample, err);
    }
    return status;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void print_path(const struct bench *b, int way)
{
    static const char *const fields[FIELD_COUNT] = {
#define NAME(name) #name,
        FIELDS(NAME)
#undef NAME
    };
    static const char *const names[PATHS] = {"exchange", "open"};
    size_t count = (size_t)b->samples;
    printf("%s\n  {\"way\":\"%s\"", way ? "," : "", names[way]);
    for (int f = 0; f < FIELD_COUNT; f++)
        printf(",\"%s\":{\"median\":%.6f,\"p10\":%.6f,\"p90\":%.6f}", fields[f],
               mgl_median(b->times[way][f], count), mgl_quantile(b->times[way][f], count, 0.1),
               mgl_quantile(b->times[way][f], count, 0.9));
    printf("}");
}

static void print(const struct bench *b)
{
    mgl_vm_facts facts;
    const char *model = strrchr(b->model, '/');
    mgl_vm_get_facts(b->vm, &facts);
    printf("{\"schema\":\"megalith.bench_exchange/1\",\"device\":\"%s\",\"model\":\"%s\","
           "\"weights\":\"%s\",\"weight_bytes\":%zu,\"capacity\":%d,\"queues\":[%d,%d],"
           "\"samples\":%d,\"ways\":[",
           facts.device, model ? model + 1 : b->model, b->options.fill ? "made" : "copied",
           facts.tape_bytes + facts.const_bytes, b->capacity, b->programs[0]->queue_count,
           b->programs[1]->queue_count, b->samples);
    for (int way = 0; way < PATHS; way++)
        print_path(b, way);
    printf("\n]}\n");
}

static bool parse(int argc, char **argv, struct bench *b)
{
    b->samples = 7;
    b->capacity = 4096;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--packed"))
            b->packed = true;
        else if (!strcmp(argv[i], "--capacity") && (b->capacity = atoi(value)) > 2 * TOKENS)
            i++;
        else if (!strcmp(argv[i], "--samples") && (b->samples = atoi(value)) > 0 &&
                 b->samples <= MGL_MAX_SAMPLES)
            i++;
        else if (!strcmp(argv[i], "--config") && (b->knobs = value)[0])
            i++;
        else if (argv[i][0] != '-' && !b->model)
            b->model = argv[i];
        else
            return fprintf(stderr, "bench_exchange: what is %s?\n", argv[i]), false;
    }
    return b->model || (fprintf(stderr, "bench_exchange SHAPE|FOLDER [flags]\n"), false);
}

int main(int argc, char **argv)
{
    static struct bench b;
    mgl_error err = {0};
    if (!parse(argc, argv, &b))
        return MGL_USAGE;
    mgl_status status = open_bench(&b, &err);
    if (!status)
        status = measure_all(&b, &err);
    if (status)
        fprintf(stderr, "bench_exchange: %s%s%s\n", err.where, err.where[0] ? ": " : "",
                err.message);
    else
        print(&b);
    close_bench(&b);
    return (int)status;
}

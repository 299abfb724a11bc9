/*
 * Measures the overhead of tracing: two machines with one program, one of which records events
 * (vm/vm.h, trace_epochs), launched alternately, and timed by the device's clock. Both must
 * generate the same tokens.
 *
 *     trace_overhead MODEL [--dtype bf16] [--tokens 32] [--samples 21] [--limit 1.03] [--config F]
 *
 * A launch starts with an empty cache and generates --tokens tokens; the events of all are kept.
 * Prints one JSON object. The exit code is 6 if the median ratio of traced launches exceeds
 * `limit`, or if tokens differ.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/statistics.h"
#include "importer/checkpoint.h"
#include "schedule/schedule.h"
#include "vm/cuda/cuda.h"
#include "vm/vm.h"

enum { UNTRACED, TRACED, WAYS, WARM_UPS = 3, MOST_TOKENS = 256 };

struct options {
    const char *model, *config; /* config: path of a ScheduleConfig; NULL: the default */
    mgl_dtype dtype;
    int tokens, samples;
    double limit; /* maximum ratio of medians */
};

struct overhead {
    struct options options;
    mgl_checkpoint *checkpoint;
    mgl_program *program;
    mgl_vm *vms[WAYS];
    double us[WAYS][MGL_MAX_SAMPLES]; /* (samples) us per token */
    int32_t made[MOST_TOKENS];        /* (tokens) of the first launch */
};

static mgl_status lower(struct overhead *s, mgl_error *err)
{
    const struct options *o = &s->options;
    mgl_target target;
    mgl_schedule_config config;
    mgl_lower_options options = {.dtype = o->dtype, .capacity = o->tokens + 1, .sequences = 1};
    mgl_schedule_config_default(&config);
    mgl_status status = o->config ? mgl_schedule_config_read(o->config, &config, err) : MGL_OK;
    if (!status)
        status = mgl_cuda_live_target(0, &target, err);
    return status ? status
                  : mgl_schedule_lower(s->checkpoint->graph, &target, &options, &config,
                                       &s->program, err);
}

static mgl_status open_overhead(struct overhead *s, mgl_error *err)
{
    mgl_status status = mgl_import(s->options.model, &s->checkpoint, err);
    if (!status)
        status = lower(s, err);
    for (int i = 0; i < WAYS && !status; i++) {
        mgl_vm_options options = {.kind = MGL_VM_CUDA,
                                  .trace_epochs = i == TRACED ? s->options.tokens : 0};
        status = mgl_vm_open(s->program, s->checkpoint->graph, &options, &s->vms[i], err);
    }
    return status;
}

static void close_overhead(struct overhead *s)
{
    for (int i = 0; i < WAYS; i++)
        mgl_vm_close(s->vms[i]);
    mgl_program_free(s->program);
    mgl_checkpoint_close(s->checkpoint);
}

/* Runs a launch. Returns its us per token, and its tokens in `made` (tokens). */
static mgl_status launch(const struct overhead *s, int way, double *us, int32_t *made,
                         mgl_error *err)
{
    static const int32_t prompt = 1;
    int tokens = s->options.tokens;
    mgl_vm_sequence sequence = {.prompt = &prompt, .prompt_count = 1, .max_new = tokens};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    mgl_vm_report report;
    mgl_status status = mgl_vm_run(s->vms[way], &request, &report, err);
    if (status)
        return status;
    if (report.produced[0] != tokens)
        return mgl_fail(err, MGL_GATE, NULL, "a launch made %d tokens in place of %d",
                        (int)report.produced[0], tokens);
    memcpy(made, report.output[0], (size_t)tokens * sizeof *made);
    *us = 1e6 * report.device_s / tokens;
    return MGL_OK;
}

/* Runs one launch of each machine; `sample` < 0: warm-up. */
static mgl_status take_sample(struct overhead *s, int sample, mgl_error *err)
{
    int32_t made[MOST_TOKENS];
    mgl_status status = MGL_OK;
    for (int i = 0; i < WAYS && !status; i++) {
        double us;
        status = launch(s, i, &us, made, err);
        if (!status && sample >= 0)
            s->us[i][sample] = us;
        if (!status && memcmp(made, s->made, (size_t)s->options.tokens * sizeof *made) != 0)
            status = mgl_fail(err, MGL_GATE, NULL, "two launches made different tokens");
    }
    return status;
}

static mgl_status measure(struct overhead *s, mgl_error *err)
{
    double us;
    mgl_status status = launch(s, UNTRACED, &us, s->made, err);
    for (int i = -WARM_UPS; i < s->options.samples && !status; i++)
        status = take_sample(s, i, err);
    return status;
}

/* Returns the ratio of medians. */
static double print(const struct overhead *s)
{
    static const char *const names[WAYS] = {"untraced", "traced"};
    size_t count = (size_t)s->options.samples;
    double ratio = mgl_median(s->us[TRACED], count) / mgl_median(s->us[UNTRACED], count);
    mgl_vm_facts facts;
    mgl_vm_get_facts(s->vms[TRACED], &facts);
    printf("{\"schema\":\"megalith.trace_overhead/1\",\"device\":\"%s\",\"dtype\":\"%s\",",
           facts.device, mgl_dtype_name(s->options.dtype));
    for (int i = 0; i < WAYS; i++)
        printf("\"%s_us_median\":%.2f,\"%s_us_p10\":%.2f,\"%s_us_p90\":%.2f,", names[i],
               mgl_median(s->us[i], count), names[i], mgl_quantile(s->us[i], count, 0.1), names[i],
               mgl_quantile(s->us[i], count, 0.9));
    printf("\"ratio_of_medians\":%.4f,\"limit\":%g,\"tokens_per_launch\":%d,\"samples\":%d}\n",
           ratio, s->options.limit, s->options.tokens, s->options.samples);
    return ratio;
}

static bool parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.dtype = MGL_BF16, .tokens = 32, .samples = 21, .limit = 1.03};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--dtype") && mgl_dtype_parse(value, &o->dtype))
            i++;
        else if (!strcmp(argv[i], "--tokens") && (o->tokens = atoi(value)) > 0 &&
                 o->tokens <= MOST_TOKENS)
            i++;
        else if (!strcmp(argv[i], "--samples") && (o->samples = atoi(value)) > 0 &&
                 o->samples <= MGL_MAX_SAMPLES)
            i++;
        else if (!strcmp(argv[i], "--limit") && (o->limit = atof(value)) > 0)
            i++;
        else if (!strcmp(argv[i], "--config") && (o->config = value)[0])
            i++;
        else if (argv[i][0] != '-' && !o->model)
            o->model = argv[i];
        else
            return fprintf(stderr, "trace_overhead: what is %s?\n", argv[i]), false;
    }
    return o->model || (fprintf(stderr, "trace_overhead MODEL [flags]\n"), false);
}

int main(int argc, char **argv)
{
    static struct overhead s;
    mgl_error err = {0};
    if (!parse(argc, argv, &s.options))
        return MGL_USAGE;
    mgl_status status = open_overhead(&s, &err);
    if (!status)
        status = measure(&s, &err);
    if (status)
        fprintf(stderr, "trace_overhead: %s%s%s\n", err.where, err.where[0] ? ": " : "",
                err.message);
    else if (!(print(&s) <= s.options.limit)) /* true for NaN */
        status = MGL_GATE;
    close_overhead(&s);
    return (int)status;
}

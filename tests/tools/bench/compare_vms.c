/*
 * Compares the two machines on one checkpoint: the logits of the CUDA VM with those of the CPU VM
 * after prompts of 1 and 64 random tokens (positions 0 and 63), and the time per token of the CUDA
 * VM. Both run the same dtype. Prints one JSON object; exit code 6 if a difference exceeds the
 * gate.
 *
 *     compare_vms MODEL [--dtype bf16] [--gate 5e-3] [--tokens 256] [--launches 7]
 *                 [--config F] [--quick] [--trace EPOCHS]
 *
 * --quick skips the comparison. --trace summarizes the times of the last epochs of a launch.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "eval/trace.h"
#include "importer/checkpoint.h"
#include "schedule/schedule.h"
#include "vm/cuda/cuda.h"
#include "vm/vm.h"

enum { LONG_PROMPT = 64, MOST_LAUNCHES = 64 };

struct options {
    const char *model, *config; /* config: path of a ScheduleConfig; NULL: the default */
    mgl_dtype dtype;
    double gate;
    int tokens, launches;
    int trace;  /* epochs of a traced launch to summarize; 0: none */
    bool quick; /* skip the comparison */
};

struct machine {
    mgl_program *program;
    mgl_vm *vm;
};

static int fail(const mgl_error *err)
{
    fprintf(stderr, "%s%s%s\n", err->where, err->where[0] ? ": " : "", err->message);
    return err->code < 7 ? (int)err->code : 1;
}

static mgl_status open_machine(const mgl_graph *graph, const mgl_target *target,
                               const struct options *o, mgl_vm_kind kind, struct machine *out,
                               mgl_error *err)
{
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    mgl_lower_options lower = {.dtype = o->dtype, .sequences = 1};
    lower.capacity = LONG_PROMPT + o->tokens;
    mgl_vm_options options = {.kind = kind, .deadline_ms = 10000, .trace_epochs = o->trace};
    mgl_status status = o->config ? mgl_schedule_config_read(o->config, &config, err) : MGL_OK;
    if (!status)
        status = mgl_schedule_lower(graph, target, &lower, &config, &out->program, err);
    return status ? status : mgl_vm_open(out->program, graph, &options, &out->vm, err);
}

/* Runs `count` prompt tokens and generates `new` tokens. Returns the logits of the last position if
 * requested. */
static mgl_status run(struct machine *m, const int32_t *prompt, int count, int new_tokens,
                      float *logits, mgl_vm_report *report, mgl_error *err)
{
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = count, .max_new = new_tokens};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    mgl_status status = mgl_vm_run(m->vm, &request, report, err);
    return status || !logits ? status : mgl_vm_get_logits(m->vm, logits, err);
}

static double relative_l2(const float *a, const float *reference, int n)
{
    double difference = 0, norm = 0;
    for (int i = 0; i < n; i++) {
        difference += ((double)a[i] - reference[i]) * ((double)a[i] - reference[i]);
        norm += (double)reference[i] * reference[i];
    }
    return sqrt(difference / norm);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The sorted microseconds per decoded token of `launches` replies. */
static mgl_status measure(struct machine *m, const struct options *o, const int32_t *prompt,
                          double *us, mgl_error *err)
{
    for (int i = -1; i < o->launches; i++) { /* one launch to warm up */
        mgl_vm_report report;
        mgl_status status = run(m, prompt, 1, o->tokens, NULL, &report, err);
        if (status)
            return status;
        if (i >= 0)
            us[i] = 1e6 * report.decode_s / (o->tokens - 1);
    }
    qsort(us, (size_t)o->launches, sizeof *us, ascending);
    return MGL_OK;
}

static mgl_status compare(const mgl_graph *graph, struct machine *cpu, struct machine *gpu,
                          const int32_t *prompt, double difference[2], mgl_error *err)
{
    static const int counts[2] = {1, LONG_PROMPT};
    size_t bytes = (size_t)graph->geometry.vocab * sizeof(float);
    float *a = mgl_alloc(bytes), *b = mgl_alloc(bytes);
    mgl_status status = a && b ? MGL_OK : mgl_fail_memory(err, bytes);
    for (int i = 0; i < 2 && !status; i++) {
        mgl_vm_report report;
        status = run(gpu, prompt, counts[i], 1, a, &report, err);
        if (!status)
            status = run(cpu, prompt, counts[i], 1, b, &report, err);
        if (!status)
            difference[i] = relative_l2(a, b, graph->geometry.vocab);
    }
    mgl_free(a);
    mgl_free(b);
    return status;
}

static int parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.dtype = MGL_BF16, .gate = 5e-3, .tokens = 256, .launches = 7};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--dtype") && mgl_dtype_parse(value, &o->dtype))
            i++;
        else if (!strcmp(argv[i], "--gate") && (o->gate = atof(value)) > 0)
            i++;
        else if (!strcmp(argv[i], "--tokens") && (o->tokens = atoi(value)) > 1)
            i++;
        else if (!strcmp(argv[i], "--launches") && (o->launches = atoi(value)) > 0 &&
                 o->launches <= MOST_LAUNCHES)
            i++;
        else if (!strcmp(argv[i], "--config") && (o->config = value)[0])
            i++;
        else if (!strcmp(argv[i], "--trace") && (o->trace = atoi(value)) > 0)
            i++;
        else if (!strcmp(argv[i], "--quick"))
            o->quick = true;
        else if (argv[i][0] != '-' && !o->model)
            o->model = argv[i];
        else
            return fprintf(stderr, "compare_vms: what is %s?\n", argv[i]), 1;
    }
    return o->model ? 0 : (fprintf(stderr, "compare_vms MODEL [flags]\n"), 1);
}

static void print(const struct options *o, const mgl_vm_facts *facts, const double difference[2],
                  const double *us)
{
    int n = o->launches;
    printf("{\"schema\":\"megalith.compare/1\",\"device\":\"%s\",\"dtype\":\"%s\","
           "\"relative_l2_position_0\":%.3e,\"relative_l2_position_63\":%.3e,\"gate\":%g,"
           "\"launches\":%d,\"tokens_per_launch\":%d,\"us_per_token_median\":%.1f,"
           "\"us_per_token_p10\":%.1f,\"us_per_token_p90\":%.1f,\"tape_bytes\":%zu,"
           "\"registers\":%d,\"spill_bytes\":%d,\"shared_bytes\":%d,\"pack_s\":%.2f,"
           "\"compile_s\":%.2f}\n",
           facts->device, mgl_dtype_name(o->dtype), difference[0], difference[1], o->gate, n,
           o->tokens, us[n / 2], us[n / 10], us[n * 9 / 10], facts->tape_bytes, facts->registers,
           facts->spill_bytes, facts->shared_bytes, facts->pack_s, facts->compile_s);
}

int main(int argc, char **argv)
{
    struct options o;
    struct machine cpu = {0}, gpu = {0};
    mgl_checkpoint *checkpoint = NULL;
    mgl_target gpu_target;
    mgl_text summary = {0};
    mgl_error err = {0};
    int32_t prompt[LONG_PROMPT];
    double difference[2] = {0}, us[MOST_LAUNCHES];
    if (parse(argc, argv, &o))
        return 1;
    if (mgl_import(o.model, &checkpoint, &err) || mgl_cuda_live_target(0, &gpu_target, &err))
        return fail(&err);
    const mgl_graph *graph = checkpoint->graph;
    srand(1);
    for (int i = 0; i < LONG_PROMPT; i++)
        prompt[i] = rand() % graph->geometry.vocab;
    if (open_machine(graph, &gpu_target, &o, MGL_VM_CUDA, &gpu, &err) ||
        (!o.quick && (open_machine(graph, &gpu_target, &o, MGL_VM_CPU, &cpu, &err) ||
                      compare(graph, &cpu, &gpu, prompt, difference, &err))) ||
        measure(&gpu, &o, prompt, us, &err) ||
        (o.trace && mgl_trace_describe(gpu.vm, o.trace, &summary, &err)))
        return fail(&err);
    fputs(o.trace ? summary.bytes : "", stderr);
    mgl_vm_facts facts;
    mgl_vm_get_facts(gpu.vm, &facts);
    print(&o, &facts, difference, us);
    mgl_text_clear(&summary);
    mgl_vm_close(gpu.vm);
    mgl_vm_close(cpu.vm);
    mgl_program_free(gpu.program);
    mgl_program_free(cpu.program);
    mgl_checkpoint_close(checkpoint);
    bool good = difference[0] <= o.gate && difference[1] <= o.gate; /* false for NaN */
    return good ? 0 : MGL_GATE;
}

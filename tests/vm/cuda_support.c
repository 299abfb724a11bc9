#include "cuda_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "vm/cuda/cuda.h"

int skip_without_device(const char *test)
{
    mgl_cuda_probe probe;
    mgl_cuda_get_probe(&probe);
    if (probe.device_count > 0)
        return skip_without_compiler(test);
    printf("SKIPPED %s: no CUDA device: %s\n", test, probe.driver_reason);
    return SKIP;
}

int skip_without_compiler(const char *test)
{
    mgl_cuda_probe probe;
    mgl_cuda_get_probe(&probe);
    if (probe.nvrtc)
        return 0;
    printf("SKIPPED %s: the kernel was not compiled: %s\n", test, probe.nvrtc_reason);
    return SKIP;
}

static mgl_program *lower(const mgl_graph *graph, const mgl_target *target, const device_options *o)
{
    mgl_error err;
    mgl_program *program;
    mgl_schedule_config config;
    mgl_lower_options options = {o->dtype, o->capacity ? o->capacity : graph->max_positions,
                                 o->sequences ? o->sequences : 1};
    mgl_schedule_config_default(&config);
    const struct {
        int from, *to;
    } knobs[] = {{o->rows, &config.rows},
                 {o->splits, &config.splits},
                 {o->page_bytes, &config.page_bytes},
                 {o->ring_pages, &config.ring_pages},
                 {o->warps, &config.warps},
                 {o->stage_bytes, &config.stage_bytes}};
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++)
        if (knobs[i].from)
            *knobs[i].to = knobs[i].from;
    ok(mgl_schedule_lower(graph, target, &options, &config, &program, &err), err);
    return program;
}

mgl_program *program_for(const mgl_graph *graph, const char *target, const device_options *options)
{
    mgl_error err;
    mgl_target parsed;
    ok(mgl_target_parse(target, &parsed, &err), err);
    return lower(graph, &parsed, options);
}

mgl_program *device_program(const mgl_graph *graph, const device_options *options)
{
    mgl_error err;
    mgl_target target;
    ok(mgl_cuda_live_target(0, &target, &err), err);
    if (options->queues)
        target.queues = options->queues;
    return lower(graph, &target, options);
}

mgl_vm *device_vm(const mgl_program *program, const mgl_graph *graph, const device_options *options)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_options open = {
        .kind = MGL_VM_CUDA, .arch = options->arch, .deadline_ms = options->deadline_ms};
    ok(mgl_vm_open(program, graph, &open, &vm, &err), err);
    return vm;
}

/* ---- the provided checkpoints --------------------------------------------------------------- */

static void path_of(char *to, size_t size, const char *model, const char *file)
{
    const char *folder = getenv("MGL_TEST_MODELS");
    snprintf(to, size, "%s/%s/%s", folder ? folder : MGL_SOURCE_DIR "/tests/models", model, file);
}

/* Plain cJSON: the goldens of the tokenizer hold a \u0000, which the strict reader refuses. */
static cJSON *read_json(const char *model, const char *file)
{
    char path[1024], *text;
    size_t length;
    mgl_error err;
    path_of(path, sizeof path, model, file);
    ok(mgl_file_read(path, 1 << 20, &text, &length, &err), err);
    cJSON *json = cJSON_ParseWithLength(text, length);
    ck_assert_ptr_nonnull(json);
    mgl_free(text);
    return json;
}

void open_device_model(device_model *m, const char *name, const device_options *options)
{
    char path[1024];
    mgl_error err;
    *m = (device_model){.name = name};
    path_of(path, sizeof path, name, "");
    ok(mgl_import(path, &m->checkpoint, &err), err);
    ok(mgl_tokenizer_open(path, &m->tokenizer, &err), err);
    m->golden = read_json(name, "golden.json");
    m->texts = read_json(name, "val_texts.json");
    m->program = device_program(m->checkpoint->graph, options);
    m->vm = device_vm(m->program, m->checkpoint->graph, options);
}

void close_device_model(device_model *m)
{
    mgl_vm_close(m->vm);
    mgl_program_free(m->program);
    mgl_checkpoint_close(m->checkpoint);
    mgl_tokenizer_close(m->tokenizer);
    cJSON_Delete(m->golden);
    cJSON_Delete(m->texts);
}

int read_ids(const cJSON *array, int32_t *ids, int most)
{
    int count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, array)
    {
        ck_assert_int_lt(count, most);
        ids[count++] = (int32_t)item->valuedouble;
    }
    return count;
}

enum { MOST = 256 };

static void check_prompt(const device_model *m, const cJSON *golden, double gap)
{
    mgl_error err;
    mgl_vm_report report;
    int32_t prompt[MOST], wanted[MOST], ends[16];
    const cJSON *gaps = mgl_json_member(golden, "top_two_gap");
    const mgl_generation *generation = &m->checkpoint->generation;
    int count = read_ids(mgl_json_member(golden, "output_ids"), wanted, MOST);
    mgl_vm_sequence sequence = {.prompt = prompt, .max_new = 64, .ends = ends};
    sequence.prompt_count = read_ids(mgl_json_member(golden, "prompt_ids"), prompt, MOST);
    for (size_t i = 0; i < generation->end_count; i++)
        ends[sequence.end_count++] = generation->end_tokens[i];
    ok(mgl_vm_run(m->vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err),
       err);
    ck_assert_int_eq(report.launches, 1);
    for (int i = 0; i < count; i++) {
        if (i < report.produced[0] && report.output[0][i] == wanted[i])
            continue;
        double at = cJSON_GetArrayItem(gaps, i)->valuedouble;
        ck_assert_msg(at < gap, "%s: token %d is %d, not %d, where the gap is %g", m->name, i,
                      report.output[0][i], wanted[i], at);
        printf("%s %s: parts at token %d, where the gap of the two best logits is %g\n", m->name,
               mgl_dtype_name(m->program->dtype), i, at);
        return;
    }
    ck_assert_int_eq(report.produced[0], count);
}

void check_greedy(const device_model *m, double gap)
{
    const cJSON *prompts = mgl_json_member(mgl_json_member(m->golden, "fp32"), "greedy"), *golden;
    ck_assert_int_ge(cJSON_GetArraySize(prompts), 4);
    cJSON_ArrayForEach(golden, prompts) check_prompt(m, golden, gap);
}

void check_likelihood(const device_model *m, double tolerance)
{
    mgl_error err;
    mgl_vm_report report;
    const cJSON *golden = mgl_json_member(mgl_json_member(m->golden, "fp32"), "perplexity"), *text;
    double wanted = mgl_json_member(golden, "nll")->valuedouble, nll = 0.0;
    cJSON_ArrayForEach(text, m->texts)
    {
        mgl_ids ids = {0};
        const char *bytes = text->valuestring;
        ok(mgl_tokenizer_encode(m->tokenizer, bytes, strlen(bytes), true, &ids, &err), err);
        mgl_vm_sequence sequence = {
            .mode = MGL_VM_SCORE, .prompt = ids.ids, .prompt_count = (int32_t)ids.count};
        ok(mgl_vm_run(m->vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err),
           err);
        for (size_t i = 1; i < ids.count; i++)
            nll -= (double)report.score[0][i];
        mgl_ids_clear(&ids);
    }
    printf("%s %s: nll %.6f, %.2e from %.6f\n", m->name, mgl_dtype_name(m->program->dtype), nll,
           fabs(nll / wanted - 1.0), wanted);
    ck_assert_double_le(fabs(nll / wanted - 1.0), tolerance);
}

void device_greedy(mgl_vm *vm, const int32_t *prompt, int count, int32_t *tokens, int most)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = count, .max_new = most};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    ck_assert_int_eq(report.launches, 1);
    ck_assert_int_eq(report.produced[0], most);
    memcpy(tokens, report.output[0], (size_t)most * sizeof *tokens);
}

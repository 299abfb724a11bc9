/* Implements the helpers of the CUDA machine's tests. See cuda_support.h. */
#include "tests/vm/cuda/cuda_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/variants.h"
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

/* Gives each task a random variant that fits. Ring attention, which must be used by all tasks, is
 * left to lowering; all panels have one variant. */
static void draw_variants(mgl_program *program, uint64_t state)
{
    const bool grouped = state % 2;
    mgl_dimensions dimensions;
    mgl_dimensions_of_program(program, &dimensions);
    for (int i = 0; i < program->task_count; i++) {
        mgl_task *task = &program->tasks[i];
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407; /* Knuth's MMIX */
        unsigned drawn = (unsigned)(state >> 33) % MGL_VARIANT_COUNT;
        while (!mgl_variant_takes_task(program, task, (mgl_variant)drawn, &dimensions, NULL))
            drawn = (drawn + 1) % MGL_VARIANT_COUNT;
        task->variant = (mgl_variant)drawn;
        if (mgl_variant_is_panels(task->variant))
            task->variant = MGL_VARIANT_PANELS;
    }
    if (grouped)
        (void)mgl_variants_name_warpgroups(program, NULL); /* if all accept them */
    mgl_variants_mend(program);
    if (program->second)
        draw_variants(program->second, state);
}

static mgl_program *lower(const mgl_graph *graph, const mgl_target *target, const device_options *o)
{
    mgl_error err;
    mgl_program *program;
    mgl_schedule_config config;
    mgl_lower_options options = {.dtype = o->dtype,
                                 .capacity = o->capacity ? o->capacity : graph->max_positions,
                                 .sequences = o->sequences ? o->sequences : 1,
                                 .penalties = o->penalties};
    mgl_schedule_config_default(&config);
    const struct {
        int from, *to;
    } knobs[] = {{o->rows, &config.rows},
                 {o->second_rows, &config.second_rows},
                 {o->gamma_scaled, &config.gamma_scaled},
                 {o->warpgroups, &config.warpgroups},
                 {o->splits, &config.splits},
                 {o->exchange_precision, &config.exchange_precision},
                 {o->merge, &config.merge},
                 {o->share, &config.share},
                 {o->unsplit ? o->unsplit : 1, &config.unsplit},
                 {o->exchange, &config.exchange},
                 {o->page_bytes, &config.page_bytes},
                 {o->ring_pages, &config.ring_pages},
                 {o->warps, &config.warps},
                 {o->stage_bytes, &config.stage_bytes},
                 {o->flight_bytes, &config.flight_bytes},
                 {o->pending_bytes, &config.pending_bytes},
                 {o->prefetch_bytes, &config.prefetch_bytes}};
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++)
        if (knobs[i].from)
            *knobs[i].to = knobs[i].from;
    for (int i = 0; i < MGL_STEP_COUNT && o->products; i++) {
        config.queues[i].first = i == MGL_STEP_ATTEND ? o->products : 0;
        config.queues[i].count = i == MGL_STEP_ATTEND ? o->queues - o->products : o->products;
    }
    ok(mgl_schedule_lower(graph, target, &options, &config, &program, &err), err);
    if (o->variants)
        draw_variants(program, o->variants);
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

void (*on_device_vm_open)(const mgl_program *program, const device_options *options);

mgl_vm *device_vm(const mgl_program *program, const mgl_graph *graph, const device_options *options)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_options open = {.kind = MGL_VM_CUDA,
                           .arch = options->arch,
                           .deadline_ms = options->deadline_ms,
                           .delay_seed = options->delay_seed};
    ok(mgl_vm_open(program, graph, &open, &vm, &err), err);
    if (on_device_vm_open)
        on_device_vm_open(program, options);
    return vm;
}

void open_device_model(golden_model *m, const char *name, const device_options *options)
{
    golden_open(m, name);
    m->program = device_program(m->checkpoint->graph, options);
    m->vm = device_vm(m->program, m->checkpoint->graph, options);
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

/* See harness.h. */
#include "autotune/kernel/harness.h"

#include "autotune/kernel/exam.h"
#include "base/memory.h"
#include "eval/synthetic.h"

#include <string.h>

/* Those that come first are the examination; what is used of the others is hidden: promotion
 * alone looks at them (trial.c). */
static const mgl_harness harnesses[] = {
    {"one row, f32 between queues",
     {256, 1, 4, 2, 64, 512, 320, 1e-5f},
     1,
     192,
     "{\"schema\": \"megalith.config/1\", \"rows\": 1, \"narrow\": 0}",
     "ctx=0,37,150",
     false,
     0},
    {"one row, splits",
     {256, 1, 4, 2, 64, 512, 127, 1e-5f},
     1,
     320,
     "{\"schema\": \"megalith.config/1\", \"rows\": 1, \"narrow\": 0, \"splits\": 4}",
     "ctx=0,1,255",
     false,
     0},
    {"one queue that merges", /* more blocks of dimensions than it has warps */
     {512, 1, 8, 4, 64, 1024, 200, 1e-5f},
     1,
     640,
     "{\"schema\": \"megalith.config/1\", \"rows\": 1, \"splits\": 3}",
     "ctx=0,200,600",
     false,
     1},
    {"odd sizes", {72, 1, 3, 1, 32, 504, 333, 1e-5f}, 3, 160, "", "ctx=0,101;batch=1,3", true, 0},
    {"eight rows",
     {512, 1, 8, 4, 64, 1024, 320, 1e-5f},
     8,
     192,
     "",
     "ctx=5,127;batch=2,8",
     false,
     0},
    {"through the ring",
     {256, 1, 4, 2, 64, 512, 320, 1e-5f},
     1,
     4096,
     "{\"schema\": \"megalith.config/1\", \"rows\": 1, \"splits\": 4}",
     "ctx=0,2047,4000",
     false,
     0},
    {"splits of eight rows",
     {512, 1, 8, 4, 64, 1024, 200, 1e-5f},
     8,
     640,
     "{\"schema\": \"megalith.config/1\", \"splits\": 3}",
     "ctx=33,600;batch=3,8",
     false,
     0},
    {"two layers",
     {384, 2, 6, 3, 64, 1024, 1025, 1e-5f},
     2,
     256,
     "",
     "ctx=9,200;batch=1,2",
     false,
     0},
    {"wide heads",
     {512, 2, 4, 2, 128, 1536, 300, 1e-5f},
     1,
     256,
     "{\"schema\": \"megalith.config/1\", \"rows\": 1, \"splits\": 2}",
     "ctx=2,129",
     false,
     0},
    {"odd sizes, two layers",
     {136, 2, 2, 1, 64, 264, 99, 1e-5f},
     2,
     130,
     "",
     "ctx=64;batch=1,2",
     true,
     0},
};
enum { HARNESSES = sizeof harnesses / sizeof *harnesses };

int mgl_harness_count(void)
{
    return HARNESSES;
}

const mgl_harness *mgl_harness_get(int index)
{
    return &harnesses[index];
}

void mgl_harness_clear(mgl_harness_set *set)
{
    for (int p = 0; p < set->program.program_count; p++)
        mgl_program_free(set->program.programs[p]);
    mgl_graph_free((mgl_graph *)set->subject.graph);
    *set = (mgl_harness_set){0};
}

/* The graph of a config. */
static mgl_status open_graph(mgl_harness_set *set, mgl_error *err)
{
    mgl_graph *graph = NULL;
    mgl_status status = mgl_synthetic_open(&set->subject.config, 0, &graph, err);
    set->subject.graph = graph;
    return status;
}

/* General takes every shape that another variant takes. */
static void make_general(mgl_program *program)
{
    for (int t = 0; t < program->task_count; t++)
        program->tasks[t].variant = MGL_VARIANT_GENERAL;
}

static mgl_status lower(mgl_harness_set *set, int sequences, mgl_error *err)
{
    const mgl_subject *s = &set->subject;
    const mgl_lower_options how = {
        .dtype = s->dtype, .capacity = s->capacity, .sequences = sequences};
    mgl_program **to = &set->program.programs[set->program.program_count];
    mgl_status status = mgl_schedule_lower(s->graph, &s->target, &how, &s->start, to, err);
    set->program.program_count += !status;
    return status;
}

/* Takes the last queues off all steps of a layer. */
static void leave_queues(mgl_schedule_config *config, const mgl_target *target, int left)
{
    static const mgl_step steps[] = {MGL_STEP_QKV, MGL_STEP_O, MGL_STEP_GATE_UP, MGL_STEP_DOWN};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        config->queues[steps[i]].count = target->queues > left ? target->queues - left : 0;
}

mgl_status mgl_harness_open(const mgl_harness *h, const mgl_target *target, mgl_harness_set *out,
                            mgl_error *err)
{
    *out = (mgl_harness_set){.of = h};
    mgl_subject *s = &out->subject;
    s->config = (mgl_config){
        .geometry = h->geometry,
        .max_positions = h->capacity,
        .rope = {.type = MGL_ROPE_DEFAULT, .theta = 10000, .factor = 1, .attention_factor = 1}};
    s->target = *target;
    s->dtype = MGL_BF16;
    s->capacity = h->capacity;
    mgl_schedule_config_default(&s->start);
    mgl_status status = mgl_workloads_parse(h->workloads, &s->workloads, err);
    if (!status && h->config[0])
        status = mgl_schedule_config_parse(h->config, strlen(h->config), h->name, &s->start, err);
    if (h->left > 0)
        leave_queues(&s->start, target, h->left);
    if (!status)
        status = open_graph(out, err);
    if (!status)
        status = lower(out, h->sequences, err);
    if (!status && h->general)
        make_general(out->program.programs[0]);
    if (status)
        mgl_harness_clear(out);
    return status;
}

/* Of each batch among the workloads one program. */
static mgl_status lower_batches(mgl_harness_set *set, mgl_error *err)
{
    const mgl_workloads *w = &set->subject.workloads;
    mgl_status status = MGL_OK;
    for (int i = 0; i < w->count && !status; i++) {
        int same = 0;
        while (same < i && w->list[same].batch != w->list[i].batch)
            same++;
        set->program.program_of[i] =
            same < i ? set->program.program_of[same] : set->program.program_count;
        if (same == i)
            status = lower(set, w->list[i].batch, err);
    }
    return status;
}

mgl_status mgl_harness_open_config(const mgl_config *config, const mgl_workloads *workloads,
                                   int capacity, const mgl_target *target, mgl_harness_set *out,
                                   mgl_error *err)
{
    *out = (mgl_harness_set){0};
    mgl_subject *s = &out->subject;
    s->config = *config;
    s->target = *target;
    s->dtype = MGL_BF16;
    s->capacity = capacity;
    s->workloads = *workloads;
    mgl_schedule_config_default(&s->start);
    mgl_status status = open_graph(out, err);
    if (!status)
        status = lower_batches(out, err);
    if (status)
        mgl_harness_clear(out);
    return status;
}

mgl_status mgl_harness_open_shape(const char *shape, int layers, const mgl_workloads *workloads,
                                  int capacity, const mgl_target *target, mgl_harness_set *out,
                                  mgl_error *err)
{
    mgl_config config;
    *out = (mgl_harness_set){0};
    mgl_status status = mgl_synthetic_find_shape(shape, &config, err);
    if (status)
        return status;
    if (layers > 0 && layers < config.geometry.layers)
        config.geometry.layers = layers;
    return mgl_harness_open_config(&config, workloads, capacity, target, out, err);
}

void mgl_harness_make_general(mgl_harness_set *set)
{
    for (int p = 0; p < set->program.program_count; p++)
        make_general(set->program.programs[p]);
}

/* Whether a program of the set has a task of which `is` says so. */
static bool has_task(const mgl_harness_set *set, const mgl_kernel_unit *unit,
                     bool (*is)(const mgl_task *, const mgl_kernel_unit *))
{
    for (int p = 0; p < set->program.program_count; p++) {
        const mgl_program *program = set->program.programs[p];
        for (int t = 0; t < program->task_count; t++)
            if (is(&program->tasks[t], unit))
                return true;
    }
    return false;
}

bool mgl_harness_runs(const mgl_harness_set *set, const mgl_kernel_unit *unit)
{
    return has_task(set, unit, mgl_exam_is_task);
}

bool mgl_harness_may_run(const mgl_harness_set *set, const mgl_kernel_unit *unit)
{
    return has_task(set, unit, mgl_exam_may_run);
}

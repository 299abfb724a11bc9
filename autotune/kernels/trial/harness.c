/* Implements harness.h: the table of harness programs, and their models and programs. */
#include "autotune/kernels/trial/harness.h"

#include "autotune/kernels/trial/correctness.h"
#include "base/memory.h"
#include "eval/synthetic.h"

#include <string.h>

/* Special rows (`kind`) run for every candidate that they fit. Of the other rows, the first ones
 * run for every candidate, and the rest only for promotion (trial.c). */
static const mgl_harness harnesses[] = {
    {.name = "one row, f32 between queues",
     .geometry = {256, 1, 4, 2, 64, 512, 320, 1e-5f},
     .sequences = 1,
     .capacity = 192,
     .config = "{\"schema\": \"megalith.config/1\", \"rows\": 1, \"exchange_precision\": 0}",
     .workloads = "ctx=0,37,150"},
    {.name = "one row, splits",
     .geometry = {256, 1, 4, 2, 64, 512, 127, 1e-5f},
     .sequences = 1,
     .capacity = 320,
     .config = "{\"schema\": \"megalith.config/1\", \"rows\": 1, \"exchange_precision\": 0, "
               "\"splits\": 4, \"unsplit\": 1}",
     .workloads = "ctx=0,1,255"},
    {.name = "one queue that merges", /* more blocks of dimensions than warps in the queue */
     .geometry = {512, 1, 8, 4, 64, 1024, 200, 1e-5f},
     .sequences = 1,
     .capacity = 640,
     .config = "{\"schema\": \"megalith.config/1\", \"rows\": 1, \"splits\": 3, \"unsplit\": 1}",
     .workloads = "ctx=0,200,600",
     .left = 1},
    {.name = "odd sizes",
     .geometry = {72, 1, 3, 1, 32, 504, 333, 1e-5f},
     .sequences = 3,
     .capacity = 160,
     .workloads = "ctx=0,101;batch=1,3",
     .general = true},
    {.name = "eight rows",
     .geometry = {512, 1, 8, 4, 64, 1024, 320, 1e-5f},
     .sequences = 8,
     .capacity = 192,
     .workloads = "ctx=5,127;batch=2,8"},
    {.name = "through the ring",
     .geometry = {256, 1, 4, 2, 64, 512, 320, 1e-5f},
     .sequences = 1,
     .capacity = 4096,
     .config = "{\"schema\": \"megalith.config/1\", \"rows\": 1, \"splits\": 4, \"unsplit\": 1}",
     .workloads = "ctx=0,2047,4000"},
    {.name = "splits of eight rows",
     .geometry = {512, 1, 8, 4, 64, 1024, 200, 1e-5f},
     .sequences = 8,
     .capacity = 640,
     .config = "{\"schema\": \"megalith.config/1\", \"splits\": 3, \"unsplit\": 100}",
     .workloads = "ctx=33,600;batch=3,8"},
    {.name = "two layers",
     .geometry = {384, 2, 6, 3, 64, 1024, 1025, 1e-5f},
     .sequences = 2,
     .capacity = 256,
     .workloads = "ctx=9,200;batch=1,2"},
    {.name = "wide heads",
     .geometry = {512, 2, 4, 2, 128, 1536, 300, 1e-5f},
     .sequences = 1,
     .capacity = 256,
     .config = "{\"schema\": \"megalith.config/1\", \"rows\": 1, \"splits\": 2, \"unsplit\": 1}",
     .workloads = "ctx=2,129"},
    {.name = "odd sizes, two layers",
     .geometry = {136, 2, 2, 1, 64, 264, 99, 1e-5f},
     .sequences = 2,
     .capacity = 130,
     .workloads = "ctx=64;batch=1,2",
     .general = true},
    {.name = "biases",
     .geometry = {256, 1, 4, 2, 64, 512, 320, 1e-5f},
     .sequences = 3,
     .capacity = 160,
     .config = "{\"schema\": \"megalith.config/1\", \"splits\": 2, \"unsplit\": 1}",
     .workloads = "ctx=70;batch=3",
     .kind = true,
     .mixed = true,
     .extras = MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS | MGL_EXTRA_MLP_BIAS},
    {.name = "norms of q and k",
     .geometry = {256, 1, 4, 2, 64, 512, 320, 1e-5f},
     .sequences = 1,
     .capacity = 192,
     .config = "{\"schema\": \"megalith.config/1\", \"rows\": 1, \"splits\": 2, \"unsplit\": 1}",
     .workloads = "ctx=70",
     .kind = true,
     .mixed = true,
     .extras = MGL_EXTRA_QK_NORM},
    {.name = "f16",
     .geometry = {256, 1, 4, 2, 64, 512, 320, 1e-5f},
     .sequences = 2,
     .capacity = 192,
     .config = "{\"schema\": \"megalith.config/1\", \"exchange_precision\": 2, \"splits\": 2, "
               "\"unsplit\": 1}",
     .workloads = "ctx=70;batch=2",
     .kind = true,
     .mixed = true,
     .half = true,
     /* large values would overflow f16 */
     .without = 1U << MGL_SYNTHETIC_LARGE | 1U << MGL_SYNTHETIC_MIXED},
    {.name = "two lists",
     .geometry = {256, 1, 4, 2, 64, 512, 320, 1e-5f},
     .sequences = 18,
     .capacity = 160,
     .config = "{\"schema\": \"megalith.config/1\", \"rows\": 2, \"second_rows\": 18, \"splits\": "
               "2, \"unsplit\": 1}",
     .workloads = "ctx=70;batch=2,18",
     .kind = true,
     .mixed = true},
    {.name = "penalties", /* of two thirds of the vocabulary, by the tokens of the context */
     .geometry = {256, 1, 4, 2, 64, 512, 72, 1e-5f},
     .sequences = 2,
     .capacity = 160,
     .config = "{\"schema\": \"megalith.config/1\", \"splits\": 2, \"unsplit\": 1}",
     .workloads = "ctx=70;batch=2",
     .kind = true,
     .mixed = true,
     .penalties = true},
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

/* Builds the graph of the config. */
static mgl_status open_graph(mgl_harness_set *set, mgl_error *err)
{
    mgl_graph *graph = NULL;
    mgl_status status = mgl_synthetic_open(&set->subject.config, 0, &graph, err);
    set->subject.graph = graph;
    return status;
}

/* Changes every task, or every second task of each op, to the variant `general`, from the last
 * queue on. The variant `general` supports every shape that another variant supports. */
static void make_general(mgl_program *program, bool mixed)
{
    bool skips[MGL_OP_COUNT] = {false};
    for (int q = program->queue_count - 1; q >= 0; q--) {
        const mgl_run *tasks = &program->queues[q].tasks;
        for (int t = tasks->first; t < tasks->first + tasks->count; t++) {
            mgl_task *task = &program->tasks[t];
            if (!skips[task->op])
                task->variant = MGL_VARIANT_GENERAL;
            skips[task->op] = mixed && !skips[task->op];
        }
    }
}

static mgl_status lower(mgl_harness_set *set, int sequences, mgl_error *err)
{
    const mgl_subject *s = &set->subject;
    const mgl_lower_options how = {.dtype = s->dtype,
                                   .capacity = s->capacity,
                                   .sequences = sequences,
                                   .penalties = set->of && set->of->penalties};
    mgl_program **to = &set->program.programs[set->program.program_count];
    mgl_status status = mgl_schedule_lower(s->graph, &s->target, &how, &s->start, to, err);
    set->program.program_count += !status;
    return status;
}

/* Removes the last queues from all steps of a layer. */
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
        .rope = {.type = MGL_ROPE_DEFAULT, .theta = 10000, .factor = 1, .attention_factor = 1},
        .extras = h->extras};
    s->target = *target;
    s->dtype = h->half ? MGL_F16 : MGL_BF16;
    s->capacity = h->capacity;
    mgl_schedule_config_default(&s->start);
    mgl_status status = mgl_workloads_parse(h->workloads, &s->workloads, err);
    if (!status && h->config)
        status = mgl_schedule_config_parse(h->config, strlen(h->config), h->name, &s->start, err);
    if (h->left > 0)
        leave_queues(&s->start, target, h->left);
    if (!status)
        status = open_graph(out, err);
    if (!status)
        status = lower(out, h->sequences, err);
    if (!status && (h->general || h->mixed))
        make_general(out->program.programs[0], h->mixed);
    if (status)
        mgl_harness_clear(out);
    return status;
}

/* Lowers one program per batch size among the workloads. */
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
        make_general(set->program.programs[p], false);
}

/* Whether a program of the set has a task for which `is` returns true. */
static bool has_task(const mgl_harness_set *set, const mgl_kernel_unit *unit,
                     bool (*is)(const mgl_task *, const mgl_kernel_unit *))
{
    for (int p = 0; p < set->program.program_count; p++)
        for (const mgl_program *list = set->program.programs[p]; list; list = list->second)
            for (int t = 0; t < list->task_count; t++)
                if (is(&list->tasks[t], unit))
                    return true;
    return false;
}

bool mgl_harness_runs(const mgl_harness_set *set, const mgl_kernel_unit *unit)
{
    return has_task(set, unit, mgl_correctness_is_task);
}

bool mgl_harness_may_run(const mgl_harness_set *set, const mgl_kernel_unit *unit)
{
    return has_task(set, unit, mgl_correctness_may_run);
}

/*
 * Compiles the kernels that `megalith bench` needs into the kernel cache, so that measurements on a
 * GPU do not wait for the compiler. Runs without a device, or on the GPU's host with all
 * processors.
 *
 *     warm_kernels [--arch sm_90a] [--queues 132] [--tokens 32] [--capacity N] [--dtype bf16]
 *                  [--group N] [--head-dtype bf16] [--config F] [--trace]
 *                  SHAPE:BATCH:CONTEXT[:HIDDEN]...
 *     printf '%s\n' llama-1b:1:0 llama-1b:1:8192 | xargs -n 1 -P 16 warm_kernels
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/synthetic.h"
#include "eval/weight_flags.h"
#include "schedule/schedule.h"
#include "validator/validator.h"
#include "vm/cuda/cuda.h"

struct options {
    const char *arch, *config; /* config NULL: the default */
    int queues, tokens;
    int capacity;               /* positions of the cache; 0: context + tokens + 1 */
    mgl_weight_code code, head; /* of the layers' weights, and of the head */
    int group;                  /* columns that share a scale; 0: the default of the code */
    unsigned extras;            /* MGL_CUDA_... */
};

/* A row of the benchmark. */
struct row {
    char shape[32];
    int batch, context;
    int hidden; /* 0: that of the shape */
};

static int fail(const mgl_error *err)
{
    fprintf(stderr, "warm_kernels: %s: %s\n", err->where, err->message);
    return (int)err->code;
}

static bool read_row(const char *text, struct row *row)
{
    int end = 0;
    *row = (struct row){.hidden = 0};
    if (sscanf(text, "%31[^:]:%d:%d%n", row->shape, &row->batch, &row->context, &end) != 3)
        return false;
    return text[end] == 0 || sscanf(text + end, ":%d", &row->hidden) == 1;
}

/* Programs that no machine can run are skipped. */
static mgl_status judge(const mgl_program *program, const mgl_graph *graph, mgl_error *err)
{
    mgl_verdict verdict = {0};
    mgl_status status = mgl_validator_check(program, graph, &verdict, err);
    if (!status && !verdict.accepted)
        status = mgl_fail(err, MGL_REJECTED, "program", "MG%d: %s", verdict.diagnostics[0].code,
                          verdict.diagnostics[0].message);
    mgl_verdict_clear(&verdict);
    return status;
}

/* Lowers the program of a row like eval/bench.c. */
static mgl_status lower(const struct options *o, const struct row *row, mgl_program **out,
                        mgl_error *err)
{
    mgl_config config;
    mgl_graph *graph = NULL;
    mgl_target target;
    mgl_schedule_config knobs;
    mgl_lower_options options = {.dtype = MGL_BF16,
                                 .capacity =
                                     o->capacity ? o->capacity : row->context + o->tokens + 1,
                                 .sequences = row->batch};
    char name[32];
    snprintf(name, sizeof name, "sm_90a:%d", o->queues);
    mgl_schedule_config_default(&knobs);
    mgl_status status = mgl_synthetic_find_shape(row->shape, &config, err);
    if (!status && row->hidden > 0)
        status = mgl_synthetic_widen(&config, row->hidden, err);
    if (!status)
        mgl_synthetic_choose_formats(&config, mgl_weight_flag_format(o->code, o->group),
                                     mgl_weight_flag_format(o->head, o->group));
    if (!status && o->config)
        status = mgl_schedule_config_read(o->config, &knobs, err);
    if (!status)
        status = mgl_target_parse(name, &target, err);
    if (!status)
        status = mgl_synthetic_open(&config, 1, &graph, err);
    if (!status)
        status = mgl_schedule_lower(graph, &target, &options, &knobs, out, err);
    if (!status)
        status = judge(*out, graph, err);
    mgl_graph_free(graph);
    return status;
}

static mgl_status warm(const struct options *o, const char *text, mgl_error *err)
{
    struct row row;
    mgl_program *program = NULL;
    mgl_cuda_image image = {0};
    if (!read_row(text, &row))
        return mgl_fail(err, MGL_USAGE, text, "is no SHAPE:BATCH:CONTEXT");
    mgl_status status = lower(o, &row, &program, err);
    if (!status)
        status = mgl_cuda_compile(program, o->arch, o->extras, NULL, &image, err);
    if (!status)
        fprintf(stderr, "warm_kernels: %s for %s: %.1f s%s%s\n", text, o->arch, image.compile_s,
                image.cached ? ", was there" : "", image.cache_note);
    mgl_cuda_image_clear(&image);
    mgl_program_free(program);
    return status;
}

static bool read_code(const char *name, mgl_weight_code *out)
{
    return mgl_weight_flag_find(name, strlen(name), out);
}

int main(int argc, char **argv)
{
    struct options o = {.arch = "sm_90a",
                        .queues = 132,
                        .tokens = 32,
                        .code = MGL_CODE_BF16,
                        .head = MGL_CODE_BF16};
    mgl_error err = {0};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--arch") && (o.arch = value)[0])
            i++;
        else if (!strcmp(argv[i], "--config") && (o.config = value)[0])
            i++;
        else if (!strcmp(argv[i], "--queues") && (o.queues = atoi(value)) > 0)
            i++;
        else if (!strcmp(argv[i], "--tokens") && (o.tokens = atoi(value)) > 0)
            i++;
        else if (!strcmp(argv[i], "--capacity") && (o.capacity = atoi(value)) > 0)
            i++;
        else if (!strcmp(argv[i], "--dtype") && read_code(value, &o.code))
            i++;
        else if (!strcmp(argv[i], "--group") && (o.group = atoi(value)) > 0)
            i++;
        else if (!strcmp(argv[i], "--head-dtype") && read_code(value, &o.head))
            i++;
        else if (!strcmp(argv[i], "--trace"))
            o.extras = MGL_CUDA_TRACE;
        else if (warm(&o, argv[i], &err))
            return fail(&err);
    }
    return 0;
}

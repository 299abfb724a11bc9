/*
 * What a prompt costs, against a prefill by matrix products: the time of a launch of the machine
 * from its start to the first token, for prompts of several lengths, and the time of the cuBLAS
 * products of a prefill of as many tokens (qkv, o, gate and up, down of every layer, and the head
 * for one row; bf16, captured in a CUDA graph), in turn, both by the device's clock. The products
 * alone are timed: no prefill made of them is faster.
 *
 *     bench_prefill SHAPE [--samples 7] [--config F] [LENGTH...]    (1 16 64 256 1024)
 *
 * Weights are random and made on the device (eval/synthetic.h). Prints one JSON object;
 * crossover_tokens is the smallest of the lengths from which on the products are faster, null where
 * there is none. Exit code 4 without a GPU or cuBLAS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/bench.h"
#include "eval/cublas.h"
#include "eval/device.h"
#include "eval/filler.h"
#include "eval/statistics.h"
#include "schedule/schedule.h"

enum {
    MOST_LENGTHS = 16,
    LONGEST = 1 << 16,
    LAYER_PRODUCTS = 4,
    WORKSPACE_BYTES = 64 << 20, /* cuBLAS's, so that it allocates nothing in the capture */
    ALIGNMENT = 256
};

/* y (rows, outer) = x (rows, inner) W^T. */
struct product {
    size_t outer, inner;
    mgl_address weight; /* bf16 (outer, inner) */
    bool head;          /* of the last row alone, to f32 */
};

/* The products of a prefill. */
struct gemms {
    const mgl_cublas *cublas;
    void *handle;
    int version;              /* of cuBLAS */
    struct product *products; /* (count) in their order */
    int count;
    mgl_address arena;             /* all that follows */
    mgl_address x, y, workspace;   /* of the largest product; of cuBLAS */
    void *graphs[2][MOST_LENGTHS]; /* (lengths) captured; executable */
};
enum { CAPTURED, EXECUTABLE };

struct prefill {
    const char *shape, *knobs; /* knobs: path of a ScheduleConfig, or NULL */
    int lengths[MOST_LENGTHS]; /* (count) ascending */
    int count, samples;
    mgl_graph *graph;
    mgl_program *program;
    mgl_bench_device device;
    mgl_filler filler;
    mgl_vm *vm;
    int32_t *prompt; /* (longest) */
    struct gemms gemms;
    double ours[MOST_LENGTHS][MGL_MAX_SAMPLES], theirs[MOST_LENGTHS][MGL_MAX_SAMPLES]; /* seconds */
};

static int longest(const struct prefill *s)
{
    return s->lengths[s->count - 1];
}

/* ---- the machine ---------------------------------------------------------------------------- */

/* As `bench` lowers for a context of the longest prompt, so that their kernels are the same. */
static mgl_status lower(struct prefill *s, mgl_error *err)
{
    mgl_schedule_config config;
    mgl_lower_options options = {MGL_BF16, longest(s) + MGL_BENCH_TOKENS + 1, 1};
    mgl_schedule_config_default(&config);
    mgl_status status = s->knobs ? mgl_schedule_config_read(s->knobs, &config, err) : MGL_OK;
    return status ? status
                  : mgl_schedule_lower(s->graph, &s->device.target, &options, &config, &s->program,
                                       err);
}

static mgl_status open_machine(struct prefill *s, mgl_error *err)
{
    mgl_config config;
    mgl_status status = mgl_synthetic_find_shape(s->shape, &config, err);
    if (!status)
        status = mgl_synthetic_open(&config, 1, &s->graph, err);
    if (!status)
        status = mgl_bench_device_open(0, &config.geometry, NULL, &s->device, err);
    if (!status)
        status = lower(s, err);
    s->filler = (mgl_filler){.device = &s->device, .graph = s->graph};
    mgl_vm_options options = {.kind = MGL_VM_CUDA, .fill = mgl_filler_run, .fill_user = &s->filler};
    if (!status)
        status = mgl_vm_open(s->program, s->graph, &options, &s->vm, err);
    size_t tokens = (size_t)longest(s);
    s->prompt = mgl_alloc_zero(tokens, sizeof *s->prompt);
    if (!status && !s->prompt)
        status = mgl_fail_memory(err, tokens * sizeof *s->prompt);
    for (size_t i = 0; i < tokens && !status; i++)
        s->prompt[i] = (int32_t)((17 + 7919 * i) % (size_t)config.geometry.vocab);
    return status;
}

/* The launch ends with the first token. */
static mgl_status run_machine(const struct prefill *s, int tokens, double *seconds, mgl_error *err)
{
    mgl_vm_sequence sequence = {.prompt = s->prompt, .prompt_count = tokens, .max_new = 1};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    mgl_vm_report report;
    mgl_status status = mgl_vm_run(s->vm, &request, &report, err);
    if (status)
        return status;
    *seconds = report.device_s;
    return report.produced[0] == 1
               ? MGL_OK
               : mgl_fail(err, MGL_GATE, NULL, "a prompt of %d tokens made %d in place of one",
                          tokens, (int)report.produced[0]);
}

/* ---- the products --------------------------------------------------------------------------- */

/* Takes the next `count` bf16 values behind *cursor: where they are. */
static mgl_address take(mgl_address *cursor, size_t count)
{
    mgl_address at = *cursor;
    *cursor += (count * sizeof(uint16_t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Gives every product its shape and its weight's place, the first at `cursor`: where the last ends.
 */
static mgl_address place_products(struct prefill *s, mgl_address cursor)
{
    const mgl_geometry *m = &s->graph->geometry;
    size_t hidden = (size_t)m->hidden, ffn = (size_t)m->ffn;
    size_t heads = (size_t)m->heads * (size_t)m->head_dim;
    size_t kv = (size_t)m->kv_heads * (size_t)m->head_dim;
    const size_t shapes[LAYER_PRODUCTS][2] = {
        {heads + 2 * kv, hidden}, {hidden, heads}, {2 * ffn, hidden}, {hidden, ffn}};
    for (int i = 0; i < s->gemms.count; i++) {
        struct product *p = &s->gemms.products[i];
        p->head = i + 1 == s->gemms.count;
        p->outer = p->head ? (size_t)m->vocab : shapes[i % LAYER_PRODUCTS][0];
        p->inner = p->head ? hidden : shapes[i % LAYER_PRODUCTS][1];
        p->weight = take(&cursor, p->outer * p->inner);
    }
    return cursor;
}

/* Gives everything its place from `base` on; the bytes that it takes. */
static size_t place(struct prefill *s, mgl_address base)
{
    mgl_address cursor = place_products(s, base);
    size_t x = 0, y = 0, rows = (size_t)longest(s);
    for (int i = 0; i < s->gemms.count; i++) {
        const struct product *p = &s->gemms.products[i];
        x = larger(x, p->head ? p->inner : rows * p->inner);
        y = larger(y, p->head ? 2 * p->outer : rows * p->outer); /* the head's is f32 */
    }
    s->gemms.x = take(&cursor, x);
    s->gemms.y = take(&cursor, y);
    s->gemms.workspace = take(&cursor, WORKSPACE_BYTES / sizeof(uint16_t));
    return cursor - base;
}

/* Weights and inputs are filled with weights, since what bits look like may matter. */
static mgl_status allocate(struct prefill *s, mgl_error *err)
{
    struct gemms *g = &s->gemms;
    g->count = s->graph->geometry.layers * LAYER_PRODUCTS + 1;
    g->products = mgl_alloc_zero((size_t)g->count, sizeof *g->products);
    if (!g->products)
        return mgl_fail_memory(err, (size_t)g->count * sizeof *g->products);
    mgl_synthetic_rule rule = mgl_synthetic_tensor_rule(s->graph, 0);
    mgl_status status = mgl_bench_allocate(&s->device, place(s, 0), "the products", &g->arena, err);
    if (status)
        return status;
    place(s, g->arena);
    status = mgl_bench_fill_rows(&s->device, g->arena, &rule,
                                 (long long)((g->y - g->arena) / sizeof(uint16_t)), false, err);
    return status ? status : mgl_bench_wait(&s->device, err);
}

static mgl_status open_cublas(struct prefill *s, mgl_error *err)
{
    struct gemms *g = &s->gemms;
    mgl_status status = mgl_cublas_open(&g->cublas, err);
    if (status)
        return status;
    int result = g->cublas->create(&g->handle);
    if (result)
        g->handle = NULL;
    if (!result)
        result = g->cublas->version(g->handle, &g->version);
    if (!result)
        result = g->cublas->set_stream(g->handle, s->device.stream);
    if (!result)
        result =
            g->cublas->set_workspace(g->handle, (void *)(uintptr_t)g->workspace, WORKSPACE_BYTES);
    return mgl_cublas_check(result, "starting cuBLAS", err);
}

/* The products of a prefill of `tokens`, put on the stream. */
static mgl_status multiply(const struct gemms *g, int tokens, mgl_error *err)
{
    const float one = 1, zero = 0;
    int result = 0;
    for (int i = 0; i < g->count && !result; i++) {
        const struct product *p = &g->products[i];
        result = g->cublas->gemm(
            g->handle, MGL_CUBLAS_TRANSPOSED, MGL_CUBLAS_PLAIN, (int)p->outer, p->head ? 1 : tokens,
            (int)p->inner, &one, (const void *)(uintptr_t)p->weight, MGL_CUBLAS_BF16, (int)p->inner,
            (const void *)(uintptr_t)g->x, MGL_CUBLAS_BF16, (int)p->inner, &zero,
            (void *)(uintptr_t)g->y, p->head ? MGL_CUBLAS_F32 : MGL_CUBLAS_BF16, (int)p->outer,
            MGL_CUBLAS_COMPUTE_F32, MGL_CUBLAS_ANY_ALGORITHM);
    }
    return mgl_cublas_check(result, "a matrix product", err);
}

/* Once as they are, in which cuBLAS loads what it needs; then captured as a graph. */
static mgl_status capture(struct prefill *s, int length, mgl_error *err)
{
    const mgl_cu *cu = s->device.cu;
    void **graph = &s->gemms.graphs[CAPTURED][length];
    int tokens = s->lengths[length];
    mgl_status status = multiply(&s->gemms, tokens, err);
    if (!status)
        status = mgl_bench_wait(&s->device, err);
    if (!status)
        status = mgl_cu_check(cu, cu->capture_begin(s->device.stream, MGL_CU_CAPTURE_RELAXED),
                              "capturing the products", err);
    if (status)
        return status;
    status = multiply(&s->gemms, tokens, err);
    int result = cu->capture_end(s->device.stream, graph);
    if (!status)
        status = mgl_cu_check(cu, result, "capturing the products", err);
    return status ? status
                  : mgl_cu_check(
                        cu, cu->graph_instantiate(&s->gemms.graphs[EXECUTABLE][length], *graph, 0),
                        "making the products' graph", err);
}

static mgl_status open_gemms(struct prefill *s, mgl_error *err)
{
    mgl_status status = allocate(s, err);
    if (!status)
        status = open_cublas(s, err);
    for (int i = 0; i < s->count && !status; i++)
        status = capture(s, i, err);
    return status;
}

static mgl_status run_gemms(const struct prefill *s, int length, double *seconds, mgl_error *err)
{
    const mgl_cu *cu = s->device.cu;
    mgl_status status = mgl_bench_start_clock(&s->device, err);
    if (!status)
        status = mgl_cu_check(
            cu, cu->graph_launch(s->gemms.graphs[EXECUTABLE][length], s->device.stream),
            "launching the products", err);
    return status ? status : mgl_bench_stop_clock(&s->device, seconds, err);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void close_gemms(struct prefill *s)
{
    const mgl_cu *cu = s->device.cu;
    for (int i = 0; i < s->count; i++) {
        if (s->gemms.graphs[EXECUTABLE][i])
            cu->graph_release(s->gemms.graphs[EXECUTABLE][i]);
        if (s->gemms.graphs[CAPTURED][i])
            cu->graph_destroy(s->gemms.graphs[CAPTURED][i]);
    }
    if (s->gemms.handle)
        s->gemms.cublas->destroy(s->gemms.handle);
    mgl_bench_release(&s->device, s->gemms.arena);
    mgl_free(s->gemms.products);
}

static void close_prefill(struct prefill *s)
{
    close_gemms(s);
    mgl_vm_close(s->vm);
    mgl_bench_device_close(&s->device);
    mgl_program_free(s->program);
    mgl_graph_free(s->graph);
    mgl_free(s->prompt);
}

/* One of each in turn, the first of them to warm up. */
static mgl_status measure_length(struct prefill *s, int length, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int i = -1; i < s->samples && !status; i++) {
        int sample = i < 0 ? 0 : i;
        status = run_machine(s, s->lengths[length], &s->ours[length][sample], err);
        if (!status)
            status = run_gemms(s, length, &s->theirs[length][sample], err);
    }
    return status;
}

static mgl_status measure(struct prefill *s, mgl_error *err)
{
    mgl_status status = open_machine(s, err);
    if (!status)
        status = open_gemms(s, err);
    for (int i = 0; i < s->count && !status; i++)
        status = measure_length(s, i, err);
    return status;
}

/* The first length from which on the products take less time, by the medians; -1: there is none. */
static int find_crossover(const struct prefill *s)
{
    size_t samples = (size_t)s->samples;
    int first = s->count;
    while (first > 0 &&
           mgl_median(s->theirs[first - 1], samples) < mgl_median(s->ours[first - 1], samples))
        first--;
    return first < s->count ? first : -1;
}

static void print_point(const struct prefill *s, int length)
{
    size_t samples = (size_t)s->samples;
    const double *ours = s->ours[length], *theirs = s->theirs[length];
    printf("%s\n  {\"tokens\":%d,\"ours_ms\":%.3f,\"ours_ms_p10\":%.3f,\"ours_ms_p90\":%.3f,"
           "\"gemm_ms\":%.3f,\"gemm_ms_p10\":%.3f,\"gemm_ms_p90\":%.3f}",
           length ? "," : "", s->lengths[length], 1e3 * mgl_median(ours, samples),
           1e3 * mgl_quantile(ours, samples, 0.1), 1e3 * mgl_quantile(ours, samples, 0.9),
           1e3 * mgl_median(theirs, samples), 1e3 * mgl_quantile(theirs, samples, 0.1),
           1e3 * mgl_quantile(theirs, samples, 0.9));
}

static void print(const struct prefill *s)
{
    int crossover = find_crossover(s);
    printf("{\"schema\":\"megalith.prefill/1\",\"device\":\"%s\",\"shape\":\"%s\",\"rows\":%d,"
           "\"cublas_version\":%d,\"samples\":%d,\"points\":[",
           s->device.name, s->shape, (int)s->program->limits.rows, s->gemms.version, s->samples);
    for (int i = 0; i < s->count; i++)
        print_point(s, i);
    if (crossover < 0)
        printf("\n],\"crossover_tokens\":null}\n");
    else
        printf("\n],\"crossover_tokens\":%d}\n", s->lengths[crossover]);
}

/* A length, which is more than those before. */
static bool add_length(struct prefill *s, const char *text)
{
    int length = atoi(text);
    if (s->count == MOST_LENGTHS || length > LONGEST || length <= (s->count ? longest(s) : 0))
        return false;
    s->lengths[s->count++] = length;
    return true;
}

static bool parse(int argc, char **argv, struct prefill *s)
{
    static const int lengths[] = {1, 16, 64, 256, 1024};
    s->samples = 7;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--samples") && (s->samples = atoi(value)) > 0 &&
            s->samples <= MGL_MAX_SAMPLES)
            i++;
        else if (!strcmp(argv[i], "--config") && (s->knobs = value)[0])
            i++;
        else if (argv[i][0] != '-' && !s->shape)
            s->shape = argv[i];
        else if (!s->shape || !add_length(s, argv[i]))
            return fprintf(stderr, "bench_prefill: what is %s?\n", argv[i]), false;
    }
    if (s->count == 0) {
        s->count = (int)(sizeof lengths / sizeof *lengths);
        memcpy(s->lengths, lengths, sizeof lengths);
    }
    return s->shape || (fprintf(stderr, "bench_prefill SHAPE [flags] [LENGTH...]\n"), false);
}

int main(int argc, char **argv)
{
    static struct prefill s;
    mgl_error err = {0};
    if (!parse(argc, argv, &s))
        return MGL_USAGE;
    mgl_status status = measure(&s, &err);
    if (status)
        fprintf(stderr, "bench_prefill: %s%s%s\n", err.where, err.where[0] ? ": " : "",
                err.message);
    else
        print(&s);
    close_prefill(&s);
    return (int)status;
}

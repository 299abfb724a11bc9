/*
 * Emulates what `bench` calls besides the machine: launches of kernels with independent blocks,
 * which run one after another, graphs, and the one cuBLAS function in use. Every call is complete
 * when it returns. During stream capture, calls are only recorded.
 */
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "emulator.h"
#include "eval/cublas.h"
#include "vm/cuda/driver.h"

enum { WARP = 32, MOST_ARGUMENT = 256, INVALID = 1, LAUNCH_FAILED = 719 };

/* One recorded call: a kernel or a product. */
struct call {
    const emu_plain_kernel *kernel; /* NULL: a product */
    unsigned blocks[3], threads;
    _Alignas(16) unsigned char argument[MOST_ARGUMENT];
    int m, n, k, type; /* y (n, m) = b (n, k) a (m, k)^T */
    const uint16_t *a, *b;
    void *y;
};

struct graph {
    struct call *calls; /* (count) */
    size_t count;
};
static struct graph *captured; /* the graph being captured */

/* ---- launches -------------------------------------------------------------------------------- */

static void describe_block(const unsigned char *shared, char *to, size_t length)
{
    (void)shared;
    if (length)
        *to = 0;
}

static void describe_warp(int warp, char *to, size_t length)
{
    (void)warp;
    if (length)
        *to = 0;
}

static int run_kernel(const struct call *call)
{
    const unsigned threads = (call->threads + WARP - 1) / WARP * WARP;
    const emu_kernel kernel = {.run = call->kernel->run,
                               .describe_block = describe_block,
                               .describe_warp = describe_warp,
                               .threads = threads};
    emu_grid *grid = call->kernel->grid;
    *grid = (emu_grid){.threads = call->threads};
    memcpy(grid->blocks, call->blocks, sizeof grid->blocks);
    for (unsigned i = 0; i < call->blocks[0] * call->blocks[1] * call->blocks[2]; i++) {
        grid->block[0] = i % call->blocks[0];
        grid->block[1] = i / call->blocks[0] % call->blocks[1];
        grid->block[2] = i / call->blocks[0] / call->blocks[1];
        if (!emu_launch(&kernel, call->argument, 1, threads, 0))
            return LAUNCH_FAILED;
    }
    return 0;
}

/* ---- products -------------------------------------------------------------------------------- */

static void run_product(const struct call *call)
{
    for (size_t i = 0; i < (size_t)call->n * (size_t)call->m; i++) {
        const uint16_t *row = call->b + i / (size_t)call->m * (size_t)call->k;
        const uint16_t *column = call->a + i % (size_t)call->m * (size_t)call->k;
        float sum = 0;
        for (int k = 0; k < call->k; k++)
            sum += mgl_bf16_to_f32(row[k]) * mgl_bf16_to_f32(column[k]);
        if (call->type == MGL_CUBLAS_F32)
            ((float *)call->y)[i] = sum;
        else
            ((uint16_t *)call->y)[i] = mgl_f32_to_bf16(sum);
    }
}

static int run_call(const struct call *call)
{
    if (call->kernel)
        return run_kernel(call);
    run_product(call);
    return 0;
}

/* Executes or records the call. */
static int take(const struct call *call)
{
    if (!captured)
        return run_call(call);
    struct call *calls = realloc(captured->calls, (captured->count + 1) * sizeof *calls);
    if (!calls)
        return MGL_CU_OUT_OF_MEMORY;
    captured->calls = calls;
    calls[captured->count++] = *call;
    return 0;
}

static int launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  void *stream, void **arguments, void **extra)
{
    struct call call = {.kernel = function, .blocks = {grid_x, grid_y, grid_z}, .threads = block_x};
    (void)stream, (void)extra;
    if (block_y * block_z != 1 || shared_bytes || call.kernel->argument_bytes > MOST_ARGUMENT)
        return INVALID;
    memcpy(call.argument, arguments[0], call.kernel->argument_bytes);
    return take(&call);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static int capture_begin(void *stream, int mode)
{
    (void)stream, (void)mode;
    captured = calloc(1, sizeof *captured);
    return captured ? 0 : MGL_CU_OUT_OF_MEMORY;
}

static int capture_end(void *stream, void **graph)
{
    (void)stream;
    *graph = captured;
    captured = NULL;
    return 0;
}

static int graph_instantiate(void **executable, void *graph, unsigned long long flags)
{
    (void)flags;
    *executable = graph;
    return 0;
}

static int graph_launch(void *executable, void *stream)
{
    const struct graph *graph = executable;
    int result = 0;
    (void)stream;
    for (size_t i = 0; i < graph->count && !result; i++)
        result = run_call(&graph->calls[i]);
    return result;
}

static int graph_release(void *executable)
{
    (void)executable; /* the graph itself, which graph_destroy releases */
    return 0;
}

static int graph_destroy(void *which)
{
    struct graph *graph = which;
    free(graph->calls);
    free(graph);
    return 0;
}

void emu_fill_plain(mgl_cu *table)
{
    table->launch = launch;
    table->capture_begin = capture_begin;
    table->capture_end = capture_end;
    table->graph_instantiate = graph_instantiate;
    table->graph_launch = graph_launch;
    table->graph_release = graph_release;
    table->graph_destroy = graph_destroy;
}

/* ---- cuBLAS ---------------------------------------------------------------------------------- */

static int create(void **handle)
{
    *handle = &captured;
    return 0;
}

static int destroy(void *handle)
{
    (void)handle;
    return 0;
}

static int version(void *handle, int *number)
{
    (void)handle;
    *number = 0;
    return 0;
}

static int set_stream(void *handle, void *stream)
{
    (void)handle, (void)stream;
    return 0;
}

static int set_workspace(void *handle, void *workspace, size_t bytes)
{
    (void)handle, (void)workspace, (void)bytes;
    return 0;
}

/* Supports only the call of eval/baseline.c: bf16, dense, a transposed, c = a b. */
static int gemm(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type,
                int ldb, const void *beta, void *c, int c_type, int ldc, int compute_type,
                int algorithm)
{
    struct call call = {.m = m, .n = n, .k = k, .type = c_type, .a = a, .b = b, .y = c};
    (void)handle, (void)compute_type, (void)algorithm;
    if (transpose_a != MGL_CUBLAS_TRANSPOSED || transpose_b != MGL_CUBLAS_PLAIN || lda != k ||
        ldb != k || ldc != m || a_type != MGL_CUBLAS_BF16 || b_type != MGL_CUBLAS_BF16 ||
        *(const float *)alpha != 1 || *(const float *)beta != 0)
        return INVALID;
    return take(&call);
}

void emu_fill_cublas(mgl_cublas *table)
{
    *table = (mgl_cublas){.create = create,
                          .destroy = destroy,
                          .version = version,
                          .set_stream = set_stream,
                          .set_workspace = set_workspace,
                          .gemm = gemm};
}

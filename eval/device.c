/* Implements device.h: compiles and loads the benchmark's kernels, allocates memory, launches,
 * times with events, and fills buffers with synthetic values. */
#include "eval/device.h"

#include <stdio.h>

#include "base/memory.h"
#include "eval/sources.h"
#include "vm/vm.h"

enum { SPREAD_THREADS = 256, SPREAD_BLOCKS = 32 /* maximum per multiprocessor */ };

static mgl_status check(const mgl_bench_device *device, int result, const char *what,
                        mgl_error *err)
{
    return mgl_cu_check(device->cu, result, what, err);
}

/* ---- opening -------------------------------------------------------------------------------- */

mgl_status mgl_bench_compile(const mgl_geometry *geometry, const char *arch,
                             const atomic_int *abort, mgl_cuda_image *out, mgl_error *err)
{
    mgl_cuda_watch watch = {.abort = abort};
    mgl_cuda_constant constants[] = {{"HEAD_DIM", (uint32_t)geometry->head_dim},
                                     {"GROUP", (uint32_t)(geometry->heads / geometry->kv_heads)}};
    return mgl_cuda_compile_sources(mgl_bench_sources, mgl_bench_source_count, arch, constants, 2,
                                    &watch, out, err);
}

static mgl_status load_kernels(mgl_bench_device *d, const mgl_cuda_image *image, mgl_error *err)
{
    static const char *const names[] = {
#define MGL_X(id, name, block) #name,
        MGL_BENCH_KERNELS(MGL_X)
#undef MGL_X
    };
    int result = d->cu->module_load(&d->module, image->bytes, 0, NULL, NULL);
    if (result)
        d->module = NULL;
    mgl_status status = check(d, result, "loading the benchmark's kernels", err);
    for (int i = 0; i < MGL_BENCH_KERNEL_COUNT && !status; i++)
        status = check(d, d->cu->module_function(&d->functions[i], d->module, names[i]),
                       "finding a kernel of the benchmark", err);
    return status;
}

static mgl_status open_context(mgl_bench_device *d, mgl_error *err)
{
    const mgl_cu *cu = d->cu;
    void *context = NULL;
    mgl_cu_begin(); /* ended by mgl_bench_device_leave or mgl_bench_device_close */
    mgl_status status =
        check(d, cu->context_retain(&context, d->device), "opening the device's context", err);
    if (!status && cu->context_push(context)) {
        cu->context_release(d->device);
        status = mgl_fail(err, MGL_DEVICE, d->name, "the device's context cannot be entered");
    }
    if (status) {
        mgl_cu_end();
        return status;
    }
    d->context = context;
    status =
        check(d, cu->stream_create(&d->stream, MGL_CU_STREAM_NON_BLOCKING), "making a stream", err);
    for (int i = 0; i < 2 && !status; i++)
        status =
            check(d, cu->event_create(&d->events[i], MGL_CU_EVENT_DEFAULT), "making an event", err);
    return status;
}

mgl_status mgl_bench_device_open(int ordinal, const mgl_geometry *geometry, const atomic_int *abort,
                                 mgl_bench_device *out, mgl_error *err)
{
    mgl_cuda_image image = {0};
    mgl_status status = mgl_cuda_live_target(ordinal, &out->target, err);
    if (!status)
        status = mgl_cu_open(&out->cu, err);
    if (!status)
        status = check(out, out->cu->device_get(&out->device, ordinal), "finding the device", err);
    if (!status)
        status = mgl_bench_compile(geometry, out->target.arch, abort, &image, err);
    if (status)
        return status;
    out->cu->device_name(out->name, (int)sizeof out->name, out->device);
    status = open_context(out, err);
    if (!status)
        status = load_kernels(out, &image, err);
    mgl_cuda_image_clear(&image);
    return status;
}

void mgl_bench_device_leave(const mgl_bench_device *d)
{
    void *context;
    d->cu->context_pop(&context);
    mgl_cu_end();
}

mgl_status mgl_bench_device_enter(const mgl_bench_device *d, mgl_error *err)
{
    mgl_cu_begin();
    mgl_status status =
        check(d, d->cu->context_push(d->context), "entering the device's context", err);
    if (status)
        mgl_cu_end();
    return status;
}

void mgl_bench_device_close(mgl_bench_device *d)
{
    const mgl_cu *cu = d->cu;
    void *context;
    if (!d->context)
        return;
    for (int i = 0; i < 2; i++)
        if (d->events[i])
            cu->event_destroy(d->events[i]);
    if (d->stream)
        cu->stream_destroy(d->stream);
    if (d->module)
        cu->module_unload(d->module);
    cu->context_pop(&context);
    cu->context_release(d->device);
    mgl_cu_end();
    *d = (mgl_bench_device){0};
}

/* ---- memory --------------------------------------------------------------------------------- */

mgl_status mgl_bench_allocate(const mgl_bench_device *d, size_t bytes, const char *what,
                              mgl_address *out, mgl_error *err)
{
    size_t free_bytes = 0, total = 0;
    mgl_cu_address address = 0;
    mgl_status status =
        check(d, d->cu->memory_info(&free_bytes, &total), "asking for free memory", err);
    if (status)
        return status;
    int result = bytes > free_bytes ? MGL_CU_OUT_OF_MEMORY : d->cu->memory_alloc(&address, bytes);
    if (result == MGL_CU_OUT_OF_MEMORY)
        return mgl_fail(err, MGL_DEVICE, d->name,
                        "too little device memory for %s: %zu bytes are needed and %zu are free; "
                        "take fewer --layers, or a smaller --context, --capacity or --prompt",
                        what, bytes, free_bytes);
    *out = address;
    return check(d, result, "allocating device memory", err);
}

void mgl_bench_release(const mgl_bench_device *d, mgl_address address)
{
    if (address)
        d->cu->memory_free(address);
}

mgl_status mgl_bench_wait(const mgl_bench_device *d, mgl_error *err)
{
    return check(d, d->cu->stream_synchronize(d->stream), "running the benchmark's kernels", err);
}

mgl_status mgl_bench_copy_in(const mgl_bench_device *d, mgl_address to, const void *from,
                             size_t bytes, mgl_error *err)
{
    mgl_status status = mgl_bench_wait(d, err);
    if (!status)
        status = check(d, d->cu->copy_in(to, from, bytes), "copying to the device", err);
    /* a copy from pageable memory may return before it is complete */
    return status ? status
                  : check(d, d->cu->stream_synchronize(NULL), "copying to the device", err);
}

mgl_status mgl_bench_copy_out(const mgl_bench_device *d, void *to, mgl_address from, size_t bytes,
                              mgl_error *err)
{
    mgl_status status = mgl_bench_wait(d, err);
    return status ? status
                  : check(d, d->cu->copy_out(to, from, bytes), "copying from the device", err);
}

/* ---- launches ------------------------------------------------------------------------------- */

mgl_status mgl_bench_launch(const mgl_bench_device *d, mgl_bench_kernel kernel, mgl_bench_grid grid,
                            void *block, mgl_error *err)
{
    void *arguments[] = {block};
    return check(d,
                 d->cu->launch(d->functions[kernel], grid.x, grid.y ? grid.y : 1,
                               grid.z ? grid.z : 1, grid.threads, 1, 1, 0, d->stream, arguments,
                               NULL),
                 "launching a kernel of the benchmark", err);
}

mgl_bench_grid mgl_bench_spread(const mgl_bench_device *d, long long count)
{
    long long blocks = (count + SPREAD_THREADS - 1) / SPREAD_THREADS;
    long long most = (long long)d->target.queues * SPREAD_BLOCKS;
    return (mgl_bench_grid){.x = (unsigned)(blocks < most ? blocks : most),
                            .threads = SPREAD_THREADS};
}

mgl_status mgl_bench_start_clock(const mgl_bench_device *d, mgl_error *err)
{
    return check(d, d->cu->event_record(d->events[0], d->stream), "timing the device", err);
}

mgl_status mgl_bench_stop_clock(const mgl_bench_device *d, double *seconds, mgl_error *err)
{
    float milliseconds = 0;
    int result = d->cu->event_record(d->events[1], d->stream);
    if (!result)
        result = d->cu->event_synchronize(d->events[1]);
    if (!result)
        result = d->cu->event_elapsed(&milliseconds, d->events[0], d->events[1]);
    *seconds = (double)milliseconds * 1e-3;
    return check(d, result, "timing the device", err);
}

/* ---- contents ------------------------------------------------------------------------------- */

mgl_status mgl_bench_fill_rows(const mgl_bench_device *d, mgl_address to,
                               const mgl_synthetic_rule *rule, long long count, bool wide,
                               mgl_error *err)
{
    mgl_block_fill_rows block = {.to = to, .rule = *rule, .count = count, .wide = wide};
    return mgl_bench_launch(d, MGL_KERNEL_FILL_ROWS, mgl_bench_spread(d, count), &block, err);
}

mgl_status mgl_bench_fill_factors(const mgl_bench_device *d, mgl_address to,
                                  const mgl_synthetic_rule *rule, long long rows, mgl_error *err)
{
    mgl_block_fill_rows block = {.to = to, .rule = *rule, .count = rows, .factors = 1};
    return mgl_bench_launch(d, MGL_KERNEL_FILL_ROWS, mgl_bench_spread(d, rows), &block, err);
}

mgl_status mgl_bench_fill_cache(const mgl_bench_device *d, mgl_address to, const mgl_graph *graph,
                                int layer, bool value, mgl_dtype dtype, bool swizzled,
                                int sequences, int capacity, int positions, mgl_error *err)
{
    const mgl_geometry *m = &graph->geometry;
    mgl_block_fill_cache block = {.to = to,
                                  .rule = mgl_synthetic_cache_rule(graph, layer, value, positions),
                                  .sequences = sequences,
                                  .kv_heads = m->kv_heads,
                                  .capacity = capacity,
                                  .positions = positions,
                                  .value = value,
                                  .swizzled = swizzled};
    block.rule.half = dtype == MGL_F16;
    long long count = (long long)sequences * m->kv_heads * positions * m->head_dim;
    if (count == 0)
        return MGL_OK;
    return mgl_bench_launch(d, MGL_KERNEL_FILL_CACHE, mgl_bench_spread(d, count), &block, err);
}

mgl_status mgl_bench_make_rope(const mgl_bench_device *d, const mgl_graph *graph, int positions,
                               mgl_address *out, mgl_error *err)
{
    mgl_buffer buffer = {.space = MGL_SPACE_CONST,
                         .dtype = MGL_F32,
                         .rank = 2,
                         .extents = {{MGL_FIXED, positions}, {MGL_FIXED, graph->geometry.head_dim}},
                         .source = MGL_SOURCE_ROPE,
                         .tensor = -1,
                         .sets = 1};
    mgl_program program = {.geometry = graph->geometry, .buffers = &buffer, .buffer_count = 1};
    size_t bytes = mgl_buffer_bytes(&buffer);
    void *table = mgl_alloc(bytes);
    mgl_status status = table ? MGL_OK : mgl_fail_memory(err, bytes);
    if (!status)
        status = mgl_pack_const(&program, graph, 0, table, err);
    if (!status)
        status = mgl_bench_allocate(d, bytes, "the rope table", out, err);
    if (!status)
        status = mgl_bench_copy_in(d, *out, table, bytes, err);
    mgl_free(table);
    return status;
}

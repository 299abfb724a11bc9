/* Implements stream.h: fills the buffer with synthetic weights and times the read kernel. */
#include "eval/stream.h"

enum { CHUNK = 16, THREADS = 1024, BLOCKS = 2 /* per multiprocessor */ };

mgl_status mgl_stream_open(const mgl_bench_device *d, const mgl_graph *graph, double bytes,
                           mgl_stream *out, mgl_error *err)
{
    mgl_synthetic_rule rule = mgl_synthetic_tensor_rule(graph, 0);
    out->bytes = (size_t)bytes / CHUNK * CHUNK;
    mgl_status status = mgl_bench_allocate(d, out->bytes, "the stream", &out->buffer, err);
    if (!status)
        status = mgl_bench_allocate(d, sizeof(uint32_t), "the stream", &out->sum, err);
    if (!status)
        status =
            mgl_bench_fill_rows(d, out->buffer, &rule, (long long)(out->bytes / 2), false, err);
    return status ? status : mgl_bench_wait(d, err);
}

void mgl_stream_close(const mgl_bench_device *d, mgl_stream *stream)
{
    mgl_bench_release(d, stream->buffer);
    mgl_bench_release(d, stream->sum);
    *stream = (mgl_stream){0};
}

mgl_status mgl_stream_run(const mgl_bench_device *d, const mgl_stream *stream, double *seconds,
                          mgl_error *err)
{
    mgl_block_stream block = {
        .from = stream->buffer, .sum = stream->sum, .chunks = (unsigned)(stream->bytes / CHUNK)};
    mgl_bench_grid grid = {.x = (unsigned)(BLOCKS * d->target.queues), .threads = THREADS};
    mgl_status status = mgl_bench_start_clock(d, err);
    if (!status)
        status = mgl_bench_launch(d, MGL_KERNEL_STREAM, grid, &block, err);
    return status ? status : mgl_bench_stop_clock(d, seconds, err);
}

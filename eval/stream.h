/* Peak read bandwidth of device memory: times a kernel that only reads bytes (cuda/stream.cuh). The
 * benchmarks compare against it. */
#ifndef MGL_EVAL_STREAM_H
#define MGL_EVAL_STREAM_H

#include "eval/device.h"

/* Zero-initialize it; release with mgl_stream_close, also after an error. */
typedef struct mgl_stream {
    mgl_address buffer, sum;
    size_t bytes;
} mgl_stream;

/* Opens a buffer of `bytes`, rounded down to a multiple of 16. It is filled with weights of a
 * synthetic graph, because bandwidth may depend on the bit patterns. */
mgl_status mgl_stream_open(const mgl_bench_device *device, const mgl_graph *graph, double bytes,
                           mgl_stream *out, mgl_error *err);
void mgl_stream_close(const mgl_bench_device *device, mgl_stream *stream);

/* Reads the buffer once; *seconds: time between device events. */
mgl_status mgl_stream_run(const mgl_bench_device *device, const mgl_stream *stream, double *seconds,
                          mgl_error *err);

#endif

/* What the device's memory gives at most: bytes read that nothing is done with (cuda/stream.cuh).
 */
#ifndef MGL_EVAL_STREAM_H
#define MGL_EVAL_STREAM_H

#include "eval/device.h"

/* Zero-initialise; release with mgl_stream_close, after a failure too. */
typedef struct mgl_stream {
    mgl_address buffer, sum;
    size_t bytes;
} mgl_stream;

/* A buffer of `bytes`, to the multiple of 16 below, filled with weights of a synthetic graph, since
 * what bits look like may matter to the memory. */
mgl_status mgl_stream_open(const mgl_bench_device *device, const mgl_graph *graph, double bytes,
                           mgl_stream *out, mgl_error *err);
void mgl_stream_close(const mgl_bench_device *device, mgl_stream *stream);

/* Reads it once: *seconds between the device's events. */
mgl_status mgl_stream_run(const mgl_bench_device *device, const mgl_stream *stream, double *seconds,
                          mgl_error *err);

#endif

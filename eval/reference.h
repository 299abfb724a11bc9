/* The f32 reference on the device: decodes the same inputs in plain f32 (cuda/reference.cuh), to
 * check the tokens and logits of a launch. bench.c and paired_bench_cuda.c call it. */
#ifndef MGL_EVAL_REFERENCE_H
#define MGL_EVAL_REFERENCE_H

#include "eval/baseline.h"
#include "eval/paired_bench.h"

/* Teacher-forced decoding. `made` (sequences, tokens) are tokens made elsewhere; each is the input
 * of the next step. The reference's own choices go to `chosen` (sequences, tokens), and the logits
 * (vocab) of the last sequence's last step to `logits`. */
mgl_status mgl_reference_run(const mgl_bench_device *device, const mgl_bench_case *of,
                             const int32_t *made, int32_t *chosen, float *logits, mgl_error *err);

/* Teacher-forced decoding with the outputs that a paired benchmark needs: eval/paired_bench.h. */
mgl_status mgl_reference_look(const mgl_bench_device *device, const mgl_bench_case *of,
                              const int32_t *made, const mgl_paired_bench_reference *out,
                              mgl_error *err);

/* |a - b| / |b| over `count` values; infinity if any value is NaN. */
double mgl_reference_distance(const float *a, const float *b, size_t count);

#endif

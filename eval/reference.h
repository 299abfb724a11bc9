/* The f32 reference on the device: what the tokens of a launch should have been. See
 * cuda/reference.cuh. */
#ifndef MGL_EVAL_REFERENCE_H
#define MGL_EVAL_REFERENCE_H

#include "eval/baseline.h"
#include "eval/paired_bench.h"

/* Decodes teacher-forced: `made` (sequences, tokens) are the tokens that somebody made, each the
 * input of the step behind it. What the reference would have made of the same inputs goes to
 * `chosen` (sequences, tokens), the logits (vocab) of the last sequence's last step to `logits`. */
mgl_status mgl_reference_run(const mgl_bench_device *device, const mgl_bench_case *of,
                             const int32_t *made, int32_t *chosen, float *logits, mgl_error *err);

/* The same, for all that a duel asks of it: eval/paired_bench.h. */
mgl_status mgl_reference_look(const mgl_bench_device *device, const mgl_bench_case *of,
                              const int32_t *made, const mgl_paired_bench_reference *out,
                              mgl_error *err);

/* |a - b| / |b| over `count` values. Infinite where a value is not a number. */
double mgl_reference_distance(const float *a, const float *b, size_t count);

#endif

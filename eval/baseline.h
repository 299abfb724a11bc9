/*
 * The baseline: the decode step that a careful engineer builds from cuBLAS, one CUDA graph a token.
 * Fused qkv and gate/up products; residual add and norm in one kernel; rope and cache write in one,
 * with the norms of q and k; biases added by the kernel behind their product; split-KV attention;
 * argmax and the next step's input on the device, so that a reply is a row of graph launches
 * without the host.
 *
 * A prompt is one such step over all of its rows, with attention on tensor cores; its last row
 * alone goes through the head.
 *
 * Weights, cache and first tokens are those of the machine it is compared with.
 */
#ifndef MGL_EVAL_BASELINE_H
#define MGL_EVAL_BASELINE_H

#include "eval/cublas.h"
#include "eval/device.h"

/* What a launch works on: shared by machine, baseline and reference. */
typedef struct mgl_bench_case {
    const mgl_graph *graph; /* synthetic */
    mgl_address rope;       /* f32 (capacity, head_dim) */
    int sequences, context; /* positions of each that are in the cache */
    int tokens;             /* that each makes */
    int capacity;
    const int32_t *first; /* (sequences): their tokens at `context` */
    bool prompt; /* `first` is (tokens), a prompt of one sequence from `context` on: the baseline
                    reads all of it, and makes the token behind it */
} mgl_bench_case;

typedef struct mgl_baseline mgl_baseline;

/* Allocates, makes the weights, and captures the step. Both arguments must outlive it. Fails with
 * MGL_BAD_INPUT for shapes that its kernels do not know, MGL_DEVICE without cuBLAS. Release with
 * mgl_baseline_close. */
mgl_status mgl_baseline_open(const mgl_bench_device *device, const mgl_bench_case *of,
                             mgl_baseline **out, mgl_error *err);
void mgl_baseline_close(mgl_baseline *baseline); /* NULL is fine */

/* Makes the tokens: *seconds between the device's events around them. `forced` (sequences, tokens),
 * or NULL, are the next inputs whatever is chosen. What was chosen goes to `output` (sequences,
 * tokens). Of a prompt: one token, and nothing is forced. */
mgl_status mgl_baseline_run(mgl_baseline *baseline, const int32_t *forced, int32_t *output,
                            double *seconds, mgl_error *err);

/* Logits (vocab) of a sequence's last step. */
mgl_status mgl_baseline_get_logits(mgl_baseline *baseline, int sequence, float *logits,
                                   mgl_error *err);
int mgl_baseline_cublas_version(const mgl_baseline *baseline);

/* Whether the kernels know models of this geometry: MGL_BAD_INPUT where not. */
mgl_status mgl_baseline_check(const mgl_geometry *geometry, mgl_error *err);

/* Splits of the attention for sequences of `length` positions: enough blocks to fill the device,
 * none with less than 256 positions. */
int mgl_baseline_choose_splits(int length, int sequences, int kv_heads, int multiprocessors);

#endif

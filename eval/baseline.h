/*
 * Baseline of the benchmark: a decode step built from cuBLAS, as a careful engineer would write it,
 * with one CUDA graph per token. qkv and gate/up are fused products. Residual add and norm are one
 * kernel; rope, cache write and q/k norms are another. Biases are added by the kernel after their
 * product. Attention is split-KV (flash decoding). Argmax and the next input are computed on the
 * device, so a reply is a series of graph launches without host work.
 *
 * A prompt is one step over all of its rows, with attention on tensor cores; only the last row goes
 * through the head. Weights, cache and first tokens are those of the compared machine. bench.c and
 * paired_bench_cuda.c use it.
 */
#ifndef MGL_EVAL_BASELINE_H
#define MGL_EVAL_BASELINE_H

#include "eval/cublas.h"
#include "eval/device.h"

/* Workload of a run, shared by machine, baseline and reference. */
typedef struct mgl_bench_case {
    const mgl_graph *graph; /* synthetic */
    mgl_address rope;       /* f32 (capacity, head_dim) */
    int sequences, context; /* cache positions of each sequence before the run */
    int tokens;             /* new tokens per sequence */
    int capacity;
    const int32_t *first; /* (sequences) input tokens at position `context` */
    bool prompt; /* `first` is (tokens), a prompt of one sequence from `context` on: the baseline
                    reads all of it and makes one token */
} mgl_bench_case;

typedef struct mgl_baseline mgl_baseline;

/* Allocates memory, makes the weights, and captures the step. Both arguments must outlive the
 * baseline. MGL_BAD_INPUT: its kernels do not support the shape. MGL_DEVICE: no cuBLAS. Release
 * with mgl_baseline_close. */
mgl_status mgl_baseline_open(const mgl_bench_device *device, const mgl_bench_case *of,
                             mgl_baseline **out, mgl_error *err);
void mgl_baseline_close(mgl_baseline *baseline); /* NULL is allowed */

/* Makes the tokens; *seconds: time between device events. `forced` (sequences, tokens), or NULL,
 * are the next inputs regardless of the choice. Chosen tokens go to `output` (sequences, tokens). A
 * prompt makes one token, and nothing is forced. */
mgl_status mgl_baseline_run(mgl_baseline *baseline, const int32_t *forced, int32_t *output,
                            double *seconds, mgl_error *err);

/* Logits (vocab) of a sequence's last step. */
mgl_status mgl_baseline_get_logits(mgl_baseline *baseline, int sequence, float *logits,
                                   mgl_error *err);
int mgl_baseline_cublas_version(const mgl_baseline *baseline);

/* MGL_BAD_INPUT: the kernels do not support this geometry. */
mgl_status mgl_baseline_check(const mgl_geometry *geometry, mgl_error *err);

/* Attention splits for sequences of `length` positions: enough blocks to fill the device, at least
 * 256 positions per split. */
int mgl_baseline_choose_splits(int length, int sequences, int kv_heads, int multiprocessors);

#endif

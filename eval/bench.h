/*
 * Decode and prefill benchmark. It measures, in one process and in alternation, the time per token
 * of three workloads: the CUDA machine, the baseline (a CUDA graph of cuBLAS calls), and a
 * read-only stream of the same number of bytes. cli/ calls it for `bench`.
 *
 * Weights are random, of the model's shape, and made on the device. A case with context c starts
 * with c positions in the KV cache of every sequence. Each sequence then makes `tokens` tokens: in
 * one launch of the machine, or one graph launch per token of the baseline. A second machine, with
 * the same program compiled for another architecture, may take part.
 *
 * A prompt case is one sequence whose launch reads the prompt and makes one token. The machine
 * reads it in epochs of several rows, as `run` does; the baseline reads it in one step. Times are
 * per prompt, and the stream has the bytes of all epochs. Before timing, the results of machine and
 * baseline are compared with an f32 reference on the device, which is fed with the machine's
 * tokens. Every timed sample must make the same tokens again.
 */
#ifndef MGL_EVAL_BENCH_H
#define MGL_EVAL_BENCH_H

#include "eval/clocks.h"
#include "eval/synthetic.h"
#include "schedule/cost/cost.h"
#include "vm/cuda/kernel_digest.h"
#include "vm/pipeline/pipeline.h"
#include "vm/vm.h"

enum {
    MGL_BENCH_TOKENS = 32,
    MGL_BENCH_SAMPLES = 21,
    MGL_BENCH_WARM_UPS = 3,
    MGL_BENCH_PROMPT_WARM_UPS = 1 /* such launches take about a second */
};

/* Maximum relative L2 error of the logits; larger errors give no result. The baseline rounds every
 * activation to bf16 and has a larger limit. */
#define MGL_BENCH_ERROR          2e-2
#define MGL_BENCH_BASELINE_ERROR 5e-2

typedef struct mgl_bench_request {
    mgl_config config;                /* model configuration, with its weight formats */
    const char *device;               /* "cuda", "cuda:1"; NULL: "cuda" */
    const mgl_schedule_config *knobs; /* NULL: default configuration */
    const char
        *also;  /* architecture of the second machine ("compute_80": cp.async path), or NULL */
    bool tuned; /* use the tuned entry that `run` would choose; without one, nothing is measured.
                   Excludes knobs */
    mgl_dtype dtype;         /* activations, cache and unscaled weights: MGL_BF16 */
    int batch;               /* sequences; above 16 only if the knobs have `second_rows` */
    int context;             /* cache positions of each sequence before the run */
    int capacity;            /* cache capacity in positions; 0: mgl_bench_needed */
    int queues;              /* queues of the program; 0: all of the device */
    int tokens;              /* tokens per sequence and sample; a prompt case makes one token,
                                whatever this is */
    int prompt;              /* prompt tokens of the one sequence; 0: decoding */
    float temperature;       /* above 0: the machine is also timed with sampled tokens at this
                                temperature */
    float top_p;             /* top-p of these samples; 0: off */
    int samples;             /* samples of each workload, at most MGL_MAX_SAMPLES */
    uint64_t seed;           /* seed of the weights */
    const atomic_int *abort; /* set by any thread: MGL_INTERRUPTED at the next step; may be
                                NULL */
} mgl_bench_request;

/* Microseconds per token (of all sequences together) or per prompt, over the samples. */
typedef struct mgl_bench_times {
    double median, p10, p90;
} mgl_bench_times;

typedef struct mgl_bench_accuracy {
    double machine_error, baseline_error; /* relative L2 error of the last logits */
    int tokens;                           /* compared tokens */
    int machine_agrees,
        baseline_agrees; /* tokens equal to the reference's; tokens equal to the machine's */
    double also_error;   /* second machine, against the reference fed with its own tokens */
    int also_agrees;
} mgl_bench_accuracy;

typedef struct mgl_bench_result {
    int batch, context, prompt; /* as requested */
    mgl_geometry geometry;
    char device[128];
    char arch[16]; /* of the device */
    int driver_version, cublas_version;
    int queues;    /* queues of the program */
    int unsplit;   /* the program's limits.unsplit: positions up to which attention is not split */
    int positions; /* cache capacity */
    bool derived;  /* the capacity is the minimum for this case, because none was requested */
    mgl_weight_format layers, head; /* as requested */
    double weight_bytes, padding;   /* bytes of the weights with their scales; further bytes of the
                                       tapes */
    int rows;                       /* maximum rows of an epoch */
    int epochs;                     /* epochs in which the machine read the prompt; 0: decoding */
    mgl_bench_times machine, baseline, stream;
    mgl_bench_times also;  /* second machine; 0 without one */
    mgl_bench_times drawn; /* machine with a temperature; 0 without one */
    double drawn_ratio;    /* drawn / machine: median of the per-sample ratios */
    int drawn_agrees;      /* drawn tokens, of accuracy.tokens, that equal the greedy ones */
    mgl_cost predicted;    /* by the cost model, before measuring; us = 0: no costs of the device
                              are known */
    double bytes; /* bytes streamed per token: matrices once, the cache at its mean length; for a
                     prompt: bytes of all its epochs */
    double ratio_of_medians; /* baseline / machine */
    double ratio_median;     /* median of the per-sample ratios */
    mgl_bench_accuracy accuracy;
    mgl_vm_facts facts;             /* of the machine */
    mgl_clocks clocks;              /* clocks while samples were taken */
    double setup_s;                 /* seconds before the first sample */
    char tuned[MGL_TUNED_NAME + 1]; /* name of the tuned entry; "": none */
    char kernel[MGL_KERNEL_DIGEST]; /* kernel digest: vm/cuda/kernel_digest.h */
    char note[MGL_TUNED_NOTE];      /* rejected entries, as in mgl_tuned_report */
} mgl_bench_result;

/* Progress callback, called once for each step and before each sample, with a description and the
 * number of completed samples; may be NULL. */
typedef void mgl_bench_progress_fn(void *user, const char *what, int samples);

/* Maximum positions that a case fills: its context, its inputs, and one per new token. */
int64_t mgl_bench_needed(const mgl_bench_request *request);

/* How a launch reads a prompt after `context` positions, with at most `rows` rows per epoch;
 * computed as in schedule/step.h. */
typedef struct mgl_bench_cuts {
    int epochs;
    double positions; /* mean of the cache positions before each epoch */
} mgl_bench_cuts;
mgl_bench_cuts mgl_bench_cut_prompt(int rows, int context, int prompt);

/* Digest of the kernel that a request would be measured with, on a device of this name and target.
 * Needs no device. "" if the request needs a tuned entry that does not exist. */
mgl_status mgl_bench_find_kernel(const mgl_bench_request *request, const char *device,
                                 const mgl_target *target, char out[MGL_KERNEL_DIGEST],
                                 mgl_error *err);

/* Checks a request as far as possible without a device: MGL_BAD_INPUT or MGL_USAGE. */
mgl_status mgl_bench_check(const mgl_bench_request *request, mgl_error *err);

/* Runs one case. MGL_DEVICE: no device, no cuBLAS, or too little memory. MGL_GATE: the machine or
 * the baseline is wrong; *out is then empty. With `tuned` and no matching entry: MGL_OK, and
 * out->tuned is "". */
mgl_status mgl_bench_run(const mgl_bench_request *request, mgl_bench_progress_fn *progress,
                         void *user, mgl_bench_result *out, mgl_error *err);

/* MGL_GATE, with a message, if an error exceeds the limits above. */
mgl_status mgl_bench_gate(const mgl_bench_accuracy *accuracy, mgl_error *err);

/* Relative error of the predicted time against the measured one. */
static inline double mgl_bench_predicted_error(const mgl_bench_result *result)
{
    return result->predicted.us / result->machine.median - 1;
}

/* Tokens per second for a prompt that is read in `us` microseconds. */
static inline double mgl_bench_prompt_rate(const mgl_bench_result *result, double us)
{
    return result->prompt / us * 1e6;
}

/* GB/s for `bytes` in `us` microseconds. */
static inline double mgl_bench_rate(double bytes, double us)
{
    return bytes / us * 1e-3;
}

#endif

/*
 * The benchmark of decoding: time per token of the machine, of the baseline (a CUDA graph of cuBLAS
 * calls) and of the read-only stream of as many bytes, sample by sample in turn, in one process.
 *
 * Weights are random, of the model's shape, made on the device. A case with context c starts with c
 * positions in the KV cache of every sequence; then each makes `tokens` tokens, in one launch of
 * the machine, or one graph launch a token of the baseline. A second machine, of the same program
 * compiled for another architecture, may take its turn with them.
 *
 * A case of a prompt is one sequence whose launch reads that many tokens and makes one: the machine
 * as `run` does, so many rows an epoch, the baseline all of them in one step. Its times are of the
 * whole prompt, and its stream that of the bytes which all epochs read. Before anything is timed,
 * what both make is compared with an f32 reference on the device, fed with the machine's tokens;
 * every timed sample must make the same tokens again.
 */
#ifndef MGL_EVAL_BENCH_H
#define MGL_EVAL_BENCH_H

#include "api/pipeline.h"
#include "eval/clocks.h"
#include "eval/synthetic.h"
#include "schedule/cost/cost.h"
#include "vm/cuda/kernel_digest.h"
#include "vm/vm.h"

enum {
    MGL_BENCH_TOKENS = 32,
    MGL_BENCH_SAMPLES = 21,
    MGL_BENCH_WARM_UPS = 3,
    MGL_BENCH_PROMPT_WARM_UPS = 1 /* launches that last a second */
};

/* The relative L2 error of the logits beyond which there is no result. The baseline rounds every
 * activation to bf16, so it has more room. */
#define MGL_BENCH_ERROR          2e-2
#define MGL_BENCH_BASELINE_ERROR 5e-2

typedef struct mgl_bench_request {
    mgl_config config;                /* of the model */
    const char *device;               /* "cuda", "cuda:1"; NULL: "cuda" */
    const mgl_schedule_config *knobs; /* NULL: the defaults */
    const char
        *also;  /* architecture of the second machine: "compute_80" copies by cp.async; or NULL */
    bool tuned; /* with the tuned entry that `run` would take; nothing is measured where there is
                   none. Without knobs */
    mgl_dtype dtype;         /* of weights and cache: MGL_BF16 */
    int batch;               /* sequences; above 16 where the knobs have `many` */
    int context;             /* positions of each in the cache before */
    int capacity;            /* positions that the cache has room for; 0: mgl_bench_needed */
    int queues;              /* of the program; 0: as many as the device has */
    int tokens;              /* that each makes a sample; of a prompt: one, whatever stands here */
    int prompt;              /* tokens of the prompt that is read, of one sequence; 0: decoding */
    float temperature;       /* above 0: the machine is timed once more, drawing its tokens so */
    float top_p;             /* of those; 0: off */
    int samples;             /* of each, at most MGL_MAX_SAMPLES */
    uint64_t seed;           /* of the weights */
    const atomic_int *abort; /* set by anybody: MGL_INTERRUPTED at the next step; may be NULL */
} mgl_bench_request;

/* Microseconds a token (of all sequences together), or a prompt, over the samples. */
typedef struct mgl_bench_times {
    double median, p10, p90;
} mgl_bench_times;

typedef struct mgl_bench_accuracy {
    double machine_error, baseline_error; /* of the last logits, relative L2 */
    int tokens;                           /* that were compared */
    int machine_agrees,
        baseline_agrees; /* of these, the reference's choice; the machine's choice */
    double also_error;   /* of the second machine, against the reference fed with its own tokens */
    int also_agrees;
} mgl_bench_accuracy;

typedef struct mgl_bench_result {
    int batch, context, prompt; /* as asked for */
    mgl_geometry geometry;
    char device[128];
    char arch[16]; /* of the device */
    int driver_version, cublas_version;
    int queues;    /* of the program */
    int positions; /* capacity of its cache */
    bool derived;  /* these are what the case needs and no more: nobody asked for them */
    int rows;      /* of an epoch of it, at most */
    int epochs;    /* that the machine read the prompt in; 0: decoding */
    mgl_bench_times machine, baseline, stream;
    mgl_bench_times also;  /* of the second machine; 0 without one */
    mgl_bench_times drawn; /* of the machine with a temperature; 0 without one */
    double drawn_ratio;    /* drawn / machine: median of the samples' own ratios */
    int drawn_agrees;      /* of accuracy.tokens: those that are the greedy ones */
    mgl_cost predicted;    /* before it was measured; us = 0: the device has no costs */
    double bytes; /* that a token streams: matrices once, the cache at its mean length; of a prompt:
                     that its epochs stream, each as much */
    double ratio_of_medians; /* baseline / machine */
    double ratio_median;     /* median of the samples' own ratios */
    mgl_bench_accuracy accuracy;
    mgl_vm_facts facts;             /* of the machine */
    mgl_clocks clocks;              /* while the samples were taken */
    double setup_s;                 /* all before the first sample */
    char tuned[MGL_TUNED_NAME + 1]; /* the entry; "": none */
    char kernel[MGL_KERNEL_DIGEST]; /* its digest: vm/cuda/kernel_digest.h */
    char note[MGL_TUNED_NOTE];      /* entries that were left out, as in mgl_tuned_report */
} mgl_bench_result;

/* Called with what is being done, once for each step and behind each sample, and how many samples
 * are done; may be NULL. */
typedef void mgl_bench_progress_fn(void *user, const char *what, int samples);

/* Positions that a case fills at most: those before, those of its inputs, and a new token's each.
 */
int64_t mgl_bench_needed(const mgl_bench_request *request);

/* How a launch reads a prompt behind `context` positions, with so many rows an epoch: the cuts of
 * schedule/step.h. */
typedef struct mgl_bench_cuts {
    int epochs;
    double positions; /* in the cache before an epoch, the mean of all */
} mgl_bench_cuts;
mgl_bench_cuts mgl_bench_cut_prompt(int rows, int context, int prompt);

/* The digest of the kernel that a request would be measured with on a device of this name and
 * target. No device is needed. Of a request for a tuned entry that does not exist: "". */
mgl_status mgl_bench_find_kernel(const mgl_bench_request *request, const char *device,
                                 const mgl_target *target, char out[MGL_KERNEL_DIGEST],
                                 mgl_error *err);

/* Checks a request, as far as that needs no device: MGL_BAD_INPUT or MGL_USAGE. */
mgl_status mgl_bench_check(const mgl_bench_request *request, mgl_error *err);

/* Runs one case. MGL_DEVICE without a device, cuBLAS or enough memory; MGL_GATE when the machine or
 * the baseline is wrong: *out then holds nothing. With `tuned`, and no entry that fits: MGL_OK, and
 * out->tuned is "". */
mgl_status mgl_bench_run(const mgl_bench_request *request, mgl_bench_progress_fn *progress,
                         void *user, mgl_bench_result *out, mgl_error *err);

/* The gate: MGL_GATE in words for errors beyond the limits above. */
mgl_status mgl_bench_judge(const mgl_bench_accuracy *accuracy, mgl_error *err);

/* How far off the prediction is, relative to what was measured. */
static inline double mgl_bench_predicted_error(const mgl_bench_result *result)
{
    return result->predicted.us / result->machine.median - 1;
}

/* Tokens a second of a prompt that is read in `us` microseconds. */
static inline double mgl_bench_prompt_rate(const mgl_bench_result *result, double us)
{
    return result->prompt / us * 1e6;
}

/* GB/s of `bytes` in `us` microseconds. */
static inline double mgl_bench_rate(double bytes, double us)
{
    return bytes / us * 1e-3;
}

#endif

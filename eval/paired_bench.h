/*
 * Paired benchmark: runs two programs of one model, the incumbent and a candidate, alternately on
 * one device. Both stay resident and use the same synthetic weights. The timed workload is that of
 * `bench`: one launch that decodes `tokens` tokens of every sequence from `context` positions on.
 * Workers of autotune/ call it.
 *
 * It makes no decisions: tokens, logits and times go to the caller. Weights, first tokens and cache
 * derive from a seed that the candidate's proposer does not know. Any thread may use a paired
 * benchmark, but only one at a time.
 */
#ifndef MGL_EVAL_PAIRED_BENCH_H
#define MGL_EVAL_PAIRED_BENCH_H

#include "eval/clocks.h"
#include "eval/synthetic.h"
#include "vm/vm.h"

typedef struct mgl_paired_bench mgl_paired_bench;

/* Phrases of the MGL_GATE messages of mgl_paired_bench_run, by which autotune/runner distinguishes
 * the faults of a candidate. */
#define MGL_PAIRED_BENCH_NONFINITE "are NaN or infinite"
#define MGL_PAIRED_BENCH_TOO_FEW   "tokens in place of"

typedef enum mgl_side { MGL_INCUMBENT, MGL_CANDIDATE, MGL_SIDES } mgl_side;

typedef struct mgl_paired_bench_options {
    mgl_config config;       /* model configuration */
    const char *device;      /* "cuda", "cuda:1", or "cpu" (correctness only: its times are
                                meaningless) */
    bool plain;              /* CPU: plain C on one thread, the reference definition of the
                                ops */
    const atomic_int *abort; /* may be NULL */
} mgl_paired_bench_options;

/* Opens a paired benchmark. MGL_DEVICE: the device is missing. Release with
 * mgl_paired_bench_close. */
mgl_status mgl_paired_bench_open(const mgl_paired_bench_options *options, mgl_paired_bench **out,
                                 mgl_error *err);
void mgl_paired_bench_close(mgl_paired_bench *paired_bench); /* NULL is allowed */

/* What mgl_paired_bench_set did. */
typedef struct mgl_paired_bench_facts {
    bool exchanged;  /* the machine and its kernel were kept: mgl_vm_exchange */
    double check_s;  /* time of the validator */
    double kernel_s; /* compile time; 0 for an existing kernel */
    double total_s;  /* total time */
    mgl_vm_facts vm;
} mgl_paired_bench_facts;

/* Announces the seed and the context of the next load. A GPU machine that is set afterwards makes
 * these weights and cache when it opens, instead of making them twice. */
void mgl_paired_bench_expect(mgl_paired_bench *paired_bench, uint64_t seed, int context);
/* Sets the program of a side: validates it and opens a machine, or exchanges the program of the
 * existing machine if the kernel key is the same. Takes ownership of the program, which is released
 * when it is replaced, with the side, or at once on failure. All machines have the same model;
 * sequences and capacity may differ. The side is empty after MGL_REJECTED, MGL_BAD_INPUT (the
 * machine cannot run it) and MGL_DEVICE (too little memory; the message has both numbers). */
mgl_status mgl_paired_bench_set(mgl_paired_bench *paired_bench, mgl_side side, mgl_program *program,
                                mgl_paired_bench_facts *out, mgl_error *err);
/* Makes the candidate the incumbent; the candidate's side is then empty. The old incumbent's
 * machine keeps its memory: the next candidate may be exchanged into it, or mgl_paired_bench_drop
 * releases it. */
void mgl_paired_bench_promote(mgl_paired_bench *paired_bench);
/* Releases the program and the machine of a side. */
void mgl_paired_bench_drop(mgl_paired_bench *paired_bench, mgl_side side);

/* Workload of a launch. */
typedef struct mgl_paired_bench_load {
    int batch, context, tokens; /* sequences; cache positions before; new tokens per sequence */
    uint64_t seed;              /* seed of weights, cache and first tokens */
    mgl_synthetic_kind kind;    /* kind of the values in weights and cache */
    bool poison; /* first fill activations, outputs and the rest of the cache with signaling NaN
                    (even launches of a side) or 0xA5 (odd launches), and check the guards
                    afterwards: MGL_GATE names the place */
} mgl_paired_bench_load;

/* Runs one launch of a side, with penalties if its program has them. Makes weights and cache anew
 * if the seed or context changed. Tokens go to `tokens` (batch, load->tokens), which may be NULL.
 * *seconds: time between device events (on a CPU: of the run). MGL_USAGE: the side is empty.
 * MGL_BAD_INPUT: the load does not fit the program. MGL_GATE: NaN or infinite logits, too few
 * tokens, or a write outside all buffers. */
mgl_status mgl_paired_bench_run(mgl_paired_bench *paired_bench, mgl_side side,
                                const mgl_paired_bench_load *load, int32_t *tokens, double *seconds,
                                mgl_error *err);
/* Logits (batch, vocab) of the last step of the side's last run, which must have succeeded. */
mgl_status mgl_paired_bench_get_logits(mgl_paired_bench *paired_bench, mgl_side side, float *logits,
                                       mgl_error *err);

/* Copies what the side's last run left in memory: each activation, cache and io buffer (logits
 * included) of its program in order, as mgl_vm_get_buffer returns it. `constants`: hash of all
 * tapes and const buffers, on a GPU. `memory` has mgl_paired_bench_memory_bytes. */
size_t mgl_paired_bench_memory_bytes(const mgl_program *program);
size_t mgl_paired_bench_side_bytes(const mgl_paired_bench *paired_bench,
                                   mgl_side side);     /* of the side's program; 0 if empty */
bool mgl_paired_bench_keeps(const mgl_buffer *buffer); /* whether a buffer is included */
mgl_status mgl_paired_bench_get_memory(mgl_paired_bench *paired_bench, mgl_side side, void *memory,
                                       unsigned char constants[MGL_SHA256_BYTES], mgl_error *err);

/* Runs the f32 reference of the device, fed with `made` (batch, tokens). On a CPU this is the CPU
 * machine in f32 and plain C on one thread, for small shapes. For each sequence and step it writes
 * the largest logit to `largest`, the logit of the made token to `chosen`, and the norm of the
 * logits to `norms`. All logits of the steps in `steps` (step_count) go to `logits` (step_count,
 * batch, vocab). */
typedef struct mgl_paired_bench_reference {
    float *largest, *chosen, *norms; /* (batch, tokens) */
    const int *steps;                /* (step_count) */
    int step_count;
    float *logits;    /* (step_count, batch, vocab) */
    double *device_s; /* GPU time of mgl_reference_look is added to it; may be NULL */
} mgl_paired_bench_reference;
mgl_status mgl_paired_bench_refer(mgl_paired_bench *paired_bench, const mgl_paired_bench_load *load,
                                  const int32_t *made, const mgl_paired_bench_reference *out,
                                  mgl_error *err);

/* Fastest time, of `count`, to read `bytes` bytes of device memory. The buffer is kept for the next
 * call. MGL_DEVICE on a CPU. */
mgl_status mgl_paired_bench_stream(mgl_paired_bench *paired_bench, double bytes, int count,
                                   double *seconds, mgl_error *err);

/* Median time of `count` baseline runs of the load (eval/baseline.h: a CUDA graph of cuBLAS calls
 * per token), with the weights and cache of the load's seed. The baseline is opened and released in
 * the call. MGL_DEVICE: no cuBLAS, too little memory beside the resident machines, or a CPU. */
mgl_status mgl_paired_bench_baseline(mgl_paired_bench *paired_bench,
                                     const mgl_paired_bench_load *load, int count, double *seconds,
                                     mgl_error *err);

/* GPU seconds spent outside the launches of mgl_paired_bench_run: making weights and cache,
 * references, streams. 0 on a CPU. */
double mgl_paired_bench_device_s(const mgl_paired_bench *paired_bench);

/* Clocks and state of the device at one moment. */
typedef struct mgl_paired_bench_clocks {
    uint64_t reasons;                         /* current clock event reasons of NVML */
    unsigned sm_mhz, memory_mhz, temperature; /* MHz, MHz, degrees Celsius; 0: unknown */
    int processes; /* other processes on the device: mgl_clocks_count_others; -1: unknown */
} mgl_paired_bench_clocks;
void mgl_paired_bench_look(mgl_paired_bench *paired_bench, mgl_paired_bench_clocks *out);

typedef struct mgl_paired_bench_device {
    char name[128], uuid[48]; /* "NVIDIA H200", "GPU-..."; "cpu", "" */
    mgl_target target;
    int driver_version;
    uint64_t memory_total, memory_free; /* bytes */
    uint64_t l2_bytes;
} mgl_paired_bench_device;
mgl_status mgl_paired_bench_get_device(mgl_paired_bench *paired_bench, mgl_paired_bench_device *out,
                                       mgl_error *err);

#endif

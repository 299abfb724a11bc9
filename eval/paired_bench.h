/*
 * A duel: two programs of one model on one device, the incumbent and a candidate, both resident,
 * run in turn on the same synthetic weights. What is timed is what `bench` times: one launch that
 * decodes `tokens` tokens of every sequence from `context` positions on.
 *
 * Nothing here decides: tokens, logits and times go to the caller. Weights, first tokens and cache
 * are made of a seed that whoever proposed the candidate did not know. A duel may be used by any
 * thread, but by one at a time.
 */
#ifndef MGL_EVAL_PAIRED_BENCH_H
#define MGL_EVAL_PAIRED_BENCH_H

#include "eval/clocks.h"
#include "eval/synthetic.h"
#include "vm/vm.h"

typedef struct mgl_paired_bench mgl_paired_bench;

typedef enum mgl_side { MGL_INCUMBENT, MGL_CANDIDATE, MGL_SIDES } mgl_side;

typedef struct mgl_paired_bench_options {
    mgl_config config;       /* of the model */
    const char *device;      /* "cuda", "cuda:1", or "cpu" (correctness alone: no time is a time) */
    bool plain;              /* CPU: plain C on one thread, the definition of what ops compute */
    const atomic_int *abort; /* may be NULL */
} mgl_paired_bench_options;

/* MGL_DEVICE without the device. Release with mgl_paired_bench_close. */
mgl_status mgl_paired_bench_open(const mgl_paired_bench_options *options, mgl_paired_bench **out,
                                 mgl_error *err);
void mgl_paired_bench_close(mgl_paired_bench *paired_bench); /* NULL is fine */

/* What setting a side did. */
typedef struct mgl_paired_bench_facts {
    bool exchanged;  /* the machine stayed, with its kernel: mgl_vm_exchange */
    double check_s;  /* the validator */
    double kernel_s; /* compiling; 0 for one that was there */
    double total_s;  /* all of it */
    mgl_vm_facts vm;
} mgl_paired_bench_facts;

/* The seed and the context of the load that is run next: a GPU's machine that is set from now on
 * has its weights and its cache at once, which are made once then. */
void mgl_paired_bench_expect(mgl_paired_bench *paired_bench, uint64_t seed, int context);
/* Puts a program on a side: validated, its machine opened, or exchanged where the kernel's key is
 * the same. The program is taken over: it is released when another one takes its place, with the
 * side, or at once on failure. All machines of a duel have the same model; sequences and capacity
 * may differ. MGL_REJECTED, MGL_BAD_INPUT (the machine can not run it), MGL_DEVICE (too little
 * memory, with both numbers): the side is empty then. */
mgl_status mgl_paired_bench_set(mgl_paired_bench *paired_bench, mgl_side side, mgl_program *program,
                                mgl_paired_bench_facts *out, mgl_error *err);
/* The candidate becomes the incumbent; the candidate's side is empty then. The old incumbent's
 * machine keeps its memory: the next candidate may be exchanged into it, or mgl_paired_bench_drop
 * gives it back. */
void mgl_paired_bench_promote(mgl_paired_bench *paired_bench);
/* Empties a side. */
void mgl_paired_bench_drop(mgl_paired_bench *paired_bench, mgl_side side);

/* A workload as a launch of it has it. */
typedef struct mgl_paired_bench_load {
    int batch, context, tokens; /* sequences; positions before; new tokens of each */
    uint64_t seed;              /* of weights, cache and first tokens */
    mgl_synthetic_kind kind;    /* of the values of weights and cache */
    bool poison; /* fill activations, outputs and the rest of the cache with signalling NaN (even
                    launches) or 0xA5 (odd ones of a side) first, and look for writes outside every
                    buffer behind: MGL_GATE with the place */
} mgl_paired_bench_load;

/* Runs one launch of a side, with penalties if its program has them; weights and cache are made
 * anew when the seed or context changed. Tokens to `tokens` (batch, load->tokens); may be NULL.
 * *seconds between the device's events (on a CPU: of the run). MGL_USAGE: the side is empty.
 * MGL_BAD_INPUT: the program has no room for the load. MGL_GATE: logits that are no numbers, too
 * few tokens, a write outside of every buffer. */
mgl_status mgl_paired_bench_run(mgl_paired_bench *paired_bench, mgl_side side,
                                const mgl_paired_bench_load *load, int32_t *tokens, double *seconds,
                                mgl_error *err);
/* Logits (batch, vocab) of the last step of the last run of that side, which must have succeeded.
 */
mgl_status mgl_paired_bench_get_logits(mgl_paired_bench *paired_bench, mgl_side side, float *logits,
                                       mgl_error *err);

/* What the last run of that side left: the buffers of its program that are activations, cache, or
 * logits and other io, each as mgl_vm_get_buffer has it, one behind the other; and the hash of what
 * tasks only read, for a GPU. `memory` (mgl_paired_bench_memory_bytes). */
size_t mgl_paired_bench_memory_bytes(const mgl_program *program);
size_t mgl_paired_bench_side_bytes(const mgl_paired_bench *paired_bench,
                                   mgl_side side);     /* of the program there; or 0 */
bool mgl_paired_bench_keeps(const mgl_buffer *buffer); /* whether a buffer is among them */
mgl_status mgl_paired_bench_get_memory(mgl_paired_bench *paired_bench, mgl_side side, void *memory,
                                       unsigned char constants[MGL_SHA256_BYTES], mgl_error *err);

/* The f32 reference of the device (on a CPU: the CPU machine in f32 and plain C, on one thread: for
 * small shapes) fed with `made` (batch, tokens). For every sequence and step: the largest logit to
 * `largest` (batch, tokens), the logit of the made token to `chosen` (batch, tokens), and the norm
 * of the logits to `norms`; all logits of the steps in `steps` (step_count) to `logits`
 * (step_count, batch, vocab). */
typedef struct mgl_paired_bench_reference {
    float *largest, *chosen, *norms; /* (batch, tokens) */
    const int *steps;                /* (step_count) */
    int step_count;
    float *logits;    /* (step_count, batch, vocab) */
    double *device_s; /* of mgl_reference_look: a GPU's time is added to it; NULL: nobody asks */
} mgl_paired_bench_reference;
mgl_status mgl_paired_bench_refer(mgl_paired_bench *paired_bench, const mgl_paired_bench_load *load,
                                  const int32_t *made, const mgl_paired_bench_reference *out,
                                  mgl_error *err);

/* Seconds that reading so many bytes of device memory takes, the fastest of `count`. The buffer
 * stays for the next call. MGL_DEVICE on a CPU. */
mgl_status mgl_paired_bench_stream(mgl_paired_bench *paired_bench, double bytes, int count,
                                   double *seconds, mgl_error *err);

/* The median of `count` launches of the load's tokens by the baseline (eval/baseline.h), a CUDA
 * graph of cuBLAS calls a token, with the weights and cache of the load's seed. It is made for this
 * and released. MGL_DEVICE without cuBLAS, without room for it beside what is resident, and on a
 * CPU. */
mgl_status mgl_paired_bench_baseline(mgl_paired_bench *paired_bench,
                                     const mgl_paired_bench_load *load, int count, double *seconds,
                                     mgl_error *err);

/* Seconds that a GPU has worked beside the launches of mgl_paired_bench_run, by its own clock:
 * weights and cache that were made, references, streams. 0 on a CPU. */
double mgl_paired_bench_device_s(const mgl_paired_bench *paired_bench);

/* One look at the device. */
typedef struct mgl_paired_bench_clocks {
    bool known;
    unsigned sm_mhz, memory_mhz, temperature; /* MHz, MHz, degrees Celsius */
    uint64_t reasons;                         /* NVML's clock event reasons now */
    int processes; /* others on the device: mgl_clocks_count_others; -1: unknown */
} mgl_paired_bench_clocks;
void mgl_paired_bench_look(mgl_paired_bench *paired_bench, mgl_paired_bench_clocks *out);

typedef struct mgl_paired_bench_device {
    char name[128], uuid[48]; /* "NVIDIA H200", "GPU-..." ; "cpu", "" */
    mgl_target target;
    int driver_version;
    uint64_t memory_total, memory_free; /* bytes */
    uint64_t l2_bytes;
} mgl_paired_bench_device;
mgl_status mgl_paired_bench_get_device(mgl_paired_bench *paired_bench, mgl_paired_bench_device *out,
                                       mgl_error *err);

#endif

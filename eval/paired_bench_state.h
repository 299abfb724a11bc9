/* A duel as its files see it: sides and loads (paired_bench.c), the CPU (paired_bench_cpu.c), the
 * GPU (paired_bench_cuda.c). */
#ifndef MGL_EVAL_PAIRED_BENCH_STATE_H
#define MGL_EVAL_PAIRED_BENCH_STATE_H

#include "eval/filler.h"
#include "eval/paired_bench.h"
#include "eval/stream.h"

typedef struct mgl_paired_bench_side {
    mgl_program *program; /* owned; of the machine */
    mgl_vm *vm;           /* NULL: none */
    bool ready;           /* false: nobody may run it; it waits for a program to be exchanged */
    char kernel[MGL_SHA256_HEX]; /* CUDA: the key of the machine's kernel */
    uint64_t seed;               /* weights and cache are made of it, */
    mgl_synthetic_kind values;   /* of this kind, */
    int context;                 /* so many positions of each sequence in the cache */
    unsigned poisoned;           /* launches that were poisoned */
    int batch;                   /* sequences of the last run; 0: none */
} mgl_paired_bench_side;

struct mgl_paired_bench {
    mgl_config config;
    mgl_vm_kind kind;
    int ordinal; /* of the GPU */
    mgl_target target;
    bool plain;              /* of the options */
    const atomic_int *abort; /* may be NULL */
    mgl_graph *graph;        /* synthetic; mgl_synthetic_set_seed goes before each use */
    mgl_paired_bench_side sides[MGL_SIDES];
    uint64_t seed; /* of the last load: what a machine starts with */
    mgl_synthetic_kind values;
    int context;
    mgl_bench_device device; /* CUDA */
    mgl_filler filler;       /* CUDA: of the machines' options */
    mgl_clocks clocks;
    mgl_stream stream;
    double stream_bytes; /* that it was made for; 0: there is none */
    double device_s;     /* mgl_paired_bench_device_s */
};

/* The first token of each sequence of a load: first (batch). */
void mgl_paired_bench_make_first(const mgl_paired_bench *paired_bench,
                                 const mgl_paired_bench_load *load, int32_t *first);

/* A CPU machine's cache: the first `context` positions of every sequence. */
mgl_status mgl_paired_bench_cpu_fill(const mgl_paired_bench *paired_bench, mgl_vm *vm, int context,
                                     mgl_error *err);
mgl_status mgl_paired_bench_cpu_refer(mgl_paired_bench *paired_bench,
                                      const mgl_paired_bench_load *load, const int32_t *made,
                                      const mgl_paired_bench_reference *out, mgl_error *err);

/* The device of a duel on a GPU, and back; mgl_paired_bench_cuda_close takes one that is half open.
 */
mgl_status mgl_paired_bench_cuda_open(mgl_paired_bench *paired_bench, mgl_error *err);
void mgl_paired_bench_cuda_close(mgl_paired_bench *paired_bench);
mgl_status mgl_paired_bench_cuda_refer(mgl_paired_bench *paired_bench,
                                       const mgl_paired_bench_load *load, const int32_t *made,
                                       const mgl_paired_bench_reference *out, mgl_error *err);
/* The key of a program's kernel, as it would be compiled now. */
void mgl_paired_bench_cuda_key(const mgl_paired_bench *paired_bench, const mgl_program *program,
                               char key[MGL_SHA256_HEX]);
mgl_status mgl_paired_bench_cuda_describe(mgl_paired_bench *paired_bench,
                                          mgl_paired_bench_device *out, mgl_error *err);

#endif

/* Internal state of a paired benchmark, shared by its files: sides and loads (paired_bench.c), the
 * CPU (paired_bench_cpu.c), and the GPU (paired_bench_cuda.c). */
#ifndef MGL_EVAL_PAIRED_BENCH_STATE_H
#define MGL_EVAL_PAIRED_BENCH_STATE_H

#include "eval/filler.h"
#include "eval/paired_bench.h"
#include "eval/stream.h"

typedef struct mgl_paired_bench_side {
    mgl_program *program;        /* owned; the machine's program */
    mgl_vm *vm;                  /* NULL: none */
    bool ready;                  /* false: the machine must not run; it is kept for an exchange */
    char kernel[MGL_SHA256_HEX]; /* CUDA: key of the machine's kernel */
    uint64_t seed;               /* seed of the weights and the cache */
    mgl_synthetic_kind values;   /* kind of their values */
    int context;                 /* filled cache positions of each sequence */
    unsigned poisoned;           /* number of poisoned launches */
    int batch;                   /* sequences of the last run; 0: none */
} mgl_paired_bench_side;

struct mgl_paired_bench {
    mgl_config config;
    mgl_vm_kind kind;
    int ordinal; /* GPU index */
    mgl_target target;
    bool plain;              /* of the options */
    const atomic_int *abort; /* may be NULL */
    mgl_graph *graph;        /* synthetic; mgl_synthetic_set_seed is called before each use */
    mgl_paired_bench_side sides[MGL_SIDES];
    uint64_t seed; /* of the last load: initial values of a new machine */
    mgl_synthetic_kind values;
    int context;
    mgl_bench_device device; /* CUDA */
    mgl_filler filler;       /* CUDA: fill_user of the machines' options */
    mgl_clocks clocks;
    mgl_stream stream;
    double stream_bytes; /* size of the open stream; 0: none */
    double device_s;     /* mgl_paired_bench_device_s */
};

/* Writes the first token of each sequence of a load to first (batch). */
void mgl_paired_bench_make_first(const mgl_paired_bench *paired_bench,
                                 const mgl_paired_bench_load *load, int32_t *first);

/* Fills the first `context` positions of every sequence in a CPU machine's cache. */
mgl_status mgl_paired_bench_cpu_fill(const mgl_paired_bench *paired_bench, mgl_vm *vm, int context,
                                     mgl_error *err);
mgl_status mgl_paired_bench_cpu_refer(mgl_paired_bench *paired_bench,
                                      const mgl_paired_bench_load *load, const int32_t *made,
                                      const mgl_paired_bench_reference *out, mgl_error *err);

/* Open and close the GPU of a paired benchmark. mgl_paired_bench_cuda_close accepts a partially
 * opened one. */
mgl_status mgl_paired_bench_cuda_open(mgl_paired_bench *paired_bench, mgl_error *err);
void mgl_paired_bench_cuda_close(mgl_paired_bench *paired_bench);
mgl_status mgl_paired_bench_cuda_refer(mgl_paired_bench *paired_bench,
                                       const mgl_paired_bench_load *load, const int32_t *made,
                                       const mgl_paired_bench_reference *out, mgl_error *err);
/* Key of a program's kernel as it would be compiled now. */
void mgl_paired_bench_cuda_key(const mgl_paired_bench *paired_bench, const mgl_program *program,
                               char key[MGL_SHA256_HEX]);
mgl_status mgl_paired_bench_cuda_describe(mgl_paired_bench *paired_bench,
                                          mgl_paired_bench_device *out, mgl_error *err);

#endif

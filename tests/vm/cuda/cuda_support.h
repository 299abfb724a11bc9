/*
 * Helpers of the CUDA machine's tests: programs and machines for a device, and skipping with a
 * message if something is missing.
 */
#ifndef MGL_TESTS_VM_CUDA_CUDA_SUPPORT_H
#define MGL_TESTS_VM_CUDA_CUDA_SUPPORT_H

#include "tests/vm/golden.h"

enum { SKIP = 77 };

/* What a program is lowered with; zeros are the defaults of lowering. */
typedef struct device_options {
    const char *arch; /* compiled for this in place of the device's own */
    mgl_dtype dtype;
    int queues;   /* 0: one an SM */
    int products; /* queues that have products, and the others attention alone; 0: as lowering has
                     it */
    int capacity, sequences, rows, splits;
    int second_rows;        /* rows of an epoch of the second list; 0: there is none */
    int gamma_scaled;       /* what its queues exchange: MGL_GAMMA_...; 0: chosen */
    int warpgroups;         /* who multiplies that: MGL_WARPGROUPS_...; 0: chosen */
    int exchange;           /* MGL_EXCHANGE_... */
    int exchange_precision; /* 0: as by default */
    int merge, share;
    bool penalties;
    int page_bytes, ring_pages, warps, stage_bytes;
    int flight_bytes, pending_bytes, prefetch_bytes;
    int deadline_ms;
    uint32_t delay_seed;
    unsigned extras;   /* of a random model: bits of mgl_extras */
    uint32_t variants; /* each task has some variant that takes it, drawn by this seed; 0: as
                          lowering names them */
} device_options;

/* SKIP, having said why, where there is no device or no NVRTC; 0 where the test can run. */
int skip_without_device(const char *test);
int skip_without_compiler(const char *test);

/* A program for a target of that architecture with `queues` queues; needs no device. */
mgl_program *program_for(const mgl_graph *graph, const char *target, const device_options *options);

/* For device 0, and a machine for it. */
mgl_program *device_program(const mgl_graph *graph, const device_options *options);
mgl_vm *device_vm(const mgl_program *program, const mgl_graph *graph,
                  const device_options *options);

/* Optional hook: device_vm calls this function after it opens a VM. */
extern void (*on_device_vm_open)(const mgl_program *program, const device_options *options);

/* A checkpoint of tests/models on device 0; released by golden_close. */
void open_device_model(golden_model *m, const char *name, const device_options *options);

/* Greedy tokens of one prompt; `most` of them, end tokens ignored. */
void device_greedy(mgl_vm *vm, const int32_t *prompt, int count, int32_t *tokens, int most);

#endif

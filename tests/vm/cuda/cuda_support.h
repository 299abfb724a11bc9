/*
 * Helpers of the CUDA machine's tests: programs and machines for a device, and skipping with a
 * message if something is missing.
 */
#ifndef MGL_TESTS_VM_CUDA_CUDA_SUPPORT_H
#define MGL_TESTS_VM_CUDA_CUDA_SUPPORT_H

#include "tests/vm/golden.h"

enum { SKIP = 77 };

/* Options of lowering; zeros are the defaults. */
typedef struct device_options {
    const char *arch; /* architecture to compile for; NULL: the device's own */
    mgl_dtype dtype;
    int queues;   /* 0: one per SM */
    int products; /* number of queues with products; the others have only attention; 0: the
                     default */
    int capacity, sequences, rows, splits;
    int second_rows;        /* rows of an epoch of the second list; 0: no second list */
    int gamma_scaled;       /* exchange of the second list: MGL_GAMMA_...; 0: chosen */
    int warpgroups;         /* instructions of its products: MGL_WARPGROUPS_...; 0: chosen */
    int exchange;           /* MGL_EXCHANGE_... */
    int exchange_precision; /* 0: the default */
    int merge, share;
    int unsplit; /* positions; 0: no unsplit rows */
    bool penalties;
    int page_bytes, ring_pages, warps, stage_bytes;
    int flight_bytes, pending_bytes, prefetch_bytes;
    int deadline_ms;
    uint32_t delay_seed;
    unsigned extras;          /* extras of a random model: bits of mgl_extras */
    mgl_weight_format scaled; /* of the matrices of a random model; f32: they are not quantized */
    bool reordered;           /* the columns of the quantized matrices are reordered */
    uint32_t variants; /* seed that gives each task a random variant; 0: as lowering chooses them */
} device_options;

/* Returns SKIP, with a message, if there is no device or no NVRTC; 0 if the test can run. */
int skip_without_device(const char *test);
int skip_without_compiler(const char *test);

/* Lowers a program for a target of that architecture with `queues` queues; needs no device. */
mgl_program *program_for(const mgl_graph *graph, const char *target, const device_options *options);

/* Lowers a program for device 0, and opens a machine for it. */
mgl_program *device_program(const mgl_graph *graph, const device_options *options);
mgl_vm *device_vm(const mgl_program *program, const mgl_graph *graph,
                  const device_options *options);

/* Optional hook: device_vm calls this function after it opens a VM. */
extern void (*on_device_vm_open)(const mgl_program *program, const device_options *options);

/* Opens a checkpoint of tests/models on device 0; release with golden_close. */
void open_device_model(golden_model *m, const char *name, const device_options *options);

/* Generates greedy tokens of one prompt; `most` tokens, end tokens ignored. */
void device_greedy(mgl_vm *vm, const int32_t *prompt, int count, int32_t *tokens, int most);

#endif

/*
 * The device as the benchmark uses it beside the machine: memory, kernels, a stream and its clock.
 * Everything is launched on one stream, in order.
 */
#ifndef MGL_EVAL_DEVICE_H
#define MGL_EVAL_DEVICE_H

#include "eval/synthetic.h"

#include "eval/cuda/blocks.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"

typedef enum mgl_bench_kernel {
#define MGL_X(id, name, block) MGL_KERNEL_##id,
    MGL_BENCH_KERNELS(MGL_X)
#undef MGL_X
        MGL_BENCH_KERNEL_COUNT
} mgl_bench_kernel;

/* Zero-initialise; release with mgl_bench_device_close, after a failure too. */
typedef struct mgl_bench_device {
    const mgl_cu *cu;
    int device; /* CUdevice */
    char name[128];
    mgl_target target;
    void *context; /* current on the calling thread while the device is open and not left */
    void *stream, *module;
    void *events[2]; /* start and end of what is timed */
    void *functions[MGL_BENCH_KERNEL_COUNT];
} mgl_bench_device;

/* Opens device `ordinal` with the kernels compiled for models of that geometry, which `abort` ends;
 * it may be NULL. */
mgl_status mgl_bench_device_open(int ordinal, const mgl_geometry *geometry, const atomic_int *abort,
                                 mgl_bench_device *out, mgl_error *err);
void mgl_bench_device_close(mgl_bench_device *device);

/* For a device that stays open while nothing is done with it: in between the context is not
 * current, and the process may be ended (mgl_cu_is_busy). It is closed while it is entered. */
void mgl_bench_device_leave(const mgl_bench_device *device);
mgl_status mgl_bench_device_enter(const mgl_bench_device *device, mgl_error *err);

/* Compiles the kernels for an architecture; needs no device. Release with mgl_cuda_image_clear. */
mgl_status mgl_bench_compile(const mgl_geometry *geometry, const char *arch,
                             const atomic_int *abort, mgl_cuda_image *out, mgl_error *err);

/* Device memory; `what` it is for is told when there is too little. mgl_bench_release takes 0. */
mgl_status mgl_bench_allocate(const mgl_bench_device *device, size_t bytes, const char *what,
                              mgl_address *out, mgl_error *err);
void mgl_bench_release(const mgl_bench_device *device, mgl_address address);

/* Copies that have happened when they return; they come behind everything on the stream. */
mgl_status mgl_bench_copy_in(const mgl_bench_device *device, mgl_address to, const void *from,
                             size_t bytes, mgl_error *err);
mgl_status mgl_bench_copy_out(const mgl_bench_device *device, void *to, mgl_address from,
                              size_t bytes, mgl_error *err);

typedef struct mgl_bench_grid {
    unsigned x, y, z; /* blocks */
    unsigned threads; /* of a block */
} mgl_bench_grid;

/* Launches a kernel with its block. */
mgl_status mgl_bench_launch(const mgl_bench_device *device, mgl_bench_kernel kernel,
                            mgl_bench_grid grid, void *block, mgl_error *err);
/* A grid of blocks of 256 for `count` elements that a kernel loops over. */
mgl_bench_grid mgl_bench_spread(const mgl_bench_device *device, long long count);
mgl_status mgl_bench_wait(const mgl_bench_device *device, mgl_error *err);

/* Seconds on the device's clock between the two calls; the second waits for the stream. */
mgl_status mgl_bench_start_clock(const mgl_bench_device *device, mgl_error *err);
mgl_status mgl_bench_stop_clock(const mgl_bench_device *device, double *seconds, mgl_error *err);

/* Fills `count` elements with a tensor's values: of 16 bits, or f32 if `wide`. */
mgl_status mgl_bench_fill_rows(const mgl_bench_device *device, mgl_address to,
                               const mgl_synthetic_rule *rule, long long count, bool wide,
                               mgl_error *err);
/* Fills the first `positions` of a layer's cached keys or values (sequences, kv_heads, capacity,
 * head_dim), which are bf16 or f16; `swizzled`: as mgl_vm_places has it. */
mgl_status mgl_bench_fill_cache(const mgl_bench_device *device, mgl_address to,
                                const mgl_graph *graph, int layer, bool value, mgl_dtype dtype,
                                bool swizzled, int sequences, int capacity, int positions,
                                mgl_error *err);

/* Uploads a rope table of `positions` rows: the machine's own, from vm/pack.c. */
mgl_status mgl_bench_make_rope(const mgl_bench_device *device, const mgl_graph *graph,
                               int positions, mgl_address *out, mgl_error *err);

#endif

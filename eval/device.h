/*
 * Access of the benchmarks to a GPU without the CUDA VM: memory, kernels of the benchmarks, one
 * stream, and timing events. All kernels are launched on that stream, in order. The files of eval/
 * call it: bench.c, baseline.c, filler.c and stream.c.
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

/* Zero-initialize it; release with mgl_bench_device_close, also after an error. */
typedef struct mgl_bench_device {
    const mgl_cu *cu;
    int device; /* CUdevice */
    char name[128];
    mgl_target target;
    void *context; /* current on the calling thread while the device is open and entered */
    void *stream, *module;
    void *events[2]; /* start and end of the timed interval */
    void *functions[MGL_BENCH_KERNEL_COUNT];
} mgl_bench_device;

/* Opens device `ordinal` with the kernels compiled for models of that geometry. `abort` ends the
 * compilation; may be NULL. */
mgl_status mgl_bench_device_open(int ordinal, const mgl_geometry *geometry, const atomic_int *abort,
                                 mgl_bench_device *out, mgl_error *err);
void mgl_bench_device_close(mgl_bench_device *device);

/* For a device that stays open while unused: after `leave`, the context is not current, and the
 * process may be killed (mgl_cu_is_busy). The device must be entered when it is closed. */
void mgl_bench_device_leave(const mgl_bench_device *device);
mgl_status mgl_bench_device_enter(const mgl_bench_device *device, mgl_error *err);

/* Compiles the kernels for an architecture; needs no device. Release with mgl_cuda_image_clear. */
mgl_status mgl_bench_compile(const mgl_geometry *geometry, const char *arch,
                             const atomic_int *abort, mgl_cuda_image *out, mgl_error *err);

/* Allocates device memory; the error names `what` the memory is for. mgl_bench_release accepts
 * 0. */
mgl_status mgl_bench_allocate(const mgl_bench_device *device, size_t bytes, const char *what,
                              mgl_address *out, mgl_error *err);
void mgl_bench_release(const mgl_bench_device *device, mgl_address address);

/* Synchronous copies, ordered after everything on the stream. */
mgl_status mgl_bench_copy_in(const mgl_bench_device *device, mgl_address to, const void *from,
                             size_t bytes, mgl_error *err);
mgl_status mgl_bench_copy_out(const mgl_bench_device *device, void *to, mgl_address from,
                              size_t bytes, mgl_error *err);

typedef struct mgl_bench_grid {
    unsigned x, y, z; /* blocks */
    unsigned threads; /* per block */
} mgl_bench_grid;

/* Launches a kernel with its argument block. */
mgl_status mgl_bench_launch(const mgl_bench_device *device, mgl_bench_kernel kernel,
                            mgl_bench_grid grid, void *block, mgl_error *err);
/* Grid of blocks of 256 threads for a grid-stride loop over `count` elements. */
mgl_bench_grid mgl_bench_spread(const mgl_bench_device *device, long long count);
mgl_status mgl_bench_wait(const mgl_bench_device *device, mgl_error *err);

/* Measures the device time between the two calls, in seconds. The second call waits for the
 * stream. */
mgl_status mgl_bench_start_clock(const mgl_bench_device *device, mgl_error *err);
mgl_status mgl_bench_stop_clock(const mgl_bench_device *device, double *seconds, mgl_error *err);

/* Fills `count` elements with a tensor's values: 16 bits, or f32 if `wide`. */
mgl_status mgl_bench_fill_rows(const mgl_bench_device *device, mgl_address to,
                               const mgl_synthetic_rule *rule, long long count, bool wide,
                               mgl_error *err);
/* Writes the row factors of a matrix: f32 (rows). */
mgl_status mgl_bench_fill_factors(const mgl_bench_device *device, mgl_address to,
                                  const mgl_synthetic_rule *rule, long long rows, mgl_error *err);
/* Fills the first `positions` of a layer's cached keys or values (sequences, kv_heads, capacity,
 * head_dim), in bf16 or f16. `swizzled`: as in mgl_vm_places. */
mgl_status mgl_bench_fill_cache(const mgl_bench_device *device, mgl_address to,
                                const mgl_graph *graph, int layer, bool value, mgl_dtype dtype,
                                bool swizzled, int sequences, int capacity, int positions,
                                mgl_error *err);

/* Uploads a rope table of `positions` rows, computed by vm/pack.c as for the machine. */
mgl_status mgl_bench_make_rope(const mgl_bench_device *device, const mgl_graph *graph,
                               int positions, mgl_address *out, mgl_error *err);

#endif

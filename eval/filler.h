/* Makes a machine's weights on the device, straight from the synthetic graph: what packing and
 * uploading would have put there, and the first positions of the KV cache. */
#ifndef MGL_EVAL_FILLER_H
#define MGL_EVAL_FILLER_H

#include "eval/device.h"
#include "vm/vm.h"

typedef struct mgl_filler {
    const mgl_bench_device *device;
    const mgl_graph *graph; /* synthetic */
    int positions;          /* of the cache that are filled, in every sequence */
    double *device_s;       /* the time of the kernels is added to it; NULL: nobody asks */
} mgl_filler;

/* The `fill` of mgl_vm_options; `user` is a mgl_filler. */
mgl_status mgl_filler_run(void *user, const mgl_program *program, const mgl_vm_places *places,
                          mgl_error *err);

/* Which layer's keys, or values, a KV buffer holds. Lowering calls them k<layer> and v<layer>:
 * MGL_BAD_INPUT for others. */
mgl_status mgl_filler_find_layer(const mgl_program *program, int buffer, int *layer, bool *value,
                                 mgl_error *err);

/* A program's segment as the device fills it; *out lacks the address. MGL_BAD_INPUT for what it
 * does not describe: other dtypes than bf16. */
mgl_status mgl_filler_describe(const mgl_program *program, const mgl_graph *graph,
                               const mgl_segment *segment, mgl_synthetic_segment *out,
                               mgl_error *err);

#endif

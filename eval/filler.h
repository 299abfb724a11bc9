/* Makes a machine's synthetic weights directly on the device: the same bytes that packing and
 * uploading would produce, and the first positions of the KV cache. bench.c and paired_bench.c pass
 * it as `fill` to mgl_vm_open. */
#ifndef MGL_EVAL_FILLER_H
#define MGL_EVAL_FILLER_H

#include "eval/device.h"
#include "vm/vm.h"

typedef struct mgl_filler {
    const mgl_bench_device *device;
    const mgl_graph *graph; /* synthetic */
    int positions;          /* filled cache positions of every sequence */
    double *device_s;       /* time of the kernels is added to it; may be NULL */
} mgl_filler;

/* The `fill` of mgl_vm_options; `user` is a mgl_filler. */
mgl_status mgl_filler_run(void *user, const mgl_program *program, const mgl_vm_places *places,
                          mgl_error *err);

/* Finds the layer of a KV buffer, and whether it holds values. Lowering names the buffers k<layer>
 * and v<layer>. MGL_BAD_INPUT for other buffers. */
mgl_status mgl_filler_find_layer(const mgl_program *program, int buffer, int *layer, bool *value,
                                 mgl_error *err);

/* Describes a program's segment for the fill kernel, without the address. MGL_BAD_INPUT for
 * formats other than bf16 and scaled ones. */
mgl_status mgl_filler_describe(const mgl_program *program, const mgl_graph *graph,
                               const mgl_segment *segment, mgl_synthetic_segment *out,
                               mgl_error *err);

#endif

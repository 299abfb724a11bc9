/* The loop over a task's streamed rows that the G8 ops share. */
#ifndef MGL_INSTRUCTIONS_LINEAR_H
#define MGL_INSTRUCTIONS_LINEAR_H

#include "instructions/reference.h"

/* to[r, c] = sum of x[r] W[c]: c runs over the rows of the task's segments, one segment after the
 * other, plus its bias; x (rows(e), x_stride) from column 0 on. Rows of which `skip` (may be NULL)
 * is true are left as they are. The weight row (x's width) is unpacked into `row`. */
void mgl_reference_linear(const mgl_call *call, const float *x, int64_t x_stride,
                          const mgl_region *to, const bool *skip, float *row);

/* The bias of the task's tensor `tensor`, counted over its segments, from that tensor's row 0 on;
 * NULL: the task has none. */
const float *mgl_call_bias(const mgl_call *call, int tensor);

/* All rows of region x as f32 into `to` (rows(e), columns of x), and the same as the task's product
 * takes them: normed by g, or scaled where the op scales. */
void mgl_reference_load(const mgl_call *call, const mgl_region *x, float *to);
void mgl_reference_norm(const mgl_call *call, float *to);

/* y = b + (x W^T + bias), and the same to `copy`, if that is not NULL: x (rows, inputs) stands in
 * the scratch, which has room for `inputs` floats behind it. */
void mgl_reference_add(const mgl_call *call, int64_t inputs, const mgl_region *y,
                       const mgl_region *copy);

#endif

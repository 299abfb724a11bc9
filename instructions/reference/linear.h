/* The loops over streamed weight rows that the reference implementations of G8 ops share. */
#ifndef MGL_INSTRUCTIONS_REFERENCE_LINEAR_H
#define MGL_INSTRUCTIONS_REFERENCE_LINEAR_H

#include "instructions/reference/reference.h"

/* to[r, c] = dot(x[r], W[c]) + bias, with c over the rows of the task's segments in order, and x
 * (rows(e), x_stride) from column 0 on. Rows with `skip` (may be NULL) true are unchanged.
 * `row`: scratch for one unpacked weight row, 2 * (columns of x) floats. */
void mgl_reference_linear(const mgl_call *call, const float *x, int64_t x_stride,
                          const mgl_region *to, const bool *skip, float *row);

/* The bias of tensor `tensor`, counted over the task's segments, from that tensor's row 0 on.
 * NULL: no bias. */
const float *mgl_call_bias(const mgl_call *call, int tensor);

/* Unpacks row `row` (0 is row_lo) of a tensor of segment `index` of the task (0 is the first) to
 * f32: the weights in the order of the tensor's columns, with their row factor. `to` has
 * 2 * (columns of the row) floats: the weights, then scratch. */
void mgl_call_unpack(const mgl_call *call, int index, int which, int64_t row, float *to);

/* Loads all rows of region x as f32 into `to` (rows(e), columns of x). The second function also
 * normalizes them: by g, or by the RMS scale if mgl_op_scales. */
void mgl_reference_load(const mgl_call *call, const mgl_region *x, float *to);
void mgl_reference_norm(const mgl_call *call, float *to);

/* y = b + (x W^T + bias), and the same to `copy` if it is not NULL. x (rows, inputs) is in the
 * scratch, followed by 2 * `inputs` floats of free space. */
void mgl_reference_add(const mgl_call *call, int64_t inputs, const mgl_region *y,
                       const mgl_region *copy);

#endif

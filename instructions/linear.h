/* The loop over a task's streamed rows that the G8 ops share. */
#ifndef MGL_INSTRUCTIONS_LINEAR_H
#define MGL_INSTRUCTIONS_LINEAR_H

#include "instructions/reference.h"

/* to[r, c] = sum of x[r] W[c]: c runs over the rows of the task's segments, one segment after the
 * other; x (rows(e), x_stride) from column 0 on; to (rows(e), to_stride). Rows of which `skip` (may
 * be NULL) is true are left as they are. The weight row (x's width) is unpacked into `row`. */
void mgl_reference_linear(const mgl_call *call, const float *x, int64_t x_stride, float *to,
                          int64_t to_stride, const bool *skip, float *row);

/* Norms all rows of region x by g into `to` (rows(e), columns of x). */
void mgl_reference_norm(const mgl_call *call, const mgl_region *x, const mgl_region *g, float *to);

#endif

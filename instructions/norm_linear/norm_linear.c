/* Reference of norm_linear: y = RMSNorm(x; g) W^T + bias. */
#include "instructions/reference/linear.h"

void mgl_reference_norm_linear(const mgl_call *call)
{
    const mgl_region *x = MGL_CALL(call, norm_linear, x), *y = MGL_CALL(call, norm_linear, y);
    int64_t width = mgl_region_width(x, 1);
    float *normed = call->scratch; /* (rows, width) */
    mgl_reference_norm(call, normed);
    mgl_reference_linear(call, normed, width, y, NULL, normed + call->epoch->rows * width);
}

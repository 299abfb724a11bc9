/* norm_linear: y = RMSNorm(x; g) W^T. */
#include "instructions/linear.h"

void mgl_reference_NORM_LINEAR(const mgl_call *call)
{
    const mgl_region *x = mgl_call_in(call, 0), *y = mgl_call_out(call, 0);
    int64_t width = mgl_region_width(x, 1);
    float *normed = call->scratch; /* (rows, width) */
    mgl_reference_norm(call, x, mgl_call_in(call, 1), normed);
    mgl_reference_linear(call, normed, width, y, NULL, normed + call->epoch->rows * width);
}

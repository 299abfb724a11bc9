/* Reference of linear_add_gamma: linear_add, and its columns gamma_scaled by the next norm. */
#include "instructions/reference/linear.h"

void mgl_reference_linear_add_gamma(const mgl_call *call)
{
    const mgl_region *a = MGL_CALL(call, linear_add_gamma, a);
    const mgl_region *y = MGL_CALL(call, linear_add_gamma, y);
    mgl_reference_load(call, a, call->scratch);
    mgl_reference_add(call, mgl_region_width(a, 1), y, NULL);
    mgl_call_scale_by_gamma(call, y, MGL_CALL(call, linear_add_gamma, g),
                            MGL_CALL(call, linear_add_gamma, n),
                            MGL_CALL(call, linear_add_gamma, s));
}

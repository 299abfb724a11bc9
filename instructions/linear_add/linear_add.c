/* Reference of linear_add: y = b + (a W^T + bias). The products are summed first, then the bias
 * is added, then b. y may be b. */
#include "instructions/reference/linear.h"

void mgl_reference_linear_add(const mgl_call *call)
{
    const mgl_region *a = MGL_CALL(call, linear_add, a);
    mgl_reference_load(call, a, call->scratch);
    mgl_reference_add(call, mgl_region_width(a, 1), MGL_CALL(call, linear_add, y),
                      MGL_CALL(call, linear_add, copy));
}

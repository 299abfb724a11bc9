/* scaled_linear: norm_linear of a value that is weighed. The operands have the same numbers, and
 * what the product multiplies is scaled instead of normed (mgl_call_norm). */
#include "instructions/reference.h"

void mgl_reference_scaled_linear(const mgl_call *call)
{
    mgl_reference_norm_linear(call);
}

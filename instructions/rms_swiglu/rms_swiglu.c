/* Reference of rms_swiglu: norm_swiglu of a gamma_scaled value. The operands have
 * norm_swiglu's numbers; mgl_call_norm applies the RMS scale instead of the whole norm. */
#include "instructions/reference/reference.h"

void mgl_reference_rms_swiglu(const mgl_call *call)
{
    mgl_reference_norm_swiglu(call);
}

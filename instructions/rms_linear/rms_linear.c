/* Reference of rms_linear: norm_linear of a gamma_scaled value. The operands have
 * norm_linear's numbers; mgl_call_norm applies the RMS scale instead of the whole norm. */
#include "instructions/reference/reference.h"

void mgl_reference_rms_linear(const mgl_call *call)
{
    mgl_reference_norm_linear(call);
}

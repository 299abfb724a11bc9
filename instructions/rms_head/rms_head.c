/* Reference of rms_head: head of a gamma_scaled value. The operands have head's numbers;
 * mgl_call_norm applies the RMS scale instead of the whole norm. */
#include "instructions/reference/reference.h"

void mgl_reference_rms_head(const mgl_call *call)
{
    mgl_reference_head(call);
}

/* Reference of attend_past: one split's share of the earlier positions. */
#include "instructions/reference/reference.h"

void mgl_reference_attend_past(const mgl_call *call)
{
    mgl_attention_all(call);
}

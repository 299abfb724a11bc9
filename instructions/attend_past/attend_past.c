/* attend_past: one split's share of the earlier positions. */
#include "instructions/reference.h"

void mgl_reference_ATTEND_PAST(const mgl_call *call)
{
    mgl_attention_all(call);
}

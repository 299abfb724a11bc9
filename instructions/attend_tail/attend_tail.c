/* attend_tail: appends this epoch's k and v, and attends to them and to its split's share. */
#include "instructions/attend_past/partial.h"

void mgl_reference_ATTEND_TAIL(const mgl_call *call)
{
    const mgl_region *rope = mgl_call_in(call, 3);
    const mgl_region *k_now = mgl_call_out(call, 1), *v_now = mgl_call_out(call, 2);
    mgl_attention a = {
        .q = mgl_call_in(call, 0), .rope = rope, .k_cache = k_now, .v_cache = v_now, .tail = true};
    mgl_attention_append(call, mgl_call_in(call, 1), mgl_call_in(call, 2), rope, k_now, v_now);
    mgl_attention_partial(call, &a, mgl_call_out(call, 0));
}

/* Reference of attend_tail: appends this epoch's k and v, and attends to them and to its split's
 * share of the earlier positions. */
#include "instructions/reference/reference.h"

void mgl_reference_attend_tail(const mgl_call *call)
{
    mgl_attention_all(call);
}

/* Reference of attend: attention of one kv head, all positions. */
#include "instructions/reference/reference.h"

void mgl_reference_attend(const mgl_call *call)
{
    mgl_attention_all(call);
}

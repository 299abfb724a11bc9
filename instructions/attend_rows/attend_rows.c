/* Reference of attend_rows: one kv head, all positions, for a share of the rows. */
#include "instructions/reference/reference.h"

void mgl_reference_attend_rows(const mgl_call *call)
{
    mgl_attention_all(call);
}

/* clear: all words of a region become "not written", which is all ones. */
#include "instructions/reference.h"

#include <string.h>

void mgl_reference_CLEAR(const mgl_call *call)
{
    const mgl_region *y = mgl_call_out(call, 0);
    for (int r = 0; r < call->program->limits.rows; r++)
        memset(mgl_call_row(call, y, r), 0xFF, (size_t)mgl_region_width(y, 1) * sizeof(float));
}

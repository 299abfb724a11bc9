/* Reference of clear: sets all words of its regions to "not written", which is all ones. */
#include "instructions/reference/reference.h"

#include <string.h>

static bool fill_with_ones(void *run, size_t bytes)
{
    memset(run, 0xFF, bytes);
    return true;
}

/* Rows of the buffer, as its list declares them. */
static int rows_of(const mgl_buffer *buffer)
{
    int rows = 0;
    for (int d = 0; d < buffer->rank; d++)
        if (buffer->extents[d].symbol == MGL_ROWS)
            rows = (int)buffer->extents[d].count;
    return rows;
}

/* Clears all rows, including rows that earlier epochs did not write. */
void mgl_reference_clear(const mgl_call *call)
{
    for (int i = 0; i < call->task->out.count; i++) {
        const mgl_region *region = mgl_call_out(call, i);
        mgl_call_each_run(call, region, rows_of(mgl_call_buffer(call, region)), fill_with_ones);
    }
}

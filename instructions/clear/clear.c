/* clear: all words of its regions become "not written", which is all ones. */
#include "instructions/reference.h"

#include <string.h>

static bool fill_with_ones(void *run, size_t bytes)
{
    memset(run, 0xFF, bytes);
    return true;
}

/* All rows, whichever of them earlier epochs wrote. */
void mgl_reference_clear(const mgl_call *call)
{
    for (int i = 0; i < call->task->out.count; i++)
        mgl_call_each_run(call, mgl_call_out(call, i), call->program->limits.rows, fill_with_ones);
}

/* Reference of merge_add: linear_add of the merged heads of split attention. */
#include "instructions/merge/merge.h"
#include "instructions/reference/linear.h"

void mgl_reference_merge_add(const mgl_call *call)
{
    const int64_t inputs = mgl_task_inputs(call->program, call->task);
    for (int r = 0; r < call->epoch->rows; r++)
        mgl_merge_row(call, MGL_CALL(call, merge_add, part), r, call->scratch + r * inputs);
    mgl_reference_add(call, inputs, MGL_CALL(call, merge_add, y), MGL_CALL(call, merge_add, copy));
}

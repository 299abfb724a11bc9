/* linear_add: y = b + a W^T; the sum of the products first, then b on top of it. y may be b. */
#include "instructions/linear.h"

#include "vm/vm.h"

void mgl_reference_LINEAR_ADD(const mgl_call *call)
{
    const mgl_region *a = mgl_call_in(call, 0), *b = mgl_call_in(call, 1);
    const mgl_region *y = mgl_call_out(call, 0);
    const mgl_run *run = &call->task->segments;
    int64_t column = 0;
    for (int s = run->first; s < run->first + run->count; s++) {
        const mgl_segment *segment = &call->program->segments[s];
        int64_t width = segment->col_hi - segment->col_lo;
        for (int64_t i = 0; i < mgl_segment_rows(segment); i++, column++) {
            mgl_unpack_row(call->program, segment, call->tape, 0, i, call->scratch);
            for (int r = 0; r < call->epoch->rows; r++) {
                float sum =
                    mgl_dot(mgl_call_row(call, a, r) + segment->col_lo, call->scratch, width);
                mgl_call_row(call, y, r)[column] = mgl_call_row(call, b, r)[column] + sum;
            }
        }
    }
}

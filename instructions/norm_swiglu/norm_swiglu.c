/* norm_swiglu: y = silu(n W^T) * (n W2^T) with n = RMSNorm(x; g). */
#include "instructions/linear.h"

#include "vm/vm.h"

void mgl_reference_norm_swiglu(const mgl_call *call)
{
    const mgl_region *x = MGL_CALL(call, norm_swiglu, x), *y = MGL_CALL(call, norm_swiglu, y);
    const mgl_segment *segment = &call->program->segments[call->task->segments.first];
    int64_t width = mgl_region_width(x, 1), columns = segment->col_hi - segment->col_lo;
    float *normed = call->scratch, *row = normed + call->epoch->rows * width;
    mgl_reference_norm(call, x, MGL_CALL(call, norm_swiglu, g), normed);
    for (int64_t i = 0; i < mgl_segment_rows(segment); i++) {
        float gate[MGL_MAX_ROWS];
        mgl_unpack_row(call->program, segment, call->tape, 0, i, row);
        for (int r = 0; r < call->epoch->rows; r++)
            gate[r] = mgl_dot(normed + r * width + segment->col_lo, row, columns);
        mgl_unpack_row(call->program, segment, call->tape, 1, i, row);
        for (int r = 0; r < call->epoch->rows; r++) {
            float up = mgl_dot(normed + r * width + segment->col_lo, row, columns);
            float value = mgl_swiglu(gate[r], up);
            mgl_call_store(call, y, r, i, 1, &value);
        }
    }
}

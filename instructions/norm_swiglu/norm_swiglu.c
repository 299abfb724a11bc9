/* Reference of norm_swiglu: y = silu(n W^T + bias) * (n W2^T + bias2) with n = RMSNorm(x; g). */
#include "instructions/reference/linear.h"

void mgl_reference_norm_swiglu(const mgl_call *call)
{
    const mgl_region *x = MGL_CALL(call, norm_swiglu, x), *y = MGL_CALL(call, norm_swiglu, y);
    const mgl_segment *segment = &call->program->segments[call->task->segments.first];
    int64_t width = mgl_region_width(x, 1), columns = segment->col_hi - segment->col_lo;
    const float *bias = mgl_call_bias(call, 0), *bias2 = mgl_call_bias(call, 1);
    float *normed = call->scratch, *row = normed + call->epoch->rows * width;
    mgl_reference_norm(call, normed);
    for (int64_t i = 0; i < mgl_segment_rows(segment); i++) {
        float gate[MGL_MAX_SECOND_ROWS];
        mgl_call_unpack(call, 0, 0, i, row);
        for (int r = 0; r < call->epoch->rows; r++) {
            gate[r] = mgl_dot(normed + r * width + segment->col_lo, row, columns);
            gate[r] = bias ? gate[r] + bias[segment->row_lo + i] : gate[r];
        }
        mgl_call_unpack(call, 0, 1, i, row);
        for (int r = 0; r < call->epoch->rows; r++) {
            float up = mgl_dot(normed + r * width + segment->col_lo, row, columns);
            up = bias2 ? up + bias2[segment->row_lo + i] : up;
            float value = mgl_swiglu(gate[r], up);
            mgl_call_store(call, y, r, i, 1, &value);
        }
    }
}

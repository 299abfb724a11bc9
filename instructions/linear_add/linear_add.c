/* Reference of linear_add: y = b + (a W^T + bias). The products are summed first, then the bias
 * is added, then b. y may be b. */
#include "instructions/linear.h"

#include "vm/vm.h"

/* Adds the sum of row r to its column of b. */
static void add(const mgl_call *call, int r, int64_t column, float sum, const mgl_region *y,
                const mgl_region *copy)
{
    float value;
    mgl_call_load(call, MGL_CALL(call, linear_add, b), r, column, 1, &value);
    value += sum;
    mgl_call_store(call, y, r, column, 1, &value);
    if (copy)
        mgl_call_store(call, copy, r, column, 1, &value);
}

void mgl_reference_add(const mgl_call *call, int64_t inputs, const mgl_region *y,
                       const mgl_region *copy)
{
    const mgl_run *run = &call->task->segments;
    int64_t column = 0;
    float *x = call->scratch, *row = x + call->epoch->rows * inputs; /* (rows, inputs), (inputs) */
    for (int s = run->first; s < run->first + run->count; s++) {
        const mgl_segment *segment = &call->program->segments[s];
        int64_t width = segment->col_hi - segment->col_lo;
        const float *bias = mgl_call_bias(call, s - run->first);
        for (int64_t i = 0; i < mgl_segment_rows(segment); i++, column++) {
            mgl_unpack_row(call->program, segment, call->tapes[s - run->first], 0, i, row);
            for (int r = 0; r < call->epoch->rows; r++) {
                float sum = mgl_dot(x + r * inputs + segment->col_lo, row, width);
                add(call, r, column, bias ? sum + bias[segment->row_lo + i] : sum, y, copy);
            }
        }
    }
}

void mgl_reference_linear_add(const mgl_call *call)
{
    const mgl_region *a = MGL_CALL(call, linear_add, a);
    mgl_reference_load(call, a, call->scratch);
    mgl_reference_add(call, mgl_region_width(a, 1), MGL_CALL(call, linear_add, y),
                      MGL_CALL(call, linear_add, copy));
}

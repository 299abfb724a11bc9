/* Implements linear.h with plain loops: each streamed weight row is unpacked once and multiplied
 * by all rows of the epoch. */
#include "instructions/reference/linear.h"

#include "schedule/unpack.h"

const float *mgl_call_bias(const mgl_call *call, int tensor)
{
    const mgl_op_info *op = mgl_op_get(call->task->op);
    if (tensor >= mgl_task_biases(call->task))
        return NULL;
    return mgl_call_at(call, mgl_call_operand(call, op->in_count + op->out_count + tensor));
}

void mgl_call_unpack(const mgl_call *call, int index, int which, int64_t row, float *to)
{
    const mgl_segment *segment = &call->program->segments[call->task->segments.first + index];
    const float *factors = mgl_call_factors(call, segment, which);
    const int32_t *order = mgl_call_order(call, segment, which);
    const int64_t columns = segment->col_hi - segment->col_lo;
    float *stored = order ? to + columns : to;
    mgl_unpack_row(call->program, segment, call->tapes[index], which, row, stored);
    for (int64_t i = 0; order && i < columns; i++)
        to[order[i]] = stored[i];
    for (int64_t i = 0; factors && i < columns; i++)
        to[i] *= factors[row];
}

void mgl_reference_linear(const mgl_call *call, const float *x, int64_t x_stride,
                          const mgl_region *to, const bool *skip, float *row)
{
    const mgl_run *run = &call->task->segments;
    int64_t column = 0;
    for (int s = run->first; s < run->first + run->count; s++) {
        const mgl_segment *segment = &call->program->segments[s];
        int64_t width = segment->col_hi - segment->col_lo;
        const float *bias = mgl_call_bias(call, s - run->first);
        for (int64_t i = 0; i < mgl_segment_rows(segment); i++, column++) {
            mgl_call_unpack(call, s - run->first, 0, i, row);
            for (int r = 0; r < call->epoch->rows; r++) {
                if (skip && skip[r])
                    continue;
                float sum = mgl_dot(x + r * x_stride + segment->col_lo, row, width);
                sum = bias ? sum + bias[segment->row_lo + i] : sum;
                mgl_call_store(call, to, r, column, 1, &sum);
            }
        }
    }
}

void mgl_reference_load(const mgl_call *call, const mgl_region *x, float *to)
{
    int64_t width = mgl_region_width(x, 1);
    for (int r = 0; r < call->epoch->rows; r++)
        mgl_call_load(call, x, r, 0, width, to + r * width);
}

void mgl_reference_norm(const mgl_call *call, float *to)
{
    const mgl_region *x = mgl_call_operand(call, MGL_PRODUCT_INPUT);
    const mgl_region *g = mgl_call_operand(call, MGL_PRODUCT_NORM);
    int64_t width = mgl_region_width(x, 1);
    mgl_reference_load(call, x, to);
    for (int r = 0; r < call->epoch->rows; r++)
        mgl_call_norm(call, g, r, to + r * width, width);
}

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
            mgl_call_unpack(call, s - run->first, 0, i, row);
            for (int r = 0; r < call->epoch->rows; r++) {
                float sum = mgl_dot(x + r * inputs + segment->col_lo, row, width);
                add(call, r, column, bias ? sum + bias[segment->row_lo + i] : sum, y, copy);
            }
        }
    }
}

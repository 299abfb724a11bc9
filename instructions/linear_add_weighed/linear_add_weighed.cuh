/* linear_add_weighed: y = (b + bias) + a W^T; n = y times the next norm's weight, rounded; and the
 * sum of y's squares. y may be b, element for element. */
#ifndef MGL_INSTRUCTIONS_LINEAR_ADD_WEIGHED_CUH
#define MGL_INSTRUCTIONS_LINEAR_ADD_WEIGHED_CUH

#include "vm/cuda/device/linear/panels.cuh"

#if MGL_PANELS

static __device__ __forceinline__ void leave_linear_add_weighed(const machine &m, panel_lane &p)
{
    const view b = view_of(m, operand(m, MGL_OPERAND(linear_add_weighed, b)));
    const view y = view_of(m, operand(m, MGL_OPERAND(linear_add_weighed, y)));
    const paged_view n = paged_view_of(m, operand(m, MGL_OPERAND(linear_add_weighed, n)));
    const float *g = (const float *)operand(m, MGL_OPERAND(linear_add_weighed, g)).at;
    const bias_list biases = biases_of(m);
    const int width = segment(m, 0).rows;
    /* all that is loaded is on its way before the first is stored */
    float before[2][2], weights[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int column = min(column_of(m, p, h), width - 1);
        weights[h] = g[column];
#pragma unroll
        for (int r = 0; r < 2; r++)
            before[h][r] = load_element(b, min(p.row + r, p.rows - 1), column);
    }
    float squares[2] = {};
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int column = column_of(m, p, h), first = column - (m.lane >> 2);
        if (first >= width) /* a tile's second row group that the task does not have */
            break;
        const float bias = bias_of(biases, column);
        float value[2] = {};
#pragma unroll
        for (int r = 0; r < 2; r++) {
            if (p.row + r >= p.rows)
                continue;
            value[r] = before[h][r] + bias + p.sums[h][r];
            store_element(y, p.row + r, column, value[r]);
            squares[r] = fmaf(value[r], value[r], squares[r]);
        }
        store_turned(m, n, p, first, value[0] * weights[h], value[1] * weights[h]);
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float sum = sum_of_columns(squares[r]);
        if (p.whole)
            p.squares[r] += sum;
        else if (m.lane < 4)
            panel_notes()[p.column * PANEL_ROWS + p.row + r].value += sum;
    }
}

/* A lane's squares of two rows, where these are all that the task has of them. */
static __device__ __forceinline__ void leave_whole_squares(const machine &m, const panel_lane &p)
{
    const mgl_device_operand &s = operand(m, MGL_OPERAND(linear_add_weighed, s));
#pragma unroll
    for (int r = 0; r < 2; r++)
        if (m.lane < 4 && p.row + r < p.rows)
            *row_of(s, p.row + r) = p.squares[r];
    delay();
}

/* This task's part of the squares of all rows. */
static __device__ __forceinline__ void leave_squares(const machine &m, int rows)
{
    const mgl_device_operand &s = operand(m, MGL_OPERAND(linear_add_weighed, s));
    for (int r = thread_of(m); r < rows; r += (int)THREADS) {
        float sum = 0.0f;
        for (int i = 0; i < PANEL_PARTS; i++)
            sum += panel_notes()[i * PANEL_ROWS + r].value;
        *row_of(s, r) = sum;
        delay();
    }
}

#endif

#endif

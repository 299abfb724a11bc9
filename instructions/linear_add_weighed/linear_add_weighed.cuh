/* linear_add_weighed: y = (b + bias) + a W^T; n = y times the next norm's weight, rounded; and the
 * sum of y's squares. y may be b, element for element. */
#ifndef MGL_INSTRUCTIONS_LINEAR_ADD_WEIGHED_CUH
#define MGL_INSTRUCTIONS_LINEAR_ADD_WEIGHED_CUH

#include "vm/cuda/device/linear/slim.cuh"

#if MGL_PANELS

static __device__ __forceinline__ void leave_linear_add_weighed(const machine &m,
                                                                const panel_lane &p)
{
    const view b = view_of(m, operand(m, MGL_OPERAND(linear_add_weighed, b)));
    const view y = view_of(m, operand(m, MGL_OPERAND(linear_add_weighed, y)));
    const paged_view n =
        paged_view_of<MGL_HIDDEN>(m, operand(m, MGL_OPERAND(linear_add_weighed, n)));
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
        if (m.lane < 4)
            panel_notes()[p.column * PANEL_ROWS + p.row + r].value += sum;
    }
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

/* What one output of a slim panel is made of, but for its sum, and where it goes. */
struct add_weighed_asked {
    float before, weight, bias;
    u8 *y, *n;
};

/* The outputs of a slim panel, from row group `group` on. Squares of what several panels have are
 * kept in the notes, by the lane that adds to them. */
static __device__ __forceinline__ void leave_slim_add(const machine &m, int group, bool last)
{
    const view b = view_of(m, operand(m, MGL_OPERAND(linear_add_weighed, b)));
    const view y = view_of(m, operand(m, MGL_OPERAND(linear_add_weighed, y)));
    const paged_view n =
        paged_view_of<MGL_HIDDEN>(m, operand(m, MGL_OPERAND(linear_add_weighed, n)));
    const mgl_device_operand s = operand(m, MGL_OPERAND(linear_add_weighed, s));
    const float *g = (const float *)operand(m, MGL_OPERAND(linear_add_weighed, g)).at;
    const bias_list biases = biases_of(m);
    const int rows = rows_of(m);
    leave_slim_rows(
        m, group,
        [&](int row, int column) {
            return add_weighed_asked{load_element(b, row, column), g[column],
                                     bias_of(biases, column), element_of(y, row, column),
                                     element_of(n, row, column)};
        },
        [&](float sum, const add_weighed_asked &asked) {
            const float value = asked.before + asked.bias + sum;
            store_at(asked.y, y.dtype, value);
            store_at(asked.n, n.dtype, value * asked.weight);
            return value * value;
        },
        [&](int row, float squares) {
            float *kept = &panel_notes()[min(row, rows - 1)].value;
            squares = slim_row_sum(squares);
            if (m.lane % (2 * MGL_ROW_GROUP) != 0 || row >= rows)
                return;
            const float all = group > 0 ? *kept + squares : squares;
            *(last ? row_of(s, row) : kept) = all;
            delay();
        });
}

#endif

#endif

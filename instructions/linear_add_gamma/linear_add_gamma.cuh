/* linear_add_gamma: y = (b + bias) + a W^T; n = y times the next norm's weight, rounded
 * (gamma_scaled); and the sum of squares of y. y may be b, element for element. */
#ifndef MGL_INSTRUCTIONS_LINEAR_ADD_GAMMA_CUH
#define MGL_INSTRUCTIONS_LINEAR_ADD_GAMMA_CUH

#include "vm/cuda/device/linear/small_m.cuh"

#if MGL_PANELS

static __device__ __forceinline__ void write_linear_add_gamma(const machine &m, const panel_lane &p)
{
    const view b = view_of(m, operand(m, MGL_OPERAND(linear_add_gamma, b)));
    const view y = view_of(m, operand(m, MGL_OPERAND(linear_add_gamma, y)));
    const paged_view n = paged_view_of<MGL_HIDDEN>(m, operand(m, MGL_OPERAND(linear_add_gamma, n)));
    const float *g = (const float *)operand(m, MGL_OPERAND(linear_add_gamma, g)).at;
    const bias_list biases = biases_of(m);
    const int width = segment(m, 0).rows;
    /* all loads are issued before the first store */
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
        if (first >= width) /* the task has no second row group for this tile */
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
        store_swapped(m, n, p, first, value[0] * weights[h], value[1] * weights[h]);
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float sum = sum_of_columns(squares[r]);
        if (m.lane < 4)
            panel_row_stats()[p.column * PANEL_ROWS + p.row + r].value += sum;
    }
}

/* Writes this task's part of the sums of squares of all rows. */
static __device__ __forceinline__ void write_squares(const machine &m, int rows)
{
    const mgl_device_operand &s = operand(m, MGL_OPERAND(linear_add_gamma, s));
#pragma unroll 1
    for (int r = thread_of(m); r < rows; r += (int)THREADS) {
        float sum = 0.0f;
        for (int i = 0; i < PANEL_PARTS; i++)
            sum += panel_row_stats()[i * PANEL_ROWS + r].value;
        *row_of(s, r) = sum;
        delay();
    }
}

/* The inputs of a lane's outputs of a small-M panel, except the sums, and the address of its
 * first output. */
template <int COUNT> struct add_gamma_asked {
    float before[COUNT], weight, bias;
    u8 *y, *n;
};

/* Writes the outputs of a small-M panel, from row group `group` on. Squares of rows in several
 * panels are accumulated in the row statistics, always by the same lane. */
template <int COUNT>
static __device__ __forceinline__ void write_small_m_add(const machine &m, int group, bool last)
{
    const view b = view_of(m, operand(m, MGL_OPERAND(linear_add_gamma, b)));
    const view y = view_of(m, operand(m, MGL_OPERAND(linear_add_gamma, y)));
    const paged_view n = paged_view_of<MGL_HIDDEN>(m, operand(m, MGL_OPERAND(linear_add_gamma, n)));
    const mgl_device_operand s = operand(m, MGL_OPERAND(linear_add_gamma, s));
    const float *g = (const float *)operand(m, MGL_OPERAND(linear_add_gamma, g)).at;
    const bias_list biases = biases_of(m);
    const int rows = rows_of(m);
    const u32 b_row = (u32)b.stride, y_row = (u32)y.stride, n_step = element_step(n, SMALL_M_STEP);
    write_small_m_rows<COUNT>(
        m, group,
        [&](int row, int column, int count) {
            add_gamma_asked<COUNT> asked = {};
            const u8 *from = b.at + (u32)row * b_row + (u32)column * 4;
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                if (i < count)
                    asked.before[i] = *(const float *)(from + (u32)i * (SMALL_M_STEP * b_row));
            asked.weight = g[column];
            asked.bias = bias_of(biases, column);
            asked.y = y.at + (u32)row * y_row + (u32)column * 4;
            asked.n = element_of(n, row, column);
            return asked;
        },
        [&](const add_gamma_asked<COUNT> &asked, int i, float sum, bool real) {
            const float value = asked.before[i] + asked.bias + sum;
            if (real)
                *(float *)(asked.y + (u32)i * (SMALL_M_STEP * y_row)) = value;
            delay();
            store_if(real, asked.n + (u32)i * n_step, n.dtype, value * asked.weight);
            return value * value;
        },
        [&](int row, float(&squares)[COUNT]) {
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                squares[i] = small_m_row_sum(squares[i]);
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                const int of = row + i * SMALL_M_STEP;
                if (m.lane % (2 * MGL_ROW_GROUP) != 0 || of >= rows)
                    continue;
                float *kept = &panel_row_stats()[of].value;
                *(last ? row_of(s, of) : kept) = group > 0 ? *kept + squares[i] : squares[i];
                delay();
            }
        });
}

#endif

#endif

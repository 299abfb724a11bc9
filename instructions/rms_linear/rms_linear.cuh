/* rms_linear: y = n W^T with each row multiplied by its RMS scale, plus the bias. */
#ifndef MGL_INSTRUCTIONS_RMS_LINEAR_CUH
#define MGL_INSTRUCTIONS_RMS_LINEAR_CUH

#include "vm/cuda/device/linear/small_m.cuh"

#if MGL_PANELS

static __device__ __forceinline__ void write_rms_linear(const machine &m, const panel_lane &p)
{
    const view y = view_of(m, operand(m, MGL_OPERAND(rms_linear, y)));
    const bias_list biases = biases_of(m);
    const int width = segment(m, 0).rows;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int column = column_of(m, p, h);
        if (column >= width)
            continue;
        const float bias = bias_of(biases, column);
#pragma unroll
        for (int r = 0; r < 2; r++)
            if (p.row + r < p.rows)
                store_element(y, p.row + r, column,
                              scaled(panel_scales()[p.row + r], p.sums[h][r], bias));
    }
}

/* The inputs of a lane's outputs of a small-M panel, except the sums. */
struct linear_asked {
    int row; /* first row */
    u8 *y;   /* address of its output */
    float bias;
};

/* Writes the outputs of a small-M panel, from row group `group` on. */
template <int COUNT>
static __device__ __forceinline__ void write_small_m_linear(const machine &m, int group)
{
    const view y = view_of(m, operand(m, MGL_OPERAND(rms_linear, y)));
    const bias_list biases = biases_of(m);
    const int rows = rows_of(m);
    const size_t y_step = row_step(y, SMALL_M_STEP);
    write_small_m_rows<COUNT>(
        m, group,
        [&](int row, int column, int) {
            return linear_asked{row, element_of(y, row, column), bias_of(biases, column)};
        },
        [&](const linear_asked &asked, int i, float sum, bool real) {
            const float scale = panel_scales()[min(asked.row + i * SMALL_M_STEP, rows - 1)];
            store_if(real, asked.y + i * y_step, y.dtype, scaled(scale, sum, asked.bias));
            return 0.0f;
        },
        [](int, float(&)[COUNT]) {});
}

#endif

#endif

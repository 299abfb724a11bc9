/* scaled_linear: y = n W^T, each row scaled, plus the bias. */
#ifndef MGL_INSTRUCTIONS_SCALED_LINEAR_CUH
#define MGL_INSTRUCTIONS_SCALED_LINEAR_CUH

#include "vm/cuda/device/linear/slim.cuh"

#if MGL_PANELS

static __device__ __forceinline__ void leave_scaled_linear(const machine &m, const panel_lane &p)
{
    const view y = view_of(m, operand(m, MGL_OPERAND(scaled_linear, y)));
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

/* One output of a slim panel, but for its sum. */
struct linear_asked {
    int row;
    float bias;
    u8 *y;
};

/* The outputs of a slim panel, from row group `group` on. */
static __device__ __forceinline__ void leave_slim_linear(const machine &m, int group)
{
    const view y = view_of(m, operand(m, MGL_OPERAND(scaled_linear, y)));
    const bias_list biases = biases_of(m);
    leave_slim_rows(
        m, group,
        [&](int row, int column) {
            return linear_asked{row, bias_of(biases, column), element_of(y, row, column)};
        },
        [&](float sum, const linear_asked &asked) {
            store_at(asked.y, y.dtype, scaled(panel_scales()[asked.row], sum, asked.bias));
            return 0.0f;
        },
        [](int, float) {});
}

#endif

#endif

/* scaled_linear: y = n W^T, each row scaled, plus the bias. */
#ifndef MGL_INSTRUCTIONS_SCALED_LINEAR_CUH
#define MGL_INSTRUCTIONS_SCALED_LINEAR_CUH

#include "vm/cuda/device/linear/panels.cuh"

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

#endif

#endif

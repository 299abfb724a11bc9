/* scaled_swiglu: y = silu(n W^T + bias) * (n W2^T + bias2), each row of n scaled. Row groups of
 * gate and up stand in turn: a lane has both of a column. */
#ifndef MGL_INSTRUCTIONS_SCALED_SWIGLU_CUH
#define MGL_INSTRUCTIONS_SCALED_SWIGLU_CUH

#include "instructions/norm_swiglu/norm_swiglu.cuh"
#include "vm/cuda/device/linear/panels.cuh"

#if MGL_PANELS

static __device__ __forceinline__ paged_view swiglu_output(const machine &m)
{
    return paged_view_of<MGL_FFN>(m, operand(m, MGL_OPERAND(scaled_swiglu, y)));
}

static __device__ __forceinline__ void leave_scaled_swiglu(const machine &m, const panel_lane &p,
                                                           const paged_view &y)
{
    const bias_list biases = biases_of(m);
    const int first = p.group / 2 * MGL_ROW_GROUP, column = first + (m.lane >> 2);
    float value[2];
#pragma unroll
    for (int r = 0; r < 2; r++)
        value[r] = gated_at(biases, column, panel_scales()[min(p.row + r, p.rows - 1)],
                            p.sums[0][r], p.sums[1][r]);
    store_turned(m, y, p, first, value[0], value[1]);
}

#endif

#endif

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

/* The same of sums that are a warp's own, tile after tile. */
static __device__ __forceinline__ void leave_own_swiglu(const machine &m, const own_tiles &own_sums)
{
    const paged_view y = swiglu_output(m);
    const int rows = rows_of(m), first = own_sums.group / 2 * MGL_ROW_GROUP;
    const float2 bias = biases_of_pair(biases_of(m), first + (m.lane >> 2));
    const size_t step = element_step(y, PANEL_TILE);
    const float *from = own_sums.from;
    int row = own_sums.row;
    u8 *to = element_of(y, row + (m.lane >> 2), first + (m.lane & 3) * 2);
#pragma unroll 1
    for (int n = 0; n < own_sums.count; n++) {
        float value[2];
#pragma unroll
        for (int r = 0; r < 2; r++)
            value[r] = gated(panel_scales()[min(row + (m.lane & 3) * 2 + r, rows - 1)],
                             from[r * 32], from[(2 + r) * 32], bias);
        const u32 word = transposed(pack_pair(y.dtype, value[0], value[1]));
        if (row + (m.lane >> 2) < rows)
            *(u32 *)to = word;
        delay();
        from += TILE_SUMS;
        row += PANEL_TILE;
        to += step;
    }
}

#endif

#endif

/* rms_swiglu: y = silu(n W^T + bias) * (n W2^T + bias2), with each row of n multiplied by its
 * RMS scale. Row groups of gate and up alternate: a lane has both values of a column. */
#ifndef MGL_INSTRUCTIONS_RMS_SWIGLU_CUH
#define MGL_INSTRUCTIONS_RMS_SWIGLU_CUH

#include "instructions/norm_swiglu/norm_swiglu.cuh"
#include "vm/cuda/device/linear/panels.cuh"

#if MGL_PANELS

static __device__ __forceinline__ paged_view swiglu_output(const machine &m)
{
    return paged_view_of<MGL_FFN>(m, operand(m, MGL_OPERAND(rms_swiglu, y)));
}

static __device__ __forceinline__ void write_rms_swiglu(const machine &m, const panel_lane &p,
                                                        const paged_view &y)
{
    const bias_list biases = biases_of(m);
    const int first = p.group / 2 * MGL_ROW_GROUP, column = first + (m.lane >> 2);
    float value[2];
#pragma unroll
    for (int r = 0; r < 2; r++)
        value[r] = gated_at(biases, column, panel_scales()[min(p.row + r, p.rows - 1)],
                            p.sums[0][r], p.sums[1][r]);
    store_swapped(m, y, p, first, value[0], value[1]);
}

/* The same for sums of one warp, of row groups `group` and `group` + 1: this lane's four sums of
 * each tile of PANEL_TILE rows, in the order of panel_lane. The scales of AT_ONCE tiles are
 * loaded before the first store, so that loads do not wait for stores. */
template <int ROWS>
static __device__ __forceinline__ void write_own_swiglu(const machine &m, int group,
                                                        const float (&sums)[ROWS / 2])
{
    enum { TILES = ROWS / PANEL_TILE, AT_ONCE = TILES < 4 ? TILES : 4 };
    const paged_view y = swiglu_output(m);
    const int rows = rows_of(m), first = group / 2 * MGL_ROW_GROUP, row = m.lane >> 2;
    const float2 bias = biases_of_pair(biases_of(m), first + row);
    const u32 step = (u32)element_step(y, PANEL_TILE);
    u8 *const to = element_of(y, row, first + (m.lane & 3) * 2);
#pragma unroll
    for (int tile = 0; tile < TILES; tile += AT_ONCE) {
        if (tile * PANEL_TILE >= rows)
            break;
        float scale[AT_ONCE][2];
#pragma unroll
        for (int t = 0; t < AT_ONCE; t++)
#pragma unroll
            for (int r = 0; r < 2; r++)
                scale[t][r] =
                    panel_scales()[min((tile + t) * PANEL_TILE + (m.lane & 3) * 2 + r, rows - 1)];
#pragma unroll
        for (int t = 0; t < AT_ONCE; t++) {
            const float *of = sums + (tile + t) * 4;
            const u32 word = transposed(pack_pair(y.dtype, gated(scale[t][0], of[0], of[2], bias),
                                                  gated(scale[t][1], of[1], of[3], bias)));
            if ((tile + t) * PANEL_TILE + row < rows)
                *(u32 *)(to + (u32)(tile + t) * step) = word;
            delay();
        }
    }
}

#endif

#endif

/* norm_swiglu: y = silu(n W^T + bias) (n W2^T + bias2), n = RMSNorm(x); silu(z) = z / (1 +
 * exp(-z)). The consumers compute both products with consume_product. This file has the rest, which
 * dispatch.cuh calls: prepare_norm_swiglu announces x to the consumers, and finish_norm_swiglu, the
 * epilogue, applies the RMS scale, the biases and silu, and writes y. */
#ifndef MGL_INSTRUCTIONS_NORM_SWIGLU_CUH
#define MGL_INSTRUCTIONS_NORM_SWIGLU_CUH

#include "vm/cuda/device/linear/finish_rows.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
/* region: device */
static __device__ __forceinline__ float gated(float scale, float gate, float up, float2 biases)
{
    gate = scaled(scale, gate, biases.x);
    return __fdividef(gate, 1.0f + expf(-gate)) * scaled(scale, up, biases.y);
}

/* gated, with the biases of a column. */
static __device__ __forceinline__ float gated_at(const bias_list &biases, int column, float scale,
                                                 float gate, float up)
{
    return gated(scale, gate, up, biases_of_pair(biases, column));
}

/* The epilogue of several rows. The first branch is for flagged outputs of the weights' dtype. */
static __device__ __forceinline__ void finish_swiglu_rows(machine &m, int count, const view &y)
{
    const u64 policy = keep_policy();
    const bias_list biases = biases_of(m);
    const int columns = operand(m, MGL_OPERAND(norm_swiglu, x)).count[1];
    if (has_pairs<MGL_WEIGHT>(y, true)) {
        const auto to = pair_rows_of<MGL_WEIGHT>(m, y, count);
        return finish_pair_rows(
            m, count, columns, [&](int look, const pair &p, float scale, float2 gate, float2 up) {
                store_flagged(to, look, p, gated_at(biases, p.column, scale, gate.x, up.x),
                              gated_at(biases, p.column + 1, scale, gate.y, up.y), policy);
            });
    }
    finish_pair_rows(
        m, count, columns, [&](int, const pair &p, float scale, float2 gate, float2 up) {
            store_pair(y, p.row, p.column, gated_at(biases, p.column, scale, gate.x, up.x),
                       gated_at(biases, p.column + 1, scale, gate.y, up.y), p.both, policy);
        });
}

/* The epilogue of one row. */
static __device__ __forceinline__ void finish_swiglu_row(machine &m, const view &y, u64 policy)
{
    const row_output to = row_output_of(y);
    const bias_list biases = biases_of(m);
    finish_pair_row(
        m, operand(m, MGL_OPERAND(norm_swiglu, x)).count[1],
        [biases](int column) { return biases_of_pair(biases, column); }, gated,
        [&](int column, float first, float second, bool mine, bool both) {
            store_output(to, column, first, second, mine, both, policy);
        });
}

static __device__ __forceinline__ void prepare_norm_swiglu(const machine &m)
{
    prepare_input(m, true, rows_of(m), nullptr);
}

static __device__ __forceinline__ bool finish_norm_swiglu(machine &m)
{
    const view y = view_of(m, operand(m, MGL_OPERAND(norm_swiglu, y)));
    const int count = rows_of(m);
    const u64 policy = keep_policy();
    if (has_rows(count))
        finish_swiglu_rows(m, count, y);
    else if (count == 1)
        finish_swiglu_row(m, y, policy);
    return true;
}

/* region: end */

#endif

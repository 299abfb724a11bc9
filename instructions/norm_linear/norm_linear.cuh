/* norm_linear: y = RMSNorm(x) W^T + bias; the rows of all segments are consecutive columns of y.
 * The consumers run consume_product, and the epilogue warp runs finish_norm_linear. */
#include "vm/cuda/device/linear/finish_rows.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
/* region: device */
/* Several rows, to flagged f32 or any other output. */
static __device__ __forceinline__ void finish_linear_rows(machine &m, int count, const view &y)
{
    const u64 policy = keep_policy();
    const int columns = operand(m, MGL_OPERAND(norm_linear, x)).count[1];
    const bias_list biases = biases_of(m);
    const auto ask = [biases](int, const pair &p) { return bias_of(biases, p); };
    if (has_pairs<DTYPE_F32>(y, true)) {
        const auto to = pair_rows_of<DTYPE_F32>(m, y, count);
        return finish_rows(m, count, columns, ask,
                           [&](int look, const pair &p, float scale, float2 sums, float2 bias) {
                               store_flagged(to, look, p, scaled(scale, sums.x, bias.x),
                                             scaled(scale, sums.y, bias.y), policy);
                           });
    }
    finish_rows(m, count, columns, ask,
                [&](int, const pair &p, float scale, float2 sums, float2 bias) {
                    store_pair(y, p.row, p.column, scaled(scale, sums.x, bias.x),
                               scaled(scale, sums.y, bias.y), p.both, policy);
                });
}

/* One row. */
static __device__ __forceinline__ void finish_linear_row(machine &m, const view &y, u64 policy)
{
    const row_output to = row_output_of(y);
    const bias_list biases = biases_of(m);
    finish_row(
        m, operand(m, MGL_OPERAND(norm_linear, x)).count[1],
        [biases](int column) { return bias_of(biases, column); }, scaled,
        [&](int column, float first, float second, bool mine, bool both) {
            store_output(to, column, first, second, mine, both, policy);
        });
}

static __device__ __forceinline__ void prepare_norm_linear(const machine &m)
{
    prepare_input(m, true, rows_of(m), nullptr);
}

static __device__ __forceinline__ bool finish_norm_linear(machine &m)
{
    const view y = view_of(m, operand(m, MGL_OPERAND(norm_linear, y)));
    const int count = rows_of(m);
    const u64 policy = keep_policy();
    if (has_rows(count))
        finish_linear_rows(m, count, y);
    else if (count == 1)
        finish_linear_row(m, y, policy);
    return true;
}

/* region: end */

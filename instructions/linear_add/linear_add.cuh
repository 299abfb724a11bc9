/* linear_add: y = (b + bias) + a W^T, and a rounded copy; y may be b, element for element. The
 * consumers run consume_product, and the epilogue warp runs finish_linear_add. */
#ifndef MGL_INSTRUCTIONS_LINEAR_ADD_CUH
#define MGL_INSTRUCTIONS_LINEAR_ADD_CUH

#include "vm/cuda/device/linear/finish_rows.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
/* region: device */
/* The residual of a column, or of a pair of columns, plus the bias. */
static __device__ __forceinline__ float add_bias(const bias_list &biases, int column, float before)
{
    return MGL_BIAS ? before + bias_of(biases, column) : before;
}

static __device__ __forceinline__ float2 add_bias(const bias_list &biases, const pair &p,
                                                  float2 before)
{
    if (!MGL_BIAS)
        return before;
    const float2 bias = bias_of(biases, p);
    return make_float2(before.x + bias.x, before.y + bias.y);
}

/* Several rows: the residual is loaded before the sums are complete. */
static __device__ __forceinline__ void finish_add_any(machine &m, int count, const view &b,
                                                      const view &y, const view &copy, bool copies)
{
    const u64 policy = keep_policy();
    const bias_list biases = biases_of(m);
    finish_rows(
        m, count, 0,
        [&](int, const pair &p) {
            return add_bias(biases, p,
                            make_float2(load_element(b, p.row, p.column),
                                        p.both ? load_element(b, p.row, p.column + 1) : 0.0f));
        },
        [&](int, const pair &p, float, float2 sums, float2 before) {
            const float first = sums.x + before.x, second = sums.y + before.y;
            if (copies) /* first, because other queues wait for the copy */
                store_pair(copy, p.row, p.column, first, second, p.both, policy);
            store_pair(y, p.row, p.column, first, second, p.both, policy);
        });
}

/* finish_add_any for f32 with a flagged copy: the residual stream of decoding. */
static __device__ __forceinline__ void finish_add_rows(machine &m, int count, const view &b,
                                                       const view &y, const view &copy, bool copies)
{
    const u64 policy = keep_policy();
    if (!copies || !has_pairs<DTYPE_F32>(b, false) || !has_pairs<DTYPE_F32>(y, false) ||
        !has_pairs<DTYPE_F32>(copy, true))
        return finish_add_any(m, count, b, y, copy, copies);
    const auto before = pair_rows_of<DTYPE_F32>(m, b, count);
    const auto sum = pair_rows_of<DTYPE_F32>(m, y, count);
    const auto told = pair_rows_of<DTYPE_F32>(m, copy, count);
    const bias_list biases = biases_of(m);
    finish_rows(
        m, count, 0,
        [&](int look, const pair &p) {
            return add_bias(biases, p, *(const float2 *)pair_at(before, look, p));
        },
        [&](int look, const pair &p, float, float2 sums, float2 asked) {
            const float2 total = make_float2(sums.x + asked.x, sums.y + asked.y);
            store_flagged(told, look, p, total.x, total.y, policy);
            *(float2 *)pair_at(sum, look, p) = total;
        });
}

/* One row: each lane loads the residual of its column before the sum is complete. */
static __device__ __forceinline__ void finish_add_row(machine &m, const view &b, const view &y,
                                                      const view &copy, bool copies, int width)
{
    const row_output first_to = row_output_of(copy), then_to = row_output_of(y);
    const u64 policy = keep_policy();
    const bias_list biases = biases_of(m);
    finish_row(
        m, 0,
        [&](int column) {
            return add_bias(biases, column, column < width ? load_element(b, 0, column) : 0.0f);
        },
        [&](float, float value, float before) { return before + value; },
        [&](int column, float first, float second, bool mine, bool both) {
            store_output(first_to, column, first, second, mine && copies, both, policy);
            store_output(then_to, column, first, second, mine, both, policy);
        });
}

static __device__ __forceinline__ void prepare_linear_add(const machine &m)
{
    prepare_input(m, false, rows_of(m), nullptr);
}

static __device__ __forceinline__ bool finish_linear_add(machine &m)
{
    const int place = MGL_OPERAND(linear_add, y);
    const view b = view_of(m, operand(m, MGL_OPERAND(linear_add, b)));
    const view y = view_of(m, operand(m, place));
    const bool copies = task_of(m)->outputs > 1;
    const view copy = view_of(m, operand(m, copies ? MGL_OPERAND(linear_add, copy) : place));
    const int count = rows_of(m);
    if (has_rows(count))
        finish_add_rows(m, count, b, y, copy, copies);
    else if (count == 1)
        finish_add_row(m, b, y, copy, copies, operand(m, place).count[1]);
    return true;
}

/* region: end */

#endif

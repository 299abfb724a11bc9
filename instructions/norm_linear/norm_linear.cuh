/* norm_linear: y = RMSNorm(x) W^T; the segments' rows stand one after the other in y. Operands x, g;
 * y. */
#include "vm/cuda/device/finish_rows.cuh"

static __device__ __forceinline__ void prepare_norm_linear(const machine &m)
{
    prepare_input(m, true, rows_of(m), nullptr);
}

/* Several rows: to flagged f32, or any output. */
static __device__ __forceinline__ void finish_linear_rows(machine &m, int count, const view &y)
{
    const u64 policy = keep_policy();
    const int columns = operand(m, 0).count[1];
    const auto nothing = [](int, const pair &) { return make_float2(0.0f, 0.0f); };
    if (has_pairs<DTYPE_F32>(y, true)) {
        const auto to = pair_rows_of<DTYPE_F32>(m, y, count);
        return finish_rows(m, count, columns, nothing,
                           [&](int look, const pair &p, float scale, float2 sums, float2) {
                               store_flagged(to, look, p, sums.x * scale, sums.y * scale, policy);
                           });
    }
    finish_rows(m, count, columns, nothing,
                [&](int, const pair &p, float scale, float2 sums, float2) {
                    store_pair(y, p.row, p.column, sums.x * scale, sums.y * scale, p.both, policy);
                });
}

static __device__ __forceinline__ void finish_norm_linear(machine &m)
{
    const view y = view_of(m, operand(m, 2));
    int count = rows_of(m);
    u64 policy = keep_policy();
    if (has_rows(count))
        return finish_linear_rows(m, count, y);
    if (count != 1)
        return;
    const row_output to = row_output_of(y);
    finish_row(
        m, operand(m, 0).count[1], [](int) { return 0.0f; },
        [](float scale, float value, float) { return value * scale; },
        [&](int column, float first, float second, bool mine, bool both) {
            store_output(to, column, first, second, mine, both, policy);
        });
}

/* norm_linear: y = RMSNorm(x) W^T; the segments' rows stand one after the other in y. Operands x, g;
 * y. */
#include "vm/cuda/device/finish_rows.cuh"

static __device__ __forceinline__ void prepare_norm_linear(const machine &m)
{
    prepare_input(m, true, rows_of(m), nullptr);
}

static __device__ __forceinline__ void finish_norm_linear(machine &m)
{
    const view y = view_of(m, operand(m, 2));
    int count = rows_of(m);
    u64 policy = keep_policy();
    if (has_rows(count))
        return finish_rows(
            m, count, operand(m, 0).count[1], [](const pair &) { return make_float2(0.0f, 0.0f); },
            [&](int, const pair &p, float scale, float2 sums, float2) {
                store_pair(y, p.row, p.column, sums.x * scale, sums.y * scale, p.both, policy);
            });
    if (count == 1)
        finish_row(
            m, operand(m, 0).count[1], [&](float scale, float value, int) { return value * scale; },
            [&](int r, int column, float first, float second, bool both) {
                store_pair(y, r, column, first, second, both, policy);
            });
}

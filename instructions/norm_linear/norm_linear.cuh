/* norm_linear: y = RMSNorm(x) W^T; the segments' rows stand one after the other in y. Operands x, g;
 * y. */
#include "vm/cuda/device/finish.cuh"

static __device__ __forceinline__ void prepare_norm_linear(const machine &m)
{
    prepare_input(m, true, rows_of(m), nullptr);
}

static __device__ __forceinline__ void finish_norm_linear(machine &m)
{
    const view y = view_of(m, operand(m, 2));
    int count = rows_of(m);
    u64 policy = keep_policy();
    finish_linear(
        m, count, operand(m, 0).count[1], [&](float scale, float value) { return value * scale; },
        [&](int r, int column, float first, float second, bool both) {
            store_pair(y, r, column, first, second, both, policy);
        });
}

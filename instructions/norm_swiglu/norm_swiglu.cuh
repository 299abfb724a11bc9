/* norm_swiglu: y = silu(n W^T) (n W2^T), n = RMSNorm(x); silu(z) = z / (1 + exp(-z)). Operands x, g;
 * y. */
#include "vm/cuda/device/finish_rows.cuh"

static __device__ __forceinline__ void prepare_norm_swiglu(const machine &m)
{
    prepare_input(m, true, rows_of(m), nullptr);
}

static __device__ __forceinline__ float gated(float scale, float gate, float up)
{
    gate *= scale;
    return __fdividef(gate, 1.0f + expf(-gate)) * (up * scale);
}

static __device__ __forceinline__ void finish_norm_swiglu(machine &m)
{
    const view y = view_of(m, operand(m, 2));
    int count = rows_of(m);
    u64 policy = keep_policy();
    if (has_rows(count))
        return finish_pair_rows(m, count, operand(m, 0).count[1],
                                [&](const pair &p, float scale, float2 gate, float2 up) {
                                    store_pair(y, p.row, p.column, gated(scale, gate.x, up.x),
                                               gated(scale, gate.y, up.y), p.both, policy);
                                });
    if (count == 1)
        finish_pair_row(m, operand(m, 0).count[1], gated,
                        [&](int r, int column, float first, float second, bool both) {
                            store_pair(y, r, column, first, second, both, policy);
                        });
}

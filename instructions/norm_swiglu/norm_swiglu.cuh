/* norm_swiglu: y = silu(n W^T) (n W2^T), n = RMSNorm(x); silu(z) = z / (1 + exp(-z)). */
#include "vm/cuda/device/linear.cuh"

static __device__ void op_norm_swiglu(machine &m)
{
    const mgl_device_operand &y = operand(m, 2);
    input in = input_of(m, true);
    prepare(m, in);
    linear_pair(m, in, segment(m, 0), [&](int o, int j, float gate, float up) {
        row_of(y, j)[o] = gate / (1.0f + expf(-gate)) * up;
    });
}

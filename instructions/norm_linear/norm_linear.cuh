/* norm_linear: y = RMSNorm(x) W^T; the segments' rows stand one after the other in y. */
#include "vm/cuda/device/linear.cuh"

static __device__ void op_norm_linear(machine &m)
{
    const mgl_device_operand &y = operand(m, 2);
    input in = input_of(m, true);
    int column = 0;
    prepare(m, in);
    for (int i = 0; i < m.task->segments; i++) {
        linear(m, in, segment(m, i),
               [&](int o, int j, float value) { row_of(y, j)[column + o] = value; });
        column += segment(m, i).rows;
    }
}

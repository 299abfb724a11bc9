/* linear_add: y = b + a W^T; y may be b, element for element. */
#include "vm/cuda/device/linear.cuh"

static __device__ void op_linear_add(machine &m)
{
    const mgl_device_operand &b = operand(m, 1), &y = operand(m, 2);
    input in = input_of(m, false);
    int column = 0;
    prepare(m, in);
    for (int i = 0; i < m.task->segments; i++) {
        linear(m, in, segment(m, i), [&](int o, int j, float value) {
            row_of(y, j)[column + o] = row_of(b, j)[column + o] + value;
        });
        column += segment(m, i).rows;
    }
}

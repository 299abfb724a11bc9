/* attend: one kv head, all positions. Operands q, k, v, rope, k_past, v_past; y, k_now, v_now. */
#include "vm/cuda/device/attention.cuh"

static __device__ void op_attend(machine &m)
{
    const mgl_device_operand &y = operand(m, 6);
    append(m, operand(m, 1), operand(m, 2), operand(m, 3), operand(m, 7), operand(m, 8));
    attention a = {&operand(m, 0), &operand(m, 3), &operand(m, 4), &operand(m, 5), 0, 1, true};
    attend_rows(m, a, [&](int r, int head, int d, float value, float, float sum) {
        row_of(y, r)[head * HEAD_DIM + d] = value / sum;
    });
}

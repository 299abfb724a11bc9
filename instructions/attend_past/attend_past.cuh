/* attend_past: a split of the earlier positions. Operands q, rope, k_past, v_past; part. */
#include "vm/cuda/device/attention.cuh"

static __device__ void op_attend_past(machine &m)
{
    const mgl_device_operand &part = operand(m, 4);
    attention a = {&operand(m, 0), &operand(m, 1), &operand(m, 2), &operand(m, 3),
                   part.first0,    part.extent0,   false};
    attend_part(m, a, part);
}

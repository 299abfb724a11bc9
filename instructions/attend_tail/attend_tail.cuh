/* attend_tail: appends, and attends to a split of the earlier positions and to this epoch's rows.
 * Operands q, k, v, rope, k_past, v_past; part, k_now, v_now. */
#include "vm/cuda/device/attention.cuh"

static __device__ void op_attend_tail(machine &m)
{
    const mgl_device_operand &part = operand(m, 6);
    append(m, operand(m, 1), operand(m, 2), operand(m, 3), operand(m, 7), operand(m, 8));
    attention a = {&operand(m, 0),
                   &operand(m, 3),
                   &operand(m, 4),
                   &operand(m, 5),
                   part.first0,
                   part.extent0,
                   true};
    attend_part(m, a, part);
}

/* attend: one kv head, all positions. Operands q, k, v, rope, k_past, v_past; y, k_now, v_now. */
#include "vm/cuda/device/attention.cuh"

static __device__ __forceinline__ void prepare_attend(const machine &m)
{
    attention &a = prepare_attention(m, 3, 4, 5);
    prepare_now(m, a);
    a.y = view_of(m, operand(m, 6));
    announce_past(m);
}

/* attend_tail: appends, and attends to a split of the earlier positions and to this epoch's rows.
 * Operands q, k, v, rope, k_past, v_past; part, k_now, v_now. */
#include "vm/cuda/device/attention.cuh"

static __device__ __forceinline__ void prepare_attend_tail(const machine &m)
{
    attention &a = prepare_attention(m, 3, 4, 5);
    prepare_now(m, a);
    prepare_part(m, a, 6);
    announce_past(m);
}

/* attend_past: a split of the earlier positions. Operands q, rope, k_past, v_past; part. */
#include "vm/cuda/device/attention.cuh"

static __device__ __forceinline__ void prepare_attend_past(const machine &m)
{
    attention &a = prepare_attention(m, 1, 2, 3);
    prepare_part(m, a, 4);
    announce_past(m);
}

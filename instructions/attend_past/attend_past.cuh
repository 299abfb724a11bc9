/* attend_past: one split of the earlier positions. The consumers run consume_attention. */
#include "vm/cuda/device/attention/attention.cuh"

static __device__ __forceinline__ void prepare_attend_past(const machine &m)
{
    attention &a =
        prepare_attention(m, MGL_OPERAND(attend_past, q), MGL_OPERAND(attend_past, rope),
                          MGL_OPERAND(attend_past, k_past), MGL_OPERAND(attend_past, v_past));
    prepare_part(m, a, MGL_OPERAND(attend_past, part));
    announce_kv(m);
}

/* attend_tail: appends to the cache, and attends to one split of the earlier positions and to
 * this epoch's rows. The consumers run consume_attention. */
#include "vm/cuda/device/attention/attention.cuh"

static __device__ __forceinline__ void prepare_attend_tail(const machine &m)
{
    attention &a =
        prepare_attention(m, MGL_OPERAND(attend_tail, q), MGL_OPERAND(attend_tail, rope),
                          MGL_OPERAND(attend_tail, k_past), MGL_OPERAND(attend_tail, v_past));
    prepare_now(m, a, MGL_OPERAND(attend_tail, k), MGL_OPERAND(attend_tail, v));
    prepare_part(m, a, MGL_OPERAND(attend_tail, part));
    announce_kv(m);
}

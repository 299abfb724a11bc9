/* attend: attention of one kv head, all positions. The consumers run consume_attention. */
#include "vm/cuda/device/attention/attention.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
/* region: device */
static __device__ __forceinline__ void prepare_attend(const machine &m)
{
    attention &a = prepare_attention(m, MGL_OPERAND(attend, q), MGL_OPERAND(attend, rope),
                                     MGL_OPERAND(attend, k_past), MGL_OPERAND(attend, v_past));
    prepare_now(m, a, MGL_OPERAND(attend, k), MGL_OPERAND(attend, v));
    a.y = view_of(m, operand(m, MGL_OPERAND(attend, y)));
    a.rows = operand(m, MGL_OPERAND(attend, y)).first0;
    announce_kv(m);
}

/* region: end */

/* attend_rows: one kv head, all positions, for a share of the rows. The consumers run
 * consume_attend_rows. */
#include "vm/cuda/device/attention/decode_row.cuh"

#if MGL_ATTEND_ROWS

static __device__ __forceinline__ void prepare_attend_rows(const machine &m)
{
    attention &a =
        prepare_attention(m, MGL_OPERAND(attend_rows, q), MGL_OPERAND(attend_rows, rope),
                          MGL_OPERAND(attend_rows, k_past), MGL_OPERAND(attend_rows, v_past));
    prepare_now(m, a, MGL_OPERAND(attend_rows, k), MGL_OPERAND(attend_rows, v));
    a.y = view_of(m, operand(m, MGL_OPERAND(attend_rows, y)));
    a.now = task_of(m)->outputs > 1; /* the task appends to the cache */
}

#endif

/* attend_past: one split's share of the earlier positions. */
#include "instructions/attend_past/partial.h"

void mgl_attention_partial(const mgl_call *call, mgl_attention *a, const mgl_region *part)
{
    const mgl_buffer *buffer = mgl_call_buffer(call, part);
    int64_t d = mgl_call_buffer(call, a->k_cache)->extents[3].count;
    float *partial = call->scratch; /* (head_dim + 4), of which the buffer may have two less */
    int heads = (int)mgl_region_width(part, 2);
    a->split = (int)part->ranges[0].lo;
    a->splits = (int)buffer->extents[0].count;
    for (int r = 0; r < call->epoch->rows; r++) {
        for (int h = 0; h < heads; h++) {
            float *to = (float *)mgl_call_at(call, part) + r * mgl_buffer_stride(buffer, 1) +
                        h * mgl_buffer_stride(buffer, 2);
            mgl_attention_row(call, a, r, h, partial, &partial[d], &partial[d + 1]);
            partial[d + 2] = partial[d + 3] = 0.0f;
            mgl_publish(to, MGL_F32, partial, buffer->extents[3].count);
        }
    }
}

void mgl_reference_ATTEND_PAST(const mgl_call *call)
{
    mgl_attention a = {.q = mgl_call_in(call, 0),
                       .rope = mgl_call_in(call, 1),
                       .k_cache = mgl_call_in(call, 2),
                       .v_cache = mgl_call_in(call, 3)};
    mgl_attention_partial(call, &a, mgl_call_out(call, 0));
}

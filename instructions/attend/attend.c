/* attend: one kv head, whole. */
#include "instructions/reference.h"

void mgl_reference_ATTEND(const mgl_call *call)
{
    const mgl_region *q = mgl_call_in(call, 0), *rope = mgl_call_in(call, 3);
    const mgl_region *y = mgl_call_out(call, 0);
    const mgl_region *k_now = mgl_call_out(call, 1), *v_now = mgl_call_out(call, 2);
    mgl_attention a = {
        .q = q, .rope = rope, .k_cache = k_now, .v_cache = v_now, .splits = 1, .tail = true};
    int64_t d = mgl_call_buffer(call, k_now)->extents[3].count;
    int heads = (int)(mgl_region_width(q, 1) / d);
    mgl_attention_append(call, mgl_call_in(call, 1), mgl_call_in(call, 2), rope, k_now, v_now);
    for (int r = 0; r < call->epoch->rows; r++) {
        for (int h = 0; h < heads; h++) {
            float *mean = call->scratch, max, total; /* (head_dim) */
            mgl_attention_row(call, &a, r, h, mean, &max, &total);
            for (int64_t i = 0; i < d; i++)
                mean[i] /= total;
            mgl_call_store(call, y, r, h * d, d, mean);
        }
    }
}

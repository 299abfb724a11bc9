/* Reference of merge, the reduction of split attention: y = sum of exp(m_i - m) part_i / sum of
 * exp(m_i - m) total_i, with m the largest m_i; split 0 first. A split without positions has m_i
 * = -inf and adds nothing. */
#include "instructions/merge/merge.h"

#include <math.h>

static void merge_head(const float *part, int64_t stride, int splits, int64_t d, float *to)
{
    float max = -INFINITY, total = 0.0f;
    for (int i = 0; i < splits; i++)
        max = part[i * stride + d] > max ? part[i * stride + d] : max;
    for (int64_t j = 0; j < d; j++)
        to[j] = 0.0f;
    for (int i = 0; i < splits; i++) {
        const float *p = part + i * stride;
        float weight = expf(p[d] - max);
        for (int64_t j = 0; j < d; j++)
            to[j] += weight * p[j];
        total += weight * p[d + 1];
    }
    for (int64_t j = 0; j < d; j++)
        to[j] /= total;
}

void mgl_merge_row(const mgl_call *call, const mgl_region *part, int r, float *to)
{
    const mgl_buffer *buffer = mgl_call_buffer(call, part);
    const float *from = (const float *)mgl_call_at(call, part) + r * mgl_buffer_stride(buffer, 1);
    int64_t d = call->program->geometry.head_dim;
    for (int h = 0; h < mgl_region_width(part, 2); h++)
        merge_head(from + h * mgl_buffer_stride(buffer, 2), mgl_buffer_stride(buffer, 0),
                   (int)buffer->extents[0].count, d, to + h * d);
}

void mgl_reference_merge(const mgl_call *call)
{
    const mgl_region *part = MGL_CALL(call, merge, part), *y = MGL_CALL(call, merge, y);
    for (int r = 0; r < call->epoch->rows; r++) {
        if (!mgl_call_has_row(call, part, r))
            continue;
        mgl_merge_row(call, part, r, call->scratch);
        mgl_call_store(call, y, r, 0, mgl_region_width(y, 1), call->scratch);
    }
}

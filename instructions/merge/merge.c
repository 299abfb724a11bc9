/* merge: y = sum of exp(m_i - m) part_i / sum of exp(m_i - m) total_i, m the largest m_i; split 0
 * first. A split without positions has m_i = -inf and adds nothing. */
#include "instructions/reference.h"

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

void mgl_reference_merge(const mgl_call *call)
{
    const mgl_region *part = MGL_CALL(call, merge, part), *y = MGL_CALL(call, merge, y);
    const mgl_buffer *buffer = mgl_call_buffer(call, part);
    int64_t d = call->program->geometry.head_dim;
    for (int r = 0; r < call->epoch->rows; r++) {
        for (int h = 0; h < mgl_region_width(part, 2); h++) {
            const float *from = (const float *)mgl_call_at(call, part) +
                                r * mgl_buffer_stride(buffer, 1) + h * mgl_buffer_stride(buffer, 2);
            merge_head(from, mgl_buffer_stride(buffer, 0), (int)buffer->extents[0].count, d,
                       call->scratch);
            mgl_call_store(call, y, r, h * d, d, call->scratch);
        }
    }
}

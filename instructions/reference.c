/*
 * The arithmetic that several ops share, and where their regions lie in memory.
 */
#include "instructions/reference.h"

#include <math.h>

mgl_op_fn *mgl_reference_op(mgl_op op)
{
    static mgl_op_fn *const ops[] = {
#define MGL_OP(id, name, tape, operands, meaning) mgl_reference_##id,
#include "instructions/ops.def"
#undef MGL_OP
    };
    return ops[op];
}

size_t mgl_reference_scratch(const mgl_program *program)
{
    const mgl_geometry *m = &program->geometry;
    size_t widest = (size_t)m->hidden > (size_t)m->ffn ? (size_t)m->hidden : (size_t)m->ffn;
    size_t heads = (size_t)m->heads * (size_t)m->head_dim;
    widest = widest > heads ? widest : heads;
    /* a normed row for each row and a weight row; or a head's q, k and sums, and its scores */
    size_t linear = (MGL_MAX_ROWS + 1) * widest;
    size_t attention = 4 * (size_t)m->head_dim + (size_t)program->limits.capacity + MGL_MAX_ROWS;
    return linear > attention ? linear : attention;
}

void *mgl_call_at(const mgl_call *call, const mgl_region *region)
{
    const mgl_buffer *buffer = mgl_call_buffer(call, region);
    int64_t offset = 0;
    for (int i = 0; i < buffer->rank; i++)
        offset += region->ranges[i].lo * mgl_buffer_stride(buffer, i);
    return (char *)call->buffers[region->buffer] + offset * (int64_t)mgl_dtype_size(buffer->dtype);
}

float *mgl_call_row(const mgl_call *call, const mgl_region *region, int r)
{
    return (float *)mgl_call_at(call, region) +
           r * mgl_buffer_stride(mgl_call_buffer(call, region), 0);
}

float mgl_dot(const float *a, const float *b, int64_t n)
{
    float sums[16] = {0};
    int64_t whole = n - n % 16;
    for (int64_t i = 0; i < whole; i += 16)
        for (int j = 0; j < 16; j++)
            sums[j] += a[i + j] * b[i + j];
    for (int64_t i = whole; i < n; i++)
        sums[i - whole] += a[i] * b[i];
    for (int half = 8; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            sums[j] += sums[j + half];
    return sums[0];
}

void mgl_rms_norm(float *to, const float *x, const float *g, int64_t n, float eps)
{
    float mean = mgl_dot(x, x, n) / (float)n;
    float scale = 1.0f / sqrtf(mean + eps);
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i] * scale * g[i];
}

float mgl_swiglu(float gate, float up)
{
    return gate / (1.0f + expf(-gate)) * up;
}

void mgl_rope(float *to, const float *x, const float *rope, int head_dim)
{
    int half = head_dim / 2;
    for (int i = 0; i < half; i++) {
        float a = x[i], b = x[i + half];
        to[i] = a * rope[i] - b * rope[half + i];
        to[i + half] = b * rope[i] + a * rope[half + i];
    }
}

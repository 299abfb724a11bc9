/* Names of number formats, and conversions between f32, bf16 and f16. See dtype.h. */
#include "base/dtype.h"

static const struct {
    const char *name, *safetensors;
    size_t size;
} dtypes[] = {
#define MGL_X(id, name, bytes, st) {name, st, bytes},
    MGL_DTYPES(MGL_X)
#undef MGL_X
};

const char *mgl_dtype_name(mgl_dtype dtype)
{
    return dtypes[dtype].name;
}

size_t mgl_dtype_size(mgl_dtype dtype)
{
    return dtypes[dtype].size;
}

bool mgl_dtype_parse(const char *name, mgl_dtype *out)
{
    for (int i = 0; i < MGL_DTYPE_COUNT; i++)
        if (!strcmp(dtypes[i].name, name))
            return *out = (mgl_dtype)i, true;
    return false;
}

bool mgl_dtype_parse_safetensors(const char *name, mgl_dtype *out)
{
    for (int i = 0; i < MGL_DTYPE_COUNT; i++)
        if (!strcmp(dtypes[i].safetensors, name))
            return *out = (mgl_dtype)i, true;
    return false;
}

float mgl_f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = (half >> 10) & 31;
    uint32_t mantissa = half & 0x3FF, bits;
    float value;
    if (exponent == 0) { /* zero and subnormals: an exact product */
        value = (float)mantissa * 0x1p-24f;
        return sign ? -value : value;
    }
    if (exponent == 31)
        bits = sign | 0x7F800000 | mantissa << 13;
    else
        bits = sign | (exponent + 112) << 23 | mantissa << 13;
    memcpy(&value, &bits, 4);
    return value;
}

uint16_t mgl_f32_to_f16(float value)
{
    uint32_t u;
    memcpy(&u, &value, 4);
    uint16_t sign = (uint16_t)((u >> 16) & 0x8000);
    u &= 0x7FFFFFFF;
    if (u > 0x7F800000)
        return sign | 0x7E00;
    if (u >= 0x477FF000) /* 65520 and above round to infinity */
        return sign | 0x7C00;
    if (u < 0x38800000) { /* below 2^-14: a multiple of 2^-24; adding 0.5 rounds it there */
        float magnitude;
        memcpy(&magnitude, &u, 4);
        magnitude += 0.5f;
        memcpy(&u, &magnitude, 4);
        return sign | (uint16_t)(u - 0x3F000000);
    }
    u += 0xFFF + ((u >> 13) & 1);
    return sign | (uint16_t)((u - 0x38000000) >> 13);
}

static float load(const void *from, mgl_dtype dtype, size_t i)
{
    uint16_t half;
    float value;
    if (dtype == MGL_F32) {
        memcpy(&value, (const char *)from + 4 * i, 4);
        return value;
    }
    memcpy(&half, (const char *)from + 2 * i, 2);
    return dtype == MGL_BF16 ? mgl_bf16_to_f32(half) : mgl_f16_to_f32(half);
}

void mgl_convert(void *to, mgl_dtype to_dtype, const void *from, mgl_dtype from_dtype, size_t count)
{
    if (to_dtype == from_dtype) {
        memcpy(to, from, count * mgl_dtype_size(to_dtype));
        return;
    }
    if (to_dtype == MGL_F32 && from_dtype == MGL_BF16) { /* the frequent case, in a plain loop */
        for (size_t i = 0; i < count; i++) {
            uint16_t half;
            memcpy(&half, (const char *)from + 2 * i, 2);
            float value = mgl_bf16_to_f32(half);
            memcpy((char *)to + 4 * i, &value, 4);
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        float value = load(from, from_dtype, i);
        if (to_dtype == MGL_F32) {
            memcpy((char *)to + 4 * i, &value, 4);
        } else {
            uint16_t half = to_dtype == MGL_BF16 ? mgl_f32_to_bf16(value) : mgl_f32_to_f16(value);
            memcpy((char *)to + 2 * i, &half, 2);
        }
    }
}

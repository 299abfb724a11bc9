/* Number formats: names, sizes and exact conversions. Conversions round to nearest, ties to
 * even. */
#ifndef MGL_BASE_DTYPE_H
#define MGL_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/dtypes.h"

typedef enum mgl_dtype {
#define MGL_X(id, name, bytes, st) MGL_##id,
    MGL_DTYPES(MGL_X)
#undef MGL_X
        MGL_DTYPE_COUNT
} mgl_dtype;

const char *mgl_dtype_name(mgl_dtype dtype);
size_t mgl_dtype_size(mgl_dtype dtype);                             /* bytes per element */
bool mgl_dtype_parse(const char *name, mgl_dtype *out);             /* "bf16" */
bool mgl_dtype_parse_safetensors(const char *name, mgl_dtype *out); /* "BF16" */

/* Converts `count` elements between f32, bf16 and f16 (no other formats). Pointers may be
 * unaligned. */
void mgl_convert(void *to, mgl_dtype to_dtype, const void *from, mgl_dtype from_dtype,
                 size_t count);

float mgl_f16_to_f32(uint16_t half);
uint16_t mgl_f32_to_f16(float value); /* overflows to infinity (IEEE 754) */

static inline float mgl_bf16_to_f32(uint16_t bits)
{
    uint32_t u = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint16_t mgl_f32_to_bf16(float value)
{
    uint32_t u;
    memcpy(&u, &value, 4);
    if ((u & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)((u >> 16) | 0x40); /* a quiet NaN */
    return (uint16_t)((u + 0x7FFF + ((u >> 16) & 1)) >> 16);
}

#endif

/* Implements formats.h: lookup, sizes, and conversion of weight formats. No format has scales
 * yet: encoding and decoding support only formats whose weights are unscaled numbers. */
#include "schedule/formats.h"

enum {
#define MGL_BITS(id, name, bytes, stored) BITS_##id = 8 * (bytes),
    MGL_DTYPES(MGL_BITS)
#undef MGL_BITS
};

#define MGL_FORMAT(id, name, bits, columns, scales, numbers)                                       \
    _Static_assert((bits) * (columns) == 8 * MGL_BLOCK_ROW_BYTES, name ": a block's row is full"); \
    _Static_assert(MGL_FORMAT_COLUMNS % (columns) == 0, name ": columns are a power of 2");        \
    _Static_assert((scales) == 0 && (bits) == BITS_##numbers && MGL_##numbers != MGL_I32,          \
                   name ": encode and decode");
#include "schedule/formats.def"

bool mgl_weight_format_parse(const char *name, mgl_weight_format *out)
{
    for (int i = 0; i < MGL_FORMAT_COUNT; i++)
        if (!strcmp(mgl_weight_format_name((mgl_weight_format)i), name))
            return *out = (mgl_weight_format)i, true;
    return false;
}

bool mgl_weight_format_is(mgl_weight_format format, mgl_dtype dtype)
{
    const mgl_weight_format_info *info = mgl_weight_format_get(format);
    return info->scale_bytes == 0 && info->numbers == dtype &&
           info->bits == 8 * (int)mgl_dtype_size(dtype);
}

bool mgl_weight_format_of(mgl_dtype dtype, mgl_weight_format *out)
{
    for (int i = 0; i < MGL_FORMAT_COUNT; i++)
        if (mgl_weight_format_is((mgl_weight_format)i, dtype))
            return *out = (mgl_weight_format)i, true;
    return false;
}

int64_t mgl_weight_format_bytes(mgl_weight_format format, int64_t count)
{
    return count * mgl_weight_format_get(format)->bits / 8;
}

int64_t mgl_weight_format_group_bytes(mgl_weight_format format, int64_t blocks)
{
    const int64_t scales = blocks * mgl_weight_format_get(format)->scale_bytes;
    return (blocks + (scales + MGL_BLOCK_BYTES - 1) / MGL_BLOCK_BYTES) * MGL_BLOCK_BYTES;
}

void mgl_weight_format_encode(mgl_weight_format format, void *to, const void *from,
                              mgl_dtype from_dtype, size_t count)
{
    mgl_convert(to, mgl_weight_format_get(format)->numbers, from, from_dtype, count);
}

void mgl_weight_format_decode(mgl_weight_format format, float *to, const void *from, size_t count)
{
    mgl_convert(to, MGL_F32, from, mgl_weight_format_get(format)->numbers, count);
}

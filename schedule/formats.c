/* Implements formats.h: sizes and places on the tape, and conversion of weights. */
#include "schedule/formats.h"

#include "base/assert.h"

#define MGL_WEIGHT_CODE(id, name, bits, scaled, numbers)                                           \
    _Static_assert(MGL_BLOCK_ROW_BYTES * 8 % (bits) == 0 &&                                        \
                       MGL_FORMAT_COLUMNS % (MGL_BLOCK_ROW_BYTES * 8 / (bits)) == 0,               \
                   name ": columns are a power of 2");
#include "base/weight_codes.def"

/* ---- scales ---------------------------------------------------------------------------------- */

int64_t mgl_tape_scale_bytes(mgl_weight_format format, int64_t columns)
{
    const int64_t scales = mgl_tape_scale_groups(format, columns) * mgl_tape_scale_rows(format);
    const int64_t size = (int64_t)mgl_dtype_size(format.scales);
    const int64_t each = size + (mgl_weight_format_has_minimums(format) ? size : format.zeros);
    return (scales * each + MGL_BLOCK_BYTES - 1) / MGL_BLOCK_BYTES * MGL_BLOCK_BYTES;
}

int64_t mgl_tape_group_bytes(mgl_weight_format format, int64_t columns)
{
    const int width = mgl_weight_code_columns(format.code);
    return mgl_tape_scale_bytes(format, columns) + (columns + width - 1) / width * MGL_BLOCK_BYTES;
}

/* The index of the scale of a row among those of its row group. */
static int64_t scale_at(mgl_weight_format format, int64_t group, int row)
{
    const int rows = mgl_tape_scale_rows(format);
    return group * rows + (rows > 1 ? row : 0);
}

float mgl_tape_scale(mgl_weight_format format, const void *scales, int64_t group, int row)
{
    const size_t size = mgl_dtype_size(format.scales);
    float scale;
    mgl_convert(&scale, MGL_F32, (const char *)scales + (size_t)scale_at(format, group, row) * size,
                format.scales, 1);
    return scale;
}

/* Byte offset of a zero point in the scales. */
static size_t zero_at(mgl_weight_format format, int64_t groups, int64_t group, int row)
{
    return (size_t)(groups * mgl_tape_scale_rows(format)) * mgl_dtype_size(format.scales) +
           (size_t)scale_at(format, group, row);
}

int mgl_tape_zero(mgl_weight_format format, const void *scales, int64_t groups, int64_t group,
                  int row)
{
    return format.zeros ? ((const uint8_t *)scales)[zero_at(format, groups, group, row)]
                        : mgl_weight_code_zero(format.code);
}

/* Byte offset of a minimum in the scales. */
static size_t minimum_at(mgl_weight_format format, int64_t groups, int64_t group, int row)
{
    return (size_t)(groups * mgl_tape_scale_rows(format) + scale_at(format, group, row)) *
           mgl_dtype_size(format.scales);
}

float mgl_tape_minimum(mgl_weight_format format, const void *scales, int64_t groups, int64_t group,
                       int row)
{
    float minimum;
    mgl_convert(&minimum, MGL_F32, (const char *)scales + minimum_at(format, groups, group, row),
                format.scales, 1);
    return minimum;
}

void mgl_tape_put_minimum(mgl_weight_format format, void *scales, int64_t groups, int64_t group,
                          int row, float minimum)
{
    mgl_convert((char *)scales + minimum_at(format, groups, group, row), format.scales, &minimum,
                MGL_F32, 1);
}

void mgl_tape_put_scale(mgl_weight_format format, void *scales, int64_t group, int row, float scale)
{
    const size_t size = mgl_dtype_size(format.scales);
    mgl_convert((char *)scales + (size_t)scale_at(format, group, row) * size, format.scales, &scale,
                MGL_F32, 1);
}

void mgl_tape_put_zero(mgl_weight_format format, void *scales, int64_t groups, int64_t group,
                       int row, int zero)
{
    ((uint8_t *)scales)[zero_at(format, groups, group, row)] = (uint8_t)zero;
}

/* ---- codes ----------------------------------------------------------------------------------- */

/* The place of a column of a block among the codes of its row. */
static int place_of(mgl_weight_code code, int column)
{
    const int j = column / 32, q = column / 8 % 4, i = column % 8;
    return mgl_weight_code_get(code)->bits == 8 ? 16 * q + 8 * j + i
                                                : 32 * q + 8 * j + i / 2 + i % 2 * 4;
}

void mgl_tape_pack_codes(mgl_weight_code code, void *row, const uint8_t *codes, int count)
{
    uint8_t *to = row;
    const bool bytes = mgl_weight_code_get(code)->bits == 8;
    memset(to, 0, MGL_BLOCK_ROW_BYTES);
    for (int i = 0; i < count; i++) {
        const int place = place_of(code, i);
        if (bytes)
            to[place] = codes[i];
        else
            to[place / 2] |= (uint8_t)(codes[i] << place % 2 * 4);
    }
}

void mgl_tape_unpack_codes(mgl_weight_code code, uint8_t *codes, const void *row)
{
    const uint8_t *from = row;
    const bool bytes = mgl_weight_code_get(code)->bits == 8;
    for (int i = 0; i < mgl_weight_code_columns(code); i++) {
        const int place = place_of(code, i);
        codes[i] = (uint8_t)(bytes ? from[place] : from[place / 2] >> place % 2 * 4 & 15);
    }
}

void mgl_weight_code_encode(mgl_weight_code code, void *to, const void *from, mgl_dtype from_dtype,
                            size_t count)
{
    MGL_ASSERT(!mgl_weight_code_get(code)->scaled);
    mgl_convert(to, mgl_weight_code_get(code)->numbers, from, from_dtype, count);
}

void mgl_weight_code_decode(mgl_weight_code code, float *to, const void *from, size_t count)
{
    MGL_ASSERT(!mgl_weight_code_get(code)->scaled);
    mgl_convert(to, MGL_F32, from, mgl_weight_code_get(code)->numbers, count);
}

void mgl_tape_decode(mgl_weight_format format, float *to, const void *from, const void *scales,
                     int64_t groups, int64_t block, int row)
{
    uint8_t codes[MGL_FORMAT_COLUMNS];
    const int columns = mgl_weight_code_columns(format.code);
    const bool factors = mgl_weight_format_has_factors(format);
    mgl_tape_unpack_codes(format.code, codes, from);
    for (int i = 0, zero = mgl_weight_code_zero(format.code); i < columns; i++) {
        const int64_t group =
            format.group == MGL_GROUP_ALL ? 0 : (block * columns + i) / format.group;
        const bool inside = factors || group < groups;
        const float scale = factors || !inside ? 1 : mgl_tape_scale(format, scales, group, row);
        if (inside && !factors)
            zero = mgl_tape_zero(format, scales, groups, group, row);
        to[i] = inside ? mgl_weight_code_number(format.code, codes[i], zero) * scale : 0;
        if (inside && mgl_weight_format_has_minimums(format))
            to[i] += mgl_tape_minimum(format, scales, groups, group, row);
    }
}

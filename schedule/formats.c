/* Implements formats.h: sizes on the tape, and conversion of weights. */
#include "schedule/formats.h"

#define MGL_CODE(id, name, bits, numbers)                                                          \
    _Static_assert(MGL_BLOCK_ROW_BYTES * 8 % (bits) == 0 &&                                        \
                       MGL_FORMAT_COLUMNS % (MGL_BLOCK_ROW_BYTES * 8 / (bits)) == 0,               \
                   name ": columns are a power of 2");
#include "base/weight_codes.def"

int64_t mgl_weight_format_group_bytes(mgl_weight_format format, int64_t blocks)
{
    (void)format;
    return blocks * MGL_BLOCK_BYTES;
}

void mgl_weight_code_encode(mgl_weight_code code, void *to, const void *from, mgl_dtype from_dtype,
                            size_t count)
{
    mgl_convert(to, mgl_weight_code_get(code)->numbers, from, from_dtype, count);
}

void mgl_weight_code_decode(mgl_weight_code code, float *to, const void *from, size_t count)
{
    mgl_convert(to, MGL_F32, from, mgl_weight_code_get(code)->numbers, count);
}

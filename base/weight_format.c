/* Implements weight_format.h: lookup, comparison and text of weight formats. */
#include "base/weight_format.h"

#include <stdio.h>

#include "base/assert.h"

enum {
#define MGL_BITS(id, name, bytes, stored) BITS_##id = 8 * (bytes), PLACE_##id = MGL_##id,
    MGL_DTYPES(MGL_BITS)
#undef MGL_BITS
};

#define MGL_CODE(id, name, bits, numbers)                                                          \
    _Static_assert((bits) == BITS_##numbers && (int)MGL_CODE_##id == PLACE_##id,                   \
                   name ": an unscaled code is a dtype");
#include "base/weight_codes.def"

bool mgl_weight_code_parse(const char *name, mgl_weight_code *out)
{
    for (int i = 0; i < MGL_CODE_COUNT; i++)
        if (!strcmp(mgl_weight_code_name((mgl_weight_code)i), name))
            return *out = (mgl_weight_code)i, true;
    return false;
}

mgl_weight_format mgl_weight_format_of(mgl_dtype dtype)
{
    MGL_ASSERT(dtype < MGL_I32);
    return (mgl_weight_format){.code = (mgl_weight_code)dtype};
}

bool mgl_weight_format_is(mgl_weight_format format, mgl_dtype dtype)
{
    return (int)format.code == (int)dtype && dtype < MGL_I32;
}

bool mgl_weight_format_equal(mgl_weight_format a, mgl_weight_format b)
{
    return a.code == b.code;
}

bool mgl_weight_format_valid(mgl_weight_format format)
{
    return (unsigned)format.code < MGL_CODE_COUNT;
}

const char *mgl_weight_format_print(mgl_weight_format format, char to[MGL_WEIGHT_FORMAT_TEXT])
{
    snprintf(to, MGL_WEIGHT_FORMAT_TEXT, "%s", mgl_weight_code_name(format.code));
    return to;
}

/* Implements weight_format.h: lookup, comparison, text and numbers of weight formats. */
#include "base/weight_format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

enum {
#define MGL_BITS(id, name, bytes, stored) BITS_##id = 8 * (bytes), PLACE_##id = MGL_##id,
    MGL_DTYPES(MGL_BITS)
#undef MGL_BITS
};

#define MGL_WEIGHT_CODE(id, name, bits, scaled, numbers)                                           \
    _Static_assert((scaled) ? MGL_CODE_##id > MGL_CODE_F16                                         \
                            : (bits) == BITS_##numbers && (int)MGL_CODE_##id == PLACE_##numbers,   \
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
    return a.code == b.code && a.scales == b.scales && a.group == b.group &&
           a.group_rows == b.group_rows && a.zeros == b.zeros;
}

static bool is_group(int32_t group)
{
    return group == MGL_GROUP_ALL ||
           (group > 0 && group <= MGL_MAX_WEIGHT_GROUP && group % MGL_GROUP_UNIT == 0);
}

bool mgl_weight_format_valid(mgl_weight_format format)
{
    if ((unsigned)format.code >= MGL_CODE_COUNT)
        return false;
    if (!mgl_weight_format_is_scaled(format))
        return mgl_weight_format_equal(format, (mgl_weight_format){.code = format.code});
    return (unsigned)format.scales < MGL_I32 && is_group(format.group) &&
           (format.group_rows == 1 || is_group(format.group_rows)) &&
           !(format.zeros && format.code != MGL_CODE_INT8 && format.code != MGL_CODE_INT4);
}

int64_t mgl_weight_format_number(mgl_weight_format format)
{
    enum { CODES = 1 << 8, DTYPES = 1 << 4, GROUPS = 2 * MGL_MAX_WEIGHT_GROUP };
    int64_t number = format.group;
    number = number * GROUPS + format.group_rows;
    number = number * 2 + format.zeros;
    number = number * DTYPES + (int64_t)format.scales;
    return number * CODES + (int64_t)format.code;
}

const char *mgl_weight_format_print(mgl_weight_format format, char to[MGL_WEIGHT_FORMAT_TEXT])
{
    const char *code = mgl_weight_code_name(format.code), *scales = mgl_dtype_name(format.scales);
    const char *zeros = format.zeros ? " zeros" : "";
    if (!mgl_weight_format_is_scaled(format))
        snprintf(to, MGL_WEIGHT_FORMAT_TEXT, "%s", code);
    else if (format.group == MGL_GROUP_ALL && format.group_rows == MGL_GROUP_ALL)
        snprintf(to, MGL_WEIGHT_FORMAT_TEXT, "%s tensor %s%s", code, scales, zeros);
    else if (format.group == MGL_GROUP_ALL && format.group_rows == 1)
        snprintf(to, MGL_WEIGHT_FORMAT_TEXT, "%s row %s%s", code, scales, zeros);
    else if (format.group_rows == 1)
        snprintf(to, MGL_WEIGHT_FORMAT_TEXT, "%s group %d %s%s", code, (int)format.group, scales,
                 zeros);
    else
        snprintf(to, MGL_WEIGHT_FORMAT_TEXT, "%s block %d %d %s%s", code, (int)format.group_rows,
                 (int)format.group, scales, zeros);
    return to;
}

enum { MAX_WORD = 16 };

/* Copies the word at *at, and moves *at to its first byte. Returns the end of the word. A word that
 * is too long becomes the empty word, which nothing is called. */
static const char *next_word(const char **at, const char *end, char word[MAX_WORD])
{
    while (*at < end && (**at == ' ' || **at == '\t'))
        ++*at;
    const char *to = *at;
    while (to < end && ((*to >= 'a' && *to <= 'z') || (*to >= '0' && *to <= '9') || *to == '_' ||
                        *to == '.' || *to == '-'))
        to++;
    const size_t length = (size_t)(to - *at) < MAX_WORD ? (size_t)(to - *at) : 0;
    memcpy(word, *at, length);
    word[length] = 0;
    return to;
}

/* Reads the number of columns or rows that share a scale. */
static bool read_group(const char **at, const char *end, int32_t *out)
{
    char word[MAX_WORD];
    const char *const to = next_word(at, end, word);
    *out = 0;
    for (const char *digit = word; *digit; digit++) {
        if (*digit < '0' || *digit > '9')
            return false;
        *out = *out * 10 + (*digit - '0');
        if (*out > MGL_MAX_WEIGHT_GROUP)
            return false;
    }
    if (!word[0])
        return false;
    *at = to;
    return true;
}

/* Reads which weights share a scale. */
static mgl_format_fault read_sharing(const char **at, const char *end, mgl_weight_format *out)
{
    char word[MAX_WORD];
    const char *const to = next_word(at, end, word);
    const bool is_block = !strcmp(word, "block"), is_group = !strcmp(word, "group");
    out->group_rows = 1;
    out->group = MGL_GROUP_ALL;
    if (!strcmp(word, "tensor"))
        out->group_rows = MGL_GROUP_ALL;
    else if (!is_block && !is_group && strcmp(word, "row") != 0)
        return MGL_FORMAT_NO_SHARING;
    *at = to;
    if (is_block && !read_group(at, end, &out->group_rows))
        return MGL_FORMAT_NO_GROUP;
    if ((is_block || is_group) && !read_group(at, end, &out->group))
        return MGL_FORMAT_NO_GROUP;
    return MGL_FORMAT_READ;
}

/* Reads what follows a scaled code. */
static mgl_format_fault read_scales(const char **at, const char *end, mgl_weight_format *out)
{
    char word[MAX_WORD];
    const mgl_format_fault fault = read_sharing(at, end, out);
    if (fault)
        return fault;
    const char *to = next_word(at, end, word);
    if (!mgl_dtype_parse(word, &out->scales))
        return MGL_FORMAT_NO_DTYPE;
    const char *zeros = *at = to;
    to = next_word(&zeros, end, word);
    out->zeros = !strcmp(word, "zeros");
    *at = out->zeros ? to : *at;
    return MGL_FORMAT_READ;
}

mgl_format_fault mgl_weight_format_read(const char **at, const char *end, mgl_weight_format *out)
{
    char word[MAX_WORD];
    const char *const to = next_word(at, end, word);
    *out = (mgl_weight_format){0};
    if (!mgl_weight_code_parse(word, &out->code))
        return MGL_FORMAT_NO_CODE;
    *at = to;
    const mgl_format_fault fault =
        mgl_weight_format_is_scaled(*out) ? read_scales(at, end, out) : MGL_FORMAT_READ;
    return fault || mgl_weight_format_valid(*out) ? fault : MGL_FORMAT_NO_SUCH_ONE;
}

int64_t mgl_weight_format_groups(mgl_weight_format format, int64_t columns)
{
    if (!mgl_weight_format_is_scaled(format))
        return 0;
    return format.group == MGL_GROUP_ALL ? 1 : (columns + format.group - 1) / format.group;
}

double mgl_weight_format_bits(mgl_weight_format format, int64_t rows, int64_t columns)
{
    const double own = mgl_weight_code_get(format.code)->bits;
    const int64_t share = format.group_rows == MGL_GROUP_ALL ? rows : format.group_rows;
    if (!mgl_weight_format_is_scaled(format))
        return own;
    const double scales =
        (double)mgl_weight_format_groups(format, columns) * (double)((rows + share - 1) / share);
    const double size = 8.0 * (double)mgl_dtype_size(format.scales);
    const double bits = size + (mgl_weight_format_has_minimums(format) ? size
                                : format.zeros                         ? 8
                                                                       : 0);
    return own + scales * bits / ((double)rows * (double)columns);
}

/* float8_e4m3fn: the exponent's bias is 7, there is no infinity, and NaN is 0x7F and 0xFF. */
static float e4m3(unsigned bits)
{
    const int exponent = (int)(bits >> 3 & 15), mantissa = (int)(bits & 7);
    const float magnitude = (bits & 127) == 127 ? NAN
                            : exponent          ? (float)((8 + mantissa) << exponent) * 0x1p-10f
                                                : (float)mantissa * 0x1p-9f;
    return bits & 128 ? -magnitude : magnitude;
}

float mgl_weight_code_number(mgl_weight_code code, unsigned bits, int zero)
{
    return code == MGL_CODE_E4M3 ? e4m3(bits) : (float)((int)bits - zero);
}

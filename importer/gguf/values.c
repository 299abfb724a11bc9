/* Typed access to the metadata of a GGUF file. See container.h. */
#include "importer/gguf/container.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static const char *const type_names[MGL_GGUF_TYPE_COUNT] = {
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};

static int by_key(const void *key, const void *item)
{
    const mgl_gguf_string *a = key, *b = &((const mgl_gguf_value *)item)->key;
    const size_t shared = a->length < b->length ? a->length : b->length;
    const int order = memcmp(a->bytes, b->bytes, shared);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

const mgl_gguf_value *mgl_gguf_find(const mgl_gguf *gguf, const char *key)
{
    const mgl_gguf_string string = {key, strlen(key)};
    return gguf->value_count
               ? bsearch(&string, gguf->values, gguf->value_count, sizeof *gguf->values, by_key)
               : NULL;
}

static mgl_status fail_type(const mgl_gguf *gguf, const char *key, const mgl_gguf_value *value,
                            const char *wanted, mgl_error *err)
{
    return mgl_fail(err, MGL_BAD_INPUT, gguf->file,
                    "%s: is %s %s, but must be %s; download the file again", key,
                    value->is_array ? "an array of" : "of type", type_names[value->type], wanted);
}

/* ---- single values --------------------------------------------------------------------------- */

static uint64_t bits_at(const unsigned char *at, size_t bytes)
{
    uint64_t bits = 0;
    for (size_t i = bytes; i-- > 0;)
        bits = bits << 8 | at[i];
    return bits;
}

/* Reads an integer; false: it has another type, or does not fit. */
static bool int_at(mgl_gguf_type type, const unsigned char *at, int64_t *out)
{
    switch (type) {
    case MGL_GGUF_U8:
        *out = at[0];
        return true;
    case MGL_GGUF_I8:
        *out = (int8_t)at[0];
        return true;
    case MGL_GGUF_U16:
        *out = (int64_t)bits_at(at, 2);
        return true;
    case MGL_GGUF_I16:
        *out = (int16_t)bits_at(at, 2);
        return true;
    case MGL_GGUF_U32:
        *out = (int64_t)bits_at(at, 4);
        return true;
    case MGL_GGUF_I32:
        *out = (int32_t)bits_at(at, 4);
        return true;
    case MGL_GGUF_U64:
    case MGL_GGUF_I64:
        *out = (int64_t)bits_at(at, 8);
        return type == MGL_GGUF_I64 || *out >= 0;
    default:
        return false;
    }
}

static size_t int_size(mgl_gguf_type type)
{
    return type == MGL_GGUF_U8 || type == MGL_GGUF_I8     ? 1
           : type == MGL_GGUF_U16 || type == MGL_GGUF_I16 ? 2
           : type == MGL_GGUF_U32 || type == MGL_GGUF_I32 ? 4
                                                          : 8;
}

mgl_status mgl_gguf_get_int(const mgl_gguf *gguf, const char *key, int64_t low, int64_t high,
                            int64_t *out, mgl_error *err)
{
    const mgl_gguf_value *value = mgl_gguf_find(gguf, key);
    int64_t number;
    if (!value)
        return MGL_OK;
    if (value->is_array || !int_at(value->type, value->at, &number))
        return fail_type(gguf, key, value, "a whole number", err);
    if (number < low || number > high)
        return mgl_fail(err, MGL_BAD_INPUT, gguf->file,
                        "%s: is %" PRId64 ", but must be %" PRId64 " to %" PRId64, key, number, low,
                        high);
    *out = number;
    return MGL_OK;
}

static float float_at(const unsigned char *at)
{
    const uint32_t bits = (uint32_t)bits_at(at, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

mgl_status mgl_gguf_get_float(const mgl_gguf *gguf, const char *key, double *out, mgl_error *err)
{
    const mgl_gguf_value *value = mgl_gguf_find(gguf, key);
    if (!value)
        return MGL_OK;
    double number = 0;
    if (!value->is_array && value->type == MGL_GGUF_F64) {
        const uint64_t bits = bits_at(value->at, 8);
        memcpy(&number, &bits, sizeof number);
    } else if (!value->is_array && value->type == MGL_GGUF_F32) {
        number = float_at(value->at);
    } else {
        return fail_type(gguf, key, value, "a number of type f32", err);
    }
    if (!isfinite(number))
        return mgl_fail(err, MGL_BAD_INPUT, gguf->file,
                        "%s: is not a finite number; download the file again", key);
    *out = number;
    return MGL_OK;
}

mgl_status mgl_gguf_get_bool(const mgl_gguf *gguf, const char *key, bool *out, mgl_error *err)
{
    const mgl_gguf_value *value = mgl_gguf_find(gguf, key);
    if (!value)
        return MGL_OK;
    if (value->is_array || value->type != MGL_GGUF_BOOL)
        return fail_type(gguf, key, value, "a truth value", err);
    *out = value->at[0] != 0;
    return MGL_OK;
}

/* Reads a string whose place the parser has checked; returns the byte after. */
static const unsigned char *string_at(const unsigned char *at, mgl_gguf_string *out)
{
    *out = (mgl_gguf_string){(const char *)at + 8, (size_t)bits_at(at, 8)};
    return at + 8 + out->length;
}

mgl_status mgl_gguf_get_string(const mgl_gguf *gguf, const char *key, mgl_gguf_string *out,
                               mgl_error *err)
{
    const mgl_gguf_value *value = mgl_gguf_find(gguf, key);
    if (!value)
        return MGL_OK;
    if (value->is_array || value->type != MGL_GGUF_STRING)
        return fail_type(gguf, key, value, "a string", err);
    (void)string_at(value->at, out);
    return MGL_OK;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Allocates an array for the items of a value. */
static mgl_status allocate(const mgl_gguf_value *value, size_t size, void *out, mgl_error *err)
{
    void *items = mgl_alloc_zero(value->count + 1, size);
    if (!items)
        return mgl_fail_memory(err, value->count * size);
    memcpy(out, &items, sizeof items);
    return MGL_OK;
}

mgl_status mgl_gguf_get_strings(const mgl_gguf *gguf, const char *key, mgl_gguf_string **out,
                                size_t *count, mgl_error *err)
{
    const mgl_gguf_value *value = mgl_gguf_find(gguf, key);
    *out = NULL;
    *count = 0;
    if (!value)
        return MGL_OK;
    if (!value->is_array || value->type != MGL_GGUF_STRING)
        return fail_type(gguf, key, value, "an array of strings", err);
    mgl_status status = allocate(value, sizeof **out, out, err);
    const unsigned char *at = value->at;
    for (size_t i = 0; i < value->count && !status; i++)
        at = string_at(at, &(*out)[i]);
    *count = status ? 0 : value->count;
    return status;
}

mgl_status mgl_gguf_get_ints(const mgl_gguf *gguf, const char *key, int64_t **out, size_t *count,
                             mgl_error *err)
{
    const mgl_gguf_value *value = mgl_gguf_find(gguf, key);
    *out = NULL;
    *count = 0;
    if (!value)
        return MGL_OK;
    mgl_status status = MGL_OK;
    if (value->is_array)
        status = allocate(value, sizeof **out, out, err);
    const size_t size = int_size(value->type);
    bool good = value->is_array && !status;
    for (size_t i = 0; i < value->count && good; i++)
        good = int_at(value->type, value->at + i * size, &(*out)[i]);
    *count = good ? value->count : 0;
    if (good || status)
        return status;
    mgl_free(*out);
    *out = NULL;
    return fail_type(gguf, key, value, "an array of whole numbers", err);
}

mgl_status mgl_gguf_get_floats(const mgl_gguf *gguf, const char *key, float **out, size_t *count,
                               mgl_error *err)
{
    const mgl_gguf_value *value = mgl_gguf_find(gguf, key);
    *out = NULL;
    *count = 0;
    if (!value)
        return MGL_OK;
    if (!value->is_array || value->type != MGL_GGUF_F32)
        return fail_type(gguf, key, value, "an array of type f32", err);
    mgl_status status = allocate(value, sizeof **out, out, err);
    for (size_t i = 0; i < value->count && !status; i++)
        (*out)[i] = float_at(value->at + 4 * i);
    *count = status ? 0 : value->count;
    return status;
}

/*
 * Reads the header of a GGUF file. See container.h. The header does not state its length, so
 * mgl_gguf_open reads the beginning of the file, and twice as much if the header continues.
 */
#include "importer/gguf/container.h"

#include "base/memory.h"
#include "base/placeholder.h"
#include "importer/gguf/blocks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
    FIRST_READ = 1 << 20,
    MAX_HEADER = 512 << 20,
    MAX_VALUES = 1 << 16,
    MAX_TENSORS = 1 << 20,
    MAX_NAME = 128,
    MAX_ALIGNMENT = 1 << 20,
    DEFAULT_ALIGNMENT = 32
};

/* The types of tensors, by number. */
static const struct tensor_type {
    uint32_t number;
    const char *name;
    size_t weights, bytes;
} tensor_types[] = {
#define MGL_GGUF_TYPE(number, name, weights, bytes) {number, name, weights, bytes},
#include "importer/gguf/types.def"
};

/* Bytes of a value by type; 0: not of a fixed size. */
static const size_t value_sizes[MGL_GGUF_TYPE_COUNT] = {
    [MGL_GGUF_U8] = 1,  [MGL_GGUF_I8] = 1,  [MGL_GGUF_U16] = 2, [MGL_GGUF_I16] = 2,
    [MGL_GGUF_U32] = 4, [MGL_GGUF_I32] = 4, [MGL_GGUF_F32] = 4, [MGL_GGUF_BOOL] = 1,
    [MGL_GGUF_U64] = 8, [MGL_GGUF_I64] = 8, [MGL_GGUF_F64] = 8, [MGL_GGUF_STRING] = 0,
};

/* The state of parsing a header. */
typedef struct parser {
    const unsigned char *start, *at, *end;
    size_t file_bytes;
    bool more; /* a read went past `end`, and the file has more bytes */
    mgl_gguf *out;
    mgl_error *err;
} parser;

/* ---- bytes ----------------------------------------------------------------------------------- */

static uint64_t little(const unsigned char *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static mgl_status fail(parser *p, const char *message)
{
    return mgl_fail(p->err, MGL_BAD_INPUT, p->out->file, "%s", message);
}

/* Takes `bytes` bytes; an error if the header ends before. */
static mgl_status take(parser *p, size_t bytes, const unsigned char **out)
{
    *out = p->at;
    if (bytes <= (size_t)(p->end - p->at)) {
        p->at += bytes;
        return MGL_OK;
    }
    p->more = (size_t)(p->end - p->start) < p->file_bytes;
    return mgl_fail(
        p->err, MGL_BAD_INPUT, p->out->file,
        "is cut off or damaged: its header needs %zu bytes at byte %zu of %zu; download "
        "the file again",
        bytes, (size_t)(p->at - p->start), p->file_bytes);
}

static mgl_status take_number(parser *p, size_t bytes, uint64_t *out)
{
    const unsigned char *at;
    mgl_status status = take(p, bytes, &at);
    *out = status ? 0 : little(at, bytes);
    return status;
}

static mgl_status take_string(parser *p, mgl_gguf_string *out)
{
    uint64_t length;
    const unsigned char *at;
    mgl_status status = take_number(p, 8, &length);
    if (!status)
        status = take(p, length > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)length, &at);
    if (!status)
        *out = (mgl_gguf_string){(const char *)at, (size_t)length};
    return status;
}

/* Whether a key or a name is short, not empty, and printable ASCII. */
static bool is_name(mgl_gguf_string name)
{
    bool good = name.length > 0 && name.length < MAX_NAME;
    for (size_t i = 0; i < name.length && good; i++)
        good = name.bytes[i] > ' ' && name.bytes[i] < 127;
    return good;
}

static int compare_strings(mgl_gguf_string a, mgl_gguf_string b)
{
    const size_t shared = a.length < b.length ? a.length : b.length;
    const int order = memcmp(a.bytes, b.bytes, shared);
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

bool mgl_gguf_is(mgl_gguf_string string, const char *text)
{
    return mgl_text_is(string.bytes, string.length, text);
}

/* ---- metadata -------------------------------------------------------------------------------- */

static mgl_status fail_value(parser *p, const mgl_gguf_value *value, const char *problem)
{
    return mgl_fail(p->err, MGL_BAD_INPUT, p->out->file, "%.*s: %s; download the file again",
                    (int)value->key.length, value->key.bytes, problem);
}

/* Checks the items of a value whose type and count are read. */
static mgl_status take_items(parser *p, mgl_gguf_value *value)
{
    const size_t size = value_sizes[value->type];
    size_t bytes;
    mgl_status status = MGL_OK;
    value->at = p->at;
    if (value->type == MGL_GGUF_STRING) {
        mgl_gguf_string string;
        for (size_t i = 0; i < value->count && !status; i++)
            status = take_string(p, &string);
    } else {
        status = take(p, mgl_mul(value->count, size, &bytes) ? bytes : SIZE_MAX, &value->at);
    }
    value->end = p->at;
    for (size_t i = 0; i < value->count && !status && value->type == MGL_GGUF_BOOL; i++)
        if (value->at[i] > 1)
            status = fail_value(p, value, "a truth value is neither 0 nor 1");
    return status;
}

static mgl_status take_type(parser *p, const mgl_gguf_value *value, mgl_gguf_type *out)
{
    uint64_t type;
    mgl_status status = take_number(p, 4, &type);
    if (!status && type >= MGL_GGUF_TYPE_COUNT)
        status = fail_value(p, value, "the format has no such type of a value");
    *out = status ? MGL_GGUF_U8 : (mgl_gguf_type)type;
    return status;
}

static mgl_status take_value(parser *p, mgl_gguf_value *value)
{
    uint64_t count = 1;
    *value = (mgl_gguf_value){0};
    mgl_status status = take_string(p, &value->key);
    if (!status && !is_name(value->key))
        status = fail(p, "a key of the metadata is empty, longer than 127 bytes, or not printable "
                         "ASCII; download the file again");
    if (!status)
        status = take_type(p, value, &value->type);
    if (!status && value->type == MGL_GGUF_ARRAY) {
        value->is_array = true;
        status = take_type(p, value, &value->type);
        if (!status && value->type == MGL_GGUF_ARRAY)
            status = fail_value(p, value, "arrays of arrays are not supported");
        if (!status)
            status = take_number(p, 8, &count);
    }
    value->count = count > SIZE_MAX / 16 ? SIZE_MAX / 16 : (size_t)count;
    return status ? status : take_items(p, value);
}

static int by_key(const void *a, const void *b)
{
    const mgl_gguf_value *x = a, *y = b;
    return compare_strings(x->key, y->key);
}

static mgl_status take_values(parser *p, uint64_t count)
{
    mgl_gguf *g = p->out;
    mgl_status status = MGL_OK;
    for (uint64_t i = 0; i < count && !status; i++) {
        void *items = g->values;
        if (!mgl_grow(&items, &g->value_capacity, g->value_count, sizeof *g->values))
            return mgl_fail_memory(p->err, 2 * g->value_capacity * sizeof *g->values);
        g->values = items;
        status = take_value(p, &g->values[g->value_count]);
        g->value_count += !status;
    }
    if (status || !g->value_count)
        return status;
    qsort(g->values, g->value_count, sizeof *g->values, by_key);
    for (size_t i = 1; i < g->value_count; i++)
        if (!by_key(&g->values[i], &g->values[i - 1]))
            return fail_value(p, &g->values[i], "the key occurs twice");
    return MGL_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static mgl_status fail_tensor(parser *p, const mgl_gguf_tensor *tensor, const char *problem)
{
    return mgl_fail(p->err, MGL_BAD_INPUT, p->out->file, "tensor %.*s: %s; download the file again",
                    (int)tensor->name.length, tensor->name.bytes, problem);
}

static const struct tensor_type *find_type(uint64_t number)
{
    for (size_t i = 0; i < sizeof tensor_types / sizeof *tensor_types; i++)
        if (tensor_types[i].number == number)
            return &tensor_types[i];
    return NULL;
}

static mgl_status take_shape(parser *p, mgl_gguf_tensor *tensor, size_t *elements)
{
    uint64_t rank, extent;
    mgl_status status = take_number(p, 4, &rank);
    if (!status && (rank < 1 || rank > MGL_GGUF_RANK))
        return fail_tensor(p, tensor, "its number of dimensions is not 1 to 4");
    tensor->rank = (int)rank;
    *elements = 1;
    for (int i = tensor->rank - 1; i >= 0 && !status; i--) {
        status = take_number(p, 8, &extent);
        if (!status && (!extent || extent > INT64_MAX || !mgl_mul(*elements, extent, elements)))
            status = fail_tensor(p, tensor, "a dimension is 0 or too large");
        tensor->shape[i] = status ? 0 : (int64_t)extent;
    }
    return status;
}

/* Sets the type and the size. */
static mgl_status set_type(parser *p, mgl_gguf_tensor *tensor, uint64_t number, size_t elements)
{
    const struct tensor_type *type = find_type(number);
    if (!type)
        return mgl_fail(p->err, MGL_BAD_INPUT, p->out->file,
                        "tensor %.*s: the type with number %" PRIu64
                        " is not known; supported: " MGL_GGUF_SUPPORTED,
                        (int)tensor->name.length, tensor->name.bytes, number);
    tensor->type = type->name;
    if ((size_t)tensor->shape[tensor->rank - 1] % type->weights)
        return mgl_fail(p->err, MGL_BAD_INPUT, p->out->file,
                        "tensor %.*s: a row of %" PRId64 " weights is no whole number of %s blocks "
                        "of %zu; download the file again",
                        (int)tensor->name.length, tensor->name.bytes,
                        tensor->shape[tensor->rank - 1], type->name, type->weights);
    if (!mgl_mul(elements / type->weights, type->bytes, &tensor->bytes))
        return fail_tensor(p, tensor, "its size has more than 64 bits");
    return MGL_OK;
}

static mgl_status take_tensor(parser *p, mgl_gguf_tensor *tensor)
{
    uint64_t type = 0, offset = 0;
    size_t elements = 0;
    *tensor = (mgl_gguf_tensor){0};
    mgl_status status = take_string(p, &tensor->name);
    if (!status && !is_name(tensor->name))
        status = fail(p, "the name of a tensor is empty, longer than 127 bytes, or not printable "
                         "ASCII; download the file again");
    if (!status)
        status = take_shape(p, tensor, &elements);
    if (!status)
        status = take_number(p, 4, &type);
    if (!status)
        status = take_number(p, 8, &offset);
    if (!status)
        status = set_type(p, tensor, type, elements);
    tensor->offset = (size_t)offset;
    return status;
}

static mgl_status take_tensors(parser *p, uint64_t count)
{
    mgl_gguf *g = p->out;
    mgl_status status = MGL_OK;
    for (uint64_t i = 0; i < count && !status; i++) {
        void *items = g->tensors;
        if (!mgl_grow(&items, &g->tensor_capacity, g->tensor_count, sizeof *g->tensors))
            return mgl_fail_memory(p->err, 2 * g->tensor_capacity * sizeof *g->tensors);
        g->tensors = items;
        status = take_tensor(p, &g->tensors[g->tensor_count]);
        g->tensor_count += !status;
    }
    return status;
}

static int by_name(const void *a, const void *b)
{
    const mgl_gguf_tensor *const *x = a, *const *y = b;
    return compare_strings((*x)->name, (*y)->name);
}

static mgl_status check_names(parser *p)
{
    mgl_gguf *g = p->out;
    const mgl_gguf_tensor **order = mgl_alloc_zero(g->tensor_count + 1, sizeof *order);
    mgl_status status = MGL_OK;
    if (!order)
        return mgl_fail_memory(p->err, g->tensor_count * sizeof *order);
    for (size_t i = 0; i < g->tensor_count; i++)
        order[i] = &g->tensors[i];
    qsort(order, g->tensor_count, sizeof *order, by_name);
    for (size_t i = 1; i < g->tensor_count && !status; i++)
        if (!by_name(&order[i], &order[i - 1]))
            status = fail_tensor(p, order[i], "its name occurs twice");
    mgl_free(order);
    return status;
}

static bool round_up(size_t value, size_t alignment, size_t *out)
{
    if (!mgl_add(value, alignment - 1, out))
        return false;
    *out &= ~(alignment - 1);
    return true;
}

/* Checks that each tensor follows the one before, and that the last one ends with the file. */
static mgl_status check_ranges(parser *p, size_t alignment)
{
    mgl_gguf *g = p->out;
    size_t at = 0, end = 0, last = 0;
    for (size_t i = 0; i < g->tensor_count; i++) {
        const mgl_gguf_tensor *t = &g->tensors[i];
        if (t->offset != at)
            return mgl_fail(p->err, MGL_BAD_INPUT, g->file,
                            "tensor %.*s: its offset is %zu, but the tensors before end at %zu; "
                            "download the file again",
                            (int)t->name.length, t->name.bytes, t->offset, at);
        if (!mgl_add(at, t->bytes, &last) || !round_up(last, alignment, &at) ||
            !mgl_add(g->data, at, &end))
            return fail_tensor(p, t, "its size has more than 64 bits");
    }
    if (g->data + last > p->file_bytes)
        return mgl_fail(p->err, MGL_BAD_INPUT, g->file,
                        "is cut off: the tensors end at byte %zu, the file at %zu; download the "
                        "file again",
                        g->data + last, p->file_bytes);
    if (p->file_bytes > end)
        return mgl_fail(p->err, MGL_BAD_INPUT, g->file,
                        "is damaged: %zu bytes follow the last tensor; download the file again",
                        p->file_bytes - end);
    return MGL_OK;
}

/* ---- the header ------------------------------------------------------------------------------ */

static mgl_status take_counts(parser *p, uint64_t *tensors, uint64_t *values)
{
    const unsigned char *magic;
    uint64_t version = 0;
    mgl_status status = take(p, 4, &magic);
    if (!status && memcmp(magic, "GGUF", 4) != 0)
        return fail(p, "is not a GGUF file: it does not begin with \"GGUF\"; download it again");
    if (!status)
        status = take_number(p, 4, &version);
    if (!status && version > 0 && !(version & 0xFFFF))
        return fail(p, "is a GGUF file for big-endian machines; use the little-endian file");
    if (!status && version != 2 && version != 3)
        return mgl_fail(p->err, MGL_BAD_INPUT, p->out->file,
                        "unsupported version of GGUF: %" PRIu64 "; supported: 2 and 3", version);
    if (!status)
        status = take_number(p, 8, tensors);
    if (!status)
        status = take_number(p, 8, values);
    if (!status && (*tensors > MAX_TENSORS || *values > MAX_VALUES))
        return mgl_fail(p->err, MGL_BAD_INPUT, p->out->file,
                        "its header claims %" PRIu64 " tensors and %" PRIu64
                        " keys; at most %d and %d are accepted",
                        *tensors, *values, (int)MAX_TENSORS, (int)MAX_VALUES);
    return status;
}

static mgl_status read_alignment(parser *p, size_t *alignment)
{
    int64_t value = DEFAULT_ALIGNMENT;
    mgl_status status =
        mgl_gguf_get_int(p->out, "general.alignment", 1, MAX_ALIGNMENT, &value, p->err);
    if (!status && value & (value - 1))
        status = mgl_fail(p->err, MGL_BAD_INPUT, p->out->file,
                          "general.alignment is %" PRId64 ", which is not a power of 2; download "
                          "the file again",
                          value);
    *alignment = (size_t)value;
    return status;
}

static mgl_status parse(parser *p)
{
    uint64_t tensors = 0, values = 0;
    size_t alignment = DEFAULT_ALIGNMENT;
    mgl_status status = take_counts(p, &tensors, &values);
    if (!status)
        status = take_values(p, values);
    if (!status)
        status = take_tensors(p, tensors);
    if (!status)
        status = check_names(p);
    if (!status)
        status = read_alignment(p, &alignment);
    if (!status && !p->out->tensor_count)
        return fail(p, "holds no tensors; it is a tokenizer or a part of a model, so name the "
                       "file of the whole model");
    if (status)
        return status;
    if (!round_up((size_t)(p->at - p->start), alignment, &p->out->data))
        return fail(p, "its header has more than 64 bits");
    return check_ranges(p, alignment);
}

mgl_status mgl_gguf_parse(const unsigned char *bytes, size_t length, size_t file_bytes,
                          const char *file, mgl_gguf **out, bool *more, mgl_error *err)
{
    *more = false;
    *out = mgl_alloc_zero(1, sizeof **out);
    if (!*out || !((*out)->file = mgl_strdup(file))) {
        mgl_gguf_close(*out);
        *out = NULL;
        return mgl_fail_memory(err, sizeof **out);
    }
    parser p = {.start = bytes,
                .at = bytes,
                .end = bytes + length,
                .file_bytes = file_bytes,
                .out = *out,
                .err = err};
    mgl_status status = parse(&p);
    *more = status && p.more;
    if (status) {
        mgl_gguf_close(*out);
        *out = NULL;
    }
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_regular(const char *path, mgl_status *status, mgl_error *err)
{
    struct stat facts;
    bool found;
    *status = mgl_file_look(path, &found, &facts, err);
    return !*status && found && S_ISREG(facts.st_mode);
}

mgl_status mgl_gguf_stands(const char *path, bool *stands, mgl_error *err)
{
    mgl_status status;
    mgl_map *map;
    char start[4] = "";
    *stands = false;
    if (!is_regular(path, &status, err))
        return status;
    *stands = mgl_text_ends(path, ".gguf");
    if (*stands)
        return MGL_OK;
    status = mgl_map_open(path, &map, err);
    if (status)
        return status;
    if (mgl_map_size(map) >= sizeof start)
        status = mgl_map_read(map, 0, sizeof start, start, err);
    mgl_map_close(map);
    *stands = !status && !memcmp(start, "GGUF", sizeof start);
    return status;
}

/* Reads and parses the first `length` bytes. */
static mgl_status read_header(const mgl_map *map, size_t length, mgl_gguf **out, bool *more,
                              mgl_error *err)
{
    unsigned char *bytes = mgl_alloc(length + 1);
    *more = false;
    if (!bytes)
        return mgl_fail_memory(err, length);
    mgl_status status = mgl_map_read(map, 0, length, bytes, err);
    if (!status)
        status =
            mgl_gguf_parse(bytes, length, mgl_map_size(map), mgl_map_path(map), out, more, err);
    if (status)
        mgl_free(bytes);
    else
        (*out)->header = bytes;
    return status;
}

mgl_status mgl_gguf_open(const char *path, mgl_gguf **out, mgl_error *err)
{
    mgl_map *map;
    bool more = true;
    *out = NULL;
    mgl_status status = mgl_map_open(path, &map, err);
    if (status)
        return status;
    status = mgl_placeholder_check_map(map, err);
    const size_t size = mgl_map_size(map);
    for (size_t length = FIRST_READ; !status && more; length *= 2) {
        mgl_status parsed = read_header(map, length < size ? length : size, out, &more, err);
        if (parsed && (!more || length >= MAX_HEADER))
            status = parsed;
    }
    mgl_map_close(map);
    return status;
}

void mgl_gguf_close(mgl_gguf *gguf)
{
    if (!gguf)
        return;
    mgl_free(gguf->file);
    mgl_free(gguf->header);
    mgl_free(gguf->values);
    mgl_free(gguf->tensors);
    mgl_free(gguf);
}

const mgl_gguf_tensor *mgl_gguf_find_tensor(const mgl_gguf *gguf, const char *name)
{
    for (size_t i = 0; i < gguf->tensor_count; i++)
        if (mgl_gguf_is(gguf->tensors[i].name, name))
            return &gguf->tensors[i];
    return NULL;
}

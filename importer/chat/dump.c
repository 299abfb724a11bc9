/*
 * Writes JSON like Python's json.dumps. Hugging Face's filter tojson passes tools to a model in
 * this form.
 */
#include "importer/chat/filters.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct dumper {
    mgl_render *r;
    mgl_sink *sink;
    const mgl_dump *how;
    int level;
} dumper;

static bool put(dumper *d, const char *text)
{
    return mgl_sink_puts(d->r, d->sink, text);
}

/* ---- strings --------------------------------------------------------------------------------- */

static bool put_code(dumper *d, uint32_t c)
{
    static const char named[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
    const char *known = c && c < 0x80 ? strchr(named, (int)c) : NULL;
    char text[16];
    if (known)
        snprintf(text, sizeof text, "\\%c", letters[known - named]);
    else if (c < 0x10000)
        snprintf(text, sizeof text, "\\u%04x", (unsigned)c);
    else
        snprintf(text, sizeof text, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((c - 0x10000) >> 10)),
                 (unsigned)(0xDC00 + (c & 0x3FF)));
    return put(d, text);
}

static bool put_string(dumper *d, const mgl_string *string)
{
    size_t plain = 0, at = 0;
    if (!put(d, "\""))
        return false;
    while (at < string->length) {
        uint32_t c;
        size_t size = mgl_utf8_next(string->bytes + at, &c);
        bool escaped = c < 0x20 || c == '"' || c == '\\' || (d->how->ascii && c > 0x7E);
        if (escaped &&
            (!mgl_sink_put(d->r, d->sink, string->bytes + plain, at - plain) || !put_code(d, c)))
            return false;
        at += size;
        plain = escaped ? at : plain;
    }
    return mgl_sink_put(d->r, d->sink, string->bytes + plain, at - plain) && put(d, "\"");
}

/* ---- containers ------------------------------------------------------------------------------ */

static bool dump(dumper *d, mgl_value value);

/* Writes the line end and indentation before an item or a closing bracket. */
static bool put_line(dumper *d)
{
    if (!d->how->indent)
        return true;
    if (!put(d, "\n"))
        return false;
    for (int i = 0; i < d->level; i++)
        if (!mgl_sink_put(d->r, d->sink, d->how->indent, d->how->indent_length))
            return false;
    return true;
}

static bool put_between(dumper *d, size_t index)
{
    const mgl_string *between = d->how->between;
    if (!index)
        return put_line(d);
    return (between ? mgl_sink_put(d->r, d->sink, between->bytes, between->length)
                    : put(d, d->how->indent ? "," : ", ")) &&
           put_line(d);
}

static bool put_list(dumper *d, const mgl_list *list)
{
    if (!list->count)
        return put(d, "[]");
    d->level++;
    if (!put(d, "["))
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (!put_between(d, i) || !dump(d, list->items[i]))
            return false;
    d->level--;
    return put_line(d) && put(d, "]");
}

/* Writes a key. Numbers, bools and None are written as strings. */
static bool put_key(dumper *d, mgl_value key)
{
    const mgl_string *colon = d->how->colon;
    bool shown = key.kind >= MGL_VALUE_NONE && key.kind <= MGL_VALUE_REAL, good;
    if (key.kind != MGL_VALUE_STRING && !shown)
        return mgl_render_fail(d->r, "a key of type '%s' has no form in JSON", mgl_value_type(key));
    good = key.kind == MGL_VALUE_STRING ? put_string(d, key.string)
                                        : put(d, "\"") && dump(d, key) && put(d, "\"");
    return good &&
           (colon ? mgl_sink_put(d->r, d->sink, colon->bytes, colon->length) : put(d, ": "));
}

/* Sorts the entries of a dict by key. */
static bool sort_entries(dumper *d, const mgl_dict *dict, mgl_dict **out)
{
    mgl_bound none = {0};
    mgl_value sorted;
    none.values[0] = mgl_bool(true); /* case sensitive */
    mgl_value input = {.kind = MGL_VALUE_DICT};
    *out = mgl_dict_new(d->r, dict->count);
    mgl_dict copy = *dict;
    input.dict = &copy;
    if (!*out || !mgl_filter_dictsort(d->r, input, &none, &sorted))
        return false;
    for (size_t i = 0; i < sorted.list->count; i++) {
        const mgl_value *pair = sorted.list->items[i].list->items;
        (*out)->entries[(*out)->count++] = (mgl_entry){pair[0], pair[1]};
    }
    return true;
}

static bool put_dict(dumper *d, const mgl_dict *dict)
{
    mgl_dict *sorted;
    if (!dict->count)
        return put(d, "{}");
    if (d->how->sorted) {
        if (!sort_entries(d, dict, &sorted))
            return false;
        dict = sorted;
    }
    d->level++;
    if (!put(d, "{"))
        return false;
    for (size_t i = 0; i < dict->count; i++)
        if (!put_between(d, i) || !put_key(d, dict->entries[i].key) ||
            !dump(d, dict->entries[i].value))
            return false;
    d->level--;
    return put_line(d) && put(d, "}");
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool put_real(dumper *d, double real)
{
    char text[MGL_REAL_DIGITS];
    if (isnan(real))
        return put(d, "NaN");
    if (isinf(real))
        return put(d, real < 0 ? "-Infinity" : "Infinity");
    mgl_real_print(real, text);
    return put(d, text);
}

static bool dump_one(dumper *d, mgl_value value)
{
    switch (value.kind) {
    case MGL_VALUE_NONE:
        return put(d, "null");
    case MGL_VALUE_BOOL:
        return put(d, value.flag ? "true" : "false");
    case MGL_VALUE_INTEGER:
    case MGL_VALUE_LARGE:
        return mgl_value_repr(d->r, d->sink, value);
    case MGL_VALUE_REAL:
        return put_real(d, value.real);
    case MGL_VALUE_STRING:
        return put_string(d, value.string);
    case MGL_VALUE_LIST:
    case MGL_VALUE_TUPLE:
        return put_list(d, value.list);
    case MGL_VALUE_DICT:
        return put_dict(d, value.dict);
    case MGL_VALUE_UNDEFINED:
        return mgl_render_fail_undefined(d->r, value);
    default:
        return mgl_render_fail(
            d->r, "a value of type '%s' has no form in JSON%s", mgl_value_type(value),
            value.kind == MGL_VALUE_GENERATOR ? "; make a list of it: |list" : "");
    }
}

static bool dump(dumper *d, mgl_value value)
{
    if (!mgl_render_enter(d->r) || !dump_one(d, value))
        return false;
    mgl_render_leave(d->r);
    return true;
}

bool mgl_value_dump(mgl_render *r, mgl_sink *sink, mgl_value value, const mgl_dump *how)
{
    dumper d = {r, sink, how, 0};
    return dump(&d, value);
}

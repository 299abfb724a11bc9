/*
 * str() and repr() of values, byte for byte as Python prints them.
 */
#include "base/utf8.h"
#include "importer/chat/render.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

/* Computes the shortest digits that read back as `real`, and the power of ten of the first
 * digit. `real` is positive and finite. */
static int shortest(double real, char digits[20], int *exponent)
{
    char text[40];
    for (int precision = 0; precision <= 16; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, real);
        if (strtod(text, NULL) == real)
            break;
    }
    int count = 0;
    char *at = text;
    for (; *at && *at != 'e'; at++)
        if (*at >= '0' && *at <= '9')
            digits[count++] = *at;
    *exponent = atoi(at + 1);
    while (count > 1 && digits[count - 1] == '0')
        count--;
    digits[count] = 0;
    return count;
}

/* Prints with an exponent from 1e+16 on and below 1e-4, else with a point. */
static void print_finite(double real, char *to, size_t size)
{
    enum { LARGEST = 16, SMALLEST = -4 };
    char digits[20];
    int exponent, count = shortest(real, digits, &exponent);
    if (exponent >= LARGEST || exponent < SMALLEST)
        snprintf(to, size, "%c%s%se%c%02d", digits[0], count > 1 ? "." : "", digits + 1,
                 exponent < 0 ? '-' : '+', abs(exponent));
    else if (exponent < 0)
        snprintf(to, size, "0.%.*s%s", -exponent - 1, "0000", digits);
    else if (count <= exponent + 1)
        snprintf(to, size, "%s%.*s.0", digits, exponent + 1 - count, "0000000000000000");
    else
        snprintf(to, size, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
}

void mgl_real_print(double real, char to[MGL_REAL_DIGITS])
{
    if (isnan(real)) {
        strcpy(to, "nan");
        return;
    }
    char *at = to;
    if (signbit(real))
        *at++ = '-';
    real = fabs(real);
    if (isinf(real))
        strcpy(at, "inf");
    else if (real == 0)
        strcpy(at, "0.0");
    else
        print_finite(real, at, MGL_REAL_DIGITS - 1);
}

/* ---- strings --------------------------------------------------------------------------------- */

static bool put_escape(mgl_render *r, mgl_sink *sink, uint32_t c)
{
    char text[16];
    const char *named = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : NULL;
    if (named)
        return mgl_sink_puts(r, sink, named);
    if (c < 0x100)
        snprintf(text, sizeof text, "\\x%02x", (unsigned)c);
    else if (c < 0x10000)
        snprintf(text, sizeof text, "\\u%04x", (unsigned)c);
    else
        snprintf(text, sizeof text, "\\U%08x", (unsigned)c);
    return mgl_sink_puts(r, sink, text);
}

/* Quotes with single quotes, or with double quotes if that saves escapes. */
static bool put_quoted(mgl_render *r, mgl_sink *sink, const mgl_string *string)
{
    bool single = string->length && memchr(string->bytes, '\'', string->length);
    bool twice = string->length && memchr(string->bytes, '"', string->length);
    char quote = single && !twice ? '"' : '\'';
    if (!mgl_sink_put(r, sink, &quote, 1))
        return false;
    for (size_t at = 0; at < string->length;) {
        uint32_t c;
        size_t size = mgl_utf8_next(string->bytes + at, &c);
        bool good;
        if (c == (unsigned char)quote || c == '\\')
            good = mgl_sink_put(r, sink, "\\", 1) && mgl_sink_put(r, sink, string->bytes + at, 1);
        else if (c < 0x7F ? c >= ' ' : mgl_character_is_printable(c))
            good = mgl_sink_put(r, sink, string->bytes + at, size);
        else
            good = put_escape(r, sink, c);
        if (!good)
            return false;
        at += size;
    }
    return mgl_sink_put(r, sink, &quote, 1);
}

/* ---- containers ------------------------------------------------------------------------------ */

static bool put_items(mgl_render *r, mgl_sink *sink, const mgl_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if ((i && !mgl_sink_puts(r, sink, ", ")) || !mgl_value_repr(r, sink, list->items[i]))
            return false;
    return true;
}

static bool put_entries(mgl_render *r, mgl_sink *sink, const mgl_dict *dict)
{
    for (size_t i = 0; i < dict->count; i++)
        if ((i && !mgl_sink_puts(r, sink, ", ")) ||
            !mgl_value_repr(r, sink, dict->entries[i].key) || !mgl_sink_puts(r, sink, ": ") ||
            !mgl_value_repr(r, sink, dict->entries[i].value))
            return false;
    return true;
}

static bool put_view(mgl_render *r, mgl_sink *sink, mgl_value view)
{
    mgl_list *items = mgl_list_of(r, view);
    return items && mgl_sink_puts(r, sink, mgl_value_type(view)) && mgl_sink_puts(r, sink, "([") &&
           put_items(r, sink, items) && mgl_sink_puts(r, sink, "])");
}

static bool put_range(mgl_render *r, mgl_sink *sink, const mgl_steps *steps)
{
    char text[96];
    int used =
        snprintf(text, sizeof text, "range(%" PRId64 ", %" PRId64, steps->start, steps->stop);
    if (steps->step != 1)
        used += snprintf(text + used, sizeof text - (size_t)used, ", %" PRId64, steps->step);
    snprintf(text + used, sizeof text - (size_t)used, ")");
    return mgl_sink_puts(r, sink, text);
}

static bool put_macro(mgl_render *r, mgl_sink *sink, const mgl_macro *macro)
{
    if (macro->definition->kind != MGL_SYNTAX_MACRO)
        return mgl_sink_puts(r, sink, "<Macro anonymous>");
    const mgl_symbol_name *name = &r->jinja->symbols[macro->definition->name];
    return mgl_sink_puts(r, sink, "<Macro '") && mgl_sink_put(r, sink, name->bytes, name->length) &&
           mgl_sink_puts(r, sink, "'>");
}

static bool put_holder(mgl_render *r, mgl_sink *sink, mgl_value value)
{
    switch (value.kind) {
    case MGL_VALUE_LIST:
        return mgl_sink_puts(r, sink, "[") && put_items(r, sink, value.list) &&
               mgl_sink_puts(r, sink, "]");
    case MGL_VALUE_TUPLE:
        return mgl_sink_puts(r, sink, "(") && put_items(r, sink, value.list) &&
               mgl_sink_puts(r, sink, value.list->count == 1 ? ",)" : ")");
    case MGL_VALUE_DICT:
        return mgl_sink_puts(r, sink, "{") && put_entries(r, sink, value.dict) &&
               mgl_sink_puts(r, sink, "}");
    case MGL_VALUE_NAMESPACE:
        return mgl_sink_puts(r, sink, "<Namespace {") && put_entries(r, sink, value.dict) &&
               mgl_sink_puts(r, sink, "}>");
    case MGL_VALUE_VIEW:
        return put_view(r, sink, value);
    case MGL_VALUE_RANGE:
        return put_range(r, sink, value.steps);
    case MGL_VALUE_MACRO:
        return put_macro(r, sink, value.macro);
    case MGL_VALUE_GENERATOR:
        return mgl_render_fail(r, "a generator cannot be printed; make a list of it: |list");
    default:
        return mgl_render_fail(r, "a value of type '%s' cannot be printed", mgl_value_type(value));
    }
}

static bool put_number(mgl_render *r, mgl_sink *sink, mgl_value value)
{
    char text[MGL_REAL_DIGITS];
    if (value.kind == MGL_VALUE_INTEGER)
        snprintf(text, sizeof text, "%" PRId64, value.integer);
    else
        mgl_real_print(value.real, text);
    return mgl_sink_puts(r, sink, text);
}

bool mgl_value_repr(mgl_render *r, mgl_sink *sink, mgl_value value)
{
    switch (value.kind) {
    case MGL_VALUE_UNDEFINED:
        return mgl_sink_puts(r, sink, "Undefined");
    case MGL_VALUE_NONE:
        return mgl_sink_puts(r, sink, "None");
    case MGL_VALUE_BOOL:
        return mgl_sink_puts(r, sink, value.flag ? "True" : "False");
    case MGL_VALUE_INTEGER:
    case MGL_VALUE_REAL:
        return put_number(r, sink, value);
    case MGL_VALUE_LARGE:
        return mgl_sink_put(r, sink, value.string->bytes, value.string->length);
    case MGL_VALUE_STRING:
        if (!value.markup)
            return put_quoted(r, sink, value.string);
        return mgl_sink_puts(r, sink, "Markup(") && put_quoted(r, sink, value.string) &&
               mgl_sink_puts(r, sink, ")");
    default:
        if (!mgl_render_enter(r) || !put_holder(r, sink, value))
            return false;
        mgl_render_leave(r);
        return true;
    }
}

bool mgl_value_show(mgl_render *r, mgl_sink *sink, mgl_value value)
{
    if (value.kind == MGL_VALUE_UNDEFINED)
        return true;
    if (value.kind == MGL_VALUE_STRING)
        return mgl_sink_put(r, sink, value.string->bytes, value.string->length);
    return mgl_value_repr(r, sink, value);
}

mgl_string *mgl_value_string(mgl_render *r, mgl_value value)
{
    mgl_sink sink = {0};
    if (value.kind == MGL_VALUE_STRING)
        return value.string;
    return mgl_value_show(r, &sink, value) ? mgl_sink_string(r, &sink) : NULL;
}

/*
 * Implements "%s and %5.2f" % values and "{} and {0:>8}".format(values) by Python's rules. Both
 * use the same description of a format.
 */
#include "base/format.h"
#include "importer/chat/render.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 10 * 1000 }; /* of width and precision */

/* A format specification. */
typedef struct form {
    char type;      /* s d x X o b e E f F g G % c, 0: by type */
    char align;     /* < > ^ =, 0: by type */
    char sign;      /* + or space: printed before a nonnegative number; 0: nothing */
    char group;     /* , or _ between thousands; 0: nothing */
    bool alternate; /* #: 0x */
    int width;      /* characters */
    int precision;  /* -1: not given */
    char fill[4];   /* one character */
    size_t fill_bytes;
} form;

/* ---- one value ------------------------------------------------------------------------------- */

static bool pad(mgl_render *r, mgl_sink *sink, const form *f, int count)
{
    for (int i = 0; i < count; i++)
        if (!mgl_sink_put(r, sink, f->fill, f->fill_bytes))
            return false;
    return true;
}

/* Writes `front` (a sign, a prefix) and the rest, padded to the width. */
static bool put_padded(mgl_render *r, mgl_sink *sink, const form *f, const char *front,
                       mgl_string *rest, char align)
{
    int missing = f->width - (int)strlen(front) - (int)mgl_string_characters(rest);
    missing = missing > 0 ? missing : 0;
    align = f->align ? f->align : align;
    int left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
    return (align == '=' || pad(r, sink, f, left)) && mgl_sink_puts(r, sink, front) &&
           (align != '=' || pad(r, sink, f, left)) &&
           mgl_sink_put(r, sink, rest->bytes, rest->length) && pad(r, sink, f, missing - left);
}

static bool put_text(mgl_render *r, mgl_sink *sink, const form *f, mgl_string *text)
{
    mgl_string cut = *text;
    if (f->precision >= 0 && (size_t)f->precision < mgl_string_characters(text))
        cut =
            (mgl_string){text->bytes, mgl_string_byte(text, (size_t)f->precision), SIZE_MAX, NULL};
    return put_padded(r, sink, f, "", &cut, '<');
}

/* Inserts `group` between every `every` digits: 3, or 4 for hexadecimal digits. */
static void group_digits(const char *digits, char group, int every, char *out)
{
    size_t whole = strcspn(digits, ".eE%"), used = 0;
    for (size_t i = 0; digits[i]; i++) {
        if (group && i && i < whole && (whole - i) % (size_t)every == 0)
            out[used++] = group;
        out[used++] = digits[i];
    }
    out[used] = 0;
}

static bool put_number(mgl_render *r, mgl_sink *sink, const form *f, bool minus, const char *prefix,
                       const char *digits, int every)
{
    char front[8], sign[2] = {minus ? '-' : f->sign, 0};
    size_t length = strlen(digits);
    char *grouped = mgl_render_take(r, length * 2 + 1);
    if (!grouped)
        return false;
    snprintf(front, sizeof front, "%s%s", sign, f->alternate ? prefix : "");
    group_digits(digits, f->group, every, grouped);
    mgl_string rest = {grouped, strlen(grouped), SIZE_MAX, NULL};
    return put_padded(r, sink, f, front, &rest, '>');
}

static bool put_whole(mgl_render *r, mgl_sink *sink, const form *f, int64_t whole)
{
    char digits[80];
    uint64_t size = whole < 0 ? (uint64_t)0 - (uint64_t)whole : (uint64_t)whole;
    unsigned base = f->type == 'x' || f->type == 'X' ? 16
                    : f->type == 'o'                 ? 8
                    : f->type == 'b'                 ? 2
                                                     : 10;
    const char *prefix = f->type == 'x'   ? "0x"
                         : f->type == 'X' ? "0X"
                         : f->type == 'o' ? "0o"
                         : f->type == 'b' ? "0b"
                                          : "";
    const char *symbols = f->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    char *at = digits + sizeof digits;
    *--at = 0;
    do {
        *--at = symbols[size % base];
        size /= base;
    } while (size);
    return put_number(r, sink, f, whole < 0, prefix, at, base == 10 ? 3 : 4);
}

/* Prints a nonnegative number with C's digits, with a point in every locale. */
static void print_real(char *to, size_t size, char type, int precision, double real)
{
    char format[8] = {'%', '.', '*', type, 0};
    const char *point = localeconv()->decimal_point;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(to, size, format, precision, real);
#pragma GCC diagnostic pop
    char *there = strstr(to, point);
    if (there)
        *there = '.';
}

static bool put_real(mgl_render *r, mgl_sink *sink, const form *f, double real)
{
    char digits[LARGEST + 400];
    int precision = f->precision < 0 ? 6 : f->precision;
    bool minus = signbit(real) && !isnan(real);
    real = fabs(real);
    if (isnan(real) || isinf(real))
        snprintf(digits, sizeof digits, "%s", isnan(real) ? "nan" : "inf");
    else if (!f->type && f->precision < 0)
        mgl_real_print(real, digits);
    else if (f->type == '%')
        print_real(digits, sizeof digits - 1, 'f', precision, real * 100);
    else
        print_real(digits, sizeof digits, f->type ? f->type : 'g', precision, real);
    if (f->type == '%')
        strcat(digits, "%");
    return put_number(r, sink, f, minus, "", digits, 3);
}

static bool fail_form(mgl_render *r, char type, mgl_value value)
{
    return mgl_render_fail(r, "the form '%c' is not for a value of type '%s'", type ? type : 's',
                           mgl_value_type(value));
}

static bool put_formed(mgl_render *r, mgl_sink *sink, const form *f, mgl_value value)
{
    bool whole_form = f->type && strchr("dxXob", f->type);
    bool real_form = f->type && strchr("eEfFgG%", f->type);
    int64_t whole;
    double real;
    if (value.kind == MGL_VALUE_LARGE && (!f->type || f->type == 'd')) {
        const mgl_string *digits = value.string;
        bool minus = digits->bytes[0] == '-';
        char text[420];
        snprintf(text, sizeof text, "%.*s", (int)(digits->length - minus), digits->bytes + minus);
        return put_number(r, sink, f, minus, "", text, 3);
    }
    if ((whole_form || (!f->type && value.kind != MGL_VALUE_BOOL)) &&
        mgl_value_is_whole(value, &whole))
        return put_whole(r, sink, f, whole);
    if ((real_form && mgl_value_is_number(value, &real)) ||
        (!f->type && value.kind == MGL_VALUE_REAL)) {
        mgl_value_is_number(value, &real);
        return put_real(r, sink, f, real);
    }
    if (whole_form || real_form || f->type == 'c')
        return fail_form(r, f->type, value);
    mgl_string *text = mgl_value_string(r, value);
    return text && put_text(r, sink, f, text);
}

static mgl_string *repr_of(mgl_render *r, mgl_value value)
{
    mgl_sink sink = {0};
    return mgl_value_repr(r, &sink, value) ? mgl_sink_string(r, &sink) : NULL;
}

/* ---- percent --------------------------------------------------------------------------------- */

typedef struct percent {
    mgl_render *r;
    const char *at, *end;
    mgl_value values;
    size_t next; /* index in a tuple */
    bool named;  /* the last conversion had a name */
    mgl_sink sink;
} percent;

static bool next_value(percent *p, mgl_value *out)
{
    bool tuple = p->values.kind == MGL_VALUE_TUPLE;
    size_t count = tuple ? p->values.list->count : 1;
    if (p->next >= count)
        return mgl_render_fail(p->r, "a text with '%%' has fewer values than conversions");
    *out = tuple ? p->values.list->items[p->next] : p->values;
    p->next++;
    return true;
}

static bool named_value(percent *p, mgl_value *out)
{
    const char *close = memchr(p->at, ')', (size_t)(p->end - p->at));
    if (!close || p->values.kind != MGL_VALUE_DICT)
        return mgl_render_fail(p->r, "'%%(name)s' needs a dict");
    mgl_entry *entry = mgl_dict_find_bytes(p->r, p->values.dict, p->at, (size_t)(close - p->at));
    if (!entry)
        return mgl_render_fail(p->r, "the dict has no key '%.*s'", (int)(close - p->at), p->at);
    *out = entry->value;
    p->at = close + 1;
    return true;
}

/* Reads a number, or * for the next value; -1: none. */
static bool read_size(percent *p, int *out)
{
    int64_t size = -1;
    mgl_value value;
    if (p->at < p->end && *p->at == '*') {
        p->at++;
        if (!next_value(p, &value) || !mgl_want_integer(p->r, "a width", value, &size))
            return false;
    }
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9' && size <= LARGEST; p->at++)
        size = (size < 0 ? 0 : size) * 10 + (*p->at - '0');
    if (size > LARGEST || size < -LARGEST)
        return mgl_render_fail(p->r, "a width or precision of more than %d", LARGEST);
    *out = (int)size;
    return true;
}

static void read_flags(percent *p, form *f)
{
    for (; p->at < p->end && *p->at && strchr("-+ #0", *p->at); p->at++) {
        if (*p->at == '-')
            f->align = '<';
        else if (*p->at == '0')
            f->fill[0] = '0';
        else if (*p->at == '#')
            f->alternate = true;
        else
            f->sign = *p->at == '+' ? '+' : f->sign ? f->sign : ' ';
    }
}

/* Writes one value. For "%d", a real number is truncated. */
static bool put_percent_value(percent *p, form *f, mgl_value value)
{
    if (f->type == 'r' || f->type == 's') {
        mgl_string *text = f->type == 's' ? mgl_value_string(p->r, value) : repr_of(p->r, value);
        f->fill[0] = ' ';
        f->align = f->align ? f->align : '>';
        return text && put_text(p->r, &p->sink, f, text);
    }
    if (f->fill[0] == '0' && f->align == '<')
        f->fill[0] = ' ';
    else if (f->fill[0] == '0')
        f->align = '=';
    if (f->type == 'i' || f->type == 'u')
        f->type = 'd';
    if (f->type == 'd' && value.kind == MGL_VALUE_REAL && isfinite(value.real) &&
        !mgl_real_to_integer(p->r, value.real, &value))
        return false;
    if (value.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(p->r, value);
    if (!f->type || !strchr("dxXoeEfFgG", f->type))
        return mgl_render_fail(p->r, "the conversion '%%%c' is not supported", f->type);
    return put_formed(p->r, &p->sink, f, value);
}

/* Formats one conversion, after the "%". */
static bool put_conversion(percent *p)
{
    form f = {.precision = -1, .fill = " ", .fill_bytes = 1};
    mgl_value value;
    bool named = p->at < p->end && *p->at == '(';
    if (named) {
        p->at++;
        p->named = true;
        if (!named_value(p, &value))
            return false;
    }
    read_flags(p, &f);
    if (!read_size(p, &f.width))
        return false;
    f.width = f.width < 0 ? 0 : f.width;
    if (p->at < p->end && *p->at == '.') {
        p->at++;
        if (!read_size(p, &f.precision))
            return false;
        f.precision = f.precision < 0 ? 0 : f.precision;
    }
    if (p->at == p->end)
        return mgl_render_fail(p->r, "a text ends within a conversion with '%%'");
    f.type = *p->at++;
    if (f.type == '%')
        return mgl_sink_put(p->r, &p->sink, "%", 1);
    return (named || next_value(p, &value)) && put_percent_value(p, &f, value);
}

bool mgl_format_percent(mgl_render *r, const mgl_string *format, mgl_value values, mgl_value *out)
{
    percent p = {
        .r = r, .at = format->bytes, .end = format->bytes + format->length, .values = values};
    while (p.at < p.end) {
        const char *sign = memchr(p.at, '%', (size_t)(p.end - p.at));
        const char *to = sign ? sign : p.end;
        if (!mgl_sink_put(r, &p.sink, p.at, (size_t)(to - p.at)))
            return false;
        p.at = sign ? sign + 1 : p.end;
        if (sign && !put_conversion(&p))
            return false;
    }
    size_t count = values.kind == MGL_VALUE_TUPLE ? values.list->count : 1;
    bool holder = values.kind == MGL_VALUE_DICT || values.kind == MGL_VALUE_LIST ||
                  values.kind == MGL_VALUE_RANGE || values.kind == MGL_VALUE_UNDEFINED;
    if (p.next < count && !p.named && !holder)
        return mgl_render_fail(r, "a text with '%%' has more values than conversions");
    mgl_string *string = mgl_sink_string(r, &p.sink);
    *out = mgl_of_string(string);
    return string != NULL;
}

/* ---- braces ---------------------------------------------------------------------------------- */

typedef struct braces {
    mgl_render *r;
    const char *at, *end;
    const mgl_arguments *arguments;
    size_t next; /* for "{}": the next value */
    mgl_sink sink;
} braces;

static bool fail_braces(braces *b)
{
    return mgl_render_fail(b->r, "a format string that cannot be read: braces must be paired, "
                                 "and '{{' is a brace");
}

/* Finds the value for "0", "name" or "". */
static bool find_argument(braces *b, const char *name, size_t length, mgl_value *out)
{
    size_t index = 0, digits = 0;
    while (digits < length && digits < 9 && name[digits] >= '0' && name[digits] <= '9')
        index = index * 10 + (size_t)(name[digits++] - '0');
    if (!length)
        index = b->next++;
    for (size_t i = 0; digits < length && i < b->arguments->keyword_count; i++) {
        const mgl_keyword *keyword = &b->arguments->keywords[i];
        if (keyword->length == length && !memcmp(keyword->name, name, length)) {
            *out = keyword->value;
            return true;
        }
    }
    if (digits < length || index >= b->arguments->count)
        return mgl_render_fail(b->r, "'format' has no argument '%.*s'",
                               (int)(length < 80 ? length : 80), name);
    *out = b->arguments->values[index];
    return true;
}

/* Follows ".name" and "[key]" after the value. */
static bool follow(braces *b, const char *to, mgl_value *value)
{
    while (b->at < to) {
        bool attribute = *b->at == '.';
        const char *from = ++b->at;
        while (b->at < to && (attribute ? *b->at != '.' && *b->at != '[' : *b->at != ']'))
            b->at++;
        mgl_value key;
        bool good = true;
        size_t length = (size_t)(b->at - from);
        if (!length || (!attribute && b->at == to))
            return fail_braces(b);
        if (!mgl_string_value(b->r, from, length, &key))
            return false;
        if (!attribute && mgl_string_all(key.string, mgl_character_is_digit) &&
            !mgl_string_to_integer(b->r, key.string, 10, &key, &good))
            return false;
        if (!(attribute ? mgl_attribute(b->r, *value, from, length, value)
                        : mgl_item(b->r, *value, key, value)))
            return false;
        b->at += !attribute;
    }
    return true;
}

static int read_number(const char **at, const char *end)
{
    int number = -1;
    for (; *at < end && **at >= '0' && **at <= '9' && number <= LARGEST; ++*at)
        number = (number < 0 ? 0 : number) * 10 + (**at - '0');
    return number;
}

static bool is_align(char c)
{
    return c && strchr("<>=^", c);
}

/* Parses "[[fill]align][sign][#][0][width][,][.precision][type]". */
static bool read_form(braces *b, const char *at, const char *end, form *f)
{
    *f = (form){.precision = -1, .fill = " ", .fill_bytes = 1};
    size_t size = at < end ? mgl_utf8_size(*at) : 0;
    if (size && (size_t)(end - at) > size && is_align(at[size])) {
        memcpy(f->fill, at, size);
        f->fill_bytes = size;
        f->align = at[size];
        at += size + 1;
    } else if (at < end && is_align(*at)) {
        f->align = *at++;
    }
    if (at < end && (*at == '+' || *at == '-' || *at == ' '))
        f->sign = *at == '-' ? 0 : *at, at++;
    if (at < end && *at == '#')
        f->alternate = true, at++;
    if (at < end && *at == '0') {
        at++;
        f->fill[0] = f->align ? f->fill[0] : '0';
        f->align = f->align ? f->align : '=';
    }
    f->width = read_number(&at, end);
    if (at < end && (*at == ',' || *at == '_'))
        f->group = *at++;
    if (at < end && *at == '.') {
        at++;
        f->precision = read_number(&at, end);
    }
    if (at < end)
        f->type = *at++;
    if (at < end || f->width > LARGEST || f->precision > LARGEST ||
        (f->type && !strchr("sdxXobeEfFgG%", f->type)))
        return mgl_render_fail(b->r, "this form of 'format' is not supported");
    return true;
}

static bool put_braced(braces *b, const char *form_at, const char *form_end, char conversion,
                       mgl_value value)
{
    form f;
    if (!read_form(b, form_at, form_end, &f))
        return false;
    if (conversion == 'r' || conversion == 's') {
        mgl_string *text = conversion == 'r' ? repr_of(b->r, value) : mgl_value_string(b->r, value);
        value = mgl_of_string(text);
        if (!text)
            return false;
    }
    if (f.type == 's' && value.kind != MGL_VALUE_STRING)
        return fail_form(b->r, 's', value);
    f.type = f.type == 's' ? 0 : f.type;
    f.align = f.align == '=' && value.kind == MGL_VALUE_STRING ? '<' : f.align;
    return put_formed(b->r, &b->sink, &f, value);
}

/* Formats one field, after the "{". */
static bool put_field(braces *b)
{
    const char *close = memchr(b->at, '}', (size_t)(b->end - b->at)), *name = b->at;
    if (!close || memchr(b->at, '{', (size_t)(close - b->at)))
        return fail_braces(b);
    size_t length = (size_t)(close - name);
    const char *colon = memchr(name, ':', length);
    const char *to = colon ? colon : close;
    char conversion = 0;
    if (to - name >= 2 && to[-2] == '!') {
        conversion = to[-1];
        to -= 2;
    }
    while (b->at < to && *b->at != '.' && *b->at != '[')
        b->at++;
    mgl_value value;
    if (!find_argument(b, name, (size_t)(b->at - name), &value) || !follow(b, to, &value))
        return false;
    b->at = close + 1;
    return put_braced(b, colon ? colon + 1 : close, close, conversion, value);
}

/* Writes the text up to a brace, and the field or literal brace that follows. */
static bool put_part(braces *b)
{
    const char *from = b->at;
    while (b->at < b->end && *b->at != '{' && *b->at != '}')
        b->at++;
    if (!mgl_sink_put(b->r, &b->sink, from, (size_t)(b->at - from)))
        return false;
    if (b->at == b->end)
        return true;
    char brace = *b->at++;
    if (b->at < b->end && *b->at == brace) {
        b->at++;
        return mgl_sink_put(b->r, &b->sink, &brace, 1);
    }
    return brace == '{' ? put_field(b) : fail_braces(b);
}

bool mgl_format_braces(mgl_render *r, const mgl_string *format, const mgl_arguments *arguments,
                       mgl_value *out)
{
    braces b = {
        .r = r, .at = format->bytes, .end = format->bytes + format->length, .arguments = arguments};
    while (b.at < b.end)
        if (!put_part(&b))
            return false;
    mgl_string *string = mgl_sink_string(r, &b.sink);
    *out = mgl_of_string(string);
    return string != NULL;
}

/* Implements the printf subset of format.h. Numbers are formatted by snprintf, one at a time;
 * strings are filtered character by character. */
#include "base/format.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A struct, because a parameter of type va_list cannot be passed on by address. */
typedef struct arguments {
    va_list list;
} arguments;

typedef struct formatter {
    mgl_put_fn *put;
    void *user;
    arguments args;
} formatter;

/* One conversion, such as "%-*.80s". */
typedef struct conversion {
    char flags[8];
    int width;     /* 0: none */
    int precision; /* -1: none */
    bool exact;    /* the precision was an argument */
    char length;   /* of the argument: 'l', 'q' (ll), 'z', 'j', 't' or 0 */
    char letter;
} conversion;

static void put_spaces(formatter *f, int count)
{
    for (; count > 0; count--)
        f->put(f->user, " ", 1);
}

static int take_number(formatter *f, const char **at, bool *argument)
{
    int number = 0;
    *argument = **at == '*';
    if (*argument) {
        ++*at;
        return va_arg(f->args.list, int);
    }
    for (; **at >= '0' && **at <= '9'; ++*at)
        number = number < INT_MAX / 10 ? number * 10 + (**at - '0') : number;
    return number;
}

/* Parses the conversion after a percent sign. Returns the text after it. */
static const char *parse(formatter *f, const char *at, conversion *out)
{
    bool unused;
    size_t flags = 0;
    *out = (conversion){.precision = -1};
    for (; *at && strchr("-+ #0", *at); at++)
        if (flags + 1 < sizeof out->flags)
            out->flags[flags++] = *at;
    out->width = take_number(f, &at, &unused);
    if (*at == '.') {
        at++;
        out->precision = take_number(f, &at, &out->exact);
    }
    for (; *at && strchr("hlzjt", *at); at++) {
        if (*at != 'h') /* promoted to int */
            out->length = *at == 'l' && out->length == 'l' ? 'q' : *at;
    }
    out->letter = *at;
    return *at ? at + 1 : at;
}

/* ---- texts ---------------------------------------------------------------------------------- */

/* Returns how many bytes of a string a conversion shows. *more: the string has more bytes. */
static size_t shown_bytes(const conversion *c, const char *text, bool *more)
{
    *more = false;
    if (c->precision < 0)
        return strlen(text);
    size_t most = (size_t)c->precision, length = strnlen(text, most), used;
    if (c->exact || length < most || !text[length])
        return length;
    *more = true;
    for (size_t at = 0; at < length; at += used) /* back to a character boundary */
        if (mgl_utf8_look(text + at, length - at, &used) == MGL_UTF8_CUT)
            return at;
    return length;
}

static void put_text(formatter *f, const conversion *c, const char *text)
{
    bool more, left = strchr(c->flags, '-');
    size_t length = shown_bytes(c, text ? text : "", &more), used;
    int columns = more ? 3 : 0;
    char shown[4];
    for (size_t at = 0; at < length; at += used, columns++)
        mgl_utf8_show(text + at, length - at, shown, &used);
    if (!left)
        put_spaces(f, c->width - columns);
    for (size_t at = 0; at < length; at += used) {
        size_t size = mgl_utf8_show(text + at, length - at, shown, &used);
        f->put(f->user, shown, size);
    }
    if (more)
        f->put(f->user, "...", 3);
    if (left)
        put_spaces(f, c->width - columns);
}

/* ---- numbers -------------------------------------------------------------------------------- */

static int64_t take_signed(formatter *f, const conversion *c)
{
    switch (c->length) {
    case 'l':
        return va_arg(f->args.list, long);
    case 'q':
        return va_arg(f->args.list, long long);
    case 'z':
    case 't':
        return va_arg(f->args.list, ptrdiff_t);
    case 'j':
        return va_arg(f->args.list, intmax_t);
    default:
        return va_arg(f->args.list, int);
    }
}

static uint64_t take_unsigned(formatter *f, const conversion *c)
{
    return c->length ? (uint64_t)take_signed(f, c) : va_arg(f->args.list, unsigned);
}

/* Writes the conversion for snprintf; an integer argument is an intmax_t. */
static void write_conversion(const conversion *c, bool whole, char *to)
{
    int width = c->width < 100 ? c->width : 100;
    int precision = c->precision < 100 ? c->precision : 100;
    to += sprintf(to, "%%%s", c->flags);
    if (width)
        to += sprintf(to, "%d", width);
    if (precision >= 0)
        to += sprintf(to, ".%d", precision);
    sprintf(to, "%s%c", whole ? "j" : "", c->letter);
}

/* Formats one number with snprintf. */
static void put_number(formatter *f, const conversion *c)
{
    char format[64] = {'%', 'j', c->letter}, text[512];
    bool whole = strchr("diuxXo", c->letter);
    int n;
    if (!whole || c->flags[0] || c->width || c->precision >= 0)
        write_conversion(c, whole, format);
    if (c->letter == 'd' || c->letter == 'i')
        n = snprintf(text, sizeof text, format, (intmax_t)take_signed(f, c));
    else if (whole)
        n = snprintf(text, sizeof text, format, (uintmax_t)take_unsigned(f, c));
    else if (c->letter == 'p')
        n = snprintf(text, sizeof text, format, va_arg(f->args.list, void *));
    else
        n = snprintf(text, sizeof text, format, va_arg(f->args.list, double));
    if (n > 0)
        f->put(f->user, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

/* ---- formats -------------------------------------------------------------------------------- */

static const char *put_conversion(formatter *f, const char *at)
{
    conversion c;
    at = parse(f, at, &c);
    if (c.letter == 's') {
        put_text(f, &c, va_arg(f->args.list, const char *));
    } else if (c.letter == 'c') {
        char text[2] = {(char)va_arg(f->args.list, int), 0};
        put_text(f, &c, text);
    } else if (c.letter == '%') {
        f->put(f->user, "%", 1);
    } else if (c.letter) {
        put_number(f, &c);
    }
    return at;
}

void mgl_format(mgl_put_fn *put, void *user, const char *format, va_list args)
{
    formatter f = {.put = put, .user = user};
    va_copy(f.args.list, args);
    while (*format) {
        const char *percent = strchrnul(format, '%');
        if (percent > format)
            put(user, format, (size_t)(percent - format));
        format = *percent ? put_conversion(&f, percent + 1) : percent;
    }
    va_end(f.args.list);
}

/* The output buffer of mgl_format_into. */
typedef struct buffer {
    char *to;
    size_t size, used;
    bool full;
} buffer;

static void put_into(void *user, const char *bytes, size_t length)
{
    buffer *b = user;
    size_t room = b->size - 1 - b->used;
    if (b->full)
        return;
    b->full = length > room;
    memcpy(b->to + b->used, bytes, b->full ? room : length);
    b->used += b->full ? room : length;
}

void mgl_format_list(char *to, size_t size, const char *format, va_list args)
{
    buffer b = {to, size, 0, false};
    size_t used;
    mgl_format(put_into, &b, format, args);
    for (size_t at = 0; b.full && at < b.used; at += used)
        if (mgl_utf8_look(to + at, b.used - at, &used) == MGL_UTF8_CUT)
            b.used = at;
    to[b.used] = 0;
}

void mgl_format_into(char *to, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mgl_format_list(to, size, format, args);
    va_end(args);
}

/* Returns where the last sentences of at most `most` bytes begin: after the end of a sentence or
 * clause, else at a word. */
static const char *find_end(const char *text, size_t length, size_t most)
{
    const char *first = text + length - most, *word = NULL;
    for (const char *at = first; *at; at++) {
        if (at == text || at[-1] != ' ')
            continue;
        if (at - text >= 2 && strchr(";:.", at[-2]))
            return at;
        word = word ? word : at;
    }
    return word ? word : text + length;
}

void mgl_format_ends_list(char *to, size_t size, const char *format, va_list args)
{
    static const char gap[] = " ... ";
    char whole[4096];
    mgl_format_list(whole, sizeof whole, format, args);
    size_t length = strlen(whole);
    if (length < size) {
        memcpy(to, whole, length + 1);
        return;
    }
    const char *end = find_end(whole, length, size / 2);
    size_t tail = length - (size_t)(end - whole);
    mgl_format_into(to, tail ? size - tail - strlen(gap) : size, "%s", whole);
    size_t head = strlen(to);
    while (tail && head && to[head - 1] == ' ')
        head--;
    if (tail)
        strcpy(stpcpy(to + head, gap), end);
}

void mgl_format_ends(char *to, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mgl_format_ends_list(to, size, format, args);
    va_end(args);
}

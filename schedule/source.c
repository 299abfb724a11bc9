/*
 * Diagnostics of a text. The echoed line is built column by column: each character of the source
 * takes one column, whatever it was, so that the caret stands under it. Lines of any length cost
 * the same few hundred bytes of the message.
 */
#include "schedule/source.h"

#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 96,      /* columns of the echoed line */
    BEFORE = 60,     /* of these, the ones in front of the caret where a long line is cut */
    WHERE_FILE = 200 /* bytes of the file's name that fit into mgl_error.where */
};

/* Bytes of the UTF-8 character at `at`, or 0 when there is none: truncated, overlong, surrogate. */
static int utf8_length(const char *at, const char *end)
{
    const unsigned char *s = (const unsigned char *)at;
    int n = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (n == 0 || s[0] > 0xF4 || end - at < n)
        return 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
        (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return n;
}

/* The next character; a byte that is not UTF-8 is one by itself. */
static const char *next(const char *at, const char *end)
{
    int n = utf8_length(at, end);
    return at + (n ? n : 1);
}

static int columns(const char *from, const char *to)
{
    int n = 0;
    for (; from < to; from = next(from, to))
        n++;
    return n;
}

/* The character at `at` as one visible column. */
static size_t show(char *to, const char *at, const char *end)
{
    int n = utf8_length(at, end);
    unsigned char first = (unsigned char)at[0];
    if (n == 0 || first < 0x20 || first == 0x7F || (n == 2 && first == 0xC2 && !(at[1] & 0x20))) {
        *to = first == '\t' ? ' ' : '?';
        return 1;
    }
    memcpy(to, at, (size_t)n);
    return (size_t)n;
}

/* The line and the caret line, from column `skip` on. */
static void echo(const char *line, const char *end, int skip, int column, int length, char *out)
{
    const char *at = line;
    int shown = 0;
    for (int i = 0; i < skip; i++)
        at = next(at, end);
    if (skip)
        out += sprintf(out, "...");
    for (; at < end && shown < WIDTH; at = next(at, end), shown++)
        out += show(out, at, end);
    out += sprintf(out, "%s\n", at < end ? "..." : "");
    int before = column - skip + (skip ? 3 : 0);
    memset(out, ' ', (size_t)before);
    out += before;
    *out++ = '^';
    int room = WIDTH - (column - skip) - 1;
    int tildes = length - 1 < room ? length - 1 : room;
    for (int i = 0; i < tildes; i++)
        *out++ = '~';
    *out = 0;
}

mgl_status mgl_source_fail(const mgl_source_text *source, const char *from, const char *to,
                           const char *message, mgl_error *err)
{
    if (!err)
        return MGL_BAD_INPUT;
    size_t rest = (size_t)(source->end - source->line);
    const char *end = rest ? memchr(source->line, '\n', rest) : NULL;
    end = end ? end : source->end;
    if (end > source->line && end[-1] == '\r' && from < end)
        end--;
    int column = columns(source->line, from);
    int length = to > from ? columns(from, to < end ? to : end) : 1;
    int all = column + columns(from, end);
    int skip = all <= WIDTH || column <= BEFORE ? 0
               : all - WIDTH < column - BEFORE  ? all - WIDTH
                                                : column - BEFORE;
    char echoed[WIDTH * 5 + 16], where[sizeof err->where];
    echo(source->line, end, skip, column, length, echoed);

    const char *file = source->file ? source->file : "schedule";
    size_t n = strlen(file);
    snprintf(where, sizeof where, "%s%s:%d:%d", n > WHERE_FILE ? "..." : "",
             n > WHERE_FILE ? file + n - WHERE_FILE : file, source->number, column + 1);
    return mgl_fail(err, MGL_BAD_INPUT, where, "%s\n%s", message, echoed);
}

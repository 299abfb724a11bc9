/*
 * Builds the diagnostics of source.h. The source line is echoed column by column: each character
 * takes one column, so that the caret is under the right character. A line of any length takes
 * at most a few hundred bytes of the message.
 */
#include "base/source.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 96,      /* columns of the echoed line */
    BEFORE = 60,     /* of these, the columns before the caret if a long line is cut */
    WHERE_FILE = 200 /* bytes of the file name that fit into mgl_error.where */
};

/* Moves to the next character; an invalid byte counts as one character. */
static const char *next(const char *at, const char *end)
{
    size_t used;
    mgl_utf8_look(at, (size_t)(end - at), &used);
    return at + used;
}

static int columns(const char *from, const char *to)
{
    int n = 0;
    for (; from < to; from = next(from, to))
        n++;
    return n;
}

/* Writes the line from column `skip` on. */
static void echo(const char *line, const char *end, int skip, char *out)
{
    const char *at = line;
    int shown = 0;
    size_t used;
    for (int i = 0; i < skip; i++)
        at = next(at, end);
    if (skip)
        out += sprintf(out, "...");
    for (; at < end && shown < WIDTH; at += used, shown++)
        out += mgl_utf8_show(at, (size_t)(end - at), out, &used);
    sprintf(out, "%s", at < end ? "..." : "");
}

/* Writes the caret and its tildes, under that line. */
static void point(int skip, int column, int length, char *out)
{
    int before = column - skip + (skip ? 3 : 0), room = WIDTH - (column - skip) - 1;
    int tildes = length - 1 < room ? length - 1 : room;
    memset(out, ' ', (size_t)before);
    out += before;
    *out++ = '^';
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
    char echoed[WIDTH * 4 + 16], caret[WIDTH * 2], where[sizeof err->where];
    echo(source->line, end, skip, echoed);
    point(skip, column, length, caret);

    size_t n = strlen(source->file);
    snprintf(where, sizeof where, "%s%s:%d:%d", n > WHERE_FILE ? "..." : "",
             n > WHERE_FILE ? source->file + n - WHERE_FILE : source->file, source->number,
             column + 1);
    return mgl_fail(err, MGL_BAD_INPUT, where, "%s\n%s\n%s", message, echoed, caret);
}

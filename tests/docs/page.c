#include "page.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

enum { MAX_BYTES = 1 << 20 };

static void put(page *p, char c, unsigned char mark, int line)
{
    if (c == ' ' && (!p->length || p->text[p->length - 1] == ' '))
        return;
    p->text[p->length] = c;
    p->marks[p->length] = mark;
    p->lines[p->length++] = line;
}

static bool is_blank(const char *line, size_t length)
{
    return strspn(line, " \t") >= length;
}

bool page_read(const char *path, page *out)
{
    mgl_error err;
    char *bytes;
    size_t size;
    if (mgl_file_read(path, MAX_BYTES, &bytes, &size, &err)) {
        printf("%s: %s\n", err.where, err.message);
        return false;
    }
    *out = (page){.text = calloc(size + 2, 1),
                  .marks = calloc(size + 2, 1),
                  .lines = calloc(size + 2, sizeof(int))};
    if (!out->text || !out->marks || !out->lines)
        abort();
    bool fence = false, block = false, blank = true, span = false;
    int number = 1;
    for (const char *line = bytes; line < bytes + size; number++) {
        size_t length = strcspn(line, "\n");
        bool ticks = !strncmp(line, "```", 3), empty = is_blank(line, length);
        if (ticks)
            fence = !fence;
        /* An indented block (code) begins after a blank line and ends at the first line that is not
         * indented. Lists have less indentation. */
        block = !strncmp(line, "    ", 4) ? block || blank : block && empty;
        blank = empty;
        if (empty || block)
            span = false;
        unsigned char mark = fence || ticks || block ? IN_CODE : *line == '|' ? IN_TABLE : 0;
        for (size_t i = 0; i < length; i++) {
            bool tick = line[i] == '`' && !(mark & IN_CODE);
            span ^= tick;
            put(out, line[i] == '\t' ? ' ' : line[i], mark | (span || tick ? IN_CODE : 0), number);
        }
        put(out, ' ', mark, number);
        line += length + (line[length] == '\n');
    }
    free(bytes);
    return true;
}

void page_clear(page *p)
{
    free(p->text);
    free(p->marks);
    free(p->lines);
}

/* The end of a number that begins at `at`: 1,234.5e-03. */
static size_t number_end(const char *text, size_t at)
{
    while (isdigit((unsigned char)text[at]) ||
           (strchr(",.", text[at]) && text[at] && isdigit((unsigned char)text[at + 1])))
        at++;
    if (text[at] == 'e' && (text[at + 1] == '-' || text[at + 1] == '+') &&
        isdigit((unsigned char)text[at + 2])) {
        at += 2;
        while (isdigit((unsigned char)text[at]))
            at++;
    }
    return at;
}

static bool has_unit(const char *text, size_t at)
{
    static const char *const units[] = {"%",       "us",     "ms",       "s",     "second",
                                        "seconds", "minute", "minutes",  "hours", "GB",
                                        "MB",      "KB",     "TB",       "KiB",   "MiB",
                                        "GiB",     "GB/s",   "MB/s",     "GB,",   "x",
                                        "W",       "MHz",    "tokens/s", "times", "tokens a second",
                                        "percent", "ns"};
    at += text[at] == ' ';
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(units[i]);
        if (!strncmp(text + at, units[i], length) && !isalnum((unsigned char)text[at + length]) &&
            text[at + length] != '_')
            return true;
    }
    static const char *const joins[] = {" to ", " and ", ", ", " or ", " against "};
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        size_t next = at - (at && text[at - 1] == ' ');
        if (strncmp(text + next, joins[i], strlen(joins[i])) != 0)
            continue;
        next += strlen(joins[i]);
        next += text[next] == '-' || text[next] == '+';
        if (isdigit((unsigned char)text[next]))
            return has_unit(text, number_end(text, next));
    }
    return false;
}

/* Whether the table cell around this byte contains only numbers, signs and units. */
static bool cell_of_numbers(const page *p, size_t at)
{
    static const char *const words[] = {"to", "of", "s", "us", "ms", "GB", "MB", "KB", "e"};
    size_t begin = at, end = at;
    while (begin > 0 && p->text[begin - 1] != '|')
        begin--;
    while (p->text[end] && p->text[end] != '|')
        end++;
    for (size_t i = begin; i < end; i++) {
        if (!isalpha((unsigned char)p->text[i])) {
            if (!strchr("0123456789 .,+-%*\\()", p->text[i]))
                return false;
            continue;
        }
        size_t length = 0;
        bool known = false;
        while (isalpha((unsigned char)p->text[i + length]))
            length++;
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            known |= mgl_text_is(p->text + i, length, words[w]);
        if (!known)
            return false;
        i += length - 1;
    }
    return true;
}

/* Whether the number is in the head of a table or in the first cell of a row, which are keys. */
static bool is_key(const page *p, size_t at)
{
    size_t first = at, end = at;
    int bars = 0;
    for (; first > 0 && p->lines[first - 1] == p->lines[at]; first--)
        bars += p->text[first] == '|';
    while (end < p->length && p->lines[end] == p->lines[at])
        end++;
    return bars == 0 || !strncmp(p->text + end, "|-", 2);
}

bool page_next(const page *p, size_t *at, size_t *begin, size_t *end)
{
    for (size_t i = *at; i < p->length; i++) {
        if (!isdigit((unsigned char)p->text[i]))
            continue;
        size_t stop = number_end(p->text, i);
        char before = i ? p->text[i - 1] : ' ';
        *begin = i;
        *end = stop;
        i = stop - 1;
        if (isalnum((unsigned char)before) || strchr("_./:#", before) ||
            (p->marks[*begin] & (IN_CODE | COVERED)) ||
            (before == '-' && *begin > 1 && isalnum((unsigned char)p->text[*begin - 2])))
            continue;
        if (!has_unit(p->text, stop) &&
            !(p->marks[*begin] & IN_TABLE && cell_of_numbers(p, *begin) && !is_key(p, *begin)))
            continue;
        *at = stop;
        return true;
    }
    return false;
}

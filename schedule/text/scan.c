/*
 * Implements scan.h. Functions never read past the end of the text, which need not be 0-terminated,
 * and report what they expected and what they found.
 */
#include "schedule/text/scan.h"
#include "schedule/schedule.h"

#include "base/format.h"
#include "base/memory.h"
#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 40 }; /* bytes of a found word in a message */

/* ---- errors --------------------------------------------------------------------------------- */

bool mgl_scan_fail(mgl_scan *s, const char *from, const char *to, const char *format, ...)
{
    char message[1000];
    va_list args;
    va_start(args, format);
    mgl_format_list(message, sizeof message, format, args);
    va_end(args);
    s->status = mgl_source_fail(&s->source, from, to, message, s->err);
    return false;
}

bool mgl_scan_fail_memory(mgl_scan *s, size_t bytes)
{
    s->status = mgl_fail_memory(s->err, bytes);
    return false;
}

/* ---- bytes and words ------------------------------------------------------------------------ */

void mgl_scan_skip_blanks(mgl_scan *s)
{
    while (s->at < s->source.end && (*s->at == ' ' || *s->at == '\t'))
        s->at++;
}

bool mgl_scan_at_line_end(mgl_scan *s)
{
    mgl_scan_skip_blanks(s);
    return s->at == s->source.end || *s->at == '\n' || *s->at == '#' ||
           (*s->at == '\r' && s->at + 1 < s->source.end && s->at[1] == '\n');
}

/* Includes uppercase letters, which mgl_scan_word rejects with a specific message. */
static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

const char *mgl_scan_found_end(const mgl_scan *s)
{
    const char *to = s->at;
    while (to < s->source.end && is_word_byte(*to))
        to++;
    return to == s->at && to < s->source.end ? to + 1 : to;
}

bool mgl_scan_fail_expected(mgl_scan *s, const char *what)
{
    if (mgl_scan_at_line_end(s))
        return mgl_scan_fail(s, s->at, s->at, "expected %s, found the end of the line", what);
    const char *to = mgl_scan_found_end(s);
    int length = (int)(to - s->at > SHOWN ? SHOWN : to - s->at);
    unsigned char byte = (unsigned char)*s->at;
    if (byte < 0x20 || byte >= 0x7F)
        return mgl_scan_fail(s, s->at, to, "expected %s, found byte 0x%02x", what, byte);
    return mgl_scan_fail(s, s->at, to, "expected %s, found `%.*s`%s", what, length, s->at,
                         to - s->at > SHOWN ? "..." : "");
}

bool mgl_scan_word(mgl_scan *s, const char *what, mgl_word *out)
{
    mgl_scan_skip_blanks(s);
    const char *to = s->at;
    for (; to < s->source.end && is_word_byte(*to); to++)
        if (*to >= 'A' && *to <= 'Z')
            return mgl_scan_fail(s, to, to + 1, "`%c` in %s: names and words are lower case", *to,
                                 what);
    if (to == s->at)
        return mgl_scan_fail_expected(s, what);
    if (to - s->at > MGL_SCAN_NAME)
        return mgl_scan_fail(s, s->at, to, "%s is longer than %d bytes", what, MGL_SCAN_NAME);
    *out = (mgl_word){s->at, (int)(to - s->at)};
    s->at = to;
    return true;
}

bool mgl_word_is(mgl_word w, const char *text)
{
    return mgl_text_is(w.at, (size_t)w.length, text);
}

bool mgl_scan_take_word(mgl_scan *s, const char *text)
{
    mgl_scan_skip_blanks(s);
    const char *to = s->at;
    while (to < s->source.end && is_word_byte(*to) && to - s->at <= MGL_SCAN_NAME)
        to++;
    if (!mgl_word_is((mgl_word){s->at, (int)(to - s->at)}, text))
        return false;
    s->at = to;
    return true;
}

bool mgl_scan_expect_word(mgl_scan *s, const char *text)
{
    char what[64];
    if (mgl_scan_take_word(s, text))
        return true;
    snprintf(what, sizeof what, "`%s`", text);
    return mgl_scan_fail_expected(s, what);
}

bool mgl_scan_take(mgl_scan *s, char byte)
{
    mgl_scan_skip_blanks(s);
    if (s->at == s->source.end || *s->at != byte)
        return false;
    s->at++;
    return true;
}

bool mgl_scan_expect(mgl_scan *s, char byte)
{
    char what[8];
    if (mgl_scan_take(s, byte))
        return true;
    snprintf(what, sizeof what, "`%c`", byte);
    return mgl_scan_fail_expected(s, what);
}

bool mgl_scan_number(mgl_scan *s, const char *what, int64_t max, int64_t *out)
{
    mgl_word w;
    int64_t number = 0;
    mgl_scan_skip_blanks(s);
    if (s->at == s->source.end || *s->at < '0' || *s->at > '9')
        return mgl_scan_fail_expected(s, what);
    if (!mgl_scan_word(s, what, &w))
        return false;
    for (int i = 0; i < w.length; i++) {
        if (w.at[i] < '0' || w.at[i] > '9') {
            s->at = w.at;
            return mgl_scan_fail_expected(s, what);
        }
        number = number * 10 + (w.at[i] - '0');
        if (number > max)
            return mgl_scan_fail(s, w.at, w.at + w.length, "this number is too large: at most %lld",
                                 (long long)max);
    }
    *out = number;
    return true;
}

bool mgl_scan_int(mgl_scan *s, const char *what, int *out)
{
    int64_t number = 0;
    if (!mgl_scan_number(s, what, INT32_MAX, &number))
        return false;
    *out = (int)number;
    return true;
}

/* Whether the whole text is a finite float. */
static bool parse_float(const char *text, locale_t c, float *out)
{
    char *stop;
    if (strpbrk(text, "xX")) /* no hexadecimal floats */
        return false;
    *out = strtof_l(text, &stop, c);
    return *stop == 0 && isfinite(*out);
}

bool mgl_scan_float(mgl_scan *s, const char *what, float *out)
{
    char digits[48];
    mgl_scan_skip_blanks(s);
    const char *to = s->at;
    while (to < s->source.end && (is_word_byte(*to) || *to == '+'))
        to++;
    if (to == s->at || *s->at < '0' || *s->at > '9')
        return mgl_scan_fail_expected(s, what);
    size_t length = (size_t)(to - s->at);
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return mgl_scan_fail_memory(s, 1);
    bool read = length < sizeof digits;
    if (read) {
        memcpy(digits, s->at, length);
        digits[length] = 0;
        read = parse_float(digits, c, out);
    }
    freelocale(c);
    if (!read)
        return mgl_scan_fail(s, s->at, to, "no float holds this number: write one such as 1e-05");
    s->at = to;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads the escape after a backslash: one byte. */
static bool read_escape(mgl_scan *s, char *out)
{
    const char *from = s->at - 1;
    if (s->at < s->source.end && (*s->at == '"' || *s->at == '\\')) {
        *out = *s->at++;
        return true;
    }
    if (s->source.end - s->at >= 3 && s->at[0] == 'x') {
        int high = hex_digit(s->at[1]), low = hex_digit(s->at[2]);
        if (high >= 0 && low >= 0 && high + low > 0) {
            *out = (char)(high * 16 + low);
            s->at += 3;
            return true;
        }
    }
    return mgl_scan_fail(s, from, s->at,
                         "an escape is \\\", \\\\ or \\xNN with two hexadecimal digits");
}

bool mgl_scan_string(mgl_scan *s, const char *what, char out[MGL_SCAN_STRING + 1])
{
    const char *from = s->at;
    int n = 0;
    if (!mgl_scan_take(s, '"'))
        return mgl_scan_fail_expected(s, what);
    from = s->at - 1;
    for (;;) {
        if (s->at == s->source.end || *s->at == '\n')
            return mgl_scan_fail(s, from, s->at, "the string has no closing `\"` on its line");
        char byte = *s->at++;
        if (byte == '"')
            break;
        if ((unsigned char)byte < 0x20 || byte == 0x7F)
            return mgl_scan_fail(s, s->at - 1, s->at, "a control byte in a string: write \\x%02x",
                                 (unsigned)byte);
        if (byte == '\\' && !read_escape(s, &byte))
            return false;
        if (n == MGL_SCAN_STRING)
            return mgl_scan_fail(s, from, s->at, "the string is longer than %d bytes",
                                 MGL_SCAN_STRING);
        out[n++] = byte;
    }
    out[n] = 0;
    return true;
}

/* ---- lines ---------------------------------------------------------------------------------- */

bool mgl_scan_line_end(mgl_scan *s)
{
    return mgl_scan_at_line_end(s) || mgl_scan_fail_expected(s, "the end of the line");
}

bool mgl_scan_next_line(mgl_scan *s)
{
    for (;;) {
        if (!mgl_scan_at_line_end(s))
            return true;
        const char *newline = memchr(s->at, '\n', (size_t)(s->source.end - s->at));
        if (!newline) {
            s->at = s->source.end;
            return false;
        }
        s->at = s->source.line = newline + 1;
        s->source.number++;
    }
}

/* ---- the first line -------------------------------------------------------------------------- */

bool mgl_schedule_begins(const char *text, size_t length)
{
    mgl_scan s = {.source = {.end = text + length, .line = text, .number = 0}, .at = text};
    return mgl_scan_next_line(&s) && mgl_scan_take_word(&s, "megalith") &&
           !mgl_scan_at_line_end(&s) && *s.at >= '0' && *s.at <= '9';
}

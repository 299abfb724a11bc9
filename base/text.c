/* Growing strings and edit distance. See text.h. */
#include "base/text.h"

#include "base/memory.h"

#include <float.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(mgl_text *text, size_t more)
{
    size_t need;
    if (text->failed)
        return false;
    if (!mgl_add(text->length, more, &need) || !mgl_add(need, 1, &need)) {
        text->failed = true;
        return false;
    }
    if (need <= text->capacity)
        return true;
    size_t wanted = text->capacity ? text->capacity : 64;
    while (wanted < need)
        wanted = wanted > need / 2 ? need : wanted * 2;
    if (wanted < text->capacity + text->capacity / 2)
        wanted = text->capacity + text->capacity / 2;
    char *grown = mgl_realloc(text->bytes, wanted);
    if (!grown) {
        text->failed = true;
        return false;
    }
    text->bytes = grown;
    text->capacity = wanted;
    return true;
}

void mgl_text_append(mgl_text *text, const char *bytes, size_t length)
{
    if (!reserve(text, length))
        return;
    if (length)
        memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = 0;
}

void mgl_text_put(mgl_text *text, const char *string)
{
    mgl_text_append(text, string, strlen(string));
}

void mgl_text_format(mgl_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n >= 0 && reserve(text, (size_t)n)) {
        vsnprintf(text->bytes + text->length, (size_t)n + 1, format, again);
        text->length += (size_t)n;
    } else {
        text->failed = true;
    }
    va_end(again);
}

/* Appends digits of the current locale, with a point. */
static void put_digits(mgl_text *text, const char *digits)
{
    const char *point = localeconv()->decimal_point, *at = strstr(digits, point);
    mgl_text_append(text, digits, at ? (size_t)(at - digits) : strlen(digits));
    if (at) {
        mgl_text_put(text, ".");
        mgl_text_put(text, at + strlen(point));
    }
}

void mgl_text_put_float(mgl_text *text, float value, int least)
{
    char digits[40];
    do
        snprintf(digits, sizeof digits, "%.*g", least, (double)value);
    while (strtof(digits, NULL) != value && ++least <= FLT_DECIMAL_DIG);
    put_digits(text, digits);
}

void mgl_text_put_double(mgl_text *text, double value, int least)
{
    char digits[40];
    do
        snprintf(digits, sizeof digits, "%.*g", least, value);
    while (strtod(digits, NULL) != value && ++least <= DBL_DECIMAL_DIG);
    put_digits(text, digits);
}

void mgl_text_clear(mgl_text *text)
{
    mgl_free(text->bytes);
    *text = (mgl_text){0};
}

bool mgl_text_ends(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

int mgl_text_count_edits(const char *a, const char *b)
{
    int row[MGL_MOST_EDITED + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > MGL_MOST_EDITED || m > MGL_MOST_EDITED)
        return MGL_MOST_EDITED;
    for (size_t j = 0; j <= m; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

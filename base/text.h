/* Comparisons of texts, and a growing string. Appends do not return errors: after the first failed
 * allocation `failed` is set, later appends do nothing, and the caller checks `failed` once at the
 * end. */
#ifndef MGL_BASE_TEXT_H
#define MGL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct mgl_text {
    char *bytes;     /* 0-terminated once anything was appended; NULL before */
    size_t length;   /* without the 0 */
    size_t capacity; /* allocated bytes */
    bool failed;     /* memory ran out */
} mgl_text;

void mgl_text_append(mgl_text *text, const char *bytes, size_t length);
void mgl_text_put(mgl_text *text, const char *string);
void mgl_text_format(mgl_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends the shortest decimal of `least` or more significant digits that reads back as the finite
 * number, with a point in every locale. */
void mgl_text_put_float(mgl_text *text, float value, int least);
void mgl_text_put_double(mgl_text *text, double value, int least);
void mgl_text_clear(mgl_text *text); /* releases; zero-initialized again */

/* Whether a text ends in `end`. */
bool mgl_text_ends(const char *text, const char *end);
/* Whether the `length` bytes at `word` are the text. */
static inline bool mgl_text_is(const char *word, size_t length, const char *text)
{
    return strlen(text) == length && !memcmp(word, text, length);
}

/* Levenshtein distance between two texts (insert, delete, replace), for suggestions after typing
 * errors. MGL_MOST_EDITED if either text is longer than that. */
enum { MGL_MOST_EDITED = 200 };
int mgl_text_count_edits(const char *a, const char *b);

#endif

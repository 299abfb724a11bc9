/* A growing text. Appends never fail loudly: the first failed allocation sets `failed`, later
 * appends do nothing, and the caller asks once at the end. */
#ifndef MGL_BASE_TEXT_H
#define MGL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct mgl_text {
    char *bytes;     /* 0-terminated once anything was appended; NULL before */
    size_t length;   /* without the 0 */
    size_t capacity; /* allocated bytes */
    bool failed;     /* memory ran out */
} mgl_text;

void mgl_text_append(mgl_text *text, const char *bytes, size_t length);
void mgl_text_put(mgl_text *text, const char *string);
void mgl_text_format(mgl_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mgl_text_clear(mgl_text *text); /* releases; zero-initialised again */

/* Edits (insert, delete, replace) that lead from a text to another: what a typing error is measured
 * by. MGL_MOST_EDITED where one of them is longer than that. */
enum { MGL_MOST_EDITED = 200 };
int mgl_text_count_edits(const char *a, const char *b);

#endif

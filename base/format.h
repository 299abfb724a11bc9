/*
 * Formatting of what people read on a terminal: printf, but that nothing from a file can speak to
 * the terminal. Arguments of %s and %c are shown character by character (mgl_utf8_show): controls,
 * escape sequences, overrides of direction and what is no UTF-8 become `?`, and a line ends only
 * where the format itself says so. And a text that is quoted is cut visibly: "%.80s" of a longer
 * text ends in "...".
 *
 * Of printf there is %d %i %u %x %X %o %c %s %f %e %g %p %% with flags, widths, precisions and the
 * lengths l, ll, z, j and t. "%.*s" is a piece of that many bytes, no more of which is looked at.
 */
#ifndef MGL_BASE_FORMAT_H
#define MGL_BASE_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* What stands behind a noun that is counted: "1 token", "2 tokens". */
static inline const char *mgl_plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* What stands before the most of something: "1 to 16", and "1" where that is all. */
static inline const char *mgl_up_to(size_t most)
{
    return most > 1 ? "1 to " : "";
}

/* Receives the formatted text, piece by piece. */
typedef void mgl_put_fn(void *user, const char *bytes, size_t length);

void mgl_format(mgl_put_fn *put, void *user, const char *format, va_list args);

/* Into `to` (size bytes), 0-terminated; what has no room is cut at the end of a character. */
void mgl_format_into(char *to, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void mgl_format_list(char *to, size_t size, const char *format, va_list args);

/* The same, but what has no room is left out of the middle: of a diagnostic stay what is wrong, in
 * front, and its last sentences, which say what to do. */
void mgl_format_ends(char *to, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void mgl_format_ends_list(char *to, size_t size, const char *format, va_list args);

#endif

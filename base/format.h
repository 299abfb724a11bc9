/*
 * printf for text that is shown on a terminal. Arguments of %s and %c pass through mgl_utf8_show:
 * control characters, escape sequences, direction overrides and invalid UTF-8 become `?`. A line
 * ends only where the format itself has a newline. A quoted text that is too long is cut visibly:
 * "%.80s" of a longer text ends in "...".
 *
 * Supported: %d %i %u %x %X %o %c %s %f %e %g %p %% with flags, widths, precisions and the lengths
 * l, ll, z, j and t. "%.*s" prints a piece of that many bytes and reads no byte past it.
 */
#ifndef MGL_BASE_FORMAT_H
#define MGL_BASE_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* The plural suffix for a count: "1 token", "2 tokens". */
static inline const char *mgl_plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* The prefix of a maximum: "1 to 16", or just "1" if the maximum is 1. */
static inline const char *mgl_up_to(size_t most)
{
    return most > 1 ? "1 to " : "";
}

/* Receives the formatted text in pieces. */
typedef void mgl_put_fn(void *user, const char *bytes, size_t length);

void mgl_format(mgl_put_fn *put, void *user, const char *format, va_list args);

/* Formats into `to` (size bytes), 0-terminated. A text that does not fit is cut at a character
 * boundary. */
void mgl_format_into(char *to, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void mgl_format_list(char *to, size_t size, const char *format, va_list args);

/* Same, but text that does not fit is removed from the middle. So a diagnostic keeps its
 * beginning (what is wrong) and its last sentences (what to do). */
void mgl_format_ends(char *to, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void mgl_format_ends_list(char *to, size_t size, const char *format, va_list args);

#endif

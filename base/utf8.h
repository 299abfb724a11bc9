/*
 * UTF-8 decoding and validation. Text that enters the tokenizer is made valid once
 * (mgl_utf8_repair); later code walks characters without checking. An invalid sequence counts as
 * one U+FFFD per maximal subpart (Unicode 3.9, "substitution of maximal subparts"), as in
 * Hugging Face's decoder. Text for a terminal passes through mgl_utf8_show.
 */
#ifndef MGL_BASE_UTF8_H
#define MGL_BASE_UTF8_H

#include "base/error.h"
#include "base/text.h"

#include <stdint.h>

#define MGL_UTF8_REPLACEMENT "\xEF\xBF\xBD"

typedef enum mgl_utf8_kind {
    MGL_UTF8_WHOLE, /* one character of *used bytes */
    MGL_UTF8_BAD,   /* *used bytes (at least 1) that cannot begin a character */
    MGL_UTF8_CUT    /* the text ends within a character that is valid so far */
} mgl_utf8_kind;

/* Classifies the bytes at the start of `text` (length at least 1). */
mgl_utf8_kind mgl_utf8_look(const char *text, size_t length, size_t *used);

/* Returns how many leading bytes are valid UTF-8. */
size_t mgl_utf8_valid(const char *text, size_t length);

/* Returns MGL_BAD_INPUT if the text of `file` begins with a byte order mark (UTF-8, UTF-16 or
 * UTF-32): the project's input files must not have one. */
mgl_status mgl_utf8_check_mark(const char *text, size_t length, const char *file, mgl_error *err);

/* Appends `text`, with U+FFFD for invalid sequences. */
void mgl_utf8_repair(const char *text, size_t length, mgl_text *out);

/* Makes the character at the start of `text` (length at least 1) safe for a terminal. Controls,
 * the start of escape sequences, direction overrides, line separators and invalid UTF-8 become
 * `?`; a tab becomes a space; other characters are unchanged. Writes 1 to 4 bytes to `to` and
 * returns how many. *used becomes the number of bytes of `text` that were consumed. */
size_t mgl_utf8_show(const char *text, size_t length, char to[4], size_t *used);

/* Returns the size in bytes of the character that starts with `lead`, in valid text. */
static inline size_t mgl_utf8_size(char lead)
{
    unsigned char byte = (unsigned char)lead;
    return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/* Decodes the character at `text`, which must be valid; returns its size. */
static inline size_t mgl_utf8_next(const char *text, uint32_t *character)
{
    const unsigned char *byte = (const unsigned char *)text;
    size_t size = mgl_utf8_size(*text);
    if (size == 1)
        *character = byte[0];
    else if (size == 2)
        *character = (byte[0] & 0x1Fu) << 6 | (byte[1] & 0x3Fu);
    else if (size == 3)
        *character = (byte[0] & 0x0Fu) << 12 | (byte[1] & 0x3Fu) << 6 | (byte[2] & 0x3Fu);
    else
        *character = (byte[0] & 0x07u) << 18 | (byte[1] & 0x3Fu) << 12 | (byte[2] & 0x3Fu) << 6 |
                     (byte[3] & 0x3Fu);
    return size;
}

/* Returns where the last character of a valid, non-empty text starts. */
static inline size_t mgl_utf8_last(const char *text, size_t length)
{
    size_t at = length - 1;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80)
        at--;
    return at;
}

/* Writes at most 4 bytes; returns how many. */
size_t mgl_utf8_put(uint32_t character, char *out);

#endif

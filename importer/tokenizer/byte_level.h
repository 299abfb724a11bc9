/*
 * GPT-2's byte alphabet: maps every byte to one printable character, so that the tokens of a
 * vocabulary are text. Bytes that are printable in Latin-1 map to themselves. The other 68 bytes
 * map to U+0100 and up in order (so the space is U+0120). Source: bytes_to_unicode in
 * gpt-2/src/encoder.py.
 */
#ifndef MGL_IMPORTER_TOKENIZER_BYTE_LEVEL_H
#define MGL_IMPORTER_TOKENIZER_BYTE_LEVEL_H

#include "base/text.h"

#include <stdint.h>

/* Returns the character of a byte. */
uint32_t mgl_byte_level_character(uint8_t byte);

/* Returns the byte of a character, or -1 if it is not in the alphabet. */
int mgl_byte_level_byte(uint32_t character);

/* Appends the characters of `length` bytes, in UTF-8. */
void mgl_byte_level_map(const char *bytes, size_t length, mgl_text *out);

/* Appends the bytes of a text in this alphabet (valid UTF-8). If a character is not in the
 * alphabet, returns false and appends nothing. */
bool mgl_byte_level_unmap(const char *text, size_t length, mgl_text *out);

#endif

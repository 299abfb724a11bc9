/*
 * GPT-2's byte alphabet: every byte stands for one printable character, so that a vocabulary is
 * text. Bytes that are printable in Latin-1 stand for themselves; the other 68 take U+0100 and up
 * in order (so the space is U+0120). Source of the rule: bytes_to_unicode in gpt-2/src/encoder.py.
 */
#ifndef MGL_IMPORTER_TOKENIZER_BYTE_LEVEL_H
#define MGL_IMPORTER_TOKENIZER_BYTE_LEVEL_H

#include "base/text.h"

#include <stdint.h>

/* The character of a byte. */
uint32_t mgl_byte_level_character(uint8_t byte);

/* The byte of a character; -1 when it stands for none. */
int mgl_byte_level_byte(uint32_t character);

/* Appends the characters of `length` bytes, in UTF-8. */
void mgl_byte_level_map(const char *bytes, size_t length, mgl_text *out);

/* Appends the bytes that a text, which is valid UTF-8, stands for; false, and nothing, where a
 * character of it stands for none. */
bool mgl_byte_level_unmap(const char *text, size_t length, mgl_text *out);

#endif

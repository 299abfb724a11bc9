/*
 * Unicode character properties as the libraries behind Hugging Face's tokenizers define them.
 * These use different Unicode versions: Oniguruma and the regex crate 16, Rust's own tables 17,
 * the crate of the normal forms 9, the crate of the punctuation 8. PCRE2 10.42 uses 14, and
 * utf8proc differs too. The differences are listed here; they were found by comparing every
 * character. Classes are written as the inside of a PCRE2 class. Used by the tokenizer and by
 * the strings of chat templates.
 */
#ifndef MGL_IMPORTER_TOKENIZER_UNICODE_TABLES_H
#define MGL_IMPORTER_TOKENIZER_UNICODE_TABLES_H

#include <stdbool.h>
#include <stdint.h>

/* Unicode's White_Space; PCRE2's own \s also has U+180E. */
#define MGL_UNICODE_SPACE                                                                          \
    "\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}"    \
    "\\x{205F}\\x{3000}"

/* Patterns in PCRE2's syntax for the pre-tokenizers without a pattern in the file. */
extern const char mgl_unicode_digit[];       /* char::is_numeric */
extern const char mgl_unicode_punctuation[]; /* ASCII punctuation, and the categories P of the
                                              * crate */
extern const char mgl_unicode_space[];       /* char::is_whitespace */
extern const char mgl_unicode_words[];       /* \w+|[^\w\s]+ of the regex crate */
extern const char mgl_unicode_word[];        /* \w of the regex crate */

/* Returns whether a character is White_Space. */
static inline bool mgl_unicode_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

/* Returns the class of a property of Oniguruma: a category (short or long name), a few binary
 * properties and scripts, and with the prefix "Posix" the bracket classes that differ. Names are
 * case-insensitive, without spaces, underscores and hyphens. *complement: the class lists the
 * characters without the property. NULL: unknown. */
const char *mgl_unicode_property(const char *name, bool *complement);

/* Returns Rust's lower case of a character, except for U+0130 (which becomes two characters). */
uint32_t mgl_unicode_lower(uint32_t character);

/* Characters newer than the normal forms of Hugging Face's tokenizers: marks that these treat as
 * starters, characters that they do not decompose, and starters that they do not compose. */
bool mgl_unicode_is_young_mark(uint32_t character);
bool mgl_unicode_is_young_composite(uint32_t character);
bool mgl_unicode_is_young_starter(uint32_t character);

#endif

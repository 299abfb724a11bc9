/*
 * What Unicode's characters are, the way the libraries behind Hugging Face's tokenizers have it.
 * Those disagree with each other and with PCRE2 and utf8proc about the version: Oniguruma and the
 * regex crate know Unicode 16, Rust's own tables 17, the crate of the normal forms 9, that of the
 * punctuation 8; PCRE2 10.42 knows 14. The differences are written out here, found by comparing
 * every character. Classes are the inside of a PCRE2 class.
 */
#ifndef MGL_IMPORTER_TOKENIZER_UNICODE_TABLES_H
#define MGL_IMPORTER_TOKENIZER_UNICODE_TABLES_H

#include <stdbool.h>
#include <stdint.h>

/* Unicode's White_Space; PCRE2's own \s has U+180E as well. */
#define MGL_UNICODE_SPACE                                                                          \
    "\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}"    \
    "\\x{205F}\\x{3000}"

/* Patterns, in PCRE2's syntax, of the pre-tokenizers that have none of their own in the file. */
extern const char mgl_unicode_digit[];       /* char::is_numeric */
extern const char mgl_unicode_punctuation[]; /* ASCII's, and the categories P of the crate */
extern const char mgl_unicode_space[];       /* char::is_whitespace */
extern const char mgl_unicode_words[];       /* \w+|[^\w\s]+ of the regex crate */
extern const char mgl_unicode_word[];        /* \w of the regex crate */

/* Whether a character is White_Space. */
static inline bool mgl_unicode_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

/* The class of a property of Oniguruma: a category (short or long name), a few binary
 * properties and scripts, and with the prefix "Posix" the brackets that differ. Letters in
 * either case, without blanks, underscores and hyphens. *complement: the class lists what does
 * not have the property. NULL when it is none of these. */
const char *mgl_unicode_property(const char *name, bool *complement);

/* The lower case of a character as Rust has it, but for U+0130 (which becomes two). */
uint32_t mgl_unicode_lower(uint32_t character);

/* Characters younger than the normal forms of Hugging Face's tokenizers: marks that these take for
 * starters, characters that they do not decompose, and starters that they do not compose. */
bool mgl_unicode_is_young_mark(uint32_t character);
bool mgl_unicode_is_young_composite(uint32_t character);
bool mgl_unicode_is_young_starter(uint32_t character);

#endif

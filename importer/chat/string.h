/*
 * Strings of a template: UTF-8, with indices in characters, like Python's str. Substrings share
 * the bytes of the whole string.
 */
#ifndef MGL_IMPORTER_CHAT_STRING_H
#define MGL_IMPORTER_CHAT_STRING_H

#include "importer/chat/value.h"

/* A growing byte buffer in the arena of a rendering, for printed and captured text. */
typedef struct mgl_sink {
    char *bytes; /* (length) */
    size_t length, capacity;
} mgl_sink;
bool mgl_sink_put(mgl_render *r, mgl_sink *sink, const char *bytes, size_t length);
bool mgl_sink_puts(mgl_render *r, mgl_sink *sink, const char *text);
bool mgl_sink_fill(mgl_render *r, mgl_sink *sink, char byte, size_t count);
/* Returns the sink's bytes as a string; nothing may be appended afterwards. NULL: failed. */
mgl_string *mgl_sink_string(mgl_render *r, const mgl_sink *sink);

/* Make a string; NULL: failed. mgl_string_new copies the bytes, mgl_string_share does not. */
mgl_string *mgl_string_new(mgl_render *r, const char *bytes, size_t length);
mgl_string *mgl_string_share(mgl_render *r, const char *bytes, size_t length);
bool mgl_string_value(mgl_render *r, const char *bytes, size_t length, mgl_value *out); /* shares */

size_t mgl_string_characters(mgl_string *string);
/* Returns the byte offset of the character with that index. */
size_t mgl_string_byte(mgl_string *string, size_t index);
bool mgl_string_same(const mgl_string *a, const mgl_string *b);
bool mgl_string_is(const mgl_string *string, const char *text);
int mgl_string_order(const mgl_string *a, const mgl_string *b);
/* Returns the first occurrence of `part` in `bytes`, or NULL. Costs steps. */
const char *mgl_string_find(mgl_render *r, const char *bytes, size_t length,
                            const mgl_string *part);

mgl_string *mgl_string_join(mgl_render *r, mgl_string *a, mgl_string *b);
mgl_string *mgl_string_repeat(mgl_render *r, const mgl_string *string, int64_t times);
/* Replaces at most `count` occurrences; negative: all. */
mgl_string *mgl_string_replace(mgl_render *r, mgl_string *string, const mgl_string *part,
                               const mgl_string *by, int64_t count);
/* Removes the characters of `set` (NULL: white space) at the left and right end. */
mgl_string *mgl_string_strip(mgl_render *r, const mgl_string *string, const mgl_string *set,
                             bool left, bool right);
/* Splits at `by` (NULL: at white space), at most `most` times (negative: no limit). */
mgl_list *mgl_string_split(mgl_render *r, const mgl_string *string, const mgl_string *by,
                           int64_t most, bool from_right);
mgl_list *mgl_string_lines(mgl_render *r, const mgl_string *string, bool keep_ends);

typedef enum mgl_case {
    MGL_CASE_UPPER,
    MGL_CASE_LOWER,
    MGL_CASE_CAPITAL, /* only the first character is upper case */
    MGL_CASE_TITLE    /* str.title: the first letter of each run of letters */
} mgl_case;
mgl_string *mgl_string_case(mgl_render *r, const mgl_string *string, mgl_case wanted);

/* Character tests, like str.isspace for one character. */
bool mgl_character_is_space(uint32_t character);
/* Returns whether repr prints the character unescaped. */
bool mgl_character_is_printable(uint32_t character);
/* str.isalpha, isdigit, ...: every character passes `test`, and the string is not empty. */
bool mgl_string_all(const mgl_string *string, bool (*test)(uint32_t character));
/* str.isupper and str.islower: has letters of this case, and none of the other. */
bool mgl_string_has_case(const mgl_string *string, bool upper);
bool mgl_character_is_letter(uint32_t character);
bool mgl_character_is_digit(uint32_t character);
bool mgl_character_is_number(uint32_t character);
bool mgl_character_is_upper(uint32_t character);
bool mgl_character_is_lower(uint32_t character);

/* str(value) and repr(value), appended to a sink; mgl_value_string returns str(value) (a string
 * itself). */
bool mgl_value_show(mgl_render *r, mgl_sink *sink, mgl_value value);
bool mgl_value_repr(mgl_render *r, mgl_sink *sink, mgl_value value);
mgl_string *mgl_value_string(mgl_render *r, mgl_value value);
/* repr of a float: the shortest digits that read back as the same value. */
enum { MGL_REAL_DIGITS = 40 };
void mgl_real_print(double real, char to[MGL_REAL_DIGITS]);

#endif

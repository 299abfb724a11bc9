/*
 * Character properties and case conversion as in Python's str. Cases of one character come from
 * utf8proc. Cases of several characters are in casing.def.
 */
#include "base/utf8.h"
#include "importer/chat/render.h"
#include "importer/tokenizer/unicode_tables.h"

#include <string.h>
#include <utf8proc.h>

bool mgl_character_is_space(uint32_t c)
{
    return mgl_unicode_is_space(c) || (c >= 0x1C && c <= 0x1F);
}

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

bool mgl_character_is_printable(uint32_t c)
{
    switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_ZS:
        return c == ' ';
    default:
        return true;
    }
}

bool mgl_character_is_letter(uint32_t c)
{
    utf8proc_category_t of = category(c);
    return of >= UTF8PROC_CATEGORY_LU && of <= UTF8PROC_CATEGORY_LO;
}

bool mgl_character_is_digit(uint32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_ND || c == 0xB2 || c == 0xB3 || c == 0xB9;
}

bool mgl_character_is_number(uint32_t c)
{
    utf8proc_category_t of = category(c);
    return of >= UTF8PROC_CATEGORY_ND && of <= UTF8PROC_CATEGORY_NO;
}

bool mgl_character_is_upper(uint32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_LU;
}

bool mgl_character_is_lower(uint32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_LL;
}

bool mgl_string_all(const mgl_string *string, bool (*test)(uint32_t character))
{
    uint32_t character;
    for (size_t at = 0; at < string->length;) {
        at += mgl_utf8_next(string->bytes + at, &character);
        if (!test(character))
            return false;
    }
    return string->length != 0;
}

bool mgl_string_has_case(const mgl_string *string, bool upper)
{
    bool found = false;
    uint32_t c;
    for (size_t at = 0; at < string->length;) {
        at += mgl_utf8_next(string->bytes + at, &c);
        bool is_upper = mgl_character_is_upper(c), is_lower = mgl_character_is_lower(c);
        if (upper ? is_lower : is_upper)
            return false;
        found = found || (upper ? is_upper : is_lower);
    }
    return found;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static const struct special {
    uint32_t character;
    const char *upper, *title;
} specials[] = {
#define X(character, upper, title) {character, upper, title},
#include "importer/chat/casing.def"
#undef X
};

static const struct special *find_special(uint32_t character)
{
    size_t low = 0, high = sizeof specials / sizeof *specials;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (specials[middle].character == character)
            return &specials[middle];
        if (specials[middle].character < character)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Returns whether the character is a letter with case, by Python's definition. */
static bool is_cased(uint32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_LT || utf8proc_toupper((utf8proc_int32_t)c) != (int)c ||
           utf8proc_tolower((utf8proc_int32_t)c) != (int)c || mgl_character_is_lower(c) ||
           mgl_character_is_upper(c);
}

/* Returns whether the character is ignored when looking for the end of a word, for the final
 * sigma. */
static bool is_ignorable(uint32_t c)
{
    utf8proc_category_t of = category(c);
    return of == UTF8PROC_CATEGORY_MN || of == UTF8PROC_CATEGORY_ME || of == UTF8PROC_CATEGORY_CF ||
           of == UTF8PROC_CATEGORY_LM || of == UTF8PROC_CATEGORY_SK || c == '\'' || c == '.' ||
           c == ':' || c == 0xB7 || c == 0x2019;
}

/* Returns whether the sigma at byte `at` ends a word. */
static bool is_last_sigma(const mgl_string *string, size_t at)
{
    uint32_t c = 0;
    size_t before = at, behind = at + 2;
    do {
        if (!before)
            return false;
        before = mgl_utf8_last(string->bytes, before);
        mgl_utf8_next(string->bytes + before, &c);
    } while (is_ignorable(c));
    if (!is_cased(c))
        return false;
    while (behind < string->length) {
        behind += mgl_utf8_next(string->bytes + behind, &c);
        if (!is_ignorable(c))
            return !is_cased(c);
    }
    return true;
}

static bool put_character(mgl_render *r, mgl_sink *sink, uint32_t character)
{
    char bytes[4];
    return mgl_sink_put(r, sink, bytes, mgl_utf8_put(character, bytes));
}

static bool put_lower(mgl_render *r, mgl_sink *sink, const mgl_string *string, size_t at,
                      uint32_t c)
{
    enum { SIGMA = 0x3A3, LAST_SIGMA = 0x3C2, DOTTED_I = 0x130 };
    if (c == SIGMA && is_last_sigma(string, at))
        return put_character(r, sink, LAST_SIGMA);
    if (c == DOTTED_I)
        return mgl_sink_puts(r, sink, "i\xCC\x87");
    return put_character(r, sink, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
}

static bool put_cased(mgl_render *r, mgl_sink *sink, uint32_t c, bool title)
{
    const struct special *special = find_special(c);
    if (special)
        return mgl_sink_puts(r, sink, title ? special->title : special->upper);
    utf8proc_int32_t character = (utf8proc_int32_t)c;
    return put_character(
        r, sink, (uint32_t)(title ? utf8proc_totitle(character) : utf8proc_toupper(character)));
}

mgl_string *mgl_string_case(mgl_render *r, const mgl_string *string, mgl_case wanted)
{
    mgl_sink sink = {0};
    bool start = true; /* at the start of a part that gets a capital */
    for (size_t at = 0; at < string->length;) {
        uint32_t c;
        size_t size = mgl_utf8_next(string->bytes + at, &c);
        bool capital = start && (wanted == MGL_CASE_CAPITAL || wanted == MGL_CASE_TITLE);
        bool good = wanted == MGL_CASE_UPPER || capital ? put_cased(r, &sink, c, capital)
                                                        : put_lower(r, &sink, string, at, c);
        if (!good || !mgl_render_spend(r, (wanted == MGL_CASE_TITLE ? 3 : 1) * MGL_CHARACTER_COST))
            return NULL;
        start = wanted == MGL_CASE_TITLE && !is_cased(c);
        at += size;
    }
    return mgl_sink_string(r, &sink);
}

/* Checks, repairs and writes UTF-8. See utf8.h. */
#include "base/utf8.h"

#include <string.h>

mgl_utf8_kind mgl_utf8_look(const char *text, size_t length, size_t *used)
{
    const unsigned char *byte = (const unsigned char *)text;
    unsigned char lead = byte[0], lo = 0x80, hi = 0xBF;
    size_t size;
    *used = 1;
    if (lead < 0x80)
        return MGL_UTF8_WHOLE;
    if (lead < 0xC2 || lead > 0xF4)
        return MGL_UTF8_BAD;
    size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    /* The range of the second byte excludes overlong forms, surrogates and values above
     * U+10FFFF. */
    if (lead == 0xE0)
        lo = 0xA0;
    else if (lead == 0xED)
        hi = 0x9F;
    else if (lead == 0xF0)
        lo = 0x90;
    else if (lead == 0xF4)
        hi = 0x8F;
    for (size_t i = 1; i < size; i++, lo = 0x80, hi = 0xBF) {
        *used = i;
        if (i == length)
            return MGL_UTF8_CUT;
        if (byte[i] < lo || byte[i] > hi)
            return MGL_UTF8_BAD;
    }
    *used = size;
    return MGL_UTF8_WHOLE;
}

size_t mgl_utf8_valid(const char *text, size_t length)
{
    size_t at = 0, used;
    while (at < length) {
        uint64_t eight;
        if (length - at >= 8) {
            memcpy(&eight, text + at, 8);
            if (!(eight & 0x8080808080808080u)) {
                at += 8;
                continue;
            }
        }
        if (mgl_utf8_look(text + at, length - at, &used) != MGL_UTF8_WHOLE)
            break;
        at += used;
    }
    return at;
}

/* Returns the encoding whose byte order mark the text begins with, or NULL. */
static const char *find_mark(const char *text, size_t length)
{
    static const struct mark {
        const char *bytes;
        size_t length;
        const char *encoding;
    } marks[] = {{"\xEF\xBB\xBF", 3, "UTF-8"},
                 {"\xFF\xFE\0\0", 4, "UTF-32"}, /* tested before its prefix, the mark of UTF-16 */
                 {"\0\0\xFE\xFF", 4, "UTF-32"},
                 {"\xFF\xFE", 2, "UTF-16"},
                 {"\xFE\xFF", 2, "UTF-16"}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (length >= marks[i].length && !memcmp(text, marks[i].bytes, marks[i].length))
            return marks[i].encoding;
    return NULL;
}

mgl_status mgl_utf8_check_mark(const char *text, size_t length, const char *file, mgl_error *err)
{
    const char *encoding = find_mark(text, length);
    if (!encoding)
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, file,
                    "begins with the byte order mark (BOM) of %s; save it as UTF-8 without one",
                    encoding);
}

void mgl_utf8_repair(const char *text, size_t length, mgl_text *out)
{
    for (;;) {
        size_t good = mgl_utf8_valid(text, length), used;
        mgl_text_append(out, text, good);
        text += good;
        length -= good;
        if (!length)
            return;
        mgl_utf8_look(text, length, &used);
        mgl_text_put(out, MGL_UTF8_REPLACEMENT);
        text += used;
        length -= used;
    }
}

/* C0, DEL, C1; direction marks and overrides; line and paragraph separators. */
static bool does_something(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x61C || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x206F);
}

size_t mgl_utf8_show(const char *text, size_t length, char to[4], size_t *used)
{
    uint32_t character;
    bool whole = mgl_utf8_look(text, length, used) == MGL_UTF8_WHOLE;
    if (whole)
        mgl_utf8_next(text, &character);
    if (!whole || does_something(character)) {
        *to = *text == '\t' ? ' ' : '?';
        return 1;
    }
    memcpy(to, text, *used);
    return *used;
}

size_t mgl_utf8_put(uint32_t character, char *out)
{
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    if (character < 0x800) {
        out[0] = (char)(0xC0 | character >> 6);
        out[1] = (char)(0x80 | (character & 0x3F));
        return 2;
    }
    if (character < 0x10000) {
        out[0] = (char)(0xE0 | character >> 12);
        out[1] = (char)(0x80 | (character >> 6 & 0x3F));
        out[2] = (char)(0x80 | (character & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | character >> 18);
    out[1] = (char)(0x80 | (character >> 12 & 0x3F));
    out[2] = (char)(0x80 | (character >> 6 & 0x3F));
    out[3] = (char)(0x80 | (character & 0x3F));
    return 4;
}

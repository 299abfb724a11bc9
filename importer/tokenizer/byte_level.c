/* Converts between bytes and GPT-2's byte alphabet. See byte_level.h. */
#include "importer/tokenizer/byte_level.h"

#include "base/utf8.h"

/* Bytes that map to themselves: ! to ~, U+00A1 to U+00AC, U+00AE to U+00FF. */
static bool stands_for_itself(uint32_t byte)
{
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
           (byte >= 0xAE && byte <= 0xFF);
}

uint32_t mgl_byte_level_character(uint8_t byte)
{
    if (stands_for_itself(byte))
        return byte;
    if (byte <= 0x20)
        return 0x100u + byte; /* 33 bytes */
    if (byte <= 0xA0)
        return 0x121u + (byte - 0x7Fu); /* 34 bytes */
    return 0x143;                       /* 0xAD, the last */
}

int mgl_byte_level_byte(uint32_t character)
{
    if (character < 0x100)
        return stands_for_itself(character) ? (int)character : -1;
    if (character <= 0x120)
        return (int)(character - 0x100);
    if (character <= 0x142)
        return (int)(character - 0x121 + 0x7F);
    return character == 0x143 ? 0xAD : -1;
}

void mgl_byte_level_map(const char *bytes, size_t length, mgl_text *out)
{
    char chunk[512];
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        if (used + 4 > sizeof chunk) {
            mgl_text_append(out, chunk, used);
            used = 0;
        }
        used += mgl_utf8_put(mgl_byte_level_character((uint8_t)bytes[i]), chunk + used);
    }
    mgl_text_append(out, chunk, used);
}

bool mgl_byte_level_unmap(const char *text, size_t length, mgl_text *out)
{
    size_t before = out->length;
    for (size_t at = 0; at < length;) {
        uint32_t character;
        at += mgl_utf8_next(text + at, &character);
        int byte = mgl_byte_level_byte(character);
        if (byte < 0) {
            out->length = before;
            return false;
        }
        char one = (char)byte;
        mgl_text_append(out, &one, 1);
    }
    return true;
}

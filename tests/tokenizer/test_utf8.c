/* Tests of UTF-8 repair: invalid bytes become U+FFFD, one for each maximal subpart, in whole texts
 * and in streams. */
#include "support.h"

#include "base/utf8.h"
#include "importer/tokenizer/byte_level.h"

#include <string.h>

#define FFFD MGL_UTF8_REPLACEMENT

static void assert_repairs(const char *bytes, const char *want)
{
    mgl_text out = {0};
    mgl_utf8_repair(bytes, strlen(bytes), &out);
    ck_assert_str_eq(out.bytes ? out.bytes : "", want);
    mgl_text_clear(&out);
}

START_TEST(test_repair)
{
    assert_repairs("", "");
    assert_repairs("plain", "plain");
    assert_repairs("\u00E9\u4F60\U0001F600", "\u00E9\u4F60\U0001F600");
    assert_repairs("a\x80z", "a" FFFD "z");
    assert_repairs("\xC0\xAF", FFFD FFFD);
    assert_repairs("\xE0\x80\x80", FFFD FFFD FFFD);
    assert_repairs("\xED\xA0\x80", FFFD FFFD FFFD);
    assert_repairs("\xF0\x9F\x98", FFFD);
    assert_repairs("\xF0\x9F\x98z", FFFD "z");
    assert_repairs("\xF4\x90\x80\x80", FFFD FFFD FFFD FFFD);
    assert_repairs("\xF5", FFFD);
    assert_repairs("\xE4\xBD", FFFD);
}
END_TEST

static bool round_trips(uint32_t c)
{
    char text[4];
    uint32_t back;
    size_t used, size = mgl_utf8_put(c, text);
    if (mgl_utf8_look(text, size, &used) != MGL_UTF8_WHOLE || used != size)
        return false;
    for (size_t cut = 1; cut < size; cut++) {
        if (mgl_utf8_look(text, cut, &used) != MGL_UTF8_CUT || used != cut)
            return false;
    }
    return mgl_utf8_next(text, &back) == size && back == c && mgl_utf8_last(text, size) == 0;
}

START_TEST(test_every_character)
{
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (!round_trips(c) && !(c >= 0xD800 && c < 0xE000))
            ck_abort_msg("U+%04X", (unsigned)c);
    }
}
END_TEST

START_TEST(test_byte_alphabet)
{
    bool seen[256] = {false};
    for (int byte = 0; byte < 256; byte++) {
        uint32_t character = mgl_byte_level_character((uint8_t)byte);
        ck_assert_int_eq(mgl_byte_level_byte(character), byte);
    }
    for (uint32_t c = 0; c < 0x1000; c++) {
        int byte = mgl_byte_level_byte(c);
        ck_assert(byte < 0 || !seen[byte]);
        if (byte >= 0)
            seen[byte] = true;
    }
    ck_assert_uint_eq(mgl_byte_level_character(' '), 0x120);
    ck_assert_uint_eq(mgl_byte_level_character('\n'), 0x10A);
    ck_assert_uint_eq(mgl_byte_level_character(0xAD), 0x143);
}
END_TEST

START_TEST(test_encode_repairs)
{
    mgl_tokenizer *t = make_tokenizer("", "\"a\":0,\"\xEF\xBF\xBD\":1", "", "");
    const int32_t ids[] = {0, 1, 0};
    assert_encodes(t,
                   "a\xE4\xBD"
                   "a",
                   4, true, ids, 3, "cut");
    mgl_tokenizer_close(t);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_repair, test_every_character, test_byte_alphabet,
                                  test_encode_repairs};
    return run_case("utf8", tests, sizeof tests / sizeof *tests);
}

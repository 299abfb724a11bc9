/* Tests of formatting for a terminal: the same output as printf, but control characters in
 * arguments are replaced. */
#include "base/error.h"
#include "base/format.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Checks that the text equals snprintf's. */
#define same(...)                                                                                  \
    do {                                                                                           \
        char ours[256], printfs[256];                                                              \
        mgl_format_into(ours, sizeof ours, __VA_ARGS__);                                           \
        snprintf(printfs, sizeof printfs, __VA_ARGS__);                                            \
        ck_assert_str_eq(ours, printfs);                                                           \
    } while (0)

#define gives(text, ...)                                                                           \
    do {                                                                                           \
        char ours[256];                                                                            \
        mgl_format_into(ours, sizeof ours, __VA_ARGS__);                                           \
        ck_assert_str_eq(ours, text);                                                              \
    } while (0)

START_TEST(numbers_are_printfs)
{
    same("%d %i %u %x %X %o", -1, INT_MIN, UINT_MAX, 0xBEEFu, 0xBEEFu, 8u);
    same("%ld %lu %lld %llu", LONG_MIN, ULONG_MAX, LLONG_MIN, ULLONG_MAX);
    same("%zu %zd %jd %td", SIZE_MAX, (ssize_t)-1, INTMAX_MIN, (ptrdiff_t)-5);
    same("%" PRIu64 " %" PRId64 " 0x%016" PRIx64, UINT64_MAX, INT64_MIN, (uint64_t)255);
    same("%6d|%-6d|%06d|%+d|% d|%*d|%-*d|%.3d", 5, 5, 5, 5, 5, 7, 5, 7, 5, 5);
    same("%f %.1f %8.2f %g %.17g %e %+.1f%%", 1.5, 2.25, 3.125, 1e300, 0.1, 1e-9, 12.0);
    same("%s %d %s %d", "a", 1, "b", 2);
    same("%%%c%c", 'x', '%');
}
END_TEST

START_TEST(texts_are_printfs)
{
    same("%s|%10s|%-10s|%*s|%-*s|", "text", "text", "text", 6, "ab", 6, "ab");
    same("%.4s|%10.2s|", "text", "te");
    same("%.*s|%.*s|%.*s|", 2, "text", 0, "text", 9, "text");
    same("no conversion\nof\tany kind");
}
END_TEST

/* The argument's bytes end at its length. */
START_TEST(a_piece_is_not_read_further)
{
    char piece[3] = {'a', 'b', 'c'};
    gives("abc", "%.*s", 3, piece);
    gives("ab", "%.*s", 2, "abc");
}
END_TEST

START_TEST(what_is_quoted_is_cut_visibly)
{
    gives("abc...", "%.3s", "abcd");
    gives("abc", "%.3s", "abc");
    gives("\u00E4...", "%.3s", "\u00E4\u00E4");
    gives("...|", "%.0s|", "abc");
    gives("abc... |", "%-7.3s|", "abcdefg");
}
END_TEST

START_TEST(nothing_speaks_to_the_terminal)
{
    gives("a?[31mb", "a%sb", "\x1B[31m");
    gives("???", "%s", "\n\r\x7F");
    gives("? ?", "%s", "\b\t\a");
    gives("??2J", "%s",
          "\xC2\x80\xC2\x9B"
          "2J");
    gives("?a?", "%s",
          "\u202E"
          "a\u2066");
    gives("??", "%s", "\u2028\u200F");
    gives("a?b?", "%s",
          "a\xFF"
          "b\xE4\xB8");
    gives("?", "%c", '\x1B');
    gives("?", "%.*s", 1, "\x1B[0m");
}
END_TEST

START_TEST(what_is_seen_is_left)
{
    gives("\u00E4\u4F60\U0001F600\u05D0\u00A0", "%s", "\u00E4\u4F60\U0001F600\u05D0\u00A0");
    gives("line\nnext", "line\n%s", "next");
}
END_TEST

START_TEST(width_counts_characters)
{
    gives("\u00E4  |", "%-3s|", "\u00E4");
    gives("  ?|", "%3s|", "\xFF");
}
END_TEST

START_TEST(a_full_buffer_ends_with_a_character)
{
    char small[6];
    mgl_format_into(small, sizeof small, "%s", "abcd\u00E4");
    ck_assert_str_eq(small, "abcd");
    mgl_format_into(small, sizeof small, "%s%s", "abcd", "ef");
    ck_assert_str_eq(small, "abcde");
    mgl_format_into(small, 1, "%d", 12);
    ck_assert_str_eq(small, "");
}
END_TEST

/* ---- errors ---------------------------------------------------------------------------------- */

/* Texts, and their shortened forms in a buffer of that size. */
static const struct {
    const char *text;
    size_t size;
    const char *left;
} ends[] = {
    {"short: do that", 60, "short: do that"},
    {"l0.qkv: 7 is wrong", 19, "l0.qkv: 7 is wrong"},
    {"l0.qkv: task 12 of queue 7 waits for what task 11 of queue 9 has; propose another count", 70,
     "l0.qkv: task 12 of queue 7 waits for what t ... propose another count"},
    {"no mark of any sentence stands in this text which goes on and on to its end", 40,
     "no mark of any ... on and on to its end"},
    {"wordwithoutanyblankinitwhichgoesonandonandon", 20, "wordwithoutanyblank"},
    {"\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4; \xC3\xA4\xC3\xA4", 18,
     "\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4 ... \xC3\xA4\xC3\xA4"},
};

START_TEST(a_long_text_keeps_both_ends)
{
    char to[200];
    mgl_format_ends(to, ends[_i].size, "%s", ends[_i].text);
    ck_assert_str_eq(to, ends[_i].left);
    ck_assert_uint_lt(strlen(to), ends[_i].size);
}
END_TEST

START_TEST(errors_hold_nothing_else)
{
    mgl_error err;
    errno = ENOENT;
    mgl_fail(&err, MGL_BAD_INPUT, "fo\x1B[1mlder\n", "the name \"%.80s\" is wrong", "\x1B]0;t\a");
    ck_assert_str_eq(err.where, "fo?[1mlder?");
    ck_assert_str_eq(err.message, "the name \"?]0;t?\" is wrong");
    mgl_fail_errno(&err, "a\x9B", "cannot be opened");
    ck_assert_str_eq(err.where, "a?");
    mgl_error_name(&err, "\rlist");
    ck_assert_str_eq(err.where, "?list: a?");
}
END_TEST

START_TEST(lines_are_added_to_a_message)
{
    mgl_error err;
    mgl_fail(&err, MGL_DEVICE, NULL, "it says:");
    mgl_error_add_lines(&err, "one\ntwo\x1B\n");
    ck_assert_str_eq(err.message, "it says:\none\ntwo?");
    mgl_error_add_lines(&err, "");
    mgl_error_add_lines(NULL, "x");
    ck_assert_str_eq(err.message, "it says:\none\ntwo?");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("format");
    TCase *tests = tcase_create("format");
    tcase_add_test(tests, numbers_are_printfs);
    tcase_add_test(tests, texts_are_printfs);
    tcase_add_test(tests, a_piece_is_not_read_further);
    tcase_add_test(tests, what_is_quoted_is_cut_visibly);
    tcase_add_test(tests, nothing_speaks_to_the_terminal);
    tcase_add_test(tests, what_is_seen_is_left);
    tcase_add_test(tests, width_counts_characters);
    tcase_add_test(tests, a_full_buffer_ends_with_a_character);
    tcase_add_loop_test(tests, a_long_text_keeps_both_ends, 0, sizeof ends / sizeof *ends);
    tcase_add_test(tests, errors_hold_nothing_else);
    tcase_add_test(tests, lines_are_added_to_a_message);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

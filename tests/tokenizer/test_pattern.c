/* Tests of Oniguruma's expressions executed by PCRE2: differences between the two, and rejected
 * expressions. The expected matches are Oniguruma's (by Hugging Face's Split, Removed and
 * inverted). */
#include "support.h"

#include "importer/tokenizer/onig_case.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

/* All matches, each in brackets. */
static void assert_matches(const char *onig, const char *text, const char *want)
{
    mgl_pattern *pattern;
    mgl_pattern_scan scan = {.text = text, .length = strlen(text)};
    mgl_error err = {0};
    mgl_text got = {0};
    bool found;
    mgl_matcher *matcher;
    mgl_status status = mgl_pattern_regex(onig, "test.json", &pattern, &err);
    ck_assert_msg(status == MGL_OK, "%s", err.message);
    ck_assert_int_eq(mgl_matcher_new(&matcher, &err), MGL_OK);
    for (;;) {
        status = mgl_pattern_next(pattern, matcher, &scan, &found, &err);
        ck_assert_msg(status == MGL_OK, "%s", err.message);
        if (!found)
            break;
        mgl_text_format(&got, "[%.*s]", (int)(scan.end - scan.start), text + scan.start);
    }
    ck_assert_msg(!strcmp(got.bytes ? got.bytes : "", want), "%s on \"%s\": %s, want %s", onig,
                  text, got.bytes, want);
    mgl_text_clear(&got);
    mgl_matcher_free(matcher);
    mgl_pattern_free(pattern);
}

START_TEST(test_classes)
{
    assert_matches("\\s", "a\u180Eb c\u3000", "[ ][\u3000]"); /* U+180E is no space */
    assert_matches("\\S+", "a b", "[a][b]");
    assert_matches("\\h", "fgF", "[f][F]");
    assert_matches("\\w+", "a\u0301\u00B2_-\u203F", "[a\u0301\u00B2_][\u203F]");
    assert_matches("[\\w]", "\u00B2", "");
    assert_matches("\\bfoo\\b", "foo foox xfoo", "[foo]");
    assert_matches("[a[bc]]", "abcd", "[a][b][c]");
    assert_matches("[a[^b]]", "abc", "[a][c]");
    assert_matches("[^a[b]]", "abc", "[c]");
    assert_matches("[\\w&&[^a]]", "ab", "[b]");
    assert_matches("[^\\w&&[^a]]", "ab", "[a]");
    assert_matches("[]a]", "]a", "[]][a]");
    assert_matches("[a-\\d]", "a-1b", "[a][-][1]");
    assert_matches("[[:alpha:]]", "a1", "[a]");
    assert_matches("[[:^alpha:]]", "a1", "[1]");
    assert_matches("\\p{Han}+", "\u4F60\u3042", "[\u4F60]");
    assert_matches("\\p{^L}", "a1", "[1]");
    assert_matches("\\P{Letter}", "a1", "[1]");
    assert_matches("[^\\P{L}]", "a1", "[a]");
    assert_matches("\\p{L}", "\U00031350\u1C89", "[\U00031350][\u1C89]"); /* Unicode 15 and 16 */
}
END_TEST

START_TEST(test_anchors)
{
    assert_matches("^a", "a\na", "[a][a]");
    assert_matches("a$", "a\na", "[a][a]");
    assert_matches("\\s+$", "a \nb ", "[ ][ ]");
    assert_matches("\\Aa|b\\z", "aab", "[a][b]");
    assert_matches(".", "\n\r\u2028", "[\r][\u2028]");
    assert_matches("(?m:.)", "\n", "[\n]");
}
END_TEST

START_TEST(test_repeats)
{
    assert_matches("a{2,3}+b", "aaaaab", "[aaaaab]");
    assert_matches("a{2}?b", "b aab", "[b][aab]");
    assert_matches("a{,2}b", "aaab", "[aab]");
    assert_matches("a{x", "a{x", "[a{x]");
    assert_matches("a++a|b", "aab", "[b]");
    assert_matches("a**", "aab", "[aa][]");
    assert_matches("(?:ab)?+c", "abc", "[abc]");
}
END_TEST

START_TEST(test_options)
{
    assert_matches("a(?i)b|c", "aB C ac", "[aB][ac]");
    assert_matches("(?i:'s|'ll)x", "'Sx 'LLX", "['Sx]");
    assert_matches("(?i)ss", "\u00DFSs", "[\u00DF][Ss]");
    assert_matches("(?x: a b # c\n)", "ab", "[ab]");
    assert_matches("(?i)\u017F|k", "sK\u212A", "[s][K][\u212A]");
}
END_TEST

/* Letters that fold to several letters, and those letters. */
START_TEST(test_foldings)
{
    assert_matches("(?i)\u00DF", "\u00DF ss SS s\u017F \u1E9E s",
                   "[\u00DF][ss][SS][s\u017F][\u1E9E]");
    assert_matches("(?i)stra\u00DFe", "STRASSE \uFB06ra\u1E9Ee", "[STRASSE][\uFB06ra\u1E9Ee]");
    assert_matches("(?i)assist", "a\u00DFi\uFB06 ASSIST", "[a\u00DFi\uFB06][ASSIST]");
    assert_matches("(?i)ffi", "\uFB03 ffi \uFB00i f\uFB01", "[\uFB03][ffi]");
    assert_matches("(?i)f\uFB01", "\uFB03 ffi \uFB00i f\uFB01", "[ffi][f\uFB01]");
    assert_matches("(?i)sss", "\u00DFs s\u00DF sss", "[\u00DFs][sss]");
    assert_matches("(?i)\u00DF+", "\u00DF\u00DFss ss\u00DF", "[\u00DF\u00DFss][ss\u00DF]");
    assert_matches("(?i)ss*", "\u00DF ss s", "[ss][s]");
    assert_matches("(?i)ss{1}", "\u00DF ss s", "[\u00DF][ss]");
    assert_matches("(?i)s{2}", "\u00DF ss s", "[ss]");
    assert_matches("(?i)\u0130", "\u0130 i\u0307 I", "[\u0130][i\u0307]");
    assert_matches("(?i)\u02BCn", "\u0149 \u02BCN", "[\u0149][\u02BCN]");
    assert_matches("(?i)\u0390", "\u0390 \u1FD3 \u03B9\u0308\u0301",
                   "[\u0390][\u1FD3][\u03B9\u0308\u0301]");
    assert_matches("(?i)\u1FBC", "\u1FB3 \u03B1\u03B9 \u1FBC", "[\u1FB3][\u03B1\u03B9][\u1FBC]");
    assert_matches("(?i)(?<=ss)a", "\u00DFa ssa", "[a]");
    assert_matches("(?i)(?!ss)\\w", "\u00DFssa", "[s][a]");
    assert_matches("(?i:as)s|a(s)s", "a\u00DF ass", "[ass]");
}
END_TEST

START_TEST(test_classes_without_case)
{
    assert_matches("(?i)[a-z]", "k\u212A \u017F", "[k][\u212A][\u017F]");
    assert_matches("(?i)[\\p{Lu}&&[\u0400-\u042F]]", "\u0416\u0436z", "[\u0416][\u0436]");
    assert_matches("(?i)[^\\p{Lu}]", "aA1", "[1]");
    assert_matches("(?i)\\p{Lu}", "aA", "[A]");
    assert_matches("(?i)[^\u00DF]", "\u00DFss\u1E9Ea", "[s][s][a]");
    assert_matches("(?i)[^\\s\\p{L}]", "a\u03451", "[1]"); /* U+0345 folds to iota */
}
END_TEST

START_TEST(test_empty_matches)
{
    assert_matches("b*", "abc", "[][b][]");
    assert_matches("", "ab", "[][][]");
    assert_matches("\\b", "ab c", "[][][][]");
}
END_TEST

static void assert_pattern_refused(const char *onig, const char *says)
{
    mgl_pattern *pattern = NULL;
    mgl_error err = {0};
    ck_assert_msg(mgl_pattern_regex(onig, "test.json", &pattern, &err) == MGL_BAD_INPUT, "%s",
                  onig);
    ck_assert_ptr_null(pattern);
    ck_assert_str_eq(err.where, "test.json");
    ck_assert_msg(strstr(err.message, says), "%s: %s", onig, err.message);
}

START_TEST(test_rejections)
{
    assert_pattern_refused("(a", "a group does not end");
    assert_pattern_refused("a)", "no opening one");
    assert_pattern_refused("[a", "does not end");
    assert_pattern_refused("[b-a]", "empty");
    assert_pattern_refused("*a", "nothing to repeat");
    assert_pattern_refused("a\\", "ends in a backslash");
    assert_pattern_refused("\\p{Nonesuch}", "cannot be compiled");
    assert_pattern_refused("\\p{L", "does not end");
    assert_pattern_refused("(?~a)", "unknown kind");
    assert_pattern_refused("(?(1)a|b)", "unknown kind");
    assert_pattern_refused("(*FAIL)", "callout");
    assert_pattern_refused("\\X", "not supported");
    assert_pattern_refused("\\xE4", "raw byte");
    assert_pattern_refused("\\x{110000}", "not one");
    assert_pattern_refused("(?<=a+)b", "cannot be compiled");
    assert_pattern_refused("(?i)[\u00DF]", "byte 8, a class with a character that is several");
    assert_pattern_refused("(?i)[\\p{L}]", "a class with a character that is several");
    assert_pattern_refused("(?i)[\u00C0-\u00FF]", "a class with a character that is several");
    assert_pattern_refused("(?i)[a[\u00DF]]", "a class with a character that is several");
    assert_pattern_refused("(?i)s(?:s)", "letters that are one without regard to case");
    assert_pattern_refused("(?i)s{1}s", "letters that are one without regard to case");
    assert_pattern_refused("(?i)(?<=\u00DF)x", "in a lookbehind, which is not supported");
    assert_pattern_refused("(?i)\\x{DF}", "as an escape, which is not supported");
    assert_pattern_refused("(?i)(a)\\1", "a reference to a group without regard to case");
}
END_TEST

START_TEST(test_deep_nesting_is_rejected)
{
    char deep[4001];
    memset(deep, '(', 4000);
    deep[4000] = 0;
    assert_pattern_refused(deep, "nested too deeply");
    memset(deep, '[', 4000);
    assert_pattern_refused(deep, "nested too deeply");
}
END_TEST

START_TEST(test_comments)
{
    assert_matches("a(?#one)b(?#two){2}", "abb ab", "[abb]");
    assert_matches("(?x) a # one\n + (?#two) b", "aab", "[aab]");
    assert_pattern_refused("a(?#b", "a comment does not end");
}
END_TEST

/* The table of case foldings equals that of Unicode. */
START_TEST(test_folding_table)
{
    int several = 0;
    for (uint32_t c = 1; c < 0x20000; c++) {
        int32_t to[8];
        int class = UTF8PROC_BOUNDCLASS_START;
        utf8proc_ssize_t count =
            c >= 0xD800 && c < 0xE000
                ? 1
                : utf8proc_decompose_char((int32_t)c, to, 8, UTF8PROC_CASEFOLD, &class);
        const mgl_folding *folding = mgl_folding_of(c);
        ck_assert_msg((folding != NULL) == (count > 1), "U+%04X", c);
        for (utf8proc_ssize_t i = 0; folding && i < count; i++)
            ck_assert_uint_eq(folding->folded[i], (uint32_t)to[i]);
        several += folding != NULL;
    }
    ck_assert_int_eq(several, 104);
}
END_TEST

/* A pattern with exponential time ends with an error. */
START_TEST(test_match_limit)
{
    mgl_pattern *pattern;
    mgl_matcher *matcher;
    char text[64];
    mgl_error err = {0};
    bool found;
    memset(text, 'a', sizeof text);
    ck_assert_int_eq(mgl_matcher_new(&matcher, &err), MGL_OK);
    mgl_pattern_scan scan = {.text = text, .length = sizeof text};
    ck_assert_int_eq(mgl_pattern_regex("(?:a|aa)+b(?<!x)", "test.json", &pattern, &err), MGL_OK);
    mgl_status status = mgl_pattern_next(pattern, matcher, &scan, &found, &err);
    ck_assert_msg(status == MGL_BAD_INPUT || (status == MGL_OK && !found), "status %d", status);
    mgl_pattern_free(pattern);
    ck_assert_int_eq(mgl_pattern_regex("(?:a|aa)+[bc]\\b", "test.json", &pattern, &err), MGL_OK);
    text[63] = 'd';
    text[62] = 'c';
    scan = (mgl_pattern_scan){.text = text, .length = sizeof text};
    ck_assert_int_eq(mgl_pattern_next(pattern, matcher, &scan, &found, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "too much work"));
    mgl_matcher_free(matcher);
    mgl_pattern_free(pattern);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        test_foldings,      test_classes_without_case,
        test_folding_table, test_comments,
        test_classes,       test_anchors,
        test_repeats,       test_options,
        test_rejections,    test_empty_matches,
        test_match_limit,   test_deep_nesting_is_rejected,
    };
    return run_case("pattern", tests, sizeof tests / sizeof *tests);
}

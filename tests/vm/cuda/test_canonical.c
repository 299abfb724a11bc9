/*
 * Tests of the canonical form of a source: comments and layout never change its digest, and each
 * token does.
 */
#include "vm/cuda/canonical.h"

#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sources.h"
#include "tests/vm/cuda/reworded.h"
#include "vm/cuda/kernel_digest.h"

static char *canonical(const char *text)
{
    mgl_text out = {0};
    mgl_cuda_canonical(text, &out);
    mgl_text_put(&out, "");
    ck_assert(!out.failed);
    return out.bytes;
}

static bool same_digest(const char *a, const char *b)
{
    unsigned char first[MGL_SHA256_BYTES], second[MGL_SHA256_BYTES];
    mgl_cuda_source_digest(&(mgl_cuda_source){"a.cuh", (const unsigned char *)a}, first);
    mgl_cuda_source_digest(&(mgl_cuda_source){"a.cuh", (const unsigned char *)b}, second);
    return !memcmp(first, second, sizeof first);
}

/* ---- pairs of texts -------------------------------------------------------------------------- */

static const struct {
    const char *a, *b;
    bool same;
} pairs[] = {
    /* comments: other words, more lines, added, left out, after a line */
    {"int a; /* one */\n", "int a; /* another */\n", true},
    {"int a; /* one */\nint b;\n", "int a; /* one\n * two\n\n */\nint b;\n", true},
    {"int a;\n", "// first\nint a; // last", true},
    {"/* a */ int /* b */ a /* c */ ; /**/", "int a;", true},
    {"f(3);", "f(/* count */ 3 /* lines */)/* ; */;", true},
    {"int/**/a;", "int a;", true},
    {"int a; /*/ int b; /*/", "int a;", true},
    {"int a; /* // */ int b;", "int a; int b;", true},
    {"int a; // /* \nint b;", "int a; int b;", true},
    {"int a; // more \\\n int b;\nint c;", "int a; int c;", true},
    {"int a; /\\\n/ more\nint c;", "int a; int c;", true},
    {"int a; /\\\n* more *\\\n/ int c;", "int a; int c;", true},
    {"int a; // it's \"open\nint b;", "int a; int b;", true},
    {"int a; /* it's \"open */int b;", "int a; int b;", true},
    {"#define A 1 /* x\n y */ + 2\nint a;", "#define A 1 + 2 // z\nint a;", true},
    {"#define A \\\n    1 /* x */ \\\n    + 2\n", "#define A 1 + 2\n", true},
    {"/* x */ #define A 1\n", "#define A 1\n", true},
    {"# /* x */ define /* y */ A /* z */ (1)\n", "#define A (1)\n", true},
    {"#include <a//b>\nint a;", "#include <a//b> // c\nint a;", true},
    {"a\n\n\n  b", "a b", true},
    {"in\\\nt a;", "int a;", true},
    {"'\\'' // '", "'\\''", true},
    {"\"\\\\\" // \"", "\"\\\\\"", true},
    {"R\"x(a)\" // )x\" // y", "R\"x(a)\" // )x\"", true},
    {"1'000 // it's", "1'000", true},
    {"#error it's /* open\nint a;", "#error it's /* open\nint a; // b", true},
    /* tokens */
    {"int a;", "int b;", false},
    {"ab", "a b", false},
    {"1 2", "12", false},
    {"a - -b", "a --b", false},
    {"a+++b", "a+ ++b", false},
    {"a<b", "a<=b", false},
    {"\"a b\"", "\"a  b\"", false},
    {"\"a // b\"", "\"a // c\"", false},
    {"\"a /* b */\"", "\"a \"", false},
    {"\"\\\"// b\"", "\"\\\"// c\"", false},
    {"'\"' // b\n + c", "'\"'", false},
    {"1'000 + '//'", "1'000 + '/*'", false},
    {"R\"(a // b)\"", "R\"(a // c)\"", false},
    {"R\"(a\\\nb)\"", "R\"(ab)\"", false},
    {"R\"y(a)\" // b)y\"", "R\"y(a)\" // c)y\"", false},
    {"u8\"a\"", "u8 \"a\"", false},
    {"\"a\"_b", "\"a\" _b", false},
    {"#define A(x)\n", "#define A (x)\n", false},
    {"#define A/**/(x)\n", "#define A(x)\n", false},
    {"#define A\nb", "#define A b\n", false},
    {"a\n#b\n", "a #b\n", false},
    {"#include <a//b>\n", "#include <a//c>\n", false},
    {"#include \"a//b\"\n", "#include \"a//c\"\n", false},
    {"a; // b \\ \nc;", "a; // b \\ \nd;", false},
    {"1.5e-3f", "1.5e -3f", false},
};

START_TEST(pairs_are_told_apart)
{
    char *a = canonical(pairs[_i].a), *b = canonical(pairs[_i].b);
    const bool same = !strcmp(a, b);
    ck_assert_msg(same == pairs[_i].same, "%s\n%s", a, b);
    ck_assert(same_digest(pairs[_i].a, pairs[_i].b) == same);
    mgl_free(a);
    mgl_free(b);
}
END_TEST

START_TEST(the_form_is_fixed)
{
    char *text =
        canonical("// x\n#define F(x) \\\n  ((x)+1) // y\n\n int a = F( 2 ); /* z */ // w");
    ck_assert_str_eq(text, "# define F( x ) ( ( x ) + 1 )\nint a = F ( 2 ) ;\n");
    mgl_free(text);
    text = canonical(" /* nothing */ ");
    ck_assert_str_eq(text, "");
    mgl_free(text);
}
END_TEST

/* ---- built-in sources ------------------------------------------------------------------------ */

/* The canonical text has no comments outside of literals, and no empty lines. */
static void check_clean(const char *name, const char *text)
{
    char quote = 0;
    for (const char *at = text; *at; at++) {
        if (quote && *at == '\\')
            at++;
        else if (quote ? *at == quote : (*at == '"' || *at == '\''))
            quote = quote ? 0 : *at;
        ck_assert_msg(quote || *at != '/' || (at[1] != '/' && at[1] != '*'),
                      "%s has a comment: %.40s", name, at);
        ck_assert_msg(quote || *at != '\n' || at[1] != '\n', "%s has an empty line", name);
    }
}

/* The sources must not use __LINE__, because its value depends on comments. */
static void check_lines(const char *name, const char *text)
{
    static const char *const names[] = {"__LINE__", "__FILE__", "__COUNTER__", "# line",
                                        "assert ("};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *at = strstr(text, names[i]);
        ck_assert_msg(!at || (at > text && at[-1] == '_'), "%s has %s", name, names[i]);
    }
}

static void check_source(const mgl_cuda_source *source)
{
    const char *text = (const char *)source->text;
    char *once = canonical(text), *twice = canonical(once);
    ck_assert_uint_gt(strlen(once), 0);
    ck_assert_str_eq(once, twice);
    ck_assert_msg(same_digest(text, once), "%s", source->name);
    check_clean(source->name, once);
    check_lines(source->name, once);
    mgl_free(once);
    mgl_free(twice);
}

START_TEST(all_sources_are_clean)
{
    ck_assert_int_gt(mgl_cuda_source_count, 50);
    for (int i = 0; i < mgl_cuda_source_count; i++)
        check_source(&mgl_cuda_sources[i]);
    for (int i = 0; i < mgl_bench_source_count; i++)
        check_source(&mgl_bench_sources[i]);
}
END_TEST

START_TEST(comments_change_no_digest)
{
    const mgl_cuda_source *reworded = reword_sources(_i);
    for (int i = 0; i < mgl_cuda_source_count; i++) {
        const char *text = (const char *)mgl_cuda_sources[i].text;
        ck_assert(strcmp(text, (const char *)reworded[i].text) != 0);
        ck_assert_msg(same_digest(text, (const char *)reworded[i].text), "%s", reworded[i].name);
    }
}
END_TEST

/* The digest of a measured kernel also uses canonical texts. */
START_TEST(comments_change_no_normal_form)
{
    mgl_error err = {0};
    mgl_text wanted = {0}, made = {0};
    ck_assert_int_eq(mgl_cuda_normalize(mgl_cuda_sources, mgl_cuda_source_count, &wanted, &err),
                     MGL_OK);
    ck_assert_int_eq(mgl_cuda_normalize(reword_sources(_i), mgl_cuda_source_count, &made, &err),
                     MGL_OK);
    ck_assert_str_eq(wanted.bytes, made.bytes);
    mgl_text_clear(&wanted);
    mgl_text_clear(&made);
}
END_TEST

/* Changes every n-th letter or digit of the text: another token. */
START_TEST(each_token_changes_the_digest)
{
    enum { STEP = 997 };
    for (int i = 0; i < mgl_cuda_source_count; i++) {
        char *text = canonical((const char *)mgl_cuda_sources[i].text);
        char *changed = canonical(text);
        for (size_t at = 0; at < strlen(text); at += STEP) {
            while (text[at] && !isalnum((unsigned char)text[at]))
                at++;
            if (!text[at])
                break;
            changed[at] = text[at] == 'x' ? 'y' : 'x';
            ck_assert_msg(!same_digest(text, changed), "%s: %.40s", mgl_cuda_sources[i].name,
                          text + at);
            changed[at] = text[at];
        }
        mgl_free(text);
        mgl_free(changed);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("canonical");
    TCase *cases = tcase_create("canonical");
    tcase_add_loop_test(cases, pairs_are_told_apart, 0, sizeof pairs / sizeof *pairs);
    tcase_add_test(cases, the_form_is_fixed);
    tcase_add_test(cases, all_sources_are_clean);
    tcase_add_loop_test(cases, comments_change_no_digest, 0, REWORDINGS);
    tcase_add_loop_test(cases, comments_change_no_normal_form, 0, REWORDINGS);
    tcase_add_test(cases, each_token_changes_the_digest);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

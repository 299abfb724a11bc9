/*
 * Tests of wrapping at a terminal's width: the output for every split of a text into pieces, and
 * the output of run and chat on a terminal.
 */
#include "cli/wrap.h"
#include "command.h"
#include "terminal.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- the text -------------------------------------------------------------------------------- */

static char printed[20000];
static size_t printed_length;
static int width;

static bool keep(const char *bytes, size_t length)
{
    ck_assert_uint_lt(printed_length + length, sizeof printed);
    memcpy(printed + printed_length, bytes, length);
    printed[printed_length += length] = 0;
    return true;
}

static int get_width(void)
{
    return width;
}

/* The text in pieces of that many bytes. */
static const char *wrap(const char *text, int columns, size_t piece)
{
    mgl_cli_wrap w = {.columns = get_width, .put = keep};
    width = columns;
    printed_length = 0;
    printed[0] = 0;
    for (size_t at = 0, length = strlen(text); at < length; at += piece)
        ck_assert(mgl_cli_wrap_print(&w, text + at, length - at < piece ? length - at : piece));
    ck_assert(mgl_cli_wrap_end(&w));
    return printed;
}

static const struct text_case {
    int columns;
    const char *text, *printed; /* NULL: unchanged */
} texts[] = {
    {10, "", NULL},
    {10, "one two", NULL},
    {10, "1234567890", NULL},
    {10, "12345 7890", NULL},
    {10, "12345 78901", "12345\n78901"},
    {10, "one two three four", "one two\nthree four"},
    {10, " one two three", " one two\nthree"},
    {10, "one two \nthree", NULL},
    {10, "one\n\ntwo three four", "one\n\ntwo three\nfour"},
    {10, "one  two   three", "one  two\nthree"},
    {10, "12345 7890\nx", NULL},
    {10, "one two three\n", "one two\nthree\n"},
    {10, "  - one two three", "  - one\ntwo three"},
    {10, "    - one two three", "    - one\ntwo three"},
    /* Words longer than a line are not split. */
    {10, "a 123456789012345 b", "a\n123456789012345 b"},
    {10, "123456789012345 678901 b", "123456789012345\n678901 b"},
    {10, "a 1234567890123456789012345678901 b", "a\n1234567890123456789012345678901 b"},
    /* Code. */
    {10, "```\nint main(void) { return 0; }\n```\none two three",
     "```\nint main(void) { return 0; }\n```\none two\nthree"},
    {10, "```c\n  a b c d e f g h i\n\n```\none two three",
     "```c\n  a b c d e f g h i\n\n```\none two\nthree"},
    {10, "~~~\n``` a b c d e f g\n~~~\none two three",
     "~~~\n``` a b c d e f g\n~~~\none two\nthree"},
    {10, "```a``` one two three", "```a```\none two\nthree"},
    {10, "    return a + b + c;", NULL},
    {10, "\treturn a + b + c;", NULL},
    {10, "| a | b | c | d |\none two three", "| a | b | c | d |\none two\nthree"},
    {10, "one\ttwo three", "one\t\ntwo three"},
    /* Characters of two columns, of none, and of several bytes. */
    {10, "\u4f60\u597d\u4e16\u754c\u4f60\u597d\u4e16",
     "\u4f60\u597d\u4e16\u754c\u4f60\n\u597d\u4e16"},
    {10, "ab \u4f60\u597d\u4e16\u754c", "ab \u4f60\u597d\u4e16\n\u754c"},
    {10, "\u4f60\u597d\u4e16\u754c\u4f60\u3002\u597d",
     "\u4f60\u597d\u4e16\u754c\n\u4f60\u3002\u597d"},
    {10, "\u4f60\u597d\u4e16\u754c\u300c\u4f60\u300d",
     "\u4f60\u597d\u4e16\u754c\n\u300c\u4f60\u300d"},
    {10, "\ud55c\uad6d\uc5b4 \ub9d0\ud558\uae30", "\ud55c\uad6d\uc5b4\n\ub9d0\ud558\uae30"},
    {6, "\u00e4\u00f6\u00fc \u00e4\u00f6\u00fc", "\u00e4\u00f6\u00fc\n\u00e4\u00f6\u00fc"},
    {7, "e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301", NULL},
    {6, "one\u00a0two three", "one\u00a0two\nthree"},
    {8, "\u4e00\u4e8c\u3000\u4e09\u56db", "\u4e00\u4e8c\u3000\u4e09\n\u56db"},
    {4, "\U0001F469\u200d\U0001F469\u200d\U0001F467", NULL},
    {1, "\u4f60\u597d", "\u4f60\n\u597d"},
    {1, "a b", "a\nb"},
    /* Not UTF-8. */
    {10, "one\xff two three", "one\xff two\nthree"},
    {10, "one \xe4\xbd", NULL},
    /* The width is not known. */
    {0, "one two three four five six seven", NULL},
};
enum { TEXTS = sizeof texts / sizeof *texts };

START_TEST(lines_end_at_blanks)
{
    const struct text_case *c = &texts[_i];
    for (size_t piece = 1; piece <= strlen(c->text) + 1; piece++)
        ck_assert_str_eq(wrap(c->text, c->columns, piece), c->printed ? c->printed : c->text);
}
END_TEST

static void blanks_for_line_ends(char *text)
{
    for (; *text; text++)
        *text = *text == '\n' ? ' ' : *text;
}

/* For texts with single blanks: the lines joined by blanks equal the text, and no line is too
 * long. */
START_TEST(no_word_is_lost)
{
    char text[4000] = "";
    unsigned seed = (unsigned)_i;
    for (int word = 0; word < 300; word++) {
        size_t length = strlen(text);
        int letters = 1 + (int)((seed = seed * 1103515245 + 12345) >> 16) % 9;
        snprintf(text + length, sizeof text - length, "%s%.*s", word ? " " : "", letters,
                 "abcdefghi");
    }
    int columns = 9 + _i;
    wrap(text, columns, 3);
    for (const char *line = printed; *line; line += *line == '\n') {
        size_t length = strcspn(line, "\n");
        ck_assert_uint_le(length, (size_t)columns);
        line += length;
    }
    blanks_for_line_ends(printed);
    ck_assert_str_eq(printed, text);
}
END_TEST

/* A line started at a larger width ends at the current width of the terminal. */
START_TEST(a_terminal_can_be_resized)
{
    mgl_cli_wrap w = {.columns = get_width, .put = keep};
    static const char *const pieces[] = {"one two three ", "four five ", "six seven eight "};
    static const int widths[] = {40, 10, 0};
    printed_length = 0;
    for (int i = 0; i < 3; i++) {
        width = widths[i];
        ck_assert(mgl_cli_wrap_print(&w, pieces[i], strlen(pieces[i])));
    }
    mgl_cli_wrap_end(&w);
    ck_assert_str_eq(printed, "one two three four\nfive six seven eight ");
}
END_TEST

/* No text overflows the buffer of held text. */
START_TEST(what_is_held_has_an_end)
{
    static char text[6000];
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\u0301", 2); /* no columns */
    ck_assert_str_eq(wrap(text, 10, 7), text);
    memset(text, ' ', sizeof text - 1);
    wrap(text, 10, 7);
    ck_assert_uint_le(strlen(printed), strlen(text));
}
END_TEST

/* ---- at a terminal --------------------------------------------------------------------------- */

/* The terminal's output, with plain line ends. */
static void get_text(const terminal *t, char *to)
{
    for (const char *from = t->bytes; *from; from++)
        if (*from != '\r')
            *to++ = *from;
    *to = 0;
}

START_TEST(run_wraps_at_a_terminal)
{
    static char text[20000];
    char line[1200];
    terminal t;
    snprintf(line, sizeof line, "run %s --device cpu --quiet -n 60 --prompt Once",
             model_path("tales-5m"));
    command_result plain = command_run(line, NULL);
    ck_assert_msg(plain.code == 0, "%s", plain.err);
    terminal_open(&t, 30);
    pid_t pid = terminal_start(&t, &(terminal_program){.line = line, .kind = "xterm"});
    ck_assert_int_eq(terminal_end(&t, pid), 0);
    get_text(&t, text);
    int lines = 0;
    for (const char *at = text; *at; at += *at == '\n', lines++) {
        ck_assert_uint_le(strcspn(at, "\n"), 30);
        at += strcspn(at, "\n");
    }
    ck_assert_int_gt(lines, 3);
    ck_assert_ptr_eq(strchr(plain.out, '\n'), plain.out + strlen(plain.out) - 1);
    blanks_for_line_ends(text);
    blanks_for_line_ends(plain.out);
    ck_assert_str_eq(text, plain.out);
    terminal_close(&t);
    command_clear(&plain);
}
END_TEST

/* JSON and ids are not wrapped. */
static const char *const unwrapped[] = {"--json --prompt Once", "--prompt-ids 1,2,3"};

START_TEST(nothing_else_is_wrapped)
{
    char line[3000], folder[600];
    terminal t;
    static char text[20000];
    snprintf(folder, sizeof folder, "%s/bare%d", scratch_folder(), _i);
    snprintf(line, sizeof line, "mkdir %s && cp %s/* %s && %s %s/tokenizer.json", folder,
             model_path("tales-5m"), folder, _i ? "rm" : "ls >/dev/null", folder);
    ck_assert_int_eq(system(line), 0);
    snprintf(line, sizeof line, "run %s --device cpu --quiet -n 60 %s", folder, unwrapped[_i]);
    terminal_open(&t, 30);
    pid_t pid = terminal_start(&t, &(terminal_program){.line = line, .kind = "xterm"});
    ck_assert_int_eq(terminal_end(&t, pid), 0);
    get_text(&t, text);
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
    terminal_close(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli wrap");
    TCase *tests = tcase_create("wrap");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, lines_end_at_blanks, 0, TEXTS);
    tcase_add_loop_test(tests, no_word_is_lost, 0, 30);
    tcase_add_test(tests, a_terminal_can_be_resized);
    tcase_add_test(tests, what_is_held_has_an_end);
    tcase_add_test(tests, run_wraps_at_a_terminal);
    tcase_add_loop_test(tests, nothing_else_is_wrapped, 0, 2);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

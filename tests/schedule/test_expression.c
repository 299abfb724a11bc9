/*
 * Tests of expressions over named integers: their values, expressions without a value, and invalid
 * texts.
 */
#include "support.h"

#include <stdio.h>

#include "schedule/expression.h"

static const char *const names[] = {"rows", "warps", "kblocks", "k", "zero"};
static const int64_t values[] = {4, 8, 1000, 2, 0};
enum { NAMES = sizeof names / sizeof *names };

static mgl_status parse(const char *text, mgl_expression *out, mgl_error *err)
{
    return mgl_expression_parse(text, names, NAMES, out, err);
}

static const struct {
    const char *text;
    int64_t value;
} good[] = {
    {"0", 0},
    {"007", 7},
    {" 7 ", 7},
    {"warps", 8},
    {"k", 2},
    {"2+3*4", 14},
    {"(2+3)*4", 20},
    {"10 - 3 - 4", 3},
    {"100 / 7 / 2", 7},
    {"100 / 7 * 7", 98},
    {"2 - 5", -3},
    {"(2 - 9) / 2", -3},
    {"min(rows, warps)", 4},
    {"max(rows, warps)", 8},
    {"min(warps, rows, k, kblocks)", 2},
    {"max(1, min(9, 3) * 2, 5)", 6},
    {"kblocks - kblocks / warps * warps", 0},
    {"((((((((((((1))))))))))))", 1},
    {"999999999999999999", 999999999999999999},
    {"0 - 999999999999999999 * 9", -8999999999999999991},
    {"kblocks % 7", 6},
    {"(2 - 9) % 4", -3},
    {"kblocks / warps * 2 % 7", 5},
    {"rows < warps", 1},
    {"warps < rows", 0},
    {"rows < 4", 0},
    {"rows <= 4", 1},
    {"rows <= 3", 0},
    {"rows > 4", 0},
    {"rows > 3", 1},
    {"rows >= 4", 1},
    {"rows >= 5", 0},
    {"rows == 4", 1},
    {"rows==5", 0},
    {"rows != 5", 1},
    {"rows != 4", 0},
    {"1 + rows > 2 * k", 1},
    {"1 + (rows <= 32) + 2 * (rows <= 3)", 2},
    {"max(rows > 2, k == 3) * 10", 10},
    {"(1 < 2) == (3 < 4)", 1},
};

START_TEST(expressions_have_values)
{
    mgl_expression e;
    mgl_error err = {0};
    int64_t value = 0;
    mgl_status status = parse(good[_i].text, &e, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", good[_i].text, err.message);
    ck_assert(mgl_expression_value(&e, values, &value));
    ck_assert_int_eq(value, good[_i].value);
}
END_TEST

/* Divisions by zero, and values beyond 64 bits. */
static const char *const without[] = {
    "1 / 0",
    "1 / zero",
    "1 % 0",
    "rows % zero",
    "max(1, rows / zero)",
    "1 / zero > 0",
    "999999999999999999 * 10",
    "999999999999999999 * 9 + 999999999999999999",
    "0 - 999999999999999999 * 9 - 999999999999999999",
    "(0 - 999999999999999999 * 9 - 223372036854775817) / (0 - 1)",
    "(0 - 999999999999999999 * 9 - 223372036854775817) % (0 - 1)",
};

START_TEST(some_have_no_value)
{
    mgl_expression e;
    int64_t value;
    ck_assert_int_eq(parse(without[_i], &e, NULL), MGL_OK);
    ck_assert_msg(!mgl_expression_value(&e, values, &value), "%s", without[_i]);
}
END_TEST

static const struct {
    const char *text, *message;
} bad[] = {
    {"", "column 1: a number"},
    {"rows +", "column 7: a number"},
    {"rows rows", "column 6: the expression has ended"},
    {"row", "column 1: a number"},
    {"rowss", "column 1: a number"},
    {"Rows", "column 1: a number"},
    {"-1", "column 1: a number"},
    {"2 & 3", "column 3: the expression has ended"},
    {"2 = 3", "column 3: the expression has ended"},
    {"! 3", "column 1: a number"},
    {"2 <", "column 4: a number"},
    {"< 2", "column 1: a number"},
    {"2 <> 3", "column 4: a number"},
    {"1 < 2 < 3", "column 7: a second comparison needs parentheses around the first"},
    {"min(1, 2 == 2 != 3)", "column 15: a second comparison"},
    {"(1", "column 3: `)` is missing"},
    {"1)", "column 2: the expression has ended"},
    {"min 1, 2", "column 5: `(` is missing"},
    {"min(1)", "column 6: a second argument is missing"},
    {"min()", "column 5: a number"},
    {"min(1, 2", "column 9: `)` is missing"},
    {"max(1,, 2)", "column 7: a number"},
    {"1000000000000000000", "column 1: a number has 18 digits at most"},
    {"(((((((((((((1)))))))))))))", "column 14: too many parentheses are open"},
    {"min(min(min(min(min(min(min(min(min(min(min(min(min(1,", "column 53: too many"},
};

START_TEST(errors_name_the_column)
{
    mgl_expression e;
    mgl_error err = {0};
    ck_assert_int_eq(parse(bad[_i].text, &e, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, bad[_i].text);
    ck_assert_msg(!strncmp(err.message, bad[_i].message, strlen(bad[_i].message)), "`%s`: %s",
                  bad[_i].text, err.message);
}
END_TEST

/* A term is evaluated as if its steps were in parentheses. A value's name hides a term's. */
START_TEST(terms_are_names_of_expressions)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {{"sum", 12},      {"sum * 2", 24},    {"100 - sum", 88},
                 {"sum / sum", 1}, {"small + 1", 2},   {"max(sum, small)", 12},
                 {"k", 2},         {"small < sum", 1}, {"100 % (small + sum)", 9}};
    mgl_expression_term terms[3] = {{.name = "sum"}, {.name = "small"}, {.name = "k"}};
    const mgl_expression_names with = {names, NAMES, terms, 3};
    mgl_expression e;
    int64_t value;
    ck_assert_int_eq(parse("rows + warps", &terms[0].value, NULL), MGL_OK);
    ck_assert_int_eq(parse("rows <= 4", &terms[1].value, NULL), MGL_OK);
    ck_assert_int_eq(parse("99", &terms[2].value, NULL), MGL_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(mgl_expression_parse_terms(cases[i].text, &with, &e, NULL), MGL_OK);
        ck_assert(mgl_expression_value(&e, values, &value));
        ck_assert_int_eq(value, cases[i].value);
    }
    ck_assert_int_eq(parse("sum", &e, NULL), MGL_BAD_INPUT);
}
END_TEST

/* The steps of terms count toward the limit, so that a short text cannot be expensive. */
START_TEST(a_text_with_terms_is_bounded)
{
    mgl_expression_term terms[8] = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"},
                                    {.name = "e"}, {.name = "f"}, {.name = "g"}, {.name = "h"}};
    mgl_error err = {0};
    mgl_status status = parse("rows + 1", &terms[0].value, NULL);
    for (int i = 1; i < 8 && !status; i++) {
        const mgl_expression_names with = {names, NAMES, terms, i};
        char text[16];
        snprintf(text, sizeof text, "%s + %s", terms[i - 1].name, terms[i - 1].name);
        status = mgl_expression_parse_terms(text, &with, &terms[i].value, &err);
    }
    ck_assert_int_eq(status, MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "too long"));
}
END_TEST

/* "1+1+1...", with this many numbers. */
static mgl_status parse_sum(int count, mgl_expression *out)
{
    char text[4 * MGL_EXPRESSION_STEPS] = "1";
    for (int i = 1; i < count; i++)
        strcat(text, "+1");
    return parse(text, out, NULL);
}

START_TEST(a_text_is_bounded)
{
    mgl_expression e;
    int64_t value;
    const int most = (MGL_EXPRESSION_STEPS + 1) / 2; /* one step per number, and one per addition */
    ck_assert_int_eq(parse_sum(most, &e), MGL_OK);
    ck_assert(mgl_expression_value(&e, values, &value));
    ck_assert_int_eq(value, most);
    ck_assert_int_eq(parse_sum(most + 1, &e), MGL_BAD_INPUT);
}
END_TEST

START_TEST(nothing_has_no_value)
{
    const mgl_expression none = {0};
    int64_t value;
    ck_assert(!mgl_expression_value(&none, values, &value));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule expression");
    TCase *cases = tcase_create("expression");
    tcase_add_loop_test(cases, expressions_have_values, 0, sizeof good / sizeof *good);
    tcase_add_loop_test(cases, some_have_no_value, 0, sizeof without / sizeof *without);
    tcase_add_loop_test(cases, errors_name_the_column, 0, sizeof bad / sizeof *bad);
    tcase_add_test(cases, terms_are_names_of_expressions);
    tcase_add_test(cases, a_text_with_terms_is_bounded);
    tcase_add_test(cases, a_text_is_bounded);
    tcase_add_test(cases, nothing_has_no_value);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}

/*
 * Operators and comparisons by Python's rules, and conversions of strings to numbers. evaluate.c,
 * filters and tests call it. Integer arithmetic is exact within 64 bits; a larger result is an
 * error.
 */
#include "base/format.h"
#include "importer/chat/markup.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *sign_of(mgl_operator operation)
{
    static const char *const signs[MGL_EXPR_COUNT] = {
#define MGL_X(name, text) text,
        MGL_OPERATORS(MGL_X)
#undef MGL_X
    };
    return signs[operation];
}

static bool fail_types(mgl_render *r, mgl_operator operation, mgl_value a, mgl_value b)
{
    return mgl_render_fail(r, "'%s' is not for values of types '%s' and '%s'", sign_of(operation),
                           mgl_value_type(a), mgl_value_type(b));
}

static bool fail_large(mgl_render *r)
{
    return mgl_render_fail(r, "arithmetic on integers beyond 64 bits is not supported");
}

static bool fail_zero(mgl_render *r)
{
    return mgl_render_fail(r, "division by zero");
}

/* ---- integers -------------------------------------------------------------------------------- */

/* Floor division and modulo, as in Python. */
static bool divide_whole(mgl_render *r, mgl_operator operation, int64_t a, int64_t b,
                         mgl_value *out)
{
    if (!b)
        return fail_zero(r);
    if (a == INT64_MIN && b == -1)
        return operation == MGL_EXPR_MODULO ? (*out = mgl_integer(0), true) : fail_large(r);
    int64_t quotient = a / b, rest = a % b;
    if (rest && (rest < 0) != (b < 0)) {
        quotient--;
        rest += b;
    }
    *out = mgl_integer(operation == MGL_EXPR_MODULO ? rest : quotient);
    return true;
}

static bool power_whole(mgl_render *r, int64_t base, int64_t exponent, mgl_value *out)
{
    if (exponent < 0 && !base)
        return fail_zero(r);
    if (exponent < 0) {
        *out = mgl_real(pow((double)base, (double)exponent));
        return true;
    }
    int64_t product = 1;
    if (base == 0 || base == 1 || base == -1) { /* any exponent is possible */
        *out = mgl_integer(!exponent ? 1 : base < 0 && exponent % 2 == 0 ? 1 : base);
        return true;
    }
    for (; exponent; exponent--)
        if (__builtin_mul_overflow(product, base, &product))
            return fail_large(r);
    *out = mgl_integer(product);
    return true;
}

static bool operate_whole(mgl_render *r, mgl_operator operation, int64_t a, int64_t b,
                          mgl_value *out)
{
    int64_t result = 0;
    bool over;
    switch (operation) {
    case MGL_EXPR_ADD:
        over = __builtin_add_overflow(a, b, &result);
        break;
    case MGL_EXPR_SUBTRACT:
        over = __builtin_sub_overflow(a, b, &result);
        break;
    case MGL_EXPR_MULTIPLY:
        over = __builtin_mul_overflow(a, b, &result);
        break;
    case MGL_EXPR_DIVIDE:
        *out = mgl_real(b ? (double)a / (double)b : 0);
        return b || fail_zero(r);
    case MGL_EXPR_POWER:
        return power_whole(r, a, b, out);
    default:
        return divide_whole(r, operation, a, b, out);
    }
    *out = mgl_integer(result);
    return !over || fail_large(r);
}

/* ---- real numbers ---------------------------------------------------------------------------- */

static double modulo(double a, double b)
{
    double rest = fmod(a, b);
    if (rest != 0)
        return (rest < 0) != (b < 0) ? rest + b : rest;
    return copysign(0, b);
}

static double floor_divide(double a, double b)
{
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0))
        quotient -= 1;
    if (quotient == 0)
        return copysign(0, a / b);
    double down = floor(quotient);
    return quotient - down > 0.5 ? down + 1 : down;
}

static bool operate_real(mgl_render *r, mgl_operator operation, double a, double b, mgl_value *out)
{
    bool divides = operation == MGL_EXPR_DIVIDE || operation == MGL_EXPR_FLOOR_DIVIDE ||
                   operation == MGL_EXPR_MODULO;
    if (divides && b == 0)
        return fail_zero(r);
    double result = operation == MGL_EXPR_ADD            ? a + b
                    : operation == MGL_EXPR_SUBTRACT     ? a - b
                    : operation == MGL_EXPR_MULTIPLY     ? a * b
                    : operation == MGL_EXPR_DIVIDE       ? a / b
                    : operation == MGL_EXPR_FLOOR_DIVIDE ? floor_divide(a, b)
                    : operation == MGL_EXPR_MODULO       ? modulo(a, b)
                                                         : pow(a, b);
    if (operation == MGL_EXPR_POWER && a == 0 && b < 0)
        return fail_zero(r);
    if (operation == MGL_EXPR_POWER && isnan(result) && !isnan(a) && !isnan(b))
        return mgl_render_fail(r, "a power that is not a real number");
    if (operation == MGL_EXPR_POWER && isinf(result) && !isinf(a) && !isinf(b))
        return mgl_render_fail(r, "a power that is too large");
    *out = mgl_real(result);
    return true;
}

/* ---- sequences ------------------------------------------------------------------------------- */

static bool join_lists(mgl_render *r, mgl_value a, mgl_value b, mgl_value *out)
{
    mgl_list *list = mgl_list_new(r, a.list->count + b.list->count);
    if (!list || !mgl_render_spend(r, (a.list->count + b.list->count) * sizeof(mgl_value)))
        return false;
    if (a.list->count)
        memcpy(list->items, a.list->items, a.list->count * sizeof *list->items);
    if (b.list->count)
        memcpy(list->items + a.list->count, b.list->items, b.list->count * sizeof *list->items);
    list->count = a.list->count + b.list->count;
    *out = (mgl_value){.kind = a.kind, .list = list};
    return true;
}

static bool repeat_list(mgl_render *r, mgl_value a, int64_t times, mgl_value *out)
{
    mgl_list *list = mgl_list_new(r, 0);
    if (!a.list->count)
        times = 0;
    for (int64_t i = 0; list && i < times; i++)
        for (size_t k = 0; k < a.list->count; k++)
            if (!mgl_render_spend(r, sizeof(mgl_value)) || !mgl_list_add(r, list, a.list->items[k]))
                return false;
    *out = (mgl_value){.kind = a.kind, .list = list};
    return list != NULL;
}

static bool is_list(mgl_value value)
{
    return value.kind == MGL_VALUE_LIST || value.kind == MGL_VALUE_TUPLE;
}

static bool add_sequences(mgl_render *r, mgl_value a, mgl_value b, mgl_value *out)
{
    if (is_list(a))
        return join_lists(r, a, b, out);
    if (a.markup || b.markup)
        return mgl_markup_add(r, a, b, out);
    mgl_string *joined = mgl_string_join(r, a.string, b.string);
    *out = mgl_of_string(joined);
    return joined != NULL;
}

static bool repeat(mgl_render *r, mgl_value a, int64_t times, mgl_value *out)
{
    if (is_list(a))
        return repeat_list(r, a, times, out);
    mgl_string *repeated = mgl_string_repeat(r, a.string, times);
    *out = mgl_of_string(repeated);
    out->markup = a.markup;
    return repeated != NULL;
}

static bool concatenate(mgl_render *r, mgl_value a, mgl_value b, mgl_value *out)
{
    mgl_string *left = mgl_value_string(r, a), *right = left ? mgl_value_string(r, b) : NULL;
    mgl_string *joined = right ? mgl_string_join(r, left, right) : NULL;
    *out = mgl_of_string(joined);
    return joined != NULL;
}

/* ---- dispatch -------------------------------------------------------------------------------- */

static bool operate_numbers(mgl_render *r, mgl_operator operation, mgl_value a, mgl_value b,
                            mgl_value *out)
{
    int64_t i, k;
    double x, y;
    if (mgl_value_is_whole(a, &i) && mgl_value_is_whole(b, &k))
        return operate_whole(r, operation, i, k, out);
    if (a.kind == MGL_VALUE_LARGE || b.kind == MGL_VALUE_LARGE)
        return fail_large(r);
    mgl_value_is_number(a, &x);
    mgl_value_is_number(b, &y);
    return operate_real(r, operation, x, y, out);
}

bool mgl_operate(mgl_render *r, mgl_operator operation, mgl_value a, mgl_value b, mgl_value *out)
{
    double unused;
    int64_t times;
    bool text = a.kind == MGL_VALUE_STRING;
    if (operation == MGL_EXPR_CONCATENATE)
        return concatenate(r, a, b, out);
    if (mgl_value_is_number(a, &unused) && mgl_value_is_number(b, &unused))
        return operate_numbers(r, operation, a, b, out);
    if (operation == MGL_EXPR_MODULO && text)
        return (!a.markup || mgl_markup_check(r, "operator", "%")) &&
               mgl_format_percent(r, a.string, b, out);
    if (a.kind == MGL_VALUE_UNDEFINED || b.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(r, a.kind == MGL_VALUE_UNDEFINED ? a : b);
    if (operation == MGL_EXPR_ADD && a.kind == b.kind && (text || is_list(a)))
        return add_sequences(r, a, b, out);
    if (operation == MGL_EXPR_MULTIPLY && (text || is_list(a)) && mgl_value_is_whole(b, &times))
        return repeat(r, a, times, out);
    if (operation == MGL_EXPR_MULTIPLY && (b.kind == MGL_VALUE_STRING || is_list(b)) &&
        mgl_value_is_whole(a, &times))
        return repeat(r, b, times, out);
    return fail_types(r, operation, a, b);
}

/* Negates a large integer by changing the sign of its digits. */
static bool negate_large(mgl_render *r, mgl_value a, mgl_value *out)
{
    mgl_sink sink = {0};
    const char *digits = a.string->bytes;
    bool minus = digits[0] == '-';
    if (!mgl_sink_puts(r, &sink, minus ? "" : "-") ||
        !mgl_sink_put(r, &sink, digits + minus, a.string->length - minus))
        return false;
    mgl_string *string = mgl_sink_string(r, &sink);
    *out = mgl_string_is(string, "-9223372036854775808")
               ? mgl_integer(INT64_MIN)
               : (mgl_value){.kind = MGL_VALUE_LARGE, .string = string};
    return string != NULL;
}

bool mgl_operate_unary(mgl_render *r, mgl_operator operation, mgl_value a, mgl_value *out)
{
    int64_t whole;
    bool minus = operation == MGL_EXPR_SUBTRACT;
    if (a.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(r, a);
    if (a.kind == MGL_VALUE_LARGE)
        return minus ? negate_large(r, a, out) : (*out = a, true);
    if (a.kind == MGL_VALUE_REAL) {
        *out = mgl_real(minus ? -a.real : a.real);
        return true;
    }
    if (!mgl_value_is_whole(a, &whole))
        return mgl_render_fail(r, "'%s' is not for a value of type '%s'", sign_of(operation),
                               mgl_value_type(a));
    if (minus && whole == INT64_MIN)
        return fail_large(r);
    *out = mgl_integer(minus ? -whole : whole);
    return true;
}

static bool is_nan(mgl_value value)
{
    return value.kind == MGL_VALUE_REAL && isnan(value.real);
}

bool mgl_compare(mgl_render *r, mgl_operator operation, mgl_value a, mgl_value b, bool *out)
{
    bool good;
    switch (operation) {
    case MGL_EXPR_EQUAL:
        return mgl_value_equal(r, a, b, out);
    case MGL_EXPR_UNEQUAL:
        good = mgl_value_equal(r, a, b, out);
        *out = !*out;
        return good;
    case MGL_EXPR_LESS:
        return mgl_value_less(r, a, b, out);
    case MGL_EXPR_GREATER:
        return mgl_value_less(r, b, a, out);
    case MGL_EXPR_AT_MOST:
        good = mgl_value_less(r, b, a, out);
        *out = !*out && !is_nan(a) && !is_nan(b);
        return good;
    case MGL_EXPR_AT_LEAST:
        good = mgl_value_less(r, a, b, out);
        *out = !*out && !is_nan(a) && !is_nan(b);
        return good;
    case MGL_EXPR_IN:
        return mgl_value_contains(r, b, a, out);
    default:
        good = mgl_value_contains(r, b, a, out);
        *out = !*out;
        return good;
    }
}

/* ---- numbers from strings -------------------------------------------------------------------- */

enum { NUMBER = 400 }; /* characters of the longest number */

/* Copies a number for C's parsers: without surrounding white space, and without underscores
 * between digits. */
static bool copy_number(const mgl_string *string, char text[NUMBER])
{
    const char *at = string->bytes, *end = at + string->length;
    size_t n = 0;
    const char *point = localeconv()->decimal_point;
    while (at < end && strchr(" \t\n\r\f\v", *at) && *at)
        at++;
    while (end > at && strchr(" \t\n\r\f\v", end[-1]) && end[-1])
        end--;
    for (; at < end && n < NUMBER - 1; at++) {
        bool between =
            n && at + 1 < end && at[-1] >= '0' && at[-1] <= '9' && at[1] >= '0' && at[1] <= '9';
        if (!*at || (*at == '_' && !between))
            return false;
        if (*at != '_')
            text[n++] = *at == '.' ? *point : *at;
    }
    text[n] = 0;
    return n && at == end;
}

bool mgl_string_to_real(const mgl_string *string, double *out)
{
    char text[NUMBER], *end;
    if (!copy_number(string, text) || strpbrk(text, "xXpP(") || strchr(" \t\n\r\f\v", text[0]))
        return false;
    *out = strtod(text, &end);
    return !*end && end != text;
}

/* Returns whether the text is a sign and digits of the base; *digits: after sign and prefix. */
static bool check_digits(const char *text, int *base, const char **digits)
{
    const char *at = text + (*text == '-' || *text == '+');
    int prefix = 10;
    if (*at == '0' && at[1])
        prefix = strchr("xX", at[1]) ? 16 : strchr("oO", at[1]) ? 8 : strchr("bB", at[1]) ? 2 : 10;
    if (prefix != 10 && (*base == prefix || *base == 0)) {
        *base = prefix;
        at += 2;
    }
    if (*base == 0)
        *base = 10;
    *digits = at;
    for (; *at; at++) {
        int digit = *at >= '0' && *at <= '9'   ? *at - '0'
                    : *at >= 'a' && *at <= 'z' ? *at - 'a' + 10
                    : *at >= 'A' && *at <= 'Z' ? *at - 'A' + 10
                                               : 99;
        if (digit >= *base)
            return false;
    }
    return at > *digits;
}

bool mgl_string_to_integer(mgl_render *r, const mgl_string *string, int base, mgl_value *out,
                           bool *good)
{
    char text[NUMBER];
    const char *digits = text;
    *good = copy_number(string, text) && check_digits(text, &base, &digits);
    if (!*good)
        return true;
    bool minus = text[0] == '-';
    char number[NUMBER + 1];
    while (*digits == '0' && digits[1])
        digits++;
    snprintf(number, sizeof number, "%s%s", minus ? "-" : "", digits);
    errno = 0;
    *out = mgl_integer(strtoll(number, NULL, base));
    if (!errno)
        return true;
    if (base != 10)
        return fail_large(r);
    *out =
        (mgl_value){.kind = MGL_VALUE_LARGE, .string = mgl_string_new(r, number, strlen(number))};
    return out->string != NULL;
}

bool mgl_real_to_integer(mgl_render *r, double real, mgl_value *out)
{
    char text[NUMBER];
    real = trunc(real);
    if (real >= -0x1p63 && real < 0x1p63) {
        *out = mgl_integer((int64_t)real);
        return true;
    }
    snprintf(text, sizeof text, "%.0f", real);
    *out = (mgl_value){.kind = MGL_VALUE_LARGE, .string = mgl_string_new(r, text, strlen(text))};
    return out->string != NULL;
}

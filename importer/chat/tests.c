/*
 * Tests: the operator `is`.
 */
#include "importer/chat/render.h"

#include "base/utf8.h"

#include <string.h>

static bool say(bool holds, mgl_value *out)
{
    *out = mgl_bool(holds);
    return true;
}

/* Tests that depend only on the value: name, condition. */
#define PLAIN_TESTS(X)                                                                             \
    X(boolean, value.kind == MGL_VALUE_BOOL)                                                       \
    X(callable, value.kind >= MGL_VALUE_LOOP || value.kind == MGL_VALUE_UNDEFINED)                 \
    X(defined, value.kind != MGL_VALUE_UNDEFINED)                                                  \
    X(undefined, value.kind == MGL_VALUE_UNDEFINED)                                                \
    X(false, value.kind == MGL_VALUE_BOOL && !value.flag)                                          \
    X(true, value.kind == MGL_VALUE_BOOL && value.flag)                                            \
    X(none, value.kind == MGL_VALUE_NONE)                                                          \
    X(float, value.kind == MGL_VALUE_REAL)                                                         \
    X(integer, value.kind == MGL_VALUE_INTEGER || value.kind == MGL_VALUE_LARGE)                   \
    X(number, value.kind >= MGL_VALUE_BOOL && value.kind <= MGL_VALUE_REAL)                        \
    X(string, value.kind == MGL_VALUE_STRING)                                                      \
    X(mapping, value.kind == MGL_VALUE_DICT)                                                       \
    X(sequence, value.kind == MGL_VALUE_UNDEFINED || value.kind == MGL_VALUE_RANGE ||              \
                    (value.kind >= MGL_VALUE_STRING && value.kind <= MGL_VALUE_DICT))              \
    X(iterable, value.kind == MGL_VALUE_UNDEFINED || value.kind == MGL_VALUE_LOOP ||               \
                    (value.kind >= MGL_VALUE_STRING && value.kind <= MGL_VALUE_RANGE))
#define MGL_X(name, condition)                                                                     \
    static bool test_##name(mgl_render *r, mgl_value value, const mgl_bound *bound,                \
                            mgl_value *out)                                                        \
    {                                                                                              \
        (void)r;                                                                                   \
        (void)bound;                                                                               \
        return say(condition, out);                                                                \
    }
PLAIN_TESTS(MGL_X)
#undef MGL_X

/* Comparisons: name, operator. */
#define COMPARISONS(X)                                                                             \
    X(equal, EQUAL)                                                                                \
    X(unequal, UNEQUAL)                                                                            \
    X(less, LESS)                                                                                  \
    X(at_most, AT_MOST)                                                                            \
    X(greater, GREATER)                                                                            \
    X(at_least, AT_LEAST)                                                                          \
    X(in, IN)
#define MGL_X(name, operation)                                                                     \
    static bool test_##name(mgl_render *r, mgl_value value, const mgl_bound *bound,                \
                            mgl_value *out)                                                        \
    {                                                                                              \
        bool holds = false;                                                                        \
        return mgl_compare(r, MGL_EXPR_##operation, value, bound->values[0], &holds) &&            \
               say(holds, out);                                                                    \
    }
COMPARISONS(MGL_X)
#undef MGL_X

/* Tests value % number == rest. */
static bool has_rest(mgl_render *r, mgl_value value, mgl_value number, int64_t rest, mgl_value *out)
{
    mgl_value is;
    bool same;
    if (value.kind == MGL_VALUE_STRING)
        return mgl_render_fail(r, "this test is for numbers, not strings");
    return mgl_operate(r, MGL_EXPR_MODULO, value, number, &is) &&
           mgl_value_equal(r, is, mgl_integer(rest), &same) && say(same, out);
}

static bool test_divisibleby(mgl_render *r, mgl_value value, const mgl_bound *bound, mgl_value *out)
{
    return has_rest(r, value, bound->values[0], 0, out);
}

static bool test_even(mgl_render *r, mgl_value value, const mgl_bound *bound, mgl_value *out)
{
    (void)bound;
    return has_rest(r, value, mgl_integer(2), 0, out);
}

static bool test_odd(mgl_render *r, mgl_value value, const mgl_bound *bound, mgl_value *out)
{
    (void)bound;
    return has_rest(r, value, mgl_integer(2), 1, out);
}

/* Tests identity; for values without identity, type and value. */
static bool test_sameas(mgl_render *r, mgl_value value, const mgl_bound *bound, mgl_value *out)
{
    mgl_value other = bound->values[0];
    bool same = false;
    if (value.kind != other.kind)
        return say(false, out);
    if (value.kind >= MGL_VALUE_LIST)
        return say(value.list == other.list, out);
    return mgl_value_equal(r, value, other, &same) && say(same, out);
}

static bool test_filter(mgl_render *r, mgl_value value, const mgl_bound *bound, mgl_value *out)
{
    (void)r;
    (void)bound;
    return say(value.kind == MGL_VALUE_STRING &&
                   mgl_filter_find(value.string->bytes, value.string->length) >= 0,
               out);
}

static bool test_test(mgl_render *r, mgl_value value, const mgl_bound *bound, mgl_value *out)
{
    (void)r;
    (void)bound;
    return say(value.kind == MGL_VALUE_STRING &&
                   mgl_test_find(value.string->bytes, value.string->length) >= 0,
               out);
}

/* str.isupper and str.islower: has letters of this case, and none of the other. */
static bool has_case(mgl_render *r, mgl_value value, bool upper, mgl_value *out)
{
    mgl_string *text = mgl_value_string(r, value);
    if (!text || !mgl_render_spend(r, text->length * 2 * MGL_CHARACTER_COST))
        return false;
    return say(mgl_string_has_case(text, upper), out);
}

static bool test_upper(mgl_render *r, mgl_value value, const mgl_bound *bound, mgl_value *out)
{
    (void)bound;
    return has_case(r, value, true, out);
}

static bool test_lower(mgl_render *r, mgl_value value, const mgl_bound *bound, mgl_value *out)
{
    (void)bound;
    return has_case(r, value, false, out);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static const mgl_callable tests[] = {
#define X(name, function, parameters, required) {name, test_##function, parameters, required},
#include "importer/chat/tests.def"
#undef X
};

int mgl_test_find(const char *name, size_t length)
{
    return mgl_callable_find(tests, sizeof tests / sizeof *tests, name, length);
}

bool mgl_test_call(mgl_render *r, int row, mgl_value input, const mgl_arguments *arguments,
                   bool *out)
{
    mgl_value holds;
    if (!mgl_callable_call(r, &tests[row], "test", input, arguments, &holds))
        return false;
    *out = holds.flag;
    return true;
}

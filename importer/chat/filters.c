/*
 * Filters on texts, numbers and single values; lookup and calls of filters.
 */
#include "importer/chat/filters.h"
#include "importer/chat/markup.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lookup ---------------------------------------------------------------------------------- */

static const mgl_callable filters[] = {
#define X(name, function, parameters, required) {name, mgl_filter_##function, parameters, required},
#include "importer/chat/filters.def"
#undef X
};

int mgl_filter_find(const char *name, size_t length)
{
    return mgl_callable_find(filters, sizeof filters / sizeof *filters, name, length);
}

bool mgl_filter_call(mgl_render *r, int row, mgl_value input, const mgl_arguments *arguments,
                     mgl_value *out)
{
    const mgl_callable *filter = &filters[row];
    bool markup = mgl_is_markup(input);
    if ((markup && !mgl_markup_check(r, "filter", filter->name)) ||
        !mgl_callable_call(r, filter, "filter", input, arguments, out))
        return false;
    if (markup)
        mgl_markup_end_filter(filter->name, out);
    return true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static bool change_case(mgl_render *r, mgl_value input, mgl_case wanted, mgl_value *out)
{
    mgl_string *text;
    return mgl_filter_text(r, input, &text) &&
           mgl_filter_give(mgl_string_case(r, text, wanted), out);
}

bool mgl_filter_upper(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    (void)bound;
    return change_case(r, input, MGL_CASE_UPPER, out);
}

bool mgl_filter_lower(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    (void)bound;
    return change_case(r, input, MGL_CASE_LOWER, out);
}

bool mgl_filter_capitalize(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    (void)bound;
    return change_case(r, input, MGL_CASE_CAPITAL, out);
}

static bool begins_word(uint32_t before)
{
    return mgl_character_is_space(before) || (before < 0x80 && strchr("-({[<", (int)before));
}

/* Capitalizes a word: the first character upper case, the rest lower case (converted
 * separately). */
static mgl_string *capitalize_word(mgl_render *r, const char *word, size_t length)
{
    uint32_t c;
    const size_t first = mgl_utf8_next(word, &c);
    mgl_string *head = mgl_string_share(r, word, first);
    mgl_string *rest = mgl_string_share(r, word + first, length - first);
    head = head ? mgl_string_case(r, head, MGL_CASE_UPPER) : NULL;
    rest = rest ? mgl_string_case(r, rest, MGL_CASE_LOWER) : NULL;
    return head && rest ? mgl_string_join(r, head, rest) : NULL;
}

/* Jinja's title: words begin after white space, hyphens and opening brackets. */
bool mgl_filter_title(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_string *text, *joined = NULL;
    (void)bound;
    if (!mgl_filter_text(r, input, &text) || !(joined = mgl_string_share(r, "", 0)))
        return false;
    for (size_t at = 0, start = 0; at < text->length;) {
        uint32_t c, next = ' ';
        at += mgl_utf8_next(text->bytes + at, &c);
        if (at < text->length)
            mgl_utf8_next(text->bytes + at, &next);
        if (at < text->length && begins_word(c) == begins_word(next))
            continue;
        mgl_string *piece = capitalize_word(r, text->bytes + start, at - start);
        joined = piece ? mgl_string_join(r, joined, piece) : NULL;
        if (!joined)
            return false;
        start = at;
    }
    return mgl_filter_give(joined, out);
}

bool mgl_filter_trim(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_string *text, *set = NULL;
    if (!mgl_filter_text(r, input, &text))
        return false;
    if (bound->given[0] && bound->values[0].kind != MGL_VALUE_NONE &&
        !mgl_want_string(r, "what 'trim' takes off", bound->values[0], &set))
        return false;
    return mgl_filter_give(mgl_string_strip(r, text, set, true, true), out);
}

bool mgl_filter_replace(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_string *text, *part, *by;
    int64_t count = -1;
    if (!mgl_filter_text(r, input, &text) || !mgl_filter_text(r, bound->values[0], &part) ||
        !mgl_filter_text(r, bound->values[1], &by))
        return false;
    if (bound->given[2] && bound->values[2].kind != MGL_VALUE_NONE &&
        !mgl_want_integer(r, "the count of 'replace'", bound->values[2], &count))
        return false;
    return mgl_filter_give(mgl_string_replace(r, text, part, by, count), out);
}

bool mgl_filter_string(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_string *text;
    (void)bound;
    return mgl_filter_text(r, input, &text) && mgl_filter_give(text, out);
}

bool mgl_filter_safe(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    if (!mgl_filter_string(r, input, bound, out))
        return false;
    out->markup = true;
    return true;
}

bool mgl_filter_format(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_string *text;
    mgl_value values;
    const mgl_arguments *all = bound->all;
    if (!mgl_filter_text(r, input, &text))
        return false;
    if (all->count && all->keyword_count)
        return mgl_render_fail(r, "'format' takes values or names, not both");
    if (!all->keyword_count)
        return mgl_tuple_new(r, all->values, all->count, &values) &&
               mgl_format_percent(r, text, values, out);
    mgl_dict *dict = mgl_dict_new(r, all->keyword_count);
    for (size_t i = 0; dict && i < all->keyword_count; i++) {
        mgl_value key;
        if (!mgl_string_value(r, all->keywords[i].name, all->keywords[i].length, &key) ||
            !mgl_dict_add(r, dict, key, all->keywords[i].value))
            return false;
    }
    return dict && mgl_format_percent(r, text, mgl_of_dict(dict), out);
}

/* Returns the text before each line: a string, or a number of spaces. */
static mgl_string *indent_of(mgl_render *r, mgl_value width, bool given)
{
    mgl_string blank = {" ", 1, 1, NULL};
    int64_t count = 4;
    if (given && width.kind == MGL_VALUE_STRING)
        return width.string;
    if (given && !mgl_want_integer(r, "the width of 'indent'", width, &count))
        return NULL;
    return mgl_string_repeat(r, &blank, count);
}

bool mgl_filter_indent(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_sink sink = {0};
    mgl_string *text, *indent;
    bool first = mgl_value_truth(bound->values[1]), blank = mgl_value_truth(bound->values[2]);
    if (!mgl_want_string(r, "the input of 'indent'", input, &text) ||
        !(indent = indent_of(r, bound->values[0], bound->given[0])))
        return false;
    mgl_list *lines;
    mgl_string end = {"\n", 1, 1, NULL}, *whole = mgl_string_join(r, text, &end);
    if (!whole || !(lines = mgl_string_lines(r, whole, false)))
        return false;
    for (size_t i = 0; i < lines->count; i++) {
        const mgl_string *line = lines->items[i].string;
        bool indented = i ? blank || line->length : first;
        if ((i && !mgl_sink_puts(r, &sink, "\n")) ||
            (indented && !mgl_sink_put(r, &sink, indent->bytes, indent->length)) ||
            !mgl_sink_put(r, &sink, line->bytes, line->length))
            return false;
    }
    return mgl_filter_give(mgl_sink_string(r, &sink), out);
}

bool mgl_filter_wordcount(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_string *text;
    int64_t words = 0;
    bool within = false;
    (void)bound;
    if (!mgl_filter_text(r, input, &text) ||
        !mgl_render_spend(r, text->length * MGL_CHARACTER_COST))
        return false;
    for (size_t at = 0; at < text->length;) {
        uint32_t c;
        at += mgl_utf8_next(text->bytes + at, &c);
        bool word = c == '_' || mgl_character_is_letter(c) || mgl_character_is_number(c);
        words += word && !within;
        within = word;
    }
    *out = mgl_integer(words);
    return true;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Reads the two separators from a pair. */
static bool read_separators(mgl_render *r, mgl_value pair, mgl_dump *how)
{
    if (pair.kind == MGL_VALUE_NONE)
        return true;
    bool good = (pair.kind == MGL_VALUE_TUPLE || pair.kind == MGL_VALUE_LIST) &&
                pair.list->count == 2 && pair.list->items[0].kind == MGL_VALUE_STRING &&
                pair.list->items[1].kind == MGL_VALUE_STRING;
    if (!good)
        return mgl_render_fail(r, "the separators of 'tojson' are two strings");
    how->between = pair.list->items[0].string;
    how->colon = pair.list->items[1].string;
    return true;
}

bool mgl_filter_tojson(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_sink sink = {0};
    mgl_dump how = {.ascii = mgl_value_truth(bound->values[0]),
                    .sorted = mgl_value_truth(bound->values[3])};
    mgl_value indent = bound->given[1] ? bound->values[1] : mgl_none();
    if (indent.kind != MGL_VALUE_NONE) {
        mgl_string *text = indent_of(r, indent, true);
        if (!text)
            return false;
        how.indent = text->bytes;
        how.indent_length = text->length;
    }
    if (bound->given[2] && !read_separators(r, bound->values[2], &how))
        return false;
    return mgl_value_dump(r, &sink, input, &how) && mgl_filter_give(mgl_sink_string(r, &sink), out);
}

/* ---- numbers --------------------------------------------------------------------------------- */

bool mgl_filter_abs(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    double number;
    (void)bound;
    if (input.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(r, input);
    if (!mgl_value_is_number(input, &number))
        return mgl_render_fail(r, "'abs' is not for a value of type '%s'", mgl_value_type(input));
    return mgl_operate_unary(r, number < 0 ? MGL_EXPR_SUBTRACT : MGL_EXPR_ADD, input, out) &&
           (out->kind != MGL_VALUE_REAL || (out->real = fabs(out->real), true));
}

/* int(value); *good: whether the conversion is possible. */
static bool to_integer(mgl_render *r, mgl_value value, int base, mgl_value *out, bool *good)
{
    double real;
    *good = true;
    if (value.kind == MGL_VALUE_STRING) {
        if (!mgl_string_to_integer(r, value.string, base, out, good) || *good)
            return *good;
        *good = mgl_string_to_real(value.string, &real) && isfinite(real);
        return !*good || mgl_real_to_integer(r, real, out);
    }
    if (value.kind == MGL_VALUE_BOOL)
        *out = mgl_integer(value.flag);
    else if (value.kind == MGL_VALUE_INTEGER || value.kind == MGL_VALUE_LARGE)
        *out = value;
    else if (value.kind == MGL_VALUE_REAL && isfinite(value.real))
        return mgl_real_to_integer(r, value.real, out);
    else
        *good = false;
    return true;
}

bool mgl_filter_int(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    bool good;
    int64_t base = 10;
    if (input.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(r, input);
    if (bound->given[1] && !mgl_want_integer(r, "the base of 'int'", bound->values[1], &base))
        return false;
    if (base != 0 && (base < 2 || base > 36))
        return mgl_render_fail(r, "the base of 'int' is 2 to 36");
    to_integer(r, input, (int)base, out, &good);
    if (r->status)
        return false;
    if (!good)
        *out = bound->given[0] ? bound->values[0] : mgl_integer(0);
    return true;
}

bool mgl_filter_float(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    double real;
    if (input.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(r, input);
    bool good = input.kind == MGL_VALUE_STRING ? mgl_string_to_real(input.string, &real)
                                               : mgl_value_is_number(input, &real);
    *out = good ? mgl_real(real) : bound->given[0] ? bound->values[0] : mgl_real(0);
    return true;
}

/* Rounds to a digit after the point, or (negative) before it. Halves of the exact binary value
 * round to even. */
static double round_at(double real, int64_t digits)
{
    enum { MOST = 330 };
    char text[800];
    if (digits > MOST || !isfinite(real))
        return real;
    if (digits >= 0) {
        snprintf(text, sizeof text, "%.*f", (int)digits, real);
        return strtod(text, NULL);
    }
    if (digits < -MOST)
        return copysign(0, real);
    double unit = pow(10, (double)-digits);
    return nearbyint(real / unit) * unit;
}

static bool round_whole(mgl_render *r, mgl_value input, int64_t digits, mgl_value *out)
{
    int64_t whole;
    if (digits >= 0 || !mgl_value_is_whole(input, &whole)) {
        *out = input.kind == MGL_VALUE_BOOL ? mgl_integer(input.flag) : input;
        return true;
    }
    return mgl_real_to_integer(r, round_at((double)whole, digits), out);
}

bool mgl_filter_round(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    int64_t digits = 0;
    double number;
    mgl_string *method = NULL;
    if (bound->given[0] &&
        !mgl_want_integer(r, "the precision of 'round'", bound->values[0], &digits))
        return false;
    if (bound->given[1] && !mgl_want_string(r, "the method of 'round'", bound->values[1], &method))
        return false;
    bool up = method && mgl_string_is(method, "ceil"),
         down = method && mgl_string_is(method, "floor");
    if (method && !up && !down && !mgl_string_is(method, "common"))
        return mgl_render_fail(r, "the method of 'round' is common, ceil or floor");
    if (input.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(r, input);
    if (!mgl_value_is_number(input, &number))
        return mgl_render_fail(r, "'round' is not for a value of type '%s'", mgl_value_type(input));
    if (!up && !down && input.kind != MGL_VALUE_REAL)
        return round_whole(r, input, digits, out);
    double unit = pow(10, (double)digits);
    /* Python's ceil and floor return integers, which have no -0. */
    *out = mgl_real(up     ? (ceil(number * unit) + 0.0) / unit
                    : down ? (floor(number * unit) + 0.0) / unit
                           : round_at(number, digits));
    return true;
}

/* ---- filters on any value -------------------------------------------------------------------- */

bool mgl_filter_default(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    bool missing = input.kind == MGL_VALUE_UNDEFINED ||
                   (mgl_value_truth(bound->values[1]) && !mgl_value_truth(input));
    *out = input;
    if (missing && bound->given[0])
        *out = bound->values[0];
    else if (missing)
        return mgl_string_value(r, "", 0, out);
    return true;
}

/* object.name without the fallback to object['name']. */
bool mgl_filter_attr(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_string *name;
    if (!mgl_want_string(r, "the name of 'attr'", bound->values[0], &name))
        return false;
    if (input.kind == MGL_VALUE_DICT)
        return mgl_missing_make(r, MGL_MISSING_ATTRIBUTE, "dict", name->bytes, name->length, out);
    return mgl_attribute(r, input, name->bytes, name->length, out);
}

bool mgl_filter_length(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    size_t length = 0;
    int64_t rounds = 0;
    (void)bound;
    if (input.kind == MGL_VALUE_LOOP && !mgl_loop_length(r, input.loop, &rounds))
        return false;
    if (input.kind == MGL_VALUE_STRING && !mgl_render_spend(r, input.string->length))
        return false;
    if (input.kind != MGL_VALUE_LOOP && !mgl_value_length(input, &length))
        return mgl_render_fail(r, "a value of type '%s' has no length%s", mgl_value_type(input),
                               input.kind == MGL_VALUE_GENERATOR ? "; make a list of it: |list"
                                                                 : "");
    *out = mgl_integer(rounds + (int64_t)length);
    return true;
}

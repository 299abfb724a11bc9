/*
 * Methods of strings, lists, dicts and loops, with Python's semantics. methods.def lists them.
 */
#include "importer/chat/markup.h"

#include "base/utf8.h"

#include <string.h>

#define METHOD(name)                                                                               \
    static bool name(mgl_render *r, mgl_value object, const mgl_bound *bound, mgl_value *out)

static bool give(mgl_string *string, mgl_value *out)
{
    *out = mgl_of_string(string);
    return string != NULL;
}

static bool say(bool holds, mgl_value *out)
{
    *out = mgl_bool(holds);
    return true;
}

static bool is_given(const mgl_bound *bound, int i)
{
    return bound->given[i] && bound->values[i].kind != MGL_VALUE_NONE;
}

/* ---- strings: cases and characters ----------------------------------------------------------- */

/*  method, case */
#define CASES(X)                                                                                   \
    X(capitalize, CAPITAL)                                                                         \
    X(lower, LOWER)                                                                                \
    X(title, TITLE)                                                                                \
    X(upper, UPPER)
#define MGL_X(name, wanted)                                                                        \
    METHOD(str_##name)                                                                             \
    {                                                                                              \
        (void)bound;                                                                               \
        return give(mgl_string_case(r, object.string, MGL_CASE_##wanted), out);                    \
    }
CASES(MGL_X)
#undef MGL_X

static bool is_alnum(uint32_t c)
{
    return mgl_character_is_letter(c) || mgl_character_is_number(c);
}

static bool is_decimal(uint32_t c)
{
    return mgl_character_is_digit(c) && c != 0xB2 && c != 0xB3 && c != 0xB9;
}

/*  method, test of each character */
#define CHARACTER_TESTS(X)                                                                         \
    X(isalnum, is_alnum)                                                                           \
    X(isalpha, mgl_character_is_letter)                                                            \
    X(isdecimal, is_decimal)                                                                       \
    X(isdigit, mgl_character_is_digit)                                                             \
    X(isnumeric, mgl_character_is_number)                                                          \
    X(isspace, mgl_character_is_space)
#define MGL_X(name, test)                                                                          \
    METHOD(str_##name)                                                                             \
    {                                                                                              \
        (void)bound;                                                                               \
        return mgl_render_spend(r, object.string->length * MGL_CHARACTER_COST) &&                  \
               say(mgl_string_all(object.string, test), out);                                      \
    }
CHARACTER_TESTS(MGL_X)
#undef MGL_X

METHOD(str_isupper)
{
    (void)bound;
    return mgl_render_spend(r, object.string->length * 2 * MGL_CHARACTER_COST) &&
           say(mgl_string_has_case(object.string, true), out);
}

METHOD(str_islower)
{
    (void)bound;
    return mgl_render_spend(r, object.string->length * 2 * MGL_CHARACTER_COST) &&
           say(mgl_string_has_case(object.string, false), out);
}

/* ---- strings: stripping and splitting -------------------------------------------------------- */

static bool strip(mgl_render *r, mgl_value object, const mgl_bound *bound, bool left, bool right,
                  mgl_value *out)
{
    mgl_string *set = NULL;
    if (is_given(bound, 0) && !mgl_want_string(r, "what is stripped", bound->values[0], &set))
        return false;
    return give(mgl_string_strip(r, object.string, set, left, right), out);
}

METHOD(str_strip)
{
    return strip(r, object, bound, true, true, out);
}

METHOD(str_lstrip)
{
    return strip(r, object, bound, true, false, out);
}

METHOD(str_rstrip)
{
    return strip(r, object, bound, false, true, out);
}

static bool split(mgl_render *r, mgl_value object, const mgl_bound *bound, bool from_right,
                  mgl_value *out)
{
    mgl_string *by = NULL;
    int64_t most = -1;
    if (is_given(bound, 0) && !mgl_want_string(r, "the separator", bound->values[0], &by))
        return false;
    if (bound->given[1] && !mgl_want_integer(r, "maxsplit", bound->values[1], &most))
        return false;
    mgl_list *list = mgl_string_split(r, object.string, by, most, from_right);
    *out = mgl_of_list(list);
    return list != NULL;
}

METHOD(str_split)
{
    return split(r, object, bound, false, out);
}

METHOD(str_rsplit)
{
    return split(r, object, bound, true, out);
}

METHOD(str_splitlines)
{
    mgl_list *list = mgl_string_lines(r, object.string, mgl_value_truth(bound->values[0]));
    *out = mgl_of_list(list);
    return list != NULL;
}

/* Returns (before, separator, after). If the separator is not found, the whole text is at one
 * end. */
static bool partition(mgl_render *r, mgl_value object, const mgl_bound *bound, bool from_right,
                      mgl_value *out)
{
    mgl_string *by;
    if (!mgl_want_string(r, "the separator", bound->values[0], &by))
        return false;
    mgl_list *parts = mgl_string_split(r, object.string, by, 1, from_right);
    mgl_value items[3];
    if (!parts)
        return false;
    bool found = parts->count == 2;
    for (int i = 0; i < 3; i++)
        if (!mgl_string_value(r, "", 0, &items[i]))
            return false;
    items[found || !from_right ? 0 : 2] = parts->items[0];
    if (found) {
        items[1] = mgl_of_string(by);
        items[2] = parts->items[1];
    }
    return mgl_tuple_new(r, items, 3, out);
}

METHOD(str_partition)
{
    return partition(r, object, bound, false, out);
}

METHOD(str_rpartition)
{
    return partition(r, object, bound, true, out);
}

/* ---- strings: searching ---------------------------------------------------------------------- */

static bool begins(const mgl_string *text, const mgl_string *part, bool at_end)
{
    return text->length >= part->length &&
           !memcmp(text->bytes + (at_end ? text->length - part->length : 0), part->bytes,
                   part->length);
}

/* Tests a prefix or suffix. A tuple means any of several; with bounds, a part of the text is
 * tested. */
static bool test_edge(mgl_render *r, mgl_value object, const mgl_bound *bound, bool at_end,
                      mgl_value *out)
{
    mgl_value parts = bound->values[0];
    mgl_string *part;
    const mgl_value bounds[3] = {is_given(bound, 1) ? bound->values[1] : mgl_none(),
                                 is_given(bound, 2) ? bound->values[2] : mgl_none(), mgl_none()};
    if ((bound->given[1] || bound->given[2]) && !mgl_slice(r, object, bounds, &object))
        return false;
    *out = mgl_bool(false);
    if (parts.kind != MGL_VALUE_TUPLE)
        return mgl_want_string(r, "what a string begins or ends with", parts, &part) &&
               mgl_render_spend(r, part->length) && say(begins(object.string, part, at_end), out);
    for (size_t i = 0; i < parts.list->count && !out->flag; i++) {
        if (!mgl_want_string(r, "what a string begins or ends with", parts.list->items[i], &part) ||
            !mgl_render_spend(r, part->length + 8))
            return false;
        *out = mgl_bool(begins(object.string, part, at_end));
    }
    return true;
}

METHOD(str_startswith)
{
    return test_edge(r, object, bound, false, out);
}

METHOD(str_endswith)
{
    return test_edge(r, object, bound, true, out);
}

METHOD(str_removeprefix)
{
    mgl_string *part, *text = object.string;
    if (!mgl_want_string(r, "the prefix", bound->values[0], &part) ||
        !mgl_render_spend(r, part->length))
        return false;
    size_t cut = begins(text, part, false) ? part->length : 0;
    return mgl_string_value(r, text->bytes + cut, text->length - cut, out);
}

METHOD(str_removesuffix)
{
    mgl_string *part, *text = object.string;
    if (!mgl_want_string(r, "the suffix", bound->values[0], &part) ||
        !mgl_render_spend(r, part->length))
        return false;
    size_t cut = begins(text, part, true) ? part->length : 0;
    return mgl_string_value(r, text->bytes, text->length - cut, out);
}

/* Returns the index of the first or last occurrence of the part; -1: not found. */
static bool find(mgl_render *r, mgl_value object, const mgl_bound *bound, bool last, int64_t *out)
{
    mgl_string *part, before;
    const char *start = object.string->bytes, *found, *at;
    size_t length = object.string->length;
    if (!mgl_want_string(r, "what is looked for", bound->values[0], &part))
        return false;
    found = at = mgl_string_find(r, start, length, part);
    while (last && at && part->length) {
        found = at++;
        at = mgl_string_find(r, at, length - (size_t)(at - start), part);
    }
    *out = -1;
    if (r->status || !found)
        return !r->status;
    if (last && !part->length)
        found = start + length;
    before = (mgl_string){start, (size_t)(found - start), SIZE_MAX, NULL};
    *out = (int64_t)mgl_string_characters(&before);
    return mgl_render_spend(r, before.length);
}

METHOD(str_find)
{
    int64_t at = -1;
    bool good = find(r, object, bound, false, &at);
    *out = mgl_integer(at);
    return good;
}

METHOD(str_rfind)
{
    int64_t at = -1;
    bool good = find(r, object, bound, true, &at);
    *out = mgl_integer(at);
    return good;
}

METHOD(str_index)
{
    return str_find(r, object, bound, out) &&
           (out->integer >= 0 || mgl_render_fail(r, "the string does not hold that"));
}

METHOD(str_count)
{
    mgl_string *part;
    int64_t count = 0;
    const char *at = object.string->bytes, *end = at + object.string->length;
    if (!mgl_want_string(r, "what is counted", bound->values[0], &part))
        return false;
    if (!part->length)
        count = (int64_t)mgl_string_characters(object.string) + 1;
    while (part->length && (at = mgl_string_find(r, at, (size_t)(end - at), part)) != NULL) {
        at += part->length;
        count++;
    }
    *out = mgl_integer(count);
    return !r->status;
}

/* ---- strings: building ----------------------------------------------------------------------- */

METHOD(str_replace)
{
    mgl_string *part, *by;
    int64_t count = -1;
    if (!mgl_want_string(r, "what is replaced", bound->values[0], &part) ||
        !mgl_want_string(r, "what takes its place", bound->values[1], &by) ||
        (bound->given[2] && !mgl_want_integer(r, "the count", bound->values[2], &count)))
        return false;
    return give(mgl_string_replace(r, object.string, part, by, count), out);
}

METHOD(str_join)
{
    mgl_sink sink = {0};
    mgl_list *list = mgl_list_of(r, bound->values[0]);
    for (size_t i = 0; list && i < list->count; i++) {
        mgl_string *item;
        if ((i && !mgl_sink_put(r, &sink, object.string->bytes, object.string->length)) ||
            !mgl_want_string(r, "what is joined", list->items[i], &item) ||
            !mgl_sink_put(r, &sink, item->bytes, item->length))
            return false;
    }
    return list && give(mgl_sink_string(r, &sink), out);
}

METHOD(str_format)
{
    return mgl_format_braces(r, object.string, bound->all, out);
}

/* Pads a text with `left` and `right` fillers. */
static bool pad(mgl_render *r, mgl_string *text, const mgl_string *filler, int64_t left,
                int64_t right, mgl_value *out)
{
    mgl_string *a = mgl_string_repeat(r, filler, left);
    mgl_string *b = a ? mgl_string_repeat(r, filler, right) : NULL;
    mgl_string *joined = b ? mgl_string_join(r, a, text) : NULL;
    return give(joined ? mgl_string_join(r, joined, b) : NULL, out);
}

/* Reads the number of missing characters, and the filler. */
static bool read_padding(mgl_render *r, mgl_value object, const mgl_bound *bound, int64_t *missing,
                         mgl_string *filler)
{
    mgl_string *given;
    *filler = (mgl_string){" ", 1, 1, NULL};
    if (!mgl_want_integer(r, "the width", bound->values[0], missing))
        return false;
    if (bound->given[1]) {
        if (!mgl_want_string(r, "the filler", bound->values[1], &given))
            return false;
        if (mgl_string_characters(given) != 1)
            return mgl_render_fail(r, "the filler is one character");
        *filler = *given;
    }
    int64_t length = (int64_t)mgl_string_characters(object.string);
    *missing = *missing > length ? *missing - length : 0;
    return true;
}

METHOD(str_ljust)
{
    mgl_string filler;
    int64_t missing;
    return read_padding(r, object, bound, &missing, &filler) &&
           pad(r, object.string, &filler, 0, missing, out);
}

METHOD(str_rjust)
{
    mgl_string filler;
    int64_t missing;
    return read_padding(r, object, bound, &missing, &filler) &&
           pad(r, object.string, &filler, missing, 0, out);
}

METHOD(str_center)
{
    mgl_string filler;
    int64_t missing, width;
    if (!read_padding(r, object, bound, &missing, &filler) ||
        !mgl_want_integer(r, "the width", bound->values[0], &width))
        return false;
    int64_t left = missing / 2 + (missing & width & 1);
    return pad(r, object.string, &filler, left, missing - left, out);
}

METHOD(str_zfill)
{
    mgl_string zero = {"0", 1, 1, NULL}, blank, *text = object.string;
    int64_t missing;
    mgl_value rest;
    bool sign = text->length && strchr("+-", text->bytes[0]) && text->bytes[0];
    if (!read_padding(r, object, bound, &missing, &blank))
        return false;
    mgl_string *digits = mgl_string_share(r, text->bytes + sign, text->length - sign);
    mgl_string *front = mgl_string_share(r, text->bytes, sign);
    if (!digits || !front || !pad(r, digits, &zero, missing, 0, &rest))
        return false;
    return give(mgl_string_join(r, front, rest.string), out);
}

/* ---- lists ----------------------------------------------------------------------------------- */

METHOD(list_append)
{
    *out = mgl_none();
    return mgl_list_add(r, object.list, bound->values[0]);
}

METHOD(list_pop)
{
    mgl_list *list = object.list;
    int64_t index = -1, count = (int64_t)list->count;
    if (bound->given[0] && !mgl_want_integer(r, "the index", bound->values[0], &index))
        return false;
    index += index < 0 ? count : 0;
    if (index < 0 || index >= count)
        return mgl_render_fail(r, "the list has no such item to pop");
    *out = list->items[index];
    memmove(list->items + index, list->items + index + 1,
            (size_t)(count - index - 1) * sizeof *list->items);
    list->count--;
    return mgl_render_spend(r, (size_t)(count - index) * sizeof *list->items);
}

METHOD(list_copy)
{
    mgl_list *list = mgl_list_of(r, object);
    (void)bound;
    *out = mgl_of_list(list);
    return list != NULL;
}

METHOD(list_count)
{
    int64_t count = 0;
    for (size_t i = 0; i < object.list->count; i++) {
        bool same;
        if (!mgl_value_equal(r, object.list->items[i], bound->values[0], &same) ||
            !mgl_render_spend(r, 8))
            return false;
        count += same;
    }
    *out = mgl_integer(count);
    return true;
}

METHOD(list_index)
{
    for (size_t i = 0; i < object.list->count; i++) {
        bool same;
        if (!mgl_value_equal(r, object.list->items[i], bound->values[0], &same) ||
            !mgl_render_spend(r, 8))
            return false;
        *out = mgl_integer((int64_t)i);
        if (same)
            return true;
    }
    return mgl_render_fail(r, "the list does not hold that");
}

/* ---- dicts ----------------------------------------------------------------------------------- */

METHOD(dict_get)
{
    mgl_entry *entry;
    if (!mgl_dict_find(r, object.dict, bound->values[0], &entry))
        return false;
    *out = entry ? entry->value : bound->given[1] ? bound->values[1] : mgl_none();
    return true;
}

METHOD(dict_pop)
{
    mgl_dict *dict = object.dict;
    mgl_entry *entry;
    if (!mgl_dict_find(r, dict, bound->values[0], &entry))
        return false;
    if (!entry && !bound->given[1])
        return mgl_render_fail(r, "the dict has no such key to pop");
    *out = entry ? entry->value : bound->values[1];
    if (!entry)
        return true;
    size_t behind = dict->count - (size_t)(entry - dict->entries) - 1;
    memmove(entry, entry + 1, behind * sizeof *entry);
    dict->count--;
    return mgl_render_spend(r, behind * sizeof *entry);
}

METHOD(dict_copy)
{
    mgl_dict *copy = mgl_dict_new(r, object.dict->count);
    (void)bound;
    if (!copy || !mgl_render_spend(r, object.dict->count * sizeof(mgl_entry)))
        return false;
    if (object.dict->count)
        memcpy(copy->entries, object.dict->entries, object.dict->count * sizeof(mgl_entry));
    copy->count = object.dict->count;
    *out = mgl_of_dict(copy);
    return true;
}

/*  method, kind of the view */
#define VIEWS(X)                                                                                   \
    X(keys, KEYS)                                                                                  \
    X(values, VALUES)                                                                              \
    X(items, ITEMS)
#define MGL_X(name, of)                                                                            \
    METHOD(dict_##name)                                                                            \
    {                                                                                              \
        mgl_view *view = mgl_render_take(r, sizeof *view);                                         \
        (void)bound;                                                                               \
        if (!view)                                                                                 \
            return false;                                                                          \
        *view = (mgl_view){object.dict, MGL_VIEW_##of};                                            \
        *out = (mgl_value){.kind = MGL_VALUE_VIEW, .view = view};                                  \
        return true;                                                                               \
    }
VIEWS(MGL_X)
#undef MGL_X

/* ---- loops ----------------------------------------------------------------------------------- */

METHOD(loop_cycle)
{
    size_t count = bound->all->count;
    if (!count)
        return mgl_render_fail(r, "'loop.cycle' needs items to choose from");
    *out = bound->all->values[(size_t)object.loop->index0 % count];
    return true;
}

METHOD(loop_changed)
{
    mgl_loop *loop = object.loop;
    mgl_value now;
    bool same = false;
    if (!mgl_tuple_new(r, bound->all->values, bound->all->count, &now))
        return false;
    if (loop->has_changed && !mgl_value_equal(r, loop->changed, now, &same))
        return false;
    loop->changed = now;
    loop->has_changed = true;
    return say(!same, out);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static const struct row {
    mgl_value_kind kind;
    mgl_callable callable;
} methods[] = {
#define X(kind, name, function, parameters, required)                                              \
    {MGL_VALUE_##kind, {#name, function, parameters, required}},
#include "importer/chat/methods.def"
#undef X
};

int mgl_method_find(mgl_value_kind kind, const char *name, size_t length, bool *unsafe)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        const mgl_callable *callable = &methods[i].callable;
        if (methods[i].kind != kind || strlen(callable->name) != length ||
            memcmp(callable->name, name, length) != 0)
            continue;
        *unsafe = !callable->call;
        return *unsafe ? -1 : (int)i;
    }
    return -1;
}

bool mgl_method_call(mgl_render *r, const mgl_method *method, const mgl_arguments *arguments,
                     mgl_value *out)
{
    const mgl_callable *callable = &methods[method->row].callable;
    bool markup = mgl_is_markup(method->object);
    if ((markup && !mgl_markup_check(r, "method", callable->name)) ||
        !mgl_callable_call(r, callable, "method", method->object, arguments, out))
        return false;
    if (markup)
        mgl_markup_end_method(out);
    return true;
}

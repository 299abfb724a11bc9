/*
 * Filters on sequences. Filters that return generators in Jinja (map, select, unique ...) return
 * values that can be read only once.
 */
#include "importer/chat/filters.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static bool give_generator(mgl_render *r, mgl_list *list, mgl_value *out)
{
    mgl_generator *generator = list ? mgl_render_take(r, sizeof *generator) : NULL;
    if (!generator)
        return false;
    *generator = (mgl_generator){.list = list};
    *out = (mgl_value){.kind = MGL_VALUE_GENERATOR, .generator = generator};
    return true;
}

/* Returns the input's items for map, select and similar filters; a false input has no items. */
static mgl_list *items_of(mgl_render *r, mgl_value input)
{
    return mgl_value_truth(input) ? mgl_list_of(r, input) : mgl_list_new(r, 0);
}

static bool give_missing(mgl_render *r, const char *reason, mgl_value *out)
{
    return mgl_missing_make(r, MGL_MISSING_REASON, NULL, reason, strlen(reason), out);
}

/* ---- attributes of items --------------------------------------------------------------------- */

/* Reads one part of "a.b.0"; digits are an index. */
static bool get_part(mgl_render *r, const char *part, size_t length, mgl_value *item)
{
    mgl_value key;
    mgl_string *name = mgl_string_share(r, part, length);
    bool good = true;
    if (!name)
        return false;
    key = mgl_of_string(name);
    if (mgl_string_all(name, mgl_character_is_digit) &&
        !mgl_string_to_integer(r, name, 10, &key, &good))
        return false;
    return mgl_item(r, *item, key, item);
}

/* Reads item.a.b.0. Without a `path`, the result is the item itself; a number is an index.
 * `instead` replaces a missing value; NULL: no replacement. */
static bool get_path(mgl_render *r, mgl_value path, const mgl_value *instead, mgl_value *item)
{
    if (path.kind == MGL_VALUE_UNDEFINED || path.kind == MGL_VALUE_NONE)
        return true;
    if (path.kind != MGL_VALUE_STRING)
        return mgl_item(r, *item, path, item);
    const char *at = path.string->bytes, *end = at + path.string->length;
    if (!mgl_render_spend(r, path.string->length * MGL_CHARACTER_COST))
        return false;
    for (const char *dot; at <= end; at = dot + 1) {
        dot = at < end ? memchr(at, '.', (size_t)(end - at)) : NULL;
        dot = dot ? dot : end;
        if (!get_part(r, at, (size_t)(dot - at), item))
            return false;
        if (instead && item->kind == MGL_VALUE_UNDEFINED)
            *item = *instead;
    }
    return true;
}

/* Converts texts to lower case for comparison, unless the comparison is case sensitive. */
static bool fold(mgl_render *r, bool exact, mgl_value *value)
{
    if (exact || value->kind != MGL_VALUE_STRING)
        return true;
    return mgl_filter_give(mgl_string_case(r, value->string, MGL_CASE_LOWER), value);
}

static bool get_key(mgl_render *r, mgl_value path, bool exact, mgl_value *item)
{
    return get_path(r, path, NULL, item) && fold(r, exact, item);
}

/* ---- sorting --------------------------------------------------------------------------------- */

/* An item with its sort key. */
typedef struct keyed {
    mgl_value key, item;
} keyed;

static bool comes_before(mgl_render *r, const keyed *a, const keyed *b, bool reverse, bool *out)
{
    return reverse ? mgl_value_less(r, b->key, a->key, out)
                   : mgl_value_less(r, a->key, b->key, out);
}

static bool merge(mgl_render *r, keyed *items, size_t half, size_t count, keyed *spare,
                  bool reverse)
{
    size_t left = 0, right = half, to = 0;
    while (left < half && right < count) {
        bool later;
        if (!mgl_render_spend(r, 32) ||
            !comes_before(r, &items[right], &items[left], reverse, &later))
            return false;
        spare[to++] = later ? items[right++] : items[left++];
    }
    while (left < half)
        spare[to++] = items[left++];
    memcpy(items, spare, to * sizeof *items);
    return true;
}

/* Stable merge sort. */
static bool sort_keyed(mgl_render *r, keyed *items, size_t count, keyed *spare, bool reverse)
{
    size_t half = count / 2;
    if (count < 2)
        return true;
    return sort_keyed(r, items, half, spare, reverse) &&
           sort_keyed(r, items + half, count - half, spare, reverse) &&
           merge(r, items, half, count, spare, reverse);
}

/* Sorts the items of `list` by keys in the same order. */
static bool sort_by(mgl_render *r, const mgl_list *list, const mgl_list *keys, bool reverse,
                    mgl_value *out)
{
    keyed *items = mgl_render_take(r, list->count * 2 * sizeof *items);
    mgl_list *sorted = mgl_list_new(r, list->count);
    if (!items || !sorted)
        return false;
    for (size_t i = 0; i < list->count; i++)
        items[i] = (keyed){keys->items[i], list->items[i]};
    if (!sort_keyed(r, items, list->count, items + list->count, reverse))
        return false;
    for (size_t i = 0; i < list->count; i++)
        sorted->items[sorted->count++] = items[i].item;
    *out = mgl_of_list(sorted);
    return true;
}

/* Makes the sort key: a list of the values of the paths in "a,b", or of one value. Comparing lists
 * skips equal parts without ordering them, so equal parts may have any type. */
static bool get_sort_key(mgl_render *r, mgl_value path, bool exact, mgl_value item, mgl_value *out)
{
    mgl_string comma = {",", 1, 1, NULL};
    const bool named = path.kind == MGL_VALUE_STRING;
    mgl_list *paths =
        named ? mgl_string_split(r, path.string, &comma, -1, false) : mgl_list_new(r, 1);
    if (!paths || (!named && !mgl_list_add(r, paths, path)))
        return false;
    mgl_list *keys = mgl_list_new(r, paths->count);
    for (size_t i = 0; keys && i < paths->count; i++) {
        mgl_value key = item;
        if (!get_key(r, paths->items[i], exact, &key) || !mgl_list_add(r, keys, key))
            return false;
    }
    *out = mgl_of_list(keys);
    return keys != NULL;
}

bool mgl_filter_sort(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_list *list = mgl_list_of(r, input), *keys = list ? mgl_list_new(r, list->count) : NULL;
    bool exact = mgl_value_truth(bound->values[1]);
    for (size_t i = 0; keys && i < list->count; i++) {
        mgl_value key;
        if (!get_sort_key(r, bound->values[2], exact, list->items[i], &key) ||
            !mgl_list_add(r, keys, key))
            return false;
    }
    return keys && sort_by(r, list, keys, mgl_value_truth(bound->values[0]), out);
}

bool mgl_filter_dictsort(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    bool exact = mgl_value_truth(bound->values[0]), by_value = false;
    if (input.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(r, input);
    if (input.kind != MGL_VALUE_DICT)
        return mgl_render_fail(r, "'dictsort' is for dicts, not '%s'", mgl_value_type(input));
    if (bound->given[1]) {
        mgl_string *by;
        if (!mgl_want_string(r, "'by' of 'dictsort'", bound->values[1], &by))
            return false;
        by_value = mgl_string_is(by, "value");
        if (!by_value && !mgl_string_is(by, "key"))
            return mgl_render_fail(r, "'by' of 'dictsort' is key or value");
    }
    mgl_list *items = mgl_list_new(r, 0), *keys = items ? mgl_list_new(r, 0) : NULL;
    for (size_t i = 0; keys && i < input.dict->count; i++) {
        mgl_value pair[2] = {input.dict->entries[i].key, input.dict->entries[i].value}, item;
        mgl_value key = pair[by_value];
        if (!fold(r, exact, &key) || !mgl_tuple_new(r, pair, 2, &item) ||
            !mgl_list_add(r, items, item) || !mgl_list_add(r, keys, key))
            return false;
    }
    return keys && sort_by(r, items, keys, mgl_value_truth(bound->values[2]), out);
}

static bool find_extreme(mgl_render *r, mgl_value input, const mgl_bound *bound, bool largest,
                         mgl_value *out)
{
    mgl_list *list = mgl_list_of(r, input);
    mgl_value best = mgl_none();
    if (!list)
        return false;
    if (!list->count)
        return give_missing(r, "an empty sequence has no smallest or largest item", out);
    for (size_t i = 0; i < list->count; i++) {
        mgl_value key = list->items[i];
        bool better = !i;
        if (!get_key(r, bound->values[1], mgl_value_truth(bound->values[0]), &key))
            return false;
        if (i && !(largest ? mgl_value_less(r, best, key, &better)
                           : mgl_value_less(r, key, best, &better)))
            return false;
        if (better) {
            best = key;
            *out = list->items[i];
        }
    }
    return true;
}

bool mgl_filter_min(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    return find_extreme(r, input, bound, false, out);
}

bool mgl_filter_max(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    return find_extreme(r, input, bound, true, out);
}

/* ---- selecting ------------------------------------------------------------------------------- */

static bool is_filter_arguments(mgl_render *r, const mgl_arguments *all, const char *what)
{
    return all->count || mgl_render_fail(r, "'%s' needs an argument", what);
}

static bool find_row(mgl_render *r, const char *kind, int (*find)(const char *, size_t),
                     mgl_value name, int *out)
{
    mgl_string *text;
    if (!mgl_want_string(r, "the name of a filter or test", name, &text))
        return false;
    *out = find(text->bytes, text->length);
    return *out >= 0 || mgl_render_fail(r, "the %s '%.*s' is not supported", kind,
                                        (int)(text->length < 80 ? text->length : 80), text->bytes);
}

/* Returns the arguments after the first `count`. */
static mgl_arguments rest_of(const mgl_arguments *all, size_t count)
{
    mgl_arguments rest = *all;
    rest.count -= count;
    rest.values = rest.count ? rest.values + count : NULL;
    return rest;
}

/* Selects items that pass a test, or that do not (`wanted`); with `attribute`, an attribute is
 * tested. Without a test, the item's truth counts. */
static bool choose(mgl_render *r, mgl_value input, const mgl_bound *bound, bool attribute,
                   bool wanted, mgl_value *out)
{
    const mgl_arguments *all = bound->all;
    mgl_list *list = items_of(r, input), *chosen = list ? mgl_list_new(r, 0) : NULL;
    mgl_value path = mgl_none();
    int row = -1;
    if (!chosen || (attribute && !is_filter_arguments(r, all, "selectattr")))
        return false;
    if (attribute)
        path = all->values[0];
    if (all->count > attribute && !find_row(r, "test", mgl_test_find, all->values[attribute], &row))
        return false;
    mgl_arguments rest = all->count > attribute ? rest_of(all, attribute + 1u) : *all;
    for (size_t i = 0; i < list->count; i++) {
        mgl_value tested = list->items[i];
        bool holds;
        if (!mgl_render_spend(r, 64) || !get_path(r, path, NULL, &tested))
            return false;
        holds = mgl_value_truth(tested);
        if (row >= 0 && !mgl_test_call(r, row, tested, &rest, &holds))
            return false;
        if (holds == wanted && !mgl_list_add(r, chosen, list->items[i]))
            return false;
    }
    return give_generator(r, chosen, out);
}

bool mgl_filter_select(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    return choose(r, input, bound, false, true, out);
}

bool mgl_filter_reject(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    return choose(r, input, bound, false, false, out);
}

bool mgl_filter_selectattr(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    return choose(r, input, bound, true, true, out);
}

bool mgl_filter_rejectattr(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    return choose(r, input, bound, true, false, out);
}

/* Implements map(attribute=...), with an optional default. */
static bool map_attribute(mgl_render *r, const mgl_list *list, const mgl_arguments *all,
                          mgl_list *mapped)
{
    const mgl_value *path = NULL, *instead = NULL;
    for (size_t i = 0; i < all->keyword_count; i++) {
        const mgl_keyword *keyword = &all->keywords[i];
        if (mgl_text_is(keyword->name, keyword->length, "attribute"))
            path = &keyword->value;
        else if (mgl_text_is(keyword->name, keyword->length, "default"))
            instead = keyword->value.kind == MGL_VALUE_NONE ? NULL : &keyword->value;
        else
            return mgl_render_fail(r, "'map' has no parameter '%.*s'",
                                   (int)(keyword->length < 80 ? keyword->length : 80),
                                   keyword->name);
    }
    if (!path)
        return mgl_render_fail(r, "'map' needs the name of a filter, or attribute=...");
    for (size_t i = 0; i < list->count; i++) {
        mgl_value item = list->items[i];
        if (!get_path(r, *path, instead, &item) || !mgl_list_add(r, mapped, item))
            return false;
    }
    return true;
}

static bool map_filter(mgl_render *r, const mgl_list *list, const mgl_arguments *all,
                       mgl_list *mapped)
{
    mgl_arguments rest = rest_of(all, 1);
    int row;
    if (!find_row(r, "filter", mgl_filter_find, all->values[0], &row))
        return false;
    for (size_t i = 0; i < list->count; i++) {
        mgl_value item;
        if (!mgl_render_enter(r) || !mgl_filter_call(r, row, list->items[i], &rest, &item) ||
            !mgl_list_add(r, mapped, item))
            return false;
        mgl_render_leave(r);
    }
    return true;
}

bool mgl_filter_map(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_list *list = items_of(r, input), *mapped = list ? mgl_list_new(r, list->count) : NULL;
    const mgl_arguments *all = bound->all;
    return mapped &&
           (all->count ? map_filter(r, list, all, mapped) : map_attribute(r, list, all, mapped)) &&
           give_generator(r, mapped, out);
}

bool mgl_filter_unique(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_list *list = mgl_list_of(r, input), *kept = list ? mgl_list_new(r, 0) : NULL;
    mgl_dict *seen = kept ? mgl_dict_new(r, 0) : NULL;
    for (size_t i = 0; seen && i < list->count; i++) {
        mgl_value key = list->items[i];
        mgl_entry *entry;
        if (!get_key(r, bound->values[1], mgl_value_truth(bound->values[0]), &key) ||
            !mgl_dict_find(r, seen, key, &entry))
            return false;
        if (!entry &&
            (!mgl_dict_add(r, seen, key, mgl_none()) || !mgl_list_add(r, kept, list->items[i])))
            return false;
    }
    return seen && give_generator(r, kept, out);
}

/* ---- aggregating ----------------------------------------------------------------------------- */

bool mgl_filter_join(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_sink sink = {0};
    mgl_string *between = NULL;
    mgl_list *list = mgl_list_of(r, input);
    if (!list || (bound->given[0] && !mgl_filter_text(r, bound->values[0], &between)))
        return false;
    for (size_t i = 0; i < list->count; i++) {
        mgl_value item = list->items[i];
        if ((i && between && !mgl_sink_put(r, &sink, between->bytes, between->length)) ||
            !get_path(r, bound->values[1], NULL, &item) || !mgl_value_show(r, &sink, item))
            return false;
    }
    return mgl_filter_give(mgl_sink_string(r, &sink), out);
}

bool mgl_filter_sum(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_list *list = mgl_list_of(r, input);
    mgl_value sum = bound->given[1] ? bound->values[1] : mgl_integer(0);
    if (list && sum.kind == MGL_VALUE_STRING)
        return mgl_render_fail(r, "'sum' is not for strings; 'join' is");
    for (size_t i = 0; list && i < list->count; i++) {
        mgl_value item = list->items[i];
        if (!get_path(r, bound->values[0], NULL, &item) ||
            !mgl_operate(r, MGL_EXPR_ADD, sum, item, &sum))
            return false;
    }
    *out = sum;
    return list != NULL;
}

bool mgl_filter_batch(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    int64_t size;
    if (!mgl_want_integer(r, "the size of 'batch'", bound->values[0], &size))
        return false;
    mgl_list *list = mgl_list_of(r, input), *rows = list ? mgl_list_new(r, 0) : NULL, *row = NULL;
    for (size_t i = 0; rows && i < list->count; i++) {
        if (!row || (int64_t)row->count == size) {
            row = mgl_list_new(r, 0);
            if (!row || !mgl_list_add(r, rows, mgl_of_list(row)))
                return false;
        }
        if (!mgl_list_add(r, row, list->items[i]))
            return false;
    }
    bool fill = rows && row && bound->given[1] && bound->values[1].kind != MGL_VALUE_NONE;
    while (fill && (int64_t)row->count < size)
        if (!mgl_render_spend(r, 16) || !mgl_list_add(r, row, bound->values[1]))
            return false;
    return rows && give_generator(r, rows, out);
}

/* ---- conversions ----------------------------------------------------------------------------- */

bool mgl_filter_list(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_list *list = mgl_list_of(r, input);
    (void)bound;
    *out = mgl_of_list(list);
    return list != NULL;
}

bool mgl_filter_items(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_list *pairs = mgl_list_new(r, 0);
    (void)bound;
    if (input.kind != MGL_VALUE_DICT && input.kind != MGL_VALUE_UNDEFINED)
        return mgl_render_fail(r, "'items' is for dicts, not '%s'", mgl_value_type(input));
    for (size_t i = 0; pairs && input.kind == MGL_VALUE_DICT && i < input.dict->count; i++) {
        mgl_value pair[2] = {input.dict->entries[i].key, input.dict->entries[i].value}, item;
        if (!mgl_tuple_new(r, pair, 2, &item) || !mgl_list_add(r, pairs, item))
            return false;
    }
    return give_generator(r, pairs, out);
}

bool mgl_filter_first(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    mgl_walk walk;
    bool end;
    (void)bound;
    if (!mgl_walk_start(r, input, &walk) || !mgl_walk_next(r, &walk, out, &end))
        return false;
    return !end || give_missing(r, "an empty sequence has no first item", out);
}

bool mgl_filter_last(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    (void)bound;
    if (input.kind == MGL_VALUE_GENERATOR)
        return mgl_render_fail(r, "a generator has no last item; make a list of it: |list");
    mgl_list *list = mgl_list_of(r, input);
    if (!list)
        return false;
    if (!list->count)
        return give_missing(r, "an empty sequence has no last item", out);
    *out = list->items[list->count - 1];
    return true;
}

bool mgl_filter_reverse(mgl_render *r, mgl_value input, const mgl_bound *bound, mgl_value *out)
{
    const mgl_value bounds[3] = {mgl_none(), mgl_none(), mgl_integer(-1)};
    (void)bound;
    if (input.kind == MGL_VALUE_STRING)
        return mgl_slice(r, input, bounds, out);
    mgl_list *list = mgl_list_of(r, input);
    for (size_t i = 0, k = list ? list->count : 0; i + 1 < k; i++) {
        mgl_value item = list->items[i];
        list->items[i] = list->items[--k];
        list->items[k] = item;
    }
    if (input.kind != MGL_VALUE_GENERATOR && input.kind != MGL_VALUE_UNDEFINED)
        return give_generator(r, list, out);
    *out = mgl_of_list(list); /* Jinja returns a list if Python cannot reverse the input */
    return list != NULL;
}

/*
 * Implements operations on values: truth, length, equality, order, membership and iteration. See
 * value.h.
 */
#include "importer/chat/value.h"

#include "base/format.h"
#include "importer/chat/render.h"

#include <math.h>
#include <string.h>

const char *mgl_value_type(mgl_value value)
{
    static const char *const names[] = {
#define MGL_X(kind, name) name,
        MGL_VALUE_KINDS(MGL_X)
#undef MGL_X
    };
    static const char *const views[] = {"dict_keys", "dict_values", "dict_items"};
    return value.kind == MGL_VALUE_VIEW ? views[value.view->which] : names[value.kind];
}

bool mgl_value_length(mgl_value value, size_t *out)
{
    switch (value.kind) {
    case MGL_VALUE_UNDEFINED:
        *out = 0;
        return true;
    case MGL_VALUE_STRING:
        *out = mgl_string_characters(value.string);
        return true;
    case MGL_VALUE_LIST:
    case MGL_VALUE_TUPLE:
        *out = value.list->count;
        return true;
    case MGL_VALUE_DICT:
        *out = value.dict->count;
        return true;
    case MGL_VALUE_VIEW:
        *out = value.view->dict->count;
        return true;
    case MGL_VALUE_RANGE:
        *out = (size_t)value.steps->count;
        return true;
    default:
        return false;
    }
}

bool mgl_value_truth(mgl_value value)
{
    size_t length;
    switch (value.kind) {
    case MGL_VALUE_NONE:
        return false;
    case MGL_VALUE_BOOL:
        return value.flag;
    case MGL_VALUE_INTEGER:
        return value.integer != 0;
    case MGL_VALUE_REAL:
        return value.real != 0;
    case MGL_VALUE_STRING:
        return value.string->length != 0;
    default:
        return !mgl_value_length(value, &length) || length != 0;
    }
}

bool mgl_value_is_whole(mgl_value value, int64_t *out)
{
    if (value.kind == MGL_VALUE_BOOL)
        *out = value.flag;
    else if (value.kind == MGL_VALUE_INTEGER)
        *out = value.integer;
    else
        return false;
    return true;
}

bool mgl_value_is_number(mgl_value value, double *out)
{
    int64_t whole;
    if (mgl_value_is_whole(value, &whole))
        *out = (double)whole;
    else if (value.kind == MGL_VALUE_REAL)
        *out = value.real;
    else if (value.kind == MGL_VALUE_LARGE)
        return mgl_string_to_real(value.string, out);
    else
        return false;
    return true;
}

/* ---- undefined values ------------------------------------------------------------------------ */

bool mgl_missing_make(mgl_render *r, int why, const char *type, const char *name, size_t length,
                      mgl_value *out)
{
    mgl_missing *missing = mgl_render_take(r, sizeof *missing);
    if (!missing)
        return false;
    *missing = (mgl_missing){.type = type, .name = name, .length = length};
    missing->why = why == MGL_MISSING_NAME        ? MGL_MISSING_NAME
                   : why == MGL_MISSING_ATTRIBUTE ? MGL_MISSING_ATTRIBUTE
                   : why == MGL_MISSING_UNSAFE    ? MGL_MISSING_UNSAFE
                                                  : MGL_MISSING_REASON;
    *out = (mgl_value){.kind = MGL_VALUE_UNDEFINED, .missing = missing};
    return true;
}

void mgl_missing_tell(const mgl_missing *missing, char *to, size_t size)
{
    int length = missing ? (int)(missing->length < 100 ? missing->length : 100) : 0;
    if (!missing)
        mgl_format_into(to, size, "the value is undefined");
    else if (missing->why == MGL_MISSING_NAME)
        mgl_format_into(to, size, "'%.*s' is undefined", length, missing->name);
    else if (missing->why == MGL_MISSING_ATTRIBUTE)
        mgl_format_into(to, size, "'%s' has no attribute or item '%.*s'", missing->type, length,
                        missing->name);
    else if (missing->why == MGL_MISSING_UNSAFE)
        mgl_format_into(to, size, "the attribute '%.*s' of '%s' is not for templates", length,
                        missing->name, missing->type);
    else
        mgl_format_into(to, size, "%.*s", length, missing->name);
}

/* ---- equality and order ---------------------------------------------------------------------- */

/* Returns -1, 0 or 1; 2 if one is not a number. Integers are compared exactly. */
static int order_numbers(mgl_value a, mgl_value b)
{
    int64_t i, k;
    double x, y;
    if (mgl_value_is_whole(a, &i) && mgl_value_is_whole(b, &k))
        return (i > k) - (i < k);
    if (a.kind == MGL_VALUE_LARGE && b.kind == MGL_VALUE_LARGE) {
        bool minus = a.string->bytes[0] == '-', other = b.string->bytes[0] == '-';
        if (minus != other)
            return minus ? -1 : 1;
        int order = a.string->length != b.string->length
                        ? (a.string->length > b.string->length ? 1 : -1)
                        : memcmp(a.string->bytes, b.string->bytes, a.string->length);
        order = (order > 0) - (order < 0);
        return minus ? -order : order;
    }
    mgl_value_is_number(a, &x);
    mgl_value_is_number(b, &y);
    if (isnan(x) || isnan(y))
        return 2;
    return (x > y) - (x < y);
}

static bool are_numbers(mgl_value a, mgl_value b)
{
    double unused;
    return mgl_value_is_number(a, &unused) && mgl_value_is_number(b, &unused);
}

static bool equal_lists(mgl_render *r, const mgl_list *a, const mgl_list *b, bool *out)
{
    *out = a->count == b->count;
    for (size_t i = 0; *out && i < a->count && i < b->count; i++)
        if (!mgl_value_equal(r, a->items[i], b->items[i], out))
            return false;
    return true;
}

static bool equal_dicts(mgl_render *r, const mgl_dict *a, const mgl_dict *b, bool *out)
{
    *out = a->count == b->count;
    for (size_t i = 0; *out && i < a->count; i++) {
        mgl_entry *entry;
        if (!mgl_dict_find(r, b, a->entries[i].key, &entry))
            return false;
        *out = entry != NULL;
        if (entry && !mgl_value_equal(r, a->entries[i].value, entry->value, out))
            return false;
    }
    return true;
}

static bool equal_steps(const mgl_steps *a, const mgl_steps *b)
{
    return a->count == b->count && (!a->count || a->start == b->start) &&
           (a->count < 2 || a->step == b->step);
}

/* Compares values of the same kind that are containers or have an identity. */
static bool equal_objects(mgl_render *r, mgl_value a, mgl_value b, bool *out)
{
    bool good = true;
    if (!mgl_render_enter(r))
        return false;
    if (a.kind == MGL_VALUE_LIST || a.kind == MGL_VALUE_TUPLE)
        good = equal_lists(r, a.list, b.list, out);
    else if (a.kind == MGL_VALUE_DICT)
        good = equal_dicts(r, a.dict, b.dict, out);
    else if (a.kind == MGL_VALUE_RANGE)
        *out = equal_steps(a.steps, b.steps);
    else if (a.kind == MGL_VALUE_FUNCTION)
        *out = a.integer == b.integer;
    else
        *out = a.list == b.list; /* compares the pointer, whichever member it is */
    mgl_render_leave(r);
    return good;
}

bool mgl_value_equal(mgl_render *r, mgl_value a, mgl_value b, bool *out)
{
    *out = false;
    if (are_numbers(a, b)) {
        *out = order_numbers(a, b) == 0;
        return true;
    }
    if (a.kind != b.kind)
        return true;
    if (a.kind == MGL_VALUE_UNDEFINED || a.kind == MGL_VALUE_NONE) {
        *out = true;
        return true;
    }
    if (a.kind != MGL_VALUE_STRING)
        return equal_objects(r, a, b, out);
    *out = mgl_string_same(a.string, b.string);
    return mgl_render_spend(r, a.string->length == b.string->length ? a.string->length : 1);
}

static bool less_lists(mgl_render *r, const mgl_list *a, const mgl_list *b, bool *out)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        bool same;
        if (!mgl_value_equal(r, a->items[i], b->items[i], &same))
            return false;
        if (!same)
            return mgl_value_less(r, a->items[i], b->items[i], out);
    }
    *out = a->count < b->count;
    return true;
}

bool mgl_value_less(mgl_render *r, mgl_value a, mgl_value b, bool *out)
{
    if (are_numbers(a, b)) {
        *out = order_numbers(a, b) == -1;
        return true;
    }
    if (a.kind == MGL_VALUE_UNDEFINED || b.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(r, a.kind == MGL_VALUE_UNDEFINED ? a : b);
    if (a.kind == MGL_VALUE_STRING && b.kind == MGL_VALUE_STRING) {
        *out = mgl_string_order(a.string, b.string) < 0;
        return mgl_render_spend(r, a.string->length < b.string->length ? a.string->length
                                                                       : b.string->length);
    }
    if (a.kind == b.kind && (a.kind == MGL_VALUE_LIST || a.kind == MGL_VALUE_TUPLE)) {
        if (!mgl_render_enter(r) || !less_lists(r, a.list, b.list, out))
            return false;
        mgl_render_leave(r);
        return true;
    }
    return mgl_render_fail(r, "a value of type '%s' and one of type '%s' have no order",
                           mgl_value_type(a), mgl_value_type(b));
}

static bool contains_item(mgl_render *r, mgl_value hay, mgl_value needle, bool *out)
{
    mgl_walk walk;
    bool end;
    if (!mgl_walk_start(r, hay, &walk))
        return false;
    for (;;) {
        mgl_value item;
        if (!mgl_render_spend(r, 24) || !mgl_walk_next(r, &walk, &item, &end))
            return false;
        if (end || !mgl_value_equal(r, item, needle, out) || *out)
            return end || *out;
    }
}

bool mgl_value_contains(mgl_render *r, mgl_value hay, mgl_value needle, bool *out)
{
    mgl_entry *entry;
    *out = false;
    if (hay.kind == MGL_VALUE_DICT ||
        (hay.kind == MGL_VALUE_VIEW && hay.view->which == MGL_VIEW_KEYS)) {
        const mgl_dict *dict = hay.kind == MGL_VALUE_DICT ? hay.dict : hay.view->dict;
        if (!mgl_dict_find(r, dict, needle, &entry))
            return false;
        *out = entry != NULL;
        return true;
    }
    if (hay.kind != MGL_VALUE_STRING)
        return contains_item(r, hay, needle, out);
    if (needle.kind != MGL_VALUE_STRING)
        return mgl_render_fail(r, "'in' of a string needs a string at its left, not '%s'",
                               mgl_value_type(needle));
    *out = mgl_string_find(r, hay.string->bytes, hay.string->length, needle.string) != NULL;
    return r->status == MGL_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

mgl_list *mgl_list_new(mgl_render *r, size_t capacity)
{
    mgl_list *list = mgl_render_take(r, sizeof *list);
    if (!list)
        return NULL;
    *list = (mgl_list){.capacity = capacity};
    if (capacity)
        list->items = mgl_render_take(r, capacity * sizeof *list->items);
    return !capacity || list->items ? list : NULL;
}

bool mgl_list_add(mgl_render *r, mgl_list *list, mgl_value value)
{
    void *items = list->items;
    if (list->count == list->capacity &&
        !mgl_render_grow(r, &items, &list->capacity, list->count, sizeof value))
        return false;
    list->items = items;
    list->items[list->count++] = value;
    return true;
}

bool mgl_tuple_new(mgl_render *r, const mgl_value *items, size_t count, mgl_value *out)
{
    mgl_list *list = mgl_list_new(r, count);
    if (!list)
        return false;
    if (count)
        memcpy(list->items, items, count * sizeof *items);
    list->count = count;
    *out = (mgl_value){.kind = MGL_VALUE_TUPLE, .list = list};
    return true;
}

/* ---- dicts ----------------------------------------------------------------------------------- */

mgl_dict *mgl_dict_new(mgl_render *r, size_t capacity)
{
    mgl_dict *dict = mgl_render_take(r, sizeof *dict);
    if (!dict)
        return NULL;
    *dict = (mgl_dict){.capacity = capacity};
    if (capacity)
        dict->entries = mgl_render_take(r, capacity * sizeof *dict->entries);
    return !capacity || dict->entries ? dict : NULL;
}

static bool check_key(mgl_render *r, mgl_value key)
{
    if (key.kind == MGL_VALUE_LIST || key.kind == MGL_VALUE_DICT)
        return mgl_render_fail(r, "a value of type '%s' cannot be a key", mgl_value_type(key));
    bool good = true;
    if (key.kind != MGL_VALUE_TUPLE)
        return true;
    if (!mgl_render_enter(r))
        return false;
    for (size_t i = 0; good && i < key.list->count; i++)
        good = check_key(r, key.list->items[i]);
    mgl_render_leave(r);
    return good;
}

/* Charges for a linear search. Dicts in templates have few keys, so a linear search is fast. */
static bool spend_search(mgl_render *r, size_t count)
{
    enum { STEP = 5 }; /* bytes of text that cost as much as comparing a key */
    return mgl_render_spend(r, count * STEP);
}

mgl_entry *mgl_dict_find_bytes(mgl_render *r, const mgl_dict *dict, const char *key, size_t length)
{
    for (size_t i = 0; i < dict->count; i++) {
        const mgl_value *other = &dict->entries[i].key;
        if (other->kind != MGL_VALUE_STRING || other->string->length != length)
            continue;
        if (!mgl_render_spend(r, length))
            return NULL;
        if (!length || !memcmp(other->string->bytes, key, length)) {
            spend_search(r, i);
            return &dict->entries[i];
        }
    }
    spend_search(r, dict->count);
    return NULL;
}

bool mgl_dict_find(mgl_render *r, const mgl_dict *dict, mgl_value key, mgl_entry **out)
{
    *out = NULL;
    if (key.kind == MGL_VALUE_STRING) {
        *out = mgl_dict_find_bytes(r, dict, key.string->bytes, key.string->length);
        return r->status == MGL_OK;
    }
    if (!check_key(r, key) || !spend_search(r, dict->count))
        return false;
    for (size_t i = 0; i < dict->count && !*out; i++) {
        bool same;
        if (!mgl_value_equal(r, dict->entries[i].key, key, &same))
            return false;
        *out = same ? &dict->entries[i] : NULL;
    }
    return true;
}

bool mgl_dict_add(mgl_render *r, mgl_dict *dict, mgl_value key, mgl_value value)
{
    void *entries = dict->entries;
    if (dict->count == dict->capacity &&
        !mgl_render_grow(r, &entries, &dict->capacity, dict->count, sizeof *dict->entries))
        return false;
    dict->entries = entries;
    dict->entries[dict->count++] = (mgl_entry){key, value};
    return true;
}

bool mgl_dict_set(mgl_render *r, mgl_dict *dict, mgl_value key, mgl_value value)
{
    mgl_entry *entry;
    if (!mgl_dict_find(r, dict, key, &entry))
        return false;
    if (!entry)
        return mgl_dict_add(r, dict, key, value);
    entry->value = value;
    return true;
}

/* ---- iteration ------------------------------------------------------------------------------- */

bool mgl_walk_start(mgl_render *r, mgl_value over, mgl_walk *out)
{
    size_t unused;
    *out = (mgl_walk){.over = over};
    if (mgl_value_length(over, &unused) || over.kind == MGL_VALUE_GENERATOR ||
        over.kind == MGL_VALUE_LOOP)
        return true;
    return mgl_render_fail(r, "a value of type '%s' cannot be iterated", mgl_value_type(over));
}

static bool walk_view(mgl_render *r, mgl_walk *walk, mgl_value *out, bool *end)
{
    const mgl_view *view = walk->over.view;
    *end = walk->next >= view->dict->count;
    if (*end)
        return true;
    const mgl_entry *entry = &view->dict->entries[walk->next++];
    mgl_value pair[2] = {entry->key, entry->value};
    *out = pair[view->which == MGL_VIEW_VALUES];
    return view->which != MGL_VIEW_ITEMS || mgl_tuple_new(r, pair, 2, out);
}

static bool walk_string(mgl_render *r, mgl_walk *walk, mgl_value *out, bool *end)
{
    const mgl_string *string = walk->over.string;
    *end = walk->next >= string->length;
    if (*end)
        return true;
    const char *at = string->bytes + walk->next;
    unsigned char lead = (unsigned char)*at;
    size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    walk->next += size;
    return mgl_string_value(r, at, size, out);
}

static bool walk_loop(mgl_render *r, mgl_loop *loop, mgl_value *out, bool *end)
{
    if (!mgl_loop_next(r, loop, end))
        return false;
    mgl_value pair[2] = {loop->current, {.kind = MGL_VALUE_LOOP, .loop = loop}};
    return *end || mgl_tuple_new(r, pair, 2, out);
}

bool mgl_walk_next(mgl_render *r, mgl_walk *walk, mgl_value *out, bool *end)
{
    mgl_value over = walk->over;
    *end = true;
    switch (over.kind) {
    case MGL_VALUE_LIST:
    case MGL_VALUE_TUPLE:
        *end = walk->next >= over.list->count;
        if (!*end)
            *out = over.list->items[walk->next++];
        return true;
    case MGL_VALUE_DICT:
        *end = walk->next >= over.dict->count;
        if (!*end)
            *out = over.dict->entries[walk->next++].key;
        return true;
    case MGL_VALUE_RANGE:
        *end = walk->next >= (size_t)over.steps->count;
        if (!*end)
            *out = mgl_integer(over.steps->start + over.steps->step * (int64_t)walk->next++);
        return true;
    case MGL_VALUE_GENERATOR:
        *end = over.generator->next >= over.generator->list->count;
        if (!*end)
            *out = over.generator->list->items[over.generator->next++];
        return true;
    case MGL_VALUE_VIEW:
        return walk_view(r, walk, out, end);
    case MGL_VALUE_STRING:
        return walk_string(r, walk, out, end);
    case MGL_VALUE_LOOP:
        return walk_loop(r, over.loop, out, end);
    default:
        return true; /* undefined: no items */
    }
}

mgl_list *mgl_list_of(mgl_render *r, mgl_value over)
{
    mgl_walk walk;
    mgl_list *list = mgl_list_new(r, 0);
    bool end;
    if (!list || !mgl_walk_start(r, over, &walk))
        return NULL;
    for (;;) {
        mgl_value item;
        if (!mgl_render_spend(r, 8) || !mgl_walk_next(r, &walk, &item, &end))
            return NULL;
        if (end)
            return list;
        if (!mgl_list_add(r, list, item))
            return NULL;
    }
}

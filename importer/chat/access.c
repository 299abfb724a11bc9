/*
 * Evaluates attributes, items and slices. For `object.name`, Jinja first looks for an attribute,
 * then for an item; for `object['name']`, first for an item, then for an attribute. If neither
 * exists, the result is undefined, which is not yet an error.
 */
#include "importer/chat/markup.h"

#include "base/text.h"

#include <string.h>

static bool make_missing(mgl_render *r, int why, mgl_value object, const char *name, size_t length,
                         mgl_value *out)
{
    return mgl_missing_make(r, why, mgl_value_type(object), name, length, out);
}

/* ---- loop ------------------------------------------------------------------------------------ */

static bool loop_index(mgl_render *r, mgl_loop *loop, mgl_value *out)
{
    (void)r;
    *out = mgl_integer(loop->index0 + 1);
    return true;
}

static bool loop_index0(mgl_render *r, mgl_loop *loop, mgl_value *out)
{
    (void)r;
    *out = mgl_integer(loop->index0);
    return true;
}

static bool loop_length(mgl_render *r, mgl_loop *loop, mgl_value *out)
{
    int64_t length = 0;
    bool good = mgl_loop_length(r, loop, &length);
    *out = mgl_integer(length);
    return good;
}

static bool loop_revindex(mgl_render *r, mgl_loop *loop, mgl_value *out)
{
    bool good = loop_length(r, loop, out);
    *out = mgl_integer(good ? out->integer - loop->index0 : 0);
    return good;
}

static bool loop_revindex0(mgl_render *r, mgl_loop *loop, mgl_value *out)
{
    bool good = loop_length(r, loop, out);
    *out = mgl_integer(good ? out->integer - loop->index0 - 1 : 0);
    return good;
}

static bool loop_first(mgl_render *r, mgl_loop *loop, mgl_value *out)
{
    (void)r;
    *out = mgl_bool(loop->index0 == 0);
    return true;
}

static bool loop_last(mgl_render *r, mgl_loop *loop, mgl_value *out)
{
    bool end = false;
    bool good = mgl_loop_peek(r, loop, out, &end);
    *out = mgl_bool(end);
    return good;
}

static bool loop_previtem(mgl_render *r, mgl_loop *loop, mgl_value *out)
{
    static const char reason[] = "the first item of a loop has no previous item";
    *out = loop->before;
    return loop->index0 > 0 ||
           mgl_missing_make(r, MGL_MISSING_REASON, NULL, reason, sizeof reason - 1, out);
}

static bool loop_nextitem(mgl_render *r, mgl_loop *loop, mgl_value *out)
{
    static const char reason[] = "the last item of a loop has no next item";
    bool end = false;
    if (!mgl_loop_peek(r, loop, out, &end))
        return false;
    return !end || mgl_missing_make(r, MGL_MISSING_REASON, NULL, reason, sizeof reason - 1, out);
}

static bool loop_depth(mgl_render *r, mgl_loop *loop, mgl_value *out)
{
    (void)r;
    (void)loop;
    *out = mgl_integer(1); /* always 1: recursive loops are rejected */
    return true;
}

static bool loop_depth0(mgl_render *r, mgl_loop *loop, mgl_value *out)
{
    (void)r;
    (void)loop;
    *out = mgl_integer(0);
    return true;
}

#define LOOP_ATTRIBUTES(X)                                                                         \
    X(index)                                                                                       \
    X(index0)                                                                                      \
    X(revindex)                                                                                    \
    X(revindex0)                                                                                   \
    X(first)                                                                                       \
    X(last)                                                                                        \
    X(length)                                                                                      \
    X(previtem)                                                                                    \
    X(nextitem)                                                                                    \
    X(depth)                                                                                       \
    X(depth0)

bool mgl_loop_attribute(mgl_render *r, mgl_loop *loop, const char *name, size_t length,
                        mgl_value *out, bool *found)
{
    static const struct attribute {
        const char *name;
        bool (*get)(mgl_render *r, mgl_loop *loop, mgl_value *out);
    } attributes[] = {
#define MGL_X(name) {#name, loop_##name},
        LOOP_ATTRIBUTES(MGL_X)
#undef MGL_X
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        *found = mgl_text_is(name, length, attributes[i].name);
        if (*found)
            return attributes[i].get(r, loop, out);
    }
    return true;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static bool bind_method(mgl_render *r, mgl_value object, int row, mgl_value *out)
{
    mgl_method *method = mgl_render_take(r, sizeof *method);
    if (!method)
        return false;
    *method = (mgl_method){object, row};
    *out = (mgl_value){.kind = MGL_VALUE_METHOD, .method = method};
    return true;
}

/* Finds what Python's getattr finds; *found: whether it exists. */
static bool own_attribute(mgl_render *r, mgl_value object, const char *name, size_t length,
                          mgl_value *out, bool *found)
{
    bool unsafe = length > 4 && !memcmp(name, "__", 2) && !memcmp(name + length - 2, "__", 2);
    *found = true;
    if (object.kind == MGL_VALUE_NAMESPACE) {
        mgl_entry *entry = mgl_dict_find_bytes(r, object.dict, name, length);
        *found = entry != NULL;
        if (entry)
            *out = entry->value;
        return !r->status;
    }
    if (object.kind == MGL_VALUE_LOOP) {
        bool good = mgl_loop_attribute(r, object.loop, name, length, out, found);
        if (!good || *found)
            return good;
    }
    int row = unsafe ? -1 : mgl_method_find(object.kind, name, length, &unsafe);
    *found = unsafe || row >= 0;
    if (unsafe)
        return make_missing(r, MGL_MISSING_UNSAFE, object, name, length, out);
    return row < 0 || bind_method(r, object, row, out);
}

bool mgl_attribute(mgl_render *r, mgl_value object, const char *name, size_t length, mgl_value *out)
{
    bool found;
    if (object.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(r, object);
    if (!own_attribute(r, object, name, length, out, &found))
        return false;
    if (found)
        return true;
    mgl_entry *entry =
        object.kind == MGL_VALUE_DICT ? mgl_dict_find_bytes(r, object.dict, name, length) : NULL;
    if (!entry)
        return make_missing(r, MGL_MISSING_ATTRIBUTE, object, name, length, out);
    *out = entry->value;
    return true;
}

/* ---- items ----------------------------------------------------------------------------------- */

/* Returns the item at an index; a negative index counts from the end. */
static bool item_at(mgl_render *r, mgl_value object, int64_t index, mgl_value *out, bool *found)
{
    size_t length, at;
    *found = mgl_value_length(object, &length) &&
             (index < 0 ? index >= -(int64_t)length : index < (int64_t)length);
    if (!*found)
        return true;
    at = (size_t)(index < 0 ? index + (int64_t)length : index);
    if (object.kind == MGL_VALUE_RANGE)
        *out = mgl_integer(object.steps->start + object.steps->step * (int64_t)at);
    if (object.kind != MGL_VALUE_STRING) {
        if (object.kind != MGL_VALUE_RANGE)
            *out = object.list->items[at];
        return true;
    }
    size_t from = mgl_string_byte(object.string, at), to = mgl_string_byte(object.string, at + 1);
    bool plain = object.string->length == length;
    return mgl_render_spend(r, plain ? 1 : to * 4) &&
           mgl_string_value(r, object.string->bytes + from, to - from, out);
}

bool mgl_item(mgl_render *r, mgl_value object, mgl_value key, mgl_value *out)
{
    bool found = false;
    int64_t index;
    mgl_entry *entry = NULL;
    bool indexed = object.kind == MGL_VALUE_LIST || object.kind == MGL_VALUE_TUPLE ||
                   object.kind == MGL_VALUE_STRING || object.kind == MGL_VALUE_RANGE;
    if (object.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(r, object);
    if (object.kind == MGL_VALUE_DICT && key.kind != MGL_VALUE_LIST && key.kind != MGL_VALUE_DICT &&
        !mgl_dict_find(r, object.dict, key, &entry))
        return false;
    if (entry) {
        *out = entry->value;
        return true;
    }
    if (indexed && mgl_value_is_whole(key, &index) && !item_at(r, object, index, out, &found))
        return false;
    if (!found && key.kind == MGL_VALUE_STRING &&
        !own_attribute(r, object, key.string->bytes, key.string->length, out, &found))
        return false;
    if (found) {
        out->markup |= out->kind == MGL_VALUE_STRING && mgl_is_markup(object);
        return true;
    }
    mgl_string *name = mgl_value_string(r, key);
    return name && make_missing(r, MGL_MISSING_ATTRIBUTE, object, name->bytes, name->length, out);
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* Reads one bound of a slice, clamped to [low, high]; `missing` if it is not given. */
static bool clamp(mgl_render *r, mgl_value bound, int64_t length, int64_t low, int64_t high,
                  int64_t missing, int64_t *out)
{
    *out = missing;
    if (bound.kind == MGL_VALUE_NONE)
        return true;
    if (!mgl_value_is_whole(bound, out))
        return mgl_render_fail(r, "a bound of a slice is a whole number, not '%s'",
                               mgl_value_type(bound));
    if (*out < 0)
        *out += length;
    *out = *out < low ? low : *out > high ? high : *out;
    return true;
}

static bool slice_string(mgl_render *r, mgl_string *string, int64_t start, int64_t step,
                         int64_t count, mgl_value *out)
{
    mgl_sink sink = {0};
    if (step == 1) {
        size_t from = mgl_string_byte(string, (size_t)start);
        size_t to = mgl_string_byte(string, (size_t)(start + count));
        bool plain = string->length == mgl_string_characters(string);
        return mgl_render_spend(r, plain ? 1 : to * 4) &&
               mgl_string_value(r, string->bytes + from, to - from, out);
    }
    for (int64_t i = 0; i < count; i++) {
        mgl_value character;
        bool found;
        if (!item_at(r, mgl_of_string(string), start + i * step, &character, &found) ||
            !mgl_sink_put(r, &sink, character.string->bytes, character.string->length))
            return false;
    }
    mgl_string *made = mgl_sink_string(r, &sink);
    *out = mgl_of_string(made);
    return made != NULL;
}

static bool slice_range(mgl_render *r, const mgl_steps *steps, int64_t start, int64_t step,
                        int64_t count, mgl_value *out)
{
    mgl_steps *made = mgl_render_take(r, sizeof *made);
    if (!made)
        return false;
    *made = (mgl_steps){
        .start = steps->start + start * steps->step, .step = steps->step * step, .count = count};
    made->stop = made->start + made->step * count;
    *out = (mgl_value){.kind = MGL_VALUE_RANGE, .steps = made};
    return true;
}

static bool slice_list(mgl_render *r, mgl_value object, int64_t start, int64_t step, int64_t count,
                       mgl_value *out)
{
    mgl_list *list = mgl_list_new(r, (size_t)count);
    if (!list || !mgl_render_spend(r, (size_t)count * sizeof(mgl_value)))
        return false;
    for (int64_t i = 0; i < count; i++)
        list->items[i] = object.list->items[start + i * step];
    list->count = (size_t)count;
    *out = (mgl_value){.kind = object.kind, .list = list};
    return true;
}

bool mgl_slice(mgl_render *r, mgl_value object, const mgl_value bounds[3], mgl_value *out)
{
    size_t size;
    int64_t start, stop, step = 1, length, count = 0;
    bool list = object.kind == MGL_VALUE_LIST || object.kind == MGL_VALUE_TUPLE;
    if (object.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(r, object);
    if (!list && object.kind != MGL_VALUE_STRING && object.kind != MGL_VALUE_RANGE)
        return mgl_render_fail(r, "a value of type '%s' has no slices", mgl_value_type(object));
    mgl_value_length(object, &size);
    length = (int64_t)size;
    if (!clamp(r, bounds[2], 0, -(int64_t)MGL_JINJA_OUTPUT, MGL_JINJA_OUTPUT, 1, &step))
        return false;
    if (step == 0)
        return mgl_render_fail(r, "the step of a slice is zero");
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? length - 1 : length;
    if (!clamp(r, bounds[0], length, low, high, step < 0 ? high : low, &start) ||
        !clamp(r, bounds[1], length, low, high, step < 0 ? low : high, &stop))
        return false;
    if (step > 0 && stop > start)
        count = (stop - start - 1) / step + 1;
    else if (step < 0 && start > stop)
        count = (start - stop - 1) / -step + 1;
    if (list)
        return slice_list(r, object, start, step, count, out);
    if (object.kind != MGL_VALUE_STRING)
        return slice_range(r, object.steps, start, step, count, out);
    if (!slice_string(r, object.string, start, step, count, out))
        return false;
    out->markup = object.markup;
    return true;
}

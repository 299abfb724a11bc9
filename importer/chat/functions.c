/*
 * Global functions of templates: Jinja's, and Hugging Face's raise_exception and strftime_now.
 */
#include "importer/chat/render.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUNCTION(name)                                                                             \
    static bool call_##name(mgl_render *r, mgl_value object, const mgl_bound *bound, mgl_value *out)

/* Functions of Jinja that are not supported, because chat templates do not use them. */
FUNCTION(unknown)
{
    (void)object;
    (void)bound;
    (void)out;
    return mgl_render_fail(r, "the function '%.*s' is not supported",
                           (int)strcspn(r->jinja->text + r->at->from, "( \n"),
                           r->jinja->text + r->at->from);
}

FUNCTION(raise_exception)
{
    mgl_string *message = mgl_value_string(r, bound->values[0]);
    (void)object;
    (void)out;
    if (!message)
        return false;
    return mgl_render_fail(r, "the template rejects this conversation: %.*s",
                           (int)(message->length < 800 ? message->length : 800), message->bytes);
}

/* ---- range ----------------------------------------------------------------------------------- */

/* Returns the number of steps from start to stop; -1: more than the limit. */
static int64_t count_steps(int64_t start, int64_t stop, int64_t step)
{
    if (step > 0 ? stop <= start : stop >= start)
        return 0;
    uint64_t distance =
        step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t size = step > 0 ? (uint64_t)step : (uint64_t)0 - (uint64_t)step;
    uint64_t count = (distance - 1) / size + 1;
    return count > MGL_JINJA_RANGE ? -1 : (int64_t)count;
}

FUNCTION(range)
{
    const mgl_arguments *all = bound->all;
    int64_t bounds[3] = {0, 0, 1};
    (void)object;
    if (!all->count || all->count > 3 || all->keyword_count)
        return mgl_render_fail(r, "'range' takes one to three numbers");
    for (size_t i = 0; i < all->count; i++)
        if (!mgl_want_integer(r, "a bound of 'range'", all->values[i],
                              &bounds[all->count == 1 ? 1 : i]))
            return false;
    if (!bounds[2])
        return mgl_render_fail(r, "the step of 'range' is zero");
    mgl_steps *steps = mgl_render_take(r, sizeof *steps);
    if (!steps)
        return false;
    *steps =
        (mgl_steps){bounds[0], bounds[1], bounds[2], count_steps(bounds[0], bounds[1], bounds[2])};
    if (steps->count < 0)
        return mgl_render_fail(r, "a range of more than %d items", MGL_JINJA_RANGE);
    *out = (mgl_value){.kind = MGL_VALUE_RANGE, .steps = steps};
    return true;
}

/* ---- dict and namespace ---------------------------------------------------------------------- */

/* Copies the entries of a dict, or the pairs of a sequence. */
static bool copy_entries(mgl_render *r, mgl_value from, mgl_dict *to)
{
    mgl_walk walk;
    bool end = false;
    for (size_t i = 0; from.kind == MGL_VALUE_DICT && i < from.dict->count; i++)
        if (!mgl_dict_set(r, to, from.dict->entries[i].key, from.dict->entries[i].value))
            return false;
    if (from.kind == MGL_VALUE_DICT)
        return true;
    if (!mgl_walk_start(r, from, &walk))
        return false;
    for (;;) {
        mgl_value item;
        if (!mgl_render_spend(r, 8) || !mgl_walk_next(r, &walk, &item, &end))
            return false;
        if (end)
            return true;
        mgl_list *pair = mgl_list_of(r, item);
        if (!pair)
            return false;
        if (pair->count != 2)
            return mgl_render_fail(r, "a dict is made of pairs");
        if (!mgl_dict_set(r, to, pair->items[0], pair->items[1]))
            return false;
    }
}

FUNCTION(dict)
{
    const mgl_arguments *all = bound->all;
    mgl_dict *dict = mgl_dict_new(r, all->keyword_count);
    (void)object;
    if (!dict)
        return false;
    if (all->count > 1)
        return mgl_render_fail(r, "a dict is made of one value and of names");
    if (all->count && !copy_entries(r, all->values[0], dict))
        return false;
    for (size_t i = 0; i < all->keyword_count; i++) {
        mgl_value key;
        if (!mgl_string_value(r, all->keywords[i].name, all->keywords[i].length, &key) ||
            !mgl_dict_set(r, dict, key, all->keywords[i].value))
            return false;
    }
    *out = mgl_of_dict(dict);
    return true;
}

FUNCTION(namespace)
{
    if (!call_dict(r, object, bound, out))
        return false;
    out->kind = MGL_VALUE_NAMESPACE;
    for (size_t i = 0; i < out->dict->count; i++) {
        mgl_value key = out->dict->entries[i].key;
        if (key.kind == MGL_VALUE_STRING && key.string->length && key.string->bytes[0] == '_')
            return mgl_render_fail(r, "an attribute of a namespace must not begin with '_'");
    }
    return true;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Gets the local time, or the time in SOURCE_DATE_EPOCH in UTC for reproducible texts. */
static bool get_time(mgl_render *r, struct tm *out)
{
    const char *given = getenv("SOURCE_DATE_EPOCH");
    time_t now = time(NULL);
    char *end;
    if (!given || !*given)
        return localtime_r(&now, out) || mgl_render_fail(r, "the system does not tell the time");
    long long seconds = strtoll(given, &end, 10);
    now = (time_t)seconds;
    if (*end || !gmtime_r(&now, out))
        return mgl_render_fail(r, "SOURCE_DATE_EPOCH is not a number of seconds");
    return true;
}

/* Writes one conversion, "%Y" or "%-d", in the C locale. Conversions for time zones write
 * nothing. */
static bool put_conversion(mgl_render *r, mgl_sink *sink, const char *text, size_t length,
                           const struct tm *time)
{
    char format[4] = {0}, made[200];
    char kind = text[length - 1];
    if (kind == 'Z' || kind == 'z')
        return true;
    if (kind == 'f')
        return mgl_sink_puts(r, sink, "000000");
    memcpy(format, text, length);
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!locale)
        return mgl_render_fail(r, "the system has no C locale");
    size_t used = strftime_l(made, sizeof made, format, time, locale);
    freelocale(locale);
    return mgl_sink_put(r, sink, made, used);
}

FUNCTION(strftime_now)
{
    static const char known[] = "aAbBcCdDeFgGhHIjklmMnprRsStTuUVwWxXyYzZf%";
    mgl_sink sink = {0};
    struct tm now;
    mgl_string *format;
    (void)object;
    if (!mgl_want_string(r, "the format of 'strftime_now'", bound->values[0], &format) ||
        !get_time(r, &now))
        return false;
    for (size_t at = 0; at < format->length;) {
        const char *text = format->bytes + at;
        size_t rest = format->length - at, length = 1;
        if (*text == '%') {
            length += rest > 1 && memchr("-_0^#", text[1], 5) ? 2 : 1;
            if (length > rest || !memchr(known, text[length - 1], sizeof known - 1))
                return mgl_render_fail(r, "a conversion that 'strftime_now' does not know");
        }
        if (!mgl_render_spend(r, 64) ||
            !(*text == '%' ? put_conversion(r, &sink, text, length, &now)
                           : mgl_sink_put(r, &sink, text, length)))
            return false;
        at += length;
    }
    mgl_string *made = mgl_sink_string(r, &sink);
    *out = mgl_of_string(made);
    return made != NULL;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static const mgl_callable functions[] = {
#define X(name, function, parameters, required) {#name, call_##function, parameters, required},
#include "importer/chat/functions.def"
#undef X
};

int mgl_function_find(const char *name, size_t length)
{
    return mgl_callable_find(functions, sizeof functions / sizeof *functions, name, length);
}

bool mgl_function_call(mgl_render *r, int row, const mgl_arguments *arguments, mgl_value *out)
{
    return mgl_callable_call(r, &functions[row], "function", mgl_none(), arguments, out);
}

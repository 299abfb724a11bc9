/* Implements marked texts by the rules of markupsafe 3.0. See markup.h. */
#include "importer/chat/markup.h"

#include <string.h>

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(name, *names))
            return true;
    return false;
}

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '\'':
        return "&#39;";
    case '"':
        return "&#34;";
    default:
        return NULL;
    }
}

static mgl_string *escape(mgl_render *r, const mgl_string *text)
{
    mgl_sink sink = {0};
    size_t done = 0;
    for (size_t i = 0; i < text->length; i++) {
        const char *by = entity(text->bytes[i]);
        if (!by)
            continue;
        if (!mgl_sink_put(r, &sink, text->bytes + done, i - done) || !mgl_sink_puts(r, &sink, by))
            return NULL;
        done = i + 1;
    }
    return mgl_sink_put(r, &sink, text->bytes + done, text->length - done)
               ? mgl_sink_string(r, &sink)
               : NULL;
}

bool mgl_markup_add(mgl_render *r, mgl_value a, mgl_value b, mgl_value *out)
{
    mgl_string *left = a.markup ? a.string : escape(r, a.string);
    mgl_string *right = !left ? NULL : b.markup ? b.string : escape(r, b.string);
    mgl_string *joined = right ? mgl_string_join(r, left, right) : NULL;
    *out = mgl_of_string(joined);
    out->markup = true;
    return joined != NULL;
}

bool mgl_markup_check(mgl_render *r, const char *what, const char *name)
{
    static const char *const escaping[] = {"%", "attr", "format", "join", "replace", NULL};
    bool filter = !strcmp(what, "filter");
    if (!is_one_of(name, escaping) ||
        (filter && (!strcmp(name, "join") || !strcmp(name, "replace"))))
        return true;
    return mgl_render_fail(r, "the %s '%s' of a text of the filter 'safe' is not supported", what,
                           name);
}

void mgl_markup_end_filter(const char *name, mgl_value *out)
{
    static const char *const marked[] = {"capitalize", "indent", "last",  "lower", "reverse",
                                         "string",     "trim",   "upper", NULL};
    out->markup |= out->kind == MGL_VALUE_STRING && is_one_of(name, marked);
}

/* All methods with text results mark them, including the texts in a new list or tuple. */
void mgl_markup_end_method(mgl_value *out)
{
    if (out->kind == MGL_VALUE_STRING)
        out->markup = true;
    if (out->kind != MGL_VALUE_LIST && out->kind != MGL_VALUE_TUPLE)
        return;
    for (size_t i = 0; i < out->list->count; i++)
        out->list->items[i].markup |= out->list->items[i].kind == MGL_VALUE_STRING;
}

/*
 * Marked texts: texts that the filter `safe` has marked, like class Markup of Python's
 * markupsafe in Hugging Face's rendering. `+` escapes the other operand. Some results of filters
 * and methods are marked too.
 */
#ifndef MGL_IMPORTER_CHAT_MARKUP_H
#define MGL_IMPORTER_CHAT_MARKUP_H

#include "importer/chat/render.h"

static inline bool mgl_is_markup(mgl_value value)
{
    return value.kind == MGL_VALUE_STRING && value.markup;
}

/* Computes a + b of two texts, at least one of which is marked. */
bool mgl_markup_add(mgl_render *r, mgl_value a, mgl_value b, mgl_value *out);

/* Checks whether an operation on a marked text is supported. `what` is its kind, such as
 * "filter". */
bool mgl_markup_check(mgl_render *r, const char *what, const char *name);

/* Marks the result of a filter or method of a marked text, if the result is marked in Python. */
void mgl_markup_end_filter(const char *name, mgl_value *out);
void mgl_markup_end_method(mgl_value *out);

#endif

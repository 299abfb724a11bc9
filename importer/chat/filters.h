/*
 * Declares the filter functions, one per row of filters.def. filters.c implements filters on
 * texts and numbers, filters_list.c filters on sequences.
 */
#ifndef MGL_IMPORTER_CHAT_FILTERS_H
#define MGL_IMPORTER_CHAT_FILTERS_H

#include "importer/chat/render.h"

#define X(name, function, parameters, required)                                                    \
    bool mgl_filter_##function(mgl_render *r, mgl_value input, const mgl_bound *bound,             \
                               mgl_value *out);
#include "importer/chat/filters.def"
#undef X

/* Converts the input with str(), for filters that accept any value as a text. */
static inline bool mgl_filter_text(mgl_render *r, mgl_value input, mgl_string **out)
{
    *out = mgl_value_string(r, input);
    return *out != NULL;
}

/* Returns a string as the result; NULL means that it failed. */
static inline bool mgl_filter_give(mgl_string *string, mgl_value *out)
{
    *out = mgl_of_string(string);
    return string != NULL;
}

#endif

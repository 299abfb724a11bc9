/*
 * The filters' functions, one for each in filters.def: on texts and numbers in filters.c, on
 * sequences in filters_list.c.
 */
#ifndef MGL_IMPORTER_CHAT_FILTERS_H
#define MGL_IMPORTER_CHAT_FILTERS_H

#include "importer/chat/render.h"

#define X(name, function, parameters, required)                                                    \
    bool mgl_filter_##function(mgl_render *r, mgl_value input, const mgl_bound *bound,             \
                               mgl_value *out);
#include "importer/chat/filters.def"
#undef X

/* str() of the input of filters that take any value for a text. */
static inline bool mgl_filter_text(mgl_render *r, mgl_value input, mgl_string **out)
{
    *out = mgl_value_string(r, input);
    return *out != NULL;
}

/* The result of what may have failed. */
static inline bool mgl_filter_give(mgl_string *string, mgl_value *out)
{
    *out = mgl_of_string(string);
    return string != NULL;
}

#endif

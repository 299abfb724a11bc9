/*
 * The one piece that is meant in an answer of a language model. A ladder: the fence with the tag
 * that was asked for; else the longest fence of any tag; else, where such a text may stand without
 * a fence, the whole of it; else nothing.
 *
 * Fences are Markdown's, of three or more backquotes or tildes, at any indentation; a fence within
 * a fence counts too, unless the outer one has the tag. Tags are compared without case. What a
 * model thinks aloud (<think>, <thinking>, <thought>, <reasoning>) is no part of its answer. A
 * fence that is never closed was cut off, and is none. Bytes are taken as they stand.
 */
#ifndef MGL_AUTOTUNE_AGENTS_EXTRACT_H
#define MGL_AUTOTUNE_AGENTS_EXTRACT_H

#include "autotune/search/verdict.h"

/* `tag` is that of the fence, "json". `bare` is the first character of a text that may stand
 * without a fence, '{', or 0: none may. The piece is of `text`.
 * EXTRACT_NONE: there is none. EXTRACT_AMBIGUOUS: several of the same rank differ. */
mgl_outcome mgl_extract(const char *text, size_t length, const char *tag, char bare,
                        const char **from, size_t *bytes);

#endif

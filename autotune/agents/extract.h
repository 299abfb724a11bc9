/*
 * Extracts the one relevant text from an answer of a language model. The order of preference is:
 * the code fence with the requested tag; else the longest fence with any tag; else the whole
 * answer, if such a text is allowed without a fence; else nothing. The proposers and the feedback
 * loop call it.
 *
 * Fences are Markdown fences of three or more backquotes or tildes, at any indentation. A fence
 * inside a fence counts too, unless the outer fence has the tag. Tags are compared
 * case-insensitively. Reasoning text (<think>, <thinking>, <thought>, <reasoning>) is not part of
 * the answer. A fence that is not closed was truncated and does not count. Bytes are returned
 * unchanged.
 */
#ifndef MGL_AUTOTUNE_AGENTS_EXTRACT_H
#define MGL_AUTOTUNE_AGENTS_EXTRACT_H

#include "autotune/store/verdict.h"

/* `tag` is the tag of the fence, such as "json". `bare` is the first character of a text that is
 * allowed without a fence, such as '{'; 0: not allowed. The result points into `text`.
 * EXTRACT_NONE: nothing found. EXTRACT_AMBIGUOUS: different texts of the same preference. */
mgl_outcome mgl_extract(const char *text, size_t length, const char *tag, char bare,
                        const char **from, size_t *bytes);

#endif

/*
 * Diagnostics for a source text: a position (line and column, in characters) and the source line
 * with a caret under it. Used for schedule texts, PTX and chat templates.
 */
#ifndef MGL_BASE_SOURCE_H
#define MGL_BASE_SOURCE_H

#include "base/error.h"

/* A text and the current line of its reader. */
typedef struct mgl_source_text {
    const char *file; /* for messages */
    const char *end;  /* of the text */
    const char *line; /* start of the current line */
    int number;       /* of the current line, from 1 */
} mgl_source_text;

/* Fills *err: where = "file:line:column" of `from`, a byte of the current line; message =
 * `message`, the line, and a caret under `from` with tildes up to `to`. A long line is cut
 * around the column. Tabs are shown as single spaces; other control bytes and invalid UTF-8 as
 * `?`. Returns MGL_BAD_INPUT. */
mgl_status mgl_source_fail(const mgl_source_text *source, const char *from, const char *to,
                           const char *message, mgl_error *err);

#endif

/*
 * Jinja interpreter for chat templates: a template is parsed once, and rendered with variables from
 * JSON. It behaves like Hugging Face's environment (Jinja's immutable sandbox with trim_blocks,
 * lstrip_blocks, break and continue, `generation` blocks and its own tojson), for the parts of the
 * language that chat templates use. Unknown features are rejected by name. A template that exceeds
 * a limit (time, memory, depth) ends with an error. Called by chat.c.
 *
 *     text -> lexemes (lexer.c) -> tree (expressions.c, statements.c) -> text (evaluate.c ...)
 */
#ifndef MGL_IMPORTER_CHAT_JINJA_H
#define MGL_IMPORTER_CHAT_JINJA_H

#include "base/json.h"

typedef struct mgl_jinja mgl_jinja;

#define MGL_JINJA_CAP ((size_t)1 << 20) /* bytes of the largest template */

/* Parses a template. `file` names it in messages, as file:line:column. Release with
 * mgl_jinja_free. */
mgl_status mgl_jinja_parse(const char *text, size_t length, const char *file, mgl_jinja **out,
                           mgl_error *err);
void mgl_jinja_free(mgl_jinja *jinja); /* NULL is fine */

/* Renders the template. The variables are the members of an object from mgl_json_parse_values;
 * its strings are consumed (mgl_json_take_text). The text is 0-terminated; release *out with
 * mgl_free. */
mgl_status mgl_jinja_render(const mgl_jinja *jinja, cJSON *variables, char **out, size_t *length,
                            mgl_error *err);

#endif

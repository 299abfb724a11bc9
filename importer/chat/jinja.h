/*
 * The Jinja of chat templates: a template is parsed once, and rendered with variables from JSON. It
 * does what Hugging Face's environment does (Jinja's immutable sandbox with trim_blocks,
 * lstrip_blocks, break and continue, `generation` blocks and a tojson of its own), for the parts of
 * the language that chat templates use. What it does not know it refuses by name. A template that
 * takes too much (time, memory, depth) ends with a sentence.
 *
 *     text -> lexemes (lexer.c) -> tree (expressions.c, statements.c) -> text (evaluate.c ...)
 */
#ifndef MGL_IMPORTER_CHAT_JINJA_H
#define MGL_IMPORTER_CHAT_JINJA_H

#include "base/json.h"

typedef struct mgl_jinja mgl_jinja;

#define MGL_JINJA_CAP ((size_t)1 << 20) /* bytes of the largest template */

/* `file` names the template in messages: where is file:line:column. Release with mgl_jinja_free. */
mgl_status mgl_jinja_parse(const char *text, size_t length, const char *file, mgl_jinja **out,
                           mgl_error *err);
void mgl_jinja_free(mgl_jinja *jinja); /* NULL is fine */

/* Renders with the members of an object of mgl_json_parse_values as variables: its strings are
 * taken (mgl_json_take_text). The text has a 0 behind it; release *out with mgl_free. */
mgl_status mgl_jinja_render(const mgl_jinja *jinja, cJSON *variables, char **out, size_t *length,
                            mgl_error *err);

#endif

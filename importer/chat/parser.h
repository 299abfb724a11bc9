/*
 * What the two halves of the parser share: expressions.c reads what stands within tags,
 * statements.c what tags make of a template. Functions that fail return NULL or false, and the
 * parser has the reason.
 */
#ifndef MGL_IMPORTER_CHAT_PARSER_H
#define MGL_IMPORTER_CHAT_PARSER_H

#include "importer/chat/syntax.h"

typedef struct mgl_parser {
    mgl_jinja *jinja;
    const mgl_lexeme *at;      /* the next one */
    int depth;                 /* parts within parts */
    int loops;                 /* around, up to the next macro */
    int conditions;            /* if statements around */
    unsigned wants;            /* special names that were used, see mgl_syntax */
    const mgl_syntax *unknown; /* the first filter or test that nobody knows; or NULL */
    mgl_status status;
    mgl_error *err;
} mgl_parser;

enum { MGL_PARSER_DEPTH = 150 };

bool mgl_parser_fail(mgl_parser *p, size_t from, size_t to, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* At the next lexeme: "... is expected here, not ...". */
bool mgl_parser_fail_here(mgl_parser *p, const char *expected);
bool mgl_parser_enter(mgl_parser *p); /* and p->depth-- when it ends well */

/* A part that begins at `from` and ends where the last lexeme ended; NULL: failed. */
mgl_syntax *mgl_parser_make(mgl_parser *p, mgl_syntax_kind kind, uint32_t from);

bool mgl_parser_is(const mgl_parser *p, mgl_operator operation);
bool mgl_parser_is_word(const mgl_parser *p, const char *word);
/* Passes it where it stands. */
bool mgl_parser_skip(mgl_parser *p, mgl_operator operation);
bool mgl_parser_skip_word(mgl_parser *p, const char *word);
bool mgl_parser_expect(mgl_parser *p, mgl_operator operation);
bool mgl_parser_expect_name(mgl_parser *p, uint32_t *name);
bool mgl_parser_expect_kind(mgl_parser *p, mgl_lexeme_kind kind);

/* An expression; without `choices`, a bare "a if b" is left alone. */
mgl_syntax *mgl_parse_expression(mgl_parser *p, bool choices);
/* The same, or several with commas between them, which make a tuple. */
mgl_syntax *mgl_parse_tuple(mgl_parser *p, bool choices);
/* What can be assigned to: names, tuples of them and, if `members`, attributes of namespaces. */
mgl_syntax *mgl_parse_target(mgl_parser *p, bool members);
/* "| filter | filter" behind `input`, which may be NULL: the first filter's name stands next when
 * `named`. */
mgl_syntax *mgl_parse_filters(mgl_parser *p, mgl_syntax *input, bool named);

#endif

/*
 * Internal header of the recursive-descent parser: expressions.c parses the contents of tags,
 * statements.c parses statements. Functions that fail return NULL or false; the parser then has
 * the error.
 */
#ifndef MGL_IMPORTER_CHAT_PARSER_H
#define MGL_IMPORTER_CHAT_PARSER_H

#include "importer/chat/syntax.h"

typedef struct mgl_parser {
    mgl_jinja *jinja;
    const mgl_lexeme *at;      /* the next lexeme */
    int depth;                 /* nesting depth */
    int loops;                 /* enclosing loops, within the innermost macro */
    int conditions;            /* enclosing if statements */
    unsigned wants;            /* special names used so far: see mgl_syntax */
    const mgl_syntax *unknown; /* the first unknown filter or test; or NULL */
    mgl_status status;
    mgl_error *err;
} mgl_parser;

enum { MGL_PARSER_DEPTH = 150 };

bool mgl_parser_fail(mgl_parser *p, size_t from, size_t to, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Fails at the next lexeme: "... is expected here, not ...". */
bool mgl_parser_fail_here(mgl_parser *p, const char *expected);
bool mgl_parser_enter(mgl_parser *p); /* after success: p->depth-- */

/* Makes a node that begins at `from` and ends at the end of the last lexeme; NULL: failed. */
mgl_syntax *mgl_parser_make(mgl_parser *p, mgl_syntax_kind kind, uint32_t from);

bool mgl_parser_is(const mgl_parser *p, mgl_operator operation);
bool mgl_parser_is_word(const mgl_parser *p, const char *word);
/* Consumes the operator or word if it is next. */
bool mgl_parser_skip(mgl_parser *p, mgl_operator operation);
bool mgl_parser_skip_word(mgl_parser *p, const char *word);
bool mgl_parser_expect(mgl_parser *p, mgl_operator operation);
bool mgl_parser_expect_name(mgl_parser *p, uint32_t *name);
bool mgl_parser_expect_kind(mgl_parser *p, mgl_lexeme_kind kind);

/* Parses an expression. Without `choices`, a conditional "a if b" is not parsed. */
mgl_syntax *mgl_parse_expression(mgl_parser *p, bool choices);
/* Same, or several expressions separated by commas, which make a tuple. */
mgl_syntax *mgl_parse_tuple(mgl_parser *p, bool choices);
/* Parses an assignment target: names, tuples of names and, if `members`, attributes of
 * namespaces. */
mgl_syntax *mgl_parse_target(mgl_parser *p, bool members);
/* Parses "| filter | filter" after `input`, which may be NULL. `named`: the first filter's name
 * is next. */
mgl_syntax *mgl_parse_filters(mgl_parser *p, mgl_syntax *input, bool named);

#endif

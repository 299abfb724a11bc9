/*
 * The base of the parser: access to the next lexeme, and syntax errors. See parser.h.
 */
#include "importer/chat/parser.h"

#include "base/format.h"
#include "base/text.h"

#include <string.h>

bool mgl_parser_fail(mgl_parser *p, size_t from, size_t to, const char *format, ...)
{
    char message[1000];
    va_list args;
    va_start(args, format);
    mgl_format_list(message, sizeof message, format, args);
    va_end(args);
    p->status = mgl_jinja_fail(p->jinja, from, to, p->err, message);
    return false;
}

bool mgl_parser_fail_here(mgl_parser *p, const char *expected)
{
    const mgl_lexeme *at = p->at;
    int length = (int)(at->to - at->from < 40 ? at->to - at->from : 40);
    if (at->kind == MGL_LEXEME_END)
        return mgl_parser_fail(p, at->from, at->to, "the template ends where %s is expected",
                               expected);
    return mgl_parser_fail(p, at->from, at->to, "%s is expected here, not '%.*s'", expected, length,
                           p->jinja->text + at->from);
}

bool mgl_parser_enter(mgl_parser *p)
{
    if (p->depth++ < MGL_PARSER_DEPTH)
        return true;
    return mgl_parser_fail(p, p->at->from, p->at->to, "more than %d parts within parts",
                           MGL_PARSER_DEPTH);
}

mgl_syntax *mgl_parser_make(mgl_parser *p, mgl_syntax_kind kind, uint32_t from)
{
    mgl_syntax *made = mgl_arena_take(&p->jinja->memory, sizeof *made);
    if (!made) {
        p->status = mgl_jinja_fail_memory(p->jinja, p->err);
        return NULL;
    }
    uint32_t to = p->at > p->jinja->lexemes ? p->at[-1].to : p->at->to;
    *made = (mgl_syntax){.kind = kind, .from = from, .to = to > from ? to : from, .row = -1};
    return made;
}

bool mgl_parser_is(const mgl_parser *p, mgl_operator operation)
{
    return p->at->kind == MGL_LEXEME_OPERATOR && p->at->operation == operation;
}

bool mgl_parser_is_word(const mgl_parser *p, const char *word)
{
    return p->at->kind == MGL_LEXEME_NAME &&
           mgl_text_is(p->jinja->text + p->at->from, p->at->to - p->at->from, word);
}

bool mgl_parser_skip(mgl_parser *p, mgl_operator operation)
{
    bool there = mgl_parser_is(p, operation);
    p->at += there;
    return there;
}

bool mgl_parser_skip_word(mgl_parser *p, const char *word)
{
    bool there = mgl_parser_is_word(p, word);
    p->at += there;
    return there;
}

bool mgl_parser_expect(mgl_parser *p, mgl_operator operation)
{
    static const char *const operators[MGL_EXPR_COUNT] = {
#define MGL_X(name, text) "'" text "'",
        MGL_OPERATORS(MGL_X)
#undef MGL_X
    };
    return mgl_parser_skip(p, operation) || mgl_parser_fail_here(p, operators[operation]);
}

bool mgl_parser_expect_name(mgl_parser *p, uint32_t *name)
{
    if (p->at->kind != MGL_LEXEME_NAME)
        return mgl_parser_fail_here(p, "a name");
    *name = p->at++->name;
    return true;
}

bool mgl_parser_expect_kind(mgl_parser *p, mgl_lexeme_kind kind)
{
    if (p->at->kind != kind)
        return mgl_parser_fail_here(p, kind == MGL_LEXEME_BLOCK_END ? "'%}'" : "'}}'");
    p->at++;
    return true;
}

/*
 * The statements of the recursive-descent parser (parser.h), and its entry: mgl_jinja_read turns
 * jinja->lexemes into the syntax tree jinja->body. jinja.c calls it after the lexer. STATEMENTS
 * lists the supported tags. REFUSED lists the tags of Jinja that chat templates do not use.
 */
#include "importer/chat/parser.h"

#include <string.h>

static bool parse_body(mgl_parser *p, const char *const *ends, mgl_syntax **out);

/*  tag, function; the function parses from after the tag's name to before its "%}" */
#define STATEMENTS(X)                                                                              \
    X(if, parse_if)                                                                                \
    X(for, parse_for)                                                                              \
    X(set, parse_set)                                                                              \
    X(macro, parse_macro)                                                                          \
    X(call, parse_call_block)                                                                      \
    X(filter, parse_filter_block)                                                                  \
    X(generation, parse_generation)                                                                \
    X(with, parse_with)                                                                            \
    X(print, parse_print)                                                                          \
    X(break, parse_break)                                                                          \
    X(continue, parse_continue)

/*  tag of Jinja, why it is rejected */
#define REFUSED(X)                                                                                 \
    X(include, "a chat template cannot refer to other templates")                                  \
    X(import, "a chat template cannot refer to other templates")                                   \
    X(from, "a chat template cannot refer to other templates")                                     \
    X(extends, "a chat template cannot refer to other templates")                                  \
    X(block, "a chat template cannot refer to other templates")                                    \
    X(autoescape, "nothing is escaped in a chat template")                                         \
    X(do, "Hugging Face's templates have no such statement")                                       \
    X(trans, "Hugging Face's templates have no such statement")                                    \
    X(debug, "Hugging Face's templates have no such statement")

/* ---- bodies ---------------------------------------------------------------------------------- */

/* Parses from "%}" of the tag to one of `ends`, and consumes the name of that end. *which: its
 * index in `ends`. */
static bool parse_block(mgl_parser *p, const char *const *ends, mgl_syntax **out, size_t *which)
{
    mgl_parser_skip(p, MGL_EXPR_COLON); /* as in Python */
    if (!mgl_parser_expect_kind(p, MGL_LEXEME_BLOCK_END) || !parse_body(p, ends, out))
        return false;
    for (*which = 0; !mgl_parser_skip_word(p, ends[*which]);)
        ++*which;
    return true;
}

static bool parse_block_to(mgl_parser *p, const char *end, mgl_syntax **out)
{
    const char *const ends[] = {end, NULL};
    size_t which;
    return parse_block(p, ends, out, &which);
}

static bool stands_among(const mgl_parser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (mgl_parser_is_word(p, *ends))
            return true;
    return false;
}

/* Returns the tag that closes the block; other tags may come before it. */
static const char *last_of(const char *const *ends)
{
    while (ends[1])
        ends++;
    return *ends;
}

/* ---- statements ------------------------------------------------------------------------------ */

static mgl_syntax *parse_if(mgl_parser *p, uint32_t from)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    enum { ELIF, ELSE };
    size_t which;
    mgl_syntax *made = mgl_parser_make(p, MGL_SYNTAX_IF, from);
    if (!made || !mgl_parser_enter(p))
        return NULL;
    p->conditions++;
    made->a = mgl_parse_tuple(p, false);
    if (!made->a || !parse_block(p, ends, &made->b, &which))
        return NULL;
    if (which == ELIF && !(made->c = parse_if(p, p->at[-1].from)))
        return NULL;
    if (which == ELSE && !parse_block_to(p, "endif", &made->c))
        return NULL;
    p->conditions--;
    p->depth--;
    return made;
}

static mgl_syntax *parse_for(mgl_parser *p, uint32_t from)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    enum { ELSE };
    size_t which;
    mgl_syntax *made = mgl_parser_make(p, MGL_SYNTAX_FOR, from);
    if (!made || !(made->a = mgl_parse_target(p, false)))
        return NULL;
    if (!mgl_parser_skip_word(p, "in"))
        return mgl_parser_fail_here(p, "'in'"), NULL;
    if (!(made->b = mgl_parse_tuple(p, false)))
        return NULL;
    if (mgl_parser_skip_word(p, "if") && !(made->extra = mgl_parse_expression(p, true)))
        return NULL;
    if (mgl_parser_is_word(p, "recursive")) {
        mgl_parser_fail(p, p->at->from, p->at->to, "recursive loops are not known; use a macro");
        return NULL;
    }
    p->loops++;
    bool good = parse_block(p, ends, &made->c, &which);
    p->loops--;
    if (!good || (which == ELSE && !parse_block_to(p, "endfor", &made->d)))
        return NULL;
    return made;
}

static mgl_syntax *parse_set(mgl_parser *p, uint32_t from)
{
    mgl_syntax *target = mgl_parse_target(p, true);
    if (!target)
        return NULL;
    bool block = !mgl_parser_skip(p, MGL_EXPR_ASSIGN);
    mgl_syntax *made = mgl_parser_make(p, block ? MGL_SYNTAX_SET_BLOCK : MGL_SYNTAX_SET, from);
    if (!made)
        return NULL;
    made->a = target;
    if (!block)
        return (made->b = mgl_parse_tuple(p, true)) ? made : NULL;
    made->c = mgl_parse_filters(p, NULL, false);
    return !p->status && parse_block_to(p, "endset", &made->b) ? made : NULL;
}

enum { MOST_PARAMETERS = 255 };

static bool check_parameter(mgl_parser *p, const mgl_syntax *others, const mgl_syntax *parameter)
{
    int count = 0;
    for (; others; others = others->next, count++)
        if (others->name == parameter->name)
            return mgl_parser_fail(p, parameter->from, parameter->to,
                                   "a second parameter of this name");
    return count < MOST_PARAMETERS || mgl_parser_fail(p, parameter->from, parameter->to,
                                                      "more than %d parameters", MOST_PARAMETERS);
}

/* Parses "(a, b=1)", after the parenthesis. */
static bool parse_parameters(mgl_parser *p, mgl_syntax **out)
{
    mgl_syntax **end = out;
    bool defaults = false;
    while (!mgl_parser_is(p, MGL_EXPR_RIGHT_PAREN)) {
        uint32_t from = p->at->from, name;
        if ((*out && !mgl_parser_expect(p, MGL_EXPR_COMMA)) || !mgl_parser_expect_name(p, &name))
            return false;
        mgl_syntax *parameter = mgl_parser_make(p, MGL_SYNTAX_PARAMETER, from);
        if (!parameter)
            return false;
        parameter->name = name;
        if (!check_parameter(p, *out, parameter))
            return false;
        if (mgl_parser_skip(p, MGL_EXPR_ASSIGN)) {
            if (!(parameter->a = mgl_parse_expression(p, true)))
                return false;
            defaults = true;
        } else if (defaults) {
            return mgl_parser_fail(p, parameter->from, parameter->to,
                                   "a parameter without a default behind one that has one");
        }
        *end = parameter;
        end = &parameter->next;
    }
    p->at++;
    return true;
}

/* Parses a body that is called later: enclosing loops do not count for break and continue, and
 * the special names that it uses are recorded. */
static bool parse_called(mgl_parser *p, const char *end, mgl_syntax *made)
{
    unsigned wants = p->wants;
    int loops = p->loops;
    p->wants = 0;
    p->loops = 0;
    if (!parse_block_to(p, end, &made->b))
        return false;
    made->wants = p->wants;
    p->wants |= wants;
    p->loops = loops;
    return true;
}

static mgl_syntax *parse_macro(mgl_parser *p, uint32_t from)
{
    mgl_syntax *made = mgl_parser_make(p, MGL_SYNTAX_MACRO, from);
    if (!made || !mgl_parser_expect_name(p, &made->name) ||
        !mgl_parser_expect(p, MGL_EXPR_LEFT_PAREN) || !parse_parameters(p, &made->a))
        return NULL;
    return parse_called(p, "endmacro", made) ? made : NULL;
}

static mgl_syntax *parse_call_block(mgl_parser *p, uint32_t from)
{
    mgl_syntax *made = mgl_parser_make(p, MGL_SYNTAX_CALL_BLOCK, from);
    if (!made || (mgl_parser_skip(p, MGL_EXPR_LEFT_PAREN) && !parse_parameters(p, &made->a)))
        return NULL;
    made->c = mgl_parse_expression(p, true);
    if (!made->c)
        return NULL;
    if (made->c->kind != MGL_SYNTAX_CALL) {
        mgl_parser_fail(p, made->c->from, made->c->to, "a call is expected here");
        return NULL;
    }
    return parse_called(p, "endcall", made) ? made : NULL;
}

static mgl_syntax *parse_filter_block(mgl_parser *p, uint32_t from)
{
    mgl_syntax *made = mgl_parser_make(p, MGL_SYNTAX_FILTER_BLOCK, from);
    if (!made || !(made->c = mgl_parse_filters(p, NULL, true)))
        return NULL;
    return parse_block_to(p, "endfilter", &made->b) ? made : NULL;
}

/* Parses a generation block, which marks the assistant's text for training. Here it is only a
 * scope. */
static mgl_syntax *parse_generation(mgl_parser *p, uint32_t from)
{
    mgl_syntax *made = mgl_parser_make(p, MGL_SYNTAX_SCOPE, from);
    return made && parse_called(p, "endgeneration", made) ? made : NULL;
}

static mgl_syntax *parse_with(mgl_parser *p, uint32_t from)
{
    mgl_syntax *made = mgl_parser_make(p, MGL_SYNTAX_WITH, from);
    if (!made)
        return NULL;
    mgl_syntax **targets = &made->a, **values = &made->c;
    while (p->at->kind != MGL_LEXEME_BLOCK_END) {
        if (made->a && !mgl_parser_expect(p, MGL_EXPR_COMMA))
            return NULL;
        *targets = mgl_parse_target(p, false);
        if (!*targets || !mgl_parser_expect(p, MGL_EXPR_ASSIGN) ||
            !(*values = mgl_parse_expression(p, true)))
            return NULL;
        targets = &(*targets)->next;
        values = &(*values)->next;
    }
    return parse_block_to(p, "endwith", &made->b) ? made : NULL;
}

/* Parses "{% print a, b %}", which prints each expression. */
static mgl_syntax *parse_print(mgl_parser *p, uint32_t from)
{
    mgl_syntax *first = NULL, **end = &first;
    while (p->at->kind != MGL_LEXEME_BLOCK_END) {
        if (first && !mgl_parser_expect(p, MGL_EXPR_COMMA))
            return NULL;
        mgl_syntax *made = mgl_parser_make(p, MGL_SYNTAX_PRINT, from);
        if (!made || !(made->a = mgl_parse_expression(p, true)))
            return NULL;
        *end = made;
        end = &made->next;
    }
    if (!first)
        mgl_parser_fail_here(p, "an expression");
    return first;
}

static mgl_syntax *parse_jump(mgl_parser *p, uint32_t from, mgl_syntax_kind kind)
{
    mgl_syntax *made = mgl_parser_make(p, kind, from);
    if (made && !p->loops) {
        mgl_parser_fail(p, made->from, made->to, "this is outside a loop");
        return NULL;
    }
    return made;
}

static mgl_syntax *parse_break(mgl_parser *p, uint32_t from)
{
    return parse_jump(p, from, MGL_SYNTAX_BREAK);
}

static mgl_syntax *parse_continue(mgl_parser *p, uint32_t from)
{
    return parse_jump(p, from, MGL_SYNTAX_CONTINUE);
}

/* ---- dispatch -------------------------------------------------------------------------------- */

static const struct statement {
    const char *tag;
    mgl_syntax *(*parse)(mgl_parser *p, uint32_t from);
} statements[] = {
#define MGL_X(tag, parse) {#tag, parse},
    STATEMENTS(MGL_X)
#undef MGL_X
};

static const struct refused {
    const char *tag, *why;
} refused[] = {
#define MGL_X(tag, why) {#tag, why},
    REFUSED(MGL_X)
#undef MGL_X
};

static void fail_unknown(mgl_parser *p, const char *const *ends)
{
    const mgl_lexeme *at = p->at;
    int length = (int)(at->to - at->from < 40 ? at->to - at->from : 40);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (mgl_parser_is_word(p, refused[i].tag)) {
            mgl_parser_fail(p, at->from, at->to, "the statement '%s' is not supported: %s",
                            refused[i].tag, refused[i].why);
            return;
        }
    if (ends)
        mgl_parser_fail(p, at->from, at->to,
                        "the statement '%.*s' is not supported; a block waits for its '%s'", length,
                        p->jinja->text + at->from, last_of(ends));
    else
        mgl_parser_fail(p, at->from, at->to, "the statement '%.*s' is not supported", length,
                        p->jinja->text + at->from);
}

/* Parses a statement, after "{%". */
static mgl_syntax *parse_statement(mgl_parser *p, const char *const *ends)
{
    uint32_t from = p->at->from;
    mgl_syntax *made = NULL;
    size_t i = 0, count = sizeof statements / sizeof *statements;
    if (p->at->kind != MGL_LEXEME_NAME)
        return mgl_parser_fail_here(p, "the name of a statement"), NULL;
    while (i < count && !mgl_parser_skip_word(p, statements[i].tag))
        i++;
    if (i == count)
        return fail_unknown(p, ends), NULL;
    if (!mgl_parser_enter(p) || !(made = statements[i].parse(p, from)))
        return NULL;
    p->depth--;
    return mgl_parser_expect_kind(p, MGL_LEXEME_BLOCK_END) ? made : NULL;
}

static mgl_syntax *parse_data(mgl_parser *p)
{
    const mgl_lexeme *data = p->at++;
    mgl_syntax *made = mgl_parser_make(p, MGL_SYNTAX_TEXT, data->from);
    if (made)
        made->value = data->value;
    return made;
}

static mgl_syntax *parse_variable(mgl_parser *p)
{
    mgl_syntax *made = mgl_parser_make(p, MGL_SYNTAX_PRINT, p->at++->from);
    if (!made || !(made->a = mgl_parse_tuple(p, true)))
        return NULL;
    made->from = made->a->from;
    made->to = made->a->to;
    return mgl_parser_expect_kind(p, MGL_LEXEME_VARIABLE_END) ? made : NULL;
}

/* Parses the next part. *ended: one of `ends` is next (after "{%"), or the template ends. */
static mgl_syntax *parse_part(mgl_parser *p, const char *const *ends, bool *ended)
{
    *ended = p->at->kind == MGL_LEXEME_END;
    if (*ended && ends)
        return mgl_parser_fail(p, p->at->from, p->at->to,
                               "the template ends within a block: '%s' is missing", last_of(ends)),
               NULL;
    if (*ended)
        return NULL;
    if (p->at->kind == MGL_LEXEME_DATA)
        return parse_data(p);
    if (p->at->kind == MGL_LEXEME_VARIABLE_BEGIN)
        return parse_variable(p);
    p->at++;
    *ended = stands_among(p, ends);
    return *ended ? NULL : parse_statement(p, ends);
}

static bool parse_body(mgl_parser *p, const char *const *ends, mgl_syntax **out)
{
    mgl_syntax **end = out;
    bool ended = false;
    *out = NULL;
    while (!ended) {
        mgl_syntax *part = parse_part(p, ends, &ended);
        if (!part && !ended)
            return false;
        if (p->status)
            return false;
        *end = part;
        while (*end) /* a statement may have made several */
            end = &(*end)->next;
    }
    return true;
}

mgl_status mgl_jinja_read(mgl_jinja *jinja, mgl_error *err)
{
    mgl_parser p = {.jinja = jinja, .at = jinja->lexemes, .err = err};
    if (!parse_body(&p, NULL, &jinja->body))
        return p.status;
    const mgl_syntax *unknown = p.unknown;
    if (unknown)
        mgl_parser_fail(&p, unknown->from, unknown->to, "the %s '%.*s' is not supported",
                        unknown->kind == MGL_SYNTAX_FILTER ? "filter" : "test",
                        (int)(unknown->to - unknown->from), jinja->text + unknown->from);
    return p.status;
}

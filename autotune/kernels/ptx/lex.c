/* Implements lex.h. A name may contain points and double colons. A single colon ends a name: it
 * is a label. */
#include "autotune/kernels/ptx/lex.h"

#include <ctype.h>
#include <string.h>

static bool starts_name(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static bool goes_on(char c)
{
    return starts_name(c) || isdigit((unsigned char)c) || c == '.';
}

static void take_line(mgl_ptx_lexer *lexer, const char *end_of_line)
{
    lexer->source.line = end_of_line + 1;
    lexer->source.number++;
}

/* The position after a block comment; NULL: the comment is not closed. */
static const char *skip_block(mgl_ptx_lexer *lexer, const char *at)
{
    for (at += 2; at + 1 < lexer->source.end; at++) {
        if (*at == '\n')
            take_line(lexer, at);
        if (at[0] == '*' && at[1] == '/')
            return at + 2;
    }
    return NULL;
}

static const char *find_line_end(const mgl_ptx_lexer *lexer, const char *at)
{
    const char *end = memchr(at, '\n', (size_t)(lexer->source.end - at));
    return end ? end : lexer->source.end;
}

/* The first byte of the next word; NULL: a comment is not closed. */
static const char *skip_blanks(mgl_ptx_lexer *lexer, const char *at)
{
    const char *end = lexer->source.end;
    while (at && at < end) {
        bool slash = *at == '/' && at + 1 < end;
        if (*at == '\n')
            take_line(lexer, at++);
        else if (isspace((unsigned char)*at))
            at++;
        else if (slash && at[1] == '/')
            at = find_line_end(lexer, at);
        else if (slash && at[1] == '*')
            at = skip_block(lexer, at);
        else
            break;
    }
    return at;
}

static const char *end_of_name(const mgl_ptx_lexer *lexer, const char *at)
{
    const char *end = lexer->source.end;
    while (at < end) {
        if (goes_on(*at))
            at++;
        else if (*at == ':' && at + 2 < end && at[1] == ':' && goes_on(at[2]))
            at += 2;
        else
            break;
    }
    return at;
}

/* 1e-5 is one number; 1-5 is three words. */
static const char *end_of_number(const mgl_ptx_lexer *lexer, const char *at)
{
    const char *end = lexer->source.end, *from = at;
    bool hexadecimal = end - from > 1 && from[0] == '0' && strchr("xXfFdD", from[1]);
    for (; at < end; at++) {
        bool sign = (*at == '+' || *at == '-') && at > from && !hexadecimal &&
                    (at[-1] == 'e' || at[-1] == 'E');
        if (!isalnum((unsigned char)*at) && *at != '.' && !sign)
            break;
    }
    return at;
}

static const char *end_of_string(const mgl_ptx_lexer *lexer, const char *at)
{
    for (at++; at < lexer->source.end && *at != '\n'; at++)
        if (*at == '"')
            return at + 1;
    return NULL;
}

static mgl_ptx_word_kind find_kind(const char *at, const char *end)
{
    if (starts_name(*at))
        return MGL_PTX_WORD_NAME;
    if (isdigit((unsigned char)*at))
        return MGL_PTX_WORD_NUMBER;
    if (*at == '.' && at + 1 < end && starts_name(at[1]))
        return MGL_PTX_WORD_DIRECTIVE;
    if (*at == '"')
        return MGL_PTX_WORD_STRING;
    return *at && strchr("{}()[]<>,;:=+-!|@*~&^/", *at) ? MGL_PTX_WORD_MARK : MGL_PTX_WORD_BAD;
}

static const char *find_end(const mgl_ptx_lexer *lexer, const char *at)
{
    switch (lexer->kind) {
    case MGL_PTX_WORD_NAME:
    case MGL_PTX_WORD_DIRECTIVE:
        return end_of_name(lexer, at);
    case MGL_PTX_WORD_NUMBER:
        return end_of_number(lexer, at);
    case MGL_PTX_WORD_STRING:
        return end_of_string(lexer, at);
    default:
        return at + 1;
    }
}

static void take(mgl_ptx_lexer *lexer, mgl_ptx_word_kind kind, const char *from, const char *to)
{
    lexer->kind = kind;
    lexer->word = (mgl_ptx_slice){from, (uint32_t)(to - from)};
    lexer->next = to;
}

void mgl_ptx_lex(mgl_ptx_lexer *lexer)
{
    const char *end = lexer->source.end, *from = lexer->next;
    const char *at = skip_blanks(lexer, from);
    if (!at) {
        take(lexer, MGL_PTX_WORD_BAD, end, end);
        return;
    }
    if (at == end) {
        take(lexer, MGL_PTX_WORD_END, end, end);
        return;
    }
    lexer->kind = find_kind(at, end);
    const char *to = find_end(lexer, at);
    if (to)
        take(lexer, lexer->kind, at, to);
    else
        take(lexer, MGL_PTX_WORD_BAD, at, at + 1);
}

void mgl_ptx_lex_line(mgl_ptx_lexer *lexer)
{
    lexer->next = find_line_end(lexer, lexer->word.at);
    mgl_ptx_lex(lexer);
}

void mgl_ptx_lex_start(mgl_ptx_lexer *lexer, const char *text, size_t length, const char *file)
{
    *lexer = (mgl_ptx_lexer){.source = {file, text + length, text, 1}, .next = text};
    mgl_ptx_lex(lexer);
}

bool mgl_ptx_is_module(const char *text, size_t length)
{
    static const char version[] = ".version";
    mgl_ptx_lexer lexer;
    mgl_ptx_lex_start(&lexer, text, length, "");
    return lexer.word.length == sizeof version - 1 &&
           !memcmp(lexer.word.at, version, sizeof version - 1);
}

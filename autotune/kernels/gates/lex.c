/* Implements lex.h: the relevant translation phases of C++ in one pass. Early phases that would
 * change a word are rejected. */
#include "autotune/kernels/gates/lex.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "base/memory.h"
#include "base/text.h"

typedef struct lexer {
    const char *at, *end;
    int line;
    bool starts, apart;
    mgl_tokens *out;
    mgl_scan_fault *fault;
    bool failed; /* out of memory */
} lexer;

bool mgl_scan_refuse(mgl_scan_fault *fault, int line, const char *format, ...)
{
    va_list arguments;
    if (fault->line)
        return false;
    va_start(arguments, format);
    mgl_format_list(fault->what, sizeof fault->what, format, arguments);
    va_end(arguments);
    fault->line = line;
    return false;
}

bool mgl_tokens_add(mgl_tokens *tokens, const mgl_token *token)
{
    if (!mgl_grow((void **)&tokens->list, &tokens->capacity, tokens->count, sizeof *tokens->list))
        return false;
    tokens->list[tokens->count++] = *token;
    return true;
}

void mgl_tokens_clear(mgl_tokens *tokens)
{
    mgl_free(tokens->list);
    *tokens = (mgl_tokens){0};
}

bool mgl_token_is(const mgl_token *token, const char *text)
{
    return mgl_text_is(token->text, (size_t)token->length, text);
}

static char peek(const lexer *l, size_t ahead)
{
    return (size_t)(l->end - l->at) > ahead ? l->at[ahead] : 0;
}

static bool is_word_start(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The length of a line continuation at this position, including blanks after the backslash,
 * which compilers treat differently; 0: none. */
static size_t continuation(const lexer *l)
{
    size_t n = 1;
    if (peek(l, 0) != '\\')
        return 0;
    while (peek(l, n) == ' ' || peek(l, n) == '\t')
        n++;
    return peek(l, n) == '\n' ? n + 1 : 0;
}

static void add(lexer *l, mgl_token_kind kind, const char *from, int line)
{
    const mgl_token token = {.kind = kind,
                             .text = from,
                             .length = (int)(l->at - from),
                             .line = line,
                             .starts = l->starts,
                             .apart = l->apart};
    l->failed = l->failed || !mgl_tokens_add(l->out, &token);
    l->starts = l->apart = false;
}

/* ---- bytes that are rejected everywhere ------------------------------------------------------ */

static bool check_bytes(lexer *l)
{
    int line = 1;
    for (const char *c = l->at; c < l->end; c++) {
        const unsigned char byte = (unsigned char)*c;
        if (byte == '\n')
            line++;
        else if (byte >= 127 || (byte < 32 && byte != '\t'))
            return mgl_scan_refuse(l->fault, line, "byte 0x%02X: the text has to be plain ASCII",
                                   byte);
        else if (byte == '?' && l->end - c > 2 && c[1] == '?' && strchr("=/'()!<>-", c[2]))
            return mgl_scan_refuse(l->fault, line, "`%.3s` is a trigraph", c);
    }
    return true;
}

/* ---- comments and blanks --------------------------------------------------------------------- */

static bool skip_line_comment(lexer *l)
{
    const int line = l->line;
    for (; l->at < l->end && *l->at != '\n'; l->at++)
        if (continuation(l))
            return mgl_scan_refuse(l->fault, line, "a comment is continued by a backslash");
    return true;
}

static bool skip_comment(lexer *l)
{
    const int line = l->line;
    for (l->at += 2; l->at < l->end; l->at++) {
        if (*l->at == '*' && peek(l, 1) == '/') {
            l->at += 2;
            return true;
        }
        if (continuation(l) && l->at[-1] == '*')
            return mgl_scan_refuse(l->fault, l->line, "a comment's end is broken by a backslash");
        l->line += *l->at == '\n';
    }
    return mgl_scan_refuse(l->fault, line, "a comment does not end");
}

/* Skips everything between tokens. */
static bool skip_blanks(lexer *l)
{
    for (;;) {
        const size_t joined = continuation(l);
        if (joined) {
            if (joined > 2)
                return mgl_scan_refuse(l->fault, l->line, "blanks follow a backslash");
            l->at += joined;
            l->line++;
        } else if (peek(l, 0) == '\n') {
            l->at++;
            l->line++;
            l->starts = true;
        } else if (peek(l, 0) == ' ' || peek(l, 0) == '\t') {
            l->at++;
        } else if (peek(l, 0) == '/' && peek(l, 1) == '/') {
            if (!skip_line_comment(l))
                return false;
        } else if (peek(l, 0) == '/' && peek(l, 1) == '*') {
            if (!skip_comment(l))
                return false;
        } else {
            return true;
        }
        l->apart = true;
    }
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* Whether a word ends here: a continuation after it could continue the word, or make it a string
 * prefix. */
static bool is_whole(lexer *l, const char *from)
{
    const size_t joined = continuation(l);
    if (!joined || (size_t)(l->end - l->at) <= joined)
        return true;
    const char next = l->at[joined];
    if (!is_word(next) && next != '"' && next != '\'' && next != '.' && next != '\\')
        return true;
    return mgl_scan_refuse(l->fault, l->line, "`%.*s...` is broken by a backslash",
                           (int)(l->at - from), from);
}

static bool is_prefix(const char *word, size_t length)
{
    static const char *const prefixes[] = {"R", "u8R", "uR", "UR", "LR", "u8", "u", "U", "L"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (mgl_text_is(word, length, prefixes[i]))
            return true;
    return false;
}

static bool take_word(lexer *l)
{
    const char *from = l->at;
    while (is_word(peek(l, 0)))
        l->at++;
    const size_t length = (size_t)(l->at - from);
    if ((peek(l, 0) == '"' || peek(l, 0) == '\'') && is_prefix(from, length))
        return mgl_scan_refuse(l->fault, l->line, "`%.*s%c`: strings have no prefix here",
                               (int)length, from, peek(l, 0));
    if (!is_whole(l, from))
        return false;
    add(l, MGL_TOKEN_WORD, from, l->line);
    return true;
}

static bool take_number(lexer *l)
{
    const char *from = l->at;
    for (;;) {
        const char c = peek(l, 0), next = peek(l, 1);
        if (c && strchr("eEpP", c) && (next == '+' || next == '-'))
            l->at += 2;
        else if (is_word(c) || c == '.')
            l->at++;
        else if (c == '\'' && is_word(next))
            l->at += 2;
        else
            break;
    }
    if (!is_whole(l, from))
        return false;
    add(l, MGL_TOKEN_NUMBER, from, l->line);
    return true;
}

static bool take_quoted(lexer *l, char quote)
{
    const char *from = l->at++;
    for (; l->at < l->end; l->at++) {
        if (continuation(l))
            return mgl_scan_refuse(l->fault, l->line, "a string is broken by a backslash");
        if (*l->at == '\n')
            break;
        if (*l->at == '\\') {
            l->at++;
        } else if (*l->at == quote) {
            l->at++;
            add(l, quote == '"' ? MGL_TOKEN_STRING : MGL_TOKEN_CHAR, from, l->line);
            return true;
        }
    }
    return mgl_scan_refuse(l->fault, l->line, "a string does not end on its line");
}

/* Alternative spellings of marks. `<::` is < :: unless : or > follows. */
static bool is_digraph(const lexer *l)
{
    const char a = peek(l, 0), b = peek(l, 1), c = peek(l, 2), d = peek(l, 3);
    if (a == '<' && b == ':')
        return c != ':' || d == ':' || d == '>';
    return (a == '<' && b == '%') || (a == ':' && b == '>') || (a == '%' && (b == ':' || b == '>'));
}

static bool take_mark(lexer *l)
{
    const char *from = l->at;
    const char c = peek(l, 0), next = peek(l, 1);
    if (is_digraph(l))
        return mgl_scan_refuse(l->fault, l->line, "`%.2s` is a digraph", from);
    if (c == '\\' || c == '@' || c == '$' || c == '`')
        return mgl_scan_refuse(l->fault, l->line, "`%c` is only allowed in a string", c);
    const bool pair =
        (c == ':' && next == ':') || (c == '-' && next == '>') || (c == '#' && next == '#');
    l->at += pair ? 2 : 1;
    const size_t joined = continuation(l);
    if (joined && (size_t)(l->end - l->at) > joined && ispunct((unsigned char)l->at[joined]) &&
        strchr("#:%<>/-*", c) && strchr("#:%<>/-*", l->at[joined]))
        return mgl_scan_refuse(l->fault, l->line, "`%c...` is broken by a backslash", c);
    add(l, MGL_TOKEN_MARK, from, l->line);
    return true;
}

static bool take_token(lexer *l)
{
    const char c = peek(l, 0);
    if (is_word_start(c))
        return take_word(l);
    if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)peek(l, 1))))
        return take_number(l);
    if (c == '"' || c == '\'')
        return take_quoted(l, c);
    return take_mark(l);
}

mgl_status mgl_lex(const char *text, size_t length, mgl_tokens *out, mgl_scan_fault *fault,
                   mgl_error *err)
{
    lexer l = {.at = text,
               .end = text + length,
               .line = 1,
               .starts = true,
               .apart = true,
               .out = out,
               .fault = fault};
    *out = (mgl_tokens){0};
    *fault = (mgl_scan_fault){0};
    if (!check_bytes(&l))
        return MGL_OK;
    while (!l.failed && skip_blanks(&l) && l.at < l.end && take_token(&l))
        ;
    if (!l.failed)
        return MGL_OK;
    mgl_tokens_clear(out);
    return mgl_fail_memory(err, length);
}

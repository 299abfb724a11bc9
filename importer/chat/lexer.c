/*
 * Splits the text of a template into lexemes, which it appends to jinja->lexemes for the parser.
 * jinja.c calls mgl_jinja_lex. The text between tags is data. The lexer removes the white space
 * that the tags trim (trim_blocks, lstrip_blocks, `-` and `+`), so the parser does not handle it:
 *
 *     {%- {{- {#-   trim all white space before          -%} -}} -#}   and all after
 *     {% {#         trim spaces before, if the line begins with them; {%+ and {#+ keep them
 *     %} #}         trim the line end after the tag; +%} and +#} keep it
 */
#include "base/format.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "importer/chat/string.h"
#include "importer/chat/syntax.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

typedef struct lexer {
    mgl_jinja *jinja;
    const char *text;
    size_t at, end;
    size_t capacity; /* of the lexemes */
    char open[64];   /* (depth) open brackets */
    size_t depth;
    mgl_status status;
    mgl_error *err;
} lexer;

static bool fail(lexer *l, size_t from, size_t to, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static bool fail(lexer *l, size_t from, size_t to, const char *format, ...)
{
    char message[1000];
    va_list args;
    va_start(args, format);
    mgl_format_list(message, sizeof message, format, args);
    va_end(args);
    l->status = mgl_jinja_fail(l->jinja, from, to, l->err, message);
    return false;
}

static bool fail_memory(lexer *l)
{
    l->status = mgl_jinja_fail_memory(l->jinja, l->err);
    return false;
}

/* ---- lexemes --------------------------------------------------------------------------------- */

static bool add(lexer *l, mgl_lexeme lexeme)
{
    mgl_jinja *jinja = l->jinja;
    if (jinja->lexeme_count == l->capacity) {
        size_t wanted = l->capacity ? l->capacity * 2 : 64;
        mgl_lexeme *grown = mgl_arena_take(&jinja->memory, wanted * sizeof *grown);
        if (!grown)
            return fail_memory(l);
        if (l->capacity)
            memcpy(grown, jinja->lexemes, l->capacity * sizeof *grown);
        jinja->lexemes = grown;
        l->capacity = wanted;
    }
    jinja->lexemes[jinja->lexeme_count++] = lexeme;
    return true;
}

static bool add_kind(lexer *l, mgl_lexeme_kind kind, size_t from, size_t to)
{
    return add(l, (mgl_lexeme){.kind = kind, .from = (uint32_t)from, .to = (uint32_t)to});
}

static bool add_constant(lexer *l, size_t from, mgl_value value)
{
    return add(l, (mgl_lexeme){.kind = MGL_LEXEME_CONSTANT,
                               .from = (uint32_t)from,
                               .to = (uint32_t)l->at,
                               .value = value});
}

/* Makes a string that shares the bytes. Threads share the string, so its characters are counted
 * now. */
static mgl_string *make_string(lexer *l, const char *bytes, size_t length)
{
    mgl_string *string = mgl_arena_take(&l->jinja->memory, sizeof *string);
    if (!string)
        return fail_memory(l), NULL;
    *string = (mgl_string){bytes, length, SIZE_MAX, NULL};
    mgl_string_characters(string);
    return string;
}

/* ---- data ------------------------------------------------------------------------------------ */

static bool looking_at(const lexer *l, size_t at, const char *what)
{
    size_t length = strlen(what);
    return l->end - at >= length && !memcmp(l->text + at, what, length);
}

static size_t skip_space(const lexer *l, size_t at)
{
    uint32_t c;
    while (at < l->end) {
        size_t size = mgl_utf8_next(l->text + at, &c);
        if (!mgl_character_is_space(c))
            break;
        at += size;
    }
    return at;
}

/* Removes the white space at the end of [from, to). */
static size_t strip_end(const lexer *l, size_t from, size_t to)
{
    while (to > from) {
        uint32_t c;
        size_t last = from + mgl_utf8_last(l->text + from, to - from);
        mgl_utf8_next(l->text + last, &c);
        if (!mgl_character_is_space(c))
            break;
        to = last;
    }
    return to;
}

/* Removes the white space of the last line, if the line contains nothing else. */
static size_t strip_line(const lexer *l, size_t from, size_t to)
{
    size_t line = to;
    while (line > from && l->text[line - 1] != '\n')
        line--;
    bool begins = line > from || line == 0 || l->text[line - 1] == '\n';
    return begins && skip_space(l, line) >= to ? line : to;
}

/* Adds the data before a tag. `sign` is the character after the tag's first two characters. */
static bool add_data(lexer *l, size_t from, size_t to, char sign, bool block)
{
    if (sign == '-')
        to = strip_end(l, from, to);
    else if (sign != '+' && block)
        to = strip_line(l, from, to);
    if (to == from)
        return true;
    mgl_string *string = make_string(l, l->text + from, to - from);
    return string && add(l, (mgl_lexeme){.kind = MGL_LEXEME_DATA,
                                         .from = (uint32_t)from,
                                         .to = (uint32_t)to,
                                         .value = mgl_of_string(string)});
}

/* Returns the position after the end of a tag. The tag's last two characters begin at `at`;
 * depending on the sign, a line end or all white space is skipped too. */
static size_t skip_end(const lexer *l, size_t at, char sign, bool trims)
{
    at += 2;
    if (sign == '-')
        return skip_space(l, at);
    return at + (sign != '+' && trims && at < l->end && l->text[at] == '\n');
}

static char sign_at(const lexer *l, size_t at)
{
    return at < l->end && (l->text[at] == '-' || l->text[at] == '+') ? l->text[at] : 0;
}

/* ---- comments and raw ------------------------------------------------------------------------ */

/* Skips a comment; l->at is after its opening mark, which was at `from`. */
static bool skip_comment(lexer *l, size_t from)
{
    const char *end = memmem(l->text + l->at, l->end - l->at, "#}", 2);
    if (!end)
        return fail(l, from, from + 2, "this comment has no end: '#}' is missing");
    size_t at = (size_t)(end - l->text);
    l->at = skip_end(l, at, at > l->at ? sign_at(l, at - 1) : 0, true);
    return true;
}

/* Returns the position after "{% word %}", with white space and signs; 0: no such tag at `at`. */
static size_t match_tag(const lexer *l, size_t at, const char *word, bool trims)
{
    at += 2;
    at = skip_space(l, at + (sign_at(l, at) != 0));
    if (!looking_at(l, at, word))
        return 0;
    at = skip_space(l, at + strlen(word));
    char sign = sign_at(l, at);
    at += sign != 0;
    if (!looking_at(l, at, "%}") || (sign == '+' && !trims))
        return 0;
    return skip_end(l, at, sign, trims);
}

/* Adds everything up to the end of a raw block as data; l->at is after its opening tag. */
static bool read_raw(lexer *l, size_t from)
{
    size_t start = l->at, at = start;
    const char *tag;
    while ((tag = memmem(l->text + at, l->end - at, "{%", 2)) != NULL) {
        at = (size_t)(tag - l->text);
        size_t behind = match_tag(l, at, "endraw", true);
        if (behind) {
            l->at = behind;
            return add_data(l, start, at, sign_at(l, at + 2), true);
        }
        at += 2;
    }
    return fail(l, from, start, "this block has no end: '{%% endraw %%}' is missing");
}

/* ---- strings --------------------------------------------------------------------------------- */

typedef struct unescaper {
    const char *at, *end;
    char *to;
} unescaper;

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* Reads at most `most` digits; at least `least` are required. */
static bool read_code(unescaper *u, int base, int least, int most, uint32_t *out)
{
    int n = 0;
    *out = 0;
    for (; n < most && u->at < u->end && digit_of(*u->at) < base; n++)
        *out = *out * (uint32_t)base + (uint32_t)digit_of(*u->at++);
    return n >= least;
}

static bool put_code(unescaper *u, uint32_t code)
{
    bool good = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    if (good)
        u->to += mgl_utf8_put(code, u->to);
    return good;
}

/* Decodes an escape, after the backslash, by the rules of Python's strings. False: invalid
 * escape. */
static bool unescape_one(unescaper *u)
{
    static const char plain[] = "\\'\"abfnrtv", codes[] = "\\'\"\a\b\f\n\r\t\v";
    char c = *u->at++;
    const char *known = memchr(plain, c, sizeof plain - 1);
    uint32_t code = 0;
    if (c == '\n')
        return true;
    if (known) {
        *u->to++ = codes[known - plain];
        return true;
    }
    if (c == 'x' || c == 'u' || c == 'U') {
        int digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        return read_code(u, 16, digits, digits, &code) && put_code(u, code);
    }
    if (c >= '0' && c <= '7') {
        u->at--;
        return read_code(u, 8, 1, 3, &code) && put_code(u, code);
    }
    *u->to++ = '\\';
    u->at--;
    return c != 'N';
}

/* Decodes the text between the quotes. An escape is never shorter than its result. */
static mgl_string *unescape(lexer *l, size_t from, size_t to)
{
    char *bytes = mgl_arena_take(&l->jinja->memory, to - from + 1);
    unescaper u = {l->text + from, l->text + to, bytes};
    if (!bytes)
        return fail_memory(l), NULL;
    while (u.at < u.end) {
        const char *escape = u.at;
        if (*u.at != '\\') {
            *u.to++ = *u.at++;
            continue;
        }
        u.at++;
        if (!unescape_one(&u)) {
            size_t place = (size_t)(escape - l->text);
            fail(l, place, place + 2,
                 "an escape that cannot be read: a character's number has "
                 "2 digits behind \\x, 4 behind \\u, 8 behind \\U; names "
                 "(\\N) are not known");
            return NULL;
        }
    }
    return make_string(l, bytes, (size_t)(u.to - bytes));
}

static bool read_string(lexer *l)
{
    size_t from = l->at, at = from + 1;
    char quote = l->text[from];
    while (at < l->end && l->text[at] != quote)
        at += l->text[at] == '\\' ? 2 : 1;
    if (at >= l->end)
        return fail(l, from, from + 1, "this string has no end");
    mgl_string *string = unescape(l, from + 1, at);
    l->at = at + 1;
    return string && add_constant(l, from, mgl_of_string(string));
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Returns the end of the digits of a base, with single underscores between them. */
static size_t skip_digits(const lexer *l, size_t at, int base)
{
    while (at < l->end && digit_of(l->text[at]) < base) {
        at++;
        if (at + 1 < l->end && l->text[at] == '_' && digit_of(l->text[at + 1]) < base)
            at++;
    }
    return at;
}

/* Returns the end of the fraction and the exponent after digits; `at` if there are none. */
static size_t skip_fraction(const lexer *l, size_t at)
{
    size_t end = at, from = at;
    if (at + 1 < l->end && l->text[at] == '.' && digit_of(l->text[at + 1]) < 10)
        end = from = skip_digits(l, at + 1, 10);
    if (from < l->end && (l->text[from] == 'e' || l->text[from] == 'E')) {
        from++;
        from += from < l->end && (l->text[from] == '+' || l->text[from] == '-');
        if (from < l->end && digit_of(l->text[from]) < 10)
            end = skip_digits(l, from, 10);
    }
    return end;
}

enum { NUMBER = 400 }; /* characters of the longest number */

static bool copy_number(lexer *l, size_t from, size_t to, char text[NUMBER])
{
    size_t n = 0;
    if (to - from >= NUMBER)
        return fail(l, from, to, "a number of more than %d characters", NUMBER - 1);
    const char *point = localeconv()->decimal_point;
    for (; from < to; from++)
        if (l->text[from] != '_')
            text[n++] = l->text[from] == '.' ? *point : l->text[from];
    text[n] = 0;
    return true;
}

/* Adds an integer beyond 64 bits as its digits, without leading zeros. */
static bool add_large(lexer *l, size_t from, const char *digits)
{
    while (*digits == '0' && digits[1])
        digits++;
    size_t length = strlen(digits);
    char *bytes = mgl_arena_take(&l->jinja->memory, length);
    if (!bytes)
        return fail_memory(l);
    memcpy(bytes, digits, length);
    mgl_string *string = make_string(l, bytes, length);
    return string && add_constant(l, from, (mgl_value){.kind = MGL_VALUE_LARGE, .string = string});
}

static bool read_integer(lexer *l, size_t from, int base, size_t prefix)
{
    char text[NUMBER];
    if (!copy_number(l, from + prefix, l->at, text))
        return false;
    errno = 0;
    long long value = strtoll(text, NULL, base);
    if (!errno)
        return add_constant(l, from, mgl_integer(value));
    if (base == 10)
        return add_large(l, from, text);
    return fail(l, from, l->at, "a number beyond 64 bits; write it in decimal digits");
}

static bool read_number(lexer *l)
{
    size_t from = l->at, to = skip_digits(l, from, 10);
    size_t end = from && l->text[from - 1] == '.' ? to : skip_fraction(l, to);
    char text[NUMBER], mark = from + 1 < l->end ? l->text[from + 1] : 0;
    if (end > to) {
        l->at = end;
        return copy_number(l, from, end, text) &&
               add_constant(l, from, mgl_real(strtod(text, NULL)));
    }
    int base = mark == 'x' || mark == 'X'   ? 16
               : mark == 'o' || mark == 'O' ? 8
               : mark == 'b' || mark == 'B' ? 2
                                            : 10;
    if (l->text[from] == '0' && base != 10 && skip_digits(l, from + 2, base) > from + 2) {
        l->at = skip_digits(l, from + 2, base);
        return read_integer(l, from, base, 2);
    }
    l->at = to;
    if (l->text[from] == '0') /* only zeros; the rest is another number */
        for (l->at = from; l->at < to && strchr("0_", l->text[l->at]);)
            l->at++;
    return read_integer(l, from, 10, 0);
}

/* ---- tags ------------------------------------------------------------------------------------ */

static size_t skip_name(const lexer *l, size_t at)
{
    while (at < l->end) {
        uint32_t c;
        size_t size = mgl_utf8_next(l->text + at, &c);
        if (c != '_' && !mgl_character_is_letter(c) && !mgl_character_is_number(c))
            break;
        at += size;
    }
    return at;
}

static bool read_name(lexer *l)
{
    size_t from = l->at;
    l->at = skip_name(l, from);
    uint32_t name = mgl_jinja_symbol(l->jinja, l->text + from, l->at - from);
    if (name == UINT32_MAX)
        return fail_memory(l);
    return add(l, (mgl_lexeme){.kind = MGL_LEXEME_NAME,
                               .from = (uint32_t)from,
                               .to = (uint32_t)l->at,
                               .name = name});
}

static bool balance(lexer *l, char c)
{
    static const char opening[] = "([{", closing[] = ")]}";
    const char *opens = strchr(opening, c), *closes = strchr(closing, c);
    if (opens && l->depth == sizeof l->open)
        return fail(l, l->at, l->at + 1, "more than %zu brackets within brackets", sizeof l->open);
    if (opens)
        l->open[l->depth++] = closing[opens - opening];
    if (!closes)
        return true;
    if (!l->depth)
        return fail(l, l->at, l->at + 1, "'%c' closes nothing", c);
    if (l->open[--l->depth] != c)
        return fail(l, l->at, l->at + 1, "expected '%c', found '%c'", c, l->open[l->depth]);
    return true;
}

static bool read_operator(lexer *l)
{
    static const char *const operators[MGL_EXPR_COUNT] = {
#define MGL_X(name, text) text,
        MGL_OPERATORS(MGL_X)
#undef MGL_X
    };
    for (int i = 0; i < MGL_EXPR_COUNT; i++) {
        if (!looking_at(l, l->at, operators[i]))
            continue;
        size_t length = strlen(operators[i]);
        if (length == 1 && !balance(l, operators[i][0]))
            return false;
        l->at += length;
        return add(l, (mgl_lexeme){.kind = MGL_LEXEME_OPERATOR,
                                   .operation = (mgl_operator)i,
                                   .from = (uint32_t)(l->at - length),
                                   .to = (uint32_t)l->at});
    }
    return fail(l, l->at, l->at + mgl_utf8_size(l->text[l->at]), "an unexpected character");
}

/* Reads one lexeme of a tag. */
static bool read_lexeme(lexer *l)
{
    char c = l->text[l->at];
    if (c >= '0' && c <= '9')
        return read_number(l);
    if (skip_name(l, l->at) > l->at)
        return read_name(l);
    if (c == '\'' || c == '"')
        return read_string(l);
    return read_operator(l);
}

/* Reads the end of the tag, if it is here. */
static bool read_end(lexer *l, bool block, bool *ended)
{
    const char *mark = block ? "%}" : "}}";
    char sign = sign_at(l, l->at);
    if (sign == '+' && !block)
        sign = 0;
    *ended = !l->depth && looking_at(l, l->at + (sign != 0), mark);
    if (!*ended)
        return true;
    size_t from = l->at;
    l->at = skip_end(l, from + (sign != 0), sign, block);
    return add_kind(l, block ? MGL_LEXEME_BLOCK_END : MGL_LEXEME_VARIABLE_END, from,
                    from + (sign != 0) + 2);
}

/* Reads a tag, from after "{{" or "{%" through its end. */
static bool read_tag(lexer *l, size_t from, bool block)
{
    bool ended = false;
    l->depth = 0;
    if (!add_kind(l, block ? MGL_LEXEME_BLOCK_BEGIN : MGL_LEXEME_VARIABLE_BEGIN, from, l->at))
        return false;
    while (!ended) {
        l->at = skip_space(l, l->at);
        if (l->at == l->end)
            return fail(l, from, from + 2, "this has no end: '%s' is missing", block ? "%}" : "}}");
        if (!read_end(l, block, &ended) || (!ended && !read_lexeme(l)))
            return false;
    }
    return true;
}

/* ---- the whole text -------------------------------------------------------------------------- */

/* Returns the position of the next "{{", "{%" or "{#", or the end of the text. */
static size_t find_tag(const lexer *l, size_t at)
{
    const char *brace;
    while (at < l->end && (brace = memchr(l->text + at, '{', l->end - at)) != NULL) {
        at = (size_t)(brace - l->text);
        if (at + 1 < l->end && strchr("{%#", l->text[at + 1]) && l->text[at + 1])
            return at;
        at++;
    }
    return l->end;
}

static bool read_part(lexer *l)
{
    size_t from = l->at, tag = find_tag(l, from);
    l->at = tag;
    if (tag == l->end)
        return add_data(l, from, tag, '+', false);
    char kind = l->text[tag + 1], sign = sign_at(l, tag + 2);
    size_t raw = kind == '%' ? match_tag(l, tag, "raw", false) : 0;
    if (!add_data(l, from, tag, sign, kind != '{'))
        return false;
    l->at = raw ? raw : tag + 2 + (sign != 0);
    if (raw)
        return read_raw(l, tag);
    return kind == '#' ? skip_comment(l, tag) : read_tag(l, tag, kind == '%');
}

mgl_status mgl_jinja_lex(mgl_jinja *jinja, mgl_error *err)
{
    lexer l = {.jinja = jinja, .text = jinja->text, .end = jinja->length, .err = err};
    while (l.at < l.end)
        if (!read_part(&l))
            return l.status;
    return add_kind(&l, MGL_LEXEME_END, l.end, l.end) ? MGL_OK : l.status;
}

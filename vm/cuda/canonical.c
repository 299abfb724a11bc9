/*
 * Implements canonical.h: a scanner of preprocessing tokens (ISO C++17 [lex.pptoken]) that writes
 * each token as soon as it is read. Characters are read through next_at, which skips line splices
 * (a backslash before a line end). Raw strings are copied unchanged, because they keep their
 * splices.
 */
#include "vm/cuda/canonical.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "vm/cuda/compile.h"

enum { BUFFER = 512, WORD = 8 };

/* State of a scan. Output goes to a text or to a hash. */
typedef struct scanner {
    const char *at;      /* the next character */
    bool apart;          /* whitespace or comments precede it */
    bool starts_line;    /* it may begin the first token of its line */
    int directive;       /* number of tokens in the current directive so far; 0: not in a
                            directive */
    bool defines;        /* the directive is #define */
    bool includes;       /* the directive is #include */
    bool line_is_empty;  /* the current line of the canonical text is empty */
    char word[WORD];     /* first bytes of the current token */
    int word_length;     /* bytes of the current token, at most WORD */
    char buffer[BUFFER]; /* (used) output not flushed yet */
    size_t used;
    mgl_text *text;   /* output of the canonical text, or NULL */
    mgl_sha256 *hash; /* output of its hash, or NULL */
} scanner;

/* ---- writing --------------------------------------------------------------------------------- */

static void flush(scanner *s)
{
    if (s->text)
        mgl_text_append(s->text, s->buffer, s->used);
    if (s->hash)
        mgl_sha256_add(s->hash, s->buffer, s->used);
    s->used = 0;
}

static void put(scanner *s, char c)
{
    if (s->used == BUFFER)
        flush(s);
    s->buffer[s->used++] = c;
}

static void end_line(scanner *s)
{
    if (!s->line_is_empty)
        put(s, '\n');
    s->line_is_empty = true;
}

/* ---- reading --------------------------------------------------------------------------------- */

static const char *skip_splices(const char *at)
{
    while (at[0] == '\\' && at[1] == '\n')
        at += 2;
    return at;
}

/* The character after the one at `at`, without splices. */
static const char *next_at(const char *at)
{
    return skip_splices(at + 1);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 128;
}

static void advance(scanner *s)
{
    s->at = next_at(s->at);
}

/* Writes the next character and advances. */
static void take(scanner *s)
{
    if (s->word_length < WORD)
        s->word[s->word_length++] = *s->at;
    put(s, *s->at);
    advance(s);
}

static bool took(const scanner *s, const char *word)
{
    return mgl_text_is(s->word, (size_t)s->word_length, word);
}

static void skip_line_comment(scanner *s)
{
    while (*s->at && *s->at != '\n')
        advance(s);
}

static void skip_block_comment(scanner *s)
{
    advance(s); /* now at the asterisk, which cannot end the comment */
    advance(s);
    while (*s->at && !(*s->at == '*' && *next_at(s->at) == '/'))
        advance(s);
    for (int i = 0; i < 2 && *s->at; i++)
        advance(s);
}

/* Skips whitespace and comments. A line end closes a directive. */
static void skip_blanks(scanner *s)
{
    s->apart = false;
    for (;; s->apart = true) {
        if (*s->at == '\n') {
            if (s->directive)
                end_line(s);
            s->directive = 0;
            s->starts_line = true;
            advance(s);
        } else if (isspace((unsigned char)*s->at)) {
            advance(s);
        } else if (*s->at == '/' && *next_at(s->at) == '/') {
            skip_line_comment(s);
        } else if (*s->at == '/' && *next_at(s->at) == '*') {
            skip_block_comment(s);
        } else {
            return;
        }
    }
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* Copies a string or character literal with its suffix. A line end ends an unterminated literal. */
static void take_literal(scanner *s)
{
    const char quote = *s->at;
    take(s);
    while (*s->at && *s->at != '\n' && *s->at != quote) {
        if (*s->at == '\\' && *next_at(s->at) && *next_at(s->at) != '\n')
            take(s);
        take(s);
    }
    if (*s->at != quote)
        return;
    take(s);
    while (is_word(*s->at))
        take(s);
}

/* Copies a raw string from its quote on, unchanged. */
static void take_raw_string(scanner *s)
{
    enum { LONGEST = 16 };
    char end[LONGEST + 3] = ")";
    const char *at = s->at + 1, *open = at + strcspn(at, "(");
    const size_t length = (size_t)(open - at);
    const char *close = NULL;
    if (*open && length <= LONGEST) {
        memcpy(end + 1, at, length);
        memcpy(end + 1 + length, "\"", 2);
        close = strstr(open, end);
    }
    close = close ? close + length + 2 : at + strlen(at);
    for (at = s->at; at < close; at++)
        put(s, *at);
    s->at = skip_splices(close);
    while (is_word(*s->at))
        take(s);
}

static void take_word(scanner *s)
{
    while (is_word(*s->at))
        take(s);
    const bool plain = took(s, "u8") || took(s, "u") || took(s, "U") || took(s, "L");
    const bool raw =
        took(s, "R") || took(s, "u8R") || took(s, "uR") || took(s, "UR") || took(s, "LR");
    if (raw && *s->at == '"')
        take_raw_string(s);
    else if (plain && (*s->at == '"' || *s->at == '\''))
        take_literal(s);
}

static void take_number(scanner *s)
{
    while (is_word(*s->at) || *s->at == '.' || (*s->at == '\'' && is_word(*next_at(s->at)))) {
        const bool exponent = memchr("eEpP", *s->at, 4) != NULL;
        take(s);
        if (exponent && (*s->at == '+' || *s->at == '-'))
            take(s);
    }
}

/* Copies a header name in angle brackets, which may contain `//`. */
static void take_header(scanner *s)
{
    while (*s->at && *s->at != '\n' && *s->at != '>')
        take(s);
    if (*s->at == '>')
        take(s);
}

/* Copies the longest operator at this point, or else one character. */
static void take_operator(scanner *s)
{
    static const char *const operators[] = {"<<<", ">>>", "<<=", ">>=", "...", "->*", "<=>", "<<",
                                            ">>",  "<=",  ">=",  "==",  "!=",  "&&",  "||",  "+=",
                                            "-=",  "*=",  "/=",  "%=",  "^=",  "&=",  "|=",  "++",
                                            "--",  "->",  ".*",  "::",  "##"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        const char *at = s->at;
        size_t n = 0;
        while (operators[i][n] && *at == operators[i][n]) {
            at = next_at(at);
            n++;
        }
        if (operators[i][n])
            continue;
        while (n-- > 0)
            take(s);
        return;
    }
    take(s);
}

static void take_token(scanner *s)
{
    if (*s->at == '<' && s->includes && s->directive == 3)
        take_header(s);
    else if (isdigit((unsigned char)*s->at) ||
             (*s->at == '.' && isdigit((unsigned char)*next_at(s->at))))
        take_number(s);
    else if (is_word(*s->at))
        take_word(s);
    else if (*s->at == '"' || *s->at == '\'')
        take_literal(s);
    else
        take_operator(s);
}

/* Writes what precedes a token: a line end before a directive, nothing before the parameters of a
 * macro, otherwise a space. */
static void begin_token(scanner *s)
{
    if (*s->at == '#' && s->starts_line) {
        end_line(s);
        s->directive = 1;
        s->defines = s->includes = false;
        return;
    }
    const bool parameters = s->defines && s->directive == 3 && *s->at == '(' && !s->apart;
    if (!s->line_is_empty && !parameters)
        put(s, ' ');
    s->directive += s->directive > 0;
}

static void scan(scanner *s, const char *text)
{
    s->at = skip_splices(text);
    s->starts_line = s->line_is_empty = true;
    for (skip_blanks(s); *s->at; skip_blanks(s)) {
        begin_token(s);
        s->starts_line = s->line_is_empty = false;
        s->word_length = 0;
        take_token(s);
        if (s->directive == 2) {
            s->defines = took(s, "define");
            s->includes = took(s, "include");
        }
    }
    end_line(s);
    flush(s);
}

void mgl_cuda_canonical(const char *text, mgl_text *out)
{
    scanner s = {.text = out};
    scan(&s, text);
}

/* ---- digests --------------------------------------------------------------------------------- */

static unsigned char built_in[MGL_RECIPE_SOURCES][MGL_SHA256_BYTES];
static pthread_once_t built_in_once = PTHREAD_ONCE_INIT;

static void hash_text(const unsigned char *text, unsigned char out[MGL_SHA256_BYTES])
{
    mgl_sha256 hash;
    scanner s = {.hash = &hash};
    mgl_sha256_start(&hash);
    scan(&s, (const char *)text);
    mgl_sha256_end(&hash, out);
}

static void hash_built_in(void)
{
    MGL_ASSERT(mgl_cuda_source_count <= MGL_RECIPE_SOURCES);
    for (int i = 0; i < mgl_cuda_source_count; i++)
        hash_text(mgl_cuda_sources[i].text, built_in[i]);
}

void mgl_cuda_source_digest(const mgl_cuda_source *source, unsigned char out[MGL_SHA256_BYTES])
{
    pthread_once(&built_in_once, hash_built_in);
    for (int i = 0; i < mgl_cuda_source_count; i++)
        if (mgl_cuda_sources[i].text == source->text) {
            memcpy(out, built_in[i], MGL_SHA256_BYTES);
            return;
        }
    hash_text(source->text, out);
}

/* See scan.h. */
#include "autotune/kernels/gates/scan.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/kernels/gates/declare.h"
#include "autotune/kernels/gates/expand.h"

typedef struct scan {
    const mgl_vocabulary *vocabulary;
    const mgl_tokens *tokens;
    mgl_scan_fault *fault;
    int64_t shared;
} scan;

static bool refuse(scan *s, const mgl_token *t, const char *what)
{
    return mgl_scan_refuse(s->fault, t->line, "`%.*s` %s", t->length > 60 ? 60 : t->length, t->text,
                           what);
}

static bool is(const scan *s, size_t at, const char *text)
{
    return at < s->tokens->count && mgl_token_is(&s->tokens->list[at], text);
}

/* ---- words ------------------------------------------------------------------------------------
 */

static const char *forbidden(const mgl_token *t)
{
    static const struct {
        const char *text, *why;
        bool start;
    } words[] = {
#define MGL_FORBIDDEN(word, why)        {#word, why, false},
#define MGL_FORBIDDEN_START(start, why) {#start, why, true},
#include "autotune/kernels/gates/words.def"
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i].text), length = (size_t)t->length;
        if ((words[i].start ? length >= n : length == n) && !memcmp(words[i].text, t->text, n))
            return words[i].why;
    }
    return NULL;
}

static bool is_allowed(const mgl_token *t)
{
    static const char *const words[] = {
#define MGL_ALLOWED(word) #word,
#include "autotune/kernels/gates/words.def"
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (mgl_token_is(t, words[i]))
            return true;
    return false;
}

/* Names that a C++ text may not give, and what compilers have under such names. */
static bool is_reserved(const mgl_token *t)
{
    for (int i = 0; i + 1 < t->length; i++)
        if (t->text[i] == '_' &&
            (t->text[i + 1] == '_' || (i == 0 && isupper((unsigned char)t->text[1]))))
            return true;
    return false;
}

static bool check_word(scan *s, size_t at)
{
    const mgl_token *t = &s->tokens->list[at];
    const unsigned bits = mgl_vocabulary_look(s->vocabulary, t);
    const bool member = is(s, at - 1, ".") || is(s, at - 1, "->") || is(s, at - 1, "::");
    if (bits & MGL_WORD_OWN)
        return true;
    const char *why = forbidden(t);
    if (why)
        return refuse(s, t, why);
    if (is_reserved(t) && !is_allowed(t) && !(bits & MGL_WORD_FAMILY))
        return refuse(s, t, "is a name of the compiler that a unit may not use");
    if (bits & MGL_WORD_FAMILY)
        return true;
    if (bits & MGL_WORD_SCHEDULER)
        return refuse(s, t, "belongs to the scheduling of the machine; use another name");
    if (member && at > 0 && (bits & MGL_WORD_MEMBER))
        return refuse(s, t, "names memory of the machine");
    return true;
}

/* What C++ takes for an address has more than 32 bits. */
static bool check_number(scan *s, const mgl_token *t)
{
    char digits[64];
    int n = 0;
    for (int i = 0; i < t->length && n < (int)sizeof digits - 1; i++)
        if (t->text[i] != '\'')
            digits[n++] = t->text[i];
    digits[n] = 0;
    const bool hex = n > 2 && digits[0] == '0' && tolower((unsigned char)digits[1]) == 'x';
    const bool binary = n > 2 && digits[0] == '0' && tolower((unsigned char)digits[1]) == 'b';
    if (t->length > 60)
        return refuse(s, t, "is not an allowed number");
    if (strchr(digits, '.') || (!hex && strpbrk(digits, "eE")) || (hex && strpbrk(digits, "pP")))
        return true;
    if (strtoull(binary ? digits + 2 : digits, NULL, binary ? 2 : 0) > UINT32_MAX)
        return refuse(s, t, "has more than 32 bits: addresses come from operands");
    return true;
}

/* auto [a, b] = ... names the members of a type without their names. */
static bool check_binding(scan *s, size_t at)
{
    size_t i = at + 1;
    while (is(s, i, "&") || is(s, i, "const") || is(s, i, "volatile"))
        i++;
    return !is(s, i, "[") ||
           refuse(s, &s->tokens->list[at], "begins a structured binding, which is not allowed");
}

static bool check_words(scan *s)
{
    for (size_t i = 0; i < s->tokens->count; i++) {
        const mgl_token *t = &s->tokens->list[i];
        if (t->kind == MGL_TOKEN_WORD && !check_word(s, i))
            return false;
        if (t->kind == MGL_TOKEN_NUMBER && !check_number(s, t))
            return false;
        if (mgl_token_is(t, "auto") && !check_binding(s, i))
            return false;
        if (mgl_token_is(t, "[") && is(s, i + 1, "["))
            return refuse(s, t, "[: attributes may change how something is linked");
    }
    return true;
}

/* ---- declarations -----------------------------------------------------------------------------
 */

static bool check_body(scan *s, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        const mgl_token *t = &s->tokens->list[i];
        if (mgl_token_is(t, "static") && !is(s, i + 1, "constexpr"))
            return refuse(s, t, "keeps state beyond a task");
        if (mgl_token_is(t, "__shared__") && s->shared <= 0)
            return refuse(s, t, "needs `need shared: ...` of the launch region");
        if (mgl_token_is(t, "__device__") && !is(s, i - 1, "static"))
            return refuse(s, t, "is not allowed in a function");
    }
    return true;
}

static bool check_variable(scan *s, const mgl_declared *d)
{
    static const mgl_token unnamed = {.text = "a variable", .length = 10};
    mgl_token name = d->name ? *d->name : unnamed;
    name.line = d->line;
    if (d->of_file && (!d->is_constant || d->is_array))
        return refuse(s, &name, "is a variable at file scope: state that outlives a task");
    if (!d->of_file && d->is_static && (!d->is_constant || d->is_array))
        return refuse(s, &name, "is a static member: state that outlives a task");
    return true;
}

static bool check_declared(void *user, const mgl_declared *d)
{
    scan *s = user;
    if (d->kind == MGL_DECLARED_UNKNOWN)
        return mgl_scan_refuse(s->fault, d->line, "`%.*s`: %s", d->name->length, d->name->text,
                               d->why);
    if (d->kind == MGL_DECLARED_VARIABLE && !check_variable(s, d))
        return false;
    if (d->kind == MGL_DECLARED_PROTOTYPE && d->of_file)
        return mgl_scan_refuse(s->fault, d->line,
                               "a function without a body, or a variable, at file scope");
    if (d->kind == MGL_DECLARED_FUNCTION && !check_body(s, d->first, d->end))
        return false;
    const char *why = d->of_file && d->name ? mgl_scan_own_name(s->vocabulary, d->name) : NULL;
    return !why || refuse(s, d->name, why);
}

/* ---- all of it --------------------------------------------------------------------------------
 */

static mgl_status scan_expanded(scan *s, const mgl_tokens *words, mgl_error *err)
{
    mgl_tokens expanded;
    mgl_status status = mgl_expand(words, s->vocabulary, &expanded, s->fault, err);
    if (!status && !s->fault->line) {
        s->tokens = &expanded; /* its words again: a macro may have put them behind others */
        if (check_words(s) && mgl_declared_each(&expanded, check_declared, s))
            mgl_scan_asm(&expanded, s->fault);
    }
    mgl_tokens_clear(&expanded);
    return status;
}

/* A text whose launch region cannot be read has no tunables. */
static mgl_status scan_branches(const mgl_kernel_unit *unit, const char *text, size_t length,
                                const mgl_tokens *words, mgl_scan_fault *fault, mgl_error *err)
{
    size_t own_length;
    mgl_tokens own = {0};
    mgl_kernel_launch launch;
    const char *own_text = mgl_kernel_unit_text(unit, &own_length);
    if (mgl_kernel_launch_read(text, length, &launch, NULL))
        launch.tunable_count = 0;
    mgl_status status = mgl_lex(own_text, own_length, &own, fault, err);
    if (!status && !fault->line)
        mgl_scan_branches(words, &own, &launch, fault);
    mgl_tokens_clear(&own);
    return status;
}

mgl_status mgl_kernel_scan(const mgl_kernel_unit *unit, const char *text, size_t length,
                           int64_t shared, mgl_scan_fault *fault, mgl_error *err)
{
    mgl_tokens words = {0};
    mgl_vocabulary *vocabulary = NULL;
    *fault = (mgl_scan_fault){0};
    mgl_status status = mgl_vocabulary_open(unit, &vocabulary, err);
    if (!status)
        status = mgl_lex(text, length, &words, fault, err);
    scan s = {.vocabulary = vocabulary, .tokens = &words, .fault = fault, .shared = shared};
    if (!status && !fault->line && check_words(&s))
        status = scan_expanded(&s, &words, err);
    if (!status && !fault->line)
        status = scan_branches(unit, text, length, &words, fault, err);
    mgl_tokens_clear(&words);
    mgl_vocabulary_close(vocabulary);
    return status;
}

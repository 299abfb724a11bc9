/*
 * Normalizes CUDA C (kernel_digest.h): a scanner of the tokens of canonical texts (canonical.h), a
 * pass that finds the declared names, and a pass that writes the tokens with these names numbered.
 *
 * A name counts as declared if it follows another name, as in `float x`, `struct x` or `#define x`,
 * possibly with `*` or `&` between. Names in the list of an enum count too. Every other name
 * belongs to the language, the compiler or a header (`rsqrtf`, `threadIdx`) and is not changed.
 */
#include "vm/cuda/kernel_digest.h"

#include "base/memory.h"
#include "base/sha256.h"
#include "base/text.h"
#include "schedule/digest.h"
#include "vm/cuda/canonical.h"
#include "vm/cuda/compile.h"
#include "vm/cuda/sources.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct token {
    const char *at;
    size_t length; /* 0: the end of a preprocessor line */
} token;

typedef struct tokens {
    token *items; /* owned (count) */
    size_t count, capacity;
    bool failed;
} tokens;

static void push(tokens *t, const char *at, size_t length)
{
    void *items = t->items;
    t->failed = t->failed || !mgl_grow(&items, &t->capacity, t->count, sizeof *t->items);
    t->items = items;
    if (!t->failed)
        t->items[t->count++] = (token){at, length};
}

static bool is_name_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_word(token t)
{
    return t.length && (isalpha((unsigned char)*t.at) || *t.at == '_');
}

static bool is(token t, const char *text)
{
    return mgl_text_is(t.at, t.length, text);
}

/* ---- scanning ------------------------------------------------------------------------------- */

/* Returns the character after the string, number or other token that begins at `at`. */
static const char *skip_string(const char *at)
{
    const char quote = *at++;
    while (*at && *at != quote && *at != '\n')
        at += *at == '\\' && at[1] ? 2 : 1;
    return *at == quote ? at + 1 : at;
}

static const char *skip_token(const char *at)
{
    if (*at == '"' || *at == '\'')
        return skip_string(at);
    if (!is_name_letter(*at))
        return at + 1;
    while (is_name_letter(*at) || (*at == '.' && isdigit((unsigned char)at[-1])))
        at++;
    return at;
}

typedef struct unit {
    const mgl_cuda_source *sources; /* (count) */
    mgl_text *texts; /* (count) owned: canonical texts of the sources included so far */
    int count;
    bool *taken; /* (count) already included */
    tokens *out;
} unit;

static void scan(const unit *u, int index);

/* Handles an #include of one of the sources; false for other lines. */
static bool scan_include(const unit *u, const char *at)
{
    char name[256];
    if (sscanf(at, "# include \"%255[^\"]\"", name) != 1)
        return false;
    for (int i = 0; i < u->count; i++)
        if (!strcmp(u->sources[i].name, name)) {
            if (!u->taken[i])
                scan(u, i);
            return true;
        }
    return false;
}

/* Scans a source. In a canonical text, a line begins with `#` exactly if it is a directive. */
static void scan(const unit *u, int index)
{
    bool starts_line = true, in_directive = false;
    u->taken[index] = true;
    mgl_cuda_canonical((const char *)u->sources[index].text, &u->texts[index]);
    const char *at = u->texts[index].bytes;
    u->out->failed = u->out->failed || u->texts[index].failed;
    while (at && *at) {
        if (*at == '\n') {
            if (in_directive)
                push(u->out, at, 0);
            starts_line = true;
            in_directive = false;
            at++;
        } else if (*at == ' ') {
            at++;
        } else if (*at == '#' && starts_line &&
                   (scan_include(u, at) || !strncmp(at, "# pragma once", 13))) {
            at += strcspn(at, "\n");
        } else {
            const char *end = skip_token(at);
            in_directive = in_directive || (starts_line && *at == '#');
            starts_line = false;
            push(u->out, at, (size_t)(end - at));
            at = end;
        }
    }
}

/* ---- names ---------------------------------------------------------------------------------- */

enum { BUCKETS = 1 << 14 };

typedef struct name {
    token text;
    int number; /* number in order of appearance, from 1; 0: not written yet */
    struct name *next;
} name;

typedef struct names {
    name *buckets[BUCKETS];
    int numbers;
    bool failed;
} names;

static name **find(names *n, token t)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < t.length; i++)
        hash = (hash ^ (unsigned char)t.at[i]) * 16777619u;
    name **at = &n->buckets[hash % BUCKETS];
    while (*at && ((*at)->text.length != t.length || memcmp((*at)->text.at, t.at, t.length)))
        at = &(*at)->next;
    return at;
}

static void declare(names *n, token t)
{
    name **at = find(n, t);
    if (*at)
        return;
    *at = mgl_alloc_zero(1, sizeof **at);
    n->failed = n->failed || !*at;
    if (*at)
        (*at)->text = t;
}

/* A name after one of these words is used, not declared. */
static bool is_use(token t)
{
    static const char *const words[] = {
        "return",   "else",   "goto",      "case",   "sizeof",   "alignof", "new",
        "delete",   "if",     "ifdef",     "ifndef", "elif",     "defined", "include",
        "undef",    "pragma", "operator",  "asm",    "volatile", "do",      "throw",
        "requires", "const",  "constexpr", "static", "inline",   "extern",  "typedef"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is(t, words[i]))
            return true;
    return false;
}

static bool is_keyword(token t)
{
    static const char *const words[] = {
        "const",    "constexpr",     "static",   "inline",   "struct",   "enum",      "union",
        "typedef",  "template",      "typename", "class",    "void",     "bool",      "char",
        "short",    "int",           "long",     "unsigned", "signed",   "float",     "double",
        "auto",     "return",        "if",       "else",     "for",      "while",     "do",
        "switch",   "case",          "default",  "break",    "continue", "true",      "false",
        "nullptr",  "sizeof",        "alignas",  "operator", "public",   "private",   "using",
        "extern",   "volatile",      "asm",      "this",     "define",   "namespace", "goto",
        "restrict", "static_assert", "explicit", "friend",   "decltype", "noexcept",  "mutable"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is(t, words[i]))
            return true;
    return t.length > 2 && t.at[0] == '_' && t.at[1] == '_';
}

/* Declares the names of an enum's list, from its opening brace on. */
static void declare_enum(const tokens *t, size_t i, names *n)
{
    int depth = 0;
    do {
        const token before = t->items[i];
        depth += is(before, "{") || is(before, "(");
        depth -= is(before, "}") || is(before, ")");
        i++;
        if (depth == 1 && i < t->count && (is(before, "{") || is(before, ",")) &&
            is_word(t->items[i]) && !is_keyword(t->items[i]))
            declare(n, t->items[i]);
    } while (depth > 0 && i < t->count);
}

/* Whether the name at `i`, after `*` or `&`, may be a declaration: not a function called in a
 * product, and not an object whose member is accessed. */
static bool may_declare(const tokens *t, size_t i)
{
    static const char *const behind[] = {",", ")", ";", "=", "["};
    for (size_t k = 0; i + 1 < t->count && k < sizeof behind / sizeof *behind; k++)
        if (is(t->items[i + 1], behind[k]))
            return true;
    return false;
}

static void find_names(const tokens *t, names *n)
{
    for (size_t i = 0; i + 1 < t->count; i++) {
        size_t next = i + 1;
        if (!is_word(t->items[i]) || is_use(t->items[i]))
            continue;
        while (next < t->count &&
               (is(t->items[next], "*") || is(t->items[next], "&") || is(t->items[next], "const")))
            next++;
        if (next < t->count && is_word(t->items[next]) && !is_keyword(t->items[next]) &&
            (next == i + 1 || may_declare(t, next)))
            declare(n, t->items[next]);
        if (is(t->items[i], "enum"))
            for (size_t j = next; j < t->count && j < next + 4; j++)
                if (is(t->items[j], "{")) {
                    declare_enum(t, j, n);
                    break;
                }
    }
}

/* Whether the token is a member of an object that the text does not declare: `threadIdx.x`. */
static bool is_foreign_member(const tokens *t, size_t i, names *n)
{
    return i > 1 && is(t->items[i - 1], ".") && is_word(t->items[i - 2]) &&
           !*find(n, t->items[i - 2]);
}

static void write(const tokens *t, names *n, mgl_text *out)
{
    for (size_t i = 0; i < t->count; i++) {
        const token word = t->items[i];
        name *declared = is_word(word) && !is_foreign_member(t, i, n) ? *find(n, word) : NULL;
        if (!word.length) {
            mgl_text_put(out, "\n");
        } else if (declared) {
            if (!declared->number)
                declared->number = ++n->numbers;
            mgl_text_format(out, "n%d ", declared->number);
        } else {
            mgl_text_append(out, word.at, word.length);
            mgl_text_put(out, " ");
        }
    }
}

static void free_names(names *n)
{
    for (int i = 0; n && i < BUCKETS; i++)
        for (name *at = n->buckets[i], *next; at; at = next) {
            next = at->next;
            mgl_free(at);
        }
    mgl_free(n);
}

mgl_status mgl_cuda_normalize(const mgl_cuda_source *sources, int count, mgl_text *out,
                              mgl_error *err)
{
    tokens t = {0};
    names *n = mgl_alloc_zero(1, sizeof *n);
    bool *taken = mgl_alloc_zero((size_t)count, sizeof *taken);
    mgl_text *texts = mgl_alloc_zero((size_t)count, sizeof *texts);
    if (n && taken && texts) {
        scan(&(unit){sources, texts, count, taken, &t}, 0);
        find_names(&t, n);
        write(&t, n, out);
    }
    const bool failed = !n || !taken || !texts || t.failed || n->failed || out->failed;
    for (int i = 0; texts && i < count; i++)
        mgl_text_clear(&texts[i]);
    mgl_free(texts);
    mgl_free(taken);
    mgl_free(t.items);
    free_names(n);
    return failed ? mgl_fail_memory(err, out->length) : MGL_OK;
}

mgl_status mgl_cuda_kernel_digest(const mgl_program *program, const char *arch,
                                  char out[MGL_KERNEL_DIGEST], mgl_error *err)
{
    unsigned char digest[MGL_SHA256_BYTES];
    char digits[MGL_SHA256_HEX];
    mgl_text text = {0};
    mgl_status status = mgl_program_digest(program, digest, err);
    mgl_cuda_recipe *recipe = status ? NULL : mgl_alloc_zero(1, sizeof *recipe);
    if (!status && !recipe)
        status = mgl_fail_memory(err, sizeof *recipe);
    if (!status) {
        mgl_cuda_recipe_of(program, arch, 0, recipe);
        mgl_sha256_hex(digest, digits);
        mgl_text_format(&text, "%s\n", digits);
        for (int i = 0; i < recipe->option_count; i++)
            mgl_text_format(&text, "%s\n", recipe->options[i]);
        status = mgl_cuda_normalize(recipe->sources, recipe->source_count, &text, err);
    }
    if (!status) {
        mgl_sha256_of(text.bytes, text.length, digest);
        mgl_sha256_hex(digest, out);
    }
    mgl_free(recipe);
    mgl_text_clear(&text);
    return status;
}

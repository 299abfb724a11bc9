/* Implements declarations.h: one token scan collects the unknown names of a text; one scan per
 * source file prints the declarations of these names. */
#include "autotune/kernels/methods/declarations.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/kernels/gates/declare.h"
#include "base/memory.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/sources.h"

enum { MOST = 12000, MOST_COMMENT = 500, MOST_TYPE = 1400 };

/* The names to look for: names used by the text that the text does not declare, sorted. */
typedef struct names {
    mgl_token *list; /* (count) into the text */
    size_t count;
} names;

typedef struct finding {
    const mgl_tokens *tokens; /* tokens of the current file, without directives */
    const char *text;         /* text of the current file */
    names *wanted;
    mgl_text *out;
} finding;

static int compare(const void *a, const void *b)
{
    const mgl_token *x = a, *y = b;
    const int length = x->length < y->length ? x->length : y->length;
    const int order = memcmp(x->text, y->text, (size_t)length);
    return order ? order : x->length - y->length;
}

static mgl_token *find(const names *n, const mgl_token *word)
{
    return n->count ? bsearch(word, n->list, n->count, sizeof *n->list, compare) : NULL;
}

/* Removes preprocessor directives, which are not declarations. */
static void drop_directives(mgl_tokens *tokens)
{
    size_t kept = 0;
    bool directive = false;
    for (size_t i = 0; i < tokens->count; i++) {
        const mgl_token t = tokens->list[i];
        if (t.starts)
            directive = mgl_token_is(&t, "#");
        if (!directive)
            tokens->list[kept++] = t;
    }
    tokens->count = kept;
}

/* ---- the wanted names ------------------------------------------------------------------------ */

/* Removes a name that the text declares itself. */
static bool strike_out(void *user, const mgl_declared *d)
{
    mgl_token *at = d->name && d->name->kind == MGL_TOKEN_WORD ? find(user, d->name) : NULL;
    if (at)
        at->kind = MGL_TOKEN_BRANCH;
    return true;
}

static mgl_status list_names(mgl_tokens *tokens, names *out, mgl_error *err)
{
    out->list = mgl_alloc_zero(tokens->count + 1, sizeof *out->list);
    if (!out->list)
        return mgl_fail_memory(err, tokens->count * sizeof *out->list);
    for (size_t i = 0; i < tokens->count; i++)
        if (tokens->list[i].kind == MGL_TOKEN_WORD)
            out->list[out->count++] = tokens->list[i];
    if (out->count)
        qsort(out->list, out->count, sizeof *out->list, compare);
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++)
        if (!kept || compare(&out->list[kept - 1], &out->list[i]) != 0)
            out->list[kept++] = out->list[i];
    out->count = kept;
    drop_directives(tokens);
    mgl_declared_each(tokens, strike_out, out);
    return MGL_OK;
}

/* ---- printing a declaration ------------------------------------------------------------------ */

/* The comment directly before `at`, with only whitespace between; NULL: none. */
static const char *comment_before(const finding *f, const char *at)
{
    while (at > f->text && isspace((unsigned char)at[-1]))
        at--;
    if (at - f->text < 4 || at[-1] != '/' || at[-2] != '*')
        return NULL;
    const char *end = at;
    for (at -= 4; at >= f->text; at--)
        if (at[0] == '/' && at[1] == '*')
            return end - at <= MOST_COMMENT ? at : NULL;
    return NULL;
}

static const char *end_of(const mgl_token *t)
{
    return t->text + t->length;
}

/* The index of the first word of the declaration that contains word `at`. */
static size_t begin_of(const mgl_tokens *t, size_t at)
{
    while (at > 0 && !mgl_token_is(&t->list[at - 1], ";") && !mgl_token_is(&t->list[at - 1], "}"))
        at--;
    return at;
}

/* Appends words `first` to `last` as in the source. */
static void put_words(const finding *f, size_t first, size_t last)
{
    const char *at = f->tokens->list[first].text;
    mgl_text_append(f->out, at, (size_t)(end_of(&f->tokens->list[last]) - at));
}

static void put_comment(const finding *f, size_t first)
{
    const char *comment = comment_before(f, f->tokens->list[first].text);
    if (comment) {
        mgl_text_append(f->out, comment, (size_t)(strstr(comment, "*/") + 2 - comment));
        mgl_text_put(f->out, "\n");
    }
}

/* Storage and inlining specifiers, which are not printed: they do not describe what a function
 * does. */
static bool is_storage(const mgl_token *t)
{
    return mgl_token_is(t, "static") || mgl_token_is(t, "inline") ||
           mgl_token_is(t, "__device__") || mgl_token_is(t, "__forceinline__") ||
           mgl_token_is(t, "__noinline__");
}

static void put_function(const finding *f, const mgl_declared *d)
{
    const mgl_tokens *t = f->tokens;
    const size_t first = begin_of(t, d->first - 1);
    bool begun = false;
    put_comment(f, first);
    for (size_t i = first; i < d->first; i++) {
        if (is_storage(&t->list[i]))
            continue;
        if (begun && t->list[i].apart)
            mgl_text_put(f->out, " ");
        mgl_text_append(f->out, t->list[i].text, (size_t)t->list[i].length);
        begun = true;
    }
    mgl_text_put(f->out, ";\n");
}

/* Prints the whole type if it is short. */
static void put_type(const finding *f, size_t name)
{
    const mgl_tokens *t = f->tokens;
    const size_t first = begin_of(t, name);
    size_t last = name;
    while (last < t->count && !mgl_token_is(&t->list[last], "{") &&
           !mgl_token_is(&t->list[last], ";"))
        last++;
    if (last < t->count && mgl_token_is(&t->list[last], "{"))
        last = mgl_tokens_behind(t, last);
    if (last >= t->count || end_of(&t->list[last]) - t->list[first].text > MOST_TYPE)
        last = name;
    put_comment(f, first);
    put_words(f, first, last);
    mgl_text_put(f->out, mgl_token_is(&t->list[last], ";") ? "\n" : ";\n");
}

/* "HALF = 2 * WARPS". */
static void put_enumerator(const finding *f, size_t name)
{
    const mgl_tokens *t = f->tokens;
    size_t last = name;
    for (int depth = 0; last + 1 < t->count; last++) {
        const mgl_token *next = &t->list[last + 1];
        depth += mgl_token_is(next, "(") - mgl_token_is(next, ")");
        if (mgl_token_is(next, "}") || (depth == 0 && mgl_token_is(next, ",")))
            break;
    }
    put_words(f, name, last);
    mgl_text_put(f->out, "\n");
}

static bool tell(void *user, const mgl_declared *d)
{
    finding *f = user;
    mgl_token *wanted =
        d->name && d->name->kind == MGL_TOKEN_WORD ? find(f->wanted, d->name) : NULL;
    if (!wanted || wanted->kind != MGL_TOKEN_WORD || f->out->length > MOST)
        return true;
    const size_t name = (size_t)(d->name - f->tokens->list);
    if (d->kind == MGL_DECLARED_FUNCTION && d->of_file)
        put_function(f, d);
    else if (d->kind == MGL_DECLARED_TYPE && d->of_file)
        put_type(f, name);
    else if (d->kind == MGL_DECLARED_ENUMERATOR)
        put_enumerator(f, name);
    else
        return true;
    if (d->kind != MGL_DECLARED_FUNCTION) /* a function may have overloads, so more declarations of
                                           * its name may follow */
        wanted->kind = MGL_TOKEN_BRANCH;
    return true;
}

/* ---- all files ------------------------------------------------------------------------------- */

static mgl_status look_into(const mgl_cuda_source *source, names *wanted, mgl_text *out,
                            mgl_error *err)
{
    mgl_tokens tokens;
    mgl_scan_fault fault = {0};
    const char *text = (const char *)source->text;
    finding f = {&tokens, text, wanted, out};
    mgl_status status = mgl_lex(text, strlen(text), &tokens, &fault, err);
    if (!status && !fault.line) {
        drop_directives(&tokens);
        mgl_declared_each(&tokens, tell, &f);
    }
    mgl_tokens_clear(&tokens);
    return status;
}

mgl_status mgl_declarations_put(const mgl_kernel_unit *unit, const char *text, size_t length,
                                mgl_text *out, mgl_error *err)
{
    mgl_tokens tokens;
    mgl_scan_fault fault = {0};
    mgl_text found = {0};
    names wanted = {0};
    mgl_status status = mgl_lex(text, length, &tokens, &fault, err);
    if (!status)
        status = list_names(&tokens, &wanted, err);
    for (int i = 0; i < mgl_cuda_source_count && !status; i++)
        if (strcmp(mgl_cuda_sources[i].name, unit->file) != 0)
            status = look_into(&mgl_cuda_sources[i], &wanted, &found, err);
    mgl_tokens_clear(&tokens);
    mgl_free(wanted.list);
    if (!status && found.failed)
        status = mgl_fail_memory(err, MOST);
    mgl_text_append(out, found.bytes, found.length);
    mgl_text_clear(&found);
    return status;
}

void mgl_declarations_put_words(mgl_text *out)
{
    static const char *const words[] = {
#define MGL_ALLOWED(word) #word,
#include "autotune/kernels/gates/words.def"
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        mgl_text_format(out, "%s%s", i ? ", " : "", words[i]);
}

/* Implements expand.h: checks the directives of a text, and expands its function-like and
 * object-like macros recursively. */
#include "autotune/kernels/gates/expand.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { MOST_MACROS = 256, MOST_PARAMETERS = 16, MOST_DEPTH = 32, MOST_TOKENS = 1 << 20 };

typedef struct macro {
    mgl_token name;
    bool takes; /* the macro has arguments */
    mgl_token parameters[MOST_PARAMETERS];
    int parameter_count;
    size_t first, end; /* tokens of its body in the text */
    bool active;       /* the macro is being expanded; a second use is recursive */
} macro;

/* An open conditional. Each of its branches must close exactly the brackets that it opens. `depth`
 * is the number of brackets that are open at the #if. */
typedef struct condition {
    int line, depth;
    bool guard; /* the include guard of the file */
} condition;

typedef struct expander {
    const mgl_tokens *in;
    const mgl_vocabulary *vocabulary;
    mgl_tokens *out;
    mgl_scan_fault *fault;
    macro *macros; /* (macro_count) */
    int macro_count;
    condition open[MOST_DEPTH];
    int open_count;
    size_t guard_at;    /* the #define of the include guard, if there is one */
    char brackets[256]; /* (depth) the brackets that are open */
    int depth;
    bool failed; /* memory ran out */
} expander;

static bool is(const mgl_tokens *t, size_t at, const char *text)
{
    return at < t->count && mgl_token_is(&t->list[at], text);
}

static bool refuse(expander *x, size_t at, const char *what)
{
    const mgl_token *t = &x->in->list[at < x->in->count ? at : x->in->count - 1];
    return mgl_scan_refuse(x->fault, t->line, "`%.*s`: %s", t->length > 60 ? 60 : t->length,
                           t->text, what);
}

static bool put(expander *x, mgl_tokens *to, const mgl_token *token)
{
    if (to->count < MOST_TOKENS && mgl_tokens_add(to, token))
        return true;
    x->failed = x->failed || to->count < MOST_TOKENS;
    return mgl_scan_refuse(x->fault, token->line, "its macros make more than %d words",
                           MOST_TOKENS);
}

/* ---- names ------------------------------------------------------------------------------------
 */

static bool starts_with(const mgl_token *t, const char *start)
{
    const size_t n = strlen(start);
    return (size_t)t->length >= n && !memcmp(t->text, start, n);
}

const char *mgl_scan_own_name(const mgl_vocabulary *vocabulary, const mgl_token *name)
{
    /* the prefixes of names that the kernel's macros make by joining words */
    static const char *const starts[] = {"MGL_",   "mgl_",     "OP_",      "FAMILY_",  "VARIANT_",
                                         "HAS_",   "prepare_", "finish_",  "consume_", "do_",
                                         "AHEAD_", "NEEDS_",   "PREPARE_", "ALONE_",   "CONSUME_",
                                         "BEGIN_", "FINISH_",  "DTYPE_",   "TUNE_"};
    const unsigned bits = mgl_vocabulary_look(vocabulary, name);
    if (bits & MGL_WORD_DECLARED)
        return NULL;
    if (name->text[0] == '_' || strstr(name->text, "__") == name->text)
        return "names with _ in front are the compiler's";
    if (bits & MGL_WORD_ELSEWHERE)
        return "is a name that other files of the kernel have: take another one";
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (starts_with(name, starts[i]))
            return "begins as the kernel's own names do: take another one";
    return NULL;
}

/* ---- directives -------------------------------------------------------------------------------
 */

/* Returns the position after the directive whose `#` is at `at`. */
static size_t behind_line(const mgl_tokens *t, size_t at)
{
    for (at++; at < t->count && !t->list[at].starts; at++)
        ;
    return at;
}

static macro *find_macro(const expander *x, const mgl_token *name)
{
    for (int i = 0; i < x->macro_count; i++)
        if (x->macros[i].name.length == name->length &&
            !memcmp(x->macros[i].name.text, name->text, (size_t)name->length))
            return &x->macros[i];
    return NULL;
}

/* Whether the directive is the #define of the include guard: it directly follows #ifndef GUARD, and
 * the unit's original text contains the name. */
static bool is_guard(const expander *x, size_t at, size_t end)
{
    return x->open_count == 1 && x->open[0].guard && at == x->guard_at && end == at + 3 &&
           (mgl_vocabulary_look(x->vocabulary, &x->in->list[at + 2]) & MGL_WORD_OWN);
}

static bool check_body(expander *x, const macro *m)
{
    char open[64];
    int depth = 0;
    for (size_t i = m->first; i < m->end; i++) {
        const mgl_token *t = &x->in->list[i];
        if (mgl_token_is(t, "asm") || mgl_token_is(t, "static") || mgl_token_is(t, "__shared__"))
            return refuse(x, i, "is not allowed in a macro");
        if (t->kind != MGL_TOKEN_MARK)
            continue;
        if (t->text[0] == '#')
            return refuse(x, i, "macros may not join words or make strings of them");
        if (strchr("({[", t->text[0])) {
            if (depth == (int)sizeof open)
                return refuse(x, i, "too many brackets are open");
            open[depth++] = t->text[0];
        } else if (strchr(")}]", t->text[0])) {
            const char *pair = t->text[0] == ')' ? "(" : t->text[0] == '}' ? "{" : "[";
            if (depth == 0 || open[--depth] != *pair)
                return refuse(x, i, "brackets in a macro have to match");
        }
    }
    return depth == 0 || refuse(x, m->end - 1, "brackets in a macro have to match");
}

static bool read_parameters(expander *x, macro *m, size_t *at, size_t end)
{
    size_t i = *at + 1;
    m->takes = true;
    while (i < end && !is(x->in, i, ")")) {
        if (x->in->list[i].kind != MGL_TOKEN_WORD || m->parameter_count == MOST_PARAMETERS)
            return refuse(x, i, "a macro takes 16 named parameters at most, and no `...`");
        m->parameters[m->parameter_count++] = x->in->list[i++];
        if (is(x->in, i, ","))
            i++;
        else if (!is(x->in, i, ")"))
            return refuse(x, i < end ? i : end - 1, "the parameters of a macro do not end");
    }
    *at = i + 1;
    return i < end || refuse(x, end - 1, "the parameters of a macro do not end");
}

static bool define(expander *x, size_t at, size_t end)
{
    macro m = {0};
    size_t i = at + 2;
    if (i >= end || x->in->list[i].kind != MGL_TOKEN_WORD)
        return refuse(x, at, "a #define without a name");
    if (is_guard(x, at, end))
        return true;
    m.name = x->in->list[i];
    const char *why = mgl_scan_own_name(x->vocabulary, &m.name);
    if (!why && (mgl_vocabulary_look(x->vocabulary, &m.name) & MGL_WORD_DECLARED))
        why = "is declared in the unit: a macro may not replace it";
    if (why)
        return refuse(x, i, why);
    if (x->open_count > (x->open_count > 0 && x->open[0].guard))
        return refuse(x, i, "a macro may not be defined under a condition");
    if (find_macro(x, &m.name))
        return refuse(x, i, "a macro may not be defined twice");
    if (x->macro_count == MOST_MACROS)
        return refuse(x, i, "more than 256 macros");
    i++;
    if (i < end && is(x->in, i, "(") && !x->in->list[i].apart && !read_parameters(x, &m, &i, end))
        return false;
    m.first = i;
    m.end = end;
    x->macros[x->macro_count++] = m;
    return check_body(x, &m);
}

static bool include(expander *x, size_t at, size_t end)
{
    if (end != at + 3 || x->in->list[at + 2].kind != MGL_TOKEN_STRING)
        return refuse(x, at + 1, "only an #include of \"...\" as the unit's family has it");
    if (x->depth > 0 || x->open_count > (x->open_count > 0 && x->open[0].guard))
        return refuse(x, at + 1, "an #include must be at file scope, outside of conditions");
    if (!(mgl_vocabulary_look(x->vocabulary, &x->in->list[at + 2]) & MGL_WORD_INCLUDE))
        return refuse(x, at + 2, "no file that units of this family include");
    return true;
}

static bool pragma(expander *x, size_t at, size_t end)
{
    if (!is(x->in, at + 2, "unroll"))
        return refuse(x, at + 1, "the only pragma allowed is `#pragma unroll`");
    for (size_t i = at + 3; i < end; i++) {
        const mgl_token *t = &x->in->list[i];
        if (t->kind == MGL_TOKEN_STRING)
            return refuse(x, i, "a string in a pragma");
        if (i > at + 3 && t->kind != MGL_TOKEN_MARK &&
            (t[-1].kind != MGL_TOKEN_MARK || t[-1].text[0] == ')'))
            return refuse(x, i, "the only pragma allowed is `#pragma unroll` with one number");
    }
    return true;
}

static bool put_branch(expander *x, const mgl_token *at)
{
    mgl_token branch = *at;
    branch.kind = MGL_TOKEN_BRANCH;
    return put(x, x->out, &branch);
}

static bool open_condition(expander *x, size_t at, size_t end)
{
    if (x->open_count == MOST_DEPTH)
        return refuse(x, at + 1, "more than 32 conditions are open");
    const bool guard = x->open_count == 0 && x->out->count == 0 && is(x->in, at + 1, "ifndef") &&
                       end == at + 3 && is(x->in, end, "#") && is(x->in, end + 1, "define") &&
                       end + 2 < x->in->count &&
                       x->in->list[end + 2].length == x->in->list[at + 2].length &&
                       !memcmp(x->in->list[end + 2].text, x->in->list[at + 2].text,
                               (size_t)x->in->list[at + 2].length);
    if (guard)
        x->guard_at = end;
    x->open[x->open_count++] = (condition){x->in->list[at].line, guard ? 0 : x->depth, guard};
    return put_branch(x, &x->in->list[at]);
}

static bool go_on_condition(expander *x, size_t at, bool ends)
{
    if (x->open_count == 0)
        return refuse(x, at + 1, "has no matching #if");
    if (x->depth != x->open[x->open_count - 1].depth)
        return refuse(x, at + 1, "brackets opened in a branch must be closed in it");
    if (ends)
        x->open_count--;
    return put_branch(x, &x->in->list[at]);
}

static bool take_directive(expander *x, size_t at, size_t end)
{
    const mgl_tokens *t = x->in;
    const size_t name = at + 1;
    if (name >= end || t->list[name].kind != MGL_TOKEN_WORD)
        return refuse(x, at, "a directive without a name");
    if (is(t, name, "define"))
        return define(x, at, end);
    if (is(t, name, "include"))
        return include(x, at, end) && put_branch(x, &t->list[at]);
    if (is(t, name, "pragma"))
        return pragma(x, at, end);
    if (is(t, name, "if") || is(t, name, "ifdef") || is(t, name, "ifndef"))
        return open_condition(x, at, end);
    if (is(t, name, "elif") || is(t, name, "else"))
        return go_on_condition(x, at, false);
    if (is(t, name, "endif"))
        return go_on_condition(x, at, true);
    return refuse(x, name, "is not a directive that a unit may have");
}

/* ---- macros -----------------------------------------------------------------------------------
 */

typedef struct arguments {
    mgl_tokens of[MOST_PARAMETERS];
    int count;
} arguments;

static void clear_arguments(arguments *a)
{
    for (int i = 0; i < MOST_PARAMETERS; i++)
        mgl_tokens_clear(&a->of[i]);
}

static bool expand_list(expander *x, const mgl_tokens *in, mgl_tokens *out, int depth);

/* Reads the arguments of a macro, from the `(` at *at. Moves *at after the closing `)`. */
static bool read_arguments(expander *x, const mgl_tokens *in, size_t *at, arguments *a)
{
    int depth = 0;
    for (size_t i = *at; i < in->count; i++) {
        const mgl_token *t = &in->list[i];
        const bool mark = t->kind == MGL_TOKEN_MARK;
        if (t->kind == MGL_TOKEN_BRANCH)
            return mgl_scan_refuse(x->fault, t->line, "a directive within a macro's arguments");
        if (mark && depth == 1 && t->text[0] == ',') {
            if (++a->count >= MOST_PARAMETERS)
                return mgl_scan_refuse(x->fault, t->line, "a macro with too many arguments");
            continue;
        }
        if (mark && t->text[0] == ')' && depth == 1) {
            a->count++;
            *at = i + 1;
            return true;
        }
        if (depth > 0 && !put(x, &a->of[a->count], t))
            return false;
        depth += mark && strchr("({[", t->text[0]) != NULL;
        depth -= mark && strchr(")}]", t->text[0]) != NULL;
    }
    return mgl_scan_refuse(x->fault, in->list[*at].line, "a macro's arguments do not end");
}

/* Copies the body of a macro with the expanded arguments in place of the parameters. */
static bool substitute(expander *x, const macro *m, const arguments *a, int line, mgl_tokens *out,
                       int depth)
{
    for (size_t i = m->first; i < m->end; i++) {
        mgl_token t = x->in->list[i];
        int parameter = -1;
        for (int p = 0; p < m->parameter_count && t.kind == MGL_TOKEN_WORD; p++)
            if (t.length == m->parameters[p].length &&
                !memcmp(t.text, m->parameters[p].text, (size_t)t.length))
                parameter = p;
        t.line = line;
        t.starts = false;
        if (parameter < 0 ? !put(x, out, &t) : !expand_list(x, &a->of[parameter], out, depth + 1))
            return false;
    }
    return true;
}

static bool ends_in_macro(const expander *x, const mgl_tokens *made)
{
    if (made->count == 0 || made->list[made->count - 1].kind != MGL_TOKEN_WORD)
        return false;
    const macro *m = find_macro(x, &made->list[made->count - 1]);
    return m && m->takes;
}

/* Expands the macro whose name is at *at. Moves *at after the name and its arguments. */
static bool expand_macro(expander *x, const mgl_tokens *in, size_t *at, macro *m, mgl_tokens *out,
                         int depth)
{
    const mgl_token *name = &in->list[*at];
    arguments a = {0};
    mgl_tokens body = {0}, made = {0};
    if (m->active || depth > MOST_DEPTH)
        return mgl_scan_refuse(x->fault, name->line, "macro `%.*s` expands to itself", name->length,
                               name->text);
    (*at)++;
    bool good = true;
    if (m->takes) {
        good = read_arguments(x, in, at, &a);
        const bool none = a.count == 1 && a.of[0].count == 0 && m->parameter_count == 0;
        if (good && a.count != m->parameter_count && !none)
            good = mgl_scan_refuse(x->fault, name->line, "macro `%.*s` takes %d arguments",
                                   name->length, name->text, m->parameter_count);
    }
    good = good && substitute(x, m, &a, name->line, &body, depth);
    m->active = true;
    good = good && expand_list(x, &body, &made, depth + 1);
    m->active = false;
    if (good && ends_in_macro(x, &made))
        good = mgl_scan_refuse(x->fault, name->line,
                               "macro `%.*s` ends with the name of another macro", name->length,
                               name->text);
    for (size_t i = 0; i < made.count && good; i++)
        good = put(x, out, &made.list[i]);
    clear_arguments(&a);
    mgl_tokens_clear(&body);
    mgl_tokens_clear(&made);
    return good;
}

static bool expand_list(expander *x, const mgl_tokens *in, mgl_tokens *out, int depth)
{
    for (size_t i = 0; i < in->count;) {
        const mgl_token *t = &in->list[i];
        macro *m = t->kind == MGL_TOKEN_WORD ? find_macro(x, t) : NULL;
        if (m && (!m->takes || is(in, i + 1, "("))) {
            if (!expand_macro(x, in, &i, m, out, depth))
                return false;
        } else {
            if (!put(x, out, t))
                return false;
            i++;
        }
    }
    return true;
}

/* ---- the text ---------------------------------------------------------------------------------
 */

static bool note_bracket(expander *x, size_t at)
{
    const mgl_token *t = &x->in->list[at];
    if (t->kind != MGL_TOKEN_MARK)
        return true;
    if (t->text[0] == '#')
        return refuse(x, at, "is only allowed in a directive");
    if (strchr("({[", t->text[0])) {
        if (x->depth == (int)sizeof x->brackets)
            return refuse(x, at, "too many brackets are open");
        x->brackets[x->depth++] = t->text[0];
        return true;
    }
    if (!strchr(")}]", t->text[0]))
        return true;
    const char pair = t->text[0] == ')' ? '(' : t->text[0] == '}' ? '{' : '[';
    if (x->open_count > 0 && x->depth == x->open[x->open_count - 1].depth)
        return refuse(x, at, "a branch of a condition may not close what it did not open");
    if (x->depth == 0 || x->brackets[--x->depth] != pair)
        return refuse(x, at, "it does not match the bracket that is open");
    return true;
}

/* Expands all tokens up to the next directive as one list, because the arguments of a macro may be
 * on several lines. */
static bool expand_lines(expander *x, size_t *at)
{
    mgl_tokens lines = {0};
    bool good = true;
    size_t i = *at;
    for (; i < x->in->count && good; i++) {
        if (x->in->list[i].starts && is(x->in, i, "#"))
            break;
        good = note_bracket(x, i) && put(x, &lines, &x->in->list[i]);
    }
    *at = i;
    good = good && expand_list(x, &lines, x->out, 0);
    if (good && i < x->in->count && ends_in_macro(x, &lines))
        good = refuse(x, i, "is between a macro and its arguments");
    mgl_tokens_clear(&lines);
    return good;
}

static bool expand(expander *x)
{
    for (size_t i = 0; i < x->in->count;) {
        if (x->in->list[i].starts && is(x->in, i, "#")) {
            const size_t end = behind_line(x->in, i);
            if (!take_directive(x, i, end))
                return false;
            i = end;
        } else if (!expand_lines(x, &i)) {
            return false;
        }
    }
    const int last = x->in->count ? x->in->list[x->in->count - 1].line : 1;
    if (x->open_count > 0)
        return mgl_scan_refuse(x->fault, x->open[x->open_count - 1].line,
                               "a condition that does not end");
    return x->depth == 0 || mgl_scan_refuse(x->fault, last, "brackets are open at the end");
}

/* Rejects a macro name that was not expanded: the text after a macro of the kernel could become its
 * arguments. */
static bool check_left(expander *x)
{
    for (size_t i = 0; i < x->out->count; i++) {
        const mgl_token *t = &x->out->list[i];
        const macro *m = t->kind == MGL_TOKEN_WORD ? find_macro(x, t) : NULL;
        if (m)
            return mgl_scan_refuse(x->fault, t->line, "macro `%.*s` is used without its arguments",
                                   t->length, t->text);
    }
    return true;
}

mgl_status mgl_expand(const mgl_tokens *in, const mgl_vocabulary *vocabulary, mgl_tokens *out,
                      mgl_scan_fault *fault, mgl_error *err)
{
    expander x = {.in = in, .vocabulary = vocabulary, .out = out, .fault = fault};
    *out = (mgl_tokens){0};
    *fault = (mgl_scan_fault){0};
    x.macros = mgl_alloc_zero(MOST_MACROS, sizeof *x.macros);
    if (!x.macros)
        return mgl_fail_memory(err, MOST_MACROS * sizeof *x.macros);
    if (expand(&x))
        check_left(&x);
    mgl_free(x.macros);
    if (!x.failed)
        return MGL_OK;
    mgl_tokens_clear(out);
    return mgl_fail_memory(err, sizeof(mgl_token));
}

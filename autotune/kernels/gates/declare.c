/* Implements declare.h: a parser of declarations by their outline. A declaration ends at a `;` or
 * at the end of a function body. Brackets are skipped with their contents, and the few remaining
 * words show the kind of the declaration. */
#include "autotune/kernels/gates/declare.h"

#include <string.h>

typedef struct walk {
    const mgl_token *list;
    size_t end;
    mgl_declared_fn *tell;
    void *user;
    bool of_file;
} walk;

/* What has been read of the current declaration. Positions are indices of tokens. */
typedef struct reading {
    size_t first;         /* first word */
    size_t paren, equals; /* first `(`, first `=` or initializer; SIZE_MAX: none */
    size_t key;           /* `struct`, `class`, `union` or `enum`; SIZE_MAX: none */
    bool alias, is_static, is_constant, is_array, is_assert;
} reading;

static bool is(const walk *w, size_t at, const char *text)
{
    return at < w->end && mgl_token_is(&w->list[at], text);
}

static bool is_word(const walk *w, size_t at)
{
    return at < w->end && w->list[at].kind == MGL_TOKEN_WORD;
}

static size_t behind(const mgl_token *list, size_t end, size_t at)
{
    int depth = 0;
    for (; at < end; at++) {
        if (list[at].kind != MGL_TOKEN_MARK)
            continue;
        if (strchr("({[", list[at].text[0]))
            depth++;
        else if (strchr(")}]", list[at].text[0]) && --depth <= 0)
            return at + 1;
    }
    return end;
}

size_t mgl_tokens_behind(const mgl_tokens *tokens, size_t at)
{
    return behind(tokens->list, tokens->count, at);
}

/* The position after the parameter list of a template, whose first `<` is at `at`. Returns the end
 * of the text if the list is not closed before a `;` or a body: then some `<` was an operator. */
static size_t behind_angle(const walk *w, size_t at)
{
    int depth = 0;
    while (at < w->end) {
        if (is(w, at, ";") || is(w, at, "{") || is(w, at, "}"))
            return w->end;
        if (is(w, at, "("))
            at = behind(w->list, w->end, at);
        else {
            depth += is(w, at, "<");
            depth -= is(w, at, ">");
            at++;
            if (depth == 0)
                break;
        }
    }
    return at;
}

/* The last name before `at`, outside of template arguments, parentheses and [...]; NULL: none. */
static const mgl_token *name_before(const walk *w, size_t first, size_t at)
{
    int depth = 0;
    while (at > first) {
        at--;
        if (is(w, at, ">") || is(w, at, "]") || is(w, at, ")"))
            depth++;
        else if (is(w, at, "<") || is(w, at, "[") || is(w, at, "("))
            depth--;
        else if (depth == 0 && is_word(w, at))
            return &w->list[at];
    }
    return NULL;
}

static bool tell(const walk *w, const reading *r, mgl_declared_kind kind, const mgl_token *name)
{
    const mgl_declared declared = {.kind = kind,
                                   .name = name,
                                   .line = w->list[r->first].line,
                                   .of_file = w->of_file,
                                   .is_static = r->is_static,
                                   .is_constant = r->is_constant,
                                   .is_array = r->is_array};
    return w->tell(w->user, &declared);
}

static bool tell_unknown(const walk *w, size_t at, const char *why)
{
    const size_t last = at < w->end ? at : w->end - 1;
    const mgl_declared declared = {.kind = MGL_DECLARED_UNKNOWN,
                                   .name = &w->list[last],
                                   .why = why,
                                   .line = w->list[last].line,
                                   .of_file = w->of_file};
    return w->tell(w->user, &declared);
}

static bool walk_scope(walk *w, size_t at);

static bool walk_enumerators(const walk *w, size_t at, size_t end)
{
    for (bool begins = true; at < end; at++) {
        const reading r = {.first = at};
        if (begins && is_word(w, at) && !tell(w, &r, MGL_DECLARED_ENUMERATOR, &w->list[at]))
            return false;
        begins = is(w, at, ",") || w->list[at].kind == MGL_TOKEN_BRANCH;
        if (is(w, at, "(") || is(w, at, "{") || is(w, at, "["))
            at = behind(w->list, w->end, at) - 1;
    }
    return true;
}

/* Reports a type whose body is at `at`. A `;` or variables of the type follow the body. */
static bool walk_type(walk *w, const reading *r, size_t at, size_t *next)
{
    const size_t end = behind(w->list, w->end, at);
    const bool named = is_word(w, r->key + 1) && r->key + 1 < at;
    size_t name = r->key + 1;
    if (named && (is(w, name, "class") || is(w, name, "struct"))) /* enum class */
        name++;
    while (named && (is(w, name, "alignas") || is(w, name, "__align__")) && name < at)
        name = behind(w->list, w->end, name + 1);
    if (!tell(w, r, MGL_DECLARED_TYPE, named && is_word(w, name) ? &w->list[name] : NULL))
        return false;
    if (!named && w->of_file && is(w, r->key, "union") && is(w, end, ";") &&
        !tell(w, r, MGL_DECLARED_VARIABLE, NULL)) /* the members of an anonymous union are variables
                                                   * of the enclosing scope */
        return false;
    walk inner = *w;
    inner.end = end > at ? end - 1 : end;
    bool go = true;
    if (is(w, r->key, "enum")) {
        inner.of_file = w->of_file && !is(w, r->key + 1, "class") && !is(w, r->key + 1, "struct");
        go = walk_enumerators(&inner, at + 1, inner.end);
    } else {
        inner.of_file = false;
        go = walk_scope(&inner, at + 1);
    }
    if (go && !is(w, end, ";") && !r->alias)
        go = tell(w, r, MGL_DECLARED_VARIABLE, is_word(w, end) ? &w->list[end] : NULL);
    *next = end;
    while (*next < w->end && !is(w, *next, ";"))
        (*next)++;
    if (go && r->alias && *next > end)
        go = tell(w, r, MGL_DECLARED_TYPE, name_before(w, end, *next));
    (*next)++;
    return go;
}

/* Whether a function returns an array, as in `float (*name(...))[2]`. Its body is at `at`. */
static bool returns_array(const walk *w, size_t paren, size_t at)
{
    if (!is(w, paren + 1, "*") || !is_word(w, paren + 2) || !is(w, paren + 3, "("))
        return false;
    const size_t end = behind(w->list, w->end, paren + 3);
    return is(w, end, ")") && is(w, end + 1, "[") && behind(w->list, w->end, end + 1) == at;
}

/* Whether a word cannot be the name of a function. */
static bool is_specifier(const mgl_token *t)
{
    static const char *const words[] = {"static",
                                        "inline",
                                        "constexpr",
                                        "const",
                                        "volatile",
                                        "__device__",
                                        "__forceinline__",
                                        "typename",
                                        "struct",
                                        "class",
                                        "union",
                                        "enum",
                                        "auto",
                                        "decltype",
                                        "int",
                                        "unsigned",
                                        "signed",
                                        "long",
                                        "short",
                                        "char",
                                        "float",
                                        "double",
                                        "bool",
                                        "void",
                                        "extern",
                                        "__noinline__"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (mgl_token_is(t, words[i]))
            return true;
    return false;
}

/* Whether the parentheses contain parameters. In `num (kept){5}` they contain the name of a
 * variable.
 */
static bool are_parameters(const walk *w, size_t paren)
{
    const size_t first = paren + 1;
    if (is(w, first, ")") || (is(w, first, "void") && is(w, first + 1, ")")))
        return true;
    return is_word(w, first) && !is(w, first + 1, ")") && !is(w, first + 1, "[") &&
           !(is(w, first + 1, "::") && !is_word(w, first + 2));
}

/* Whether the parentheses are preceded by the name of a function, and not by a type that is
 * followed by a variable's name in parentheses. */
static bool is_named(const walk *w, const reading *r)
{
    const mgl_token *name = name_before(w, r->first, r->paren);
    return name && !is_specifier(name) && are_parameters(w, r->paren) &&
           (!w->of_file || name > &w->list[r->first]) &&
           !(name > w->list && mgl_token_is(name - 1, "::"));
}

static bool tell_function(const walk *w, const reading *r, size_t at, size_t *next)
{
    const bool array = returns_array(w, r->paren, at);
    *next = behind(w->list, w->end, at);
    if (!array && !is_named(w, r))
        return tell_unknown(w, r->paren, "not a function with a type, a name and parameters");
    if (!is(w, at - 1, ")") && !is(w, at - 1, "const") && !array)
        return tell_unknown(w, at - 1, "a body must follow the parameters directly");
    const mgl_declared declared = {.kind = MGL_DECLARED_FUNCTION,
                                   .name = array ? &w->list[r->paren + 2]
                                                 : name_before(w, r->first, r->paren),
                                   .line = w->list[r->first].line,
                                   .of_file = w->of_file,
                                   .is_static = r->is_static,
                                   .first = at,
                                   .end = *next};
    return w->tell(w->user, &declared);
}

/* Reports the variables or members of a declaration: each word before a `,`, `=`, `[`, `{`, `:` or
 * the final `;`. */
static bool tell_variables(const walk *w, const reading *r, size_t at)
{
    bool any = false;
    for (size_t i = r->first; i < at;) {
        if (is(w, i, "(") || is(w, i, "[") || is(w, i, "{")) {
            i = behind(w->list, w->end, i);
            continue;
        }
        const bool name =
            is_word(w, i) && (is(w, i + 1, ",") || is(w, i + 1, ";") || is(w, i + 1, "=") ||
                              is(w, i + 1, "[") || is(w, i + 1, "{") || is(w, i + 1, ":"));
        if (name && !tell(w, r, MGL_DECLARED_VARIABLE, &w->list[i]))
            return false;
        any = any || name;
        i++;
    }
    return any || tell(w, r, MGL_DECLARED_VARIABLE, NULL);
}

/* Reports a declaration that ends with the `;` at `at`. */
static bool tell_simple(const walk *w, const reading *r, size_t at)
{
    if (r->is_assert)
        return true;
    if (is(w, r->first, "using"))
        return tell(w, r, MGL_DECLARED_TYPE,
                    is_word(w, r->first + 1) ? &w->list[r->first + 1] : NULL);
    if (r->alias)
        return tell(w, r, MGL_DECLARED_TYPE, name_before(w, r->first, at));
    if (r->key != SIZE_MAX && r->paren == SIZE_MAX && r->equals == SIZE_MAX && at - r->key == 2)
        return tell(w, r, MGL_DECLARED_TYPE, &w->list[r->key + 1]);
    if (r->paren != SIZE_MAX && (r->equals == SIZE_MAX || r->paren < r->equals))
        return tell(w, r, MGL_DECLARED_PROTOTYPE, name_before(w, r->first, r->paren));
    return tell_variables(w, r, at);
}

/* Whether parentheses after this word do not belong to a function. */
static bool is_attribute(const walk *w, size_t at)
{
    return is(w, at, "alignas") || is(w, at, "__align__") || is(w, at, "decltype") ||
           is(w, at, "noexcept") || is(w, at, "__launch_bounds__") || is(w, at, "explicit");
}

static void note_word(const walk *w, reading *r, size_t at)
{
    const bool specifier = r->paren == SIZE_MAX && r->equals == SIZE_MAX; /* not in a lambda */
    r->alias = r->alias || (specifier && is(w, at, "typedef"));
    r->is_static = r->is_static || is(w, at, "static");
    r->is_constant = r->is_constant || (specifier && is(w, at, "constexpr"));
    r->is_assert = r->is_assert || (at == r->first && is(w, at, "static_assert"));
    if (r->key == SIZE_MAX && r->paren == SIZE_MAX &&
        (is(w, at, "struct") || is(w, at, "class") || is(w, at, "union") || is(w, at, "enum")))
        r->key = at;
}

/* Whether the `{` at `at` begins the body of a type: only a name and base classes may precede it.
 */
static bool is_type_body(const walk *w, const reading *r, size_t at)
{
    size_t i = r->key + 1;
    if (is(w, i, "class") || is(w, i, "struct"))
        i++;
    while (is(w, i, "alignas") || is(w, i, "__align__"))
        i = behind(w->list, w->end, i + 1);
    i += i < at && is_word(w, i);
    if (i < at && is(w, i, "<"))
        i = behind_angle(w, i);
    i += is(w, i, "final");
    return i == at || (i < at && is(w, i, ":"));
}

/* Processes an opening bracket within a declaration. *next is the position to continue at. *done is
 * true if the declaration ends there. */
static bool walk_bracket(walk *w, reading *r, size_t at, size_t *next, bool *done)
{
    *next = behind(w->list, w->end, at);
    if (is(w, at, "(")) {
        if (r->paren == SIZE_MAX && r->equals == SIZE_MAX && !is_attribute(w, at - 1))
            r->paren = at;
        return true;
    }
    if (is(w, at, "[")) {
        r->is_array = r->is_array || r->equals == SIZE_MAX;
        return true;
    }
    if (r->equals != SIZE_MAX)
        return true;
    *done = r->paren != SIZE_MAX || r->key != SIZE_MAX;
    if (r->paren != SIZE_MAX)
        return tell_function(w, r, at, next);
    if (r->key != SIZE_MAX && is_type_body(w, r, at))
        return walk_type(w, r, at, next);
    *done = false;
    r->equals = at; /* int x{5}; */
    return true;
}

static bool walk_declaration(walk *w, size_t *at)
{
    reading r = {
        .first = *at, .paren = SIZE_MAX, .equals = SIZE_MAX, .key = SIZE_MAX, .is_array = false};
    for (size_t i = *at; i < w->end;) {
        bool done = false;
        size_t next = i + 1;
        if (w->list[i].kind == MGL_TOKEN_BRANCH)
            return tell_unknown(w, i, "a directive is not allowed in a declaration");
        if (is(w, i, ";")) {
            *at = i + 1;
            return tell_simple(w, &r, i);
        }
        if (is(w, i, ")") || is(w, i, "]") || is(w, i, "}"))
            return tell_unknown(w, i, "it closes no bracket");
        if (is(w, i, "template")) {
            next = behind_angle(w, i + 1);
            if (i == r.first)
                r.first = next < w->end ? next : i;
        } else if (is(w, i, "(") || is(w, i, "[") || is(w, i, "{")) {
            if (!walk_bracket(w, &r, i, &next, &done))
                return false;
        } else if (is(w, i, "=") && r.equals == SIZE_MAX) {
            r.equals = i;
        } else {
            note_word(w, &r, i);
        }
        *at = next;
        if (done)
            return true;
        i = next;
    }
    *at = w->end;
    return tell_unknown(w, w->end, "a declaration does not end");
}

static bool walk_scope(walk *w, size_t at)
{
    while (at < w->end) {
        const size_t was = at;
        if (is(w, at, ";") || w->list[at].kind == MGL_TOKEN_BRANCH)
            at++;
        else if (!w->of_file && is_word(w, at) && is(w, at + 1, ":"))
            at += 2; /* public: */
        else if (!walk_declaration(w, &at))
            return false;
        if (at <= was)
            at = was + 1;
    }
    return true;
}

bool mgl_declared_each(const mgl_tokens *tokens, mgl_declared_fn *tell_of, void *user)
{
    walk w = {tokens->list, tokens->count, tell_of, user, true};
    return walk_scope(&w, 0);
}

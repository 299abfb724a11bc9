/*
 * Scan of conditional compilation. The gates compile and run only some programs. The constants of
 * a program select the branches, so a text could hide forbidden code in a branch that the gates
 * never compile. Therefore the content of conditionals must equal the unit's original text, token
 * by token. Conditions on the text's own tunables are free, because their values are chosen with
 * the text. The include guard of the file is not a condition: it has one branch, the whole file.
 */
#include "autotune/kernels/gates/scan.h"

#include <string.h>

/* A conditional group of tokens. */
typedef struct group {
    size_t first, end; /* tokens, from # of #if to the first token after the #endif line */
} group;

static bool is(const mgl_tokens *t, size_t at, const char *text)
{
    return at < t->count && mgl_token_is(&t->list[at], text);
}

static bool is_directive(const mgl_tokens *t, size_t at)
{
    return is(t, at, "#") && t->list[at].starts;
}

static bool begins(const mgl_tokens *t, size_t at)
{
    return is_directive(t, at) &&
           (is(t, at + 1, "if") || is(t, at + 1, "ifdef") || is(t, at + 1, "ifndef"));
}

static size_t line_end(const mgl_tokens *t, size_t at)
{
    do
        at++;
    while (at < t->count && !t->list[at].starts);
    return at;
}

/* Whether the file starts with #ifndef GUARD and #define GUARD. */
static bool has_guard(const mgl_tokens *t)
{
    return is_directive(t, 0) && is(t, 1, "ifndef") && t->count > 5 && is_directive(t, 3) &&
           is(t, 4, "define") && t->list[2].length == t->list[5].length &&
           !memcmp(t->list[2].text, t->list[5].text, (size_t)t->list[2].length);
}

/* Whether a word is one of the text's tunables. */
static bool is_tunable(const mgl_token *word, const mgl_kernel_launch *launch)
{
    char macro[MGL_KERNEL_TUNABLE_MACRO];
    for (int i = 0; i < launch->tunable_count; i++) {
        mgl_kernel_tunable_macro(launch->tunables[i].name, macro);
        if (mgl_token_is(word, macro))
            return true;
    }
    return false;
}

/* Whether a condition is free: its operands are only tunables and numbers. */
static bool is_free(const mgl_tokens *t, size_t at, size_t end, const mgl_kernel_launch *launch)
{
    for (size_t i = at + 2; i < end; i++)
        if (t->list[i].kind == MGL_TOKEN_WORD && !is(t, i, "defined") &&
            !is_tunable(&t->list[i], launch))
            return false;
    return true;
}

/* Returns the end of the group that starts at `at`. *free: all conditions of the group are free. If
 * the conditions are unbalanced, returns the end of the text; another check rejects such a text. */
static size_t group_end(const mgl_tokens *t, size_t at, const mgl_kernel_launch *launch, bool *free)
{
    int depth = 0;
    *free = true;
    for (size_t i = at; i < t->count; i++) {
        if (!is_directive(t, i))
            continue;
        const size_t end = line_end(t, i);
        if ((begins(t, i) || is(t, i + 1, "elif")) && !is_free(t, i, end, launch))
            *free = false;
        depth += begins(t, i);
        depth -= is(t, i + 1, "endif");
        if (depth == 0)
            return end;
    }
    return t->count;
}

/* The next group from *at on that must equal the original text; false: none. */
static bool next_group(const mgl_tokens *t, const mgl_kernel_launch *launch, size_t *at, group *out)
{
    while (*at < t->count) {
        const size_t first = *at;
        bool free = true;
        if (!begins(t, first) || (first == 0 && has_guard(t))) {
            ++*at;
            continue;
        }
        *at = group_end(t, first, launch, &free);
        if (!free) {
            *out = (group){first, *at};
            return true;
        }
    }
    return false;
}

static bool same(const mgl_tokens *a, const group *x, const mgl_tokens *b, const group *y)
{
    if (x->end - x->first != y->end - y->first)
        return false;
    for (size_t i = 0; i < x->end - x->first; i++) {
        const mgl_token *one = &a->list[x->first + i], *other = &b->list[y->first + i];
        if (one->length != other->length || memcmp(one->text, other->text, (size_t)one->length) ||
            one->starts != other->starts)
            return false;
    }
    return true;
}

/* Checks that the guard's group ends with the text and has no other branch. */
static bool check_guard(const mgl_tokens *t, mgl_scan_fault *fault)
{
    int depth = 0;
    if (!has_guard(t))
        return true;
    for (size_t i = 0; i < t->count; i++) {
        if (!is_directive(t, i))
            continue;
        depth += begins(t, i);
        if (depth == 1 && (is(t, i + 1, "else") || is(t, i + 1, "elif")))
            return mgl_scan_refuse(fault, t->list[i].line,
                                   "`#%.*s`: the file's guard has one branch",
                                   t->list[i + 1].length, t->list[i + 1].text);
        depth -= is(t, i + 1, "endif");
        if (depth == 0 && line_end(t, i) < t->count)
            return mgl_scan_refuse(fault, t->list[i].line,
                                   "`#endif`: the file's guard ends with the file");
    }
    return true;
}

bool mgl_scan_branches(const mgl_tokens *text, const mgl_tokens *own,
                       const mgl_kernel_launch *launch, mgl_scan_fault *fault)
{
    static const char why[] = "code under a condition is compiled in some programs only: "
                              "leave it as it is, and write `if` for a new one";
    size_t at = 0, own_at = 0;
    group ours, theirs;
    if (!check_guard(text, fault))
        return false;
    for (;;) {
        const bool has = next_group(text, launch, &at, &ours);
        const bool had = next_group(own, launch, &own_at, &theirs);
        if (!has && !had)
            return true;
        const int line = has               ? text->list[ours.first].line
                         : text->count > 0 ? text->list[text->count - 1].line
                                           : 1;
        if (has != had || !same(text, &ours, own, &theirs))
            return mgl_scan_refuse(fault, line, "`#if`: %s", why);
    }
}

/*
 * What stands behind a condition of the preprocessor. The gates compile and run some programs,
 * whose constants decide which branches there are: a text could be anything in the others. So these
 * are the unit's own, word for word. Free are conditions of the architecture, which is the device's
 * that judges, and of tunables, whose values are chosen with the text; it does not define them by
 * anything else. The guard of the file is no condition.
 */
#include "autotune/kernel/scan.h"

#include <string.h>

/* The groups of a text's words, one after the other. */
typedef struct group {
    size_t first, end; /* words, from # of #if to the one behind #endif's line */
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

/* #ifndef GUARD and #define GUARD right behind it, with which the file begins. */
static bool is_guard(const mgl_tokens *t, size_t at)
{
    return at == 0 && is(t, at + 1, "ifndef") && at + 5 < t->count && is_directive(t, at + 3) &&
           is(t, at + 4, "define") && t->list[at + 2].length == t->list[at + 5].length &&
           !memcmp(t->list[at + 2].text, t->list[at + 5].text, (size_t)t->list[at + 2].length);
}

static size_t line_end(const mgl_tokens *t, size_t at)
{
    do
        at++;
    while (at < t->count && !t->list[at].starts);
    return at;
}

static bool is_tunable(const mgl_token *word)
{
    return word->length > 5 && !memcmp(word->text, "TUNE_", 5);
}

/* Whether the words of a directive, behind its name, are tunables, the architecture and numbers. */
static bool is_free(const mgl_tokens *t, size_t at, size_t end)
{
    for (size_t i = at + 2; i < end; i++)
        if (t->list[i].kind == MGL_TOKEN_WORD && !is(t, i, "defined") &&
            !is(t, i, "__CUDA_ARCH__") && !is_tunable(&t->list[i]))
            return false;
    return true;
}

/* The end of the group that begins at `at`; *free: all its conditions are. A text whose
 * conditions do not go together ends with its last word: others refuse it. */
static size_t group_end(const mgl_tokens *t, size_t at, bool *free)
{
    int depth = 0;
    *free = true;
    for (size_t i = at; i < t->count; i++) {
        if (!is_directive(t, i))
            continue;
        const size_t end = line_end(t, i);
        if ((begins(t, i) || is(t, i + 1, "elif")) && !is_free(t, i, end))
            *free = false;
        depth += begins(t, i);
        depth -= is(t, i + 1, "endif");
        if (depth == 0)
            return end;
    }
    return t->count;
}

/* The next group from *at on that has to be the unit's own; false: there is none. */
static bool next_group(const mgl_tokens *t, size_t *at, group *out)
{
    while (*at < t->count) {
        const size_t first = *at;
        bool free = true;
        if (!begins(t, first) || is_guard(t, first)) {
            ++*at;
            continue;
        }
        *at = group_end(t, first, &free);
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

bool mgl_scan_branches(const mgl_tokens *text, const mgl_tokens *own, mgl_scan_fault *fault)
{
    static const char why[] = "what stands behind a condition is compiled in some programs only: "
                              "leave it as it is, and write `if` for a new one";
    size_t at = 0, own_at = 0;
    group ours, theirs;
    for (;;) {
        const bool has = next_group(text, &at, &ours), had = next_group(own, &own_at, &theirs);
        if (!has && !had)
            return true;
        const int line = has           ? text->list[ours.first].line
                         : text->count ? text->list[text->count - 1].line
                                       : 1;
        if (has != had || !same(text, &ours, own, &theirs))
            return mgl_scan_refuse(fault, line, "`#if`: %s", why);
    }
}

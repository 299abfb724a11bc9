/*
 * Implements expression.h: a recursive-descent parser that emits postfix steps, with one table of
 * the operators of each level, and their evaluation on a stack of values.
 */
#include "schedule/expression.h"
#include "base/aliases.h"
#include "base/text.h"

#include <string.h>

enum { MOST_DIGITS = 18 };

struct parsing {
    const char *text, *at; /* the whole text, and the unread rest */
    const mgl_expression_names *names;
    int depth; /* of open parentheses */
    mgl_expression *out;
    mgl_error *err;
    mgl_status status;
};

static bool refuse(struct parsing *p, const char *why)
{
    if (!p->status)
        p->status = mgl_fail(p->err, MGL_BAD_INPUT, p->text, "column %d: %s",
                             (int)(p->at - p->text) + 1, why);
    return false;
}

static bool step(struct parsing *p, mgl_expression_kind kind, int64_t number)
{
    mgl_expression *out = p->out;
    if (out->count == MGL_EXPRESSION_STEPS)
        return refuse(p, "the expression is too long");
    out->steps[out->count].kind = kind;
    out->steps[out->count++].number = number;
    return true;
}

static void skip_spaces(struct parsing *p)
{
    p->at += strspn(p->at, " ");
}

static bool take(struct parsing *p, char mark)
{
    skip_spaces(p);
    if (*p->at != mark)
        return false;
    p->at++;
    return true;
}

/* Levels of the grammar, from the operators that bind least. */
enum level { COMPARISON, SUM, PRODUCT, FACTOR };

/* An operator that begins with another is above it. */
static const struct operator
{
    enum level level;
    const char *text;
    mgl_expression_kind kind;
}
operators[] = {
    {COMPARISON, "<=", MGL_EXPRESSION_LESS_EQUAL},
    {COMPARISON, "<", MGL_EXPRESSION_LESS},
    {COMPARISON, ">=", MGL_EXPRESSION_GREATER_EQUAL},
    {COMPARISON, ">", MGL_EXPRESSION_GREATER},
    {COMPARISON, "==", MGL_EXPRESSION_EQUAL},
    {COMPARISON, "!=", MGL_EXPRESSION_UNEQUAL},
    {SUM, "+", MGL_EXPRESSION_ADD},
    {SUM, "-", MGL_EXPRESSION_SUBTRACT},
    {PRODUCT, "*", MGL_EXPRESSION_MULTIPLY},
    {PRODUCT, "/", MGL_EXPRESSION_DIVIDE},
    {PRODUCT, "%", MGL_EXPRESSION_REMAINDER},
};

/* The operator of a level that comes next, or NULL. Consumes spaces. */
static const struct operator* next_operator(struct parsing *p, enum level level)
{
    skip_spaces(p);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (operators[i].level == level &&
            !strncmp(p->at, operators[i].text, strlen(operators[i].text)))
            return &operators[i];
    return NULL;
}

static bool read_level(struct parsing *p, enum level level);

static bool open(struct parsing *p)
{
    if (!take(p, '('))
        return refuse(p, "`(` is missing");
    return ++p->depth <= MGL_EXPRESSION_DEPTH || refuse(p, "too many parentheses are open");
}

static bool close(struct parsing *p)
{
    p->depth--;
    return take(p, ')') || refuse(p, "`)` is missing");
}

/* The arguments of min or max, at least two. */
static bool read_arguments(struct parsing *p, mgl_expression_kind kind)
{
    if (!open(p) || !read_level(p, COMPARISON))
        return false;
    if (!take(p, ','))
        return refuse(p, "a second argument is missing");
    do
        if (!read_level(p, COMPARISON) || !step(p, kind, 0))
            return false;
    while (take(p, ','));
    return close(p);
}

static bool read_number(struct parsing *p)
{
    size_t digits = strspn(p->at, "0123456789");
    int64_t number = 0;
    if (digits > MOST_DIGITS)
        return refuse(p, "a number has 18 digits at most");
    for (; digits > 0; digits--)
        number = number * 10 + (*p->at++ - '0');
    return step(p, MGL_EXPRESSION_NUMBER, number);
}

static bool read_term(struct parsing *p, const mgl_expression *term)
{
    for (int i = 0; i < term->count; i++)
        if (!step(p, term->steps[i].kind, term->steps[i].number))
            return false;
    return true;
}

/* Finds a word among the names. Consumes nothing. */
static bool find_name(struct parsing *p, const char *word, size_t length, bool *found)
{
    const mgl_expression_names *names = p->names;
    *found = true;
    for (int i = 0; i < names->value_count; i++)
        if (mgl_text_is(word, length, names->values[i]))
            return step(p, MGL_EXPRESSION_NAME, i);
    for (int i = 0; i < names->term_count; i++)
        if (mgl_text_is(word, length, names->terms[i].name))
            return read_term(p, &names->terms[i].value);
    *found = false;
    return true;
}

static bool read_name(struct parsing *p)
{
    const char *word = p->at;
    size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyz_0123456789");
    bool found;
    if (mgl_text_is(word, length, "min") || mgl_text_is(word, length, "max")) {
        p->at += length;
        return read_arguments(p, word[1] == 'i' ? MGL_EXPRESSION_MIN : MGL_EXPRESSION_MAX);
    }
    if (!find_name(p, word, length, &found))
        return false;
    const char *renamed = found ? NULL : mgl_alias_new(MGL_ALIAS_DIMENSION, word, length);
    if (renamed && !find_name(p, renamed, strlen(renamed), &found))
        return false;
    if (!found)
        return refuse(p, "a number, a known name, `min`, `max` or `(` is missing");
    p->at += length;
    return true;
}

static bool read_factor(struct parsing *p)
{
    skip_spaces(p);
    if (*p->at == '(')
        return open(p) && read_level(p, COMPARISON) && close(p);
    return *p->at >= '0' && *p->at <= '9' ? read_number(p) : read_name(p);
}

/* Reads operands of the next level with operators of this level between them. */
static bool read_level(struct parsing *p, enum level level)
{
    if (level == FACTOR)
        return read_factor(p);
    if (!read_level(p, level + 1))
        return false;
    for (const struct operator* next; (next = next_operator(p, level));) {
        p->at += strlen(next->text);
        if (!read_level(p, level + 1) || !step(p, next->kind, 0))
            return false;
        if (level == COMPARISON && next_operator(p, level))
            return refuse(p, "a second comparison needs parentheses around the first");
    }
    return true;
}

mgl_status mgl_expression_parse_terms(const char *text, const mgl_expression_names *names,
                                      mgl_expression *out, mgl_error *err)
{
    struct parsing p = {.text = text, .at = text, .names = names, .out = out, .err = err};
    *out = (mgl_expression){0};
    if (read_level(&p, COMPARISON)) {
        skip_spaces(&p);
        if (*p.at)
            refuse(&p, "the expression has ended");
    }
    return p.status;
}

mgl_status mgl_expression_parse(const char *text, const char *const *names, int name_count,
                                mgl_expression *out, mgl_error *err)
{
    const mgl_expression_names values = {.values = names, .value_count = name_count};
    return mgl_expression_parse_terms(text, &values, out, err);
}

static bool compare(mgl_expression_kind kind, int64_t a, int64_t b)
{
    switch (kind) {
    case MGL_EXPRESSION_LESS:
        return a < b;
    case MGL_EXPRESSION_LESS_EQUAL:
        return a <= b;
    case MGL_EXPRESSION_GREATER:
        return a > b;
    case MGL_EXPRESSION_GREATER_EQUAL:
        return a >= b;
    case MGL_EXPRESSION_EQUAL:
        return a == b;
    default:
        return a != b;
    }
}

/* Applies a step to two values. False: the result has no value. */
static bool combine(mgl_expression_kind kind, int64_t a, int64_t b, int64_t *out)
{
    switch (kind) {
    case MGL_EXPRESSION_ADD:
        return !__builtin_add_overflow(a, b, out);
    case MGL_EXPRESSION_SUBTRACT:
        return !__builtin_sub_overflow(a, b, out);
    case MGL_EXPRESSION_MULTIPLY:
        return !__builtin_mul_overflow(a, b, out);
    case MGL_EXPRESSION_DIVIDE:
    case MGL_EXPRESSION_REMAINDER:
        if (b == 0 || (a == INT64_MIN && b == -1))
            return false;
        *out = kind == MGL_EXPRESSION_DIVIDE ? a / b : a % b;
        return true;
    case MGL_EXPRESSION_MIN:
        *out = a < b ? a : b;
        return true;
    case MGL_EXPRESSION_MAX:
        *out = a > b ? a : b;
        return true;
    default:
        *out = compare(kind, a, b);
        return true;
    }
}

bool mgl_expression_value(const mgl_expression *expression, const int64_t *values, int64_t *out)
{
    int64_t stack[MGL_EXPRESSION_STEPS];
    int height = 0;
    for (int i = 0; i < expression->count; i++) {
        const mgl_expression_kind kind = expression->steps[i].kind;
        const int64_t number = expression->steps[i].number;
        if (kind == MGL_EXPRESSION_NUMBER || kind == MGL_EXPRESSION_NAME) {
            stack[height++] = kind == MGL_EXPRESSION_NAME ? values[number] : number;
            continue;
        }
        height--;
        if (!combine(kind, stack[height - 1], stack[height], &stack[height - 1]))
            return false;
    }
    if (height != 1)
        return false;
    *out = stack[0];
    return true;
}

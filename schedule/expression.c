/*
 * Implements expression.h: a recursive-descent parser, one function for each level of the grammar,
 * which emits postfix steps, and their evaluation on a stack of values.
 */
#include "schedule/expression.h"
#include "base/aliases.h"

#include <string.h>

enum { MOST_DIGITS = 18 };

struct parsing {
    const char *text, *at;    /* the whole text, and the unread rest */
    const char *const *names; /* (name_count) */
    int name_count;
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

/* Consumes one of two characters. Returns it, or 0. */
static char take_one(struct parsing *p, const char *marks)
{
    return take(p, marks[0]) ? marks[0] : take(p, marks[1]) ? marks[1] : 0;
}

static bool read_sum(struct parsing *p);

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
    if (!open(p) || !read_sum(p))
        return false;
    if (!take(p, ','))
        return refuse(p, "a second argument is missing");
    do
        if (!read_sum(p) || !step(p, kind, 0))
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

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && !memcmp(word, name, length);
}

static bool read_name(struct parsing *p)
{
    const char *word = p->at;
    size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyz_0123456789");
    if (is_word(word, length, "min") || is_word(word, length, "max")) {
        p->at += length;
        return read_arguments(p, word[1] == 'i' ? MGL_EXPRESSION_MIN : MGL_EXPRESSION_MAX);
    }
    for (int i = 0; i < p->name_count; i++)
        if (is_word(word, length, p->names[i])) {
            p->at += length;
            return step(p, MGL_EXPRESSION_NAME, i);
        }
    const char *renamed = mgl_alias_new(MGL_ALIAS_DIMENSION, word, length);
    for (int i = 0; renamed && i < p->name_count; i++)
        if (!strcmp(renamed, p->names[i])) {
            p->at += length;
            return step(p, MGL_EXPRESSION_NAME, i);
        }
    return refuse(p, "a number, a known name, `min`, `max` or `(` is missing");
}

static bool read_factor(struct parsing *p)
{
    skip_spaces(p);
    if (*p->at == '(')
        return open(p) && read_sum(p) && close(p);
    return *p->at >= '0' && *p->at <= '9' ? read_number(p) : read_name(p);
}

static bool read_product(struct parsing *p)
{
    if (!read_factor(p))
        return false;
    for (char mark; (mark = take_one(p, "*/"));)
        if (!read_factor(p) ||
            !step(p, mark == '*' ? MGL_EXPRESSION_MULTIPLY : MGL_EXPRESSION_DIVIDE, 0))
            return false;
    return true;
}

static bool read_sum(struct parsing *p)
{
    if (!read_product(p))
        return false;
    for (char mark; (mark = take_one(p, "+-"));)
        if (!read_product(p) ||
            !step(p, mark == '+' ? MGL_EXPRESSION_ADD : MGL_EXPRESSION_SUBTRACT, 0))
            return false;
    return true;
}

mgl_status mgl_expression_parse(const char *text, const char *const *names, int name_count,
                                mgl_expression *out, mgl_error *err)
{
    struct parsing p = {
        .text = text, .at = text, .names = names, .name_count = name_count, .out = out, .err = err};
    *out = (mgl_expression){0};
    if (read_sum(&p)) {
        skip_spaces(&p);
        if (*p.at)
            refuse(&p, "the expression has ended here");
    }
    return p.status;
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
        if (b == 0 || (a == INT64_MIN && b == -1))
            return false;
        *out = a / b;
        return true;
    case MGL_EXPRESSION_MIN:
        *out = a < b ? a : b;
        return true;
    case MGL_EXPRESSION_MAX:
        *out = a > b ? a : b;
        return true;
    case MGL_EXPRESSION_NUMBER:
    case MGL_EXPRESSION_NAME:
        break;
    }
    return false;
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

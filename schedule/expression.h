/*
 * Expressions over named integers, "4 * warps" or "min(run, 32) * 2": what a variant needs, as a
 * row of schedule/variants.def says it. A text is parsed once, and then has a value for whatever
 * numbers the names stand for, so that a need can come from a table or from a file alike.
 *
 *     expression  term   { ("+" | "-") term }
 *     term        factor { ("*" | "/") factor }
 *     factor      number | name | "(" expression ")"
 *                 | ("min" | "max") "(" expression "," expression { "," expression } ")"
 *
 * Numbers are not negative as written, and have 18 digits at most. Division rounds towards zero.
 * Everything is bounded: a text has MGL_EXPRESSION_STEPS steps and MGL_EXPRESSION_DEPTH open
 * parentheses at most, a value takes as many steps as the text has, and what overflows 64 bits or
 * divides by zero has no value.
 */
#ifndef MGL_SCHEDULE_EXPRESSION_H
#define MGL_SCHEDULE_EXPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { MGL_EXPRESSION_STEPS = 128, MGL_EXPRESSION_DEPTH = 12 };

typedef enum mgl_expression_kind {
    MGL_EXPRESSION_NUMBER, /* pushes `number` */
    MGL_EXPRESSION_NAME,   /* pushes the value of name `number` */
    MGL_EXPRESSION_ADD,    /* these take two values, and leave one */
    MGL_EXPRESSION_SUBTRACT,
    MGL_EXPRESSION_MULTIPLY,
    MGL_EXPRESSION_DIVIDE,
    MGL_EXPRESSION_MIN,
    MGL_EXPRESSION_MAX
} mgl_expression_kind;

/* A parsed text, in postfix order. */
typedef struct mgl_expression {
    int count; /* of steps */
    struct {
        mgl_expression_kind kind;
        int64_t number;
    } steps[MGL_EXPRESSION_STEPS];
} mgl_expression;

/* Names are those of the list, by their places. MGL_BAD_INPUT, where the text is none, with the
 * column in the message. */
mgl_status mgl_expression_parse(const char *text, const char *const *names, int name_count,
                                mgl_expression *out, mgl_error *err);

/* The value for `values`, one a name. False where there is none. */
bool mgl_expression_value(const mgl_expression *expression, const int64_t *values, int64_t *out);

#endif

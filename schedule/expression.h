/*
 * Integer expressions over named values, such as "4 * warps" or "1 + (rows <= 32)": the resource
 * needs of variants (schedule/variants.def). A text is parsed once into postfix steps and can then
 * be evaluated for any values of the names. Texts may come from a table or from a file.
 *
 *     expression  sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
 *     sum         product { ("+" | "-") product }
 *     product     factor { ("*" | "/" | "%") factor }
 *     factor      number | name | "(" expression ")"
 *                 | ("min" | "max") "(" expression "," expression { "," expression } ")"
 *
 * A comparison is 1 or 0. Literals are not negative and have at most 18 digits. Division rounds
 * toward zero, and the remainder has the sign of the dividend. A name may also stand for a term:
 * another expression, whose steps are inserted in place of the name. All costs are
 * bounded: a text has at most MGL_EXPRESSION_STEPS steps and MGL_EXPRESSION_DEPTH open parentheses,
 * and evaluation takes as many steps as the text has. An expression has no value if a result
 * overflows 64 bits or a divisor is zero.
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
    MGL_EXPRESSION_ADD,    /* pops two values and pushes one */
    MGL_EXPRESSION_SUBTRACT,
    MGL_EXPRESSION_MULTIPLY,
    MGL_EXPRESSION_DIVIDE,
    MGL_EXPRESSION_REMAINDER,
    MGL_EXPRESSION_MIN,
    MGL_EXPRESSION_MAX,
    MGL_EXPRESSION_LESS,
    MGL_EXPRESSION_LESS_EQUAL,
    MGL_EXPRESSION_GREATER,
    MGL_EXPRESSION_GREATER_EQUAL,
    MGL_EXPRESSION_EQUAL,
    MGL_EXPRESSION_UNEQUAL
} mgl_expression_kind;

/* A parsed text, in postfix order. */
typedef struct mgl_expression {
    int count; /* of steps */
    struct {
        mgl_expression_kind kind;
        int64_t number;
    } steps[MGL_EXPRESSION_STEPS];
} mgl_expression;

/* A name that stands for an expression. */
typedef struct mgl_expression_term {
    const char *name;
    mgl_expression value;
} mgl_expression_term;

/* The names that a text may use. */
typedef struct mgl_expression_names {
    const char *const *values; /* (value_count) names of values, by their index */
    int value_count;
    const mgl_expression_term *terms; /* (term_count) */
    int term_count;
} mgl_expression_names;

/* MGL_BAD_INPUT with the column in the message if the text is no expression. */
mgl_status mgl_expression_parse_terms(const char *text, const mgl_expression_names *names,
                                      mgl_expression *out, mgl_error *err);
/* The same without terms. */
mgl_status mgl_expression_parse(const char *text, const char *const *names, int name_count,
                                mgl_expression *out, mgl_error *err);

/* Evaluates with `values`, one for each name. False: the expression has no value. */
bool mgl_expression_value(const mgl_expression *expression, const int64_t *values, int64_t *out);

#endif

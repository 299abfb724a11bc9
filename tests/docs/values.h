/*
 * Formulas over result files: they give the numbers of the documentation.
 *
 *     h200-batches.json:result.rows[batch=8].us_median
 *     100 * (h200-drawn.json:result.rows[batch=1].drawn.ratio - 1)
 *     max( abs( $rows[*].predicted_error ) )
 *
 * A value is FILE.json:PATH. `[key=value]` selects the elements of an array by a member (several
 * conditions with commas; `!=` too; the key may be a path), `[2]` by position from 0, `[*]` takes
 * all. A path that selects nothing is an error. `$name` is the beginning of a value that was
 * defined by `let`. A formula yields a list of numbers; operators (+ - * /) work by element, and a
 * list of one number goes with any. Operators have blanks around them, since names have hyphens.
 *
 * Functions: min max sum mean median count exp log abs first last, number_after("text" VALUE), the
 * first number behind that text in a string, and tool("command line" "line" n): the n-th number of
 * the lines of that command's output that begin with "line".
 */
#ifndef MGL_TESTS_DOCS_VALUES_H
#define MGL_TESTS_DOCS_VALUES_H

#include <stdbool.h>
#include <stddef.h>

enum { MAX_VALUES = 4096, MAX_NAMES = 256 };

typedef struct values {
    const char *folder; /* folder of result files */
    const char *tools;  /* folder of programs, for `tool` */
    struct {
        char *name, *text;
    } names[MAX_NAMES];
    int name_count;
} values;

/* Defines `$name` as this text from now on. */
void values_define(values *v, const char *name, const char *text);
void values_clear(values *v);
/* The only number of a formula's result; false, with a sentence in `why`, on error. */
bool values_compute(values *v, const char *formula, double *out, char *why, size_t size);

/* A member of element i of FILE.json:PATH as text; false after the last element, and on error with
 * a sentence in `why`. */
bool values_text(values *v, const char *path, int i, const char *member, char *out, size_t size,
                 char *why, size_t why_size);

/* The output of a command line, run in the folder of result files; NULL on error. Free it after
 * use. Programs of the tools' folder are found by name. */
char *values_run(values *v, const char *command);

#endif

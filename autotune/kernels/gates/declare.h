/*
 * Finds the declarations of a C++ text at file scope and in types: functions, types, their members
 * and enumerators, variables. It needs no knowledge of the names, so it recognizes only forms that
 * are unambiguous. Input: tokens of lex.h without directives. The scan, the vocabulary and
 * methods/declarations.c call it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_DECLARE_H
#define MGL_AUTOTUNE_KERNELS_GATES_DECLARE_H

#include "autotune/kernels/gates/lex.h"

typedef enum mgl_declared_kind {
    MGL_DECLARED_FUNCTION,  /* a function with a body */
    MGL_DECLARED_PROTOTYPE, /* no body; or a variable that looks like a prototype */
    MGL_DECLARED_TYPE,      /* a type or a type alias */
    MGL_DECLARED_ENUMERATOR,
    MGL_DECLARED_VARIABLE, /* a variable, or a member of a type */
    MGL_DECLARED_UNKNOWN   /* not understood: `name` is its first word */
} mgl_declared_kind;

typedef struct mgl_declared {
    mgl_declared_kind kind;
    const mgl_token *name; /* NULL for an unnamed type */
    const char *why;       /* for MGL_DECLARED_UNKNOWN: the construct that is not understood */
    int line;
    bool of_file; /* declared at file scope; false: in a type */
    bool is_static, is_constant /* constexpr */, is_array;
    size_t first, end; /* tokens of a function's body, including the brackets */
} mgl_declared;

/* Called for each declaration in order, including those in types. False: stop. */
typedef bool mgl_declared_fn(void *user, const mgl_declared *declared);

/* False: stopped by the callback. */
bool mgl_declared_each(const mgl_tokens *tokens, mgl_declared_fn *tell, void *user);

/* The position after the bracket that closes the one at `at`; the end if it is not closed. */
size_t mgl_tokens_behind(const mgl_tokens *tokens, size_t at);

#endif

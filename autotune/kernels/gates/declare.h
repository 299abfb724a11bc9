/*
 * What a C++ text declares at file scope and in types, as far as that can be told without knowing
 * what its names stand for: functions, types, their members and enumerators, variables. The words
 * are those of lex.h without directives.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_DECLARE_H
#define MGL_AUTOTUNE_KERNELS_GATES_DECLARE_H

#include "autotune/kernels/gates/lex.h"

typedef enum mgl_declared_kind {
    MGL_DECLARED_FUNCTION,  /* with a body */
    MGL_DECLARED_PROTOTYPE, /* without one, or a variable that looks like it */
    MGL_DECLARED_TYPE,      /* or another name for one */
    MGL_DECLARED_ENUMERATOR,
    MGL_DECLARED_VARIABLE, /* a member, in a type */
    MGL_DECLARED_UNKNOWN   /* none of these: `name` is its first word */
} mgl_declared_kind;

typedef struct mgl_declared {
    mgl_declared_kind kind;
    const mgl_token *name; /* of an unnamed type NULL */
    const char *why;       /* of MGL_DECLARED_UNKNOWN: what is not understood */
    int line;
    bool of_file; /* else in a type */
    bool is_static, is_constant /* constexpr */, is_array;
    size_t first, end; /* words of a function's body, brackets included */
} mgl_declared;

/* Told of each, in order, of what is within a type too. False: no more. */
typedef bool mgl_declared_fn(void *user, const mgl_declared *declared);

/* False: it was told to stop. */
bool mgl_declared_each(const mgl_tokens *tokens, mgl_declared_fn *tell, void *user);

/* Behind the bracket that closes the one at `at`; the end where none does. */
size_t mgl_tokens_behind(const mgl_tokens *tokens, size_t at);

#endif

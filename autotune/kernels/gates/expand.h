/*
 * Macro expansion of a unit's text for the static scan: checks directives and expands the text's
 * own macros. Both branches of a conditional are kept, because the choice of the compiler is
 * unknown. A MGL_TOKEN_BRANCH replaces a directive that may remove text.
 *
 * Constructs that could give the compiler other tokens than the scan are rejected. These are:
 * macros defined twice or under a condition; macros with #, ## or unbalanced brackets; recursive
 * macros; macros named like a word of the kernel; brackets that one branch opens and another
 * closes. The only allowed directives are #include of files that the family includes, #define,
 * conditionals and #pragma unroll.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_EXPAND_H
#define MGL_AUTOTUNE_KERNELS_GATES_EXPAND_H

#include "autotune/kernels/gates/vocabulary.h"

/* `in`: the tokens of a whole text. Fails only if memory runs out; *out is complete if there is
 * no fault. */
mgl_status mgl_expand(const mgl_tokens *in, const mgl_vocabulary *vocabulary, mgl_tokens *out,
                      mgl_scan_fault *fault, mgl_error *err);

/* The reason why a name that a text declares would collide with a name of the kernel, or NULL. */
const char *mgl_scan_own_name(const mgl_vocabulary *vocabulary, const mgl_token *name);

#endif

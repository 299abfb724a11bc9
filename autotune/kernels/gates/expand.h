/*
 * What a preprocessor would make of a unit's text alone: its directives looked at, its own macros
 * put in. Both branches of a conditional stay, since nobody knows which one the compiler takes; a
 * MGL_TOKEN_BRANCH stands where a directive stood that may leave something out.
 *
 * Refused is what makes the words that the scan sees others than those that the compiler sees: a
 * macro that is defined twice or under a condition, that has # or ## or brackets that do not match,
 * that names itself, or whose name is one of the kernel's; brackets that one branch opens and
 * another one closes; directives but for #include of what the family includes, #define, conditions
 * and #pragma unroll.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_EXPAND_H
#define MGL_AUTOTUNE_KERNELS_GATES_EXPAND_H

#include "autotune/kernels/gates/vocabulary.h"

/* `in`: of a whole text. Fails only where memory ran out; *out is whole if there is no fault. */
mgl_status mgl_expand(const mgl_tokens *in, const mgl_vocabulary *vocabulary, mgl_tokens *out,
                      mgl_scan_fault *fault, mgl_error *err);

/* Whether a name that a text gives to something of its own would be taken for one of the kernel:
 * why, or NULL. */
const char *mgl_scan_own_name(const mgl_vocabulary *vocabulary, const mgl_token *name);

#endif

/*
 * Collects the declarations of the kernel's other files that a micro-kernel's text uses. These are
 * functions with the comments in front of them, types, and constants with their expressions. The
 * input is the text and the built-in sources; the output goes into the prompt of an edit span.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_DECLARATIONS_H
#define MGL_AUTOTUNE_KERNELS_METHODS_DECLARATIONS_H

#include "autotune/kernels/gates/unit.h"
#include "base/text.h"

/* Appends the declarations, each name once, file after file, up to about 12,000 bytes. Appends
 * nothing if the text uses none or cannot be tokenized. MGL_NO_MEMORY. */
mgl_status mgl_declarations_put(const mgl_kernel_unit *unit, const char *text, size_t length,
                                mgl_text *out, mgl_error *err);
/* Appends the reserved words that the scan allows in a text, as "__popc, __shfl_sync". */
void mgl_declarations_put_words(mgl_text *out);

#endif

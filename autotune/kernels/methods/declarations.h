/*
 * What a micro-kernel's text uses of the kernel's other files, as a proposer wants to know it:
 * declarations of functions with the comments in front of them, types, and constants with what they
 * are made of. Taken from the sources that are built in.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_DECLARATIONS_H
#define MGL_AUTOTUNE_KERNELS_METHODS_DECLARATIONS_H

#include "autotune/kernels/gates/unit.h"
#include "base/text.h"

/* Appends them, a name once, file after file, up to some 12,000 bytes; nothing where the text uses
 * none. A text that is none has none. MGL_NO_MEMORY. */
mgl_status mgl_declarations_put(const mgl_kernel_unit *unit, const char *text, size_t length,
                                mgl_text *out, mgl_error *err);
/* Appends the reserved words that the scan lets a text have, as "__popc, __shfl_sync". */
void mgl_declarations_put_words(mgl_text *out);

#endif

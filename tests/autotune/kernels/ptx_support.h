/* PTX texts for tests: the files of tests/autotune/kernels/ptx, and edits of them. */
#ifndef MGL_TESTS_AUTOTUNE_KERNELS_PTX_SUPPORT_H
#define MGL_TESTS_AUTOTUNE_KERNELS_PTX_SUPPORT_H

#include "autotune/kernels/ptx/condense.h"

/* Owned by the caller, 0-terminated. */
char *read_ptx(const char *name);
/* Replaces each `from` in the text by `to`; releases `text`. */
char *replace(char *text, const char *from, const char *to);
mgl_ptx_condensed condense(const char *text);

#endif

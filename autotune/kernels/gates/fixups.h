/*
 * Fix-ups: repairs of a model's text before it is evaluated. The list contains only repairs that
 * cannot change the meaning of the text. Each use is counted and reported. The feedback loop calls
 * mgl_fixups_apply.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_FIXUPS_H
#define MGL_AUTOTUNE_KERNELS_GATES_FIXUPS_H

#include "base/text.h"

/* X(ID, name, what) */
#define MGL_FIXUPS(X)                                                                              \
    X(MARK, "byte_order_mark", "a byte order mark at the start is removed")                        \
    X(LINE_ENDS, "line_ends", "CR LF becomes LF")                                                  \
    X(SPACES, "spaces", "no-break spaces become blanks, zero-width ones are removed")              \
    X(LAST_LINE, "last_line", "the last line gets a line end")

typedef enum mgl_fixup {
#define MGL_X(id, name, what) MGL_FIXUP_##id,
    MGL_FIXUPS(MGL_X)
#undef MGL_X
        MGL_FIXUP_COUNT
} mgl_fixup;

/* Number of uses of each fix-up. */
typedef struct mgl_fixups {
    size_t uses[MGL_FIXUP_COUNT];
} mgl_fixups;

const char *mgl_fixup_name(mgl_fixup fixup);
/* Appends the repaired text. */
void mgl_fixups_apply(const char *text, size_t length, mgl_text *out, mgl_fixups *used);

#endif

/* Texts that need no judging again, since their verdict stands: the unit's own, the one that a work
 * stands on, and those of the unit's checkpoints. Texts are compared as mgl_kernel_hash names them.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_DUPLICATES_H
#define MGL_AUTOTUNE_KERNELS_METHODS_DUPLICATES_H

#include "autotune/kernels/gates/unit.h"
#include "autotune/kernels/versions/version.h"

/* Everything is lent. */
typedef struct mgl_duplicates {
    const mgl_kernel_unit *unit;
    const mgl_versions *versions;
    const char *base; /* (base_length) what the work stands on */
    size_t base_length;
    const char *arch;          /* verdicts for others do not count, */
    bool compiles, has_device; /* nor those that saw less than would be seen now */
} mgl_duplicates;

/* Sets *out to DUPLICATE, with what the text says again and its verdict, where it is known; else it
 * is left as it is. Checkpoints that are damaged are left out. */
mgl_status mgl_duplicates_find(const mgl_duplicates *known, const char *text, size_t length,
                               mgl_loop_verdict *out, mgl_error *err);

#endif

/* Finds texts whose verdict is already known, so that they are not evaluated again: the unit's
 * original text, the base text of the current work, and the texts of the unit's versions. Texts
 * are compared by mgl_kernel_hash. The evaluator of a kernel session calls it first. */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_DUPLICATES_H
#define MGL_AUTOTUNE_KERNELS_METHODS_DUPLICATES_H

#include "autotune/kernels/gates/unit.h"
#include "autotune/kernels/versions/version.h"

/* All pointers are borrowed. */
typedef struct mgl_duplicates {
    const mgl_kernel_unit *unit;
    const mgl_versions *versions;
    const char *base; /* (base_length) the text that the work starts from */
    size_t base_length;
    const char *arch;          /* verdicts for other architectures do not count */
    bool compiles, has_device; /* gates that run now; verdicts of fewer gates do not count */
} mgl_duplicates;

/* If the text is known, sets *out to DUPLICATE with the matching text's name and its verdict.
 * Else leaves *out unchanged. Damaged versions are skipped. */
mgl_status mgl_duplicates_find(const mgl_duplicates *known, const char *text, size_t length,
                               mgl_trial_verdict *out, mgl_error *err);

#endif

/*
 * A trick: a file of tests/autotune/kernels/tricks, which says what somebody may hand in to be kept
 * for something else than speed, and the verdict that it has to get.
 *
 *     // VERDICT unit region: row of the specification's table: what it tries
 *     // because: a piece of the diagnostic
 *     text that goes in front of what stands in the region
 *     //@ in place of
 *     lines of the unit's text
 *     //@ by
 *     other lines
 *     //@ end
 *
 * The second line and the last part may be missing. VERDICT may be several, with | between, where
 * it depends on the device which of them comes first.
 */
#ifndef MGL_TESTS_AUTOTUNE_KERNELS_TRICK_H
#define MGL_TESTS_AUTOTUNE_KERNELS_TRICK_H

#include "autotune/kernels/gates/kernel.h"

typedef struct trick {
    const mgl_kernel_unit *unit;
    mgl_kernel_region region;
    mgl_outcome verdicts[6]; /* (verdict_count) */
    int verdict_count;
    char row[64], because[128];
    mgl_text text; /* of the whole unit */
} trick;

/* Whether the text alone says nothing, and the compiled PTX has to: `because` begins with
 * "compiled, ". */
bool trick_is_of_ptx(const trick *t);
/* Ends the test where the file is none. Release with mgl_text_clear of `text`. */
void trick_read(const char *path, trick *out);
bool trick_expects(const trick *t, mgl_outcome outcome);

#endif

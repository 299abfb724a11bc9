/*
 * Declares a trick: a file of tests/autotune/kernels/tricks with an edit that tries to pass the
 * gates without being faster, and the verdict that the edit must get.
 *
 *     // VERDICT unit region: row of the specification's table: what it tries
 *     // because: a piece of the diagnostic
 *     text that is inserted before the region's content
 *     //@ in place of
 *     lines of the unit's text
 *     //@ by
 *     other lines
 *     //@ end
 *
 * The second line and the last part are optional. VERDICT may be several verdicts with | between
 * them, if the first one depends on the device.
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
    mgl_text text; /* text of the whole unit */
} trick;

/* Whether only the compiled PTX reveals the trick: `because` begins with "compiled, ". */
bool trick_is_of_ptx(const trick *t);
/* Reads a trick; the test fails if the file is not a trick. Release `text` with mgl_text_clear. */
void trick_read(const char *path, trick *out);
bool trick_expects(const trick *t, mgl_outcome outcome);

#endif

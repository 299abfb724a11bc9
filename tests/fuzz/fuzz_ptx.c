/*
 * Fuzz target of the PTX parser. The bytes must be rejected with a position, or be condensed, and
 * have no finding when scanned against themselves. Seeds: tests/autotune/kernels/ptx.
 */
#include "autotune/kernels/ptx/condense.h"
#include "autotune/kernels/ptx/scan.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mgl_ptx ptx;
    mgl_error err = {0};
    if (mgl_ptx_parse((const char *)data, size, "fuzz.ptx", &ptx, &err)) {
        require(err.message[0] && err.where[0]);
        return 0;
    }
    mgl_ptx_condensed condensed;
    mgl_text text = {0};
    require(!mgl_ptx_condense(&ptx, &condensed, &err));
    mgl_ptx_condensed_write(&condensed, &text);
    mgl_ptx_finding found;
    require(!mgl_ptx_scan(&ptx, &ptx, false, &found, &err) && found.outcome == MGL_OUTCOME_OK);
    mgl_text_clear(&text);
    mgl_ptx_condensed_clear(&condensed);
    mgl_ptx_clear(&ptx);
    return 0;
}

/*
 * Feature diff of two condensed modules. A feature with the same values and different counts is
 * marked `counts_alone`, because such a difference usually comes from unrolling, not from another
 * idea.
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_DIFF_H
#define MGL_AUTOTUNE_KERNELS_PTX_DIFF_H

#include "autotune/kernels/ptx/condense.h"

typedef struct mgl_ptx_difference {
    char *feature;        /* "global.load.vector" */
    char *before, *after; /* "v1:8 v2:4"; "" if the feature is missing */
    bool counts_alone;
} mgl_ptx_difference;

typedef struct mgl_ptx_diff {
    mgl_ptx_difference *rows; /* (count) sorted by feature; owned with their texts */
    size_t count, capacity;
} mgl_ptx_diff;

mgl_status mgl_ptx_diff_make(const mgl_ptx_condensed *before, const mgl_ptx_condensed *after,
                             mgl_ptx_diff *out, mgl_error *err);
void mgl_ptx_diff_clear(mgl_ptx_diff *diff);
/* One line per row; rows with `counts_alone` only if `all`. */
void mgl_ptx_diff_write(const mgl_ptx_diff *diff, bool all, mgl_text *out);
/* Writes the same rows as the member "differences" of an object. */
void mgl_ptx_diff_put(const mgl_ptx_diff *diff, bool all, mgl_json_out *out);

#endif

/*
 * Two condensed modules, feature by feature: what one does and the other does not. A feature whose
 * values are the same and whose counts alone differ is told as such, for more rounds of an unrolled
 * loop change counts and no idea.
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_DIFF_H
#define MGL_AUTOTUNE_KERNELS_PTX_DIFF_H

#include "autotune/kernels/ptx/condense.h"

typedef struct mgl_ptx_difference {
    char *feature;        /* "global.load.vector" */
    char *before, *after; /* "v1:8 v2:4"; "" where the feature does not stand */
    bool counts_alone;
} mgl_ptx_difference;

typedef struct mgl_ptx_diff {
    mgl_ptx_difference *rows; /* (count) by feature; owned with their texts */
    size_t count, capacity;
} mgl_ptx_diff;

mgl_status mgl_ptx_diff_make(const mgl_ptx_condensed *before, const mgl_ptx_condensed *after,
                             mgl_ptx_diff *out, mgl_error *err);
void mgl_ptx_diff_clear(mgl_ptx_diff *diff);
/* The row of a feature; NULL: it is equal. */
const mgl_ptx_difference *mgl_ptx_diff_find(const mgl_ptx_diff *diff, const char *feature);
/* A line each; without those of counts alone unless `all`. */
void mgl_ptx_diff_write(const mgl_ptx_diff *diff, bool all, mgl_text *out);
/* The same rows as a member of an object, "differences". */
void mgl_ptx_diff_put(const mgl_ptx_diff *diff, bool all, mgl_json_out *out);

#endif

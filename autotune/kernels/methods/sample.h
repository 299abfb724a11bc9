/*
 * Points of a space of few axes, each with rising values: all of them where they are few, else its
 * corners, and others drawn by a seed. No point comes twice, and the same seed gives the same
 * points.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_SAMPLE_H
#define MGL_AUTOTUNE_KERNELS_METHODS_SAMPLE_H

#include "autotune/kernels/methods/transformation.h"

typedef struct mgl_point {
    int64_t values[MGL_MAX_TUNABLES]; /* one an axis */
} mgl_point;

/* How many there are; UINT64_MAX: more than that. */
uint64_t mgl_space_size(const mgl_tunable *axes, int count);
/* Fills `out` (most) with the points: all in order where they fit; else corners first (the first
 * and the last value of every axis, as many as fit), then drawn ones. Returns how many. */
int mgl_sample_points(const mgl_tunable *axes, int count, int most, uint64_t seed, mgl_point *out);
/* Whether a point is one of the list. */
bool mgl_point_stands(const mgl_point *list, int list_count, const mgl_point *point, int count);

#endif

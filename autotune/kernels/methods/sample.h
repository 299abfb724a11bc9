/*
 * Points of a small space of tunables. The values of each axis are sorted in ascending order. If
 * all points fit into the output, all are listed; else the corners, and random points drawn from a
 * seed. No point occurs twice, and the same seed gives the same points. The tunable search
 * (configurations.c) calls it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_SAMPLE_H
#define MGL_AUTOTUNE_KERNELS_METHODS_SAMPLE_H

#include "autotune/kernels/methods/transformation.h"

typedef struct mgl_point {
    int64_t values[MGL_MAX_TUNABLES]; /* one per axis */
} mgl_point;

/* The number of points; UINT64_MAX: overflow. */
uint64_t mgl_space_size(const mgl_tunable *axes, int count);
/* Fills `out` (most). If all points fit, they come in order. Else corners come first (the first
 * or the last value of every axis, as many as fit), then random points. Returns the number of
 * points. */
int mgl_sample_points(const mgl_tunable *axes, int count, int most, uint64_t seed, mgl_point *out);
/* Whether the list contains the point. */
bool mgl_point_stands(const mgl_point *list, int list_count, const mgl_point *point, int count);

#endif

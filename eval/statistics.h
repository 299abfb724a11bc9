/* Order statistics of a few samples. */
#ifndef MGL_EVAL_STATISTICS_H
#define MGL_EVAL_STATISTICS_H

#include <stddef.h>

/* The share `share` (0 to 1) of `count` samples in order, between neighbours by linear
 * interpolation (type 7 of Hyndman and Fan, "Sample quantiles in statistical packages", 1996). At
 * most MGL_MAX_SAMPLES, at least one. */
enum { MGL_MAX_SAMPLES = 1001 };
double mgl_quantile(const double *samples, size_t count, double share);

static inline double mgl_median(const double *samples, size_t count)
{
    return mgl_quantile(samples, count, 0.5);
}

#endif

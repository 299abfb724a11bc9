/* Order statistics of a small number of samples. */
#ifndef MGL_EVAL_STATISTICS_H
#define MGL_EVAL_STATISTICS_H

#include <stddef.h>

/* The quantile `share` (0 to 1) of `count` samples, with linear interpolation between neighbors
 * (type 7 of Hyndman and Fan, "Sample quantiles in statistical packages", 1996). 1 to
 * MGL_MAX_SAMPLES samples. */
enum { MGL_MAX_SAMPLES = 1001 };
double mgl_quantile(const double *samples, size_t count, double share);

static inline double mgl_median(const double *samples, size_t count)
{
    return mgl_quantile(samples, count, 0.5);
}

#endif

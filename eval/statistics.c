/* Implements statistics.h: sorts a copy of the samples and interpolates between neighbors. */
#include "eval/statistics.h"

#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

double mgl_quantile(const double *samples, size_t count, double share)
{
    double sorted[MGL_MAX_SAMPLES];
    memcpy(sorted, samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_size);
    double at = share * (double)(count - 1);
    size_t below = (size_t)at;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

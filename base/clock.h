/* Monotonic time in seconds, for timings that are reported. */
#ifndef MGL_BASE_CLOCK_H
#define MGL_BASE_CLOCK_H
#include <time.h>
static inline double mgl_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
#endif

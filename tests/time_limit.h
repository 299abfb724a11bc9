/*
 * Time limits of tests. A limit is stated for the reference machine (tests/CMakeLists.txt). On a
 * machine that is k times slower, ctest sets MGL_TIME_SCALE to k, and every limit is k times as
 * long. Without ctest, k is 1. In a build with sanitizers, every limit is five times as long.
 */
#ifndef MGL_TESTS_TIME_LIMIT_H
#define MGL_TESTS_TIME_LIMIT_H

#include <stdlib.h>

/* Converts a limit to this machine: seconds, or a number of steps of a loop that sleeps in each. */
static inline double time_limit(double limit)
{
    const char *scale = getenv("MGL_TIME_SCALE");
    const double factor = scale ? atof(scale) : 1;
    return limit * (factor > 1 ? factor : 1) * (MGL_SANITIZED ? 5 : 1);
}

#endif

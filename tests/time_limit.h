/*
 * Time limits of tests. A limit is stated in seconds of the reference machine
 * (tests/CMakeLists.txt). On a machine that is k times slower, ctest sets MGL_TIME_SCALE to k, and
 * every limit is k times as long. Sanitizers slow the program down further.
 */
#ifndef MGL_TESTS_TIME_LIMIT_H
#define MGL_TESTS_TIME_LIMIT_H

#include <stdlib.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define TIME_LIMIT_SANITIZED 5
#else
#define TIME_LIMIT_SANITIZED 1
#endif

/* A limit on this machine; also of the number of steps of a loop that sleeps in each step. */
static inline double time_limit(double limit)
{
    const char *scale = getenv("MGL_TIME_SCALE");
    const double factor = scale ? atof(scale) : 1;
    return limit * (factor > 1 ? factor : 1) * TIME_LIMIT_SANITIZED;
}

#endif

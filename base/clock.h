/* Monotonic time in seconds, for reported timings and timeouts. */
#ifndef MGL_BASE_CLOCK_H
#define MGL_BASE_CLOCK_H
#include <time.h>
static inline double mgl_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
/* The time of that clock `ms` milliseconds from now, for pthread_cond_timedwait. */
static inline struct timespec mgl_clock_after(int ms)
{
    struct timespec then;
    clock_gettime(CLOCK_MONOTONIC, &then);
    then.tv_sec += ms / 1000;
    then.tv_nsec += ms % 1000 * 1000000L;
    then.tv_sec += then.tv_nsec / 1000000000L;
    then.tv_nsec %= 1000000000L;
    return then;
}
#endif

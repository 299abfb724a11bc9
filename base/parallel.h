/* A parallel for: threads share a range of independent items, which are started in order. */
#ifndef MGL_BASE_PARALLEL_H
#define MGL_BASE_PARALLEL_H

#include "base/error.h"

#include <stddef.h>

enum { MGL_MAX_THREADS = 16 };

/* Processes item `item`. `worker`, below the number of threads, identifies the thread; worker 0
 * is the thread that called mgl_parallel. */
typedef mgl_status mgl_parallel_fn(void *user, int worker, size_t item, mgl_error *err);

/* Processors available to this process: the scheduler's affinity mask, limited by the processor
 * time of its control groups (cgroup.h), rounded up. */
int mgl_parallel_processors(void);
/* Same, with the control groups below `root`, for tests. */
int mgl_parallel_processors_below(const char *root);
/* The number of threads for mgl_parallel: mgl_parallel_processors, at most MGL_MAX_THREADS. */
int mgl_parallel_threads(void);

/* Processes items 0 to count - 1 on at most `threads` threads (fewer if the system provides
 * fewer), and returns when all are done. If an item fails, no new items are started, and the
 * function returns when the running items have ended. It returns the status and error of the
 * lowest item that fails, independent of the number of threads. */
mgl_status mgl_parallel(int threads, size_t count, mgl_parallel_fn *work, void *user,
                        mgl_error *err);

#endif
